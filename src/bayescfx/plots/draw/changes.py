"""What changes: in one answer, each feature on its own scale, and in many."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.plots.info.changes import Change, ChangeInfo, MovementInfo, Prediction
from bayescfx.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, TARGET, Axes, clip
from bayescfx.result import wording

_LEFT, _RIGHT = -0.86, 1.36  # names end where the scales begin, effects stand on the right


def draw_changes(info: ChangeInfo, ax: Axes) -> None:
    """Draw a change chart."""
    ax.set_axis_off()
    n = len(info.changes)
    last = n + 0.6 * bool(info.hidden)
    ax.set_xlim(_LEFT, _RIGHT)
    ax.set_ylim(last + 0.62, -0.85)
    _head(info, ax)
    for i, change in enumerate(info.changes):
        _feature(change, i, ax)
    if info.hidden:
        text = f"… and {wording.count(info.hidden, 'more change')}"
        ax.text(_LEFT, n - 0.1, text, va="center", color=GREY, fontsize=7)
    ax.plot([_LEFT, _RIGHT], [last - 0.5] * 2, color=PALE, linewidth=0.8)
    _output(info.prediction, last, ax)


def _head(info: ChangeInfo, ax: Axes) -> None:
    small: dict[str, Any] = {"va": "center", "color": GREY, "fontsize": 7}
    if not info.changes:
        ax.text(_LEFT, -0.68, "nothing changes", **small)
        return
    for place, text, face in ((0.02, "before", PAPER), (0.4, "after", GREY)):
        ax.plot(place, -0.68, "o", color=face, markeredgecolor=GREY, markersize=4.5)
        ax.text(place + 0.05, -0.68, text, **small)
    if any(change.effect is not None for change in info.changes):
        ax.text(_RIGHT, -0.68, "effect", ha="right", **small)


def _feature(change: Change, y: float, ax: Axes) -> None:
    _names(change.name, change.before, change.after, y, ax)
    ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
    low, high = change.allowed
    if change.ordered and high > low:
        ax.plot([low, high], [y, y], color=PALE, linewidth=5, solid_capstyle="butt", zorder=1)
    for place in change.levels:
        ax.plot(place, y, "o", color=PALE, markersize=4.5, zorder=1)
    colour = GREY if change.derived else BLUE
    _arrow(change.start, change.end, y, colour, ax, wraps=change.wraps)
    if change.ordered:
        for place, text, side in zip((0, 1), change.ends, ("left", "right"), strict=True):
            ax.text(place, y + 0.2, clip(text, 12), ha=side, va="top", color=GREY, fontsize=6)
    if change.effect is not None:
        ax.text(_RIGHT, y, change.effect_text, ha="right", va="center", color=INK)
    elif change.derived:
        ax.text(_RIGHT, y, "follows", ha="right", va="center", color=GREY, fontsize=7)


def _names(name: str, before: str, after: str, y: float, ax: Axes) -> None:
    whole = f"{before} → {after}"
    if len(whole) > 21:  # letters that fit beside the scale
        whole = f"{clip(before, 19)} →\n{clip(after, 21)}"
    up = 0.2 if "\n" in whole else 0.1
    ax.text(_LEFT, y - up, clip(name, 18), va="bottom", fontweight="bold", linespacing=1.0)
    ax.text(_LEFT, y - up + 0.04, whole, va="top", color=INK, fontsize=7, linespacing=1.05)


def _arrow(
    start: float, end: float, y: float, colour: str, ax: Axes, *, wraps: bool = False
) -> None:
    parts = [[start, end]]
    if wraps:  # over the end of the circle and in at the other side
        parts = [[start, -0.05], [1.05, end]] if start < end else [[start, 1.05], [-0.05, end]]
    for part in parts:
        ax.plot(part, [y, y], color=colour, linewidth=1.8, solid_capstyle="butt", zorder=3)
    ax.plot(start, y, "o", color=PAPER, markeredgecolor=colour, markersize=5.5, zorder=4)
    ax.plot(end, y, "o", color=colour, markeredgecolor=colour, markersize=5.5, zorder=5)


def _output(info: Prediction, y: float, ax: Axes) -> None:
    _names("prediction", wording.number(info.before), wording.number(info.after), y, ax)
    ax.plot([0, 1], [y, y], color=PALE, linewidth=1.0, zorder=1)
    for low, high in info.accepted:
        middle, half = 0.5 * (low + high), max(0.5 * (high - low), 0.006)
        ax.fill_between([middle - half, middle + half], y - 0.26, y + 0.26, color=TARGET, lw=0)
    _arrow(info.start, info.end, y, GREEN if info.reached else ORANGE, ax)
    if info.accepted:
        low, high = min(info.accepted, key=lambda band: abs(sum(band) / 2 - info.end))
        place = 0.5 * (low + high)
        side = "left" if place < 0.15 else "right" if place > 0.85 else "center"
        at = {"left": low, "right": high}.get(side, place)
        ax.text(at, y + 0.29, "target", ha=side, va="top", color=GREEN, fontsize=6.5)
    ax.text(_RIGHT, y, info.change, ha="right", va="center", color=INK)


def draw_movements(info: MovementInfo, ax: Axes) -> None:
    """Draw a line per feature: a dot for each answer that moves it, a bar at their median."""
    rng = np.random.default_rng(0)
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    moves = np.concatenate([[0.0], *(move.moves for move in info.movements)])
    low, high = float(moves.min()), float(moves.max())
    pad = 0.08 * ((high - low) or 1.0)
    if any(move.usual for move in info.movements):  # room for words
        high = max(high, 0.6 * abs(low), pad)
    low, high = low - pad, high + pad
    for i, move in enumerate(info.movements):
        ax.axhline(i, color=PALE, linewidth=0.6, zorder=0)
        if move.median is None:
            ax.text(0.015 * (high - low), i - 0.06, clip(move.usual, 30), fontsize=6.5, va="bottom")
            continue
        colours = np.where(move.moves > 0, ORANGE, BLUE)
        jitter = i + rng.uniform(-0.16, 0.16, len(move.moves))
        ax.scatter(move.moves, jitter, c=colours.tolist(), s=9, alpha=0.55, linewidths=0, zorder=2)
        ax.plot([move.median] * 2, [i - 0.3, i + 0.3], color=INK, linewidth=1.6, zorder=3)
    labels = [f"{clip(m.name, 16)}  {100 * m.times / info.answers:.0f} %" for m in info.movements]
    ax.set_yticks(range(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(len(labels) - 0.5, -0.6)
    ax.set_xlim(low, high)
    ax.set_xlabel("change, in the feature's units of change")
    text = f"moved in so many of {wording.count(info.answers, 'answer')} ({info.reached} reached)"
    more = f"; {info.hidden} more features" if info.hidden else ""
    ax.set_title(text + more, fontsize=7, color=GREY)
