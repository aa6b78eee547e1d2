"""The front door: `explain` one query, `explain_many`.

Inputs are converted once, strictly, here: the model to rows -> numbers, the query to codes, the
space to a region, the target to a potential once f(query) is known. The search then spends the
budget, and what was evaluated becomes the answer.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.errors import (
    BayesCFXError,
    BayesCFXWarning,
    QueryError,
    SpaceWarning,
    TargetError,
)
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.explainer.run import Asked, Run, in_order
from bayescfx.explainer.task import Seed, Task, check_count, spawn
from bayescfx.progress import progress_bar
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.question import Search
from bayescfx.search.turns import Listener, Step
from bayescfx.space.region import Region
from bayescfx.space.space import Space

_BLOCK = 64  # queries that share what they learn; fixed, so that answers don't depend on `n_jobs`


def explain(
    model: Any,
    query: object,
    space: Space,
    target: object,
    *,
    method: str | Search = "bayes-cfx",
    budget: int = 100,
    n: int = 1,
    tolerance: float = 0.05,
    timeout: float | None = None,
    evaluations: Evaluations | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
) -> Explanation:
    """Say what would have to change in `query` for `model` to answer as wished.

    Parameters
    ----------
    model : callable or object with ``predict``
        Takes rows like those the space was made from, returns one number per row. For a
        classifier pass ``probability(clf, label)``.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row asked about.
    space : Space
        What may change.
    target : Target, float or potential
        The wish: ``decrease(percent=20)``, ``at_least(150)``, a number, or an object with
        ``value`` and ``slope``.
    method : str or Search, default "bayes-cfx"
        ``"bayes-cfx"``, ``"bayes"``, ``"random"``, ``"lbfgsb"``, ``"gradient"``, or a configured
        one such as ``BayesCFX(batch=16)``.
    budget : int, default 100
        The most single rows sent to the model, the query's included.
    n : int, default 1
        How many different answers are wanted; fewer are returned rather than duplicates.
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
        ``.evaluations``, or treat them as not allowed.
    progress : bool, default False
        Whether to show a bar, in a notebook or a terminal; needs tqdm.

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
    task = Task.of(
        model,
        space,
        method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        timeout=timeout,
        evaluations=evaluations,
        rng=rng,
        on_step=on_step,
        on_fault=on_fault,
        many=False,
    )
    (child,) = spawn(rng, 1)
    region = _regions(space, [query], many=False)[0]
    with _watched(task, progress, 1) as watched:
        (answer,) = Run(watched, [Asked(region, target, child, 0)]).answers()
    _tell(task)
    return answer


def explain_many(
    model: Any,
    queries: object,
    space: Space,
    target: object,
    *,
    method: str | Search = "bayes-cfx",
    budget: int = 100,
    n: int = 1,
    tolerance: float = 0.05,
    timeout: float | None = None,
    evaluations: Evaluations | None = None,
    rng: Seed = None,
    on_step: Listener | None = None,
    on_fault: OnFault = "raise",
    progress: bool = False,
    n_jobs: int = 1,
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
        The rows asked about.
    space : Space
        What may change.
    target : target, or sequence of targets
        One for all, or one per query.
    method : str or Search, default "bayes-cfx"
        As in :func:`explain`.
    budget : int, default 100
        The most rows sent to the model per query.
    n : int, default 1
        How many different answers are wanted per query.
    tolerance : float, default 0.05
        How much of the wanted change may be missed and still be called reached.
    timeout : float, optional
        Seconds after which all searches end with their best so far.
    evaluations : Evaluations, optional
        What is known of this model already; what is learnt is added to it.
    rng : int or numpy.random.Generator, optional
        The same seed gives the same answers, whatever `n_jobs`.
    on_step : callable, optional
        Hears a `Step` per query and round. If it raises, all searches end.
    on_fault : {"raise", "skip"}, default "raise"
        As in :func:`explain`.
    progress : bool, default False
        As in :func:`explain`.
    n_jobs : int, default 1
        Blocks worked on at the same time, in threads; the model must then be thread-safe.

    Returns
    -------
    Explanations
        One answer per query, in order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> space = Space.from_data(X)
    >>> many = explain_many(lambda X: X @ [1.0, 2.0], X[:3], space, 4.0, budget=20, rng=0)
    >>> [answer.reached for answer in many]
    [True, True, True]
    """
    check_count("n_jobs", n_jobs)
    task = Task.of(
        model,
        space,
        method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        timeout=timeout,
        evaluations=evaluations,
        rng=rng,
        on_step=on_step,
        on_fault=on_fault,
        many=True,
    )
    rows = _rows(queries)
    children, targets = spawn(rng, len(rows)), _targets(target, len(rows))
    if not rows:
        return Explanations([])
    asked = [
        Asked(region, targets[i], children[i], i)
        for i, region in enumerate(_regions(space, rows, many=True))
    ]
    # Every block starts from what is known now, so that none depends on when another ends; and
    # every query and target is looked at before any search begins.
    with _watched(task, progress, len(rows)) as watched:
        runs = [Run(watched, asked[i : i + _BLOCK]) for i in range(0, len(asked), _BLOCK)]
        answers = in_order(runs, watched, n_jobs)
    _tell(task)
    return Explanations(answers)


def _rows(queries: object) -> list[object]:
    """Return the queries one by one."""
    if isinstance(queries, pd.DataFrame):
        return [queries.iloc[[i]] for i in range(len(queries))]
    got = type(queries).__name__
    if isinstance(queries, np.ndarray):
        got = f"an array of shape {queries.shape}"
    flat = isinstance(queries, np.ndarray) and queries.ndim != 2
    one = isinstance(queries, pd.Series | Mapping | str)
    if flat or one or not isinstance(queries, Iterable):
        raise QueryError(
            f"`queries` must be a DataFrame, a 2-D array or a sequence of rows; got {got}. For "
            "one row use explain."
        )
    return list(queries)


def _targets(target: object, n: int) -> list[object]:
    """Return one target per query."""
    if isinstance(target, list | tuple | np.ndarray | pd.Series):
        if len(target) != n:
            raise TargetError(
                f"`target` must be one target or one per query; got {len(target)} for {n} queries."
            )
        return list(target)
    return [target] * n


def _regions(space: Space, rows: Sequence[object], *, many: bool) -> list[Region]:
    """Return the region around each query; codes mean the same in all of them."""
    schema = space.schema
    for i, row in enumerate(rows):
        with _about(i, many):
            schema, _, _ = schema.covering(schema.cells(row, what="query"), "query")
    regions: list[Region] = []
    said: list[tuple[int, str]] = []
    for i, row in enumerate(rows):
        with _about(i, many), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            regions.append(space.around(row, schema=schema))
        for warning in caught:
            if issubclass(warning.category, SpaceWarning):
                said.append((i, str(warning.message)))
            else:  # from a rule or a derived column
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
    _say_once(said, many)
    return regions


def _say_once(said: Sequence[tuple[int, str]], many: bool) -> None:
    """Warn of what the queries made necessary; of several, tell the first."""
    for i, text in said[: 1 if many else None]:
        others = len({j for j, _ in said}) - 1
        more = f" (and {others} more)" if others else ""
        # from the caller of `explain` or `explain_many`
        where = f"for the query at position {i}{more}: " if many else ""
        warnings.warn(where + text, SpaceWarning, stacklevel=4)


@contextmanager
def _about(i: int, many: bool) -> Iterator[None]:
    """Say in an error which of several queries it is about."""
    try:
        yield
    except BayesCFXError as error:
        if many:
            error.add_note(f"for the query at position {i}")
        raise


@contextmanager
def _watched(task: Task, progress: bool, questions: int) -> Iterator[Task]:
    """Give the task one listener for the user's and for the bar; threads are heard in turn."""
    if not progress and task.listener is None:
        yield task
        return
    lock = threading.Lock()
    with progress_bar(questions) if progress else nullcontext() as bar:
        listeners = [hear for hear in (bar, task.listener) if hear is not None]

        def hear_all(step: Step) -> None:
            with lock:
                for hear in listeners:
                    hear(step)

        yield replace(task, listener=hear_all)


def _tell(task: Task) -> None:
    """Warn if the listener failed."""
    if task.halt.error is not None:
        warnings.warn(
            f"`on_step` raised {task.halt.error!r}, which ended the search. "
            "Raise StopIteration to end it quietly.",
            BayesCFXWarning,
            stacklevel=3,
        )
