"""The Explainer: one object between the engine and everything that asks questions.

There is one loop, :meth:`Explainer.ask`. The functions of the package, the command line, the page
and streams are its callers, and give the same answers for the same seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, TypeAlias, Unpack

import numpy as np
import pandas as pd

from bayescfx.checks import check, check_whole, is_a, is_several
from bayescfx.data.tables import as_pandas
from bayescfx.deadline import NEVER, Deadline, limited_to
from bayescfx.errors import (
    BayesCFXWarning,
    EvaluationsError,
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
from bayescfx.evaluations.repeatability import RepeatCheck, check_before
from bayescfx.explainer.batches import LEAST_WAIT, Batch, answer_block
from bayescfx.explainer.block import Block, CheckRow, OnError
from bayescfx.explainer.call_settings import CallOptions, CallSettings, child_generators
from bayescfx.explainer.feature_menu import SIZE, menu_of_query
from bayescfx.explainer.run_key import check_same_queries, run_key
from bayescfx.explainer.workers import count_workers, in_workers
from bayescfx.models.class_scores import answering, needs_predicted_label, predicted_label
from bayescfx.models.model import Model, as_model
from bayescfx.progress import progress_bar
from bayescfx.result.assessment import WhatIf, assess, what_if
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.result.menu import Menu
from bayescfx.result.wording import Output
from bayescfx.search.exact.prover import Prover
from bayescfx.search.turns import CUT_SHORT, Interrupt, Listener, Step
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.space import Space

#: Queries that share the rows they score. Fixed, so that answers do not depend on `n_jobs`.
BLOCK = 64

#: Tables of queries, each alone or with the position of its first row.
Frames: TypeAlias = Iterable[pd.DataFrame | tuple[int, pd.DataFrame]]


class Explainer:
    """Answer what would have to change in a query for the model to predict something else.

    The explainer holds the model, the space, the evaluations and default settings. It reads the
    model once.

    Parameters
    ----------
    model : callable or object with ``predict``
        Takes rows like those the space was made from, returns one number per row; or a classifier,
        for targets such as ``becomes("good")``.
    space : Space
        The features and what may change.
    evaluations : Evaluations or path, optional
        Scored rows of this model. Every call starts from them and adds to them. Without them, every
        call starts from nothing.
    **defaults : optional
        The settings of :class:`~bayescfx.explainer.CallSettings`. Each call may replace them.

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
        if not is_a(space, Space):
            got = type(space).__name__
            advice = "Use Space.from_data(X)."
            raise SpaceError(
                f"`space` must be a Space; got {got}.", parameter="space", advice=advice
            )
        self.settings = CallSettings(**defaults)
        self.space = space
        self._opened: Evaluations | None = None
        if isinstance(evaluations, str | os.PathLike):
            evaluations = Evaluations.open(evaluations)
            self._opened = evaluations
        is_usable = is_a(evaluations, Evaluations, type(None))
        check(is_usable, "evaluations", "None, Evaluations or a path", evaluations)
        self.evaluations = evaluations
        self.model = as_model(model, space.schema)
        self._prover = Prover(self.model)
        self._provers: dict[str, Prover] = {}  # of a classifier's outputs, by their names

    def __repr__(self) -> str:
        name = self.model.name or "function"
        return f"Explainer({name}, {len(self.space.features)} features)"

    def __enter__(self) -> Explainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file of evaluations, if the explainer opened it."""
        if self._opened is not None:
            self._opened.close()

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
            `tolerance`; no other setting has an effect here, and any other is an error.

        Returns
        -------
        WhatIf
        """
        settings = self.settings.changed(options, only=("tolerance",))
        return what_if(self.model, query, changes, self.space, target, tolerance=settings.tolerance)

    def menu(self, query: object, target: object, *, size: int = SIZE, **options: Any) -> Menu:
        """Return which small sets of features can reach a target; see :func:`bayescfx.menu`.

        Parameters
        ----------
        query : Series, one-row DataFrame, dict or array of shape (columns,)
            The row to start from.
        target : Target, float or potential
            The wanted prediction.
        size : int, default 2
            The largest number of features of a set.
        **options : optional
            `tolerance`; no other setting has an effect here, and any other is an error.

        Returns
        -------
        Menu
        """
        tolerance = self.settings.changed(options, only=("tolerance",)).tolerance
        region = self.space.around(query)
        predicted = partial(predicted_label, self.model, region.rows(region.query[None]))
        model, asked = answering(self.model, target, predicted)
        return menu_of_query(model, self._prover_of(model), region, asked, size, tolerance)

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
            `tolerance`; no other setting has an effect here, and any other is an error.

        Returns
        -------
        DataFrame
            One line per row.
        """
        settings = self.settings.changed(options, only=("tolerance",))
        return assess(self.model, query, rows, self.space, target, tolerance=settings.tolerance)

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

        The iteration ends after a ``fault`` or an interruption, which an iterator of tables raises.

        Parameters
        ----------
        queries : DataFrame, array, sequence of rows, or iterator of DataFrames
            Tables are read as they are needed; each may come with the position of its first row.
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
        is_stream = isinstance(queries, Iterator)
        rows = queries if is_stream else _as_rows(queries)
        targets = [target] if is_stream else _one_per_query(target, len(rows))
        output, targets = self._choose_output(targets)
        model = output or self.model
        call = Block(
            settings=settings,
            space=self._searched_space(settings),
            model=model,
            prover=self._prover_of(model),
            provers=self._provers,
            by_label=output is None,
            evaluations=self._claim(settings, output),
            snapshot=Snapshot(),
            deadline=NEVER if settings.timeout is None else Deadline.after(settings.timeout),
            names_queries=names_queries,
            on_error=on_error,
            check_row=check_row,
        )
        if is_stream:
            return self._ask_stream(call, queries, targets[0])
        blocks = _read_table(call, rows, targets)
        if self.evaluations is not None and not call.by_label:
            call = _begin(call, blocks, targets)
        return _answer_blocks(call, _with_generators(call, blocks), len(rows), Interrupt())

    def _ask_stream(self, call: Block, frames: Iterator[Any], target: Any) -> Iterator[Batch]:
        """Yield the answers to tables of queries; without evaluations, no scored row is kept."""
        if self.evaluations is None or call.by_label:
            return _answer_stream(replace(call, keeps_rows=False), frames, target)
        return _answer_stream(_begin(call, [], (target,)), frames, target)

    def _searched_space(self, settings: CallSettings) -> Space:
        """Return the space, without steps if the search moves features continuously."""
        if getattr(settings.search, "continuous", False):
            return self.space.steps(dict.fromkeys(self.space.graded))
        return self.space

    def _choose_output(self, targets: list[Any]) -> tuple[Model | None, list[Any]]:
        """Return the model that targets are about, and the targets of its output.

        The model is None if they are about several outputs of a classifier, or if that depends on
        the label that it predicts for a query.
        """
        distinct = {id(target): target for target in targets}
        if any(needs_predicted_label(self.model, target) for target in distinct.values()):
            return None, targets
        chosen = {key: answering(self.model, target) for key, target in distinct.items()}
        models = {model.name: model for model, _ in chosen.values()} or {None: self.model}
        if len(models) > 1:
            return None, targets
        (model,) = models.values()
        return model, [chosen[id(target)][1] for target in targets]

    def _prover_of(self, model: Model) -> Prover:
        """Return the prover of an output, which reads the model once."""
        if model is self.model:
            return self._prover
        return self._provers.setdefault(str(model.name), Prover(model))

    def _claim(self, settings: CallSettings, model: Model | None) -> Evaluations:
        """Return the evaluations of a model, or new ones; raise if they are of another model.

        Without a model, they are those of several outputs of a classifier.
        """
        given = Evaluations() if self.evaluations is None else self.evaluations
        if model is None:
            _check_several_outputs(settings, self.evaluations)
            return given
        # A model object is recognised by itself only where the budget allows to check whether it
        # has changed; estimators, which may be refitted, never.
        is_steady = not model.local and settings.rows_per_query(model) > 2
        columns = tuple(self.space.schema.places)
        store = given.claim(columns, model.identity(is_steady=is_steady))
        if settings.run is not None and store.file is None:
            raise _run_without_file(settings.run)
        return store


def _check_several_outputs(settings: CallSettings, given: Evaluations | None) -> None:
    """Raise if a call about several outputs of a classifier can't keep or continue its rows."""
    why = "the targets are about the probabilities of several labels"
    if settings.run is not None:
        raise SettingsError(f"`run` must be None: {why}.", parameter="run")
    if given is not None and given.file is None:
        raise EvaluationsError(
            f"`evaluations` must be a file: {why}, and each needs its own rows.",
            parameter="evaluations",
            advice="Leave it out, or pass a path.",
        )


def _run_without_file(run: str) -> SettingsError:
    """Return the error for a named run whose evaluations are not kept in a file."""
    return SettingsError(
        f"`run` must be None without a file of evaluations; got {run!r}.",
        parameter="run",
        advice="Pass evaluations=Evaluations.open(path).",
    )


# ── the loop ──


def _begin(call: Block, blocks: list[Block], targets: Any) -> Block:
    """Return the call with the evaluations it starts from.

    A run without a seed has the one that was drawn for it when it began.
    """
    settings = call.settings
    with limited_to(call.deadline):
        snapshot = call.evaluations.begin(settings.run, _key_function(call, blocks, targets))
    if settings.rng is None:
        settings = replace(settings, rng=snapshot.seed)
    return replace(call, settings=settings, snapshot=snapshot)


def _key_function(call: Block, blocks: list[Block], targets: Any) -> Callable[[], str] | None:
    """Return a function that computes the call's key; None if the call can't be repeated."""
    settings = call.settings
    if settings.rng is None and settings.run is None:
        return None
    return partial(run_key, settings, call.space, blocks, targets)


def _answer_blocks(
    call: Block, blocks: Iterator[Block], n_queries: int | None, interrupt: Interrupt
) -> Iterator[Batch]:
    """Return the answers to blocks in order, here or in workers: the loop of every call.

    It ends after a fault or an interruption, which `interrupt` then shows. The progress bar needs
    the number of queries.
    """
    first_blocks = list(islice(blocks, 2))
    n_workers = count_workers(call.settings.n_jobs) if len(first_blocks) > 1 else 1
    if len(call.snapshot.outputs):
        first_blocks = _check_model_before(call, first_blocks)
    blocks = chain(first_blocks, blocks)
    if n_workers > 1:
        return _answer_in_workers(call, blocks, n_workers, n_queries, interrupt)
    return _answer_here(call, blocks, n_queries, interrupt)


def _answer_stream(call: Block, frames: Iterator[Any], target: Any) -> Iterator[Batch]:
    """Yield the answers to the rows of many tables; none is read before it is needed.

    An interruption is raised, or answers that were cut short would look like all of them.
    """
    interrupt = Interrupt()
    for batch in _answer_blocks(call, _read_stream(call, frames, target), None, interrupt):
        if interrupt.is_by_user:
            raise KeyboardInterrupt
        yield batch
    if interrupt.is_by_user:
        raise KeyboardInterrupt


def _answer_here(
    call: Block, blocks: Iterator[Block], n_queries: int | None, interrupt: Interrupt
) -> Iterator[Batch]:
    """Yield the answers to blocks, worked out in this process."""
    reasons: set[str] = set()  # why searches have stopped
    checks_model = True
    with _listening(call, n_queries) as on_step:
        for block in blocks:
            store = call.evaluations if call.keeps_rows else Evaluations()
            batch = answer_block(block, store, interrupt, on_step, checks_model=checks_model)
            if batch.repeat_check is not None:
                checks_model = _is_deterministic(call, batch.repeat_check, interrupt)
            reasons |= {answer.stopped for answer in batch.answers.values()}
            yield batch
            if interrupt.is_requested:
                break
    _end_call(call, interrupt, reasons)


def _is_deterministic(call: Block, check: RepeatCheck, interrupt: Interrupt) -> bool:
    """Score the rows of a finished block again; an interruption ends the call after the block."""
    try:
        with limited_to(call.deadline):
            return check.is_deterministic(call.model)
    except KeyboardInterrupt:  # the answers of this block are complete
        interrupt.is_requested = True
        return True


def _answer_in_workers(
    call: Block,
    blocks: Iterator[Block],
    n_workers: int,
    n_queries: int | None,
    interrupt: Interrupt,
) -> Iterator[Batch]:
    """Yield the answers of workers in order; the rows they scored are recorded in that order."""
    reasons: set[str] = set()  # why searches have stopped
    with _listening(call, n_queries, in_workers=True) as on_step:
        for batch in _in_order_of_blocks(call, blocks, n_workers, interrupt, on_step):
            if call.evaluations.file is None:
                _absorb(call, batch)
            reasons |= {answer.stopped for answer in batch.answers.values()}
            yield _with_context(call, batch)
    _end_call(call, interrupt, reasons)


def _with_context(call: Block, batch: Batch) -> Batch:
    """Return the answers of a worker with what was not sent: the evaluations and the space."""
    answers = {
        position: answer.with_context(call.evaluations, call.space)
        for position, answer in batch.answers.items()
    }
    if batch.fault is not None:
        attach(batch.fault, evaluations=call.evaluations)
    return replace(batch, answers=answers, scored=None)


def _in_order_of_blocks(
    call: Block,
    blocks: Iterable[Block],
    n_workers: int,
    interrupt: Interrupt,
    on_step: Listener | None,
) -> Iterator[Batch]:
    """Yield what workers return, in the order of the blocks; report it and check it on arrival."""
    order: list[int] = []  # of the blocks that were handed out
    waiting: dict[int, Batch] = {}
    checks_model = True
    try:
        for batch in in_workers(call, _noting_order(blocks, order), n_workers, interrupt):
            _receive(call, batch, interrupt, on_step)
            if checks_model:
                checks_model = _is_same_here(call, batch.repeat_check)
            waiting[batch.first] = batch
            while order and order[0] in waiting:
                yield waiting.pop(order.pop(0))
    except KeyboardInterrupt:
        interrupt.is_requested = True
    for first in sorted(waiting):  # others before them were not finished
        yield waiting[first]


def _noting_order(blocks: Iterable[Block], order: list[int]) -> Iterator[Block]:
    """Yield the blocks, and append the position of each to `order`."""
    for block in blocks:
        order.append(block.first)
        yield block


def _receive(call: Block, batch: Batch, interrupt: Interrupt, on_step: Listener | None) -> None:
    """Record the rows of a worker in the file and report its answers; a fault ends the call."""
    if call.evaluations.file is not None:  # what a crash must not lose
        _absorb(call, batch)
    if on_step is not None:
        _report_ends(call, batch, interrupt, on_step)
    if batch.fault is not None:
        interrupt.end_after_fault()


def _is_same_here(call: Block, check: RepeatCheck | None) -> bool:
    """Return whether the model gives a worker's outputs in this process, as far as it is known."""
    if check is None or call.deadline.passed:
        return True
    with limited_to(call.deadline):
        return check.is_deterministic(call.model, in_other_process=True)


def _absorb(call: Block, batch: Batch) -> None:
    """Record the rows that a worker scored."""
    if batch.scored is not None:
        call.evaluations.absorb(batch.scored, call.model.origin)


def _end_call(call: Block, interrupt: Interrupt, reasons: set[str]) -> None:
    """Warn about an error of the user's listener; note a run that was not cut short."""
    if interrupt.error is not None:
        warn(
            f"`on_step` raised {interrupt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
        )
    if call.snapshot.run is None or interrupt.is_requested:
        return
    if reasons.isdisjoint(CUT_SHORT):  # else the same call goes on with the run
        call.evaluations.finish(call.snapshot.run)


def _check_model_before(call: Block, blocks: list[Block]) -> list[Block]:
    """Check that the evaluations are of this model, at the expense of the first query.

    Returns the blocks with what was spent.
    """
    for i, block in enumerate(blocks):
        regions = replace(block, on_error="record").make_regions().regions
        for region in regions.values():
            on_fault = call.settings.on_fault
            evaluator = Evaluator(
                call.model, region.schema, call.evaluations, call.snapshot, on_fault=on_fault
            )
            account = Account(evaluator, region, call.settings.rows_per_query(call.model))
            with limited_to(call.deadline, LEAST_WAIT):
                check_before(account)
            return [*blocks[:i], replace(block, n_spent=account.spent), *blocks[i + 1 :]]
    return blocks


@contextmanager
def _listening(
    call: Block, n_queries: int | None, *, in_workers: bool = False
) -> Iterator[Listener | None]:
    """Yield one listener for the progress bar and the user's; errors carry the evaluations."""
    on_step = call.settings.on_step
    try:
        if call.settings.progress and n_queries:
            with progress_bar(n_queries, in_workers) as show:
                show.output = Output.of(call.model.about)
                yield show if on_step is None else partial(_show_and_tell, show, on_step)
        else:
            yield on_step
    except Exception as error:
        attach(error, evaluations=call.evaluations)
        raise


def _show_and_tell(show: Listener, on_step: Listener, step: Step) -> None:
    """Pass a step to the progress bar and to the user's listener."""
    show(step)
    on_step(step)


def _report_ends(call: Block, batch: Batch, interrupt: Interrupt, on_step: Listener) -> None:
    """Report how the queries of a block in a worker have ended."""
    for position, answer in batch.answers.items():
        if interrupt.error is not None:
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


def _read_table(call: Block, rows: Any, targets: list[Any]) -> list[Block]:
    """Return the queries in blocks; each is read before the model is asked about any."""
    is_table = isinstance(rows, pd.DataFrame)
    # Rules other than limits may fail for a query, and lists are not checked before.
    makes_regions = not is_table or len(limits_of(call.space)) < len(call.space.rules)
    parts = rows.iloc if is_table else rows
    size = {"block": BLOCK, "none": 1}[call.settings.share]
    blocks: list[Block] = []
    for first in range(0, len(targets), size):
        part = slice(first, first + size)
        block = replace(call, first=first, rows=parts[part], targets=targets[part])
        blocks.append(_read_block(block, makes_regions))
    _warn_about_queries(blocks, call.names_queries)
    return blocks


def _read_block(block: Block, makes_regions: bool) -> Block:
    """Return a block with its queries as codes and, if they are made already, its regions."""
    encoded = block.encode()
    block = replace(block, encoded=encoded)
    if encoded.errors:
        block.raise_first(encoded.errors)
    elif makes_regions:
        found = block.make_regions()  # raises if a rule fails for a query
        block = replace(block, encoded=replace(encoded, notes=found.notes))
        return block if found.errors else replace(block, regions=found.regions)
    return block


def _warn_about_queries(blocks: list[Block], names_queries: bool) -> None:
    """Issue the notes about queries as warnings; of several queries, about the first one."""
    notes = [
        (block.name(position), text)
        for block in blocks
        for position, texts in block.encode().notes.items()
        for text in texts
    ]
    if not names_queries:
        for _, text in notes:
            warn(text, SpaceWarning)
    elif notes:
        _warn_about_first(notes)


def _warn_about_first(notes: list[tuple[str, str]]) -> None:
    """Issue the first of the notes, which are names of queries with texts, as a warning."""
    name, text = notes[0]
    n_others = len(dict(notes)) - 1
    more = f" (and {n_others} more)" if n_others else ""
    warn(f"for the query {name}{more}: {text}", SpaceWarning)


def _with_generators(call: Block, blocks: list[Block]) -> Iterator[Block]:
    """Yield the blocks with what the call got when it began, and a generator for each query."""
    parent = np.random.default_rng(call.settings.rng)
    for block in blocks:
        generators = child_generators(call.settings.rng, parent, block.first, len(block.rows))
        yield replace(block, settings=call.settings, snapshot=call.snapshot, generators=generators)


def _read_stream(call: Block, frames: Iterator[Any], target: Any) -> Iterator[Block]:
    """Yield the rows of many tables in blocks."""
    parent = np.random.default_rng(call.settings.rng)
    size = {"block": BLOCK, "none": 1}[call.settings.share]
    for first, part in _cut(frames, size):
        generators = child_generators(call.settings.rng, parent, first, len(part))
        targets = [target] * len(part)
        block = replace(call, first=first, rows=part, targets=targets, generators=generators)
        check_same_queries(block)
        yield block


def _cut(frames: Iterator[Any], size: int) -> Iterator[tuple[int, pd.DataFrame]]:
    """Cut tables into blocks, with their positions; the rest of one is put before the next."""
    rest = pd.DataFrame()
    first = 0
    for item in frames:
        given, frame = _positioned_frame(item)
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


def _positioned_frame(item: Any) -> tuple[int | None, pd.DataFrame]:
    """Return the position of a table's first row, if it comes with one, and the table."""
    given, table = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
    frame = as_pandas(table)
    if not isinstance(frame, pd.DataFrame):
        raise QueryError(
            f"`frames` must be DataFrames; got {type(frame).__name__}. For one table use "
            "explain_many."
        )
    if given is not None:
        check_whole("the position of a table in `frames`", given, 0)
    return given, frame


# ── putting answers together ──


def _collect(batches: Iterator[Batch], rows: Any) -> dict[int, Explanation]:
    """Return all answers by position; an error carries those of finished blocks."""
    answers: dict[int, Explanation] = {}
    faults: list[Exception | None] = []
    try:
        for batch in batches:
            answers |= batch.answers
            faults.append(batch.fault)
    except KeyboardInterrupt:
        if not answers:
            raise
    except Exception as error:  # workers or the store were lost
        faults.append(error)
    fault = next(filter(None, faults), None)
    if fault is not None:
        raise _with_answers(fault, answers, rows)
    return answers


def _with_answers(fault: Exception, answers: dict[int, Explanation], rows: Any) -> Exception:
    """Return an error that carries the answers of finished blocks, if there are any."""
    return attach(fault, explanations=_in_order(answers, rows)) if answers else fault


def _as_frames(batches: Iterator[Batch], space: Space) -> Iterator[pd.DataFrame]:
    """Yield the answers as tables; a fault ends them with an error."""
    for batch in batches:
        if batch.fault is not None:
            raise batch.fault
        yield batch.to_frame(space)


def _in_order(answers: dict[int, Explanation], rows: Any) -> Explanations:
    """Return the answers to some of the queries in `rows`, with their labels."""
    positions = sorted(answers)
    index = rows.index if isinstance(rows, pd.DataFrame) else pd.RangeIndex(len(rows))
    if len(positions) < len(rows):
        index = index[positions]
    return Explanations([answers[position] for position in positions], index)
