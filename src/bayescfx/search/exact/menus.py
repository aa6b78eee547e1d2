"""Menus: which small sets of features can reach a target, and at which cost.

Every set is searched exactly, with all other features as in the query. The leaves that the query's
other cells exclude are left out, so that these searches are small.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Bound, Branching, Work, find_nearest
from bayescfx.search.exact.leaves import BITS, LeafTable, Words
from bayescfx.search.exact.problem import BoxProblem, Cuts
from bayescfx.search.exact.steps import extremes
from bayescfx.space.region import Region

#: Share by which a bound may be below the cost of a proven entry (numerical).
SAME_COST = 1e-6
#: Whether a set of features reaches the target: it does, it is proven that it can't, or the work
#: was over before either was known.
MenuStatus: TypeAlias = Literal["reaches", "cannot", "unknown"]
#: Returns which rows of codes ``(n, d)`` reach the target.
HitTest: TypeAlias = Callable[[Array], Mask]


@dataclass(frozen=True, eq=False)
class MenuEntry:
    """What a set of features can do.

    Parameters
    ----------
    features : tuple of int
        Positions of the features; all others stay as in the query.
    status : str
        ``"reaches"``, ``"cannot"`` or ``"unknown"``.
    cost : float or None
        The lowest cost found; None if no row was found.
    bound : float
        No row of the set that reaches the target costs less; infinite if none reaches it.
    row : array of shape (d,) or None
        The codes of the row with the lowest cost. It may change only some of the features.
    """

    features: tuple[int, ...]
    status: MenuStatus
    cost: float | None
    bound: float
    row: Array | None

    @property
    def is_proven(self) -> bool:
        """Whether the cost is the lowest one, or the set can't reach the target."""
        is_lowest = self.bound >= self.lowest_cost * (1.0 - SAME_COST)
        return self.status != "unknown" and is_lowest

    @property
    def lowest_cost(self) -> float:
        """The lowest cost found; infinite without a row."""
        return np.inf if self.cost is None else self.cost

    def codes(self, query: Array) -> Array:
        """Return the codes ``(d,)`` of the row with the lowest cost; the query's without one."""
        return query if self.row is None else self.row


#: Returns the entry of a set of features, given the best entry of its parts.
SetSearch: TypeAlias = Callable[[tuple[int, ...], MenuEntry | None], MenuEntry]


def make_menu(
    table: LeafTable,
    region: Region,
    accepted: Intervals,
    slack: float = 0.0,
    work: Work | None = None,
    sizes: Sequence[int] = (1, 2),
    reaches: HitTest | None = None,
) -> list[MenuEntry]:
    """Return which sets of features reach a target, small sets first.

    Parameters
    ----------
    table : LeafTable
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Scores that reach the target, on the scale of the sums.
    slack : float
        By how much scores may differ from the model's through rounding.
    work : Work, optional
        What limits the work of all sets together.
    sizes : sequence of int
        The numbers of features in a set.
    reaches : callable, optional
        Returns which rows of codes reach the target, by the model itself; by default the scores
        of the form decide.

    Returns
    -------
    list of MenuEntry
        All single features that may move; sets of several only from features that matter to the
        model or to a rule.
    """
    problem = BoxProblem(table, region, accepted, slack)
    work = Work() if work is None else work
    test = _test_rows(problem, reaches)

    def search(features: tuple[int, ...], best: MenuEntry | None) -> MenuEntry:
        """Return the entry of one set."""
        return _search_set(problem, features, best, work, test)

    return fill_menu(region, problem.features.tolist(), sizes, test, search)


def fill_menu(
    region: Region, features: Sequence[int], sizes: Sequence[int], test: HitTest, search: SetSearch
) -> list[MenuEntry]:
    """Return the entries of all sets, small sets first.

    Parameters
    ----------
    region : Region
        The rows that are allowed.
    features : sequence of int
        The features that matter to the model or to a rule.
    sizes : sequence of int
        The numbers of features in a set.
    test : callable
        Returns which rows of codes reach the target.
    search : callable
        Returns the entry of one set, given the best entry of its parts.
    """
    entries: dict[tuple[int, ...], MenuEntry] = {(): _query_entry(region, test)}
    for chosen in _sets(region, features, sizes):
        entries[chosen] = search(chosen, _best_part(entries, chosen))
    return [entry for chosen, entry in entries.items() if chosen]


def _sets(
    region: Region, features: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Yield sets of features by size."""
    most = len(region.query) if region.max_changes is None else region.max_changes
    for size in sorted(sizes):
        if size > most:
            return
        pool = region.free.tolist() if size == 1 else sorted(features)
        yield from combinations(pool, size)


def _query_entry(region: Region, test: HitTest) -> MenuEntry:
    """Return the entry of the empty set: whether the query itself reaches the target."""
    query = region.query[None]
    is_hit = bool(test(query)[0]) and bool(region.contains(query)[0])
    if is_hit:
        return MenuEntry((), "reaches", 0.0, 0.0, region.query)
    return MenuEntry((), "cannot", None, np.inf, None)


def _test_rows(problem: BoxProblem, reaches: HitTest | None) -> HitTest:
    """Return the test of rows: the model's, or by the scores of the form."""
    if reaches is not None:
        return reaches
    form = problem.table.form

    def reach(X: Array) -> Mask:
        """Return which rows have an accepted score."""
        raw = form.raw(problem.region.rows(X))
        score = raw[:, 0]
        if raw.shape[1] > 1:
            others = np.arange(raw.shape[1]) != form.chosen
            score = raw[:, form.chosen] - np.logaddexp.reduce(raw[:, others], axis=1)
        return problem.is_possible(score, score)

    return reach


def _best_part(
    entries: dict[tuple[int, ...], MenuEntry], features: tuple[int, ...]
) -> MenuEntry | None:
    """Return the cheapest entry of a part of a set; None if no part is known to reach."""
    parts = [
        entry
        for part, entry in entries.items()
        if entry.cost is not None and set(part) <= set(features)
    ]
    return min(parts, key=lambda entry: entry.cost or 0.0, default=None)


def _search_set(
    problem: BoxProblem,
    features: tuple[int, ...],
    best: MenuEntry | None,
    work: Work,
    test: HitTest,
) -> MenuEntry:
    """Return the entry of one set, given the best entry of its parts."""
    used = np.flatnonzero(np.isin(problem.features, features))
    if work.is_over:
        return part_entry(features, best, is_complete=False)
    if not len(used):
        return part_entry(features, best, is_complete=True)
    limit = np.inf if best is None else best.lowest_cost
    branching = Branching(restrict(problem, used), limit=limit, work=work)
    return run_set(find_nearest(branching), problem.region, features, best, test)


def part_entry(
    features: tuple[int, ...], best: MenuEntry | None, *, is_complete: bool
) -> MenuEntry:
    """Return the entry of a set that has no row but those of its parts, or none that is known."""
    if best is None:
        status: MenuStatus = "cannot" if is_complete else "unknown"
        return MenuEntry(features, status, None, np.inf if is_complete else 0.0, None)
    bound = best.lowest_cost if is_complete else 0.0
    return MenuEntry(features, "reaches", best.cost, bound, best.row)


def run_set(
    search: Generator[Array, Mask, Bound],
    region: Region,
    features: tuple[int, ...],
    best: MenuEntry | None,
    test: HitTest,
) -> MenuEntry:
    """Return the entry of one set by a search for rows that cost less than the best part."""
    cost = np.inf if best is None else best.lowest_cost
    row = None if best is None else best.row
    try:
        X = next(search)
        while True:
            is_hit = test(X)
            costs = np.where(is_hit, region.cost(X), np.inf)
            if costs.min() < cost:
                cost = float(costs.min())
                row = X[int(costs.argmin())]
            X = search.send(is_hit)
    except StopIteration as end:
        bound = end.value
    if row is not None:
        return MenuEntry(features, "reaches", cost, min(bound.cost, cost), row)
    status: MenuStatus = "cannot" if bound.is_complete else "unknown"
    return MenuEntry(features, status, None, bound.cost, None)


def restrict(problem: BoxProblem, places: Indices) -> BoxProblem:
    """Return a problem in which only some features move, given by their places ``(k,)``."""
    small = copy(problem)
    others = np.setdiff1d(np.arange(len(problem.features)), places)
    at = np.concatenate([problem.offset[k] + np.arange(problem.sizes[k]) for k in places])
    small.cells = [problem.cells[k] for k in places]
    small.features = problem.features[places]
    small.sizes = problem.sizes[places]
    small.offset = np.concatenate([[0], np.cumsum(small.sizes)[:-1]]).astype(np.intp)
    small.home = problem.home[places]
    small.is_line = problem.is_line[places]
    small.is_ruled = problem.is_ruled[places]
    small.code = problem.code[at]
    small.lowest = problem.lowest[at]
    small.highest = problem.highest[at]
    small.least = problem.least[at]
    small.most = problem.most[at]
    small.costs = replace(
        problem.costs,
        power=problem.costs.power[at],
        price=problem.costs.price[at],
        most_price=problem.costs.most_price[places],
    )
    root = problem.root.copy()
    for k in others:
        root &= problem.own[problem.offset[k] + problem.home[k]]
    trees = _keep_leaves(problem, small, root, at)
    is_kept = np.isin(problem.cuts.feature, places)
    small.cuts = Cuts(
        feature=np.searchsorted(places, problem.cuts.feature[is_kept]),
        cell=problem.cuts.cell[is_kept],
        weight=problem.cuts.weight[is_kept][:, trees],
        far_power=problem.cuts.far_power[is_kept],
    )
    return small


def _keep_leaves(problem: BoxProblem, small: BoxProblem, root: Words, at: Indices) -> Indices:
    """Keep the words of trees that still have several values; return the places of these trees."""
    low, high = extremes(root[None], problem.flat_values)
    has_any = len(problem.tree_start) > 0
    lowest = np.minimum.reduceat(low[0], problem.tree_start) if has_any else np.empty(0)
    highest = np.maximum.reduceat(high[0], problem.tree_start) if has_any else np.empty(0)
    is_constant = lowest == highest
    small.base = problem.base.copy()
    np.add.at(small.base, problem.group[is_constant], lowest[is_constant])
    words = np.flatnonzero((root != 0) & ~is_constant[problem.tree_of_word])
    trees, small.tree_start = np.unique(problem.tree_of_word[words], return_index=True)
    small.tree_of_word = np.searchsorted(trees, problem.tree_of_word[words])
    small.trees = problem.trees[trees]
    small.group = problem.group[trees]
    small.root = root[words]
    small.flat_values = problem.flat_values.reshape(-1, BITS)[words].ravel()
    cells = np.ix_(at, words)
    small.upper = np.ascontiguousarray(problem.upper[cells])
    small.lower = np.ascontiguousarray(problem.lower[cells])
    small.own = small.upper & small.lower
    return trees
