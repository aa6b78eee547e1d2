"""How the search went, and what outputs were worth."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.potentials import Intervals, LevelPotential, contains
from bayescfx.potentials.targets import tolerance_epsilon
from bayescfx.result.archive import Told
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import Output


class ConvergenceInfo(NamedTuple):
    """A convergence plot in numbers."""

    rows: Array  # counted from 1
    best: Array
    scores: Array | None  # of the single rows, where they are known to be this question's
    reached_at: int | None


class PotentialInfo(NamedTuple):
    """The potential over the output."""

    name: str  # of the output
    outputs: Array
    share: Array | None  # of the peak; None where only its text is known
    accepted: Intervals
    query: float
    answers: tuple[float, ...]
    reachable: tuple[float, float]


def convergence_info(answer: Explanation) -> ConvergenceInfo:
    """Return the best potential after each row that the model scored, relative to its peak."""
    best = np.asarray(answer.trace, dtype=np.float64)
    outputs = np.asarray(answer.evaluations.outputs, dtype=np.float64)
    own = len(outputs) == len(best)
    potential = potential_of(answer)
    scores = None
    if own and potential is not None:
        known = np.where(np.isnan(outputs), answer.output, outputs)
        scores = np.where(np.isnan(outputs), np.nan, _share(potential, known))
    if own:
        hits = contains(answer.accepted, outputs)
    else:  # within this share of the peak an output is accepted for certain
        hits = best >= 1.0 - tolerance_epsilon(answer.tolerance)
    reached_at = int(hits.argmax()) + 1 if answer.reached and hits.any() else None
    return ConvergenceInfo(np.arange(1.0, len(best) + 1), best, scores, reached_at)


def potential_info(answer: Explanation) -> PotentialInfo:
    """Return the potential between the outputs that matter, relative to its peak."""
    answers = tuple(c.output for c in answer.counterfactuals)
    outputs = np.linspace(*output_range(answer, 0.12, *answers), 401)
    # a thin target set must not fall between two points
    outputs = np.union1d(outputs, _shown(answer, *answers))
    potential = potential_of(answer)
    share = None if potential is None else _share(potential, outputs)
    name, ends = Output.of(answer.about).label, answer.reachable
    return PotentialInfo(name, outputs, share, answer.accepted, answer.output, answers, ends)


def output_range(answer: Explanation, margin: float, *outputs: float) -> tuple[float, float]:
    """Return the ends of a scale with room for all outputs that matter and some more."""
    shown = _shown(answer, *outputs)
    pad = margin * ((max(shown) - min(shown)) or 1.0)
    return min(shown) - pad, max(shown) + pad


def _shown(answer: Explanation, *outputs: float) -> list[float]:
    return [answer.output, *outputs, *answer.reachable, *finite_ends(answer.accepted)]


def finite_ends(intervals: Intervals) -> list[float]:
    """Return the ends of intervals that are numbers."""
    return [end for interval in intervals for end in interval if math.isfinite(end)]


def potential_of(answer: Explanation) -> LevelPotential | None:
    """Return the potential, unless only its text is left or the query has what was wanted."""
    met = bool(contains(answer.accepted, np.array([answer.output]))[0])
    if isinstance(answer.target, Told) or met:
        return None
    return answer.target.potential(answer.output)


def _share(potential: LevelPotential, outputs: Array) -> Array:
    return np.asarray(np.clip(potential.value(outputs) / potential.peak, 0.0, 1.0))
