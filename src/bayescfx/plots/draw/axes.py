"""What several pictures share: feature axes, target bands, markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayescfx.plots.info.scales import Scale
from bayescfx.plots.style import INK, ORANGE, PAPER, TARGET
from bayescfx.potentials import Intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUERY: dict[str, Any] = {
    "marker": "o",
    "ls": "none",
    "color": PAPER,
    "mec": INK,
    "mew": 1.3,
    "ms": 6,
}
ANSWER: dict[str, Any] = QUERY | {
    "marker": "D",
    "color": ORANGE,
    "mec": PAPER,
    "mew": 0.8,
    "ms": 6.5,
}


def clip(text: str, most: int) -> str:
    """Return a text of at most `most` letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def band(accepted: Intervals, ax: Axes, *, vertical: bool) -> None:
    """Draw the accepted outputs as a band over the axes as they are now."""
    low, high = ax.get_xlim() if vertical else ax.get_ylim()
    span = ax.axvspan if vertical else ax.axhspan
    for k, (first, last) in enumerate(accepted):
        if max(first, low) <= min(last, high):
            label = "target" if k == 0 else None
            ends = max(first, low), min(last, high)
            span(*ends, color=TARGET, linewidth=0.8, zorder=0, label=label)
    (ax.set_xlim if vertical else ax.set_ylim)(low, high)


def name_axis(scale: Scale, name: str, ax: Axes, *, x: bool) -> None:
    """Label a feature's axis in the user's own terms."""
    (ax.set_xlabel if x else ax.set_ylabel)(clip(name, 40))
    if scale.plain:
        return
    places, texts = zip(*scale.ticks(3), strict=True)
    labels = [clip(text, 14) for text in texts]
    if not x:
        ax.set_yticks(places, labels)
    elif sum(map(len, labels)) > 34:  # crowded
        ax.set_xticks(places, labels, rotation=30, ha="right")
    else:
        ax.set_xticks(places, labels)


def legend(ax: Axes) -> None:
    """Put the legend above the axes, where it covers nothing and takes no width from them."""
    ax.set_title(" ", fontsize=7)
    spaces = {"columnspacing": 1.0, "handletextpad": 0.5, "borderaxespad": 0.1}
    found = ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=5, **spaces)
    found.set_in_layout(False)
