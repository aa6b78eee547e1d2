"""From f(query) to the answers: questions that share one evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayescfx.errors import ModelError, TargetError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, Stop
from bayescfx.explainer.report import counterfactuals, query_row
from bayescfx.explainer.task import Task
from bayescfx.potentials.family import contains
from bayescfx.potentials.targets import as_target
from bayescfx.potentials.wishes import Target
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation, Status
from bayescfx.search.question import Question
from bayescfx.search.selection import distinct
from bayescfx.search.threads import one_thread
from bayescfx.search.turns import Stopped, Turns
from bayescfx.search.verdict import Verdict, judge
from bayescfx.space.region import Region
from bayescfx.space.sampling import background_rows

_LOOK = 4  # rows evaluated first to see the range of outputs that a user's own potential meets
_EVIDENCE = 12  # allowed rows known before the surrogate's verdict is worth telling ...
_FEW, _PER_FEATURE = 3, 2  # ... or so many, and so many more per free feature, if that is fewer


@dataclass(frozen=True)
class Asked:
    """One query with its wish; `label` is its position among all queries of the call."""

    region: Region
    target: object
    rng: np.random.Generator
    label: int


@dataclass(frozen=True)
class _Met:
    """A query that has what is wanted already."""

    target: Target
    output: float


class Run:
    """Questions that share one evaluator: f(query) and targets first, then search and report.

    Parameters
    ----------
    task : Task
        What they have in common.
    asked : sequence of Asked
        The queries.

    Raises
    ------
    ModelError
        If the model fails on a query.
    TargetError
        If a target makes no sense for its query.
    """

    def __init__(self, task: Task, asked: Sequence[Asked]) -> None:
        self.task = task
        self.asked = asked
        self.evaluator = Evaluator(
            task.model, asked[0].region.schema, task.store, on_fault=task.on_fault
        )
        self.accounts = [self.evaluator.account(one.region, task.budget) for one in asked]
        # f(query) is needed for any answer, so that it is evaluated whatever the timeout.
        outputs = self._outputs()
        self.questions = [self._question(i, output) for i, output in enumerate(outputs)]
        self.evaluator.deadline = task.deadline

    def _outputs(self) -> list[float]:
        """Return f(query) for each, in one model call."""
        queries = [one.region.query[None] for one in self.asked]
        scores = self.evaluator.evaluate_many(list(zip(self.accounts, queries, strict=True)))
        outputs = [float(score.y[0]) for score in scores]
        for one, output in zip(self.asked, outputs, strict=True):
            if np.isnan(output):
                raise self._failed(one)
        return outputs

    def _failed(self, one: Asked) -> ModelError:
        """Return the error for a query without an output, where faults are skipped."""
        row = self.task.model.describe(one.region.rows(one.region.query[None]), 0)
        error = ModelError(
            f"`model` must have an output for the query{self._which(one)}; it fails for {row}. "
            "Correct the query or the model."
        )
        for fault in self.evaluator.faults:
            error.add_note(fault)
        vars(error)["evaluations"] = self.evaluator.evaluations
        return error

    def _which(self, one: Asked) -> str:
        return f" at position {one.label}" if self.task.many else ""

    def _question(self, i: int, output: float) -> Question | _Met:
        """Return the question that query `i` poses."""
        task, one = self.task, self.asked[i]
        try:
            target = self._target(i, output)
            try:
                return Question(
                    self.accounts[i], output, target, one.rng, task.deadline, task.n, task.tolerance
                )
            except TargetError:
                met = contains(target.acceptance(output, task.tolerance), [output])[0]
                if task.many and met:
                    return _Met(target, output)
                raise
        except TargetError as error:
            if task.many:
                error.add_note(f"for the query{self._which(one)}")
            raise

    def _target(self, i: int, output: float) -> Target:
        """Return the wish as a target; a user's own potential is checked on outputs first."""
        one, account = self.asked[i], self.accounts[i]
        if isinstance(one.target, Target):
            return one.target
        seen = [output]
        if hasattr(one.target, "value") and hasattr(one.target, "slope"):
            rows = background_rows(one.region, _LOOK, one.rng)
            if account.left > len(rows):
                try:
                    seen.extend(account.evaluate(rows))
                except Stop as stop:  # skipping faults took the rest of the budget
                    seen.extend(stop.y)
        return as_target(one.target, np.array(seen)[~np.isnan(seen)])

    def answers(self) -> list[Explanation]:
        """Search, and report."""
        task = self.task
        posed = {i: q for i, q in enumerate(self.questions) if isinstance(q, Question)}
        turns = Turns(
            task.search,
            list(posed.values()),
            self.evaluator,
            task.listener,
            [self.asked[i].label for i in posed],
            task.halt,
        )
        endings = dict(zip(posed, turns.run(), strict=True))
        return [
            self._report(i, question, endings[i])
            if isinstance(question, Question)
            else self._met(i, question)
            for i, question in enumerate(self.questions)
        ]

    def _report(self, i: int, question: Question, ending: Stopped) -> Explanation:
        """Return the answer to a question whose search has ended."""
        account = self.accounts[i]
        X, y = question.X, question.y
        reachable = (float(y.min()), float(y.max())) if len(y) else (np.nan, np.nan)
        if len(y):
            chosen = distinct(question, self.task.n)
            X, y = X[chosen], y[chosen]
        else:  # nothing allowed was scored, and the query itself breaks a rule
            X, y = question.region.query[None], np.array([question.output])
        status: Status = "best_guess"
        if question.reached:
            status = "reached"
        elif ending in ("unreachable", "exhausted"):
            status = "unreachable"
        verdict = self._verdict(question, ending)
        score = question.score(self.evaluator.known.outputs[account.paid])
        return Explanation(
            **self._common(i, question.target, question.output),
            status=status,
            counterfactuals=counterfactuals(question, X, y),
            stopped=ending,
            reachable=reachable,
            trace=np.maximum.accumulate(score),
            probability_reachable=None if verdict is None else verdict.probability,
            binding=() if verdict is None else verdict.binding,
        )

    def _verdict(self, question: Question, ending: Stopped) -> Verdict | None:
        """Return what the surrogate says of a miss, if it knows enough and there is time."""
        known, free = len(question.y), len(question.region.free)
        late = ending in ("timeout", "interrupted") or self.task.deadline.passed
        if question.reached or late or not known:
            return None
        with one_thread():
            if ending == "exhausted":  # every point was evaluated
                return replace(judge(question), probability=0.0)
            enough = min(_EVIDENCE, _FEW + _PER_FEATURE * free)
            return judge(question) if known >= enough else None

    def _met(self, i: int, met: _Met) -> Explanation:
        """Return the answer to a query that has what is wanted already: itself."""
        region, output = self.asked[i].region, met.output
        allowed = bool(region.contains(region.query[None])[0])
        query, _ = query_row(region)
        return Explanation(
            **self._common(i, met.target, output),
            status="reached" if allowed else "best_guess",
            counterfactuals=(Counterfactual(query, output, 1.0, {}, 0.0, allowed),),
            stopped="nothing nearer expected",
            reachable=(output, output),
            trace=np.ones(self.accounts[i].spent),
        )

    def _common(self, i: int, target: Target, output: float) -> dict[str, Any]:
        """Return what every answer says of its question."""
        task = self.task
        query, layout = query_row(self.asked[i].region)
        return {
            "query": query,
            "layout": layout,
            "output": output,
            "target": target,
            "wanted": target.wanted(output),
            "accepted": target.acceptance(output, task.tolerance),
            "evaluations": self.evaluator.evaluations,
            "n_evaluations": self.accounts[i].spent,
            "space": task.space,
            "tolerance": task.tolerance,
            "method": task.name,
            "seed": task.seed,
        }


def in_order(runs: Sequence[Run], task: Task, n_jobs: int) -> list[Explanation]:
    """Return the answers of all runs; what they evaluate is stored in the order of the runs."""
    if n_jobs == 1 or len(runs) == 1:
        return [answer for run in runs for answer in run.answers()]
    for run in runs:
        run.evaluator.evaluations = Evaluations()
    # The limit is taken once for all: threads that set and restore it cross each other.
    with one_thread(), ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(run.answers) for run in runs]
        try:
            wait(futures)
        except KeyboardInterrupt:
            task.halt.called = True
            wait(futures)
    for run in runs:
        learnt = run.evaluator.evaluations
        if learnt.rows is not None:
            task.store.append(learnt.rows, learnt.outputs)
    for future in futures:
        error = future.exception()
        if error is not None:
            vars(error)["evaluations"] = task.store
            raise error
    return [
        replace(answer, evaluations=task.store) for future in futures for answer in future.result()
    ]
