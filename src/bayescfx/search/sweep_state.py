"""What one sweep has seen: its rows, the costs to beat, and how many rows may still be spent."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from bayescfx.arrays import Array, firsts, not_among
from bayescfx.search.objectives import Record
from bayescfx.search.question import Question, best_first, misses
from bayescfx.search.shorten import to_settle
from bayescfx.search.single import Moves, values_of


class Swept:
    """The rows that one sweep has seen."""

    def __init__(self, question: Question, values: int, batch: int) -> None:
        self.question, self.region = question, question.region
        # Two thousand rows are the measure; up to ten times as many are made use of.
        more = min(max(1.0, question.account.budget / 2000.0), 10.0)
        self.batch, root = round(batch * more), np.sqrt(more)
        # How many values of a feature are tried around the query, or around other rows, and
        # how many of all features.
        self.several, self.few, self.many = (round(n * root) for n in (values, 8, 400))
        X, y, query = question.X, question.y, question.region.query[None]
        kept = best_first(question, X, y)[:400] if len(y) > 400 else np.arange(len(y))
        self.X, self.y = X[kept], y[kept]
        if not_among(query, self.X)[0] and self.region.contains(query)[0]:
            self.X, self.y = np.vstack([self.X, query]), np.append(self.y, question.output)
        self.origin = float(question.to_surrogate(np.array([question.output]))[0])
        self.values = values_of(self.region, self.several)
        self.starts: list[Array] | None = None  # of climbs to come, once there was one
        self.cut = False  # whether some rows could not be afforded
        self.stepped = False  # whether changes were seen that do nothing more than shorter ones
        self.around: set[bytes] = set()  # rows that were looked around
        self.shortened: set[bytes] = set()  # answers whose changes were shortened
        self._record: tuple[int, Record | None] = 0, None  # for so many rows

    def record(self) -> Record | None:
        """Return the costs to beat, if any row reaches the target."""
        if self._record[0] != len(self.y):
            hits = self.question.accepted(self.y)
            best = Record(self.region, self.X[hits], self.question.n) if hits.any() else None
            self._record = len(self.y), best
        return self._record[1]

    @property
    def reached(self) -> bool:
        """Whether any row reaches the target."""
        return self.record() is not None

    @property
    def satisfied(self) -> bool:
        """Whether nearer rows are not worth anything, and there are enough answers."""
        record = self.record() if self.question.weight == 0.0 else None
        return record is not None and len(record.leaders) >= self.question.n

    @property
    def below(self) -> float:
        """The cost from which on a row is no answer, however many there are."""
        record = self.record()
        if record is None or len(record.leaders) < self.question.n:
            return np.inf
        return float(record.cost[record.leaders[-1]])

    @property
    def left(self) -> float:
        """Which share of the way from the query to the target is left."""
        miss = misses(self.question.acceptance, np.append(self.y, self.question.output))
        return float(miss.min() / miss[-1]) if miss[-1] > 0.0 else 0.0

    @property
    def spare(self) -> int:
        """How many rows may be spent before answers are shortened, or another search takes over."""
        account = self.question.account
        return account.left - account.budget // (10 if self.reached else 4)

    @property
    def unsettled(self) -> int:
        """How many rows may be spent until what is left is needed to settle the answers."""
        record, left = self.record(), self.question.account.left
        return left - (0 if record is None else int(to_settle(self.region, record.answers).sum()))

    def standing(self) -> tuple[int, float]:
        """Return how many answers there are, and what they cost in all or how near others come."""
        record = self.record()
        if record is None:
            return 0, -float(misses(self.question.acceptance, self.y).min(initial=1e300))
        return len(record.leaders), -float(record.cost[record.leaders].sum())

    def compared(self, before: tuple[int, float]) -> tuple[tuple[int, float], bool]:
        """Return the standing, and whether it is clearly better than another."""
        now = self.standing()
        return now, now[0] > before[0] or now[1] > before[1] + 0.01 * abs(before[1])

    def ask(self, X: Array, most: int) -> Generator[Array, Array, Array]:
        """Evaluate the first `most` allowed rows of ``(k, d)``; the others' outputs are nan."""
        X = self.region.complete(X)
        allowed = self.region.contains(X)
        affordable = np.cumsum(allowed) <= most
        self.cut |= bool((allowed & ~affordable).any())
        allowed &= affordable
        y = np.full(len(X), np.nan)
        if allowed.any():
            y[allowed] = yield X[allowed]
        known = np.isfinite(y)
        self.X, self.y = np.vstack([self.X, X[known]]), np.append(self.y, y[known])
        return y

    def missed(self, X: Array) -> Generator[Array, Array, Array]:
        """Return how far rows ``(k, d)`` are from the target, ``(k,)``, infinite if not known."""
        y = yield from self.ask(X, self.spare)
        return np.nan_to_num(misses(self.question.acceptance, y), nan=np.inf)

    def scored(self, moves: list[Moves], values: Array, y: Array) -> list[Moves]:
        """Return moves from bases of some `values` with their gains, where outputs are known."""
        parts = np.split(self.question.to_surrogate(y), np.cumsum([len(p.X) for p in moves])[:-1])
        each = zip(moves, parts, values, strict=False)
        gained = [part._replace(gain=own - value) for part, own, value in each]
        return [part.take(np.isfinite(part.gain)) for part in gained]

    def piled(self, x: Array, X: Array) -> Array:
        """Return a row ``(d,)`` with the first change of others ``(n, d)``, the first two, and on.

        Of each block one change, the first of the rows that differ in it alone.
        """
        apart = self.region.changes(X, x)
        blocks = apart @ self.region.members.T > 0.0  # (n, blocks)
        alone = np.flatnonzero(blocks.sum(axis=1) == 1)
        rows = []
        for k in alone[firsts(blocks[alone])]:
            x = np.where(apart[k], X[k], x)
            rows.append(x)
        return self.region.complete(np.array(rows).reshape(-1, len(x)))
