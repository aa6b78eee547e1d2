"""What several pictures share: feature axes, target bands, markers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayescfx.plots.draw.text import clip
from bayescfx.plots.info.scales import Scale
from bayescfx.plots.style import BLUE, INK, ORANGE, PAPER, TARGET
from bayescfx.potentials.levels import Intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUERY: dict[str, Any] = {
    "marker": "o",
    "linestyle": "none",
    "color": PAPER,
    "markeredgecolor": INK,
    "markeredgewidth": 1.3,
    "markersize": 6,
}
ANSWER: dict[str, Any] = {
    "marker": "D",
    "linestyle": "none",
    "color": ORANGE,
    "markeredgecolor": PAPER,
    "markeredgewidth": 0.8,
    "markersize": 6.5,
}
QUERY_LINE, ANSWER_LINE = BLUE, ORANGE


def band(accepted: Intervals, ax: Axes, *, vertical: bool) -> None:
    """Draw the accepted outputs as a band over the axes as they are now."""
    low, high = ax.get_xlim() if vertical else ax.get_ylim()
    for k, (first, last) in enumerate(accepted):
        ends = max(first, low), min(last, high)
        if ends[0] > ends[1]:
            continue
        label = "target" if k == 0 else None
        draw = ax.axvspan if vertical else ax.axhspan
        draw(*ends, color=TARGET, linewidth=0.8, zorder=0, label=label)
    (ax.set_xlim if vertical else ax.set_ylim)(low, high)


def name_axis(scale: Scale, name: str, ax: Axes, *, x: bool) -> None:
    """Label a feature's axis in the user's own terms."""
    (ax.set_xlabel if x else ax.set_ylabel)(clip(name, 40))
    if scale.plain:
        return
    ticks = scale.ticks(3)
    places = [place for place, _ in ticks]
    labels = [clip(text, 14) for _, text in ticks]
    if x:
        crowded = sum(map(len, labels)) > 34
        ax.set_xticks(
            places, labels, rotation=30 if crowded else 0, ha="right" if crowded else "center"
        )
    else:
        ax.set_yticks(places, labels)


def legend(ax: Axes) -> None:
    """Put the legend above the axes, where it covers nothing and takes no width from them."""
    ax.set_title(" ", fontsize=7)
    found = ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=5,
        columnspacing=1.0,
        handletextpad=0.5,
        borderaxespad=0.1,
    )
    found.set_in_layout(False)


def finite(values: list[float]) -> list[float]:
    """Return the values that are numbers."""
    return [value for value in values if math.isfinite(value)]
