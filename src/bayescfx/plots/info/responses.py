"""What the surrogate says of the model around query and answer: along one feature, over two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import BayesCFXError
from bayescfx.plots.info.outcomes import potential_of
from bayescfx.plots.info.scales import Scale
from bayescfx.plots.info.view import View
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.links import Linked
from bayescfx.search.objectives import Gain, Nearer, Record

DEVIATIONS = 2.0
_LINE = 161  # points of a curve
_SIDE = 101  # cells of a map, per side
_FEW = 40  # values that are shown one by one


class TooLittleError(BayesCFXError, ValueError):
    """There is nothing a surrogate could say."""


class Curve(NamedTuple):
    """The surrogate along one feature, the others as in one row.

    `seen` are codes and outputs of evaluated rows that lie on the line.
    """

    code: float
    output: float
    mean: Array
    low: Array
    high: Array
    seen: tuple[Array, Array]


class ResponseInfo(NamedTuple):
    """Response curves of one feature around query and answer, over the same codes.

    There is one curve only if nothing else changed. `place` is the answer's code and output.
    """

    name: str
    scale: Scale
    codes: Array
    query: Curve
    answer: Curve | None
    place: tuple[float, float]
    accepted: Intervals


class SurfaceInfo(NamedTuple):
    """The surrogate over two features, the others as in the answer.

    `mean` and `acquisition` have shape (len(y_codes), len(x_codes)); `acquisition` is relative
    to its maximum, and None where there is nothing left to look for.
    """

    names: tuple[str, str]
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


def response_info(view: View, feature: Hashable | None = None, which: int = 0) -> ResponseInfo:
    """Return the surrogate's response to one feature.

    Parameters
    ----------
    view : View
        The answer.
    feature : name, optional
        By default the most effective of the changed features.
    which : int, default 0
        Around which of the counterfactuals.

    Raises
    ------
    TooLittleError
        If too few rows are known for a surrogate.
    """
    _check(view)
    j = _default(view, which, 1)[0] if feature is None else view.region.schema.position(feature)
    after = view.answers[which]
    scale = _shown(view, j, float(after[j]))
    codes = _line(view, j, scale, _LINE)
    others = np.setdiff1d(view.moved(which), [j])  # without them both curves are one
    answer = view.answer.counterfactuals[which]
    return ResponseInfo(
        name=str(view.region.names[j]),
        scale=scale,
        codes=codes,
        query=_curve(view, j, codes, view.region.query, view.answer.output),
        answer=_curve(view, j, codes, after, answer.output) if len(others) else None,
        place=(float(after[j]), answer.output),
        accepted=view.answer.accepted,
    )


def surface_info(
    view: View, features: Sequence[Hashable] | None = None, which: int = 0
) -> SurfaceInfo:
    """Return the surrogate over two features, and where a search would look next.

    Parameters
    ----------
    view : View
        The answer.
    features : two names, optional
        By default the most effective of the changed features, then of those that may change.
    which : int, default 0
        Through which of the counterfactuals.

    Raises
    ------
    TooLittleError
        If too few rows are known for a surrogate, or fewer than two features may change.
    """
    _check(view)
    if features is None:
        chosen = _default(view, which, 2)
    else:
        chosen = [view.region.schema.position(name) for name in features]
    if len(set(chosen)) != 2:
        raise TooLittleError("`features` must be two different ones. Name two that may change.")
    i, j = chosen
    centre = view.answers[which]
    scales = _shown(view, i, float(centre[i])), _shown(view, j, float(centre[j]))
    x_codes, y_codes = _line(view, i, scales[0], _SIDE), _line(view, j, scales[1], _SIDE)
    X = np.tile(centre, (len(x_codes) * len(y_codes), 1))
    X[:, i], X[:, j] = np.tile(x_codes, len(y_codes)), np.repeat(y_codes, len(x_codes))
    X = view.region.complete(X)
    shape = len(y_codes), len(x_codes)
    mean, allowed = view.predict(X), view.region.contains(view.region.snap(X))
    acquisition = _acquisition(view, X, allowed)
    region = view.region
    return SurfaceInfo(
        names=(str(region.names[i]), str(region.names[j])),
        scales=scales,
        x_codes=x_codes,
        y_codes=y_codes,
        mean=mean.reshape(shape),
        allowed=allowed.reshape(shape),
        target=view.accepted(mean).reshape(shape),
        acquisition=None if acquisition is None else acquisition.reshape(shape),
        seen=view.X[:, [i, j]],
        query=(float(region.query[i]), float(region.query[j])),
        answer=(float(centre[i]), float(centre[j])),
        accepted=view.answer.accepted,
    )


def can_respond(view: View) -> bool:
    """Return whether enough is known for response curves."""
    return view.surrogate is not None and bool(len(view.region.free))


def _check(view: View) -> None:
    if not can_respond(view):
        raise TooLittleError(
            f"a surrogate needs at least 3 rows with different outputs; got {len(view.y)} rows. "
            "Give the search a larger budget."
        )


def _default(view: View, which: int, n: int) -> list[int]:
    """Return the `n` most effective changed features, then others that may change."""
    changed = [int(j) for j in view.by_effect(which)]
    others = [int(j) for j in view.region.free if j not in changed]
    if len(changed) < n and others:
        others.sort(key=lambda j: -_swing(view, which, j))
    return (changed + others)[:n]


def _swing(view: View, which: int, j: int) -> float:
    """Return how far the surrogate's output moves along a feature."""
    codes = _line(view, j, _shown(view, j, float(view.answers[which, j])), 17)
    return float(np.ptp(view.predict(_along(view, j, codes, view.answers[which]))))


def _shown(view: View, j: int, code: float) -> Scale:
    """Return the scale of a feature: what is allowed, or all of a feature that is fixed."""
    region = view.region
    whole = Scale.of(region, j, code)
    if not region.low[j] < region.high[j]:
        return whole
    ends = float(region.low[j]), float(region.high[j])
    return Scale(whole.feature, min(*ends, code), max(*ends, code))


def _line(view: View, j: int, scale: Scale, n: int) -> Array:
    choices = view.region.choices[j]
    if choices is not None and 1 < len(choices) <= _FEW:
        return np.asarray(choices, dtype=np.float64)
    if len(scale.levels):
        return scale.levels
    codes = np.linspace(scale.low, scale.high, n)
    return np.unique(np.rint(codes)) if not scale.ordered else codes


def _along(view: View, j: int, codes: Array, base: Array) -> Array:
    X = np.tile(base, (len(codes), 1))
    X[:, j] = codes
    return view.region.complete(X)


def _curve(view: View, j: int, codes: Array, base: Array, output: float) -> Curve:
    X = _along(view, j, codes, base)
    others = np.arange(len(base)) != j
    free = others & ~view.region.recomputed
    same = (base == view.X) | (np.isnan(view.X) & np.isnan(base))
    on = same[:, free].all(axis=1)
    return Curve(
        code=float(base[j]),
        output=output,
        mean=view.predict(X),
        low=view.predict(X, -DEVIATIONS),
        high=view.predict(X, DEVIATIONS),
        seen=(view.X[on, j], view.y[on]),
    )


def _acquisition(view: View, X: Array, allowed: Mask) -> Array | None:
    """Return what the search would maximise next, relative to its maximum over the map."""
    belief, region, answer = view.surrogate, view.region, view.answer
    assert belief is not None
    inside = region.contains(view.X)
    known, y = view.X[inside], view.y[inside]
    forward = view.link.interval if view.link is not None else _same
    accepted = tuple(forward(low, high) for low, high in answer.accepted)
    hits = view.accepted(y)
    if hits.any() and region.cost.weight > 0.0:
        record = Record(region, known[hits])
        value = Nearer(belief, region, accepted, record).value(X)
    else:
        gain = _gain(view, float(answer.trace[-1]) if len(answer.trace) else 0.0)
        if gain is None:
            return None
        value = gain.value(X)
    value = np.where(allowed, value, -np.inf)
    top = float(value.max())
    return np.exp(value - top) if math.isfinite(top) else None


def _gain(view: View, best: float) -> Gain | None:
    """Return log EI-CFX over the best potential so far, as in the paper: without a cost."""
    potential = potential_of(view.answer)
    if potential is None or view.surrogate is None or best >= 1.0:
        return None
    carried = potential if view.link is None else Linked(potential, view.link)
    return Gain(view.surrogate, view.region, carried, best, 0.0)


def _same(low: float, high: float) -> tuple[float, float]:
    return low, high
