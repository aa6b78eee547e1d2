"""Draw the numbers of `bayescfx.plots.info`; nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayescfx.plots.draw import draw_changes, draw_outcomes
from bayescfx.plots.info.changes import AlternativesInfo, ChangeInfo, MovementInfo
from bayescfx.plots.info.outcomes import ConvergenceInfo, PotentialInfo, ResponseInfo, SurfaceInfo
from bayescfx.plots.style import COLUMN, Axes, matplotlib, styled

#: By the type of the numbers: the function that draws them, and the height in inches.
DRAWINGS: dict[type, tuple[Callable[[Any, Axes], None], Callable[[Any], float]]] = {
    ChangeInfo: (draw_changes.draw_changes, draw_changes.changes_height),
    MovementInfo: (draw_changes.draw_movements, draw_changes.movements_height),
    AlternativesInfo: (draw_changes.draw_alternatives, draw_changes.alternatives_height),
    ConvergenceInfo: (draw_outcomes.draw_convergence, lambda info: 2.2),
    PotentialInfo: (draw_outcomes.draw_potential, lambda info: 2.2),
    ResponseInfo: (draw_outcomes.draw_response, lambda info: 2.3),
    SurfaceInfo: (draw_outcomes.draw_surface, lambda info: 2.6),
}


def drawn(info: object, ax: Axes | None = None, *, detached: bool = False) -> Axes:
    """Draw numbers into the axes given, or into those of a new figure, and return the axes.

    A new figure is one column wide; notebooks don't show a `detached` one.
    """
    draw, height = DRAWINGS[type(info)]
    with styled():
        if ax is None:
            if detached:
                make_figure = matplotlib("matplotlib.figure").Figure
            else:
                make_figure = matplotlib("matplotlib.pyplot").figure
            figure = make_figure(figsize=(COLUMN, height(info)), layout="constrained")
            ax = figure.add_subplot()
        draw(info, ax)
    return ax
