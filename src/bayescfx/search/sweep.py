"""Sweep: the search for models that are cheap to ask, without a surrogate.

Around a row, the query to begin with, every feature is changed alone over its values; then two at a
time, those pairs that are expected to reach the target at the lowest cost, or that show where the
expectation errs; and several at once, as if effects added up. The same again around the best rows
found, in finer steps. A target that is too far for this is climbed to. At last each change of the
answers is shortened. Every row that was evaluated may be an answer. That is about ten model calls
of a hundred or two rows each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, firsts, row_keys
from bayescfx.checks import check_whole
from bayescfx.errors import InfeasibleError
from bayescfx.search.climb import climb, too_far
from bayescfx.search.pairs import Pairs, choose, several
from bayescfx.search.polish import exchange, shorter, walk_back
from bayescfx.search.question import Ending, Question, Rounds, best_first
from bayescfx.search.shorten import shorten
from bayescfx.search.single import finer, single_moves
from bayescfx.search.start import fresh_rows
from bayescfx.search.sweep_state import Swept
from bayescfx.space.sampling import nothing_found

Bases: TypeAlias = list[tuple[Array, float]]  # rows (d,) to change, and their outputs


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
        swept = Swept(question, self.values, self.batch)
        yield from _sweep(swept)
        if not swept.reached:
            return None
        if swept.satisfied:
            return "converged"
        return "budget" if swept.cut else "nothing nearer expected"


def _sweep(swept: Swept) -> Generator[Array, Array, None]:
    """Look around the query and the best rows while that helps, then shorten answers."""
    question = swept.question
    yield from _around(swept, [(question.region.query, question.output)], first=True)
    before, better, tried = swept.standing(), True, 0
    while better and swept.spare > 0 and not swept.satisfied:
        if not swept.reached and (tried or swept.left > 0.25):
            yield from climb(swept)
        tried += 1
        # Where the model has no steps, climbs lead on better than a look around the best row.
        if swept.reached or swept.stepped or not swept.starts:
            yield from _around(swept, _bases(swept, max(2, question.n)))
        before, better = swept.compared(before)
        better |= before[0] == 0 and (tried == 1 or bool(swept.starts))
    swept.shortened.clear()  # more is known by now of where changes begin to matter
    yield from walk_back(swept)
    before, better = swept.standing(), swept.stepped and swept.reached and question.weight > 0.0
    while better:
        yield from exchange(swept)
        yield from walk_back(swept)
        before, better = swept.compared(before)
    if question.n > 1 and swept.reached:
        yield from shorten(question, question.account.left, batch=swept.batch)


def _bases(swept: Swept, n: int) -> Bases:
    """Return the best rows with different changes that were not looked around, with outputs."""
    order = best_first(swept.question, swept.X, swept.y)[:128]
    if swept.reached:
        order = order[swept.question.accepted(swept.y[order])]
    changed = swept.region.changes(swept.X[order])
    first = firsts(changed)
    order = order[first[changed[first].any(axis=1)]]
    keys = zip(order.tolist(), row_keys(swept.X[order]), strict=True)
    new = [at for at, key in keys if key not in swept.around][:n]
    return [(swept.X[at], float(swept.y[at])) for at in new]


def _around(swept: Swept, bases: Bases, *, first: bool = False) -> Generator[Array, Array, None]:
    """Change single features of some rows, then pairs of them; the `first` time more thoroughly."""
    question, region = swept.question, swept.region
    if not bases or swept.spare <= 0:
        return
    blocks = max(len(region.moving), 1)
    affordable = min(0.35 * swept.spare / len(bases), swept.many) / blocks
    values = max(2, int(min(swept.several if first else swept.few, affordable)))
    moves = []
    for base, _ in bases:
        swept.around.add(row_keys(base[None])[0])
        # Around the query the same rows every time: they may be known.
        below = np.inf if first else swept.below
        moves.append(single_moves(region, base, values, swept.values, below))
    y = yield from swept.ask(np.vstack([part.X for part in moves]), swept.spare)
    outputs = question.to_surrogate(np.array([value for _, value in bases]))
    tables, far = list[Pairs](), False
    for value, known in zip(outputs.tolist(), swept.scored(moves, outputs, y), strict=True):
        swept.stepped |= known.stepped
        far = first and too_far(swept, known, value)
        if first and swept.stepped and not far:  # it matters where steps are
            most = min(swept.many // 2, swept.spare // 4)
            between = finer(region, known, swept.values, swept.below, most)
            y = yield from swept.ask(between.X, swept.spare)
            known = known.along(between._replace(gain=question.to_surrogate(y) - value))
        tables.append(Pairs(region, known.steps(), swept.origin, value, swept.below))
    if first:
        yield from _try_pairs(swept, tables, swept.batch, learn=True)
        if not far or swept.reached:
            yield from _try_pairs(swept, tables, swept.batch)
    else:
        # Around an answer with few changes pairs do.
        many = [pairs for pairs in tables if not swept.reached or pairs.changes > 2]
        yield from _try_pairs(swept, tables, swept.batch // 3, many)


def _try_pairs(
    swept: Swept,
    tables: list[Pairs],
    most: int,
    many: list[Pairs] | None = None,
    *,
    learn: bool = False,
) -> Generator[Array, Array, None]:
    """Try the pairs worth a look, of `many` several moves at once; some of all kinds to `learn`."""
    question, record = swept.question, swept.record()
    each = min(most, swept.spare) // len(tables)
    if each <= 0:
        return
    chosen = [choose(swept, pairs, each, record, screen=learn) for pairs in tables]
    rows = [pairs.rows(some) for pairs, some in zip(tables, chosen, strict=True)]
    rows += [several(swept, pairs, record) for pairs in (tables if learn else many or [])]
    short = swept.X[:0] if record is None else shorter(swept, record)
    y = yield from swept.ask(np.vstack([short, *rows]), swept.spare + len(short))
    y = y[len(short) :]
    for pairs, some in zip(tables, chosen, strict=True) if learn else ():
        found, y = y[: len(some)], y[len(some) :]
        pairs.learn(some, question.to_surrogate(found), swept.below)
