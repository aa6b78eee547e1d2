"""The functions of the package: each asks an `Explainer` in one line.

Examples
--------
>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(50, 2))
>>> space = Space.from_data(X)
>>> explain(lambda X: X @ [1.0, 2.0], [0.0, 0.0], space, 2.0, budget=30, rng=0).reached
True
>>> many = explain_many(lambda X: X @ [1.0, 2.0], X[:3], space, 4.0, budget=20, rng=0)
>>> [answer.reached for answer in many]
[True, True, True]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import pandas as pd

from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.explainer.call_settings import CallOptions, Seed, Share
from bayescfx.explainer.explainer import Explainer
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.result.flat_table import flat_table
from bayescfx.search.question import Search
from bayescfx.search.turns import Listener
from bayescfx.space.space import Space


def explain(
    model: Any,
    query: object,
    space: Space,
    target: object,
    *,
    method: str | Search = "auto",
    budget: int | None = None,
    n: int = 1,
    diverse: bool = False,
    tolerance: float = 0.05,
    timeout: float | None = None,
    evaluations: Evaluations | str | os.PathLike[str] | None = None,
    rng: Seed = None,
    short_decimals: bool = True,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
    prove: bool | float = True,
    menu: bool = False,
) -> Explanation:
    """Find what would have to change in `query` for `model` to predict something else.

    Parameters
    ----------
    model : callable or object with ``predict``
        Returns one number per row; or a classifier, for targets such as ``becomes("good")``.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to explain; a table may be one of pandas, polars or Arrow.
    space : Space
        The features and what may change.
    target : Target, float or potential
        The wanted prediction, such as ``decrease(percent=20)`` or ``at_least(150)``.
    method : str or Search, default "auto"
        The search, by name or configured, such as ``BayesCFX(batch=16)``.
    budget : int, optional
        The most single rows sent to the model, the query's included.
    n, diverse : int, default 1, and bool, default False
        The number of different counterfactuals: the nearest, or as different as possible.
    tolerance : float, default 0.05
        The share of the wanted change by which an exact target may be missed: ``reach(150)``.
    timeout : float, optional
        Seconds after which the search ends with the best so far.
    evaluations : Evaluations or path, optional
        Scored rows of this model; new ones are added to them.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same answer.
    short_decimals, on_step, on_fault, progress, run, prove, menu : optional
        See :class:`~bayescfx.explainer.CallSettings`, which describes all settings in full.

    Returns
    -------
    Explanation
    """
    options = CallOptions(method=method, budget=budget, n=n, tolerance=tolerance, timeout=timeout)
    options |= CallOptions(rng=rng, on_step=on_step, on_fault=on_fault, progress=progress, run=run)
    options |= CallOptions(prove=prove, menu=menu, diverse=diverse, short_decimals=short_decimals)
    with closing(Explainer(model, space, evaluations, **options)) as explainer:
        return explainer.explain(query, target)


def explain_many(
    model: Any,
    queries: object,
    space: Space,
    target: object,
    *,
    method: str | Search = "auto",
    budget: int | None = None,
    n: int = 1,
    diverse: bool = False,
    tolerance: float = 0.05,
    short_decimals: bool = True,
    timeout: float | None = None,
    evaluations: Evaluations | str | os.PathLike[str] | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
    prove: bool | float = True,
    menu: bool = False,
    n_jobs: int | None = None,
    share: Share = "block",
) -> Explanations:
    """Explain several queries to one model, sharing every model call between them.

    Queries are answered in blocks of 64. A query that already reaches the target is answered with
    itself. Settings are described in :class:`~bayescfx.explainer.CallSettings`; `budget` and `n`
    are per query, `timeout` is for the whole call.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    queries : DataFrame, array of shape (queries, columns), or sequence of rows
        The rows to explain; a table may be one of pandas, polars or Arrow.
    space : Space
        The features and what may change.
    target : target, or sequence of targets
        One for all, or one per query.
    method, budget, n, diverse, tolerance, short_decimals, timeout, evaluations, rng, on_step, \
on_fault, progress, run, prove, menu : optional
        As in :func:`explain`; seconds for proofs are per query. The same seed gives the same
        answers, whatever `n_jobs`.
    n_jobs : int, optional
        The number of workers that answer blocks at the same time; -1 is one per core.
    share : {"block", "none"}, default "block"
        Whether a query learns from the rows of the other queries of its block.

    Returns
    -------
    Explanations
        In order; after an interruption, of the queries that were begun.
    """
    options = CallOptions(method=method, budget=budget, n=n, tolerance=tolerance, timeout=timeout)
    options |= CallOptions(rng=rng, on_step=on_step, on_fault=on_fault, progress=progress, run=run)
    options |= CallOptions(n_jobs=n_jobs, share=share, prove=prove, menu=menu)
    options |= CallOptions(diverse=diverse, short_decimals=short_decimals)
    with closing(Explainer(model, space, evaluations, **options)) as explainer:
        return explainer.explain_many(queries, target)


def explain_stream(
    model: Any,
    frames: Iterable[pd.DataFrame],
    space: Space,
    target: object,
    *,
    evaluations: Evaluations | str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Iterator[pd.DataFrame]:
    """Explain the queries of many tables, and yield tables of answers, in order.

    Memory does not depend on the number of queries: tables are read as they are needed, and
    answers are returned as blocks of 64 queries are done. The answers are those of
    :func:`explain_many` for all queries at once, however they are cut into tables.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    frames : iterable of DataFrame
        The queries.
    space : Space
        The features and what may change.
    target : target
        One for all.
    evaluations : Evaluations or path, optional
        As in :func:`explain`.
    **settings : optional
        `method`, `budget`, `n`, `tolerance`, `timeout`, `rng`, `on_fault`, `share`, `run`,
        `prove` and `n_jobs`, as in :func:`explain_many`. Under a used name of a `run`, the first
        block of other queries is an error.

    Yields
    ------
    DataFrame
        A line for each query, or for each of its `n` answers, with the query's index. Columns and
        dtypes depend on the space alone: ``status``, ``query_output``, the new row, then
        ``output``, ``valid``, ``potential``, ``cost``, ``distance``, ``n_changes``,
        ``plausibility``, ``changes`` in words, ``n_evaluations``, ``stopped`` and ``error``. A
        query that can't be asked has the status ``"error"`` and does not end the stream.

    Examples
    --------
    >>> import numpy as np
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    >>> space, frames = Space.from_data(X), (X[i : i + 40] for i in (0, 40, 80))
    >>> parts = explain_stream(lambda X: X["a"] + X["b"], frames, space, 1.0, budget=100, rng=0)
    >>> [len(part) for part in parts]
    [64, 36]
    """
    explainer = Explainer(model, space, evaluations)
    try:
        tables = explainer.explain_stream(frames, target, **settings)
    except Exception:
        explainer.close()
        raise
    return _close_after(explainer, tables)


def _close_after(explainer: Explainer, tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield the tables, then close the explainer."""
    with explainer:
        yield from tables


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
    >>> table = explain_partition(X, lambda X: X["a"], Space.from_data(X), 0.7, budget=9, rng=0)
    >>> table["status"].tolist(), table.index.tolist()
    (['reached', 'reached', 'reached'], ['x', 'y', 'z'])
    """
    parts = list(explain_stream(model, [frame], space, target, **settings))
    return pd.concat(parts) if parts else flat_table(space, frame.index[:0], {}, {})
