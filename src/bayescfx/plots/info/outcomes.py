"""What outputs are worth, as the search went, and as the surrogate sees them around the answer."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import BayesCFXError
from bayescfx.plots.info.view import Scale, View, along
from bayescfx.potentials import Intervals, LevelPotential, Linked, contains
from bayescfx.potentials.targets import tolerance_epsilon
from bayescfx.result.archive import Told
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import Output
from bayescfx.search.objectives import CostImprovement, PotentialImprovement, Record


class TooLittleError(BayesCFXError, ValueError):
    """There is nothing a surrogate could say."""


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
    reachable: tuple[float, float]  # nan if no allowed row was scored


class Curve(NamedTuple):
    """The surrogate along one feature, the others as in one row."""

    code: float
    output: float
    mean: Array
    low: Array  # two deviations below
    high: Array
    seen: tuple[Array, Array]  # codes and outputs of evaluated rows that lie on the line


class ResponseInfo(NamedTuple):
    """Response curves of one feature around query and answer, over the same codes."""

    name: str
    output: str  # its name
    scale: Scale
    codes: Array
    query: Curve
    answer: Curve | None  # None if nothing else changed
    place: tuple[float, float]  # the answer's code and output
    accepted: Intervals


class SurfaceInfo(NamedTuple):
    """The surrogate over two features, the others as in the answer."""

    names: tuple[str, str]
    output: str  # its name
    scales: tuple[Scale, Scale]
    x_codes: Array
    y_codes: Array
    mean: Array  # (len(y_codes), len(x_codes)), as are the next three
    allowed: Mask
    target: Mask
    acquisition: Array | None  # relative to its maximum; None if nothing is left to look for
    seen: Array
    query: tuple[float, float]
    answer: tuple[float, float]
    accepted: Intervals


def convergence_info(answer: Explanation) -> ConvergenceInfo:
    """Return the best potential after each row that the model scored, relative to its peak."""
    best = np.asarray(answer.trace, dtype=np.float64)
    outputs, potential = answer.evaluations.outputs, _potential(answer)
    # Among rows of other questions: within this share of the peak one is accepted for certain.
    scores, hits = None, best >= 1.0 - tolerance_epsilon(answer.tolerance)
    if len(outputs) == len(best):
        hits, missing = contains(answer.accepted, outputs), np.isnan(outputs)
        if potential is not None:
            shares = _share(potential, np.where(missing, answer.output, outputs))
            scores = np.where(missing, np.nan, shares)
    reached_at = int(hits.argmax()) + 1 if answer.reached and hits.any() else None
    return ConvergenceInfo(np.arange(1.0, len(best) + 1), best, scores, reached_at)


def potential_info(answer: Explanation) -> PotentialInfo:
    """Return the potential between the outputs that matter, relative to its peak."""
    answers = tuple(c.output for c in answer.counterfactuals)
    outputs = np.linspace(*output_range(answer, 0.12, *answers), 401)
    # a thin target set must not fall between two points
    outputs = np.union1d(outputs, _shown(answer, *answers))
    potential = _potential(answer)
    share = None if potential is None else _share(potential, outputs)
    name, ends = Output.of(answer.about).label, answer.reachable
    return PotentialInfo(name, outputs, share, answer.accepted, answer.output, answers, ends)


def output_range(answer: Explanation, margin: float, *outputs: float) -> tuple[float, float]:
    """Return the ends of a scale with room for all outputs that matter and some more."""
    shown = _shown(answer, *outputs)
    pad = margin * ((max(shown) - min(shown)) or 1.0)
    return min(shown) - pad, max(shown) + pad


def _shown(answer: Explanation, *outputs: float) -> list[float]:
    return [answer.output, *outputs, *finite_ends([answer.reachable, *answer.accepted])]


def finite_ends(intervals: Iterable[tuple[float, float]]) -> list[float]:
    """Return the ends of intervals that are numbers."""
    return [end for interval in intervals for end in interval if math.isfinite(end)]


def _potential(answer: Explanation) -> LevelPotential | None:
    """Return the potential, unless only its text is left or the query has what was wanted."""
    if isinstance(answer.target, Told) or contains(answer.accepted, [answer.output])[0]:
        return None
    return answer.target.potential(answer.output)


def _share(potential: LevelPotential, outputs: Array) -> Array:
    return np.asarray(np.clip(potential.value(outputs) / potential.peak, 0.0, 1.0))


def response_info(view: View, feature: Hashable | None = None, which: int = 0) -> ResponseInfo:
    """Return the surrogate's response to one feature, by default the most effective change."""
    j = _chosen(view, None if feature is None else [feature], which, 1)[0]
    after, region, answer = view.answers[which], view.region, view.answer.counterfactuals[which]
    scale, codes = _axis(view, j, which, 161)
    others = np.setdiff1d(view.moved(which), [j])  # without them both curves are one
    return ResponseInfo(
        name=str(region.names[j]),
        output=Output.of(view.answer.about).label,
        scale=scale,
        codes=codes,
        query=_curve(view, j, codes, region.query, view.answer.output),
        answer=_curve(view, j, codes, after, answer.output) if len(others) else None,
        place=(float(after[j]), answer.output),
        accepted=view.answer.accepted,
    )


def surface_info(
    view: View, features: Sequence[Hashable] | None = None, which: int = 0
) -> SurfaceInfo:
    """Return the surrogate over two features, and where a search would look next."""
    chosen = _chosen(view, features, which, 2)
    if len(set(chosen)) != 2:
        raise TooLittleError("`features` must be two different ones. Name two that may change.")
    i, j = chosen
    centre, region = view.answers[which], view.region
    (x_scale, x_codes), (y_scale, y_codes) = (_axis(view, k, which, 101) for k in chosen)
    x, y = np.meshgrid(x_codes, y_codes)
    X = np.tile(centre, (x.size, 1))
    X[:, i], X[:, j] = x.ravel(), y.ravel()
    X = region.complete(X)
    mean = view.predict(X).reshape(x.shape)
    allowed = region.contains(region.snap(X)).reshape(x.shape)
    return SurfaceInfo(
        names=(str(region.names[i]), str(region.names[j])),
        output=Output.of(view.answer.about).label,
        scales=(x_scale, y_scale),
        x_codes=x_codes,
        y_codes=y_codes,
        mean=mean,
        allowed=allowed,
        target=contains(view.answer.accepted, mean),
        acquisition=_acquisition(view, X, allowed),
        seen=view.X[:, [i, j]],
        query=(float(region.query[i]), float(region.query[j])),
        answer=(float(centre[i]), float(centre[j])),
        accepted=view.answer.accepted,
    )


def can_respond(view: View) -> bool:
    """Return whether enough is known for response curves."""
    return view.surrogate is not None and bool(len(view.region.free))


def _chosen(view: View, features: Sequence[Hashable] | None, which: int, n: int) -> list[int]:
    """Return the positions of features, by default of the `n` most effective, or explain."""
    if not can_respond(view):
        raise TooLittleError(
            f"a surrogate needs at least 3 rows with different outputs; got {len(view.y)} rows. "
            "Give the search a larger budget."
        )
    if features is not None:
        return [view.region.schema.position(name) for name in features]
    changed = [j for j, _ in view.by_effect(which)]
    others = [int(j) for j in view.region.free if j not in changed]

    def swing(j: int) -> float:
        codes = _axis(view, j, which, 17)[1]
        return float(np.ptp(view.predict(along(view.region, j, codes, view.answers[which]))))

    if len(changed) < n:  # then those along which the output moves farthest
        others.sort(key=swing, reverse=True)
    return (changed + others)[:n]


def _axis(view: View, j: int, which: int, n: int) -> tuple[Scale, Array]:
    """Return the scale of what is allowed of a feature, and codes along it: all if few, or `n`."""
    code, low, high = view.answers[which, j], view.region.low[j], view.region.high[j]
    scale = Scale.of(view.region, j, float(code))
    if low < high:
        scale = replace(scale, low=float(min(low, code)), high=float(max(high, code)))
    choices = view.region.choices[j]
    if choices is not None and 1 < len(choices) <= 40:
        return scale, np.asarray(choices, dtype=np.float64)
    if len(scale.levels):
        return scale, scale.levels
    codes = np.linspace(scale.low, scale.high, n)
    return scale, codes if scale.ordered else np.unique(np.rint(codes))


def _curve(view: View, j: int, codes: Array, base: Array, output: float) -> Curve:
    X = along(view.region, j, codes, base)
    return Curve(float(base[j]), output, *view.line(X, j))


def _acquisition(view: View, X: Array, allowed: Mask) -> Array | None:
    """Return what the search would maximise next, relative to its maximum over the map."""
    surrogate, region, answer, link = view.surrogate, view.region, view.answer, view.link
    assert surrogate is not None
    accepted = answer.accepted
    hits = view.X[region.contains(view.X) & contains(accepted, view.y)]
    objective: CostImprovement | PotentialImprovement
    if len(hits) and region.cost.weight > 0.0:
        accepted = accepted if link is None else link.intervals(accepted)
        objective = CostImprovement(surrogate, region, accepted, Record(region, hits))
    else:  # log EI-CFX over the best potential so far, as in the paper: without a cost
        potential, best = _potential(answer), float(max(answer.trace[-1:], default=0.0))
        if potential is None or best >= 1.0:
            return None
        carried = potential if link is None else Linked(potential, link)
        objective = PotentialImprovement(surrogate, region, carried, best, 0.0)
    value = np.where(allowed, objective.value(X).reshape(allowed.shape), -np.inf)
    top = float(value.max())
    return np.exp(value - top) if math.isfinite(top) else None
