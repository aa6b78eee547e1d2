"""Draw changes: of one answer, each feature on its own scale, and of many."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots import style
from bayescfx.plots.info.changes import (
    AlternativesInfo,
    Change,
    ChangeInfo,
    Movement,
    MovementInfo,
)
from bayescfx.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, PURPLE, TARGET
from bayescfx.result import wording

# Scales go from 0 to 1; names are to their left, effects to their right.
_LEFT = -0.86
_RIGHT = 1.36
# Heights of lines of text; a feature has a height of 1 or more.
_NAME = 0.26
_VALUE = 0.24
_MOST_TRANSITIONS = 6  # changes of levels that a feature lists
_HIDDEN = 0.6  # height of the line that counts the changes left out
_BELOW = 0.16  # from a scale down to the text below it
_LINE = 0.25  # height of a line of small text
_LETTERS = 33  # of small text that fit below a scale
_SMALL: dict[str, Any] = {
    "va": "top",
    "color": GREY,
    "fontsize": 6,
    "bbox": {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
    "zorder": 3.5,
}


def draw_changes(info: ChangeInfo, ax: style.Axes) -> None:
    """Draw a change chart."""
    ax.set_axis_off()
    heights = _heights(info)
    bottoms = np.cumsum(heights) - 0.5  # the middle of a first feature of height 1 is at 0
    middles = bottoms - heights / 2
    features_end = bottoms[-2] if len(bottoms) > 1 else -0.5
    output = middles[-1] + (_HIDDEN if info.hidden else 0.0)
    ax.set_xlim(_LEFT, _RIGHT)
    ax.set_ylim(output + heights[-1] / 2 + 0.12, -0.85)
    _draw_head(info, ax)
    for change, middle in zip(info.changes, middles[:-1], strict=True):
        _draw_feature(change, middle, ax)
    if info.hidden:
        y = features_end + 0.4
        text = f"… and {wording.count(info.hidden, 'more change')}"
        ax.text(_LEFT, y, text, va="center", color=GREY, fontsize=7)
        ax.text(_RIGHT, y, info.hidden_text, ha="right", va="center", color=INK)
    ax.plot([_LEFT, _RIGHT], [output - heights[-1] / 2] * 2, color=PALE, linewidth=0.8)
    _draw_output(info, output, ax)


def changes_height(info: ChangeInfo) -> float:
    """Return the height of the picture, in inches."""
    hidden = _HIDDEN if info.hidden else 0.0
    return 0.34 + 0.43 * (float(_heights(info).sum()) + hidden)


def _heights(info: ChangeInfo) -> Array:
    """Return the heights of all features, then of the prediction."""
    texts = [(change.name, *change.short) for change in info.changes]
    texts.append((info.prediction.name, *info.prediction.texts))
    heights = []
    for name, before, after in texts:
        names, values = _lines(name, before, after)
        heights.append(max(1.0, _NAME * len(names) + _VALUE * len(values) + 0.2))
    return np.array(heights)


def _lines(name: str, before: str, after: str) -> tuple[list[str], list[str]]:
    """Return a name, and the values before and after, in lines that fit beside the scale."""
    names = style.fitted(name, 16, 3)
    values = f"{before} → {after}"
    if len(values) <= 21:
        return names, [values]
    return names, [f"{style.clip(before, 19)} →", style.clip(after, 21)]


def _draw_head(info: ChangeInfo, ax: style.Axes) -> None:
    """Draw the legend above the scales."""
    small: dict[str, Any] = {"va": "center", "color": GREY, "fontsize": 7}
    if not info.changes:
        ax.text(_LEFT, -0.68, "nothing changes", **small)
        return
    for place, text, face in ((0.02, "before", PAPER), (0.4, "after", GREY)):
        ax.plot(place, -0.68, "o", color=face, markeredgecolor=GREY, markersize=4.5)
        ax.text(place + 0.05, -0.68, text, **small)
    if any(change.effect is not None for change in info.changes):
        ax.text(_RIGHT, -0.68, "effect", ha="right", **small)


def _draw_feature(change: Change, y: float, ax: style.Axes) -> None:
    """Draw the scale of a feature: the allowed range, its levels, and an arrow."""
    _draw_texts(change.name, *change.short, change.effect_text, y, ax)
    low, high = change.allowed
    if change.ordered and high > low:
        ax.plot([low, high], [y, y], color=PALE, linewidth=5, solid_capstyle="butt", zorder=1)
    ax.plot(change.levels, [y] * len(change.levels), "o", color=PALE, markersize=4.5, zorder=1)
    if change.ordered:
        for place, text, side in zip((0, 1), change.ends, ("left", "right"), strict=True):
            ax.text(place, y + 0.2, style.clip(text, 12), ha=side, va="top", color=GREY, fontsize=6)
    if change.derived:
        ax.text(_RIGHT, y, "follows", ha="right", va="center", color=GREY, fontsize=7)
    colour = GREY if change.derived else BLUE
    _draw_arrow(change.start, change.end, y, colour, ax, wraps=change.wraps)


def _draw_output(info: ChangeInfo, y: float, ax: style.Axes) -> None:
    """Draw the scale of the prediction: the accepted outputs as bands, and an arrow."""
    prediction = info.prediction
    _draw_texts(prediction.name, *prediction.texts, prediction.change, y, ax)
    for low, high in prediction.accepted:
        middle = 0.5 * (low + high)
        half = max(0.5 * (high - low), 0.006)
        ax.fill_between([middle - half, middle + half], y - 0.26, y + 0.26, color=TARGET, lw=0)
    if prediction.accepted:
        low, high = min(prediction.accepted, key=lambda band: abs(sum(band) / 2 - prediction.end))
        side = _side(0.5 * (low + high))
        x = {"left": low, "right": high}.get(side, 0.5 * (low + high))
        ax.text(x, y + 0.29, "target", ha=side, va="top", color=GREEN, fontsize=6.5)
    colour = GREEN if prediction.reached else ORANGE
    _draw_arrow(prediction.start, prediction.end, y, colour, ax)


def _draw_texts(name: str, before: str, after: str, effect: str, y: float, ax: style.Axes) -> None:
    """Draw a scale as a thin line, with the texts beside it."""
    ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
    ax.text(_RIGHT, y, effect, ha="right", va="center", color=INK)
    names, values = _lines(name, before, after)
    y += 0.5 * (_NAME * len(names) - _VALUE * len(values)) - 0.11
    ax.text(_LEFT, y, "\n".join(names), va="bottom", fontweight="bold", linespacing=1.0)
    small: dict[str, Any] = {"color": INK, "fontsize": 7, "linespacing": 1.05}
    ax.text(_LEFT, y + 0.04, "\n".join(values), va="top", **small)


def _draw_arrow(
    start: float, end: float, y: float, colour: str, ax: style.Axes, *, wraps: bool = False
) -> None:
    """Draw a line from an open to a full dot; over the end of the scale if it `wraps`."""
    parts = [[start, end]]
    if wraps:
        parts = [[start, -0.05], [1.05, end]] if start < end else [[start, 1.05], [-0.05, end]]
    for part in parts:
        ax.plot(part, [y, y], color=colour, linewidth=1.8, solid_capstyle="butt", zorder=3)
    for place, face, order in ((start, PAPER, 4), (end, colour, 5)):
        ax.plot(place, y, "o", color=face, markeredgecolor=colour, markersize=5.5, zorder=order)


def _side(place: float) -> str:
    """Return the alignment that keeps a text within a scale."""
    if place < 0.15:
        return "left"
    return "right" if place > 0.85 else "center"


class MovementText(NamedTuple):
    """The texts of one feature: its name and share, and its changes of levels."""

    name: list[str]
    transitions: list[str]

    @classmethod
    def of(cls, movement: Movement, n_answers: int) -> MovementText:
        """Return the texts in lines; only the most frequent changes of levels are shown."""
        name = style.broken(movement.name, 22)
        name[-1] += f"  {100 * movement.times / max(1, n_answers):.0f} %"
        lines = []
        for text, n in movement.transitions[:_MOST_TRANSITIONS]:
            lines += style.broken(f"{n}×  {text}", 36)
        n_hidden = len(movement.transitions) - _MOST_TRANSITIONS
        if n_hidden > 0:
            lines.append(f"… and {n_hidden} more")
        return cls(name, lines)

    @property
    def height(self) -> float:
        """The height of the part, in lines."""
        return max(len(self.name), 0.66 * len(self.transitions), 1.0) + 0.8


def movement_texts(info: MovementInfo) -> list[MovementText]:
    """Return the texts of all features."""
    return [MovementText.of(movement, info.answers) for movement in info.movements]


def movements_height(info: MovementInfo) -> float:
    """Return the height of the picture, in inches."""
    n_lines = sum(text.height for text in movement_texts(info))
    return 0.85 + 0.19 * (n_lines or 1.8)


def draw_movements(info: MovementInfo, ax: style.Axes) -> None:
    """Draw a part per feature: a dot for each answer that moves it, a bar at their median."""
    rng = np.random.default_rng(0)
    labels = {}
    top = 0.0
    for movement, text in zip(info.movements, movement_texts(info), strict=True):
        bottom = top + text.height
        ax.axhline(top, color=PALE, linewidth=0.6, zorder=0)
        _draw_transitions(text, 0.5 * (top + bottom), ax)
        if len(movement.moves):
            _draw_moves(movement.moves, top, bottom, rng, ax)
        labels[0.5 * (top + bottom)] = "\n".join(text.name)
        top = bottom
    ax.set_yticks([*labels], [*labels.values()])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(max(top, 1.0), 0)
    moves = np.concatenate([[0.0], *(movement.moves for movement in info.movements)])
    low = float(moves.min())
    high = float(moves.max())
    pad = 0.08 * ((high - low) or 1.0)
    ax.set_xlim(low - pad, high + pad)
    ax.set_xlabel("move, in units of change")
    title = f"share of {wording.count(info.answers, 'answer')} that move it"
    if info.hidden:
        title += f"\n{info.hidden} more features move, too"
    ax.set_title(title, fontsize=7, color=GREY, loc="right")


def _draw_transitions(text: MovementText, middle: float, ax: style.Axes) -> None:
    """Write the changes of levels, which have no place on the scale."""
    if not text.transitions:
        return
    across = ax.get_yaxis_transform()  # shares of the width, data along the height
    small: dict[str, Any] = {"fontsize": 6.5, "linespacing": 1.15}
    ax.text(0.02, middle, "\n".join(text.transitions), va="center", transform=across, **small)


def _draw_moves(
    moves: Array, top: float, bottom: float, rng: np.random.Generator, ax: style.Axes
) -> None:
    """Draw a dot for each move, at random heights, and a bar at the median."""
    middle = 0.5 * (top + bottom)
    ax.plot([0, 0], [top, bottom], color=GREY, linewidth=0.8, zorder=1)
    colours = np.where(moves > 0, ORANGE, BLUE)
    jitter = middle + rng.uniform(-0.4, 0.4, len(moves))
    dots: dict[str, Any] = {"s": 9, "alpha": 0.55, "linewidths": 0, "zorder": 2}
    ax.scatter(moves, jitter, c=colours.tolist(), **dots)
    median = [float(np.median(moves))] * 2
    ax.plot(median, [middle - 0.7, middle + 0.7], color=INK, linewidth=1.6, zorder=3)


def draw_alternatives(info: AlternativesInfo, ax: style.Axes) -> None:
    """Draw a scale per feature, and each answer as a line across all of them."""
    ax.set_axis_off()
    n_scales = len(info.names)
    ax.set_xlim(_LEFT, 1.12)
    ax.set_ylim(n_scales - 0.4, -0.55)
    for low, high in info.accepted:
        band = [low, max(high, low + 0.012)]
        ax.fill_between(band, n_scales - 1.26, n_scales - 0.74, color=TARGET, lw=0)
    for y in range(n_scales):
        _draw_name(info.names[y], y, ax)
        if info.ordered[y]:
            ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
            _write_ends(info.ends[y], info.marks[y], y, ax)
        _write_marks(info.marks[y], y, ax)
    down = range(n_scales)
    grey: dict[str, Any] = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (3, 2)), "zorder": 2}
    ax.plot(info.query, down, marker="o", mfc=PAPER, mec=GREY, ms=4.5, label="query", **grey)
    colours = (BLUE, ORANGE, GREEN, PURPLE, INK)
    for k, (places, valid) in enumerate(zip(info.answers, info.valid, strict=True)):
        line: dict[str, Any] = {"color": colours[k % len(colours)], "linewidth": 1.4, "zorder": 3}
        label = f"{k + 1}" if valid else f"{k + 1} (missed)"
        ax.plot(places, down, marker="o", ms=4.5, label=label, alpha=0.85, **line)
    style.legend(ax)


def alternatives_height(info: AlternativesInfo) -> float:
    """Return the height of the picture, in inches."""
    n_labels = 1 + len(info.answers)  # the query, too
    return 0.26 + 0.14 * style.legend_lines(n_labels) + 0.42 * len(info.names)


def _draw_name(name: str, y: float, ax: style.Axes) -> None:
    """Write the name of a scale to its left."""
    label = "\n".join(style.fitted(name, 16, 3))
    ax.text(_LEFT, y, label, va="center", fontweight="bold", linespacing=1.0)


def _write_ends(ends: tuple[str, str], marks: dict[float, str], y: float, ax: style.Axes) -> None:
    """Write the ends of a scale below it, except where a level is written that is taken."""
    for place, text in zip((0.0, 1.0), ends, strict=True):
        if place not in marks:
            ax.text(place, y + _BELOW, style.clip(text, 12), ha=_side(place), **_SMALL)


def _write_marks(marks: dict[float, str], y: float, ax: style.Axes) -> None:
    """Write levels below their places: on up to three lines, in turn, as they need room."""
    longest = max(map(len, marks.values()), default=0)
    room = _LETTERS / max(1, len(marks))  # for a level, if there is one line
    n_lines = min(math.ceil((longest + 2) / room), 3)
    sides = {0.0: "left", 1.0: "right"}
    for k, place in enumerate(sorted(marks)):
        text = style.clip(marks[place], int(n_lines * room) - 2)
        height = y + _BELOW + _LINE * (k % n_lines)
        ax.text(place, height, text, ha=sides.get(place, "center"), **_SMALL)
