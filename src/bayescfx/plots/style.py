"""How every picture looks: colours that colour-blind readers can tell apart, and small type."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bayescfx.errors import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches: one column of a paper

# The palette of Okabe and Ito.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, GREY, DOT, PALE, PAPER = "#222222", "#6E6E6E", "#B4BAC0", "#DADDE0", "#FFFFFF"
TARGET = "#BFE5D6"  # the green, light enough to read on

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
    "text.parse_math": False,  # names and levels are the user's, a "$" in them is no formula
    "svg.fonttype": "path",
    "svg.hashsalt": "bayescfx",
}


def matplotlib(name: str = "matplotlib") -> Any:
    """Return matplotlib or one of its modules, or say how to install it."""
    return optional(name, "pictures need", "plots")


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the library's style, and leave the user's own untouched."""
    with matplotlib().rc_context(_RC):
        yield


def write(figure: Figure, target: Any, **options: Any) -> None:
    """Write a figure in the library's style; letters that the font lacks become boxes."""
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(target, **options)


def new_axes(height: float, *, detached: bool = False) -> Axes:
    """Return the axes of a new figure, one column wide.

    Pyplot knows it, so that notebooks show it; one that is `detached` only its caller does.
    """
    name, make = ("figure", "Figure") if detached else ("pyplot", "figure")
    figure = getattr(matplotlib(f"matplotlib.{name}"), make)
    axes: Axes = figure(figsize=(COLUMN, height), layout="constrained").add_subplot()
    return axes
