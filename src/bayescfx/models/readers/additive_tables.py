"""Reader for the explainable boosting machines of InterpretML: sums of tables, as trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import Form, LinkName
from bayescfx.models.readers.sources import Columns, Task, UnreadableModelError, refuse_labels
from bayescfx.models.readers.tree_parts import LEAF, Tree, TreeSums

_LINKS: dict[str, LinkName] = {
    "identity": "identity",
    "log": "exp",
    "logit": "expit",
    "mlogit": "softmax",
}


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers that the tables are looked up with: values, or codes of levels.

    Parameters
    ----------
    codes : tuple of dict or None
        The codes of levels by their text; None for a column of numbers.
    """

    codes: tuple[dict[str, float] | None, ...]

    def __call__(self, table: Any) -> Array:
        """Return the numbers ``(n, m)``."""
        frame = pd.DataFrame(table)
        numbers = np.empty(frame.shape)
        for place, codes in enumerate(self.codes):
            cells = frame.iloc[:, place]
            if codes is None:
                numbers[:, place] = pd.to_numeric(cells).to_numpy(np.float64, na_value=np.nan)
            else:
                coded = [codes.get(str(cell), -1.0) for cell in cells.astype(object)]
                numbers[:, place] = np.where(cells.isna(), np.nan, coded)
        return numbers


@dataclass(frozen=True, eq=False)
class _Growth:
    """A tree that is being grown node by node."""

    input: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    levels: dict[int, frozenset[float]] = field(default_factory=dict)

    def add(self, place: int, threshold: float = 0.0, value: float = 0.0) -> int:
        """Return a new node; `place` is -1 for a leaf."""
        self.input.append(place)
        self.threshold.append(threshold)
        self.left.append(LEAF)
        self.right.append(LEAF)
        self.value.append(value)
        return len(self.input) - 1

    def link(self, node: int, left: int, right: int) -> int:
        """Return a node after setting its children."""
        self.left[node] = left
        self.right[node] = right
        return node

    def add_search(self, place: int, thresholds: Array, values: Array) -> int:
        """Return the root of new nodes that look up values ``(m,)`` between thresholds."""
        order, left, right = _balanced(len(values))
        start = len(self.input)
        n_inner = len(order)
        self.input.extend([place] * n_inner + [LEAF] * len(values))
        self.threshold.extend(thresholds[order].tolist() + [0.0] * len(values))
        self.left.extend((left + start).tolist() + [LEAF] * len(values))
        self.right.extend((right + start).tolist() + [LEAF] * len(values))
        self.value.extend([0.0] * n_inner + values.tolist())
        return start

    def tree(self) -> Tree:
        """Return the tree."""
        inputs = np.array(self.input, dtype=np.intp)
        thresholds = np.array(self.threshold)
        return Tree(
            inputs,
            thresholds,
            np.array(self.left, dtype=np.intp),
            np.array(self.right, dtype=np.intp),
            np.array(self.value),
            np.isneginf(thresholds),
            is_strict=True,
            levels=self.levels,
        )


@cache
def _balanced(n_leaves: int) -> tuple[Indices, Indices, Indices]:
    """Return a balanced tree: the threshold and the two children of each inner node.

    Inner nodes come first, the root before the others; then the leaves, from left to right.
    """
    order: list[int] = []
    left: list[int] = []
    right: list[int] = []

    def grow(first: int, last: int) -> int:
        """Return the node above the leaves from `first` to `last`."""
        if first == last:
            return n_leaves - 1 + first
        middle = (first + last) // 2
        node = len(order)
        order.append(middle)
        left.append(0)
        right.append(0)
        left[node] = grow(first, middle)
        right[node] = grow(middle + 1, last)
        return node

    grow(0, n_leaves - 1)
    return (
        np.array(order, dtype=np.intp),
        np.array(left, dtype=np.intp),
        np.array(right, dtype=np.intp),
    )


@dataclass(frozen=True, eq=False)
class _Axis:
    """One feature of a table: its column, and the bin of each number.

    The first bin is for missing numbers, the last one for unknown levels.

    Parameters
    ----------
    place : int
        The column.
    cuts : array of shape (k,) or None
        A number belongs to bin 1 + j if j cuts are not above it; None for levels.
    bins : dict of int to frozenset of float
        The codes of the levels in each bin.
    """

    place: int
    cuts: Array | None
    bins: dict[int, frozenset[float]]


def read_additive(task: Task) -> Form:
    """Return the form of an explainable boosting machine."""
    refuse_labels(task)
    model = task.estimator
    link = _LINKS.get(str(model.link_))
    if link is None:
        raise UnreadableModelError(f"{task.class_name} has the unknown link {model.link_}")
    codes = _level_codes(model)
    columns = _in_order(model, task.source.columns)
    signs = np.array([known is None for known in codes], dtype=np.intp)
    inputs = task.source.inputs(_Numbers(tuple(codes)), columns.turn(signs))
    base = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    trees = _trees(model, codes, len(base))
    group = np.tile(np.arange(len(base)), len(model.term_scores_)).astype(np.intp)
    if task.method == "decision_function":
        link = "identity"
    return TreeSums(inputs, trees, base, group).output(link, task.label)


def _trees(model: Any, codes: list[dict[str, float] | None], n_sums: int) -> list[Tree]:
    """Return the tables of all terms as trees, one per sum."""
    trees: list[Tree] = []
    for scores, features in zip(model.term_scores_, model.term_features_, strict=True):
        tables = np.asarray(scores, dtype=np.float64)
        axes = _axes(model, features, codes)
        per_sum = tables.reshape(*tables.shape[: len(axes)], n_sums)
        trees += [_tree(per_sum[..., k], axes) for k in range(n_sums)]
    return trees


def _in_order(model: Any, columns: Columns) -> Columns:
    """Return the columns, which must have the order in which the model was fitted."""
    names = list(map(str, model.feature_names_in_))
    given = list(map(str, columns.names))
    is_moved = set(names) == set(given) and names != given
    if is_moved or len(names) != len(given):
        raise UnreadableModelError("the columns are not those of the model in the same order")
    return columns


def _level_codes(model: Any) -> list[dict[str, float] | None]:
    """Return the codes of the levels of each feature; None for numbers."""
    codes: list[dict[str, float] | None] = []
    for bins in model.bins_:
        if not isinstance(bins[0], dict):
            codes.append(None)
            continue
        texts = dict.fromkeys(text for known in bins for text in known)
        codes.append({text: float(code) for code, text in enumerate(texts)})
    return codes


def _axes(model: Any, features: Any, codes: list[dict[str, float] | None]) -> list[_Axis]:
    """Return the axes of one table; tables of several features may have coarser bins."""
    axes = []
    for place in features:
        every = model.bins_[place]
        bins = every[min(len(every), len(features)) - 1]
        known = codes[place]
        if known is None:
            axes.append(_Axis(place, np.asarray(bins, dtype=np.float64), {}))
            continue
        members: dict[int, set[float]] = {}
        for text, number in bins.items():
            members.setdefault(int(number), set()).add(known[text])
        axes.append(_Axis(place, None, {k: frozenset(found) for k, found in members.items()}))
    return axes


def _tree(table: Array, axes: list[_Axis]) -> Tree:
    """Return a table of scores as a tree."""
    growth = _Growth()
    _grow(growth, table, axes)  # the root is the first node
    return growth.tree()


def _grow(growth: _Growth, table: Array, axes: list[_Axis]) -> int:
    """Return the node below which a table is looked up, axis by axis."""
    if not axes or (table == table.flat[0]).all():
        return growth.add(LEAF, value=float(table.flat[0]))
    axis, *others = axes
    node = growth.add(axis.place, -np.inf)  # only missing numbers go left
    missing = _grow(growth, table[0], others)
    if axis.cuts is not None and not others:
        return growth.link(node, missing, _grow_search(growth, table, axis, axis.cuts))
    if axis.cuts is None:
        return growth.link(node, missing, _grow_levels(growth, table, axes, sorted(axis.bins)))
    return growth.link(node, missing, _grow_cuts(growth, table, axes, (1, len(axis.cuts) + 1)))


def _grow_search(growth: _Growth, scores: Array, axis: _Axis, cuts: Array) -> int:
    """Return the node that looks up the scores of the bins of numbers; `scores` has one axis."""
    bins = scores[1 : len(cuts) + 2]
    changes = np.flatnonzero(bins[1:] != bins[:-1])
    values = bins[np.append(0, changes + 1)]
    return growth.add_search(axis.place, cuts[changes], values)


def _grow_cuts(growth: _Growth, table: Array, axes: list[_Axis], bins: tuple[int, int]) -> int:
    """Return the node that tells some neighbouring bins of numbers apart."""
    axis, *others = axes
    first, last = bins
    part = table[first : last + 1]
    if (part == part[:1]).all():
        return _grow(growth, table[first], others)
    middle = (first + last) // 2
    cuts = np.asarray(axis.cuts)
    node = growth.add(axis.place, float(cuts[middle - 1]))
    left = _grow_cuts(growth, table, axes, (first, middle))
    return growth.link(node, left, _grow_cuts(growth, table, axes, (middle + 1, last)))


def _grow_levels(growth: _Growth, table: Array, axes: list[_Axis], bins: list[int]) -> int:
    """Return the node that tells bins of levels apart, one after the other."""
    axis, *others = axes
    if not bins:
        return _grow(growth, table[-1], others)
    node = growth.add(axis.place)
    growth.levels[node] = axis.bins[bins[0]]
    left = _grow(growth, table[bins[0]], others)
    return growth.link(node, left, _grow_levels(growth, table, axes, bins[1:]))
