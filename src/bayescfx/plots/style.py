"""How every picture looks: colours that colour-blind readers can tell apart, and small type."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bayescfx.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches: one column of a paper

# The palette of Okabe and Ito.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE = "#CC79A7"
INK, GREY, DOT, PALE, PAPER = "#222222", "#6E6E6E", "#B4BAC0", "#DADDE0", "#FFFFFF"
TARGET = "#BFE5D6"  # the green, light enough to read on

_RC: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "text.color": INK,
    "lines.linewidth": 1.4,
    "text.parse_math": False,  # names and levels are the user's, a "$" in them is no formula
    "svg.fonttype": "path",
    "svg.hashsalt": "bayescfx",
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
}


def matplotlib(name: str = "matplotlib") -> Any:
    """Return matplotlib or one of its modules.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            "pictures need matplotlib, which is not installed. "
            "Install it with: pip install 'bayescfx[plots]'."
        ) from error


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


def new_axes(height: float, width: float = COLUMN) -> Axes:
    """Return the axes of a new figure that pyplot knows, so that notebooks show it."""
    pyplot = matplotlib("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def detached(height: float, width: float = COLUMN) -> Figure:
    """Return a figure that nothing but its caller knows, for files."""
    figure: Figure = matplotlib("matplotlib.figure").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure
