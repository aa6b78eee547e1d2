"""Sweep: the search for models that are cheap to ask, without a surrogate.

Around a row, the query to begin with, every feature is changed alone over its values; then two at a
time, those pairs that are expected to reach the target at the lowest cost, or that show where the
expectation errs; and several at once, as if effects added up. The same again around the best rows
found, in finer steps. At last each change of the answers is shortened. Every row that was evaluated
may be an answer. That is about ten model calls of a hundred or two rows each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from bayescfx.arrays import Array, Indices, firsts, not_among, row_keys
from bayescfx.checks import check_whole
from bayescfx.errors import InfeasibleError
from bayescfx.search.moves import Moves, Pairs, chance, crossings, finer, single_moves, values_of
from bayescfx.search.objectives import Record
from bayescfx.search.question import Ending, Question, Rounds, best_first, effort, misses
from bayescfx.search.shorten import shorten, taken_back, to_settle
from bayescfx.search.starting import fresh_rows, usual_rows
from bayescfx.space.repair import project
from bayescfx.space.sampling import nothing_found


@dataclass(frozen=True)
class Sweep:
    """Change features alone, in pairs, several at once, and shorten: many rows, few model calls.

    Parameters
    ----------
    values : int, default 24
        How many values of each feature are tried alone, if the budget allows; of an unordered one
        twice as many levels.
    batch : int, default 200
        How many pairs go into one model call.

    Examples
    --------
    >>> Sweep(batch=500).values
    24
    """

    values: int = 24
    batch: int = 200

    def __post_init__(self) -> None:
        check_whole("values", self.values, 2)
        check_whole("batch", self.batch, 1)

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        ending = yield from self.first(question)
        rows = fresh_rows(question)  # where nothing was reached, the rest is left to chance
        while ending is None:
            # A hit by chance has needless changes: two thirds are kept to take them back.
            batch = list(islice(rows, min(self.batch, 1 + question.account.left // 3)))
            if not batch:
                return "exhausted"
            yield np.array(batch)
            if question.reached:
                yield from shorten(question, question.account.left // 2, batch=self.batch)
                ending = yield from self.first(question)
        return ending

    def first(self, question: Question) -> Generator[Array, Array, Ending | None]:
        """Yield rows as `rounds` does; return None, with budget left, if nothing was reached."""
        everything = question.region.enumerate(min(500, question.account.left))
        if everything is not None:
            if not question.region.changes(everything).any():
                raise InfeasibleError(nothing_found(question.region, question.rng))
            yield everything
            return "exhausted"
        run = _Run(self, question)
        yield from run.sweep()
        if not run.reached:
            return None
        return "converged" if run.satisfied else "nothing nearer expected"


class _Run:
    """The rows that one search has seen."""

    def __init__(self, settings: Sweep, question: Question) -> None:
        self.settings, self.question, self.region = settings, question, question.region
        X, y, query = question.X, question.y, question.region.query[None]
        kept = best_first(question, X, y)[:400] if len(y) > 400 else np.arange(len(y))
        self.X, self.y = X[kept], y[kept]
        # Where the query is, if it is allowed.
        self.own: list[int] = np.flatnonzero(~not_among(self.X, query)).tolist()
        if not self.own and self.region.contains(query)[0]:
            self.own = [len(self.y)]
            self.X, self.y = np.vstack([self.X, query]), np.append(self.y, question.output)
        self.origin = float(question.to_surrogate(np.array([question.output]))[0])
        self.values = values_of(self.region, settings.values)
        self.stepped = False  # whether changes were seen that do nothing more than shorter ones
        self._around: set[bytes] = set()  # rows that were looked around
        self._shortened: set[bytes] = set()  # answers whose changes were shortened
        self._record: tuple[int, Record | None] = 0, None  # for so many rows

    @property
    def reached(self) -> bool:
        """Whether any row reaches the target."""
        return self.record() is not None

    @property
    def spare(self) -> int:
        """How many rows may be spent before answers are shortened, or another search takes over."""
        account = self.question.account
        return account.left - account.budget // (10 if self.reached else 4)

    def ask(self, X: Array, most: int) -> Generator[Array, Array, Array]:
        """Evaluate the first `most` allowed rows of ``(k, d)``; the others' outputs are nan."""
        X = self.region.complete(X)
        allowed = self.region.contains(X)
        allowed &= np.cumsum(allowed) <= most
        y = np.full(len(X), np.nan)
        if allowed.any():
            y[allowed] = yield X[allowed]
        known = np.isfinite(y)
        self.X, self.y = np.vstack([self.X, X[known]]), np.append(self.y, y[known])
        return y

    def sweep(self) -> Generator[Array, Array, None]:
        """Look around the query and the best rows while that helps, then shorten answers."""
        question, values = self.question, self.settings.values
        yield from self.around(self.own, values, rounds=2)
        before, better, tried = self.standing(), True, 0
        while better and self.spare > 0 and not self.satisfied:
            if not self.reached and tried == 1:
                # More changes of the same rows do not do: a way to the target may begin elsewhere.
                own = project(self.region, self.region.query[None])
                rows = usual_rows(self.region, min(128, self.spare // 4), question.rng)
                yield from self.ask(np.vstack([own, rows]), self.spare)
            tried += 1
            yield from self.around(self.bases(max(2, question.n)), 8, rounds=1)
            before, better = self.compared(before)
            better |= before[0] == 0 and tried == 1
        yield from self.shorten()
        before, better = self.standing(), self.stepped and self.reached and question.weight > 0.0
        while better:
            yield from self.exchange()
            yield from self.shorten()
            before, better = self.compared(before)
        if question.n > 1 and self.reached:
            yield from shorten(question, question.account.left, batch=self.settings.batch)

    def record(self) -> Record | None:
        """Return the costs to beat, if any row reaches the target."""
        if self._record[0] != len(self.y):
            hits = self.question.accepted(self.y)
            best = Record(self.region, self.X[hits], self.question.n) if hits.any() else None
            self._record = len(self.y), best
        return self._record[1]

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

    def standing(self) -> tuple[int, float]:
        """Return how many answers there are, and what they cost in all or how near others come."""
        record = self.record()
        if record is None:
            outputs = self.question.to_surrogate(self.y)
            return 0, -float(misses(self.question.surrogate_acceptance, outputs).min(initial=1e300))
        return len(record.leaders), -float(record.cost[record.leaders].sum())

    def compared(self, before: tuple[int, float]) -> tuple[tuple[int, float], bool]:
        """Return the standing, and whether it is clearly better than another."""
        now = self.standing()
        return now, now[0] > before[0] or now[1] > before[1] + 0.01 * abs(before[1])

    def bases(self, n: int) -> list[int]:
        """Return positions of the best rows with different changes that were not looked around."""
        order = best_first(self.question, self.X, self.y)[:128]
        if self.reached:
            order = order[self.question.accepted(self.y[order])]
        changed = self.region.changes(self.X[order])
        first = firsts(changed)
        order = order[first[changed[first].any(axis=1)]]
        keys = zip(order.tolist(), row_keys(self.X[order]), strict=True)
        return [at for at, key in keys if key not in self._around][:n]

    def around(self, bases: list[int], values: int, rounds: int) -> Generator[Array, Array, None]:
        """Change single features of some rows, then pairs of them in so many rounds."""
        question, region = self.question, self.region
        if not bases or self.spare <= 0:
            return
        each = self.spare // (len(bases) * max(len(region.moving), 1))
        values = max(2, min(values, int(0.35 * each), 400 // max(len(region.moving), 1)))
        moves = []
        for at in bases:
            self._around.add(row_keys(self.X[[at]])[0])
            # Around the query the same rows every time: they may be known.
            base, below = (region.query, np.inf) if at in self.own else (self.X[at], self.below)
            moves.append(single_moves(region, base, values, self.values, below))
        y = yield from self.ask(np.vstack([part.X for part in moves]), self.spare)
        outputs, tables = question.to_surrogate(self.y[bases]), []
        for value, known in zip(outputs.tolist(), self.scored(moves, outputs, y), strict=True):
            self.stepped |= len(known.steps().X) < len(known.X)
            if rounds > 1 and self.stepped:  # it matters where steps are
                most = min(self.settings.batch, self.spare // 4)
                between = finer(region, known, self.values, self.below, most)
                y = yield from self.ask(between.X, self.spare)
                known = known.along(between._replace(gain=question.to_surrogate(y) - value))
            tables.append(Pairs(region, known.steps(), self.origin, value, self.below))
        for left in reversed(range(rounds)):
            # Around a row that is one already, what pairs do is known better.
            most = min(self.settings.batch // (3 - 2 * (rounds > 1)), self.spare) // len(bases)
            if most <= 0:
                return
            record = self.record()
            chosen = [self.choose(pairs, most, record, screen=left > 0) for pairs in tables]
            rows = [pairs.rows(some) for pairs, some in zip(tables, chosen, strict=True)]
            if left == rounds - 1:
                # Around an answer with few changes pairs do.
                many = [p for p in tables if record is None or rounds > 1 or p.changes > 2]
                rows += [self.several(pairs, record) for pairs in many]
            short = self.X[:0] if record is None else self.shorter(record)
            y = yield from self.ask(np.vstack([short, *rows]), self.spare + len(short))
            y = y[len(short) :]
            if left:
                for pairs, some in zip(tables, chosen, strict=True):
                    found, y = y[: len(some)], y[len(some) :]
                    pairs.learn(some, question.to_surrogate(found), self.below)

    def exchange(self) -> Generator[Array, Array, None]:
        """Try the answers with one change taken back, and another one or more of another.

        And with the cost of two changes shared otherwise.
        """
        record, region, below = self.record(), self.region, self.below
        assert record is not None  # called with answers only
        bases = taken_back(region, record.answers)
        moves = [single_moves(region, base, 8, self.values, below) for base in bases]
        moves = [part.take(effort(region, part.X) < 0.99 * below) for part in moves]
        y = yield from self.ask(np.vstack([bases, *(part.X for part in moves)]), self.unsettled)
        values, rows = self.question.to_surrogate(y[: len(bases)]), [self.X[:0]]
        for value, part in zip(values, self.scored(moves, values, y[len(bases) :]), strict=True):
            rows.append(crossings(region, part, value, self.question.surrogate_acceptance, 24))
        X = np.vstack(rows)
        record = self.record()
        assert record is not None
        X = np.vstack([self.shorter(record), self.traded(record), X])
        yield from self.ask(X[effort(region, X) < self.below], self.unsettled)

    def traded(self, record: Record) -> Array:
        """Return the answers with the cost of two changes shared otherwise, less in all."""
        region = self.region
        low, high = np.stack(np.triu_indices(12, 1)) / 12.0  # what lies between is saved
        rows = [self.X[:0]]
        for x, units in zip(record.answers, region.units(record.answers), strict=True):
            moved = np.flatnonzero((units > 0.0) & region.sliding)
            for i, j in islice(combinations(moved[np.argsort(-units[moved])], 2), 3):
                rows.append(np.repeat(x[None], len(low), axis=0))
                for k, share in ((i, low), (j, 1.0 - high)):
                    way = (x[k] - region.query[k]) * (units[i] + units[j]) / units[k]
                    rows[-1][:, k] = region.query[k] + way * share
        X = region.snap(np.vstack(rows))
        X = X[region.changes(X).any(axis=1)]
        return np.asarray(X[firsts(X)])

    @property
    def unsettled(self) -> int:
        """How many rows may be spent until what is left is needed to settle the answers."""
        record, left = self.record(), self.question.account.left
        return left - (0 if record is None else int(to_settle(self.region, record.answers).sum()))

    def scored(self, moves: list[Moves], values: Array, y: Array) -> list[Moves]:
        """Return moves from bases of some `values` with their gains, where outputs are known."""
        parts = np.split(self.question.to_surrogate(y), np.cumsum([len(p.X) for p in moves])[:-1])
        each = zip(moves, parts, values, strict=False)
        gained = [part._replace(gain=own - value) for part, own, value in each]
        return [part.take(np.isfinite(part.gain)) for part in gained]

    def worth(self, mean: Array, std: Array, cost: Array, bar: Array | float | None) -> Array:
        """Return what rows are worth: how likely they hit, times what they save if they do."""
        likely = chance(self.question.surrogate_acceptance, mean, std)
        if bar is None:
            return np.asarray(likely / np.maximum(cost, 1e-9))
        return np.asarray(likely * np.maximum(bar - cost, 0.0))

    def choose(self, pairs: Pairs, k: int, record: Record | None, *, screen: bool) -> Indices:
        """Return at most `k` pairs worth a look: the most promising, or of each two rays one."""
        bar = self.bar(pairs, record)
        some = np.flatnonzero(pairs.open if bar is None else pairs.open & (pairs.cost < bar))
        if not len(some):
            return some
        least = bar if bar is None or isinstance(bar, float) else bar[some]
        worth = self.worth(*pairs.guess(some), pairs.cost[some], least)
        lane, cost = pairs.lane[some], pairs.cost[some]
        if screen:
            # One of each two rays, well on the way to the costs that matter.
            typical = float(np.median(cost)) if bar is None else 0.7 * float(np.mean(bar))
            away = np.abs(cost - typical)
            gap = np.full(lane.max() + 1, np.inf)
            np.minimum.at(gap, lane, away)
            first = np.flatnonzero(away == gap[lane])
            first = first[np.unique(lane[first], return_index=True)[1]]
            top = some[first[np.argsort(-worth[first], kind="stable")[:k]]]
        else:
            if len(worth) > 6 * k:
                kept = np.argpartition(-worth, 6 * k)[: 6 * k]
                some, worth, lane = some[kept], worth[kept], lane[kept]
            # Neighbours tell the same: the k-th of two rays counts by the square root less.
            order = np.lexsort((-worth, lane))
            starts = np.flatnonzero(np.diff(lane[order], prepend=-1))
            sizes = np.diff(starts, append=len(order))
            rank = np.arange(len(order)) - np.repeat(starts, sizes)
            top = some[order[np.argsort(-worth[order] / np.sqrt(1.0 + rank), kind="stable")]]
            if not self.region.rules:
                top = top[:k]
            else:
                top = top[: 4 * k]
                pairs.open[top] = False
                top = top[self.region.contains(self.region.complete(pairs.rows(top)))][:k]
        pairs.open[top] = False
        return top

    def bar(self, pairs: Pairs, record: Record | None) -> Array | float | None:
        """Return the cost that each pair has to beat, one for all if one answer is wanted."""
        if record is None:
            return None
        if self.question.n == 1:
            return float(record.cost[record.leaders[0]])
        # Of many pairs, which have many rows, the most promising are looked at.
        some = np.flatnonzero(pairs.open & (pairs.cost < record.most))
        worth = self.worth(*pairs.guess(some), pairs.cost[some], record.most)
        some = some[np.argsort(-worth, kind="stable")[:4096]]
        bar = np.zeros(len(pairs.cost))
        bar[some] = record.beat(pairs.rows(some))
        return bar

    def several(self, pairs: Pairs, record: Record | None) -> Array:
        """Return rows with many moves at once, and others where outputs cross the target."""
        accepted = self.question.surrogate_acceptance
        bar = None if record is None else float(record.cost[record.leaders[-1]])
        most = 48 if record is None else 12
        found = [crossings(self.region, pairs.moves, pairs.value, accepted, most)]
        for low, high in accepted:
            # The middle; where there is none, a little more than is asked for.
            end = high if self.origin > high else low
            aim = 0.5 * (low + high)
            if not np.isfinite(aim):
                aim = end + 0.02 * (end - self.origin)
            rows, mean = pairs.combinations(aim)
            cost = effort(self.region, self.region.complete(rows))
            worth = self.worth(mean, np.full(len(rows), pairs.deviation), cost, bar)
            found.append(rows[np.argsort(-worth, kind="stable")[:12]])
        X = np.vstack(found)
        return X[firsts(X)]

    def shorten(self) -> Generator[Array, Array, None]:
        """Take back or shorten each change of the answers, by eighths of what may do."""
        before, at_once = np.inf, self.X[:0]
        while (record := self.record()) is not None:
            cost = float(record.cost[record.leaders].sum())
            if cost > 0.998 * before or not len(X := self.shorter(record)):
                return
            before, X = cost, np.vstack([at_once, X])
            # Of several answers each change is taken back at last.
            several = self.question.n > 1
            y = yield from self.ask(X, self.unsettled if several else self.question.account.left)
            at_once = self.at_once(record, X[self.question.accepted(y)])

    def at_once(self, record: Record, X: Array) -> Array:
        """Return the answers with more and more of what hits ``(n, d)`` by itself, dear first."""
        region, rows = self.region, [self.X[:0]]
        for x, cost in zip(record.answers, record.cost[record.leaders], strict=True):
            apart = (X != x) & ~region.recomputed & ~np.isnan(x)
            blocks = apart @ region.members.T > 0.0  # (n, blocks)
            order = np.argsort(effort(region, X), kind="stable")
            order = order[(blocks[order].sum(axis=1) == 1) & (effort(region, X[order]) < cost)]
            for k in order[firsts(blocks[order])]:
                x = np.where(apart[k], X[k], x)
                rows.append(x[None])
        return region.complete(np.vstack(rows))

    def shorter(self, record: Record) -> Array:
        """Return the answers with each of their changes taken back or shortened, each once.

        What saves most comes first, should rows not do for all.
        """
        rows, region = [self.X[:0]], self.region
        for x in record.answers:
            if x.tobytes() not in self._shortened:
                self._shortened.add(x.tobytes())
                rows += self._shorter(x)
        X = region.snap(np.vstack(rows))
        X = X[region.changes(X).any(axis=1)]
        return np.asarray(X[np.argsort(effort(region, X), kind="stable")])

    def _shorter(self, x: Array) -> list[Array]:
        """Return the row ``(d,)`` with the change of each block taken back or shortened."""
        region, query, found = self.region, self.region.query, list[Array]()
        apart = (self.X != x) & ~region.recomputed & ~np.isnan(x)  # (n, d)
        elsewhere = apart.sum(axis=1)
        for block in region.moving:
            moved = [j for j in block if x[j] != query[j]]
            if not moved:
                continue
            shares = np.zeros(1)
            if not (region.categorical | region.cyclic)[moved].any():  # levels have no length
                line = np.flatnonzero(elsewhere == apart[:, block].sum(axis=1))
                known = (self.X[line][:, moved] - query[moved]) / (x - query)[moved]
                along = np.ptp(known, axis=1) < 1e-6  # all features of the block by the same share
                missed = known[along & ~self.question.accepted(self.y[line]), 0]
                longest = missed[(missed >= 0.0) & (missed < 1.0)].max(initial=0.0)
                shares = longest + (1.0 - longest) * np.arange(8) / 8.0
            rows = np.repeat(x[None], len(shares), axis=0)
            rows[:, moved] = query[moved] + shares[:, None] * (x[moved] - query[moved])
            found.append(rows)
        return found
