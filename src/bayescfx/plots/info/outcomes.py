"""Numbers of the pictures of outputs: the search, the potential, the surrogate."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import BayesCFXError
from bayescfx.plots.info.view import LEAST_ROWS, Scale, View, along
from bayescfx.potentials import Intervals, LevelPotential, Linked, contains
from bayescfx.potentials.targets import tolerance_epsilon
from bayescfx.result.archive import TextTarget
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import Output
from bayescfx.search.objectives import CostImprovement, PotentialImprovement, Record
from bayescfx.surrogate.fit import Surrogate

_MOST_CHOICES = 40  # allowed values of a feature that a curve shows one by one


class TooLittleError(BayesCFXError, ValueError):
    """There are too few rows to fit a surrogate."""


class ConvergenceInfo(NamedTuple):
    """The numbers of a convergence plot.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Numbers of the rows, from 1.
    best : ndarray of shape (n,)
        Best potential so far, relative to its peak.
    scores : ndarray of shape (n,), optional
        Potential of each row, if all evaluations belong to this query.
    reached_at : int, optional
        Number of the first row that reached the target.
    """

    rows: Array
    best: Array
    scores: Array | None
    reached_at: int | None


class PotentialInfo(NamedTuple):
    """The potential over the output.

    Parameters
    ----------
    name : str
        Name of the output, with its unit.
    outputs : ndarray of shape (n,)
        Outputs from the lowest to the highest.
    share : ndarray of shape (n,), optional
        Potential relative to its peak; None if only the text of the target is left.
    accepted : tuple of (float, float)
        Accepted outputs.
    query : float
        Output of the query.
    answers : tuple of float
        Outputs of the counterfactuals.
    reachable : (float, float)
        Lowest and highest output seen; nan if no allowed row was scored.
    """

    name: str
    outputs: Array
    share: Array | None
    accepted: Intervals
    query: float
    answers: tuple[float, ...]
    reachable: tuple[float, float]


class Curve(NamedTuple):
    """The surrogate along one feature, with the other features as in one row.

    Parameters
    ----------
    code : float
        Code of the feature in that row.
    output : float
        Output of that row.
    mean : ndarray of shape (n,)
        Mean of the surrogate.
    low : ndarray of shape (n,)
        Two deviations below.
    high : ndarray of shape (n,)
        Two deviations above.
    seen : (ndarray, ndarray)
        Codes and outputs of scored rows on the line.
    """

    code: float
    output: float
    mean: Array
    low: Array
    high: Array
    seen: tuple[Array, Array]


class ResponseInfo(NamedTuple):
    """Response curves of one feature around query and counterfactual, over the same codes.

    Parameters
    ----------
    name : str
        The feature.
    output : str
        Name of the output, with its unit.
    scale : Scale
        Scale of the allowed values.
    codes : ndarray of shape (n,)
        Codes of the feature.
    query : Curve
        The curve around the query.
    answer : Curve, optional
        The curve around the counterfactual; None if no other feature changes.
    place : (float, float)
        Code and output of the counterfactual.
    accepted : tuple of (float, float)
        Accepted outputs.
    """

    name: str
    output: str
    scale: Scale
    codes: Array
    query: Curve
    answer: Curve | None
    place: tuple[float, float]
    accepted: Intervals


class SurfaceInfo(NamedTuple):
    """The surrogate over two features, with the other features as in the counterfactual.

    Parameters
    ----------
    names : (str, str)
        The features.
    output : str
        Name of the output, with its unit.
    scales : (Scale, Scale)
        Scales of the allowed values.
    x_codes : ndarray of shape (n,)
        Codes of the first feature.
    y_codes : ndarray of shape (m,)
        Codes of the second feature.
    mean : ndarray of shape (m, n)
        Mean of the surrogate.
    allowed : ndarray of shape (m, n)
        Whether the point is allowed.
    target : ndarray of shape (m, n)
        Whether the mean is accepted.
    acquisition : ndarray of shape (m, n), optional
        Relative to its maximum; None if the search is complete.
    seen : ndarray of shape (k, 2)
        Codes of scored rows.
    query : (float, float)
        Codes of the query.
    answer : (float, float)
        Codes of the counterfactual.
    accepted : tuple of (float, float)
        Accepted outputs.
    """

    names: tuple[str, str]
    output: str
    scales: tuple[Scale, Scale]
    x_codes: Array
    y_codes: Array
    mean: Array
    allowed: Mask
    target: Mask
    acquisition: Array | None
    seen: Array
    query: tuple[float, float]
    answer: tuple[float, float]
    accepted: Intervals


def convergence_info(answer: Explanation) -> ConvergenceInfo:
    """Return the best potential after each row that the model scored, relative to its peak."""
    best = np.asarray(answer.trace, dtype=np.float64)
    outputs = answer.evaluations.outputs
    scores = None
    # If other queries have rows, too: an output this near the peak is certainly accepted.
    has_tolerance = answer.accepted != answer.wanted and bool(np.isfinite(answer.wanted).all())
    is_hit = best >= 1.0 - (tolerance_epsilon(answer.tolerance) if has_tolerance else 0.0)
    if len(outputs) == len(best):
        is_hit = contains(answer.accepted, outputs)
        scores = _scores(answer, outputs)
    reached_at = int(is_hit.argmax()) + 1 if answer.reached and is_hit.any() else None
    return ConvergenceInfo(np.arange(1.0, len(best) + 1), best, scores, reached_at)


def _scores(answer: Explanation, outputs: Array) -> Array | None:
    """Return the potential of outputs relative to its peak, nan for missing outputs."""
    potential = _potential(answer)
    if potential is None:
        return None
    is_missing = np.isnan(outputs)
    shares = _share(potential, np.where(is_missing, answer.output, outputs))
    return np.where(is_missing, np.nan, shares)


def potential_info(answer: Explanation) -> PotentialInfo:
    """Return the potential over the outputs of the answer, relative to its peak."""
    answers = tuple(c.output for c in answer.counterfactuals)
    outputs = np.linspace(*output_range(answer, 0.12, *answers), 401)
    # A narrow target set must not fall between two points.
    outputs = np.union1d(outputs, _shown(answer, *answers))
    potential = _potential(answer)
    share = None if potential is None else _share(potential, outputs)
    return PotentialInfo(
        name=Output.of(answer.about).label,
        outputs=outputs,
        share=share,
        accepted=answer.accepted,
        query=answer.output,
        answers=answers,
        reachable=answer.reachable,
    )


def output_range(answer: Explanation, margin: float, *outputs: float) -> tuple[float, float]:
    """Return the ends of a scale with room for all outputs of an answer, and a margin."""
    shown = _shown(answer, *outputs)
    pad = margin * ((max(shown) - min(shown)) or 1.0)
    return min(shown) - pad, max(shown) + pad


def _shown(answer: Explanation, *outputs: float) -> list[float]:
    """Return the outputs that a scale must show: of the query, seen, accepted and given."""
    return [answer.output, *outputs, *finite_ends([answer.reachable, *answer.accepted])]


def finite_ends(intervals: Iterable[tuple[float, float]]) -> list[float]:
    """Return the finite ends of intervals."""
    return [end for interval in intervals for end in interval if math.isfinite(end)]


def _potential(answer: Explanation) -> LevelPotential | None:
    """Return the potential; None if only its text is left or the query meets the target."""
    if isinstance(answer.target, TextTarget) or contains(answer.accepted, [answer.output])[0]:
        return None
    return answer.target.potential(answer.output)


def _share(potential: LevelPotential, outputs: Array) -> Array:
    """Return the potential of outputs relative to its peak, from 0 to 1."""
    return np.asarray(np.clip(potential.value(outputs) / potential.peak, 0.0, 1.0))


def response_info(view: View, feature: Hashable | None = None, which: int = 0) -> ResponseInfo:
    """Return the surrogate's response to one feature, by default the most effective change."""
    j = _chosen(view, None if feature is None else [feature], which, 1)[0]
    region = view.region
    after = view.answers[which]
    answer = view.answer.counterfactuals[which]
    scale, codes = _axis(view, j, which, 161)
    others = np.setdiff1d(view.moved(which), [j])  # without other changes, both curves are equal
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
    region = view.region
    centre = view.answers[which]
    x_scale, x_codes = _axis(view, i, which, 101)
    y_scale, y_codes = _axis(view, j, which, 101)
    x, y = np.meshgrid(x_codes, y_codes)
    X = np.tile(centre, (x.size, 1))
    X[:, i] = x.ravel()
    X[:, j] = y.ravel()
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
    """Return whether there are enough rows for response curves."""
    return view.surrogate is not None and bool(len(view.region.free))


def _chosen(view: View, features: Sequence[Hashable] | None, which: int, n: int) -> list[int]:
    """Return the positions of features, by default of the `n` most effective; or raise."""
    if not can_respond(view):
        raise TooLittleError(
            f"a surrogate needs at least {LEAST_ROWS} rows with different outputs; "
            f"got {len(view.y)} rows. Give the search a larger budget."
        )
    if features is not None:
        return [view.region.schema.position(name) for name in features]
    changed = [j for j, _ in view.by_effect(which)]
    others = [int(j) for j in view.region.free if j not in changed]
    if len(changed) < n:  # then the features along which the output varies most
        others.sort(key=lambda j: _variation(view, j, which), reverse=True)
    return (changed + others)[:n]


def _variation(view: View, j: int, which: int) -> float:
    """Return the range of the surrogate's output along a feature, around a counterfactual."""
    _, codes = _axis(view, j, which, 17)
    outputs = view.predict(along(view.region, j, codes, view.answers[which]))
    return float(np.ptp(outputs))


def _axis(view: View, j: int, which: int, n: int) -> tuple[Scale, Array]:
    """Return the scale of a feature's allowed values, and codes along it: all if few, or `n`."""
    code = view.answers[which, j]
    low = view.region.low[j]
    high = view.region.high[j]
    scale = Scale.of(view.region, j, float(code))
    if low < high:
        scale = replace(scale, low=float(min(low, code)), high=float(max(high, code)))
    choices = view.region.choices[j]
    if choices is not None and 1 < len(choices) <= _MOST_CHOICES:
        return scale, np.asarray(choices, dtype=np.float64)
    if len(scale.levels):
        return scale, scale.levels
    codes = np.linspace(scale.low, scale.high, n)
    return scale, codes if scale.ordered else np.unique(np.rint(codes))


def _curve(view: View, j: int, codes: Array, base: Array, output: float) -> Curve:
    """Return the surrogate along feature `j` around a row ``(d,)`` with this output."""
    X = along(view.region, j, codes, base)
    return Curve(float(base[j]), output, *view.line(X, j))


def _acquisition(view: View, X: Array, allowed: Mask) -> Array | None:
    """Return the acquisition of a longer search, relative to its maximum over the map."""
    objective = _objective(view)
    if objective is None:
        return None
    value = np.where(allowed, objective.value(X).reshape(allowed.shape), -np.inf)
    top = float(value.max())
    return np.exp(value - top) if math.isfinite(top) else None


def _objective(view: View) -> CostImprovement | PotentialImprovement | None:
    """Return what the search would maximise next; None if the target is met at its peak."""
    region = view.region
    accepted = view.answer.accepted
    assert view.surrogate is not None
    hits = view.X[region.contains(view.X) & contains(accepted, view.y)]
    if len(hits) and region.price.weight > 0.0:
        intervals = accepted if view.link is None else view.link.intervals(accepted)
        return CostImprovement(view.surrogate, region, intervals, Record(region, hits))
    return _potential_improvement(view, view.surrogate)


def _potential_improvement(view: View, surrogate: Surrogate) -> PotentialImprovement | None:
    """Return log EI-CFX over the best potential so far, as in the paper: without a cost."""
    potential = _potential(view.answer)
    best = float(max(view.answer.trace[-1:], default=0.0))
    if potential is None or best >= 1.0:
        return None
    linked = potential if view.link is None else Linked(potential, view.link)
    return PotentialImprovement(surrogate, view.region, linked, best, 0.0)
