"""What changes: in one answer, each feature on its own scale, and in many."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots import style
from bayescfx.plots.info.changes import AlternativesInfo, Change, ChangeInfo, MovementInfo
from bayescfx.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, PURPLE, TARGET
from bayescfx.result import wording

_LEFT, _RIGHT = -0.86, 1.36  # names end where the scales begin, effects stand on the right
_NAME, _VALUE = 0.26, 0.24  # the height of a line, as a share of what a feature takes


def draw_changes(info: ChangeInfo, ax: style.Axes) -> None:
    """Draw a change chart."""
    ax.set_axis_off()
    depths = _depths(info)
    ends = np.cumsum(depths) - 0.5  # so that the first of depth 1 stands at 0
    n, last = ends[-2] + 0.5, ends[-1] - depths[-1] / 2 + 0.6 * bool(info.hidden)
    ax.set_xlim(_LEFT, _RIGHT)
    ax.set_ylim(last + depths[-1] / 2 + 0.12, -0.85)
    _head(info, ax)
    for change, middle in zip(info.changes, ends[1:-1] - depths[1:-1] / 2, strict=True):
        _feature(change, middle, ax)
    if info.hidden:
        text = f"… and {wording.count(info.hidden, 'more change')}"
        ax.text(_LEFT, n - 0.1, text, va="center", color=GREY, fontsize=7)
        ax.text(_RIGHT, n - 0.1, info.hidden_text, ha="right", va="center", color=INK)
    ax.plot([_LEFT, _RIGHT], [last - depths[-1] / 2] * 2, color=PALE, linewidth=0.8)
    _output(info, last, ax)


def changes_height(info: ChangeInfo) -> float:
    """Return how high the picture is, in inches."""
    return 0.34 + 0.43 * (float(_depths(info).sum()) + 0.6 * bool(info.hidden))


def _depths(info: ChangeInfo) -> Array:
    """Return how much room the parts take, the features and the prediction, after a first of 0."""
    told = [(change.name, change.before, change.after) for change in info.changes]
    lines = [_lines(*each) for each in [*told, (info.prediction.name, *info.prediction.texts)]]
    return np.array([0.0, *(max(1.0, _NAME * len(n) + _VALUE * len(v) + 0.2) for n, v in lines)])


def _lines(name: str, before: str, after: str) -> tuple[list[str], list[str]]:
    """Return a name, and what becomes of its value, in lines that fit beside the scale."""
    whole = f"{before} → {after}"
    two = [f"{style.clip(before, 19)} →", style.clip(after, 21)]
    return style.fitted(name, 16, 3), [whole] if len(whole) <= 21 else two


def _head(info: ChangeInfo, ax: style.Axes) -> None:
    small: dict[str, Any] = {"va": "center", "color": GREY, "fontsize": 7}
    if not info.changes:
        ax.text(_LEFT, -0.68, "nothing changes", **small)
        return
    for place, text, face in ((0.02, "before", PAPER), (0.4, "after", GREY)):
        ax.plot(place, -0.68, "o", color=face, markeredgecolor=GREY, markersize=4.5)
        ax.text(place + 0.05, -0.68, text, **small)
    if any(change.effect is not None for change in info.changes):
        ax.text(_RIGHT, -0.68, "effect", ha="right", **small)


def _feature(change: Change, y: float, ax: style.Axes) -> None:
    _names(change.name, change.before, change.after, change.effect_text, y, ax)
    low, high = change.allowed
    if change.ordered and high > low:
        ax.plot([low, high], [y, y], color=PALE, linewidth=5, solid_capstyle="butt", zorder=1)
    ax.plot(change.levels, [y] * len(change.levels), "o", color=PALE, markersize=4.5, zorder=1)
    if change.ordered:
        for place, text, side in zip((0, 1), change.ends, ("left", "right"), strict=True):
            ax.text(place, y + 0.2, style.clip(text, 12), ha=side, va="top", color=GREY, fontsize=6)
    if change.derived:
        ax.text(_RIGHT, y, "follows", ha="right", va="center", color=GREY, fontsize=7)
    _arrow(change.start, change.end, y, GREY if change.derived else BLUE, ax, wraps=change.wraps)


def _output(info: ChangeInfo, y: float, ax: style.Axes) -> None:
    found = info.prediction
    _names(found.name, *found.texts, found.change, y, ax)
    for low, high in found.accepted:
        middle, half = 0.5 * (low + high), max(0.5 * (high - low), 0.006)
        ax.fill_between([middle - half, middle + half], y - 0.26, y + 0.26, color=TARGET, lw=0)
    if found.accepted:
        low, high = min(found.accepted, key=lambda band: abs(sum(band) / 2 - found.end))
        side = _side(0.5 * (low + high))
        at = {"left": low, "right": high}.get(side, 0.5 * (low + high))
        ax.text(at, y + 0.29, "target", ha=side, va="top", color=GREEN, fontsize=6.5)
    _arrow(found.start, found.end, y, GREEN if found.reached else ORANGE, ax)


def _names(name: str, before: str, after: str, effect: str, y: float, ax: style.Axes) -> None:
    """Write what stands beside a scale, which is a thin line."""
    ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
    ax.text(_RIGHT, y, effect, ha="right", va="center", color=INK)
    names, values = _lines(name, before, after)
    y += 0.5 * (_NAME * len(names) - _VALUE * len(values)) - 0.11
    ax.text(_LEFT, y, "\n".join(names), va="bottom", fontweight="bold", linespacing=1.0)
    small: dict[str, Any] = {"color": INK, "fontsize": 7, "linespacing": 1.05}
    ax.text(_LEFT, y + 0.04, "\n".join(values), va="top", **small)


def _arrow(
    start: float, end: float, y: float, colour: str, ax: style.Axes, *, wraps: bool = False
) -> None:
    parts = [[start, end]]
    if wraps:  # over the end of the circle and in at the other side
        parts = [[start, -0.05], [1.05, end]] if start < end else [[start, 1.05], [-0.05, end]]
    for part in parts:
        ax.plot(part, [y, y], color=colour, linewidth=1.8, solid_capstyle="butt", zorder=3)
    for place, face, order in ((start, PAPER, 4), (end, colour, 5)):
        ax.plot(place, y, "o", color=face, markeredgecolor=colour, markersize=5.5, zorder=order)


def _side(place: float) -> str:
    """Return how a text is aligned that stays within a scale."""
    return "left" if place < 0.15 else "right" if place > 0.85 else "center"


def movement_lines(info: MovementInfo) -> list[tuple[list[str], list[str], float]]:
    """Return of each feature its name and share, its changes of levels, and how many lines high."""
    found = []
    for move in info.movements:
        name = style.broken(move.name, 22)
        name[-1] += f"  {100 * move.times / max(1, info.answers):.0f} %"
        shown = [f"{n}×  {text}" for text, n in move.transitions[:6]]
        told = [line for text in shown for line in style.broken(text, 36)]
        told += [f"… and {len(move.transitions) - 6} more"] * (len(move.transitions) > 6)
        found.append((name, told, max(len(name), 0.66 * len(told), 1.0) + 0.8))
    return found


def movements_height(info: MovementInfo) -> float:
    """Return how high the picture is, in inches."""
    return 0.85 + 0.19 * (sum(depth for _, _, depth in movement_lines(info)) or 1.8)


def draw_movements(info: MovementInfo, ax: style.Axes) -> None:
    """Draw a part per feature: a dot for each answer that moves it, a bar at their median."""
    rng = np.random.default_rng(0)
    moves = np.concatenate([[0.0], *(move.moves for move in info.movements)])
    low, high = float(moves.min()), float(moves.max())
    pad = 0.08 * ((high - low) or 1.0)
    y, places = 0.0, {}
    for move, (name, told, depth) in zip(info.movements, movement_lines(info), strict=True):
        middle = y + depth / 2
        ax.axhline(y, color=PALE, linewidth=0.6, zorder=0)
        if told:  # levels have no place on the scale
            small: dict[str, Any] = {"fontsize": 6.5, "linespacing": 1.15}
            across = ax.get_yaxis_transform()  # shares of the width, data along the height
            ax.text(0.02, middle, "\n".join(told), va="center", transform=across, **small)
        if len(move.moves):
            ax.plot([0, 0], [y, y + depth], color=GREY, linewidth=0.8, zorder=1)
            colours = np.where(move.moves > 0, ORANGE, BLUE)
            jitter = middle + rng.uniform(-0.4, 0.4, len(move.moves))
            dots: dict[str, Any] = {"s": 9, "alpha": 0.55, "linewidths": 0, "zorder": 2}
            ax.scatter(move.moves, jitter, c=colours.tolist(), **dots)
            median = [float(np.median(move.moves))] * 2
            ax.plot(median, [middle - 0.7, middle + 0.7], color=INK, linewidth=1.6, zorder=3)
        places[middle] = "\n".join(name)
        y += depth
    ax.set_yticks([*places], [*places.values()])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(max(y, 1.0), 0)
    ax.set_xlim(low - pad, high + pad)
    ax.set_xlabel("move, in units of change")
    text = f"moved in so many of {wording.count(info.answers, 'answer')}"
    more = f"\n{info.hidden} more features move, too" if info.hidden else ""
    ax.set_title(text + more, fontsize=7, color=GREY, loc="right")


def draw_alternatives(info: AlternativesInfo, ax: style.Axes) -> None:
    """Draw a scale per feature, and each answer as a line across all of them."""
    ax.set_axis_off()
    n = len(info.names)
    ax.set_xlim(_LEFT, 1.12)
    ax.set_ylim(n - 0.4, -0.55)
    for low, high in info.accepted:
        ax.fill_between([low, max(high, low + 0.012)], n - 1.26, n - 0.74, color=TARGET, lw=0)
    box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
    small: dict[str, Any] = {"va": "top", "color": GREY, "fontsize": 6, "bbox": box, "zorder": 2.5}
    for y, (name, ends, marks) in enumerate(zip(info.names, info.ends, info.marks, strict=True)):
        label = "\n".join(style.fitted(name, 16, 3))
        ax.text(_LEFT, y, label, va="center", fontweight="bold", linespacing=1.0)
        ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
        ticks = [(0.0, style.clip(ends[0], 12)), (1.0, style.clip(ends[1], 12))]
        for place, text in [*ticks, *((at, style.clip(t, 20)) for at, t in marks.items())]:
            ax.text(place, y + 0.16, text, ha=_side(place), **small)
    down = range(n)
    grey: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (3, 2)), "zorder": 2}
    ax.plot(info.query, down, marker="o", mfc=PAPER, mec=GREY, ms=4.5, label="query", **grey)
    colours = (BLUE, ORANGE, GREEN, PURPLE, INK)
    for k, (places, valid) in enumerate(zip(info.answers, info.valid, strict=True)):
        line: dict[str, Any] = {"color": colours[k % len(colours)], "linewidth": 1.4, "zorder": 3}
        name = f"{k + 1}" if valid else f"{k + 1} (missed)"
        ax.plot(places, down, marker="o", ms=4.5, label=name, alpha=0.85, **line)
    style.legend(ax)
