"""The Explainer: one object between the engine and everything that asks questions.

There is one loop, :meth:`Explainer.ask`. The functions of the package, the command line, the page
and streams are its callers, and give the same answers for the same seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain, islice
from typing import Any, TypeAlias, Unpack

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_several
from bayescfx.data.tables import as_pandas
from bayescfx.deadline import NEVER, Deadline, waiting_until
from bayescfx.errors import (
    BayesCFXWarning,
    QueryError,
    SettingsError,
    SpaceError,
    SpaceWarning,
    TargetError,
    attach,
    warn,
)
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator
from bayescfx.evaluations.known import Snapshot
from bayescfx.evaluations.repeatability import check_before
from bayescfx.explainer.batches import (
    LEAST_WAIT,
    Batch,
    Call,
    OnError,
    answer_block,
    make_regions,
    name_query,
)
from bayescfx.explainer.call_settings import CallOptions, CallSettings, child_generators
from bayescfx.explainer.regions import CheckRow, Queries, encode_block, has_rules
from bayescfx.explainer.report import CUT_SHORT
from bayescfx.explainer.run_key import check_same_queries, run_key
from bayescfx.explainer.workers import count_workers, in_workers
from bayescfx.models.model import as_model
from bayescfx.progress import progress_bar
from bayescfx.result.assessment import WhatIf, assess, what_if
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.turns import Interrupt, Listener, Step
from bayescfx.space.space import Space

#: Queries that share the rows they score. Fixed, so that answers do not depend on `n_jobs`.
BLOCK = 64

#: Tables of queries, each alone or with the position of its first row.
Frames: TypeAlias = Iterable[pd.DataFrame | tuple[int, pd.DataFrame]]


class Explainer:
    """Answer what would have to change in a query for the model to predict something else.

    The explainer holds the model, the space, the evaluations and default settings. It identifies
    the model once.

    Parameters
    ----------
    model : callable or object with ``predict``
        Takes rows like those the space was made from, returns one number per row. For a
        classifier pass ``probability(clf, label)``.
    space : Space
        The features and what may change.
    evaluations : Evaluations or path, optional
        Scored rows of this model. Every call starts from them and adds to them. Without them, every
        call starts from nothing.
    **defaults : optional
        `method`, `budget`, `n`, `tolerance`, `timeout`, `on_fault`, `share`, `rng`, `on_step`,
        `progress`, `run` and `n_jobs`, as in :func:`explain` and :func:`explain_many`. Each call
        may replace them.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [0.0, 0.5, 1.0], "b": [1.0, 0.0, 1.0]})
    >>> explainer = Explainer(lambda X: X["a"] + X["b"], Space.from_data(X), budget=40)
    >>> explainer.explain(X.iloc[0], 1.5, rng=0).reached
    True
    >>> [answer.reached for answer in explainer.explain_many(X, 1.5, rng=0)]
    [True, True, True]
    """

    def __init__(
        self,
        model: Any,
        space: Space,
        evaluations: Evaluations | str | os.PathLike[str] | None = None,
        **defaults: Unpack[CallOptions],
    ) -> None:
        _check_space(space)
        self.settings = CallSettings(**defaults)
        self.space = space
        self._owns_file = isinstance(evaluations, str | os.PathLike)
        self.evaluations = _open_evaluations(evaluations)
        self.model = as_model(model, space.schema)

    def __repr__(self) -> str:
        name = self.model.name or "function"
        return f"Explainer({name}, {len(self.space.features)} features)"

    def __enter__(self) -> Explainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file of evaluations, if the explainer opened it."""
        if self._owns_file and self.evaluations is not None:
            self.evaluations.close()

    def explain(self, query: object, target: object, **options: Unpack[CallOptions]) -> Explanation:
        """Return the explanation of one query.

        Parameters
        ----------
        query : Series, one-row DataFrame, dict or array of shape (columns,)
            The row to explain.
        target : Target, float or potential
            The wanted prediction.
        **options : optional
            Settings that replace the defaults for this call.

        Returns
        -------
        Explanation
        """
        batches = self.ask([query], [target], names_queries=False, **options)
        return _collect(batches, [query])[0]

    def explain_many(
        self, queries: object, target: object, **options: Unpack[CallOptions]
    ) -> Explanations:
        """Return one explanation per query, in order; see :func:`bayescfx.explain_many`.

        Parameters
        ----------
        queries : DataFrame, array of shape (queries, columns), or sequence of rows
            The rows to explain.
        target : target, or sequence of targets
            One for all, or one per query.
        **options : optional
            Settings that replace the defaults for this call.

        Returns
        -------
        Explanations
        """
        rows = _as_rows(queries)
        return _in_order(_collect(self.ask(rows, target, **options), rows), rows)

    def explain_stream(
        self, frames: Frames, target: object, **options: Unpack[CallOptions]
    ) -> Iterator[pd.DataFrame]:
        """Yield tables of answers to tables of queries; see :func:`bayescfx.explain_stream`.

        Parameters
        ----------
        frames : iterable of DataFrame
            The queries; each table may come with the position of its first row.
        target : target
            One for all.
        **options : optional
            Settings that replace the defaults for this call.

        Yields
        ------
        DataFrame
            One line per answer, for each block of 64 queries.
        """
        is_frames = is_several(frames) and not isinstance(frames, pd.DataFrame)
        check(is_frames, "frames", "several DataFrames, one after the other", frames, QueryError)
        batches = self.ask(iter(frames), target, on_error="record", **options)
        return _as_frames(batches, self.space)

    def what_if(
        self, query: object, changes: Mapping[Any, Any], target: object = None, **options: Any
    ) -> WhatIf:
        """Return the prediction for a row that you change by hand; see :func:`bayescfx.what_if`.

        Parameters
        ----------
        query : Series, one-row DataFrame, dict or array of shape (columns,)
            The row to change.
        changes : dict of feature to value
            The new values; ``None`` for a missing cell.
        target : Target, float or potential, optional
            The wanted prediction.
        **options : optional
            `tolerance`.

        Returns
        -------
        WhatIf
        """
        tolerance = options.pop("tolerance", self.settings.tolerance)
        self.settings.changed(options)
        return what_if(self.model, query, changes, self.space, target, tolerance=tolerance)

    def assess(
        self, query: object, rows: object, target: object = None, **options: Any
    ) -> pd.DataFrame:
        """Return figures about counterfactuals from elsewhere; see :func:`bayescfx.assess`.

        Parameters
        ----------
        query : Series, one-row DataFrame, dict or array of shape (columns,)
            The row that was explained.
        rows : DataFrame or array of shape (n, columns)
            The counterfactuals.
        target : Target, float or potential, optional
            The wanted prediction.
        **options : optional
            `tolerance`.

        Returns
        -------
        DataFrame
            One line per row.
        """
        tolerance = options.pop("tolerance", self.settings.tolerance)
        self.settings.changed(options)
        return assess(self.model, query, rows, self.space, target, tolerance=tolerance)

    def ask(
        self,
        queries: Any,
        target: Any,
        *,
        on_error: OnError = "raise",
        check_row: CheckRow | None = None,
        names_queries: bool = True,
        **options: Unpack[CallOptions],
    ) -> Iterator[Batch]:
        """Yield the answers to queries, block by block and in order: the one loop of the library.

        All queries of a table or a list are read before the model is asked anything; those of an
        iterator of tables as they are needed. The iteration ends after a batch with a ``fault``,
        and after an interruption.

        Parameters
        ----------
        queries : DataFrame, array, sequence of rows, or iterator of DataFrames
            The rows to explain. Tables of an iterator may come with the position of their first
            row, as ``(position, table)``.
        target : target, or sequence of targets
            One for all, or, without an iterator, one per query.
        on_error : {"raise", "record"}, default "raise"
            What happens to a query that can't be asked.
        check_row : callable, optional
            Raises an error if a row, given as a one-row table, must not be asked about.
        names_queries : bool, default True
            Whether messages name the query.
        **options : optional
            Settings that replace the defaults for this call.

        Returns
        -------
        iterator of Batch
        """
        settings = self.settings.changed(options)
        call = Call(
            settings=settings,
            space=_space_of_search(self.space, settings),
            model=self.model,
            evaluations=self._claim(settings),
            snapshot=Snapshot(),
            deadline=NEVER if settings.timeout is None else Deadline.after(settings.timeout),
            names_queries=names_queries,
            on_error=on_error,
            check_row=check_row,
        )
        if isinstance(queries, Iterator):
            return self._ask_stream(call, queries, target)
        return self._ask_table(call, _as_rows(queries), target)

    def _claim(self, settings: CallSettings) -> Evaluations:
        """Return the evaluations of this model, or new ones; raise if they are of another model."""
        given = Evaluations() if self.evaluations is None else self.evaluations
        # A model object is recognised by itself only where the budget allows to check whether it
        # has changed; estimators, which may be refitted, never.
        is_steady = not self.model.local and settings.rows_per_query(self.model) > 2
        columns = tuple(self.space.schema.places)
        store = given.claim(columns, self.model.identity(is_steady=is_steady))
        if settings.run is not None and store.file is None:
            raise SettingsError(
                f"`run` must be None without a file of evaluations; got {settings.run!r}.",
                parameter="run",
                advice="Pass evaluations=Evaluations.open(path).",
            )
        return store

    def _begin(self, call: Call, blocks: list[Queries], targets: Any) -> Call:
        """Return the call with the evaluations it starts from.

        A run without a seed has the one that was drawn for it when it began.
        """
        if self.evaluations is None:
            return call
        settings = call.settings
        # Without a seed or a name a call is never the same again.
        is_repeatable = settings.rng is not None or settings.run is not None

        def key() -> str:
            return run_key(settings, call.space, blocks, targets)

        snapshot = call.evaluations.begin(
            settings.run, key if is_repeatable else None, call.deadline
        )
        if settings.rng is None and snapshot.seed is not None:
            settings = replace(settings, rng=snapshot.seed)
        return replace(call, settings=settings, snapshot=snapshot)

    def _ask_table(self, call: Call, rows: Any, target: Any) -> Iterator[Batch]:
        """Yield the answers to a table or a list of rows."""
        targets = _one_per_query(target, len(rows))
        blocks = _read_blocks(call, rows, targets)
        call = self._begin(call, blocks, targets)
        parent = np.random.default_rng(call.settings.rng)
        blocks = [
            replace(
                block,
                generators=child_generators(call.settings.rng, parent, block.first, len(block)),
            )
            for block in blocks
        ]
        return _answer_blocks(call, iter(blocks), len(rows))

    def _ask_stream(self, call: Call, frames: Iterator[Any], target: Any) -> Iterator[Batch]:
        """Yield the answers to the rows of many tables."""
        call = replace(call, keeps_rows=self.evaluations is not None)
        call = self._begin(call, [], (target,))
        parent = np.random.default_rng(call.settings.rng)

        def blocks() -> Iterator[Queries]:
            for first, part in _cut(frames, _block_size(call.settings)):
                generators = child_generators(call.settings.rng, parent, first, len(part))
                queries = Queries(first, part, [target] * len(part), generators)
                check_same_queries(call, queries)
                yield queries

        return _answer_blocks(call, blocks())


# ── the loop ──


def _answer_blocks(
    call: Call, blocks: Iterator[Queries], n_queries: int | None = None
) -> Iterator[Batch]:
    """Yield the answers to blocks in order, here or in workers: the loop of every call.

    It ends after a fault or an interruption. Errors of the blocks carry the evaluations. The
    progress bar needs the number of queries.
    """
    first_blocks = _check_model_before(call, list(islice(blocks, 2)))
    blocks = chain(first_blocks, blocks)
    n_workers = count_workers(call.settings.n_jobs) if len(first_blocks) > 1 else 1
    interrupt = Interrupt()
    is_complete = True
    with _progress(call.settings, n_queries, n_workers) as show:
        on_step = _join_listeners(show, call.settings.on_step)
        batches = _answer_here(call, blocks, interrupt, on_step)
        if n_workers > 1:
            batches = _answer_in_workers(call, blocks, n_workers, interrupt, on_step)
        try:
            for batch in batches:
                is_complete &= not any(a.stopped in CUT_SHORT for a in batch.answers.values())
                if batch.fault is not None:
                    attach(batch.fault, evaluations=call.evaluations)
                yield batch
        except Exception as error:
            attach(error, evaluations=call.evaluations)
            raise
    if interrupt.error is not None:
        warn(
            f"`on_step` raised {interrupt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
        )
    if call.snapshot.run is not None and is_complete and not interrupt.is_requested:
        call.evaluations.finish(call.snapshot.run)  # else the same call goes on with it


def _progress(
    settings: CallSettings, n_queries: int | None, n_workers: int
) -> AbstractContextManager[Listener | None]:
    """Return the progress bar, if one is wanted."""
    if settings.progress and n_queries:
        return progress_bar(n_queries, n_workers > 1)
    return nullcontext()


def _answer_here(
    call: Call, blocks: Iterator[Queries], interrupt: Interrupt, on_step: Listener | None
) -> Iterator[Batch]:
    """Yield the answers to blocks, worked out in this process."""
    checks_model = True
    for queries in blocks:
        store = call.evaluations if call.keeps_rows else Evaluations()
        batch = answer_block(call, queries, store, interrupt, on_step, checks_model=checks_model)
        if batch.repeat_check is not None:
            try:
                with waiting_until(call.deadline):
                    checks_model = batch.repeat_check.is_deterministic(call.model)
            except KeyboardInterrupt:  # the answers of this block are complete
                interrupt.is_requested = True
        yield batch
        if interrupt.is_requested:
            return


def _answer_in_workers(
    call: Call,
    blocks: Iterable[Queries],
    n_workers: int,
    interrupt: Interrupt,
    on_step: Listener | None,
) -> Iterator[Batch]:
    """Yield the answers of workers in order; the rows they scored are recorded in that order."""
    order: list[int] = []  # of the blocks that were handed out
    waiting: dict[int, Batch] = {}
    checks_model = True

    def handed_out() -> Iterator[Queries]:
        for block in blocks:
            order.append(block.first)
            yield block

    try:
        for batch in in_workers(call, handed_out(), n_workers, interrupt):
            if call.evaluations.file is not None:  # what a crash must not lose
                _absorb(call, batch)
            for answer, position in zip(batch.answers.values(), batch.answers, strict=True):
                _report_end(call, answer, position, interrupt, on_step)
            interrupt.is_requested |= batch.fault is not None
            check = batch.repeat_check
            if check is not None and checks_model and not call.deadline.passed:
                with waiting_until(call.deadline):
                    checks_model = check.is_deterministic(call.model, in_other_process=True)
            waiting[batch.first] = batch
            while order and order[0] in waiting:
                yield _at_home(call, waiting.pop(order.pop(0)))
    except KeyboardInterrupt:
        interrupt.is_requested = True
    for first in sorted(waiting):  # others before them were not finished
        yield _at_home(call, waiting[first])


def _at_home(call: Call, batch: Batch) -> Batch:
    """Return a batch from a worker with what this process has: evaluations and space."""
    if call.evaluations.file is None:
        _absorb(call, batch)
    answers = {
        position: answer.with_context(call.evaluations, call.space)
        for position, answer in batch.answers.items()
    }
    return replace(batch, answers=answers, scored=None)


def _absorb(call: Call, batch: Batch) -> None:
    """Record the rows that a worker scored."""
    if batch.scored is not None:
        call.evaluations.absorb(batch.scored, call.model.origin)


def _check_model_before(call: Call, blocks: list[Queries]) -> list[Queries]:
    """Check that the evaluations are of this model, at the expense of the first query.

    Returns the blocks with what was spent.
    """
    if not len(call.snapshot.outputs):
        return blocks
    for i, queries in enumerate(blocks):
        regions, _ = make_regions(replace(call, on_error="record"), queries)
        for region in regions.values():
            evaluator = Evaluator(
                call.model,
                region.schema,
                call.evaluations,
                call.snapshot,
                on_fault=call.settings.on_fault,
            )
            account = Account(evaluator, region, call.settings.rows_per_query(call.model))
            with waiting_until(call.deadline, LEAST_WAIT):
                check_before(account)
            return [*blocks[:i], replace(queries, n_spent=account.spent), *blocks[i + 1 :]]
    return blocks


def _join_listeners(show: Listener | None, on_step: Listener | None) -> Listener | None:
    """Return one listener for the progress bar and the user's."""
    if show is None or on_step is None:
        return show or on_step

    def both(step: Step) -> None:
        show(step)
        on_step(step)

    return both


def _report_end(
    call: Call,
    answer: Explanation,
    position: int,
    interrupt: Interrupt,
    on_step: Listener | None,
) -> None:
    """Report how a query in a worker has ended."""
    if on_step is None or interrupt.error is not None:
        return
    step = Step(
        question=position,
        n_evaluations=answer.n_evaluations,
        budget=call.settings.rows_per_query(call.model),
        output=answer.best.output,
        potential=answer.best.potential,
        reached=answer.reached,
        cost=answer.best.cost,
    )
    interrupt.notify(on_step, step)


# ── reading arguments ──


def _check_space(space: Any) -> None:
    if not isinstance(space, Space):
        raise SpaceError(
            f"`space` must be a Space; got {type(space).__name__}.",
            parameter="space",
            advice="Use Space.from_data(X).",
        )


def _open_evaluations(given: Any) -> Evaluations | None:
    """Return evaluations, opened if a path is given."""
    if isinstance(given, str | os.PathLike):
        return Evaluations.open(given)
    is_usable = isinstance(given, Evaluations | None)
    check(is_usable, "evaluations", "None, Evaluations or a path", given)
    evaluations: Evaluations | None = given
    return evaluations


def _space_of_search(space: Space, settings: CallSettings) -> Space:
    """Return the space for a search; a continuous one moves features without steps."""
    if getattr(settings.search, "continuous", False):
        return space.steps(dict.fromkeys(space.graded))
    return space


def _block_size(settings: CallSettings) -> int:
    """Return the number of queries that share the rows they score."""
    return BLOCK if settings.share == "block" else 1


def _as_rows(queries: Any) -> Any:
    """Return the queries as a table or a list, of which parts can be taken."""
    queries = as_pandas(queries)
    if isinstance(queries, pd.DataFrame):
        return queries
    got = type(queries).__name__
    is_rows = isinstance(queries, Iterable) and not isinstance(queries, pd.Series | Mapping | str)
    if isinstance(queries, np.ndarray):
        got = f"an array of shape {queries.shape}"
        is_rows = queries.ndim == 2
    if not is_rows:
        raise QueryError(
            f"`queries` must be a DataFrame, a 2-D array or a sequence of rows; got {got}. For "
            "one row use explain."
        )
    return list(queries)


def _one_per_query(target: Any, n: int) -> list[Any]:
    """Return one target per query."""
    if isinstance(target, list | tuple | np.ndarray | pd.Series) and np.ndim(target):
        if len(target) != n:
            raise TargetError(
                f"`target` must be one target or one per query; got {len(target)} for {n} queries."
            )
        return list(target)
    return [target] * n


def _read_blocks(call: Call, rows: Any, targets: list[Any]) -> list[Queries]:
    """Return the queries in blocks; each is read before the model is asked about any."""
    is_table = isinstance(rows, pd.DataFrame)
    size = _block_size(call.settings)
    blocks: list[Queries] = []
    notes: list[tuple[str, str]] = []  # name of the query, text
    for first in range(0, len(targets), size):
        part = slice(first, first + size)
        queries = Queries(first, rows.iloc[part] if is_table else rows[part], targets[part], [])
        encoded = encode_block(call.space, queries, call.check_row)
        queries = replace(queries, encoded=encoded)
        if not encoded.errors and (not is_table or has_rules(call.space)):
            regions, failed = make_regions(call, queries)  # raises if a rule fails for a query
            queries = queries if failed else replace(queries, regions=regions)
        if call.on_error == "raise":
            for position, error in encoded.errors.items():
                raise name_query(call, queries, position, error)
        for position, texts in encoded.notes.items():
            notes += [(queries.name(position), text) for text in texts]
        blocks.append(queries)
    _warn_about(notes, call.names_queries)
    return blocks


def _warn_about(notes: list[tuple[str, str]], names_queries: bool) -> None:
    """Issue the notes about queries as warnings; of several queries, about the first one."""
    n_others = len(dict(notes)) - 1
    for name, text in notes[:1] if names_queries else notes:
        more = f" (and {n_others} more)" if n_others else ""
        which = f"for the query {name}{more}: " if names_queries else ""
        warn(which + text, SpaceWarning)


def _cut(frames: Iterator[Any], size: int) -> Iterator[tuple[int, pd.DataFrame]]:
    """Cut tables into blocks, with their positions; the rest of one is put before the next."""
    rest = pd.DataFrame()
    first = 0
    for item in frames:
        given, table = item if isinstance(item, tuple) else (None, item)
        frame = as_pandas(table)
        if not isinstance(frame, pd.DataFrame):
            raise QueryError(
                f"`frames` must be DataFrames; got {type(frame).__name__}. For one table use "
                "explain_many."
            )
        if given is not None and given != first + len(rest):  # others were answered before
            if len(rest):
                yield first, rest
            rest = frame
            first = given
        else:
            rest = pd.concat([rest, frame]) if len(rest) else frame
        while len(rest) >= size:
            yield first, rest.iloc[:size]
            rest = rest.iloc[size:]
            first += size
    if len(rest):
        yield first, rest


# ── putting answers together ──


def _collect(batches: Iterator[Batch], rows: Any) -> dict[int, Explanation]:
    """Return all answers by position; an error carries those of finished blocks."""
    answers: dict[int, Explanation] = {}
    fault: Exception | None = None
    try:
        for batch in batches:
            answers |= batch.answers
            fault = fault or batch.fault
    except KeyboardInterrupt:
        if not answers:
            raise
    except Exception as error:  # workers or the store were lost
        fault = fault or error
    if fault is None:
        return answers
    if answers:
        attach(fault, explanations=_in_order(answers, rows))
    raise fault


def _as_frames(batches: Iterator[Batch], space: Space) -> Iterator[pd.DataFrame]:
    """Yield the answers as tables; a fault or an interruption ends them with an error."""
    for batch in batches:
        if batch.fault is not None:
            raise batch.fault
        if any(answer.stopped == "interrupted" for answer in batch.answers.values()):
            raise KeyboardInterrupt
        yield batch.to_frame(space)


def _in_order(answers: dict[int, Explanation], rows: Any) -> Explanations:
    """Return the answers to some of the queries in `rows`, with their labels."""
    positions = sorted(answers)
    index = rows.index if isinstance(rows, pd.DataFrame) else pd.RangeIndex(len(rows))
    if len(positions) < len(rows):
        index = index[positions]
    return Explanations([answers[position] for position in positions], index)
