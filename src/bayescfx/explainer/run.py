"""From queries to answers: look at all of them, work on the blocks, put the answers together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import repeat, takewhile
from typing import Any

import pandas as pd

from bayescfx.deadline import waiting_until
from bayescfx.errors import BayesCFXWarning, SpaceWarning, warn
from bayescfx.evaluations.confirm import confirm
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator
from bayescfx.explainer.blocks import Block, Done, Job, work
from bayescfx.explainer.call import CallSettings
from bayescfx.explainer.run_key import opened
from bayescfx.explainer.workers import count_workers, in_workers
from bayescfx.models.model import as_model
from bayescfx.progress import progress_bar
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.turns import Halt, Listener, Step

BLOCK = 64  # queries that share what they learn; fixed, so that answers don't depend on `n_jobs`


def answer_all(
    settings: CallSettings, model: object, rows: Any, targets: Sequence[object]
) -> dict[int, Explanation]:
    """Return one answer per query, by position; an error carries those of finished blocks."""
    f, n = as_model(model, settings.space.schema), len(targets)
    blocks = _blocks(settings, rows, n)
    job = opened(settings, f, blocks, targets)
    settings, store = job.settings, job.store
    for block in blocks:
        mine = targets[block.first : block.first + BLOCK]
        block.wishes = settings.wishes(block.first, mine)
    if len(job.past.outputs):
        confirmed(job, blocks[:1])
    crew = count_workers(settings.n_jobs) if len(blocks) > 1 else 1
    halt, found = Halt(), dict[int, Explanation]()
    fault: Exception | None = None
    with progress_bar(n, crew > 1) if settings.progress and n else nullcontext() as bar:
        hear = settings.on_step if bar is None else _both(bar, settings.on_step)
        try:
            for done in worked(job, blocks, crew, halt, hear):
                found |= done.answers
                fault = fault or done.fault
        except KeyboardInterrupt:
            if not found:
                raise
        except Exception as error:  # not a block's own: workers are lost, or the store is
            fault = fault or error
    if fault is not None:
        known = {"explanations": in_order(found, rows)} if found else {}
        vars(fault).update(known, evaluations=store)
        raise fault
    if halt.error is not None:
        warn(
            f"`on_step` raised {halt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
        )
    run, early = job.past.run, ("interrupted", "timeout")
    if run is not None and len(found) == n and not any(a.stopped in early for a in found.values()):
        store.finish(run)  # else the same call goes on with it
    return found


def in_order(found: dict[int, Explanation], rows: Any) -> Explanations:
    """Return the answers to some of the queries in `rows`, with their labels."""
    places, table = sorted(found), isinstance(rows, pd.DataFrame)
    index = rows.index if table else pd.RangeIndex(len(rows))
    kept = index if len(places) == len(rows) else index[places]
    return Explanations(list(map(found.__getitem__, places)), kept)


def _blocks(settings: CallSettings, rows: Any, n: int) -> list[Block]:
    """Return `n` queries in blocks, each looked at before any is asked about."""
    blocks, table = list[Block](), isinstance(rows, pd.DataFrame)
    said: list[tuple[str, str]] = []
    for first in range(0, n, BLOCK):
        part = slice(first, first + BLOCK)
        block = Block(first, rows.iloc[part] if table else rows[part], {}, settings.deadline)
        if not table or block.remarkable(settings.space):  # regions can't wait
            refuse = partial(block.refuse, settings.many)
            block.regions, told = block.around(settings.space, refuse)
            for i, text in told:
                said.append((block.who(i), text))
        blocks.append(block)
    others = len(dict(said)) - 1
    for who, text in said[: 1 if settings.many else None]:  # of several, about the first
        more = f" (and {others} more)" if others else ""
        warn((f"for the query {who}{more}: " if settings.many else "") + text, SpaceWarning)
    return blocks


def confirmed(job: Job, blocks: Sequence[Block]) -> None:
    """See whether known rows are this model's; the first query that can be asked pays."""
    for block in blocks:
        regions, _ = block.around(job.settings.space, lambda *_: None, job.look)
        for region in regions.values():
            how = job.settings.on_fault
            evaluator = Evaluator(job.model, region.schema, job.store, job.past, on_fault=how)
            account = Account(evaluator, region, job.settings.rows(job.model))
            with waiting_until(block.deadline, 30):
                confirm(account)
            block.spent = account.spent
            return


def worked(
    job: Job, blocks: Iterable[Block], crew: int, halt: Halt, hear: Listener | None = None
) -> Iterator[Done]:
    """Return what comes of blocks, each when it is done, here or in `crew` workers.

    None begins after a fault, or when somebody wants no more.
    """
    if crew > 1:
        return _from_workers(job, blocks, crew, halt, hear)
    kept = repeat(job.store) if job.keep else iter(Evaluations, None)
    open_ = takewhile(lambda _: not halt.called, blocks)
    return map(partial(work, job, hear=hear, halt=halt), open_, kept)


def _from_workers(
    job: Job, blocks: Iterable[Block], crew: int, halt: Halt, hear: Listener | None
) -> Iterator[Done]:
    """Yield what comes of blocks in workers; what they learnt goes to the store in their order."""
    late, deadline, store = dict[int, Any](), job.settings.deadline, job.store

    def keep() -> None:
        for first in sorted(late):
            store.absorb(late.pop(first), job.model.origin)

    try:
        for done in in_workers(job, blocks, crew, halt):
            if done.learnt is not None:
                late[done.first] = done.learnt
            if store.file is not None:  # what a crash must not lose
                keep()
            for i, answer in list(done.answers.items()):
                done.answers[i] = answer = answer.with_context(store, job.settings.space)
                _tell_last(hear, halt, answer, i, job.settings.rows(job.model))
            halt.called |= done.fault is not None
            if done.twice is not None and not halt.noisy and not deadline.passed:
                with waiting_until(deadline):  # the same here as in a worker?
                    halt.noisy = done.twice.differs(job.model, elsewhere=True)
            yield done
    finally:
        keep()


def _both(bar: Listener, hear: Listener | None) -> Listener:
    """Return one listener for a bar and for whoever else wants to hear."""

    def hear_all(step: Step) -> None:
        bar(step)
        if hear is not None:
            hear(step)

    return hear_all


def _tell_last(hear: Listener | None, halt: Halt, answer: Explanation, i: int, budget: int) -> None:
    """Tell a listener how a query in a worker has ended; whatever it raises ends the rest."""
    if hear is None or halt.error is not None:
        return
    best = answer.best
    told = (best.output, best.potential, answer.reached, best.cost)
    try:
        hear(Step(i, answer.n_evaluations, budget, *told))
    except StopIteration:
        halt.called = True
    except Exception as error:
        halt.called, halt.error = True, error
