"""More queries than fit in memory: tables in, tables out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import chain, islice
from typing import Any

import pandas as pd

from bayescfx.checks import check, is_several
from bayescfx.data.tables import as_pandas
from bayescfx.errors import BayesCFXError, QueryError, SettingsError, suggest
from bayescfx.explainer import run
from bayescfx.explainer.blocks import Block, Done
from bayescfx.explainer.call import CallSettings
from bayescfx.explainer.run_key import check_part, opened
from bayescfx.explainer.workers import count_workers
from bayescfx.models.model import as_model
from bayescfx.result.explanations import lines
from bayescfx.search.turns import Halt
from bayescfx.space.space import Space


def explain_stream(
    model: Any, frames: Iterable[pd.DataFrame], space: Space, target: object, **settings: Any
) -> Iterator[pd.DataFrame]:
    """Explain the queries of many tables, and yield tables of answers, in order.

    Memory does not depend on the number of queries: tables are taken as they are needed and
    answers are handed out as blocks of 64 queries are done. The answers are those of
    :func:`explain_many` for all queries at once, however they are cut into tables.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    frames : iterable of DataFrame
        The queries.
    space : Space
        What may change.
    target : target
        One for all.
    **settings : optional
        `method`, `budget`, `n`, `tolerance`, `timeout`, `evaluations`, `rng`, `on_fault`,
        `run` and `n_jobs`, as in :func:`explain_many`. Under a used name of a `run`, the first
        block of other queries is an error.

    Yields
    ------
    DataFrame
        A line for each query, or for each of its `n` answers, with the query's index. Columns and
        dtypes depend on the space alone: ``status``, ``query_output``, the new row, then
        ``output``, ``valid``, ``potential``, ``cost``, ``n_changes``, ``plausibility``,
        ``changes`` in words, ``n_evaluations``, ``stopped`` and ``error``. A query that can't be
        asked has the status ``"error"`` and stops nothing.

    Examples
    --------
    >>> import numpy as np
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    >>> space, frames = Space.from_data(X), (X[i : i + 40] for i in (0, 40, 80))
    >>> parts = explain_stream(lambda X: X["a"] + X["b"], frames, space, 1.0, budget=100, rng=0)
    >>> [len(part) for part in parts]
    [64, 36]
    """
    ours = ("space", "on_step", "progress", "many")
    known = [each.name for each in fields(CallSettings) if each.init and each.name not in ours]
    for name in settings:
        if name not in known:
            raise SettingsError(f"there is no setting {name!r}.{suggest(name, known)}")
    good = is_several(frames) and not isinstance(frames, pd.DataFrame)
    check(good, "frames", "several DataFrames, one after the other", frames, QueryError)
    return answer_stream(
        CallSettings(space, **settings), model, ((None, frame) for frame in frames), target
    )


def explain_partition(
    frame: pd.DataFrame, model: Any, space: Space, target: object, **settings: Any
) -> pd.DataFrame:
    """Explain the queries of one table as one table; for ``map_partitions`` and its like.

    Parameters
    ----------
    frame : DataFrame
        The queries.
    model, space, target, **settings
        As in :func:`explain_stream`.

    Returns
    -------
    DataFrame
        As in :func:`explain_stream`. Of an empty table it is the empty table of the same columns
        and dtypes, which is the ``meta`` that Dask wants.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [0.0, 0.5, 1.0]}, index=["x", "y", "z"])
    >>> told = explain_partition(X, lambda X: X["a"], Space.from_data(X), 0.7, budget=9, rng=0)
    >>> told["status"].tolist(), told.index.tolist()
    (['reached', 'reached', 'reached'], ['x', 'y', 'z'])
    """
    parts = [*explain_stream(model, [frame], space, target, **settings)]
    return pd.concat(parts) if parts else lines(space, frame.index[:0], {}, {})


def answer_stream(
    settings: CallSettings,
    model: object,
    frames: Iterable[tuple[int | None, pd.DataFrame]],
    target: object,
    refused: Callable[[BayesCFXError], str] = str,
    look: Callable[[Any], object] | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield a table of answers per block; a table may come with the position of its first row."""
    f, keep = as_model(model, settings.space.schema), settings.evaluations is not None
    job = opened(settings, f, (), (target,), refused=refused, look=look, keep=keep)
    settings, space = job.settings, job.settings.space
    order: deque[Block] = deque()  # of the queries

    def made() -> Iterator[Block]:
        for first, rows in _cut(frames):
            wishes = settings.wishes(first, [target] * len(rows))
            order.append(Block(first, rows, wishes, settings.deadline))
            check_part(job, order[-1])
            yield order[-1]

    blocks, waiting, halt = made(), dict[int, Done](), Halt()
    early = [*islice(blocks, 2)]
    if len(job.past.outputs):
        run.confirmed(job, early)
    crew = count_workers(settings.n_jobs) if len(early) > 1 else 1
    for done in run.worked(job, chain(early, blocks), crew, halt):
        if done.fault is not None:
            raise done.fault
        if halt.called:  # by Ctrl-C: the block was cut short
            raise KeyboardInterrupt
        waiting[done.first] = done
        while order and order[0].first in waiting:
            index, first = order[0].rows.index, order.popleft().first
            ready = waiting.pop(first)
            answers = {i - first: answer for i, answer in ready.answers.items()}
            why = {i - first: text for i, text in ready.refused.items()}
            yield lines(space, index, answers, why)
    if job.past.run is not None and not settings.deadline.passed:
        job.store.finish(job.past.run)


def _cut(
    frames: Iterable[tuple[int | None, pd.DataFrame]],
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Cut tables into blocks, with their positions; what is left of one goes before the next."""
    rest, first, size = pd.DataFrame(), 0, run.BLOCK
    for given, table in frames:
        frame = as_pandas(table)
        if not isinstance(frame, pd.DataFrame):
            raise QueryError(
                f"`frames` must be DataFrames; got {type(frame).__name__}. For one table use "
                "explain_many."
            )
        if given is not None and given != first + len(rest):  # some were answered before
            if len(rest):
                yield first, rest
            rest, first = frame, given
        else:
            rest = pd.concat([rest, frame]) if len(rest) else frame
        while len(rest) >= size:
            yield first, rest.iloc[:size]
            rest, first = rest.iloc[size:], first + size
    if len(rest):
        yield first, rest
