"""Take-back: changes that a row does not need are taken back, many in one model call.

One call takes back each change alone. In the next, those that may go are taken back together: the
first, the first two, and so on; first those that save most for what they lose. This is repeated
until no change can be taken back alone. A row with k changes takes at most k rows per call.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.potentials import Intervals
from bayescfx.space.neighbourhood import cumulative_moves, take_back

if TYPE_CHECKING:
    from bayescfx.search.sweep import SweepState


def trim_answers(
    state: SweepState, most: int, least_changes: int = 2
) -> Generator[Array, Array, None]:
    """Take back what the answers do not need, with at most `most` model rows.

    Answers with fewer changes than `least_changes` are left as they are.
    """
    end = state.question.spent + most
    tried: set[bytes] = set()
    while state.record is not None and state.question.spent < end:
        answers = state.record.answers
        is_wide = state.region.changes(answers).sum(axis=1) >= least_changes
        new = [x for x in answers[is_wide] if x.tobytes() not in state.trimmed | tried]
        if not new:
            return
        tried.add(new[0].tobytes())
        yield from trim(state, new[0], end - state.question.spent)


def trim(state: SweepState, x: Array, most: int) -> Generator[Array, Array, Array]:
    """Return the row ``(d,)``, which hits, without needless changes.

    As far as `most` model rows allow.
    """
    region = state.region
    end = state.question.spent + most
    output = state.output_of(x)
    while True:
        rows = take_back(region, x[None])
        y = yield from state.ask(rows, end - state.question.spent)
        is_hit = state.question.accepted(y)
        if not is_hit.any():
            if np.isfinite(y).all():
                state.trimmed.add(x.tobytes())
            return x
        rows = rows[is_hit]
        y = y[is_hit]
        order = _most_saved_first(state, x, output, rows, y)
        together = cumulative_moves(region, x, rows[order])
        outputs = yield from state.ask(together, end - state.question.spent)
        is_hit = state.question.accepted(outputs)
        rows = np.vstack([rows, together[is_hit]])
        y = np.concatenate([y, outputs[is_hit]])
        best = np.lexsort((region.changes(rows).sum(axis=1), region.cost(rows)))[0]
        x = rows[best]
        output = float(y[best])


def _most_saved_first(state: SweepState, x: Array, output: float, X: Array, y: Array) -> Indices:
    """Return an order of rows ``(k, d)``, by what they lose of a row's room in the target.

    Per cost that they save; those that lose nothing come first, by what they save.
    """
    room = _room(state.question.acceptance, np.append(output, y))
    cost = state.region.cost(np.vstack([x, X]))
    saved = cost[0] - cost[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = np.nan_to_num(np.maximum(room[0] - room[1:], 0.0) / saved)
    return np.lexsort((-saved, loss))


def _room(accepted: Intervals, y: Array) -> Array:
    """Return how far outputs ``(n,)`` are inside the target."""
    inside = [np.minimum(y - low, high - y) for low, high in accepted]
    return np.asarray(np.max(inside, axis=0))
