"""The look of all pictures: colours that colour-blind readers can tell apart, small type, axes."""

from __future__ import annotations

import math
import warnings
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from bayescfx.errors import optional
from bayescfx.plots.info.view import Scale
from bayescfx.potentials import Intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is loaded when a picture is drawn
    Axes = Figure = Any

COLUMN = 3.3  # inches: one column of a paper
LEGEND_COLUMNS = 5

# The palette of Okabe and Ito.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
# Shades of grey.
INK = "#222222"
GREY = "#6E6E6E"
DOT = "#B4BAC0"
PALE = "#DADDE0"
PAPER = "#FFFFFF"
TARGET = "#BFE5D6"  # the green, light enough to read on

QUERY: dict[str, Any] = {"marker": "o", "ms": 6, "color": PAPER, "mec": INK, "mew": 1.3, "ls": ""}
ANSWER = QUERY | {"marker": "D", "ms": 6.5, "color": ORANGE, "mec": PAPER, "mew": 0.8}

_RC: dict[str, Any] = {
    **dict.fromkeys(("font.size", "axes.labelsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor", "text.color"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), GREY),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("figure.facecolor", "savefig.facecolor"), PAPER),
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.4,
    "text.parse_math": False,  # a "$" in a name of the user is no formula
    "svg.fonttype": "path",
    "svg.hashsalt": "bayescfx",
}


def matplotlib(name: str = "matplotlib") -> Any:
    """Return matplotlib or one of its modules, or raise an error that says how to install it."""
    return optional(name, "pictures need", "plots")


def styled() -> Any:
    """Return a context that draws in the library's style; the user's own style is unchanged."""
    return matplotlib().rc_context(_RC)


def write(figure: Figure, target: Any, **options: Any) -> None:
    """Write a figure in the library's style; letters missing from the font become boxes."""
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, **options)


def clip(text: str, most: int) -> str:
    """Return a text of at most `most` letters; a longer one loses its middle."""
    if len(text) <= most:
        return text
    start = text[: most // 2]
    end = text[len(text) - (most - 1) // 2 :]
    return f"{start}…{end}"


def broken(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` letters, broken at blanks and underscores."""
    return [line.replace("_ ", "_") for line in wrap(text.replace("_", "_ "), width)] or [""]


def fitted(text: str, width: int, lines: int) -> list[str]:
    """Return a text in at most `lines` lines of `width` letters; a longer one is clipped."""
    room = width * lines
    found = broken(text, width)
    while len(found) > lines:
        found = broken(clip(text, room), width)
        room -= 1
    return found


def band(accepted: Intervals, ax: Axes, *, vertical: bool) -> None:
    """Draw the accepted outputs as a band over the axes as they are now."""
    low, high = ax.get_xlim() if vertical else ax.get_ylim()
    span = ax.axvspan if vertical else ax.axhspan
    for k, (first, last) in enumerate(accepted):
        if max(first, low) <= min(last, high):
            label = "target" if k == 0 else None
            look: dict[str, Any] = {"color": TARGET, "linewidth": 0.8, "zorder": 0}
            span(max(first, low), min(last, high), label=label, **look)
    (ax.set_xlim if vertical else ax.set_ylim)(low, high)


def name_axis(scale: Scale, name: str, ax: Axes, *, x: bool) -> None:
    """Label a feature's axis with its name, and with its levels or dates."""
    set_label = ax.set_xlabel if x else ax.set_ylabel
    set_label(clip(name, 40))
    if scale.feature.numeric:
        return
    places, texts = zip(*scale.ticks(3), strict=True)
    labels = [clip(text, 14) for text in texts]
    if not x:
        ax.set_yticks(places, labels)
    elif sum(len(label) for label in labels) <= 34:
        ax.set_xticks(places, labels)
    else:  # too long to stand side by side
        ax.set_xticks(places, labels, rotation=30, ha="right")


def legend_lines(n_labels: int) -> int:
    """Return the number of lines of a legend."""
    return math.ceil(n_labels / LEGEND_COLUMNS)


def legend(ax: Axes) -> None:
    """Put the legend above the axes, where it covers nothing and takes no width from them."""
    n_lines = legend_lines(len(ax.get_legend_handles_labels()[1]))
    ax.set_title("\n".join([" "] * n_lines), fontsize=7)
    spaces = {"columnspacing": 1.0, "handletextpad": 0.5, "borderaxespad": 0.1}
    found = ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=LEGEND_COLUMNS, **spaces)
    found.set_in_layout(False)
