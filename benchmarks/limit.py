"""The two-feature limit: the nearest hit with at most two changed features, by enumeration.

An ensemble of trees is a sum of boxes, constant between their edges. Within each interval of a
feature the value nearest to the query is the cheapest, so it is enough to try these values in all
pairs of features.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from bayescfx.space.region import Region
from benchmarks.ours import space
from benchmarks.problems import Array, Case, fitted, table


class Boxes(NamedTuple):
    """The leaves of all trees; a row is in a leaf where ``low < x <= high`` in every feature."""

    low: Array  # (leaves, d)
    high: Array  # (leaves, d)
    value: Array  # (leaves,) contribution of the leaf to the output


@cache
def limit(case: Case, per_change: float = 0.0) -> float:
    """Return the least cost of a hit with at most two changed features; infinite if none.

    The model must be an ensemble of trees on a numeric table. The cost is the distance plus
    `per_change` for each changed feature.
    """
    query = case.query
    predict = fitted(case.data, case.model).predict
    region = space(case.data).around(query)
    leaves = boxes(case.data, case.model)
    scale = table(case.data).scale
    values = [representatives(leaves, region, j) for j in range(len(query))]
    lengths = [np.abs(v - q) / s for v, q, s in zip(values, query, scale, strict=True)]
    outside = (query <= leaves.low) | (query > leaves.high)
    candidates: list[tuple[float, int, int, float, float]] = []
    for i, j in combinations(range(len(query)), 2):
        others = np.delete(outside, [i, j], axis=1).any(axis=1)
        y = surface(Boxes(*(part[~others] for part in leaves)), (i, values[i]), (j, values[j]))
        a, b = np.nonzero(case.hits(y))
        one = lengths[i][a]
        two = lengths[j][b]
        price = one + two + per_change * ((one > 0) * 1 + (two > 0))
        for at in np.argsort(price)[:16]:  # several, because the first may hit by rounding only
            candidates.append((float(price[at]), i, j, values[i][a[at]], values[j][b[at]]))
    for total, i, j, first, second in sorted(candidates):
        row = query.copy()
        row[[i, j]] = first, second
        if case.hit(float(predict(row[None])[0])):
            return total
    return np.inf


def surface(leaves: Boxes, one: tuple[int, Array], other: tuple[int, Array]) -> Array:
    """Return the sum of boxes over the grid of two features' sorted values."""
    jumps = np.zeros((len(one[1]) + 1, len(other[1]) + 1))
    begins = [np.searchsorted(v, leaves.low[:, k], "right") for k, v in (one, other)]
    ends = [np.searchsorted(v, leaves.high[:, k], "right") for k, v in (one, other)]
    for rows, a in ((begins[0], 1.0), (ends[0], -1.0)):
        for columns, b in ((begins[1], 1.0), (ends[1], -1.0)):
            np.add.at(jumps, (rows, columns), a * b * leaves.value)
    return np.asarray(jumps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1])


def representatives(leaves: Boxes, region: Region, j: int) -> Array:
    """Return the allowed value nearest to the query in each interval between edges, sorted."""
    edges = np.unique(leaves.high[:, j])
    edges = edges[np.isfinite(edges)]
    query = region.query[j]
    choices = region.choices[j]
    if choices is None:
        above = np.nextafter(edges.astype(np.float32), np.float32(np.inf)).astype(np.float64)
        ends = np.concatenate([edges[edges < query], above[edges >= query], [query]])
        ends = ends[(ends >= region.low[j]) & (ends <= region.high[j])]
        # The nearest grid point may lie across an edge, so include its neighbours.
        X = np.repeat(region.query[None], 3 * len(ends), axis=0)
        X[:, j] = np.concatenate([ends + k * region.step[j] for k in (-1, 0, 1)])
        choices = region.on_grid(X)[:, j]
    interval = np.searchsorted(edges, choices)  # edges[k - 1] < value <= edges[k]
    nearest = np.lexsort((np.abs(choices - query), interval))
    first = np.unique(interval[nearest], return_index=True)[1]
    return np.asarray(choices[nearest[first]])


@cache
def boxes(data: str, model: str) -> Boxes:
    """Return the leaves of LightGBM's or a random forest's trees, by table and model."""
    estimator: Any = fitted(data, model)
    return leaves_of(getattr(estimator, "booster", estimator), table(data).X.shape[1])


def leaves_of(estimator: Any, d: int) -> Boxes:
    """Return the leaves of LightGBM's or a random forest's trees of `d` features."""
    estimator = getattr(estimator, "booster_", estimator)
    is_lightgbm = hasattr(estimator, "dump_model")
    whole = (np.full(d, -np.inf), np.full(d, np.inf))
    if is_lightgbm:
        trees = [tree["tree_structure"] for tree in estimator.dump_model()["tree_info"]]
        leaves = [leaf for tree in trees for leaf in _lightgbm(tree, *whole)]
    else:
        trees = [tree.tree_ for tree in estimator.estimators_]
        leaves = [leaf for tree in trees for leaf in _forest(tree, 0, *whole)]
    low, high, value = (np.array(part) for part in zip(*leaves, strict=True))
    return Boxes(low, high, value if is_lightgbm else value / len(trees))


Leaf = tuple[Array, Array, float]


def _lightgbm(node: dict[str, Any], low: Array, high: Array) -> Iterator[Leaf]:
    """Yield the leaves below a node of LightGBM's dump."""
    if "leaf_value" in node:
        yield low, high, node["leaf_value"]
        return
    left, right = _cut(low, high, node["split_feature"], node["threshold"])
    yield from _lightgbm(node["left_child"], *left)
    yield from _lightgbm(node["right_child"], *right)


def _forest(tree: Any, node: int, low: Array, high: Array) -> Iterator[Leaf]:
    """Yield the leaves below a node of scikit-learn's tree, which uses single precision."""
    if tree.children_left[node] < 0:
        yield low, high, float(tree.value[node, 0, 0])
        return
    edge = np.float32(tree.threshold[node])
    if edge > tree.threshold[node]:  # the largest single-precision number that goes left
        edge = np.nextafter(edge, np.float32(-np.inf))
    left, right = _cut(low, high, tree.feature[node], float(edge))
    yield from _forest(tree, tree.children_left[node], *left)
    yield from _forest(tree, tree.children_right[node], *right)


def _cut(low: Array, high: Array, j: int, edge: float) -> tuple[tuple[Array, Array], ...]:
    """Return the boxes on both sides of an edge."""
    end = high.copy()
    begin = low.copy()
    end[j] = min(high[j], edge)
    begin[j] = max(low[j], edge)
    return (low, end), (begin, high)
