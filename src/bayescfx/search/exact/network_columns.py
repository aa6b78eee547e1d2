"""How the features of one query change the first layer of a network.

Every input of a network is computed from one feature. A feature on a line moves its inputs in
proportion to its code; the inputs of other features are listed, one vector per code. So the sums
of the first layer are linear in the columns of a mixed-integer program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import ReluNetwork
from bayescfx.search.exact.cells import NoProof, features_of_inputs
from bayescfx.search.exact.contributions import (
    STRAIGHT,
    Contributions,
    Gain,
    ListedGain,
    StraightGain,
    find_sides,
    list_codes,
    ruled_rows,
    sample_codes,
)
from bayescfx.search.exact.gain_columns import GainColumns
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class NetworkParts:
    """The inputs of a network around a query, taken apart by feature.

    Parameters
    ----------
    numbers : array of shape (m,)
        The inputs of the query.
    gains : Contributions
        The codes that features may take, without gains.
    slopes : dict of int to array of shape (m,)
        How the inputs change per code, for features on a line.
    shifts : dict of int to arrays of shape (c,) and (c, m)
        Changes of the code and of the inputs, for features with listed codes.
    error : array of shape (m,)
        By how much the inputs may differ from these lines.
    """

    numbers: Array
    gains: Contributions
    slopes: dict[int, Array]
    shifts: dict[int, tuple[Array, Array]]
    error: Array

    def effects(self, columns: GainColumns) -> Array:
        """Return how each column of a program changes the inputs, of shape (m, n)."""
        found = np.zeros((len(self.numbers), columns.delta.shape[1]))
        for feature, at in zip(*np.nonzero(columns.delta), strict=True):
            delta = columns.delta[feature, at]
            if feature in self.slopes:
                found[:, at] = self.slopes[feature] * delta
            else:
                deltas, shifts = self.shifts[feature]
                found[:, at] = shifts[int(np.flatnonzero(deltas == delta)[0])]
        return found


def take_network_apart(form: ReluNetwork, region: Region) -> NetworkParts:
    """Return how features change the inputs of a network.

    Raises
    ------
    NoProof
        If the model reads a derived column, can't be computed, or transforms a feature with too
        many codes in a way that is not linear.
    """
    source = features_of_inputs(form, region)
    is_used = np.asarray((form.weights[0] != 0.0).any(axis=0))
    if region.recomputed[source[is_used]].any():
        raise NoProof("the model reads a derived column, which depends on several features")
    numbers = form.inputs.compute(region.rows(region.query[None]))[0]
    numbers = np.where(is_used, numbers, 0.0)
    if not np.isfinite(numbers).all():
        raise NoProof("the model has no finite output for this query")
    measure = _Measure(form, region, np.where(is_used, source, -1), numbers)
    slopes: dict[int, Array] = {}
    shifts: dict[int, tuple[Array, Array]] = {}
    error = np.zeros(len(numbers))
    gains: list[Gain] = []
    for feature in _moving_features(region, source[is_used]):
        line = measure.straight(feature)
        if line is None:
            listed = measure.listed(feature)
            gains.append(listed)
            shifts[feature] = (listed.codes - listed.query, measure(feature, listed.codes))
        else:
            straight, slopes[feature], own = line
            gains.append(straight)
            error += own
    return NetworkParts(numbers, Contributions(0.0, tuple(gains), 0.0), slopes, shifts, error)


def _moving_features(region: Region, read: Indices) -> list[int]:
    """Return the free features that the model reads, or that rules tie to others."""
    is_kept = np.zeros(len(region.query), dtype=np.bool_)
    is_kept[read] = True
    is_kept |= (region.A[ruled_rows(region)] != 0.0).any(axis=0)
    is_kept[[j for block in region.blocks for j in block]] = True
    return [j for j in region.free.tolist() if is_kept[j]]


@dataclass(frozen=True, eq=False)
class _Measure:
    """Computes the inputs of changed codes with the model's own transformers.

    `source` is the feature of each input, -1 where an input has no weight.
    """

    form: ReluNetwork
    region: Region
    source: Indices
    numbers: Array

    def __call__(self, feature: int, codes: Array) -> Array:
        """Return how the inputs change if a feature gets other codes; shape (c, m)."""
        X = np.repeat(self.region.query[None], len(codes), axis=0)
        X[:, feature] = codes
        is_own = self.source == feature
        change = self.form.inputs.compute(self.region.rows(X)) - self.numbers
        change = np.where(is_own, change, 0.0)
        if not np.isfinite(change).all():
            name = self.region.names[feature]
            raise NoProof(f"the model has no finite output for some values of {name!r}")
        return change

    def straight(self, feature: int) -> tuple[StraightGain, Array, Array] | None:
        """Return a feature on a line, the slopes of its inputs, and errors; None if it is none."""
        if not self.region.sliding[feature]:
            return None
        codes = sample_codes(self.region.axes[feature])
        change = self(feature, codes)
        slopes = (change[-1] - change[0]) / (codes[-1] - codes[0])
        lines = slopes * (codes - self.region.query[feature])[:, None]
        error = np.abs(change - lines).max(axis=0)
        sides = find_sides(self.region, feature)
        if sides is None or (error > STRAIGHT * np.ptp(change, axis=0)).any():
            return None
        return StraightGain(feature, 0.0, sides), slopes, error

    def listed(self, feature: int) -> ListedGain:
        """Return a feature with its codes."""
        codes = list_codes(self.region, feature)
        query = float(self.region.query[feature])
        return ListedGain(feature, query, codes, np.zeros(len(codes)))
