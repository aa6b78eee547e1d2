"""Cells: the values of a feature that no test of a model can tell apart.

The tests of a tree ensemble cut the codes of each feature into cells. All codes of a cell pass the
same tests, so that only the one nearest to the query matters. Cells are numbered along the tested
number for features on a line, and arbitrarily for features with levels or on a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers.forms import Form, Tests
from bayescfx.space.region import Region


class NoProof(Exception):
    """The exact search can't answer a question; the text gives the reason."""


#: Halvings that separate any two neighbouring numbers of 64 bits.
BISECTIONS = 64
#: The lowest whole number of 64 bits.
_LOWEST = np.int64(-(2**63))
#: Columns that a message lists.
_MOST_LISTED = 5


@dataclass(frozen=True, eq=False)
class Line:
    """The cells of a feature on a line.

    Cell k holds the codes whose tested number lies above cut k - 1 and not above cut k.

    Parameters
    ----------
    feature : int
        Position of the feature.
    input : int or None
        The number that is tested; None if the codes themselves are compared with the cuts, since
        the feature has several numbers.
    cuts : array of shape (c,)
        The largest numbers of the cells but the last, sorted.
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
    input: int | None
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


def numbers_at(form: Form, region: Region, feature: int, codes: Array) -> Array:
    """Return the numbers ``(n, m)`` that a model computes where one feature has other codes."""
    X = np.repeat(region.query[None], len(codes), axis=0)
    X[:, feature] = codes
    return form.inputs.compute(region.rows(X))


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
    cells: list[FeatureCells] = []
    for feature in np.unique(tested).tolist():
        own = np.flatnonzero(tested == feature)
        cells.append(_cut_feature(form, tests, region, feature, own))
    return cells


def _cut_feature(
    form: Form, tests: Tests, region: Region, feature: int, own: Indices
) -> FeatureCells:
    """Return the cells of one feature, whose tests are `own` ``(s,)``."""
    inputs = np.unique(tests.input[own])
    direction = form.inputs.direction[inputs]
    is_line = not (region.categorical[feature] or region.cyclic[feature])
    has_levels = any(int(test) in tests.levels for test in own)
    if not is_line or has_levels or (direction == 0).any():
        return _list_codes(form, tests, region, feature, own)
    # ``z < t`` is ``z <= s`` with the next smaller number s.
    threshold = tests.threshold[own]
    limit = np.where(tests.is_strict[own], np.nextafter(threshold, -np.inf), threshold)
    if len(inputs) == 1:
        cuts, rank = np.unique(limit, return_inverse=True)
        is_below = np.ones(len(own), dtype=np.bool_)
        return Line(feature, int(inputs[0]), cuts, own, rank.ravel(), is_below)
    places = np.searchsorted(inputs, tests.input[own])
    rises = direction[places] > 0
    codes = _cuts_in_codes(form, region, feature, tests.input[own], limit, rises)
    cuts, rank = np.unique(codes, return_inverse=True)
    return Line(feature, None, cuts, own, rank.ravel(), rises, *bracket(region, feature))


def _list_codes(form: Form, tests: Tests, region: Region, feature: int, own: Indices) -> Listing:
    """Return the cells of a feature whose codes can be listed."""
    choices = region.axes[feature].choices
    kind = region.axes[feature].feature
    if kind.has_levels:
        low, high = kind.code_range
        choices = np.union1d(np.arange(low, high + 1.0), region.query[feature])
    if choices is None:
        name = region.names[feature]
        raise NoProof(f"the model transforms {name!r} in a way that is not known to rise or fall")
    choices = choices[~np.isnan(choices)]
    numbers = numbers_at(form, region, feature, choices)
    return Listing(feature, choices, own, tests.outcomes(numbers)[:, own])


def _cuts_in_codes(
    form: Form, region: Region, feature: int, inputs: Indices, limit: Array, rises: Mask
) -> Array:
    """Return for each test ``(s,)`` the largest code on its lower side, by bisection."""
    low, high = bracket(region, feature)
    codes = np.array([low, high])
    ends = numbers_at(form, region, feature, codes)[:, inputs]  # (2, s)
    is_low_side = (ends <= limit) == rises
    below = np.full(len(limit), _as_ordered(np.array([low]))[0])
    above = np.full(len(limit), _as_ordered(np.array([high]))[0])
    each = np.arange(len(limit))
    for _ in range(BISECTIONS):
        middle = _middle(below, above)
        if np.array_equal(middle, below):
            break
        numbers = numbers_at(form, region, feature, _from_ordered(middle))[each, inputs]
        is_lower = (numbers <= limit) == rises
        below = np.where(is_lower, middle, below)
        above = np.where(is_lower, above, middle)
    found = _from_ordered(below)
    found[~is_low_side[0]] = -np.inf
    found[is_low_side[1]] = np.inf
    return found


def bracket(region: Region, feature: int) -> tuple[float, float]:
    """Return codes between which every allowed code of a feature lies."""
    low, high = region.axes[feature].feature.code_range
    ends = [low, high, region.low[feature], region.high[feature]]
    return float(np.nanmin(ends)), float(np.nanmax(ends))


def _as_ordered(x: Array) -> Indices:
    """Return whole numbers in the order of floats, neighbours one apart."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, _LOWEST - bits, bits)


def _middle(a: Indices, b: Indices) -> Indices:
    """Return whole numbers half way between others, rounded down, without overflow."""
    return np.asarray((a & b) + ((a ^ b) >> 1))


def _from_ordered(number: Indices) -> Array:
    """Return the floats of :func:`_as_ordered`."""
    bits = np.where(number < 0, _LOWEST - number, number)
    return np.ascontiguousarray(bits, dtype=np.int64).view(np.float64).copy()


# ── the cells of one query ──


@dataclass(frozen=True, eq=False)
class LocalCells:
    """The cells of one feature that a query may reach, in order.

    Parameters
    ----------
    feature : int
        Position of the feature.
    cell : array of int of shape (c,)
        The number of each cell in the table of the model.
    code : array of shape (c,)
        The allowed code nearest to the query in each cell.
    lowest, highest : array of shape (c,)
        The lowest and highest allowed code of each cell.
    home : int
        The place of the cell that holds the query's code.
    is_line : bool
        Whether cells are in order, so that costs rise on either side of `home`. Otherwise `home`
        is 0 and costs rise from cell to cell.
    """

    feature: int
    cell: Indices
    code: Array
    lowest: Array
    highest: Array
    home: int
    is_line: bool


def local_cells(
    form: Form,
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
    grids = _near_grids(region, all_cells, limit)
    numbers = _numbers_on_grids(form, region, grids)
    found: list[LocalCells] = []
    for cells in all_cells:
        if isinstance(cells, Listing):
            found.append(_local_listing(region, cells, limit))
        elif cells.feature in grids:
            codes = grids[cells.feature]
            own = codes
            if cells.input is not None:
                own = numbers[cells.feature][:, cells.input]
            at = np.searchsorted(cells.cuts, own, side="left")
            is_separate = cells.feature in separate
            found.append(_local_grid(region, cells.feature, codes, at, separate=is_separate))
        else:
            found.append(_local_interval(form, region, cells))
    return found


def _near_grids(
    region: Region, all_cells: Sequence[FeatureCells], limit: float
) -> dict[int, Array]:
    """Return the listed codes of features on a line that are near enough, by feature."""
    grids: dict[int, Array] = {}
    for cells in all_cells:
        choices = region.axes[cells.feature].choices
        if isinstance(cells, Line) and choices is not None:
            is_near = _costs(region, cells.feature, choices) <= limit
            grids[cells.feature] = choices[is_near]
    return grids


def _numbers_on_grids(form: Form, region: Region, grids: dict[int, Array]) -> dict[int, Array]:
    """Return the numbers ``(n, m)`` where each feature alone takes its codes, by feature."""
    if not grids:
        return {}
    sizes = [len(codes) for codes in grids.values()]
    feature = np.repeat(list(grids), sizes)
    X = np.repeat(region.query[None], len(feature), axis=0)
    X[np.arange(len(feature)), feature] = np.concatenate(list(grids.values()))
    numbers = form.inputs.compute(region.rows(X))
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    return dict(zip(grids, parts, strict=True))


def cells_of_codes(form: Form, region: Region, cells: FeatureCells, codes: Array) -> Indices:
    """Return the cell of each code ``(n,)``."""
    if isinstance(cells, Listing):
        return np.searchsorted(cells.codes, codes)
    numbers = codes
    if cells.input is not None:
        numbers = numbers_at(form, region, cells.feature, codes)[:, cells.input]
    return np.searchsorted(cells.cuts, numbers, side="left")


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


def _local_grid(
    region: Region, feature: int, choices: Array, at: Indices, *, separate: bool
) -> LocalCells:
    """Return the cells of a feature whose allowed codes, each in cell `at`, are listed."""
    if at[0] > at[-1]:  # the number falls as the code rises
        at = at[::-1]
        choices = choices[::-1]
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
    low = np.minimum(choices[starts], choices[ends])
    high = np.maximum(choices[starts], choices[ends])
    return LocalCells(feature, at[starts], choices[nearest], low, high, home, True)


def _local_interval(form: Form, region: Region, cells: Line) -> LocalCells:
    """Return the cells of a feature that may take any number, or that has a long grid."""
    feature = cells.feature
    axis = region.axes[feature]
    query = float(region.query[feature])
    ends = np.array([min(axis.low, query), query, max(axis.high, query)])
    first, home, last = cells_of_codes(form, region, cells, ends).tolist()
    turn = 1 if first <= last else -1  # the number may fall as the code rises
    up = np.arange(home + turn, last + turn, turn)
    down = np.arange(home - turn, first - turn, -turn)
    codes_up, far_up = _entries(form, region, cells, up, ends[2])
    codes_down, far_down = _entries(form, region, cells, down, ends[0])
    cell = np.concatenate([down[::-1], [home], up])
    near = np.concatenate([codes_down[::-1], [query], codes_up])
    far = np.concatenate([far_down[::-1], [query], far_up])
    low = np.minimum(near, far)
    high = np.maximum(near, far)
    place = len(down)
    # The cell at home ends where the next ones begin, or, if these have no code, at the limits.
    has_below = len(down) > 0 and np.isfinite(codes_down[0])
    has_above = len(up) > 0 and np.isfinite(codes_up[0])
    low[place] = min(query, np.nextafter(codes_down[0], np.inf)) if has_below else ends[0]
    high[place] = max(query, np.nextafter(codes_up[0], -np.inf)) if has_above else ends[2]
    is_there = np.isfinite(near)
    home_place = int(np.count_nonzero(is_there[:place]))
    cell, near, low, high = (part[is_there] for part in (cell, near, low, high))
    if turn < 0:
        cell, near, low, high = (part[::-1] for part in (cell, near, low, high))
        home_place = len(cell) - 1 - home_place
    return LocalCells(feature, cell, near, low, high, home_place, True)


def _entries(
    form: Form, region: Region, cells: Line, order: Sequence[int] | Indices, end: float
) -> tuple[Array, Array]:
    """Return the first allowed code of each cell on the way from the query to `end`, and the last.

    nan for a cell without an allowed code.
    """
    order = np.asarray(order, dtype=np.intp)
    feature = cells.feature
    query = float(region.query[feature])
    if not len(order):
        return np.empty(0), np.empty(0)
    is_up = end > query
    sign = 1 if is_up else -1
    rises = order[-1] >= order[0] if len(order) > 1 else _rises(form, region, cells, query, end)
    near = _as_ordered(np.full(len(order), query))
    far = _as_ordered(np.full(len(order), end))

    def is_beyond(codes: Array) -> Mask:
        """Return which codes have come to the cell, or past it."""
        at = cells_of_codes(form, region, cells, codes)
        return at >= order if rises else at <= order

    for guess in _guesses(cells, order, rises=rises, is_up=is_up):
        is_inside = _is_on_way(guess, query, end)
        codes = np.where(is_inside, guess, query)
        before = np.nextafter(codes, -sign * np.inf)
        hit = is_inside & is_beyond(codes) & ~is_beyond(before)
        near = np.where(hit, _as_ordered(before), near)
        far = np.where(hit, _as_ordered(codes), far)
    for _ in range(BISECTIONS):
        middle = _middle(near, far)
        if ((middle == near) | (middle == far)).all():
            break
        beyond = is_beyond(_from_ordered(middle))
        far = np.where(beyond, middle, far)
        near = np.where(beyond, near, middle)
    first = _on_axis(region, feature, _from_ordered(far), sign)
    last = np.append(_from_ordered(near)[1:], end)
    is_there = (last - first) * sign >= 0.0
    return np.where(is_there, first, np.nan), np.where(is_there, last, np.nan)


def _is_on_way(codes: Array, start: float, end: float) -> Mask:
    """Return which codes ``(n,)`` lie on the way from one code to another, the first excluded."""
    low, high = sorted([start, end])
    return np.asarray((low <= codes) & (codes <= high) & (codes != start))


def _rises(form: Form, region: Region, cells: Line, query: float, end: float) -> bool:
    """Return whether cells are numbered upwards on the way from the query to `end`."""
    start, stop = cells_of_codes(form, region, cells, np.array([query, end])).tolist()
    return bool(stop >= start)


def _guesses(cells: Line, order: Indices, *, rises: bool, is_up: bool) -> list[Array]:
    """Return codes at which cells may begin if the number is the code, or its 32-bit float."""
    cut = cells.cuts[order - 1] if rises else cells.cuts[order]
    after = np.nextafter(cut, np.inf)
    first = after if is_up else cut
    with np.errstate(over="ignore"):
        single = cut.astype(np.float32)
        single = np.where(single > cut, np.nextafter(single, np.float32(-np.inf)), single)
        following = np.nextafter(single, np.float32(np.inf))
    middle = 0.5 * (single.astype(np.float64) + following.astype(np.float64))
    return [
        first,
        middle,
        np.nextafter(middle, np.inf if is_up else -np.inf),
    ]


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
