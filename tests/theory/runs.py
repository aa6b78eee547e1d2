"""Projected gradient ascents as instances of CFX-Potential-Localopt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayescfx.search.gradient import ProjectedGradient, Visit
from bayescfx.search.question import Question
from bayescfx.theory.certificate import Instance, Solution, certify


def certify_run(
    search: ProjectedGradient,
    question: Question,
    visits: Sequence[Visit],
    *,
    lipschitz: float | None = None,
) -> Solution | None:
    """Return the certificate of a projected gradient ascent, or a witness against `lipschitz`.

    It is about the one of ``search.visits(question)`` with the highest potential where the
    certificate holds, else about the last; points are in units of the features' scales. Rows not
    evaluated before are charged to the question's account.
    """
    certified = [visit for visit in visits if visit.known and visit.residual <= search.tolerance]
    rho = question.potential
    chosen = max(certified, key=lambda visit: float(rho.value(visit.output)), default=visits[-1])
    slopes = search.slopes(question, chosen.point)
    part, f, gradient = slopes.part, slopes.outputs, slopes.gradients
    instance = Instance(f, gradient, rho, part, chosen.step, search.tolerance, lipschitz)
    alike = [part.coordinates(visit.point) for visit in visits if part.holds(visit.point)]
    # difference quotients can't disprove a gradient made of difference quotients
    check = None if search.gradient is None else 1e-5
    return certify(instance, part.coordinates(chosen.point), np.array(alike), difference=check)
