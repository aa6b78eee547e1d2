"""The front door: `explain` one query, `explain_many`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.data.tables import as_pandas
from bayescfx.errors import QueryError, TargetError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.explainer.call import CallSettings, Seed
from bayescfx.explainer.run import answer_all, in_order
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
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
    evaluations: Evaluations | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
) -> Explanation:
    """Say what would have to change in `query` for `model` to answer as wished.

    Parameters
    ----------
    model : callable or object with ``predict``
        Takes rows like those the space was made from, returns one number per row. For a
        classifier pass ``probability(clf, label)``.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row asked about; a table may be one of pandas, polars or Arrow.
    space : Space
        What may change.
    target : Target, float or potential
        The wish: ``decrease(percent=20)``, ``at_least(150)``, a number, or an object with
        ``value`` and ``slope``.
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
        How many different answers are wanted. Each has something that no other has; rather than
        two that say the same, fewer are returned, and the answer says so.
    tolerance : float, default 0.05
        How much of the wanted change may be missed and still be called reached.
    timeout : float, optional
        Seconds after which the search ends with the best so far.
    evaluations : Evaluations, optional
        What is known of this model already; what is learnt is added to it.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same answer.
    on_step : callable, optional
        Hears a `Step` after each model call. If it raises, the search ends with the best so far.
    on_fault : {"raise", "skip"}, default "raise"
        What to do with rows for which the model fails: raise an error that carries
        ``.evaluations`` and, once the search has begun, the best so far in ``.explanations``; or
        treat them as not allowed.
    progress : bool, default False
        Whether to show a bar, in a notebook or a terminal; needs tqdm.
    run : str, optional
        A name for this call, kept in the file of `evaluations`. Called again under it, the same
        call replays what the model said and ends as if it had never been cut short, seed included.
        Without a name, an unfinished call with the same arguments and seed is gone on with.

    Returns
    -------
    Explanation
        The best counterfactuals, how sure we are, and everything needed to check them.

    Examples
    --------
    >>> import numpy as np
    >>> space = Space.from_data(np.random.default_rng(0).normal(size=(50, 2)))
    >>> answer = explain(lambda X: X @ [1.0, 2.0], [0.0, 0.0], space, 2.0, budget=30, rng=0)
    >>> answer.reached
    True
    """
    how = method, budget, n, tolerance, timeout, evaluations, rng, on_step, on_fault, progress, run
    settings = CallSettings(space, *how, many=False)
    return answer_all(settings, model, [query], [target])[0]


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
    evaluations: Evaluations | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    run: str | None = None,
    n_jobs: int | None = None,
) -> Explanations:
    """Explain several queries to one model, sharing every model call between them.

    Queries are worked on in blocks of 64. Within a block each round solves one acquisition per
    open question and scores all proposals in one model call, and every question learns from
    every row. A query that already has what is wanted is answered with itself.

    Parameters
    ----------
    model : callable or object with ``predict``
        As in :func:`explain`.
    queries : DataFrame, array of shape (queries, columns), or sequence of rows
        The rows asked about; a table may be one of pandas, polars or Arrow.
    space : Space
        What may change.
    target : target, or sequence of targets
        One for all, or one per query.
    method, budget, n, tolerance, timeout, evaluations, rng, on_step, on_fault, progress, run : \
optional
        As in :func:`explain`; `budget` and `n` are per query, `timeout` is for the whole call.
        The same seed gives the same answers, whatever `n_jobs`. `on_step` hears a `Step` per query
        and round; if it raises, all searches end.
    n_jobs : int, optional
        Workers that work on blocks at the same time, with joblib: -1 is one per core. By default
        1, here, unless ``joblib.parallel_config`` says more, which also says where: processes of
        this machine, threads, a Dask or a Ray cluster. The answers are the same. With workers the
        bar counts queries, and `on_step` hears one `Step` per query, when its block is done.

    Returns
    -------
    Explanations
        One answer per query, in order, with the index of a DataFrame. After an interruption,
        answers to the queries that were begun: ``.index`` says which.

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
    how = method, budget, n, tolerance, timeout, evaluations, rng, on_step, on_fault, progress, run
    settings = CallSettings(space, *how, n_jobs)
    rows = _rows(queries)
    return in_order(answer_all(settings, model, rows, _targets(target, len(rows))), rows)


def _rows(queries: Any) -> Any:
    """Return the queries as a table or a list, of which parts can be taken."""
    queries = as_pandas(queries)
    if isinstance(queries, pd.DataFrame):
        return queries
    got = type(queries).__name__
    several = isinstance(queries, Iterable) and not isinstance(queries, pd.Series | Mapping | str)
    if isinstance(queries, np.ndarray):
        got, several = f"an array of shape {queries.shape}", queries.ndim == 2
    if not several:
        raise QueryError(
            f"`queries` must be a DataFrame, a 2-D array or a sequence of rows; got {got}. For "
            "one row use explain."
        )
    return list(queries)


def _targets(target: object, n: int) -> list[object]:
    """Return one target per query."""
    if isinstance(target, list | tuple | np.ndarray | pd.Series) and np.ndim(target):
        if len(target) != n:
            raise TargetError(
                f"`target` must be one target or one per query; got {len(target)} for {n} queries."
            )
        return list(target)
    return [target] * n
