"""Cells: the values of a feature that no test of a model can tell apart.

The tests of a tree ensemble cut the codes of each feature into cells. All codes of a cell pass the
same tests, so that only the one nearest to the query matters. Cells are numbered along the codes
for features on a line, and arbitrarily for features with levels or on a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers.forms import Form, Tests
from bayescfx.search.exact.code_cuts import LineTests, find_cuts
from bayescfx.space.region import Region


class NoProof(Exception):
    """The exact search can't answer a question; the text gives the reason."""


#: Columns that a message lists.
_MOST_LISTED = 5


@dataclass(frozen=True, eq=False)
class Line:
    """The cells of a feature on a line.

    Cell k holds the codes above cut k - 1 and not above cut k.

    Parameters
    ----------
    feature : int
        Position of the feature.
    cuts : array of shape (c,)
        The largest codes of the cells but the last, sorted.
    tests : array of int of shape (s,)
        The tests of this feature.
    rank : array of int of shape (s,)
        The cut that each test stands for.
    is_below : mask of shape (s,)
        Whether the test is true below its cut.
    low, high : float
        The codes between which the cuts are known.
    """

    feature: int
    cuts: Array
    tests: Indices
    rank: Indices
    is_below: Mask
    low: float = -np.inf
    high: float = np.inf

    def covers(self, region: Region) -> bool:
        """Return whether the cells are known for all codes that a region allows."""
        low, high = bracket(region, self.feature)
        return self.low <= low and high <= self.high

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 1


@dataclass(frozen=True, eq=False)
class Listing:
    """The cells of a feature with levels or on a circle: each listed code is one.

    Parameters
    ----------
    feature : int
        Position of the feature.
    codes : array of shape (c,)
        The codes, sorted.
    tests : array of int of shape (s,)
        The tests of this feature.
    outcomes : mask of shape (c, s)
        The outcome of each test for each code.
    """

    feature: int
    codes: Array
    tests: Indices
    outcomes: Mask

    def covers(self, region: Region) -> bool:
        """Return whether the cells are known for all codes that a region allows."""
        choices = region.axes[self.feature].choices
        is_listed = choices is not None and np.isin(choices[~np.isnan(choices)], self.codes).all()
        return bool(is_listed)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.codes)


FeatureCells = Line | Listing


def features_of_inputs(form: Form, region: Region) -> Indices:
    """Return the feature ``(m,)`` from which each number is computed."""
    schema = region.schema
    at = schema.feature_at
    names = list(schema.places)
    found = []
    for column in form.inputs.columns:
        place = schema.places.get(column)
        if place is None and isinstance(column, int | np.integer):
            place = int(column)
        if place is None:
            known = ", ".join(map(str, names[:_MOST_LISTED]))
            raise NoProof(f"the model reads a column {column!r} that is not among {known}")
        found.append(at[place])
    return np.array(found, dtype=np.intp)


def cut_features(form: Form, tests: Tests, region: Region) -> list[FeatureCells]:
    """Return the cells of each feature that is tested, in the order of the features."""
    feature_of = features_of_inputs(form, region)
    if region.recomputed[feature_of[np.unique(tests.input)]].any():
        raise NoProof("the model reads a derived column, which depends on several features")
    tested = feature_of[tests.input]
    features = np.unique(tested).tolist()
    on_line = [j for j in features if _is_line(form, tests, region, np.flatnonzero(tested == j))]
    on_line = _without_disorder(form, tests, region, tested, on_line)
    lines = _cut_lines(form, tests, region, tested, on_line)
    listed = _list_codes(form, tests, region, tested, sorted(set(features) - set(on_line)))
    found: list[FeatureCells] = [*lines, *listed]
    return sorted(found, key=attrgetter("feature"))


def _is_line(form: Form, tests: Tests, region: Region, own: Indices) -> bool:
    """Return whether the numbers of one feature, whose tests are `own`, rise or fall with it."""
    feature = int(features_of_inputs(form, region)[tests.input[own[0]]])
    if region.categorical[feature] or region.cyclic[feature] or tests.is_of_levels[own].any():
        return False
    return bool((form.inputs.direction[tests.input[own]] != 0).all())


def _without_disorder(
    form: Form, tests: Tests, region: Region, tested: Indices, features: Sequence[int]
) -> list[int]:
    """Return features without those whose levels have another order than their numbers.

    A number rises with the values of its column, but levels may be in any order.
    """
    with_levels = [j for j in features if region.axes[j].feature.has_levels]
    if not with_levels:
        return list(features)
    codes = {feature: _all_codes(region, feature) for feature in with_levels}
    numbers = _numbers_of_codes(form, region, codes)
    disordered = set()
    for feature in with_levels:
        inputs = np.unique(tests.input[tested == feature])
        own = numbers[: len(codes[feature])][:, inputs]
        if (np.diff(own, axis=0) * form.inputs.direction[inputs] < 0.0).any():
            disordered.add(feature)
    return [feature for feature in features if feature not in disordered]


def _numbers_of_codes(form: Form, region: Region, codes: dict[int, Array]) -> Array:
    """Return the numbers ``(n, m)`` of rows, each with one listed code of every feature.

    A number depends on one feature alone, so that a row serves all of them.
    """
    X = np.repeat(region.query[None], max(map(len, codes.values())), axis=0)
    for feature, choices in codes.items():
        X[: len(choices), feature] = choices
    return form.inputs.compute(region.rows(X))


def _cut_lines(
    form: Form, tests: Tests, region: Region, tested: Indices, features: Sequence[int]
) -> list[Line]:
    """Return the cells of features on a line; `tested` ``(s,)`` is the feature of each test."""
    chosen = np.flatnonzero(np.isin(tested, features))
    brackets = np.array([bracket(region, feature) for feature in features]).reshape(-1, 2)
    place = np.searchsorted(features, tested[chosen])
    line_tests = LineTests(
        feature=tested[chosen],
        input=tests.input[chosen],
        limit=tests.limit[chosen],
        rises=form.inputs.direction[tests.input[chosen]] > 0,
        low=brackets[place, 0],
        high=brackets[place, 1],
    )
    codes = find_cuts(form, region, line_tests)
    lines = []
    for k, feature in enumerate(features):
        own = np.flatnonzero(place == k)
        cuts, rank = np.unique(codes[own], return_inverse=True)
        # If all cuts lie inside, there are no others beyond.
        ends = (-np.inf, np.inf) if np.isfinite(cuts).all() else tuple(brackets[k].tolist())
        lines.append(Line(feature, cuts, chosen[own], rank.ravel(), line_tests.rises[own], *ends))
    return lines


def _list_codes(
    form: Form, tests: Tests, region: Region, tested: Indices, features: Sequence[int]
) -> list[Listing]:
    """Return the cells of features whose codes can be listed."""
    if not features:
        return []
    codes = {feature: _all_codes(region, feature) for feature in features}
    numbers = _numbers_of_codes(form, region, codes)
    found = []
    for feature, choices in codes.items():
        own = np.flatnonzero(tested == feature)
        found.append(
            Listing(feature, choices, own, tests.take(own).outcomes(numbers[: len(choices)]))
        )
    return found


def _all_codes(region: Region, feature: int) -> Array:
    """Return the codes ``(c,)`` of a feature, sorted; raise `NoProof` if they can't be listed."""
    choices = region.axes[feature].choices
    kind = region.axes[feature].feature
    if kind.has_levels:
        low, high = kind.code_range
        choices = np.union1d(np.arange(low, high + 1.0), region.query[feature])
    if choices is None:
        name = region.names[feature]
        raise NoProof(f"the model transforms {name!r} in a way that is not known to rise or fall")
    return np.asarray(choices[~np.isnan(choices)])


def bracket(region: Region, feature: int) -> tuple[float, float]:
    """Return codes between which every allowed code of a feature lies."""
    low, high = region.axes[feature].feature.code_range
    ends = [low, high, region.low[feature], region.high[feature]]
    return float(np.nanmin(ends)), float(np.nanmax(ends))


# ── the cells of one query ──


@dataclass(frozen=True, eq=False)
class LocalCells:
    """The cells of one feature that a query may reach, in order.

    Parameters
    ----------
    feature : int
        Position of the feature.
    cell : array of int of shape (c,)
        The number of each cell in the table of the model; of merged cells, that of one of them.
    code : array of shape (c,)
        The allowed code nearest to the query in each cell.
    lowest, highest : array of shape (c,)
        The lowest and highest allowed code of each cell.
    home : int
        The place of the cell that holds the query's code.
    is_line : bool
        Whether cells are in order, so that costs rise on either side of `home`. Otherwise `home`
        is 0 and costs rise from cell to cell.
    first_cell, last_cell : array of int of shape (c,), optional
        The lowest and highest number of the cells that were merged to one.
    """

    feature: int
    cell: Indices
    code: Array
    lowest: Array
    highest: Array
    home: int
    is_line: bool
    first_cell: Indices | None = None
    last_cell: Indices | None = None

    @property
    def first(self) -> Indices:
        """The lowest number ``(c,)`` of merged cells."""
        return self.cell if self.first_cell is None else self.first_cell

    @property
    def last(self) -> Indices:
        """The highest number ``(c,)`` of merged cells."""
        return self.cell if self.last_cell is None else self.last_cell

    def merge(self, starts: Indices) -> LocalCells:
        """Return cells on a line, those from each start ``(m,)`` up to the next one as one."""
        ends = np.append(starts[1:], len(self.cell)) - 1
        home = int(np.searchsorted(starts, self.home, side="right")) - 1
        nearest = np.where(np.arange(len(starts)) > home, starts, ends)
        nearest[home] = self.home
        return LocalCells(
            feature=self.feature,
            cell=self.cell[nearest],
            code=self.code[nearest],
            lowest=self.lowest[starts],
            highest=self.highest[ends],
            home=home,
            is_line=True,
            first_cell=self.first[starts],
            last_cell=self.last[ends],
        )


def local_cells(
    region: Region,
    all_cells: Sequence[FeatureCells],
    limit: float = np.inf,
    separate: Collection[int] = (),
) -> list[LocalCells]:
    """Return the cells of some features that a query may reach.

    Parameters
    ----------
    limit : float
        The distance that no single change may exceed.
    separate : collection of int
        Features of which each listed code is a cell of its own, as rules need it.
    """
    found: list[LocalCells] = []
    for cells in all_cells:
        choices = region.axes[cells.feature].choices
        if isinstance(cells, Listing):
            found.append(_local_listing(region, cells, limit))
        elif choices is not None:
            is_near = _costs(region, cells.feature, choices) <= limit
            is_separate = cells.feature in separate
            found.append(_local_grid(region, cells, choices[is_near], separate=is_separate))
        else:
            found.append(_local_interval(region, cells, limit))
    return found


def cells_of_codes(cells: FeatureCells, codes: Array) -> Indices:
    """Return the cell of each code ``(n,)``."""
    known = cells.codes if isinstance(cells, Listing) else cells.cuts
    return np.searchsorted(known, codes, side="left")


def _local_listing(region: Region, cells: Listing, limit: float) -> LocalCells:
    """Return the allowed levels, the query's first, the others by cost."""
    query = region.query[cells.feature]
    choices = region.axes[cells.feature].choices
    assert choices is not None
    cost = _costs(region, cells.feature, choices)
    choices = choices[cost <= limit]
    cost = cost[cost <= limit]
    order = np.lexsort((choices, cost, choices != query))
    codes = choices[order]
    at = np.searchsorted(cells.codes, codes)
    return LocalCells(cells.feature, at, codes, codes, codes, 0, False)


def _costs(region: Region, feature: int, codes: Array) -> Array:
    """Return what it costs to move a feature alone to each code ``(n,)``."""
    X = np.repeat(region.query[None], len(codes), axis=0)
    X[:, feature] = codes
    return np.asarray(region.units(X)[:, feature])


def _local_grid(region: Region, cells: Line, choices: Array, *, separate: bool) -> LocalCells:
    """Return the cells of a feature whose allowed codes are listed."""
    feature = cells.feature
    at = cells_of_codes(cells, choices)
    is_first = np.ones(len(at), dtype=np.bool_)
    if not separate:
        is_first[1:] = at[1:] != at[:-1]
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(at)) - 1
    own = int(np.flatnonzero(choices == region.query[feature])[0])
    home = int(np.searchsorted(starts, own, side="right")) - 1
    # Nearest to the query: the near end of the other cells, the query itself at home.
    nearest = np.where(np.arange(len(starts)) > home, starts, ends)
    nearest[home] = own
    return LocalCells(
        feature, at[starts], choices[nearest], choices[starts], choices[ends], home, True
    )


def _local_interval(region: Region, cells: Line, limit: float) -> LocalCells:
    """Return the cells of a feature that may take any number, or that has a long grid."""
    feature = cells.feature
    axis = region.axes[feature]
    query = float(region.query[feature])
    low = min(axis.low, query)
    high = max(axis.high, query)
    first, home, last = cells_of_codes(cells, np.array([low, query, high])).tolist()
    cell = np.arange(first, last + 1)
    start = np.append(-np.inf, np.nextafter(cells.cuts, np.inf))[cell]  # first code of each cell
    end = np.append(cells.cuts, np.inf)[cell]
    start[0] = low
    end[-1] = high
    place = home - first
    near = np.where(cell < home, end, start)
    near[:place] = _on_axis(region, feature, near[:place], -1)
    near[place] = query
    near[place + 1 :] = _on_axis(region, feature, near[place + 1 :], 1)
    is_there = (start <= near) & (near <= end)  # otherwise it has no allowed code
    is_there &= _costs(region, feature, np.where(is_there, near, query)) <= limit
    is_there[place] = True
    kept = np.flatnonzero(is_there)
    home_place = int(np.searchsorted(kept, place))
    # The lowest and highest codes of other cells are those at the near end and at the far end.
    lowest = np.where(cell > home, near, start)[kept]
    highest = np.where(cell < home, near, end)[kept]
    return LocalCells(feature, cell[kept], near[kept], lowest, highest, home_place, True)


def _on_axis(region: Region, feature: int, codes: Array, sign: int) -> Array:
    """Return the first allowed codes at or beyond some codes, away from the query; nan if none."""
    axis = region.axes[feature]
    step = axis.feature.code_step
    found = np.clip(codes, axis.low, axis.high)
    if step:
        number = np.rint((found - axis.anchor) / step)
        found = axis.feature.grid(number, axis.anchor)
        is_short = (codes - found) * sign > 0.0
        found = np.where(is_short, axis.feature.grid(number + sign, axis.anchor), found)
        found = np.clip(found, axis.low, axis.high)
    if axis.narrow is not None:
        with np.errstate(over="ignore"):
            narrow = found.astype(axis.narrow)
        is_short = (codes - narrow) * sign > 0.0
        further = np.nextafter(narrow, axis.narrow(sign * np.inf))
        found = np.where(is_short, further, narrow).astype(np.float64)
    is_inside = (axis.low <= found) & (found <= axis.high) & ((found - codes) * sign >= 0.0)
    return np.where(is_inside, found, np.nan)
