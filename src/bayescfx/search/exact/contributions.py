"""What each feature adds to the sum of a linear model, seen from one query.

Every number of a linear model is computed from one feature, so that the sum is one gain per
feature, added to the sum of the query. Gains are computed by the model's own transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers.forms import LinearModel
from bayescfx.search.exact.cells import NoProof, features_of_inputs
from bayescfx.search.exact.problem import ROUNDING
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region

#: Codes at which a gain is compared with a line. Set by judgement, 2026-11-18.
SAMPLED = 65
#: Share of its range by which a gain may differ from a line; single precision needs 1e-7.
STRAIGHT = 1e-6
#: Grids with more codes are not listed. Set by judgement, 2026-11-18.
MOST_LISTED = 1000
#: Share of a step by which grid points may be off a regular grid.
REGULAR = 1e-7


@dataclass(frozen=True)
class Side:
    """The codes of a feature on one side of the query.

    Parameters
    ----------
    sign : {-1, 1}
        Below or above the query.
    first, last : float
        How far the nearest and the farthest code are from the query; `first` is 0 if codes of an
        interval begin at the query.
    step : float
        The step between codes; 0 for an interval.
    """

    sign: int
    first: float
    last: float
    step: float


@dataclass(frozen=True, eq=False)
class StraightGain:
    """A feature on a line whose gain is proportional to the change of its code.

    Parameters
    ----------
    feature : int
        Position of the feature.
    slope : float
        The gain per code.
    sides : tuple of Side
        The codes above and below the query, where there are any.
    error : float
        The largest difference seen between the gain and the line.
    """

    feature: int
    slope: float
    sides: tuple[Side, ...]
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class ListedGain:
    """A feature whose allowed codes are listed, each with its gain.

    Parameters
    ----------
    feature : int
        Position of the feature.
    query : float
        The query's code.
    codes : array of shape (c,)
        The allowed codes but the query's.
    gain : array of shape (c,)
        What each code adds to the sum of the query.
    error : float
        Nothing: gains are those of the model.
    """

    feature: int
    query: float
    codes: Array
    gain: Array
    error: float = 0.0


Gain: TypeAlias = StraightGain | ListedGain


@dataclass(frozen=True, eq=False)
class Contributions:
    """The sum of a linear model, taken apart.

    Parameters
    ----------
    start : float
        The sum of the query.
    gains : tuple of StraightGain or ListedGain
        One per feature that may matter.
    rounding : float
        By how much the sum may differ from its parts.
    """

    start: float
    gains: tuple[Gain, ...]
    rounding: float


def ruled_rows(region: Region) -> Mask:
    """Return which linear rules ``(r,)`` can be written with the codes of free features."""
    is_unknown = region.recomputed | np.isnan(region.query)
    return np.asarray(~(region.A[:, is_unknown] != 0.0).any(axis=1))


def breaks_other_rules_only(region: Region, row: Array) -> bool:
    """Return whether a row ``(d,)`` that is not allowed breaks only rules that are not linear."""
    if not region.within(row[None])[0]:
        return False
    rows = ruled_rows(region)
    A = region.A[rows]
    is_known = ~np.isnan(row)
    keeps = bool((A[:, is_known] @ row[is_known] <= region.b[rows]).all())
    return keeps and (region.curved or not rows.all())


def take_apart(form: LinearModel, region: Region) -> Contributions:
    """Return what each feature adds to the sum of a linear model.

    Raises
    ------
    NoProof
        If the model reads a derived column, can't be computed, or transforms a feature with too
        many codes in a way that is not linear.
    """
    source = features_of_inputs(form, region)
    is_used = form.weights != 0.0
    if region.recomputed[source[is_used]].any():
        raise NoProof("the model reads a derived column, which depends on several features")
    query_numbers = form.inputs.compute(region.rows(region.query[None]))[0]
    terms = query_numbers[is_used] * form.weights[is_used]
    start = float(terms.sum() + form.base)
    if not np.isfinite(start):
        raise NoProof("the model has no finite output for this query")
    is_read = np.zeros(len(region.query), dtype=np.bool_)
    is_read[source[is_used]] = True
    is_ruled = (region.A[ruled_rows(region)] != 0.0).any(axis=0)
    is_ruled[[j for block in region.blocks for j in block]] = True
    kept = [j for j in region.free.tolist() if is_read[j] or is_ruled[j]]
    measure = _Measure(form, region, source, query_numbers)
    gains = _find_gains(measure, region, kept)
    size = float(np.abs(terms).sum()) + abs(form.base) + sum(_largest(each) for each in gains)
    rounding = ROUNDING * size + 2.0 * sum(each.error for each in gains)
    wanted = [each for each in gains if is_ruled[each.feature] or _largest(each) > 0.0]
    return Contributions(start, tuple(wanted), rounding)


def _find_gains(measure: _Measure, region: Region, kept: list[int]) -> list[Gain]:
    """Return the gains of some features; those that are not straight are listed."""
    is_line = region.sliding
    sampled = {j: sample_codes(region.axes[j]) for j in kept if is_line[j]}
    measured = measure(sampled)
    gains: dict[int, Gain] = {}
    for j, codes in sampled.items():
        straight = _as_straight(region, j, codes, measured[j])
        if straight is not None:
            gains[j] = straight
    others = {j: list_codes(region, j) for j in kept if j not in gains}
    for j, gain in measure(others).items():
        gains[j] = ListedGain(j, float(region.query[j]), others[j], gain)
    return [gains[j] for j in kept]


@dataclass(frozen=True, eq=False)
class _Measure:
    """Computes the gains of single changes with the model's own transformers."""

    form: LinearModel
    region: Region
    source: Indices
    query_numbers: Array

    def __call__(self, codes: dict[int, Array]) -> dict[int, Array]:
        """Return the gain of each code, by feature."""
        if not codes:
            return {}
        sizes = [len(part) for part in codes.values()]
        feature = np.repeat(list(codes), sizes)
        X = np.repeat(self.region.query[None], len(feature), axis=0)
        X[np.arange(len(feature)), feature] = np.concatenate(list(codes.values()))
        numbers = self.form.inputs.compute(self.region.rows(X))
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        gains = {}
        for j, part in zip(codes, parts, strict=True):
            own = (self.source == j) & (self.form.weights != 0.0)
            gains[j] = (part[:, own] - self.query_numbers[own]) @ self.form.weights[own]
            if not np.isfinite(gains[j]).all():
                name = self.region.names[j]
                raise NoProof(f"the model has no finite output for some values of {name!r}")
        return gains


def sample_codes(axis: Axis) -> Array:
    """Return allowed codes across the range of a feature on a line, the query's included."""
    if axis.choices is not None and len(axis.choices) <= SAMPLED:
        return axis.choices
    low, high, _ = axis.allowed
    return np.unique(axis.snap(np.append(np.linspace(low, high, SAMPLED), axis.query)))


def list_codes(region: Region, feature: int) -> Array:
    """Return all allowed codes but the query's."""
    choices = region.axes[feature].choices
    if choices is None or len(choices) > MOST_LISTED:
        name = region.names[feature]
        raise NoProof(f"the model transforms {name!r} in a way that is not linear")
    return np.asarray(choices[choices != region.query[feature]])


def _as_straight(region: Region, feature: int, codes: Array, gain: Array) -> StraightGain | None:
    """Return the gain as a line through sampled codes; None if it is none, or few codes are."""
    delta = codes - region.query[feature]
    slope = float((gain[-1] - gain[0]) / (codes[-1] - codes[0]))
    error = float(np.abs(gain - slope * delta).max())
    if error > STRAIGHT * float(np.ptp(gain)):
        return None
    sides = find_sides(region, feature)
    return None if sides is None else StraightGain(feature, slope, sides, error)


def find_sides(region: Region, feature: int) -> tuple[Side, ...] | None:
    """Return the codes above and below the query; None if they are few, and no regular grid."""
    axis = region.axes[feature]
    sides = []
    for sign in (-1, 1):
        side = _side_of(axis, sign)
        if side is None:
            continue
        if side.step and axis.choices is not None and not _is_regular(axis, side):
            if len(axis.choices) <= MOST_LISTED:
                return None
            # An interval holds all codes of the grid, so that bounds stay valid.
            side = Side(sign, side.first, side.last, 0.0)
        sides.append(side)
    return tuple(sides)


def _side_of(axis: Axis, sign: int) -> Side | None:
    """Return the codes on one side of the query, as if grids had no gaps; None without any."""
    step = axis.feature.code_step
    if axis.choices is not None:
        distances = (axis.choices - axis.query) * sign
        distances = distances[distances > 0.0]
        if not len(distances):
            return None
        return Side(sign, float(distances.min()), float(distances.max()), step)
    near = (axis.low if sign > 0 else axis.high) - axis.query
    far = (axis.high if sign > 0 else axis.low) - axis.query
    first = max(sign * near, 0.0)
    last = sign * far
    if last <= 0.0:
        return None
    if step:  # count steps from the anchor to the first grid point beyond the query
        start = sign * (axis.query - axis.anchor)
        n_steps = np.ceil((start + first) / step - REGULAR)
        first = float(n_steps * step - start)
        first = first if first > REGULAR * step else first + step
    return Side(sign, first, last, step)


def _is_regular(axis: Axis, side: Side) -> bool:
    """Return whether the codes of a side are all points of a grid without gaps."""
    assert axis.choices is not None
    distances = np.sort((axis.choices - axis.query) * side.sign)
    distances = distances[distances > 0.0]
    regular = side.first + side.step * np.arange(len(distances))
    return bool(np.abs(distances - regular).max() <= REGULAR * side.step)


def _largest(gain: Gain) -> float:
    """Return the largest gain or loss that a feature allows."""
    if isinstance(gain, ListedGain):
        return float(np.abs(gain.gain).max(initial=0.0))
    return abs(gain.slope) * max((side.last for side in gain.sides), default=0.0)


def best_changes(gains: Sequence[Gain], sign: int) -> tuple[Indices, Array, Array]:
    """Return features ``(k,)`` that can raise (1) or lower (-1) the sum.

    Also how far their codes must move, and the gains in that direction.
    """
    features = []
    deltas = []
    best = []
    for each in gains:
        if isinstance(each, ListedGain):
            options = list(zip(sign * each.gain, each.codes - each.query, strict=True))
        else:
            moves = [side.sign * side.last for side in each.sides]
            options = [(sign * each.slope * move, move) for move in moves]
        gain, delta = max(options, default=(0.0, 0.0))
        if gain > 0.0:
            features.append(each.feature)
            deltas.append(float(delta))
            best.append(float(gain))
    return np.array(features, dtype=np.intp), np.array(deltas), np.array(best)
