"""Numbers as pictures; nothing here computes."""

from bayescfx.plots.draw.changes import draw_changes
from bayescfx.plots.draw.changes import height as change_height
from bayescfx.plots.draw.movements import draw_movements
from bayescfx.plots.draw.movements import height as movement_height
from bayescfx.plots.draw.outcomes import draw_convergence, draw_potential
from bayescfx.plots.draw.responses import draw_response, draw_surface

OUTCOME_HEIGHT, RESPONSE_HEIGHT, SURFACE_HEIGHT = 2.2, 2.3, 2.6  # inches

__all__ = [
    "OUTCOME_HEIGHT",
    "RESPONSE_HEIGHT",
    "SURFACE_HEIGHT",
    "change_height",
    "draw_changes",
    "draw_convergence",
    "draw_movements",
    "draw_potential",
    "draw_response",
    "draw_surface",
    "movement_height",
]
