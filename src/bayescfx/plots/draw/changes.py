"""The change chart: one line per feature, each on its own scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayescfx.plots.draw.text import clip
from bayescfx.plots.info.changes import Change, ChangeInfo, Prediction
from bayescfx.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PAPER, TARGET
from bayescfx.result import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _RIGHT = -0.86, 1.36  # names end where the scales begin, effects stand on the right
_LINE = 0.43  # inches per feature
_HEAD = 0.34
_WIDE = 21  # letters that fit beside the scale


def height(info: ChangeInfo) -> float:
    """Return the height in inches that a chart needs."""
    lines = len(info.changes) + bool(info.hidden) * 0.6 + 1
    return _HEAD + _LINE * lines


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
    small = {"va": "center", "color": GREY, "fontsize": 7}
    if not info.changes:
        ax.text(_LEFT, -0.68, "nothing changes", **small)  # type: ignore[arg-type]  # mixed values
        return
    for place, text, filled in ((0.02, "before", False), (0.4, "after", True)):
        face = GREY if filled else PAPER
        ax.plot(place, -0.68, "o", color=face, markeredgecolor=GREY, markersize=4.5)
        ax.text(place + 0.05, -0.68, text, **small)  # type: ignore[arg-type]  # mixed values
    if any(change.effect is not None for change in info.changes):
        ax.text(_RIGHT, -0.68, "effect", ha="right", **small)  # type: ignore[arg-type]  # mixed


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
    if len(whole) > _WIDE:
        whole = f"{clip(before, _WIDE - 2)} →\n{clip(after, _WIDE)}"
    up = 0.2 if "\n" in whole else 0.1
    ax.text(_LEFT, y - up, clip(name, 18), va="bottom", fontweight="bold", linespacing=1.0)
    ax.text(_LEFT, y - up + 0.04, whole, va="top", color=INK, fontsize=7, linespacing=1.05)


def _arrow(
    start: float, end: float, y: float, colour: str, ax: Axes, *, wraps: bool = False
) -> None:
    style = {"color": colour, "linewidth": 1.8, "solid_capstyle": "butt", "zorder": 3}
    if wraps:  # over the end of the circle and in at the other side
        near, far = (0.0, 1.0) if start < end else (1.0, 0.0)
        out = 0.05 * (1 if near else -1)
        ax.plot([start, near + out], [y, y], **style)  # type: ignore[arg-type]  # mixed values
        ax.plot([far - out, end], [y, y], **style)  # type: ignore[arg-type]  # mixed values
    else:
        ax.plot([start, end], [y, y], **style)  # type: ignore[arg-type]  # mixed values
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
