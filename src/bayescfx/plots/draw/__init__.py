"""Numbers as pictures; nothing here computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayescfx.plots.draw import changes, outcomes, responses
from bayescfx.plots.info.changes import AlternativesInfo, ChangeInfo, MovementInfo
from bayescfx.plots.info.outcomes import ConvergenceInfo, PotentialInfo
from bayescfx.plots.info.responses import ResponseInfo, SurfaceInfo
from bayescfx.plots.style import Axes, new_axes, styled

# How the numbers of each kind of picture are drawn, and how high it is, in inches.
DRAWINGS: dict[type, tuple[Callable[[Any, Axes], None], Callable[[Any], float]]] = {
    ChangeInfo: (changes.draw_changes, changes.changes_height),
    MovementInfo: (changes.draw_movements, changes.movements_height),
    AlternativesInfo: (changes.draw_alternatives, lambda info: 0.4 + 0.42 * len(info.names)),
    ConvergenceInfo: (outcomes.draw_convergence, lambda info: 2.2),
    PotentialInfo: (outcomes.draw_potential, lambda info: 2.2),
    ResponseInfo: (responses.draw_response, lambda info: 2.3),
    SurfaceInfo: (responses.draw_surface, lambda info: 2.6),
}


def drawn(info: object, ax: Axes | None = None, *, detached: bool = False) -> Axes:
    """Return the axes given, or those of a new figure, with a picture of some numbers."""
    draw, height = DRAWINGS[type(info)]
    with styled():
        ax = new_axes(height(info), detached=detached) if ax is None else ax
        draw(info, ax)
    return ax
