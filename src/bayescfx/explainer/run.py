"""From queries to answers: look at all of them, work on the blocks, put the answers together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import repeat, takewhile
from typing import Any

import pandas as pd

from bayescfx.deadline import waiting
from bayescfx.errors import BayesCFXWarning, optional, warn
from bayescfx.evaluations.confirm import Twice, confirm
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator
from bayescfx.explainer.blocks import Block, Done, Job, work
from bayescfx.explainer.identity import begun, ended
from bayescfx.explainer.posing import refuse_at_once, regions_around, tell, unremarkable
from bayescfx.explainer.settings import CallSettings
from bayescfx.explainer.workers import count_workers, in_workers
from bayescfx.model.model import Model, as_model
from bayescfx.progress import progress_bar
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.turns import Halt, Listener, Step

BLOCK = 64  # queries that share what they learn; fixed, so that answers don't depend on `n_jobs`


def answer_all(
    settings: CallSettings, model: object, rows: Any, targets: Sequence[object]
) -> Explanations:
    """Return one answer per query, in order; an error carries those of finished blocks."""
    f, n = as_model(model, settings.space.schema), len(targets)
    blocks = _blocks(settings, rows, n)
    store = known_of(f, settings)
    settings, past = begun(settings, store, blocks, targets)
    wishes = list(zip(targets, settings.generators(n), strict=True))
    for block in blocks:
        block.wishes = dict(enumerate(wishes[block.first : block.first + BLOCK], block.first))
    job = Job(settings, f, past, store=None if store.file is None else store)
    if blocks and len(past.outputs):
        blocks[0].spent = confirmed(job, store, blocks[0])
    crew = count_workers(settings.n_jobs) if len(blocks) > 1 else 1
    halt, found = Halt(), dict[int, Explanation]()
    fault: Exception | None = None
    with progress_bar(n, crew > 1) if settings.progress and n else nullcontext() as bar:
        hear = settings.on_step if bar is None else _both(bar, settings.on_step)
        try:
            for done in worked(job, blocks, store, crew, halt, hear):
                found |= done.answers
                fault = fault or done.fault
        except KeyboardInterrupt:
            if not found:
                raise
        except Exception as error:  # not a block's own: workers are lost, or the store is
            fault = fault or error
    index = rows.index if isinstance(rows, pd.DataFrame) else pd.RangeIndex(n)
    places = sorted(found)
    whole = len(places) == n
    answers = Explanations(list(map(found.__getitem__, places)), index if whole else index[places])
    if fault is not None:
        vars(fault).update({"evaluations": store} | ({"explanations": answers} if places else {}))
        raise fault
    if halt.error is not None:
        warn(
            f"`on_step` raised {halt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
        )
    if whole and past.run is not None:
        ended(store, past, answers)
    return answers


def _blocks(settings: CallSettings, rows: Any, n: int) -> list[Block]:
    """Return `n` queries in blocks, each looked at before any is asked about."""
    blocks: list[Block] = []
    said: list[tuple[str, str]] = []
    for first in range(0, n, BLOCK):
        part = slice(first, first + BLOCK)
        mine = rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part]
        block = Block(first, mine, {}, settings.deadline)
        if not unremarkable(settings.space, mine):
            refuse = partial(refuse_at_once, who=block.who if settings.many else None)
            block.regions, told = regions_around(settings.space, mine, first, refuse)
            said += [(block.who(i), text) for i, text in told]
            linear = any(len(region.A) for region in block.regions.values())
            if linear and getattr(settings.search, "continuous", False):
                optional("quadprog", "projection onto linear rules needs", "gradient")
        blocks.append(block)
    if said:
        tell(said, settings.many)
    return blocks


def known_of(model: Model, settings: CallSettings) -> Evaluations:
    """Return what is known of the model, where what it says goes, too."""
    store = Evaluations() if settings.evaluations is None else settings.evaluations
    # Known by itself only where the budget allows to see whether it has changed.
    owner = model.owner if settings.rows(model) > 2 else None
    return store.claim(tuple(settings.space.schema.places), model.name, model.fingerprint, owner)


def confirmed(job: Job, store: Evaluations, block: Block) -> int:
    """See whether known rows are this model's; return how many were sent for the first query."""
    refuse = partial(refuse_at_once, who=block.who if job.settings.many else None)
    regions = block.regions
    if regions is None:
        regions, _ = regions_around(job.settings.space, block.rows, block.first, refuse)
    region = next(iter(regions.values()))
    evaluator = Evaluator(job.model, region.schema, store, job.past, on_fault=job.settings.on_fault)
    account = Account(evaluator, region, job.settings.rows(job.model))
    before = waiting.set(block.deadline.at_least(30))
    try:
        confirm(account)
    finally:
        waiting.reset(before)
    return account.spent


def worked(
    job: Job,
    blocks: Iterable[Block],
    store: Evaluations,
    crew: int,
    halt: Halt,
    hear: Listener | None = None,
) -> Iterator[Done]:
    """Return what comes of blocks, each when it is done, here or in `crew` workers.

    None begins after a fault, or when somebody wants no more.
    """
    if crew > 1:
        return _from_workers(job, blocks, store, crew, halt, hear)
    kept = repeat(store) if job.keep else iter(Evaluations, None)
    open_ = takewhile(lambda _: not halt.called, blocks)
    return map(partial(work, job, hear=hear, halt=halt), open_, kept)


def _from_workers(
    job: Job,
    blocks: Iterable[Block],
    store: Evaluations,
    crew: int,
    halt: Halt,
    hear: Listener | None,
) -> Iterator[Done]:
    """Yield what comes of blocks in workers; what they learnt goes to the store in their order."""
    late, budget = dict[int, Any](), job.settings.rows(job.model)
    try:
        for done in in_workers(job, blocks, crew, halt):
            if done.learnt is not None:
                late[done.first] = done.learnt
            if store.file is not None:  # what a crash must not lose
                _append(job, store, late)
            for i, answer in done.answers.items():
                vars(answer).update(evaluations=store, space=job.settings.space)
                _tell_last(hear, halt, answer, i, budget)
            halt.called |= done.fault is not None
            if done.twice is not None and not halt.noisy:
                halt.noisy = _differs(job, done.twice)
            yield done
    finally:
        _append(job, store, late)


def _differs(job: Job, twice: Twice) -> bool:
    """See whether the model says the same here as in a worker, as long as there is time."""
    deadline = job.settings.deadline
    before = waiting.set(deadline)
    try:
        return not deadline.passed and twice.differs(job.model, elsewhere=True)
    finally:
        waiting.reset(before)


def _append(job: Job, store: Evaluations, late: dict[int, Any]) -> None:
    """Add what blocks have learnt, in their order."""
    for first in sorted(late):
        store.absorb(late.pop(first), job.model.origin)


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
