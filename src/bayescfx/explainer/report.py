"""From scored codes to answers in the user's own terms."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.schema import by_feature
from bayescfx.data.tables import Row, rows_of
from bayescfx.deadline import rules_until
from bayescfx.errors import OutOfTime
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.explainer.call_settings import CallSettings
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation, Status
from bayescfx.search.question import Question
from bayescfx.search.selection import distinct
from bayescfx.search.threads import one_thread
from bayescfx.search.verdict import UNLIKELY, Conclusion, Verdict, judge
from bayescfx.space.space import Space

#: Scored rows before a verdict is worth its time: a dozen, or a few and two per free feature.
#: Set by judgement; benchmark `verdict`, 2026-11-18.
_ROWS_FOR_VERDICT = 12
_ROWS_FOR_VERDICT_WITH_FEW_FEATURES = 3
_ROWS_PER_FEATURE = 2

#: Endings of searches that were cut short: there is no time for a verdict, and a later call may
#: continue the run.
CUT_SHORT = ("timeout", "interrupted", "fault")


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRow:
    """One row of an answer.

    Parameters
    ----------
    row : Series or ndarray
        The row in the user's columns.
    cells : dict
        Its cells by feature.
    plausibility : float or None
        The share of the data that is less plausible.
    """

    row: Row
    cells: dict[Hashable, Any]
    plausibility: float | None


def report(
    settings: CallSettings, space: Space, questions: Sequence[Question], unfinished: Stopped
) -> dict[int, Explanation]:
    """Return the answers to questions of one evaluator, by position.

    `unfinished` is the ending of searches that have none of their own.
    """
    if not questions:
        return {}
    chosen = [_choose(question) for question in questions]
    lines = _lines(space, questions, [X for X, _ in chosen])
    answers: dict[int, Explanation] = {}
    for question, (X, y) in zip(questions, chosen, strict=True):
        own_lines = [next(lines) for _ in range(1 + len(X))]
        ending = question.ending or unfinished
        answers[question.position] = _answer(settings, space, question, ending, X, y, own_lines)
    return answers


def _choose(question: Question) -> tuple[Array, Array]:
    """Return codes ``(k, d)`` and outputs ``(k,)`` of the counterfactuals."""
    if question.already_met or not len(question.y):  # the query itself if no row is allowed
        return question.region.query[None], np.array([question.output])
    best = distinct(question, question.n)
    return question.X[best], question.y[best]


def _lines(space: Space, questions: Sequence[Question], chosen: list[Array]) -> Iterator[AnswerRow]:
    """Yield the rows of all answers: for each question the query, then the `chosen` codes."""
    codes: list[Array] = []
    queries: list[int] = []
    for question, X in zip(questions, chosen, strict=True):
        codes += [question.region.query[None], X]
        queries += [question.account.place] * (1 + len(X))
    X = np.concatenate(codes)
    evaluator = questions[0].account.evaluator
    rows = rows_of(evaluator.rows(X, np.array(queries)))
    shares: list[float | None] = [None] * len(X)
    if space.plausibility is not None:
        shares = space.plausibility.share(X).tolist()
    cells = by_feature(questions[0].region.schema, rows)
    for row, by_name, share in zip(rows, cells, shares, strict=True):
        yield AnswerRow(row, by_name, share)


def counterfactuals(
    question: Question, X: Array, y: Array, lines: Sequence[AnswerRow]
) -> tuple[Counterfactual, ...]:
    """Return codes ``(n, d)`` with outputs ``(n,)`` as counterfactuals of the first line."""
    region = question.region
    query = lines[0].cells
    is_valid = region.contains(X) if question.already_met else question.accepted(y)
    potentials = question.score(y)
    costs = region.distance(X)
    changed = region.changes(X)
    found: list[Counterfactual] = []
    for i, line in enumerate(lines[1:]):
        changes: dict[Hashable, tuple[Any, Any]] = {}
        for name in compress(region.names, changed[i]):
            changes[name] = query[name], line.cells[name]
        found.append(
            Counterfactual(
                line.row,
                float(y[i]),
                float(potentials[i]),
                changes,
                float(costs[i]),
                bool(is_valid[i]),
                line.plausibility,
            )
        )
    return tuple(found)


def _answer(
    settings: CallSettings,
    space: Space,
    question: Question,
    ending: Stopped,
    X: Array,
    y: Array,
    lines: Sequence[AnswerRow],
) -> Explanation:
    """Return the answer to a question whose search has ended, given its counterfactuals."""
    found = counterfactuals(question, X, y, lines)
    verdict: Verdict | None = None
    jump: tuple[float, float] | None = None
    if question.already_met:
        ending = "already met"
    elif not question.reached:
        verdict = _verdict(question, ending)
        jump = _jump(question)
    return Explanation(
        query=lines[0].row,
        output=question.output,
        target=question.target,
        wanted=question.wanted,
        accepted=question.acceptance,
        status=_status(question, ending, verdict, found),
        counterfactuals=found,
        stopped=ending,
        reachable=_reachable(question),
        trace=_trace(question),
        evaluations=question.account.evaluator.evaluations,
        n_evaluations=question.spent,
        space=space,
        layout=question.region.schema.layout,
        tolerance=question.tolerance,
        probability_reachable=None if verdict is None else verdict.probability,
        binding=() if verdict is None else verdict.binding,
        method=", ".join(question.ran) or settings.method_name,
        seed=settings.seed,
        jump=jump,
        n_wanted=question.n,
    )


def _status(
    question: Question,
    ending: Stopped,
    verdict: Verdict | None,
    found: Sequence[Counterfactual],
) -> Status:
    """Return whether the target was reached, or is out of reach."""
    if question.already_met:
        return "reached" if found[0].valid else "best_guess"
    if question.reached:
        return "reached"
    if ending == "exhausted":
        return "unreachable"
    # The search gave up on what its surrogate knew then. All scored rows may say more, or that
    # nothing can be said.
    is_unlikely = verdict is None or (
        verdict.probability is not None and verdict.probability < UNLIKELY
    )
    return "unreachable" if ending == "unreachable" and is_unlikely else "best_guess"


def _reachable(question: Question) -> tuple[float, float]:
    """Return the lowest and the highest output of the allowed rows that were scored."""
    if question.already_met:
        return question.output, question.output
    y = question.y
    return (float(y.min()), float(y.max())) if len(y) else (np.nan, np.nan)


def _trace(question: Question) -> Array:
    """Return the best potential after each row that was scored for the question."""
    if question.already_met:
        return np.ones(question.spent)
    paid = np.array(question.account.paid, dtype=np.intp)
    return np.maximum.accumulate(question.score(question.known.take(paid)[1]))


def _jump(question: Question) -> tuple[float, float] | None:
    """Return the nearest outputs on either side of the target, if both sides were seen."""
    y = question.y
    pairs: list[tuple[float, float]] = []
    for low, high in question.acceptance:
        below = y[y < low]
        above = y[y > high]
        if len(below) and len(above):
            pairs.append((float(below.max()), float(above.min())))
    return min(pairs, key=lambda pair: pair[1] - pair[0], default=None)


def _verdict(question: Question, ending: Stopped) -> Verdict | None:
    """Return the surrogate's verdict on a miss, if enough rows were scored and there is time."""
    n_scored = len(question.y)
    if not n_scored or ending in CUT_SHORT or question.deadline.passed:
        return None
    n_free = len(question.region.free)
    for_few_features = _ROWS_FOR_VERDICT_WITH_FEW_FEATURES + _ROWS_PER_FEATURE * n_free
    before = rules_until.set(question.deadline)
    try:
        with one_thread(), np.errstate(over="ignore"):
            if ending == "exhausted":  # every allowed row was scored
                return replace(judge(question), conclusion=Conclusion.IMPOSSIBLE, probability=0.0)
            if n_scored < min(_ROWS_FOR_VERDICT, for_few_features):
                return None
            return judge(question)
    except OutOfTime:
        return None
    finally:
        rules_until.reset(before)
