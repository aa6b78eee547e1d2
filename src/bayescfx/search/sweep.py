"""Sweep: the search for models that are cheap to call, without a surrogate.

Around a row, at first the query, every feature is changed alone over its values. Then pairs of
these changes are tried: those expected to reach the target at the lowest cost, and some that show
where the expectation is wrong. Then several changes at once, as if effects added up. The same is
repeated around the best rows found, with fewer values. Targets that are too far for this are
climbed to. At the end each change of the answers is shortened. Every evaluated row may be an
answer. That takes about ten model calls of one or two hundred rows each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, firsts, row_keys
from bayescfx.checks import check_whole
from bayescfx.errors import InfeasibleError
from bayescfx.search.climb import climb, is_too_far
from bayescfx.search.finish import finish, finish_sweep, shorter_answers
from bayescfx.search.pairs import Pairs, choose_to_hit, choose_to_learn, several
from bayescfx.search.question import Question, Rounds, Stopped, best_first
from bayescfx.search.start import fresh_rows
from bayescfx.search.sweep_state import TUNING, SweepState
from bayescfx.space.neighbourhood import Moves, finer_moves, single_moves
from bayescfx.space.sampling import nothing_found


class Base(NamedTuple):
    """A row whose surroundings are searched."""

    row: Array  # (d,)
    output: float


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

    def first(self, question: Question) -> Generator[Array, Array, Stopped | None]:
        """Yield rows as `rounds` does; return None, with budget left, if nothing was reached."""
        everything = question.region.enumerate(min(TUNING.listed, question.left))
        if everything is not None:
            if not question.region.changes(everything).any():
                raise InfeasibleError(nothing_found(question.region, question.rng))
            yield everything
            return "exhausted"
        state = SweepState(question, self.values, self.batch)
        # A sweep scores a thousand rows around its own query. Those of other queries lie around
        # theirs: to look at them takes longer than the sweep, and they are rarely nearer.
        question.inside.is_own_only = True
        yield from _sweep(state)
        if not state.is_reached:
            question.inside.is_own_only = False
            return None
        if state.is_satisfied:
            return "converged"
        return "budget" if state.is_cut else "nothing nearer expected"


def _sweep(state: SweepState) -> Generator[Array, Array, None]:
    """Search around the query and the best rows while that helps, then finish the answers."""
    yield from _search_around_query(state)
    is_first = True
    while state.spare > 0 and not state.is_satisfied:
        before = state.standing()
        yield from _search_on(state, is_first=is_first)
        has_starts = is_first or bool(state.starts)
        is_first = False
        is_stuck = state.is_reached or not has_starts
        if is_stuck and not state.is_better_than(before):
            break
    yield from finish_sweep(state)


def _search_on(state: SweepState, *, is_first: bool) -> Generator[Array, Array, None]:
    """Climb while nothing hits, and search around the best rows; one round.

    In the first round only targets that are far away are climbed to. Where the model has no steps,
    climbs lead on better than the surroundings of a row, as long as there are starts.
    """
    if not state.is_reached:
        is_far = state.remaining_way > TUNING.far
        if is_far or not is_first:
            yield from climb(state)
    if state.is_reached or state.has_steps or not state.starts:
        n_bases = max(TUNING.least_bases, state.question.n)
        yield from _search_around(state, _next_bases(state, n_bases))


def _next_bases(state: SweepState, n: int) -> list[Base]:
    """Return the best rows with different changes whose surroundings were not searched yet.

    At most `n`; only rows that hit, once there are any.
    """
    order = best_first(state.question, state.X, state.y)[: TUNING.candidates]
    if state.is_reached:
        order = order[state.question.accepted(state.y[order])]
    changed = state.region.changes(state.X[order])
    first = firsts(changed)
    order = order[first[changed[first].any(axis=1)]]
    found = []
    for at, key in zip(order.tolist(), row_keys(state.X[order]), strict=True):
        if key not in state.centres:
            found.append(Base(state.X[at], float(state.y[at])))
    return found[:n]


def _n_values(state: SweepState, most: int, n_bases: int) -> int:
    """Return how many values of each feature are affordable around some rows."""
    n_blocks = max(len(state.region.moving), 1)
    rows = min(TUNING.single_share * state.spare / n_bases, state.n_singles)
    return max(TUNING.least_values, int(min(most, rows / n_blocks)))


def _search_around_query(state: SweepState) -> Generator[Array, Array, None]:
    """Change single features of the query, then pairs of them, thoroughly.

    A first set of pairs shows how features interact; a second one, chosen with that knowledge, is
    expected to hit. The second is left out where the target is too far for pairs.
    """
    if state.spare <= 0:
        return
    query = Base(state.region.query, state.question.output)
    n_values = _n_values(state, state.n_values, 1)
    # No limit of the cost: around the query the same rows every time, since they may be known.
    [moves] = yield from _ask_singles(state, [query], n_values, np.inf)
    state.has_steps |= moves.has_steps
    is_far = is_too_far(state, moves, state.origin)
    if state.has_steps and not is_far:  # it matters where the steps are
        moves = yield from _refine(state, moves)
    pairs = Pairs(
        state.region, moves.distinct_gains(), state.origin, state.origin, state.cost_limit
    )
    yield from _try_to_learn(state, pairs)
    if not is_far or state.is_reached:
        yield from _try_to_hit(state, [pairs], state.batch, [])


def _search_around(state: SweepState, bases: list[Base]) -> Generator[Array, Array, None]:
    """Change single features of some rows, then pairs of them.

    Several moves at once are tried as well, except around answers with few changes.
    """
    if not bases or state.spare <= 0:
        return
    n_values = _n_values(state, state.few_values, len(bases))
    parts = yield from _ask_singles(state, bases, n_values, state.cost_limit)
    outputs = state.question.to_surrogate(np.array([base.output for base in bases]))
    tables = []
    for moves, output in zip(parts, outputs.tolist(), strict=True):
        state.has_steps |= moves.has_steps
        gains = moves.distinct_gains()
        tables.append(Pairs(state.region, gains, state.origin, output, state.cost_limit))
    with_several = []
    for pairs in tables:
        if not state.is_reached or pairs.n_base_changes > TUNING.simple_changes:
            with_several.append(pairs)
    yield from _try_to_hit(state, tables, state.batch // TUNING.later_pairs, with_several)


def _ask_singles(
    state: SweepState, bases: list[Base], n_values: int, limit: float
) -> Generator[Array, Array, list[Moves]]:
    """Evaluate single moves from some rows; return those that were scored, by row.

    About `n_values` values of each feature; moves that can't be part of a row that costs less than
    `limit` are left out.
    """
    parts = []
    for base in bases:
        state.centres.add(row_keys(base.row[None])[0])
        parts.append(single_moves(state.region, base.row, n_values, state.values, limit))
    y = yield from state.ask(np.vstack([moves.X for moves in parts]), state.spare)
    outputs = state.question.to_surrogate(np.array([base.output for base in bases]))
    return state.with_gains(parts, outputs, y)


def _refine(state: SweepState, moves: Moves) -> Generator[Array, Array, Moves]:
    """Evaluate moves between neighbours of different gain; return all moves."""
    most = min(state.n_singles // TUNING.finer_of_moves, state.spare // TUNING.finer_of_spare)
    finer = finer_moves(state.region, moves, state.values, state.cost_limit, most)
    y = yield from state.ask(finer.X, state.spare)
    gain = state.question.to_surrogate(y) - state.origin
    return moves.merge(finer._replace(gain=gain))


def _try_to_learn(state: SweepState, pairs: Pairs) -> Generator[Array, Array, None]:
    """Try one pair of each two rays, and several moves at once; learn the interactions."""
    record = state.record()
    most = min(state.batch, state.spare)
    if most <= 0:
        return
    chosen = choose_to_learn(state, pairs, most, record)
    short = state.X[:0] if record is None else shorter_answers(state, record)
    X = np.vstack([short, pairs.rows(chosen), several(state, pairs, record)])
    y = yield from state.ask(X, state.spare + len(short))
    outputs = y[len(short) : len(short) + len(chosen)]
    pairs.learn(chosen, state.question.to_surrogate(outputs), state.cost_limit)


def _try_to_hit(
    state: SweepState, tables: list[Pairs], most: int, with_several: list[Pairs]
) -> Generator[Array, Array, None]:
    """Try the most promising pairs of each table, and of some tables several moves at once."""
    record = state.record()
    each = min(most, state.spare) // len(tables)
    if each <= 0:
        return
    rows = [pairs.rows(choose_to_hit(state, pairs, each, record)) for pairs in tables]
    rows += [several(state, pairs, record) for pairs in with_several]
    short = state.X[:0] if record is None else shorter_answers(state, record)
    yield from state.ask(np.vstack([short, *rows]), state.spare + len(short))
