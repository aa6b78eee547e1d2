"""From queries to answers: convert once, ask f(query), search, report."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Any

import numpy as np

from bayescfx.errors import BayesCFXError, BayesCFXWarning, ModelError, SpaceWarning, TargetError
from bayescfx.evaluations.confirm import confirm
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop, Stopped
from bayescfx.explainer.identity import begun, ended
from bayescfx.explainer.report import Posed, report
from bayescfx.explainer.settings import CallSettings
from bayescfx.model.model import as_model
from bayescfx.potentials import Target, contains
from bayescfx.potentials.targets import as_target
from bayescfx.progress import progress_bar
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.question import Question
from bayescfx.search.threads import one_thread
from bayescfx.search.turns import Halt, Step, Turns
from bayescfx.space.region import Region
from bayescfx.space.sampling import background_rows

BLOCK = 64  # queries that share what they learn; fixed, so that answers don't depend on `n_jobs`


def answer_all(
    settings: CallSettings, model: object, rows: Sequence[object], targets: Sequence[object]
) -> Explanations:
    """Return one answer per query, in order; if the model fails, its error carries them."""
    f = as_model(model, settings.space.schema)
    regions = _regions(settings, rows)
    store = Evaluations() if settings.evaluations is None else settings.evaluations
    store = store.claim(tuple(settings.space.schema.places), f.name, f.fingerprint)
    settings, past = begun(settings, store, regions, targets)
    rngs = settings.generators(len(rows))
    halt, lock = Halt(), threading.Lock()
    blocks: list[tuple[list[Posed], Turns]] = []
    answers: list[Explanation] = []
    fault: Exception | None = None
    with progress_bar(len(rows)) if settings.progress and rows else nullcontext() as bar:
        listeners = [hear for hear in (bar, settings.on_step) if hear is not None]

        def hear_all(step: Step) -> None:
            with lock:  # threads are heard in turn
                for hear in listeners:
                    hear(step)

        # Every block starts from what is known now, so that none depends on when another ends; and
        # every query and target is looked at before any search begins.
        for first in range(0, len(rows), BLOCK):
            evaluator = Evaluator(f, regions[0].schema, store, past, on_fault=settings.on_fault)
            part = slice(first, first + BLOCK)
            posed = _pose(settings, evaluator, first, regions[part], targets[part], rngs[part])
            questions = {p.label: p.question for p in posed if p.question is not None}
            hear = hear_all if listeners else None
            blocks.append((posed, Turns(settings.search, questions, evaluator, hear, halt)))
        threads = settings.n_jobs > 1 and len(blocks) > 1
        futures = _in_threads([turns for _, turns in blocks], settings.n_jobs) if threads else []
        for k, (posed, turns) in enumerate(blocks):
            try:
                if fault is None:
                    futures[k].result() if threads else turns.run()
            except Exception as error:
                mine = hasattr(error, "evaluations")  # the model's own
                vars(error)["evaluations"] = store
                if not mine:
                    raise
                fault = error
            rest: Stopped = "interrupted" if fault is None else "fault"
            answers += [report(settings, p, turns.endings.get(p.label, rest)) for p in posed]
    if fault is not None:
        vars(fault)["explanations"] = Explanations(answers)
        raise fault
    if halt.error is not None:
        warnings.warn(
            f"`on_step` raised {halt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
            stacklevel=3,
        )
    ended(store, past, answers)
    return Explanations(answers)


def _in_threads(blocks: Sequence[Turns], n_jobs: int) -> list[Future[Any]]:
    """Search all blocks; what they evaluate is stored in the order of the blocks."""
    store = blocks[0].evaluator.evaluations
    for turns in blocks:
        turns.evaluator.evaluations = Evaluations()
    # The limit is taken once for all: threads that set and restore it cross each other.
    with one_thread(), ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(turns.run) for turns in blocks]
        try:
            wait(futures)
        except KeyboardInterrupt:
            blocks[0].halt.called = True
            wait(futures)
    for turns in blocks:
        learnt, turns.evaluator.evaluations = turns.evaluator.evaluations, store
        if learnt.rows is not None:
            store.append(learnt.rows, learnt.outputs, scorer=learnt.scorer)
    return futures


def _regions(settings: CallSettings, rows: Sequence[object]) -> list[Region]:
    """Return the region around each query; codes mean the same in all of them."""
    space, many = settings.space, settings.many
    regions: list[Region] = []
    said: list[tuple[int, str]] = []
    for i, row in enumerate(rows):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                regions.append(space.around(row))
            except BayesCFXError as error:
                if many:
                    error.add_note(f"for the query at position {i}")
                raise
        for told in caught:
            if issubclass(told.category, SpaceWarning):
                said.append((i, str(told.message)))
            else:  # from a rule or a derived column
                warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)
    others = len(dict(said)) - 1
    for i, text in said[: 1 if many else None]:  # of several queries, tell the first
        more = f" (and {others} more)" if others else ""
        where = f"for the query at position {i}{more}: " if many else ""
        # from the caller of `explain` or `explain_many`
        warnings.warn(where + text, SpaceWarning, stacklevel=4)
    schema = space.schema  # one that covers all queries
    for region in regions:
        if region.schema is not space.schema:
            schema, _, _ = schema.covering(region.own.cells, "query")
    if schema is space.schema or len(regions) == 1:
        return regions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [space.around(row, schema=schema) for row in rows]


def _pose(
    settings: CallSettings,
    evaluator: Evaluator,
    first: int,
    regions: Sequence[Region],
    targets: Sequence[object],
    rngs: Sequence[np.random.Generator],
) -> list[Posed]:
    """Ask for f(query) of each query, in one model call, and return the questions they pose."""
    accounts = [Account(evaluator, region, settings.rows(evaluator.model)) for region in regions]
    if first == 0 and len(evaluator.known.outputs):
        confirm(accounts[0])
    # f(query) is needed for any answer, so that it is evaluated whatever the timeout.
    scores = evaluator.evaluate_many([(a, a.region.query[None]) for a in accounts])
    outputs = [float(score.y[0]) for score in scores]
    if np.isnan(outputs).any():
        i = int(np.argmax(np.isnan(outputs)))
        raise _no_output(settings, accounts[i], first + i)
    posed = []
    for i, (account, wish, rng) in enumerate(zip(accounts, targets, rngs, strict=True)):
        output = outputs[i]
        try:
            target = _target(wish, output, account, rng)
            try:
                question = Question(
                    account, output, target, rng, settings.deadline, settings.n, settings.tolerance
                )
            except TargetError:
                met = contains(target.acceptance(output, settings.tolerance), [output])[0]
                if not (settings.many and met):
                    raise
                question = None
        except TargetError as error:
            if settings.many:
                error.add_note(f"for the query at position {first + i}")
            raise
        posed.append(Posed(first + i, account, target, output, question))
    evaluator.deadline = settings.deadline
    return posed


def _no_output(settings: CallSettings, account: Account, label: int) -> ModelError:
    """Return the error for a query without an output, where faults are skipped."""
    evaluator, region = account.evaluator, account.region
    which = f" at position {label}" if settings.many else ""
    row = evaluator.model.describe(region.rows(region.query[None]), 0)
    error = ModelError(
        f"`model` must have an output for the query{which}; it fails for {row}. "
        "Correct the query or the model."
    )
    for fault in evaluator.faults:
        error.add_note(fault)
    vars(error)["evaluations"] = evaluator.evaluations
    return error


def _target(wish: Any, output: float, account: Account, rng: np.random.Generator) -> Target:
    """Return the wish as a target; a user's own potential is checked on a few outputs first."""
    if isinstance(wish, Target):
        return wish
    seen = [output]
    if hasattr(wish, "value") and hasattr(wish, "slope"):
        rows = background_rows(account.region, 4, rng)
        if account.left > len(rows):
            try:
                seen.extend(account.evaluate(rows))
            except Stop as stop:  # skipping faults took the rest of the budget
                seen.extend(stop.y)
    return as_target(wish, np.array(seen)[~np.isnan(seen)])
