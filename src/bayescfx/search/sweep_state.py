"""The state of one sweep: evaluated rows, the costs to beat, and the rows left to spend."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, not_among
from bayescfx.search.objectives import Record
from bayescfx.search.question import Question, best_first, misses
from bayescfx.space.neighbourhood import Moves, line_values, n_to_settle


@dataclass(frozen=True)
class SweepTuning:
    """Numbers of the sweep.

    They were tuned together; no single one has its own measurement. Evidence for the whole:
    `python -m benchmarks efficiency` of 2026-11-18, with 2,000 rows. `cheap`: on diabetes with
    LightGBM every target is reached, at 1.00 of the exact optimum in the median and 1.03 at worst.
    `mixed`: 97.5 % of the targets on Adult are reached. `far` judges the climbs, `audit` the
    finisher. `make quality` watches all of them.
    """

    # Budget.
    usual_budget: int = 2000  # rows for which `values` and `batch` of `Sweep` are meant
    most_growth: float = 10.0  # budgets beyond so many times as much change nothing any more
    listed: int = 500  # regions with at most so many points are evaluated completely
    known_rows: int = 400  # of earlier rows at most so many are looked at, the best
    kept_of_hits: int = 10  # one row in so many is kept to finish answers ...
    kept_of_misses: int = 4  # ... or, while nothing hits, for another search

    # Single moves.
    few_values: int = 8  # values per feature around rows other than the query
    least_values: int = 2
    single_moves: int = 400  # around a row, for all features together
    single_share: float = 0.35  # of the spare rows go into single moves
    finer_of_moves: int = 2  # finer moves: at most one for so many single moves ...
    finer_of_spare: int = 4  # ... and one for so many spare rows

    # Rows to look around next.
    candidates: int = 128
    least_bases: int = 2
    simple_changes: int = 2  # around answers with at most so many changes pairs are enough
    later_pairs: int = 3  # around other rows than the query: one pair in so many of `batch`
    better: float = 0.01  # share by which answers must improve for another round

    # Far targets.
    far: float = 0.25  # share of the way to the target that calls for a climb


TUNING = SweepTuning()


class SweepState:
    """The rows that one sweep has seen, and what it has learnt from them.

    Parameters
    ----------
    question : Question
        The question that is swept.
    values : int
        How many values of a feature are tried around the query, with the usual budget.
    batch : int
        How many pairs go into one model call, with the usual budget.

    Attributes
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Scored rows: the best of earlier ones, the query, and those of this sweep.
    origin : float
        The query's output on the surrogate's scale.
    values : dict of int to array
        The values of each feature on a line, sorted.
    n_values, few_values, n_singles, batch : int
        How many values of a feature are tried around the query and around other rows, how many
        single moves around one row, and how many pairs in one call.
    starts : list of arrays of shape (d,), or None
        Where further climbs start; None before the first climb.
    is_cut : bool
        Whether some rows could not be afforded.
    has_steps : bool
        Whether longer changes were seen that do exactly the same as shorter ones.
    centres : set of bytes
        Keys of the rows whose surroundings were searched.
    shortened : set of bytes
        Keys of the answers whose changes were shortened.
    """

    def __init__(self, question: Question, values: int, batch: int) -> None:
        self.question = question
        self.region = question.region
        growth = min(max(1.0, question.budget / TUNING.usual_budget), TUNING.most_growth)
        root = np.sqrt(growth)
        self.batch = round(batch * growth)
        self.n_values = round(values * root)
        self.few_values = round(TUNING.few_values * root)
        self.n_singles = round(TUNING.single_moves * root)
        self.X, self.y = _earlier_rows(question)
        self.origin = float(question.to_surrogate(np.array([question.output]))[0])
        self.values = line_values(self.region, self.n_values)
        self.starts: list[Array] | None = None
        self.is_cut = False
        self.has_steps = False
        self.centres: set[bytes] = set()
        self.shortened: set[bytes] = set()
        self._record: Record | None = None
        self._n_recorded = 0  # rows that the record knows

    def record(self) -> Record | None:
        """Return the costs to beat, if any row reaches the target."""
        if self._n_recorded != len(self.y):
            self._n_recorded = len(self.y)
            hits = self.X[self.question.accepted(self.y)]
            self._record = Record(self.region, hits, self.question.n) if len(hits) else None
        return self._record

    @property
    def is_reached(self) -> bool:
        """Whether any row reaches the target."""
        return self.record() is not None

    @property
    def is_satisfied(self) -> bool:
        """Whether there are enough answers and nearer ones are worth nothing."""
        if self.question.weight > 0.0:
            return False
        record = self.record()
        return record is not None and len(record.leaders) >= self.question.n

    @property
    def cost_limit(self) -> float:
        """The cost from which on a row can't be an answer; infinite while answers are missing."""
        record = self.record()
        if record is None or len(record.leaders) < self.question.n:
            return np.inf
        return float(record.cost[record.leaders[-1]])

    @property
    def remaining_way(self) -> float:
        """The share of the way from the query's output to the target that is left."""
        miss = misses(self.question.acceptance, np.append(self.y, self.question.output))
        return float(miss.min() / miss[-1]) if miss[-1] > 0.0 else 0.0

    @property
    def spare(self) -> int:
        """Rows that may be spent before answers are finished, or another search takes over."""
        question = self.question
        kept = TUNING.kept_of_hits if self.is_reached else TUNING.kept_of_misses
        return question.left - question.budget // kept

    @property
    def spare_when_settled(self) -> int:
        """Rows that may be spent so that enough are left to settle the answers."""
        record = self.record()
        if record is None:
            return self.question.left
        return self.question.left - int(n_to_settle(self.region, record.answers).sum())

    def standing(self) -> tuple[int, float]:
        """Return the number of answers, and minus their total cost or the smallest miss."""
        record = self.record()
        if record is None:
            return 0, -float(misses(self.question.acceptance, self.y).min(initial=1e300))
        return len(record.leaders), -float(record.cost[record.leaders].sum())

    def is_better_than(self, before: tuple[int, float]) -> bool:
        """Return whether the standing is clearly better than an earlier one."""
        n_answers, merit = self.standing()
        return n_answers > before[0] or merit > before[1] + TUNING.better * abs(before[1])

    def ask(self, X: Array, most: int) -> Generator[Array, Array, Array]:
        """Evaluate the first `most` allowed rows of ``(k, d)``; the others' outputs are nan."""
        X = self.region.complete(X)
        allowed = self.region.contains(X)
        affordable = np.cumsum(allowed) <= most
        self.is_cut |= bool((allowed & ~affordable).any())
        allowed &= affordable
        y = np.full(len(X), np.nan)
        if allowed.any():
            y[allowed] = yield X[allowed]
        scored = np.isfinite(y)
        self.X = np.vstack([self.X, X[scored]])
        self.y = np.append(self.y, y[scored])
        return y

    def ask_misses(self, X: Array) -> Generator[Array, Array, Array]:
        """Return how far rows ``(k, d)`` are from the target, ``(k,)``; infinite if not scored."""
        y = yield from self.ask(X, self.spare)
        return np.nan_to_num(misses(self.question.acceptance, y), nan=np.inf)

    def with_gains(self, parts: list[Moves], base_outputs: Array, y: Array) -> list[Moves]:
        """Return moves with their gains, those that were scored.

        `base_outputs` are the outputs of the bases on the surrogate's scale; `y` the outputs of all
        moves, one part after another.
        """
        found = []
        end = 0
        outputs = self.question.to_surrogate(y)
        for moves, base_output in zip(parts, base_outputs, strict=True):
            start = end
            end = start + len(moves.X)
            moves = moves._replace(gain=outputs[start:end] - base_output)
            found.append(moves.take(np.isfinite(moves.gain)))
        return found


def _earlier_rows(question: Question) -> tuple[Array, Array]:
    """Return codes and outputs of the best rows scored so far, the query among them."""
    X = question.X
    y = question.y
    if len(y) > TUNING.known_rows:
        best = best_first(question, X, y)[: TUNING.known_rows]
        X = X[best]
        y = y[best]
    query = question.region.query[None]
    if not_among(query, X)[0] and question.region.contains(query)[0]:
        X = np.vstack([X, query])
        y = np.append(y, question.output)
    return X, y
