"""Numbers as pictures; nothing here computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayescfx.plots.draw import draw_changes as changes
from bayescfx.plots.draw import draw_outcomes as outcomes
from bayescfx.plots.info.changes import AlternativesInfo, ChangeInfo, MovementInfo
from bayescfx.plots.info.outcomes import ConvergenceInfo, PotentialInfo, ResponseInfo, SurfaceInfo
from bayescfx.plots.style import COLUMN, Axes, matplotlib, styled

# How the numbers of each kind of picture are drawn, and how high it is, in inches.
DRAWINGS: dict[type, tuple[Callable[[Any, Axes], None], Callable[[Any], float]]] = {
    ChangeInfo: (changes.draw_changes, changes.changes_height),
    MovementInfo: (changes.draw_movements, changes.movements_height),
    AlternativesInfo: (changes.draw_alternatives, lambda info: 0.4 + 0.42 * len(info.names)),
    ConvergenceInfo: (outcomes.draw_convergence, lambda info: 2.2),
    PotentialInfo: (outcomes.draw_potential, lambda info: 2.2),
    ResponseInfo: (outcomes.draw_response, lambda info: 2.3),
    SurfaceInfo: (outcomes.draw_surface, lambda info: 2.6),
}


def drawn(info: object, ax: Axes | None = None, *, detached: bool = False) -> Axes:
    """Return the axes given, or those of a new figure, with a picture of some numbers.

    A figure is one column wide; notebooks don't show a `detached` one.
    """
    draw, height = DRAWINGS[type(info)]
    with styled():
        if ax is None:
            name, make = ("figure", "Figure") if detached else ("pyplot", "figure")
            figure = getattr(matplotlib(f"matplotlib.{name}"), make)
            ax = figure(figsize=(COLUMN, height(info)), layout="constrained").add_subplot()
        draw(info, ax)
    return ax
