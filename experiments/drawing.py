"""The style of all figures: large enough for a talk, safe for colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
BLACK = "#000000"
GREY = "#7A7A7A"

# A method has the same colour, line and mark everywhere, so that colour is never the only hint.
LOOK: dict[str, dict[str, Any]] = {
    "Random": {"color": GREY, "linestyle": ":", "marker": "x"},
    "L-BFGS-B": {"color": ORANGE, "linestyle": "-.", "marker": "^"},
    "Bayes": {"color": PURPLE, "linestyle": "--", "marker": "s"},
    "Bayes-CFX": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "Bayes-CFX (defaults)": {"color": GREEN, "linestyle": (0, (5, 1)), "marker": "D"},
}

_STYLE: dict[Any, Any] = {
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.labelsize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 2.4,
    "legend.frameon": False,
    "legend.fontsize": 12,
    "figure.dpi": 110,
    "savefig.dpi": 110,
}


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Yield an empty figure; it is written to `path` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE):
        canvas = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(canvas)
        yield canvas
        # no date and version inside: the same figure is the same file
        canvas.savefig(path, metadata={"Software": None})
