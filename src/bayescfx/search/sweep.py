"""Sweep: the search for models that are cheap to call, without a surrogate.

Around a row, at first the query, every feature is changed alone over its values. Then pairs of
these changes are tried: one of each two directions, then those expected to reach the target at the
lowest cost. Then several changes at once, as if effects added up. The same is repeated around the
best rows found, with fewer values. Targets that are too far for this are climbed to. At the end
each change of the answers is shortened. Every evaluated row may be an answer. That takes about ten
model calls of one or two hundred rows each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts, not_among, row_keys
from bayescfx.checks import check_whole
from bayescfx.errors import InfeasibleError
from bayescfx.search.alternatives import Part, search_alternatives, whole_region, with_fixed
from bayescfx.search.climb import climb, remaining_way
from bayescfx.search.finish import finish, shorter_rows
from bayescfx.search.objectives import Record
from bayescfx.search.pairs import Pairs
from bayescfx.search.question import Question, Rounds, Stopped, best_first, misses
from bayescfx.search.single_values import try_single_values
from bayescfx.search.start import fresh_rows
from bayescfx.search.trim import trim, trim_answers
from bayescfx.space.neighbourhood import (
    Moves,
    cumulative_moves,
    finer_moves,
    line_values,
    single_moves,
)
from bayescfx.space.sampling import no_row_error


@dataclass(frozen=True)
class SweepTuning:
    """Numbers of the sweep.

    Beside each is what half and double of it change, in per cent of cost / of rows, with 2,000 rows
    (`python -m benchmarks.tuning`, 140 questions, 2026-11-18); 0 / 0 is no change of any answer.
    """

    # Budget. Growth is not measured: it begins beyond 2,000 rows.
    usual_budget: int = 2000  # rows for which `values` and `batch` are meant; half +0.3 / +35
    most_growth: float = 10.0  # budgets beyond so many times as much change nothing any more
    listed: int = 500  # regions with at most so many points are evaluated completely; 0 / 0
    known_rows: int = 400  # of earlier rows at most so many are looked at, the best; 0 / 0
    # One row in so many is kept to finish answers; half +0.4 / -0.8, double +0.3 / +0.1 ...
    kept_of_hits: int = 10
    kept_of_misses: int = 4  # ... or, while nothing hits, for another search; half 0 / 0
    # Share of the budget that take-back may need for answers with many changes: 22 changes
    # take at most 22 * 23 rows, a quarter of 2,000.
    kept_for_take_back: float = 0.25

    # Share of the budget kept for further answers, if several are wanted; see `alternatives`. And
    # rows kept for each to take back what it does not need. Set by judgement.
    for_alternatives: float = 0.4
    kept_per_answer: int = 20

    # Single moves.
    # Values per feature around rows other than the query; half +1.7 / -7, double +0.8 / +10.
    few_values: int = 8
    # Around a row, for all features together; half +3.8 / -8, double +0.2 / +2.7.
    single_moves: int = 200
    single_share: float = 0.35  # of the spare rows; half +1.4 / -1.3, double +0.2 / +0.1
    # One move between two others for so many of these; half -0.1 / +2.8, double +0.8 / -2.8.
    finer: int = 2

    # Rows to look around next.
    least_bases: int = 2  # half +0.1 / -8 (+1.3 on tables kept apart), double +0.8 / +9
    # One pair in so many of `batch` around other rows; half 0 / +3.7, double +0.2 / -4.7.
    later_pairs: int = 3
    # Share of the spare rows for rounds around rows with few changes, while answers have more. For
    # a forest with 30 features (15 queries of breast cancer, 2026-11-19) none costs +11 %, 0.7 0 %.
    sparse_share: float = 0.5
    # Rows that miss are searched around if they cost less than this share of the answers, where no
    # proof follows; on 60 made tables (2026-11-19) 0.8 and 0.95 at most 0.1 / 0.2, none +0.7 / -16.
    near_miss: float = 0.9
    # So many rows with which a climb has hit are searched for changes that they do not need. With
    # the labels of that forest 1 costs +63 %, 4 +18 %, 12 -2 %.
    trimmed_starts: int = 8
    # Pairs are enough around answers with at most so many changes; half 0 / +0.1, double 0 / -0.1.
    few_changes: int = 2
    better: float = 0.02  # share by which answers must improve; half +0.1 / +4, double +0.1 / -5
    # Share of the way to the target that calls for a climb at once. Not reached by the questions
    # of benchmarks.tuning; see `ClimbTuning`.
    far: float = 0.25

    # Finishing: shares of an unknown part of a change, and the share below which a round must lower
    # the total cost of the answers. Every other fraction +0.6 / -2.3; `shorter` double +0.1 / +2.8.
    fractions: tuple[float, ...] = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)
    shorter: float = 0.998


TUNING = SweepTuning()


@dataclass(frozen=True)
class Sweep:
    """Change features alone, in pairs, several at once, and shorten: many rows, few model calls.

    Budgets above 2,000 rows make it more thorough, up to 20,000: `batch` grows in proportion,
    `values` as the square root.

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
        stopped = yield from self.first(question)
        rows = fresh_rows(question)  # where nothing was reached, random rows follow
        while stopped is None:
            # A random hit has needless changes: two thirds are kept to take them back.
            batch = list(islice(rows, min(self.batch, 1 + question.left // 3)))
            if not batch:
                return "exhausted"
            yield np.array(batch)
            if question.reached:
                yield from finish(question, question.left // 2, batch=self.batch)
                stopped = yield from self.first(question)
        return stopped

    def first(
        self, question: Question, reserve: int = 0
    ) -> Generator[Array, Array, Stopped | None]:
        """Yield rows as `rounds` does; return None, with budget left, if nothing was reached.

        So many rows of the budget are left in `reserve`.
        """
        everything = question.region.enumerate(min(TUNING.listed, question.left))
        if everything is not None:
            if not question.region.changes(everything).any():
                raise no_row_error(question.region, question.rng)
            yield everything
            return "exhausted"
        # A sweep scores a thousand rows around its own query. Those of other queries lie around
        # theirs: to look at them takes longer than the sweep, and they are rarely nearer.
        question.inside.is_own_only = True
        rows = int(TUNING.for_alternatives * question.budget) if question.n > 1 else 0
        # A large budget continues the sweep of the usual one: it can only lead to nearer answers.
        for budget in sorted({min(question.budget, TUNING.usual_budget), question.budget}):
            others = reserve + rows + question.budget - budget
            state = SweepState(question, self.values, self.batch, others, budget=budget)
            yield from _sweep(state)
        if state.record is None:
            question.inside.is_own_only = False
            return None
        if state.is_satisfied:
            return "converged"
        is_cut = state.is_cut
        if question.n > 1:
            is_cut |= yield from self._search_alternatives(question, reserve)
            state = SweepState(question, self.values, self.batch, reserve)
            if state.standing[0] < question.n:  # all rows that are left
                yield from _sweep(state)
        return "budget" if is_cut else "nothing nearer expected"

    def sweep_without(self, question: Question, features: Mask) -> Generator[Array, Array, None]:
        """Sweep the rows in which some features ``(d,)`` stay as they are, with all rows left."""
        none = np.empty((0, len(features)), dtype=np.bool_)
        part = Part(with_fixed(question.region, features), none)
        if part.region.moving:
            yield from self._sweep_part(question, part, question.left)

    def _sweep_part(
        self, question: Question, part: Part, rows: int
    ) -> Generator[Array, Array, SweepState | None]:
        """Sweep a part of the region with at most so many rows; None if it has no row."""
        everything = part.region.enumerate(min(TUNING.listed, rows))
        state = SweepState(question, self.values, self.batch, question.left - rows, part)
        try:
            if everything is not None:
                yield from state.ask(everything, rows)
            else:
                yield from _sweep(state)
        except InfeasibleError:  # a rule needs a feature to change that the part fixes
            return None
        return state

    def _search_alternatives(
        self, question: Question, reserve: int
    ) -> Generator[Array, Array, bool]:
        """Sweep for further answers; return whether some rows could not be afforded."""
        is_cut = False

        def sweep(part: Part, rows: int) -> Generator[Array, Array, Array | None]:
            nonlocal is_cut
            state = yield from self._sweep_part(question, part, rows)
            if state is None or state.record is None:
                return None
            is_cut |= state.is_cut
            nearest: Array = state.record.answers[0]
            return nearest

        kept = min(question.n * TUNING.kept_per_answer, question.left // 2)
        yield from search_alternatives(question, question.left - reserve - kept, sweep)
        yield from finish(question, question.left - reserve, batch=self.batch)
        return is_cut


class SweepState:
    """The rows that one sweep has seen, the costs to beat, and the rows left to spend.

    Parameters
    ----------
    question : Question
        The question that is swept.
    values : int
        How many values of a feature are tried around the query, with the usual budget.
    batch : int
        How many pairs go into one model call, with the usual budget.
    reserve : int
        Rows of the budget that are left for another search.
    part : Part, optional
        The part of the region that is swept, for one answer; by default all of it.
    budget : int, optional
        The number of rows that the sweep is planned for; by default the question's budget.

    Attributes
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Scored rows: the best of earlier ones, the query, and those of this sweep.
    record : Record or None
        The costs to beat, if any row reaches the target.
    cost_limit : float
        The cost from which on a row can't be an answer; infinite while answers are missing.
    standing : tuple of int and float
        The number of answers, and minus their total cost, or minus the smallest miss.
    origin : float
        The query's output on the surrogate's scale.
    values : dict of int to array
        The values of each feature on a line, sorted.
    starts : list of arrays of shape (d,), or None
        Where further climbs start; None before the first climb.
    has_steps : bool
        Whether longer changes were seen that do exactly the same as shorter ones.
    n_values, few_values, n_singles, batch : int
        How many values of a feature are tried around the query and around other rows, how many
        single moves around one row, and how many pairs in one call.
    is_cut : bool
        Whether some rows could not be afforded.
    centres : set of bytes
        Keys of the rows whose surroundings were searched.
    shortened : set of bytes
        Keys of the answers whose changes were shortened.
    trimmed : set of bytes
        Keys of rows that hit and of which no change can be taken back alone.
    """

    def __init__(
        self,
        question: Question,
        values: int,
        batch: int,
        reserve: int = 0,
        part: Part | None = None,
        budget: int | None = None,
    ) -> None:
        self.question = question
        self.budget = budget or question.budget
        self.reserve = reserve
        self.part = part or whole_region(question)
        self.region = self.part.region
        self.n = 1 if part else question.n
        growth = min(max(1.0, self.budget / TUNING.usual_budget), TUNING.most_growth)
        root = np.sqrt(growth)
        self.batch = round(batch * growth)
        self.n_values = round(values * root)
        self.few_values = round(TUNING.few_values * root)
        self.n_singles = round(TUNING.single_moves * root)
        self.origin = float(question.to_surrogate(np.array([question.output]))[0])
        self.values = line_values(self.region, self.n_values)
        self.starts: list[Array] | None = None
        self.has_steps = False
        self.is_cut = False
        self.centres: set[bytes] = set()
        self.shortened: set[bytes] = set()
        self.trimmed: set[bytes] = set()
        self.X = question.X
        self.y = question.y
        if part is not None:
            is_inside = part.contains(self.X)
            self.X = self.X[is_inside]
            self.y = self.y[is_inside]
        if len(self.y) > TUNING.known_rows:
            best = best_first(question, self.X, self.y)[: TUNING.known_rows]
            self.X = self.X[best]
            self.y = self.y[best]
        query = self.region.query[None]
        is_new = not_among(query, self.X) & self.part.contains(query)
        self._add(query[is_new], np.array([question.output])[is_new])

    def _add(self, X: Array, y: Array) -> None:
        """Add scored rows ``(k, d)`` with outputs ``(k,)``."""
        self.X = np.vstack([self.X, X])
        self.y = np.append(self.y, y)
        self.record: Record | None = None
        self.cost_limit = np.inf
        hits = self.X[self.question.accepted(self.y)]
        if not len(hits):
            miss = misses(self.question.acceptance, self.y).min(initial=1e300)
            self.standing = (0, -float(miss))
            return
        self.record = Record(self.region, hits, self.n)
        costs = self.record.cost[self.record.leaders]
        self.standing = (len(costs), -float(costs.sum()))
        if len(costs) >= self.n:
            self.cost_limit = float(costs[-1])

    @property
    def is_satisfied(self) -> bool:
        """Whether there are enough answers and nearer ones are worth nothing."""
        return self.region.price.weight == 0.0 and self.standing[0] >= self.n

    @property
    def left(self) -> int:
        """Rows that the sweep may still spend."""
        return self.question.left - self.reserve

    @property
    def spare(self) -> int:
        """Rows that may be spent before answers are finished, or another search takes over."""
        if self.record is None:
            return self.left - self.budget // TUNING.kept_of_misses
        return self.left - max(self.budget // TUNING.kept_of_hits, self.for_take_back())

    def for_take_back(self) -> int:
        """Return the rows kept to take back what the answers do not need."""
        assert self.record is not None  # else there are no answers
        n_changes = self.region.changes(self.record.answers).sum(axis=1)
        rows = int((n_changes * (n_changes + 1)).sum())
        return min(rows, int(TUNING.kept_for_take_back * self.budget))

    def has_wide_answers(self, n_changes: int) -> bool:
        """Return whether answers are missing or the best has more than so many changes."""
        if self.record is None:
            return True
        best = self.record.answers[:1]
        return bool(self.region.changes(best).sum() > n_changes)

    def output_of(self, x: Array) -> float:
        """Return the output of a scored row ``(d,)``."""
        return float(self.y[(x == self.X).all(axis=1).argmax()])

    def is_better_than(self, before: tuple[int, float]) -> bool:
        """Return whether the standing is clearly better than an earlier one."""
        n_answers, merit = self.standing
        return n_answers > before[0] or merit > before[1] + TUNING.better * abs(before[1])

    def ask(self, X: Array, most: int) -> Generator[Array, Array, Array]:
        """Return the outputs ``(k,)`` of allowed rows, at most so many new ones; else nan."""
        X = self.region.complete(X)
        allowed = self.part.contains(X)
        affordable = np.cumsum(allowed & ~self.question.known.holds(X)) <= most
        self.is_cut |= bool((allowed & ~affordable).any())
        allowed &= affordable
        y = np.full(len(X), np.nan)
        if allowed.any():
            y[allowed] = yield X[allowed]
            scored = np.isfinite(y)
            self._add(X[scored], y[scored])
        return y


def _sweep(state: SweepState) -> Generator[Array, Array, None]:
    """Search around the query and the best rows while that helps, then finish the answers."""
    if state.spare > 0:
        yield from _search_around_query(state)
        if state.is_satisfied:
            return
        yield from _trim_wide_answers(state)
        yield from _search_sparsely(state)
    is_first = True
    while state.spare > 0 and not state.is_satisfied:
        before = state.standing
        # In the first round only targets that are far away are climbed to.
        if state.record is None and not (is_first and remaining_way(state) <= TUNING.far):
            yield from climb(state)
            yield from _trim_starts(state)
        # Where the model has no steps, climbs lead on better, as long as there are starts.
        if state.record is not None or state.has_steps or not state.starts:
            yield from _search_around(state, _next_bases(state))
        yield from _trim_wide_answers(state)
        is_stuck = state.record is not None or not (is_first or state.starts)
        is_first = False
        if is_stuck and not state.is_better_than(before):
            break
    if state.is_satisfied:
        return
    if state.question.proof.conclusion is None:  # else another proof follows, which sees more
        yield from _search_near_misses(state)
    yield from try_single_values(state)
    yield from trim_answers(state, state.left)
    yield from _shorten_answers(state)
    yield from trim_answers(state, state.left)


def _trim_wide_answers(state: SweepState) -> Generator[Array, Array, None]:
    """Take back what answers with many changes do not need, before rows around them are tried."""
    yield from trim_answers(state, state.left, TUNING.few_changes + 1)


def _trim_starts(state: SweepState) -> Generator[Array, Array, None]:
    """Take back what the nearest rows that hit do not need; they lead to different answers."""
    is_hit = state.question.accepted(state.y)
    hits = state.X[is_hit]
    hits = hits[state.region.changes(hits).sum(axis=1) > TUNING.few_changes]
    order = np.argsort(state.region.cost(hits), kind="stable")
    for x in hits[order[: TUNING.trimmed_starts]]:
        yield from trim(state, x, state.spare)


def _search_sparsely(state: SweepState) -> Generator[Array, Array, None]:
    """Search around rows with few changes that miss, two more from round to round.

    While answers have more changes, and a share of the spare rows is expected to be enough to reach
    the target: if each round leads as much nearer as the one before.
    """
    n_changes = TUNING.few_changes
    rows_of_a_round = state.n_singles + state.batch // TUNING.later_pairs
    rows = TUNING.sparse_share * state.spare
    before = float(misses(state.question.acceptance, np.array([state.question.output]))[0])
    while min(rows, state.spare) > 0 and state.has_wide_answers(n_changes):
        miss = _sparse_miss(state, n_changes)
        if miss * rows_of_a_round > (before - miss) * rows:
            return
        spent = state.question.spent
        some = _cheap_misses(state)
        some = some[state.region.changes(state.X[some]).sum(axis=1) <= n_changes]
        yield from _search_around(state, _fresh_bases(state, some))
        yield from _trim_wide_answers(state)
        rows -= max(state.question.spent - spent, 1)
        before = miss
        n_changes += TUNING.few_changes


def _search_near_misses(state: SweepState) -> Generator[Array, Array, None]:
    """Search around rows that cost less than the answers and nearly reach the target."""
    while state.record is not None and state.spare > 0:
        before = state.standing
        some = _cheap_misses(state, TUNING.near_miss)
        yield from _search_around(state, _fresh_bases(state, some))
        yield from _trim_wide_answers(state)
        if not state.is_better_than(before):
            return


def _cheap_misses(state: SweepState, share: float = 1.0) -> Indices:
    """Return the positions of rows that miss and cost less than a share of the answers."""
    is_hit = state.question.accepted(state.y)
    is_cheap = state.region.cost(state.X) < share * state.cost_limit
    return np.flatnonzero(~is_hit & is_cheap)


def _sparse_miss(state: SweepState, n_changes: int) -> float:
    """Return the smallest miss of rows with at most `n_changes` changes."""
    is_sparse = state.region.changes(state.X).sum(axis=1) <= n_changes
    return float(misses(state.question.acceptance, state.y[is_sparse]).min(initial=np.inf))


def _next_bases(state: SweepState) -> Indices:
    """Return the best rows with different changes whose surroundings were not searched yet.

    Only rows that hit, once there are any.
    """
    some = np.arange(len(state.y))
    if state.record is not None:
        some = np.flatnonzero(state.question.accepted(state.y))
    return _fresh_bases(state, some)


def _fresh_bases(state: SweepState, some: Indices) -> Indices:
    """Return the best of some rows, with different changes, that were not searched around yet.

    All as positions in `state.X`.
    """
    order = some[best_first(state.question, state.X[some], state.y[some])]
    changed = state.region.changes(state.X[order])
    first = firsts(changed)
    order = order[first[changed[first].any(axis=1)]]
    is_new = [key not in state.centres for key in row_keys(state.X[order])]
    n = max(TUNING.least_bases, state.n)
    return np.asarray(order[np.array(is_new, dtype=bool)][:n])


def _search_around_query(state: SweepState) -> Generator[Array, Array, None]:
    """Change single features of the query, then pairs of them, thoroughly.

    A first set of pairs has one of each two directions; a second one is expected to hit.
    """
    region = state.region
    # No limit of the cost: around the query the same rows every time, since they may be known.
    query = np.array([state.origin])
    [moves] = yield from _ask_singles(state, [region.query], query, state.n_values, np.inf)
    state.has_steps = moves.has_steps
    if state.has_steps:  # it matters where the steps are
        most = min(state.n_singles, state.spare) // TUNING.finer
        finer = finer_moves(region, moves, state.values, state.cost_limit, most)
        y = yield from state.ask(finer.X, state.spare)
        moves = moves.merge(finer._replace(gain=state.question.to_surrogate(y) - state.origin))
    accepted = state.question.surrogate_acceptance
    pairs = Pairs(
        region, moves.distinct_gains(), accepted, state.origin, state.origin, state.cost_limit
    )
    most = min(state.batch, state.spare)
    if most > 0:
        rows = [pairs.screen(most, state.record), pairs.several(state.record)]
        yield from _ask_pairs(state, rows)
    most = min(state.batch, state.spare)
    if most > 0:
        yield from _ask_pairs(state, [pairs.choose(most, state.record)])


def _search_around(state: SweepState, at: Indices) -> Generator[Array, Array, None]:
    """Change single features of the rows at some positions, then pairs of them.

    Also several at once, except around answers with few changes.
    """
    if not len(at):
        return
    bases = state.X[at]
    state.centres.update(row_keys(bases))
    outputs = state.question.to_surrogate(state.y[at])
    parts = yield from _ask_singles(state, list(bases), outputs, state.few_values, state.cost_limit)
    each = min(state.batch // TUNING.later_pairs, state.spare) // len(at)
    if each <= 0:
        return
    accepted = state.question.surrogate_acceptance
    rows = []
    n_changes = state.region.changes(bases).sum(axis=1)
    for moves, output, n_changed in zip(parts, outputs.tolist(), n_changes, strict=True):
        state.has_steps |= moves.has_steps
        moves = moves.distinct_gains()
        pairs = Pairs(state.region, moves, accepted, state.origin, output, state.cost_limit)
        rows.append(pairs.choose(each, state.record))
        if state.record is None or n_changed > TUNING.few_changes:
            rows.append(pairs.several(state.record))
    yield from _ask_pairs(state, rows)


def _ask_singles(
    state: SweepState, bases: list[Array], outputs: Array, n_values: int, limit: float
) -> Generator[Array, Array, list[Moves]]:
    """Evaluate single moves from some rows; return those that were scored, by row.

    `outputs` are those of the rows, on the surrogate's scale. At most `n_values` values of each
    feature; moves that can't be part of a row that costs less than `limit` are left out.
    """
    affordable = min(TUNING.single_share * state.spare / len(bases), state.n_singles)
    n_values = min(n_values, int(affordable / max(len(state.region.moving), 1)))
    n_values = max(n_values, 2)  # one on either side
    parts = []
    for base in bases:
        parts.append(single_moves(state.region, base, n_values, state.values, limit))
    y = yield from state.ask(np.vstack([moves.X for moves in parts]), state.spare)
    scores = state.question.to_surrogate(y)
    found = []
    end = 0
    for moves, output in zip(parts, outputs.tolist(), strict=True):
        begin = end
        end = begin + len(moves.X)
        gain = scores[begin:end] - output
        found.append(moves._replace(gain=gain).take(np.isfinite(gain)))
    return found


def _ask_pairs(state: SweepState, rows: list[Array]) -> Generator[Array, Array, None]:
    """Evaluate rows, and the answers so far with shorter changes."""
    short = _shorter_answers(state)
    yield from state.ask(np.vstack([short, *rows]), state.spare + len(short))


def _shorter_answers(state: SweepState) -> Array:
    """Return the answers with each of their changes taken back or shortened, each answer once.

    The cheapest rows come first, in case the budget does not allow all.
    """
    region = state.region
    rows = [state.X[:0]]
    is_miss = ~state.question.accepted(state.y)
    for x in rows[0] if state.record is None else state.record.answers:
        if x.tobytes() not in state.shortened:
            state.shortened.add(x.tobytes())
            rows += shorter_rows(region, state.X, is_miss, x, TUNING.fractions)
    X = region.snap(np.vstack(rows))
    X = X[region.changes(X).any(axis=1)]
    return np.asarray(X[np.argsort(region.cost(X), kind="stable")])


def _shorten_answers(state: SweepState) -> Generator[Array, Array, None]:
    """Take back or shorten each change of the answers while their cost falls.

    Changes that can be shortened alone are shortened together in the next call. Of several answers
    each change is then taken back alone.
    """
    question = state.question
    region = state.region
    combined = state.X[:0]
    before = np.inf
    while state.record is not None and -state.standing[1] <= TUNING.shorter * before:
        before = -state.standing[1]
        answers = state.record.answers
        shorter = _shorter_answers(state)
        if not len(shorter):
            break
        rows = np.vstack([combined, shorter])
        most = state.left - state.for_take_back()
        y = yield from state.ask(rows, most)
        hits = rows[question.accepted(y)]
        hits = hits[np.argsort(region.cost(hits), kind="stable")]
        combined = np.vstack([cumulative_moves(region, x, hits) for x in answers])
    if state.n > 1 and state.record is not None:
        yield from finish(question, state.left, batch=state.batch)
