"""Numbers as pictures; nothing here computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayescfx.plots.draw.changes import (
    changes_height,
    draw_alternatives,
    draw_changes,
    draw_movements,
    movements_height,
)
from bayescfx.plots.draw.outcomes import draw_convergence, draw_potential
from bayescfx.plots.draw.responses import draw_response, draw_surface
from bayescfx.plots.info.changes import AlternativesInfo, ChangeInfo, MovementInfo
from bayescfx.plots.info.outcomes import ConvergenceInfo, PotentialInfo
from bayescfx.plots.info.responses import ResponseInfo, SurfaceInfo
from bayescfx.plots.style import Axes, new_axes, styled

# How the numbers of each kind of picture are drawn, and how high it is, in inches.
DRAWINGS: dict[type, tuple[Callable[[Any, Axes], None], Callable[[Any], float]]] = {
    ChangeInfo: (draw_changes, changes_height),
    MovementInfo: (draw_movements, movements_height),
    AlternativesInfo: (draw_alternatives, lambda info: 0.4 + 0.42 * len(info.names)),
    ConvergenceInfo: (draw_convergence, lambda info: 2.2),
    PotentialInfo: (draw_potential, lambda info: 2.2),
    ResponseInfo: (draw_response, lambda info: 2.3),
    SurfaceInfo: (draw_surface, lambda info: 2.6),
}


def drawn(info: object, ax: Axes | None = None, *, detached: bool = False) -> Axes:
    """Return the axes given, or those of a new figure, with a picture of some numbers."""
    draw, height = DRAWINGS[type(info)]
    with styled():
        ax = new_axes(height(info), detached=detached) if ax is None else ax
        draw(info, ax)
    return ax
