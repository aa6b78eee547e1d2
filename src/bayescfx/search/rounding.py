"""Short decimals: the numbers of an answer, rounded to values that people write and type.

A search ends with numbers such as 3.9215000867, on the brink of the target. Each changed number
that may move by less than people notice becomes the shortest decimal that keeps the target reached,
away from the query and not onto the brink, for at most one per cent of the cost. The model scores
the rounded row like any other. A change too small to notice becomes the smallest that is noticed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import product
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.search.chosen_rows import ChosenRows, choose_rows
from bayescfx.search.exact.exact_search import prove_without
from bayescfx.search.exact.prover import ScoredCodes
from bayescfx.search.question import Question, Rounds, misses
from bayescfx.search.sweep import Sweep
from bayescfx.search.turns import CUT_SHORT
from bayescfx.space.axis import Axis
from bayescfx.space.neighbourhood import take_back
from bayescfx.space.region import Region


@dataclass(frozen=True)
class RoundingTuning:
    """Numbers of the rounding; set by judgement, tests of ten tables (2026-11-19)."""

    extra_cost: float = 0.01  # share of an answer's cost that rounding may add
    # Of the budget, kept for the rounding of each answer. `python -m benchmarks.quality`, group
    # "far" (2026-11-20): cost 0.97 of the baseline with one in 33 or 50, 1.08 with one in 20.
    one_row_in: int = 30
    most_in: int = 10  # not more than one in so many for all of them ...
    most_rows: int = 60  # ... and not more than these for each
    levels: int = 6  # numbers of decimals that are tried ...
    joint_levels: int = 3  # ... and of all numbers together, before each alone
    few: int = 3  # so many numbers are rounded up and down in all combinations
    larger_miss: float = 1.01  # a best guess may miss the target by so many times as much


TUNING = RoundingTuning()
#: Digits of a number that people may type; longer ones are left as they are.
MOST_DIGITS = 12
#: Decimals of a number that can't be shortened: more than any that can.
LONG = 99


class Value(NamedTuple):
    """A value of a feature, and with how many decimals it is written."""

    code: float
    decimals: int


class Choice(NamedTuple):
    """The values to which one number may be rounded, the shortest first."""

    feature: int
    away: list[Value]  # away from the query
    inward: list[Value]  # towards the query


def rows_for_rounding(question: Question) -> int:
    """Return how many rows of the budget are kept for rounding the answers."""
    if not question.short_decimals or not question.region.fine.any():
        return 0
    rows = question.n * (question.budget // TUNING.one_row_in)
    return min(rows, question.budget // TUNING.most_in, TUNING.most_rows * question.n)


def needs_rounding(question: Question) -> bool:
    """Return whether the answers of a question, whose search has ended, are to be rounded."""
    is_cut_short = question.stopped in (None, *CUT_SHORT)
    is_answered = question.error is None and len(question.y) > 0
    return question.short_decimals and is_answered and not is_cut_short


@dataclass(frozen=True)
class AnswerRounding:
    """Round the numbers of the answers to a question; a search that runs after another."""

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``.

        Sets ``question.chosen``, as far as the rows last.
        """
        was_reached = question.reached
        X, y, found = map(np.copy, choose_rows(question))
        changed = question.region.changes(X)
        rows = max(1, question.reserved // len(X))
        question.budget += question.reserved
        question.reserved = 0
        for k in range(len(X)):
            new = yield from _RowRounding(question, found[k], float(y[k]), rows).run()
            X[k] = new.row
            y[k] = new.output
            if (question.region.changes(X[[k]]) != changed[k]).any():
                found[k] = new.row  # another row, of which nothing is proven
            question.chosen = _each_once(question, ChosenRows(X, y, found))
        if question.reached != was_reached:  # a rounded guess has hit
            question.chosen = choose_rows(question)
        return "converged"


def _each_once(question: Question, rows: ChosenRows) -> ChosenRows:
    """Return rows without those that are the same when rounded; answers by cost."""
    kept = np.sort(firsts(rows.X))
    if question.reached:
        kept = kept[np.argsort(question.region.cost(rows.X[kept]), kind="stable")]
    return ChosenRows(rows.X[kept], rows.y[kept], rows.found[kept])


class _RowRounding:
    """The rounding of one row ``(d,)`` with an output, with at most so many model rows."""

    def __init__(self, question: Question, row: Array, output: float, rows: int) -> None:
        self.question = question
        self.region = question.region
        self.row = row
        self.n_rows = rows
        self.end = question.spent + rows
        self.is_cheap = question.evaluator.model.local
        self.is_hit = bool(question.accepted(np.array([output]))[0])
        self.found = self._scored(row, output)
        self.miss = float(misses(question.acceptance, np.array([output]))[0])
        noticeable = _noticeable(self.region, row)
        cost = max(float(self.region.cost(noticeable[None])[0]), self.found.cost)
        self.most_cost = (1.0 + TUNING.extra_cost) * cost
        changed = self.region.changes(row[None])[0] & self.region.fine
        self.features = np.flatnonzero(changed)
        self.choices = self._choices(noticeable)

    def _scored(self, row: Array, output: float) -> ScoredCodes:
        """Return a row ``(d,)`` with its output and cost."""
        return ScoredCodes(row, output, float(self.region.cost(row[None])[0]))

    def _choices(self, noticeable: Array) -> list[Choice]:
        """Return to which values each number may be rounded, given the row to start from."""
        region = self.region
        spare = TUNING.extra_cost * self.found.cost / max(len(self.features), 1)
        unit_costs = np.zeros(len(region.query))
        unit_costs[region.free] = region.unit_costs
        choices = []
        for j in self.features.tolist():
            code = float(noticeable[j])
            most = region.least[j]  # a change that was too small has a new length already
            if unit_costs[j] > 0.0 and code == self.row[j]:
                most = spare / unit_costs[j]
            away = _values(region, j, code, most, is_away=True)
            inward = _values(region, j, code, most, is_away=False)
            choices.append(Choice(j, away, inward))
        return choices

    def run(self) -> Generator[Array, Array, ScoredCodes]:
        """Return the rounded row, or the row itself if none is as good."""
        if not len(self.features):
            return self.found
        yield from self._round_together(range(TUNING.joint_levels))
        if self.found.row is self.row:
            yield from self._round_one_by_one()
        if self.found.row is self.row:
            yield from self._round_together(range(TUNING.joint_levels, TUNING.levels))
        if self.is_hit and _tiny_changes(self.region, self.found.row).any():
            yield from self._replace_tiny_changes()
        if self.is_hit and self.is_cheap and self.question.n == 1:
            yield from self._take_back()
        return self.found

    def _round_together(self, levels: Sequence[int]) -> Generator[Array, Array, None]:
        """Round all numbers, to so many more decimals than the shortest."""
        rows = _joint_rows(self.row, self.choices, levels)
        if len(rows) > self.n_rows:  # those towards the query mostly miss
            rows = rows[np.argsort(~self._are_farther(rows), kind="stable")]
        found = yield from self._first_good(rows)
        if found is not None:
            self.found = found

    def _first_good(self, rows: Array) -> Generator[Array, Array, ScoredCodes | None]:
        """Return the first of the rows ``(k, d)`` that is as good as the answer; None if none."""
        rows = self.region.complete(rows)
        rows = rows[self.region.contains(rows) & (self.region.cost(rows) <= self.most_cost)]
        size = 1  # the first is mostly good; of the others, twice as many at once each time
        while len(part := self._affordable(rows[:size])):
            y = yield part
            good = np.flatnonzero(self._is_good(y))
            if len(good):
                return self._scored(part[good[0]], float(y[good[0]]))
            rows = rows[size:]
            size *= 2
        return None

    def _are_farther(self, rows: Array) -> Mask:
        """Return which rows ``(k, d)`` are nowhere nearer to the query than the answer."""
        query = self.region.query
        return np.asarray((np.abs(rows - query) >= np.abs(self.row - query)).all(axis=1))

    def _affordable(self, rows: Array) -> Array:
        """Return the first of the rows ``(k, d)``, as many as the model may still score."""
        left = min(self.question.left, self.end - self.question.spent)
        n_new = np.cumsum(~self.question.known.holds(rows))
        return np.asarray(rows[n_new <= left])

    def _is_good(self, y: Array) -> Mask:
        """Return which outputs ``(k,)`` reach the target, or miss it by no more than the answer."""
        if self.is_hit:
            return self.question.accepted(y)
        most = TUNING.larger_miss * self.miss
        return np.asarray(misses(self.question.acceptance, y) <= most)

    def _round_one_by_one(self) -> Generator[Array, Array, None]:
        """Round each number alone, as far as the others allow."""
        for choice in self.choices:
            values = [*choice.away, *choice.inward]
            rows = np.repeat(self.found.row[None], len(values), axis=0)
            rows[:, choice.feature] = [value.code for value in values]
            found = yield from self._first_good(rows)
            if found is not None:
                self.found = found

    def _replace_tiny_changes(self) -> Generator[Array, Array, None]:
        """Take the best row that hits and has no change too small to notice, and round it."""
        question = self.question
        region = self.region
        tiny = _tiny_changes(region, self.found.row)
        is_proven = yield from prove_without(question, tiny)
        if self.is_cheap and not is_proven and question.left > 0:
            yield from Sweep().sweep_without(question, tiny)
        is_usable = question.accepted(question.y) & region.changes(question.X).any(axis=1)
        is_usable &= ~_tiny_changes(region, question.X).any(axis=1)
        usable = np.flatnonzero(is_usable)
        if len(usable):
            best = usable[region.cost(question.X[usable]).argmin()]
            row = question.X[best]
            self.found = yield from _RowRounding(
                question, row, float(question.y[best]), self.n_rows
            ).run()

    def _take_back(self) -> Generator[Array, Array, None]:
        """Take back changes that are not needed any more now that others went a little further."""
        while self.question.proof.conclusion != "optimal":  # else nothing cheaper hits
            rows = take_back(self.region, self.found.row[None])
            rows = rows[np.argsort(self.region.cost(rows), kind="stable")]
            found = yield from self._first_good(rows)
            if found is None:
                return
            self.found = found


# ── values ──


def _tiny_changes(region: Region, X: Array) -> Mask:
    """Return which changes of a row ``(d,)``, or of rows ``(n, d)``, are too small to notice."""
    size = np.abs(X - region.query)
    return np.asarray((size > 0.0) & (size < _least(region)))


def _least(region: Region) -> Array:
    """Return the smallest change ``(d,)`` that people notice, as a difference of two codes.

    Rounding may take something from it: ``0.9 - 0.8 < 0.1``.
    """
    precision = np.array([np.finfo(axis.narrow or np.float64).eps for axis in region.axes])
    return np.asarray(np.maximum(region.least - 2.0 * precision * np.abs(region.query), 0.0))


def _noticeable(region: Region, row: Array) -> Array:
    """Return a row ``(d,)`` with changes that are too small made as large as the smallest one."""
    move = row - region.query
    return np.where(_tiny_changes(region, row), region.query + np.sign(move) * region.least, row)


def _values(region: Region, j: int, code: float, most: float, *, is_away: bool) -> list[Value]:
    """Return decimals next to a code of feature `j`, the shortest first.

    At most so far from the code, on the side away from the query or on the side towards it.
    """
    axis = region.axes[j]
    exact = _decimal(axis, code)
    rounding = ROUND_CEILING if (code > axis.query) == is_away else ROUND_FLOOR
    decimals = _numbers_of_decimals(exact)
    rounded = [float(exact.quantize(Decimal(1).scaleb(-n), rounding)) for n in decimals.tolist()]
    codes = axis.round(np.array(rounded))
    is_usable = (codes >= axis.low) & (codes <= axis.high) & (axis.snap(codes) == codes)
    is_usable &= codes != axis.query
    is_usable &= np.abs(codes - code) <= most
    # still a change in the same direction that people notice
    is_usable &= (codes - axis.query) * np.sign(code - axis.query) >= _least(region)[j]
    codes = codes[is_usable]
    first = np.sort(firsts(codes[:, None]))[: TUNING.levels]
    return [Value(*pair) for pair in zip(codes[first], decimals[is_usable][first], strict=True)]


def _decimal(axis: Axis, code: float) -> Decimal:
    """Return the shortest decimal that means a code, in the type of its column."""
    return Decimal(str(code if axis.narrow is None else axis.narrow(code)))


def _numbers_of_decimals(exact: Decimal) -> Indices:
    """Return numbers of decimals, from those of one digit less than the number has."""
    return np.arange(MOST_DIGITS + 1) - exact.adjusted() - 1


def _joint_rows(row: Array, choices: Sequence[Choice], levels: Sequence[int]) -> Array:
    """Return rows ``(k, d)`` with all numbers rounded, those with the fewest decimals first."""
    picked: list[tuple[int, int, list[float]]] = []
    for level in levels:
        for sides in _sides(len(choices)):
            values = [
                _at_level(row, choice, level, is_away=side)
                for choice, side in zip(choices, sides, strict=True)
            ]
            decimals = sum(value.decimals for value in values)
            n_inward = len(sides) - sum(sides)
            picked.append((decimals, n_inward, [value.code for value in values]))
    picked.sort(key=lambda each: each[:2])
    rows = np.repeat(row[None], len(picked), axis=0)
    rows[:, [choice.feature for choice in choices]] = [codes for *_, codes in picked]
    return np.asarray(rows[np.sort(firsts(rows))])


def _sides(n: int) -> list[tuple[bool, ...]]:
    """Return which of `n` numbers are rounded away from the query: all ways if they are few."""
    if n <= TUNING.few:
        return list(product((True, False), repeat=n))
    return [(True,) * n, (False,) * n]


def _at_level(row: Array, choice: Choice, level: int, *, is_away: bool) -> Value:
    """Return the value of a choice with so many more decimals than the shortest."""
    values = choice.away if is_away else choice.inward
    values = values or choice.away or choice.inward
    if not values:
        return Value(float(row[choice.feature]), LONG)
    return values[min(level, len(values) - 1)]
