"""What the surrogate says of the model around query and answer: along one feature, over two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import BayesCFXError
from bayescfx.plots.info.outcomes import potential_of
from bayescfx.plots.info.view import Scale, View, along
from bayescfx.potentials import Intervals, Linked, contains
from bayescfx.result.wording import Output
from bayescfx.search.objectives import Gain, Nearer, Record


class TooLittleError(BayesCFXError, ValueError):
    """There is nothing a surrogate could say."""


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
    X = np.tile(centre, (len(x_codes) * len(y_codes), 1))
    X[:, i], X[:, j] = np.tile(x_codes, len(y_codes)), np.repeat(y_codes, len(x_codes))
    X = region.complete(X)
    shape = len(y_codes), len(x_codes)
    mean, allowed = view.predict(X), region.contains(region.snap(X))
    acquisition = _acquisition(view, X, allowed)
    return SurfaceInfo(
        names=(str(region.names[i]), str(region.names[j])),
        output=Output.of(view.answer.about).label,
        scales=(x_scale, y_scale),
        x_codes=x_codes,
        y_codes=y_codes,
        mean=mean.reshape(shape),
        allowed=allowed.reshape(shape),
        target=contains(view.answer.accepted, mean).reshape(shape),
        acquisition=None if acquisition is None else acquisition.reshape(shape),
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
    changed = [j for j, _ in view.by_effect(which)]  # then those that may change
    others = [int(j) for j in view.region.free if j not in changed]
    if len(changed) < n and others:
        others.sort(key=lambda j: -_swing(view, which, j))
    return (changed + others)[:n]


def _swing(view: View, which: int, j: int) -> float:
    """Return how far the surrogate's output moves along a feature."""
    _, codes = _axis(view, j, which, 17)
    return float(np.ptp(view.predict(along(view.region, j, codes, view.answers[which]))))


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
    objective: Nearer | Gain
    if len(hits) and region.cost.weight > 0.0:
        accepted = accepted if link is None else tuple(link.interval(*pair) for pair in accepted)
        objective = Nearer(surrogate, region, accepted, Record(region, hits))
    else:  # log EI-CFX over the best potential so far, as in the paper: without a cost
        potential, best = potential_of(answer), float(max(answer.trace[-1:], default=0.0))
        if potential is None or best >= 1.0:
            return None
        carried = potential if link is None else Linked(potential, link)
        objective = Gain(surrogate, region, carried, best, 0.0)
    value = np.where(allowed, objective.value(X), -np.inf)
    top = float(value.max())
    return np.exp(value - top) if math.isfinite(top) else None
