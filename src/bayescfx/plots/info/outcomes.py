"""How the search went, and what outputs were worth."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.potentials.family import LevelPotential, contains
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.wishes import tolerance_epsilon
from bayescfx.result.archive import Told
from bayescfx.result.explanation import Explanation

_POINTS = 401
_MARGIN = 0.12  # room beside the outermost outputs


class ConvergenceInfo(NamedTuple):
    """A convergence plot in numbers; `rows` counts from 1.

    `scores` are the potentials of the single rows, where they are known to be this question's.
    """

    rows: Array
    best: Array
    scores: Array | None
    reached_at: int | None


class PotentialInfo(NamedTuple):
    """The potential over the output; no `share` where only its text is known."""

    outputs: Array
    share: Array | None
    accepted: Intervals
    query: float
    answers: tuple[float, ...]
    reachable: tuple[float, float]


def convergence_info(answer: Explanation) -> ConvergenceInfo:
    """Return the best potential after each row that the model scored, relative to its peak.

    Parameters
    ----------
    answer : Explanation
        The answer.
    """
    best = np.asarray(answer.trace, dtype=np.float64)
    outputs = np.asarray(answer.evaluations.outputs, dtype=np.float64)
    own = len(outputs) == len(best)
    potential = potential_of(answer)
    scores = None
    if own and potential is not None:
        known = np.where(np.isnan(outputs), answer.output, outputs)
        scores = np.where(np.isnan(outputs), np.nan, _share(potential, known))
    if own:
        hits = np.flatnonzero(contains(answer.accepted, outputs))
    else:  # within this share of the peak an output is accepted for certain
        hits = np.flatnonzero(best >= 1.0 - tolerance_epsilon(answer.tolerance))
    reached_at = int(hits[0]) + 1 if answer.reached and len(hits) else None
    return ConvergenceInfo(np.arange(1.0, len(best) + 1), best, scores, reached_at)


def potential_info(answer: Explanation) -> PotentialInfo:
    """Return the potential between the outputs that matter, relative to its peak.

    Parameters
    ----------
    answer : Explanation
        The answer.
    """
    answers = tuple(c.output for c in answer.counterfactuals)
    ends = [end for pair in answer.accepted for end in pair if math.isfinite(end)]
    shown = [answer.output, *answers, *answer.reachable, *ends]
    pad = _MARGIN * ((max(shown) - min(shown)) or 1.0)
    outputs = np.linspace(min(shown) - pad, max(shown) + pad, _POINTS)
    # a thin target set must not fall between two points
    outputs = np.union1d(outputs, [y for y in shown if math.isfinite(y)])
    potential = potential_of(answer)
    return PotentialInfo(
        outputs=outputs,
        share=None if potential is None else _share(potential, outputs),
        accepted=answer.accepted,
        query=answer.output,
        answers=answers,
        reachable=answer.reachable,
    )


def potential_of(answer: Explanation) -> LevelPotential | None:
    """Return the potential, unless only its text is left or the query has what was wanted."""
    met = bool(contains(answer.accepted, np.array([answer.output]))[0])
    if isinstance(answer.target, Told) or met:
        return None
    return answer.target.potential(answer.output)


def _share(potential: LevelPotential, outputs: Array) -> Array:
    return np.asarray(np.clip(potential.value(outputs) / potential.peak, 0.0, 1.0))
