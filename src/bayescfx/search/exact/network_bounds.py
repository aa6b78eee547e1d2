"""Bounds on the sums of a network's neurons over the rows that a question leaves.

The sums of a layer are bounded by linear functions of the columns: each activation ``max(0, z)``
is replaced by a line above and a line below it, from the last layer back to the first (CROWN).
The largest value of a linear function over all rows within a budget is a knapsack, which has a
simple bound for any price of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import ReluNetwork

#: Prices of the budget that are tried for each function. Set by judgement, 2026-11-18.
PRICES = 12
#: Share of the largest possible value by which bounds are widened (rounding).
WIDENED = 1e-10


@dataclass(frozen=True, eq=False)
class Domain:
    """The values that the columns of a program may take.

    Columns of one side of a feature are used together, those of different sides are not. At most
    some features differ from the query.

    Parameters
    ----------
    high : array of shape (n,)
        The largest value of each column; the lowest is 0.
    side : array of int of shape (n,)
        The side of each column, numbered across features, in the order of features.
    first_side : array of int of shape (f,)
        The first side of each feature.
    most_changes : int or None
        How many features may change.
    price : array of shape (n,)
        What one unit of each column takes of the budget at least.
    budget : float
        The budget; infinite without one.
    """

    high: Array
    side: Indices
    first_side: Indices
    most_changes: int | None
    price: Array
    budget: float

    def largest(self, gain: Array) -> Array:
        """Return upper bounds ``(h,)`` on linear functions ``gain @ v`` with gains ``(h, n)``."""
        if not gain.shape[1]:
            return np.zeros(len(gain))
        best = self._without_budget(gain)
        if not np.isfinite(self.budget):
            return best
        is_priced = self.price > 0.0
        rates = np.zeros(gain.shape)
        rates[:, is_priced] = np.maximum(gain[:, is_priced], 0.0) / self.price[is_priced]
        for level in np.linspace(0.0, 1.0, PRICES):
            paid = np.quantile(rates, level, axis=1)
            rest = gain - paid[:, None] * self.price
            best = np.minimum(best, self._without_budget(rest) + paid * self.budget)
        return best

    def _without_budget(self, gain: Array) -> Array:
        """Return upper bounds ``(h,)`` as if there were no budget."""
        gains = np.maximum(gain, 0.0) * self.high
        by_side = np.zeros((len(gain), int(self.side.max()) + 1))
        np.add.at(by_side.T, self.side, gains.T)
        by_feature = np.maximum.reduceat(by_side, self.first_side, axis=1)
        if self.most_changes is not None and self.most_changes < by_feature.shape[1]:
            by_feature = -np.sort(-by_feature, axis=1)[:, : self.most_changes]
        return np.asarray(by_feature.sum(axis=1))


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """Bounds on the sums of one layer.

    Parameters
    ----------
    low, high : array of shape (h,)
        No row of the domain has sums below or above.
    """

    low: Array
    high: Array

    @property
    def unstable(self) -> Indices:
        """The neurons whose sums may have either sign."""
        return np.flatnonzero((self.low < 0.0) & (self.high > 0.0))


@dataclass(frozen=True, eq=False)
class _Lines:
    """Lines below and above the activations of one layer: ``slope * z + shift``."""

    low_slope: Array
    high_slope: Array
    high_shift: Array


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """The sums of the first layer as functions of the columns: ``start + gain @ v``.

    Parameters
    ----------
    start : array of shape (h_1,)
        The sums for the query.
    gain : array of shape (h_1, n)
        How each column changes them.
    """

    start: Array
    gain: Array


def bound_layer(
    form: ReluNetwork, first: FirstLayer, before: Sequence[LayerBounds], domain: Domain
) -> LayerBounds:
    """Return bounds on the sums of a layer, given those of all layers before it.

    Parameters
    ----------
    form : ReluNetwork
        The network.
    first : FirstLayer
        The sums of the first layer.
    before : sequence of LayerBounds
        Bounds on the layers before; their number is that of the layer, counted from 0.
    domain : Domain
        The values of the columns.
    """
    layer = len(before)
    lines = [_lines_of(each) for each in before]
    size = len(form.biases[layer])
    weights = np.eye(size) if layer == 0 else form.weights[layer]
    shift = np.zeros(size) if layer == 0 else form.biases[layer]
    ends = []
    for sign in (-1.0, 1.0):
        factor, total = _back_to_first(form, lines, sign * weights, sign * shift)
        gain = factor @ first.gain
        top = total + factor @ first.start + domain.largest(gain)
        scale = np.abs(gain) @ domain.high + np.abs(factor) @ np.abs(first.start) + np.abs(total)
        ends.append(sign * (top + WIDENED * scale))
    bounds = LayerBounds(ends[0], ends[1])
    return bounds if layer == 0 else _within(bounds, _interval(form, before[-1], layer))


def _back_to_first(
    form: ReluNetwork, lines: list[_Lines], weights: Array, shift: Array
) -> tuple[Array, Array]:
    """Return an upper bound on sums as a function of the sums of the first layer.

    `weights` ``(h, k)`` and `shift` ``(h,)`` are those of the activations before (of the first
    layer's sums if there are no lines yet). Returns factors ``(h, h_1)`` and constants ``(h,)``.
    """
    factor = weights
    total = shift
    for k in range(len(lines) - 1, -1, -1):
        own = lines[k]
        above = np.maximum(factor, 0.0)
        below = np.minimum(factor, 0.0)
        total = total + above @ own.high_shift
        factor = above * own.high_slope + below * own.low_slope
        if k > 0:
            total = total + factor @ form.biases[k]
            factor = factor @ form.weights[k]
    return factor, total


def _interval(form: ReluNetwork, before: LayerBounds, layer: int) -> LayerBounds:
    """Return bounds on a layer from those of the layer before."""
    low = np.maximum(before.low, 0.0)
    high = np.maximum(before.high, 0.0)
    above = np.maximum(form.weights[layer], 0.0)
    below = np.minimum(form.weights[layer], 0.0)
    bias = form.biases[layer]
    size = WIDENED * (np.abs(form.weights[layer]) @ high + np.abs(bias))
    return LayerBounds(
        above @ low + below @ high + bias - size, above @ high + below @ low + bias + size
    )


def _within(a: LayerBounds, b: LayerBounds) -> LayerBounds:
    """Return the bounds that two others imply."""
    return LayerBounds(np.maximum(a.low, b.low), np.minimum(a.high, b.high))


def _lines_of(bounds: LayerBounds) -> _Lines:
    """Return lines below and above ``max(0, z)`` between bounds on z."""
    low = np.minimum(bounds.low, 0.0)
    high = np.maximum(bounds.high, 0.0)
    width = np.where(high - low > 0.0, high - low, 1.0)
    slope = np.where(bounds.low >= 0.0, 1.0, np.where(bounds.high <= 0.0, 0.0, high / width))
    shift = np.where((bounds.low < 0.0) & (bounds.high > 0.0), -slope * low, 0.0)
    return _Lines(np.where(high > -low, 1.0, 0.0), slope, shift)
