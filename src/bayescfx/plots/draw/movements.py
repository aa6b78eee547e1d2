"""Which features move how often and how far, over many answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayescfx.plots.draw.text import clip
from bayescfx.plots.info.movements import MovementInfo
from bayescfx.plots.style import BLUE, GREY, INK, ORANGE, PALE
from bayescfx.result import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE, _HEAD = 0.32, 0.75


def height(info: MovementInfo) -> float:
    """Return the height in inches that the picture needs."""
    return _HEAD + _LINE * max(1, len(info.movements))


def draw_movements(info: MovementInfo, ax: Axes) -> None:
    """Draw a line per feature: a dot for each answer that moves it, a bar at their median."""
    rng = np.random.default_rng(0)
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    low, high = _limits(info)
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


def _limits(info: MovementInfo) -> tuple[float, float]:
    """Return the ends of the axis: every move, none, and room for words."""
    moves = np.concatenate([[0.0], *(move.moves for move in info.movements)])
    low, high = float(moves.min()), float(moves.max())
    pad = 0.08 * ((high - low) or 1.0)
    if any(move.usual for move in info.movements):
        high = max(high, 0.6 * abs(low), pad)
    return low - pad, high + pad
