"""The codes at which the tests of a model change their outcome.

A test compares a number that the model computes from one feature with a limit. The number rises or
falls with the feature's code, so that the outcome changes at one code. Most often the number is the
code itself, rounded to 32 bits or to a whole number; these codes are tried first. Other numbers,
such as scaled ones, are found by interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import time_limit
from bayescfx.models.readers.forms import Form
from bayescfx.space.region import Region


@dataclass(frozen=True)
class CutTuning:
    """Numbers of the search for cuts.

    Evidence: a call of a `ColumnTransformer` costs as much as its work on 3,000 rows, so that a few
    calls with many codes each are best. Diabetes with one-hot, scaler and GradientBoosting: 123 ms
    with quarters of intervals, 50 ms with sixteenths (2026-11-18).
    """

    halvings: int = 4  # of each interval in one round, all at once
    double: float = 2.0**-49  # numerical: rounding of a scaled number, share of the code
    single: float = 2.0**-22  # numerical: the same if the number has 32 bits
    curved: float = 2.0**-8  # share of the interval, for functions that are not linear
    most_rounds: int = 40  # numerical: enough for any two floats


TUNING = CutTuning()
#: Rows whose numbers are computed in one call (memory).
_MOST_ROWS = 1 << 16
#: The lowest whole number of 64 bits.
_LOWEST = np.int64(-(2**63))


@dataclass(frozen=True, eq=False)
class LineTests:
    """Tests of features on a line; arrays by test.

    Parameters
    ----------
    feature, input : array of int of shape (s,)
        The feature, and the number that is tested.
    limit : array of shape (s,)
        The test is true if the number is at most this.
    rises : mask of shape (s,)
        Whether the number rises with the code; otherwise it falls.
    low, high : array of shape (s,)
        Codes between which all allowed codes of the feature lie.
    """

    feature: Indices
    input: Indices
    limit: Array
    rises: Mask
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.feature)

    def take(self, chosen: Indices) -> LineTests:
        """Return some of the tests."""
        return LineTests(
            self.feature[chosen],
            self.input[chosen],
            self.limit[chosen],
            self.rises[chosen],
            self.low[chosen],
            self.high[chosen],
        )


def find_cuts(form: Form, region: Region, tests: LineTests) -> Array:
    """Return for each test ``(s,)`` the largest code on its lower side.

    It is -inf or inf if all codes between `low` and `high` are on one side.
    """
    if not len(tests):
        return np.empty(0)
    interval = _Interval(form, region, tests, _guesses(tests))
    found = np.where(interval.is_below_all, -np.inf, interval.below)
    found[interval.is_above_all] = np.inf
    open_places = np.flatnonzero(interval.is_open)
    if len(open_places):
        interval = interval.take(open_places)
        for _ in range(TUNING.most_rounds):
            interval.narrow(interval.probes())
            if not interval.is_open.any():
                break
        found[open_places] = interval.below
    return found


class _Interval:
    """Two codes per test, between which its outcome changes.

    Attributes
    ----------
    below, above : array of shape (s,)
        The codes; that of `below` is on the lower side.
    is_below_all, is_above_all : mask of shape (s,)
        Whether the change is below or above all allowed codes.
    """

    def __init__(self, form: Form, region: Region, tests: LineTests, guesses: Array) -> None:
        self.form = form
        self.region = region
        self.tests = tests
        self.below = tests.low.copy()
        self.above = tests.high.copy()
        codes = np.stack([self.below, self.above, *self._inside(guesses)])
        numbers = compute_numbers(form, region, tests, codes)
        self.numbers_below = numbers[0]
        self.numbers_above = numbers[1]
        is_lower = self._is_lower(numbers[:2])
        self.is_below_all = ~is_lower[0]
        self.is_above_all = is_lower[1]
        self._narrow(codes[2:], numbers[2:])

    def take(self, chosen: Indices) -> _Interval:
        """Return the intervals of some tests."""
        part = object.__new__(_Interval)
        part.form = self.form
        part.region = self.region
        part.tests = self.tests.take(chosen)
        for name in ("below", "above", "numbers_below", "numbers_above"):
            setattr(part, name, getattr(self, name)[chosen])
        part.is_below_all = self.is_below_all[chosen]
        part.is_above_all = self.is_above_all[chosen]
        return part

    @property
    def is_open(self) -> Mask:
        """Whether there are codes between the two ``(s,)``."""
        is_between = np.nextafter(self.below, np.inf) < self.above
        return np.asarray(is_between & ~self.is_below_all & ~self.is_above_all)

    def _is_lower(self, numbers: Array) -> Mask:
        """Return whether numbers ``(p, s)`` are those of codes below the cut."""
        return np.asarray((numbers <= self.tests.limit) == self.tests.rises)

    def narrow(self, codes: Array) -> None:
        """Narrow the intervals to codes ``(p, s)`` that lie inside them."""
        codes = self._inside(codes)
        self._narrow(codes, compute_numbers(self.form, self.region, self.tests, codes))

    def _inside(self, codes: Array) -> Array:
        """Return codes ``(p, s)``, those outside of the intervals replaced by an end."""
        is_inside = (self.below < codes) & (codes < self.above)
        return np.where(is_inside, codes, self.below)

    def _narrow(self, codes: Array, numbers: Array) -> None:
        """Narrow the intervals to codes with known numbers ``(p, s)``."""
        is_inside = codes > self.below
        is_lower = self._is_lower(numbers) | ~is_inside
        each = np.arange(codes.shape[1])
        first = np.where(is_lower, np.inf, codes).argmin(axis=0)
        is_nearer = ~is_lower[first, each]
        self.above = np.where(is_nearer, codes[first, each], self.above)
        self.numbers_above = np.where(is_nearer, numbers[first, each], self.numbers_above)
        is_lower &= is_inside & (codes < self.above)
        last = np.where(is_lower, codes, -np.inf).argmax(axis=0)
        is_nearer = is_lower[last, each]
        self.below = np.where(is_nearer, codes[last, each], self.below)
        self.numbers_below = np.where(is_nearer, numbers[last, each], self.numbers_below)

    def probes(self) -> Array:
        """Return codes ``(p, s)``: around an interpolated one, whole ones, and evenly spaced."""
        with np.errstate(all="ignore"):
            width = self.above - self.below
            rise = self.numbers_above - self.numbers_below
            likely = self.below + (self.tests.limit - self.numbers_below) / rise * width
            largest = np.maximum(np.abs(self.below), np.abs(self.above))
            whole = np.floor(likely)
        found = [*_spaced(self.below, self.above)]
        for radius in (TUNING.double * largest, TUNING.single * largest, TUNING.curved * width):
            found += [likely - radius, likely + radius]
        for code in (whole, whole + 1.0):
            found += [np.nextafter(code, -np.inf), code]
        return np.stack(found)


def compute_numbers(form: Form, region: Region, tests: LineTests, codes: Array) -> Array:
    """Return the number of each test for codes ``(p, s)`` of its feature; shape (p, s).

    A number depends on one feature alone. Each row therefore serves one test of every feature.
    """
    place = _places_within(tests.feature)
    n_rows = int(place.max()) + 1
    n_at_once = max(_MOST_ROWS // n_rows, 1)
    found = np.empty(codes.shape)
    for start in range(0, len(codes), n_at_once):
        time_limit.get().check()
        part = codes[start : start + n_at_once]
        X = np.repeat(region.query[None], len(part) * n_rows, axis=0)
        row = np.arange(len(part))[:, None] * n_rows + place
        X[row, tests.feature] = part
        found[start : start + n_at_once] = form.inputs.compute(region.rows(X))[row, tests.input]
    return found


def _places_within(groups: Indices) -> Indices:
    """Return the place of each element ``(s,)`` among those of the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    place = np.empty(len(groups), dtype=np.intp)
    place[order] = np.arange(len(groups)) - starts
    return place


def _guesses(tests: LineTests) -> Array:
    """Return codes ``(p, s)`` next to the cut if numbers are codes, or codes rounded somehow."""
    limit = tests.limit
    with np.errstate(over="ignore", invalid="ignore"):
        single = limit.astype(np.float32)
        single = np.where(single > limit, np.nextafter(single, np.float32(-np.inf)), single)
        following = np.nextafter(single, np.float32(np.inf))
        middle = 0.5 * (single.astype(np.float64) + following.astype(np.float64))
    whole = np.floor(limit)
    found = []
    for code in (limit, middle, whole + 1.0, whole + 0.5, whole):
        found += [np.nextafter(code, -np.inf), code, np.nextafter(code, np.inf)]
    return np.stack(found)


# ── floats as whole numbers ──


def as_ordered(x: Array) -> Indices:
    """Return whole numbers in the order of floats, neighbours one apart."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, _LOWEST - bits, bits)


def _spaced(low: Array, high: Array) -> list[Array]:
    """Return codes between others ``(s,)`` that cut the floats between them into equal parts."""
    first = as_ordered(low)
    last = as_ordered(high)
    points = [first, last]
    for _ in range(TUNING.halvings):
        middles = [(a & b) + ((a ^ b) >> 1) for a, b in pairwise(points)]  # without overflow
        points = [point for pair in zip(points, middles, strict=False) for point in pair] + [last]
    return [from_ordered(point) for point in points[1:-1]]


def from_ordered(number: Indices) -> Array:
    """Return the floats of :func:`as_ordered`."""
    bits = np.where(number < 0, _LOWEST - number, number)
    return np.ascontiguousarray(bits, dtype=np.int64).view(np.float64).copy()
