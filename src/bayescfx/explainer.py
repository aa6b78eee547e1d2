"""The front door: `explain` one query, `explain_many`.

Inputs are converted once, strictly, here: the model to rows -> numbers, the query to codes, the
space to a region, the target to a potential once f(query) is known. The search then spends the
budget, and what was evaluated becomes the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.counterfactual import Counterfactual
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import (
    BayesCFXError,
    ModelError,
    QueryError,
    SpaceError,
    TargetError,
    suggest,
)
from bayescfx.evaluations import Evaluations
from bayescfx.evaluator import Account, Evaluator
from bayescfx.explanations import Explanations
from bayescfx.model import Model, as_model
from bayescfx.potentials import contains
from bayescfx.problem import Problem
from bayescfx.region import Region
from bayescfx.report import counterfactuals, query_row
from bayescfx.result import Explanation, Status
from bayescfx.search.choice import distinct
from bayescfx.search.methods import METHODS
from bayescfx.search.question import Question, Search
from bayescfx.search.turns import Listener, Stopped, Turns
from bayescfx.search.verdict import judge
from bayescfx.space import Space
from bayescfx.targets import as_target
from bayescfx.wishes import Target

Seed: TypeAlias = int | np.random.Generator | None
OnFault: TypeAlias = Literal["raise", "skip"]

_BLOCK = 64  # queries that share what they learn; fixed, so that answers don't depend on `n_jobs`
_LOOK = 4  # rows evaluated first to see the range of outputs that a user's own potential meets


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
    task = _Task.of(
        model,
        space,
        method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        on_fault=on_fault,
        timeout=timeout,
        on_step=on_step,
        seed=rng,
        patient=False,
    )
    store = Evaluations() if evaluations is None else evaluations
    region = space.around(query)
    return _Run.of(task, [region], [target], _spawn(rng, 1), [0], store).answers()[0]


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
    >>> many = explain_many(lambda X: X @ [1.0, 2.0], X[:3], Space.from_data(X), 4.0, budget=20, rng=0)
    >>> [answer.reached for answer in many]
    [True, True, True]
    """
    if n_jobs < 1:
        raise ValueError(f"`n_jobs` must be at least 1; got {n_jobs!r}.")
    task = _Task.of(
        model,
        space,
        method,
        budget=budget,
        n=n,
        tolerance=tolerance,
        on_fault=on_fault,
        timeout=timeout,
        on_step=on_step,
        seed=rng,
        patient=True,
    )
    store = Evaluations() if evaluations is None else evaluations
    rows = _rows(queries)
    targets = _targets(target, len(rows))
    if not rows:
        return Explanations([])
    for row in rows:
        space = space.including(row)
    task = replace(task, space=space)
    regions = [_around(space, row, i) for i, row in enumerate(rows)]
    children = _spawn(rng, len(rows))
    blocks = [range(i, min(i + _BLOCK, len(rows))) for i in range(0, len(rows), _BLOCK)]
    # Every block starts from what is known now, so that none depends on when another ends.
    runs = [
        _Run.of(
            task,
            [regions[i] for i in block],
            [targets[i] for i in block],
            [children[i] for i in block],
            block,
            store,
        )
        for block in blocks
    ]
    return Explanations(_in_order(runs, store, n_jobs))


@dataclass(frozen=True)
class _Task:
    """What all questions of one call have in common, checked and converted."""

    model: Model
    space: Space
    search: Search
    name: str
    budget: int
    n: int
    tolerance: float
    deadline: Deadline
    listener: Listener | None
    on_fault: OnFault
    seed: int | None
    patient: bool

    @classmethod
    def of(cls, model: object, space: Space, method: str | Search, **given: Any) -> _Task:
        """Check what was given, once."""
        if not isinstance(space, Space):
            raise SpaceError(
                f"`space` must be a Space; got {type(space).__name__}. Use Space.from_data(X)."
            )
        for name in ("budget", "n"):
            value = given[name]
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
        if given["on_fault"] not in ("raise", "skip"):
            raise ValueError(f"`on_fault` must be 'raise' or 'skip'; got {given['on_fault']!r}.")
        timeout, seed = given["timeout"], given["seed"]
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"`timeout` must be None or seconds >= 0; got {timeout!r}.")
        search = _search(method)
        return cls(
            model=as_model(model, space.schema),
            space=space,
            search=search,
            name=method if isinstance(method, str) else type(search).__name__,
            budget=int(given["budget"]),
            n=int(given["n"]),
            tolerance=given["tolerance"],
            deadline=Deadline.after(timeout),
            listener=given["on_step"],
            on_fault=given["on_fault"],
            seed=int(seed) if isinstance(seed, int | np.integer) else None,
            patient=given["patient"],
        )


def _search(method: str | Search) -> Search:
    """Return the search that `method` names or is."""
    if isinstance(method, str):
        if method in METHODS:
            return METHODS[method]()
        names = ", ".join(map(repr, METHODS))
        raise ValueError(
            f"`method` must be one of {names} or a Search; got {method!r}."
            + suggest(method, METHODS)
        )
    if isinstance(method, type) or not callable(getattr(method, "run", None)):
        raise ValueError(
            f"`method` must be a name or a configured Search such as BayesCFX(); got {method!r}."
        )
    return method


@dataclass(frozen=True)
class _Run:
    """Questions that share one evaluator, from f(query) to the answers."""

    task: _Task
    regions: Sequence[Region]
    targets: Sequence[object]
    rngs: Sequence[np.random.Generator]
    labels: Sequence[int]
    evaluator: Evaluator
    accounts: Sequence[Account]

    @classmethod
    def of(
        cls,
        task: _Task,
        regions: Sequence[Region],
        targets: Sequence[object],
        rngs: Sequence[np.random.Generator],
        labels: Sequence[int],
        store: Evaluations,
    ) -> _Run:
        evaluator = Evaluator(
            task.model,
            regions[0].schema,
            store,
            deadline=task.deadline,
            on_fault=task.on_fault,
        )
        accounts = [evaluator.account(region, task.budget) for region in regions]
        return cls(task, regions, targets, rngs, labels, evaluator, accounts)

    def answers(self) -> list[Explanation]:
        """Search, and report."""
        outputs = self._outputs()
        questions: dict[int, Question] = {}
        for i, output in enumerate(outputs):
            question = self._question(i, output)
            if question is not None:
                questions[i] = question
        turns = Turns(
            self.task.search,
            list(questions.values()),
            self.evaluator,
            self.task.listener,
            [self.labels[i] for i in questions],
        )
        endings = dict(zip(questions, turns.run(), strict=True))
        return [
            self._report(i, questions[i], endings[i]) if i in questions else self._met(i, output)
            for i, output in enumerate(outputs)
        ]

    def _outputs(self) -> list[float]:
        """Return f(query) for each, in one model call, whatever the timeout."""
        requests = [
            (account, region.query[None])
            for account, region in zip(self.accounts, self.regions, strict=True)
        ]
        patient, self.evaluator.deadline = self.evaluator.deadline, NEVER
        try:
            outputs = [float(score.y[0]) for score in self.evaluator.evaluate_many(requests)]
        finally:
            self.evaluator.deadline = patient
        for i, output in enumerate(outputs):
            if np.isnan(output):
                raise ModelError(
                    f"`model` failed for the query{self._which(i)} itself: "
                    f"{self.evaluator.faults[-1]} Correct the query or the model."
                )
        return outputs

    def _which(self, i: int) -> str:
        return f" at position {self.labels[i]}" if self.task.patient else ""

    def _question(self, i: int, output: float) -> Question | None:
        """Return the question that query `i` poses; None if it has what is wanted already."""
        task = self.task
        target = self._target(i, output)
        try:
            problem = Problem.of(
                self.regions[i], output, target, tolerance=task.tolerance, link=task.model.link
            )
        except TargetError as error:
            if task.patient and contains(target.acceptance(output, task.tolerance), [output])[0]:
                return None
            if task.patient:
                error.add_note(f"for the query{self._which(i)}")
            raise
        return Question(problem, self.accounts[i], self.rngs[i], task.deadline, task.n)

    def _target(self, i: int, output: float) -> Target:
        """Return the wish as a target; a user's own potential is checked on outputs first."""
        given = self.targets[i]
        if isinstance(given, Target):
            return given
        account, seen = self.accounts[i], [output]
        if hasattr(given, "value") and hasattr(given, "slope"):
            rows = self.regions[i].background_rows(_LOOK, self.rngs[i])
            if account.left > len(rows):
                seen.extend(account.evaluate(rows))
        return as_target(given, np.array(seen)[~np.isnan(seen)])

    def _report(self, i: int, question: Question, ending: Stopped) -> Explanation:
        """Return the answer to a question whose search has ended."""
        task, account = self.task, self.accounts[i]
        chosen = distinct(question, task.n)
        known = self.evaluator.known
        potential = question.problem.score(known.outputs[account.paid])
        status: Status = "best_guess"
        probability: float | None = None
        binding: tuple[str, ...] = ()
        if question.reached:
            status = "reached"
        else:
            verdict = judge(question)
            probability, binding = verdict.probability, verdict.binding
            if ending == "exhausted":
                probability = 0.0  # every point was evaluated
            if ending in ("unreachable", "exhausted"):
                status = "unreachable"
        query, layout = query_row(self.regions[i])
        return Explanation(
            query=query,
            output=question.problem.output,
            target=question.problem.target,
            wanted=question.problem.target.wanted(question.problem.output),
            accepted=question.problem.acceptance,
            status=status,
            counterfactuals=counterfactuals(
                question.problem, question.X[chosen], question.y[chosen]
            ),
            stopped=ending,
            reachable=(float(question.y.min()), float(question.y.max())),
            trace=np.maximum.accumulate(potential),
            evaluations=self.evaluator.evaluations,
            n_evaluations=account.spent,
            space=task.space,
            layout=layout,
            tolerance=task.tolerance,
            probability_reachable=probability,
            binding=binding,
            method=task.name,
            seed=task.seed,
        )

    def _met(self, i: int, output: float) -> Explanation:
        """Return the answer to a query that has what is wanted already: itself."""
        target = self._target(i, output)
        query, layout = query_row(self.regions[i])
        return Explanation(
            query=query,
            output=output,
            target=target,
            wanted=target.wanted(output),
            accepted=target.acceptance(output, self.task.tolerance),
            status="reached",
            counterfactuals=(Counterfactual(query, output, 1.0, {}, 0.0, True),),
            stopped="nothing nearer expected",
            reachable=(output, output),
            trace=np.ones(self.accounts[i].spent),
            evaluations=self.evaluator.evaluations,
            n_evaluations=self.accounts[i].spent,
            space=self.task.space,
            layout=layout,
            tolerance=self.task.tolerance,
            method=self.task.name,
            seed=self.task.seed,
        )


def _in_order(runs: Sequence[_Run], store: Evaluations, n_jobs: int) -> list[Explanation]:
    """Return the answers of all runs; what they evaluate is stored in the order of the runs."""
    if n_jobs == 1 or len(runs) == 1:
        return [answer for run in runs for answer in run.answers()]
    for run in runs:
        run.evaluator.evaluations = Evaluations()
    with ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(run.answers) for run in runs]
        wait(futures)
    for run in runs:
        learnt = run.evaluator.evaluations
        if learnt.rows is not None:
            store.append(learnt.rows, learnt.outputs)
    return [replace(answer, evaluations=store) for future in futures for answer in future.result()]


def _spawn(rng: Seed, n: int) -> list[np.random.Generator]:
    """Return one child generator per query: answers don't depend on how queries are grouped."""
    parent = np.random.default_rng(rng)
    try:
        return list(parent.spawn(n))
    except TypeError:  # a generator that was not made from a seed sequence
        return [np.random.default_rng(seed) for seed in parent.integers(2**63, size=n)]


def _rows(queries: object) -> list[object]:
    """Return the queries one by one."""
    if isinstance(queries, pd.DataFrame):
        return [queries.iloc[[i]] for i in range(len(queries))]
    if isinstance(queries, pd.Series | Mapping | str) or not isinstance(queries, Iterable):
        raise QueryError(
            "`queries` must be a DataFrame, a 2-D array or a sequence of rows; got "
            f"{type(queries).__name__}. For one row use explain."
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


def _around(space: Space, row: object, i: int) -> Region:
    try:
        return space.around(row)
    except BayesCFXError as error:
        error.add_note(f"for the query at position {i}")
        raise
