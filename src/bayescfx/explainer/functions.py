"""The functions of the package: each asks an `Explainer` in one line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.explainer.call_settings import Seed, Share
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
    tolerance: float = 0.05,
    timeout: float | None = None,
    evaluations: Evaluations | str | os.PathLike[str] | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
) -> Explanation:
    """Find what would have to change in `query` for `model` to predict something else.

    Parameters
    ----------
    model : callable or object with ``predict``
        Takes rows like those the space was made from, returns one number per row. For a
        classifier pass ``probability(clf, label)``.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to explain; a table may be one of pandas, polars or Arrow.
    space : Space
        The features and what may change.
    target : Target, float or potential
        The wanted prediction: ``decrease(percent=20)``, ``at_least(150)``, a number, or an object
        with ``value`` and ``slope``.
    method : str or Search, default "auto"
        ``"auto"``: a sweep without a surrogate where the budget affords 50 rows per feature that
        may move or 2,000 in all, else Bayes-CFX, which also takes over when the sweep has not
        reached the target.
        By name: ``"bayes-cfx"``, ``"sweep"``, ``"bayes"``, ``"random"``, ``"lbfgsb"``,
        ``"gradient"``; or a configured one such as ``BayesCFX(batch=16)``.
    budget : int, optional
        The most single rows sent to the model, the query's included. By default 100; with
        ``"auto"`` and ``"sweep"`` 2,000 for estimators that run in this process (scikit-learn,
        LightGBM, XGBoost, CatBoost, ONNX Runtime, PyTorch).
    n : int, default 1
        The number of different counterfactuals wanted. Each changes something that no other
        changes; fewer are returned, with a note, if there are no more.
    tolerance : float, default 0.05
        The share of the wanted change that may be missed and still count as reached.
    timeout : float, optional
        Seconds after which the search ends with the best so far.
    evaluations : Evaluations or path, optional
        Scored rows of this model; new ones are added to them.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same answer.
    on_step : callable, optional
        Receives a `Step` after each model call. If it raises, the search ends with the best so
        far.
    on_fault : {"raise", "skip"}, default "raise"
        What happens to rows for which the model fails: raise an error that carries
        ``.evaluations`` and, once the search has begun, the best so far in ``.explanations``; or
        treat the rows as not allowed.
    progress : bool, default False
        Whether to show a progress bar, in a notebook or a terminal; needs tqdm.
    run : str, optional
        A name for this call, kept in the file of `evaluations`. Made again under this name, the
        call replays the scored rows and ends as if it had never been cut short, seed included.
        Without a name, an unfinished call with the same arguments and seed is continued.

    Returns
    -------
    Explanation
        The best counterfactuals, how certain they are, and everything needed to check them.

    Examples
    --------
    >>> import numpy as np
    >>> space = Space.from_data(np.random.default_rng(0).normal(size=(50, 2)))
    >>> answer = explain(lambda X: X @ [1.0, 2.0], [0.0, 0.0], space, 2.0, budget=30, rng=0)
    >>> answer.reached
    True
    """
    with Explainer(
        model,
        space,
        evaluations,
        method=method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        timeout=timeout,
        rng=rng,
        on_step=on_step,
        on_fault=on_fault,
        progress=progress,
        run=run,
    ) as explainer:
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
    tolerance: float = 0.05,
    timeout: float | None = None,
    evaluations: Evaluations | str | os.PathLike[str] | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
    n_jobs: int | None = None,
    share: Share = "block",
) -> Explanations:
    """Explain several queries to one model, sharing every model call between them.

    Queries are answered in blocks of 64. Within a block, each round solves one acquisition per
    open question and scores all proposals in one model call. A query that already reaches the
    target is answered with itself.

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
    method, budget, n, tolerance, timeout, evaluations, rng, on_step, on_fault, progress, run : \
optional
        As in :func:`explain`; `budget` and `n` are per query, `timeout` is for the whole call.
        The same seed gives the same answers, whatever `n_jobs`. `on_step` receives a `Step` per
        query and round; if it raises, all searches end.
    n_jobs : int, optional
        The number of workers that answer blocks at the same time, with joblib: -1 is one per core.
        By default 1, this process, unless ``joblib.parallel_config`` sets another number and
        place: processes on this machine, threads, a Dask or a Ray cluster. The answers are the
        same. With workers, the bar counts queries, and `on_step` receives one `Step` per query,
        when its block is done.
    share : {"block", "none"}, default "block"
        What a query learns from, besides the `evaluations` known when the call began: the rows
        scored for the other queries of its block, or nothing, as if it were asked alone.

    Returns
    -------
    Explanations
        One answer per query, in order, with the index of a DataFrame. After an interruption,
        answers to the queries that were begun: ``.index`` gives their labels.

    Raises
    ------
    WorkerError
        If workers are lost three times with the same block. It carries ``.evaluations`` and, in
        ``.explanations``, the answers of finished blocks.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> space = Space.from_data(X)
    >>> many = explain_many(lambda X: X @ [1.0, 2.0], X[:3], space, 4.0, budget=20, rng=0)
    >>> [answer.reached for answer in many]
    [True, True, True]
    """
    with Explainer(
        model,
        space,
        evaluations,
        method=method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        timeout=timeout,
        rng=rng,
        on_step=on_step,
        on_fault=on_fault,
        progress=progress,
        run=run,
        n_jobs=n_jobs,
        share=share,
    ) as explainer:
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
        `method`, `budget`, `n`, `tolerance`, `timeout`, `rng`, `on_fault`, `share`, `run` and
        `n_jobs`, as in :func:`explain_many`. Under a used name of a `run`, the first block of
        other queries is an error.

    Yields
    ------
    DataFrame
        A line for each query, or for each of its `n` answers, with the query's index. Columns and
        dtypes depend on the space alone: ``status``, ``query_output``, the new row, then
        ``output``, ``valid``, ``potential``, ``cost``, ``n_changes``, ``plausibility``,
        ``changes`` in words, ``n_evaluations``, ``stopped`` and ``error``. A query that can't be
        asked has the status ``"error"`` and does not end the stream.

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
