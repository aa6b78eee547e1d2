"""From codes and outputs to answers in the user's own terms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.schema import by_feature
from bayescfx.data.tables import Row, rows_of
from bayescfx.deadline import NEVER
from bayescfx.errors import OutOfTime
from bayescfx.evaluations.evaluator import Account, Stopped
from bayescfx.explainer.call import CallSettings
from bayescfx.potentials import Target
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation, Status
from bayescfx.search.question import Question
from bayescfx.search.selection import distinct
from bayescfx.search.threads import one_thread
from bayescfx.search.verdict import UNLIKELY, Conclusion, Verdict, judge

#: A row in the user's columns, its cells by feature, and what share of the data is less usual.
Line: TypeAlias = tuple[Row, dict[Hashable, Any], float | None]


@dataclass(frozen=True, eq=False)
class Posed:
    """A query with its wish and f(query); without a question if it has what is wanted already."""

    label: int  # position among all queries of the call
    account: Account
    target: Target
    output: float
    question: Question | None


def report(
    settings: CallSettings, posed: Sequence[Posed], endings: Mapping[int, Stopped], rest: Stopped
) -> dict[int, Explanation]:
    """Return the answers to queries of one evaluator; the searches without an ending had `rest`."""
    chosen, codes, whose = list[tuple[Array, Array]](), list[Array](), list[int]()
    for p in posed:
        X, y = p.account.region.query[None], np.array([p.output])  # itself if no row is allowed
        if p.question is not None and len(p.question.y):
            best = distinct(p.question, settings.n)
            X, y = p.question.X[best], p.question.y[best]
        chosen.append((X, y))
        codes += p.account.region.query[None], X
        whose += [p.account.place] * (1 + len(X))
    if not posed:
        return {}
    account, X, usual = posed[0].account, np.concatenate(codes), settings.space.plausibility
    rows = rows_of(account.evaluator.rows(X, np.array(whose)))
    shares = [None] * len(X) if usual is None else usual.share(X).tolist()
    lines = zip(rows, by_feature(account.region.schema, rows), shares, strict=True)
    answers: dict[int, Explanation] = {}
    for p, (X, y) in zip(posed, chosen, strict=True):
        mine = [*islice(lines, 1 + len(X))]
        answers[p.label] = _answer(settings, p, endings.get(p.label, rest), X, y, mine)
    return answers


def counterfactuals(
    posed: Posed, X: Array, y: Array, lines: Sequence[Line]
) -> tuple[Counterfactual, ...]:
    """Return codes ``(n, d)`` with outputs ``(n,)`` as counterfactuals of the first line."""
    region, question, (_, before, _) = posed.account.region, posed.question, lines[0]
    if question is None:  # the query has what is wanted already: it is its own answer
        potential, valid = np.ones(len(y)), region.contains(X)
    else:
        potential, valid = question.score(y), question.accepted(y)
    numbers, found = np.array([y, potential, region.distance(X)]).T.tolist(), []
    told = zip(lines[1:], region.changes(X), numbers, valid.tolist(), strict=True)
    for (row, after, usual), moved, (output, score, cost), good in told:
        changes: dict[Hashable, tuple[Any, Any]] = {}
        for name in compress(region.names, moved):
            changes[name] = before[name], after[name]
        found.append(Counterfactual(row, output, score, changes, cost, good, usual))
    return tuple(found)


def _answer(
    settings: CallSettings,
    posed: Posed,
    ending: Stopped,
    X: Array,
    y: Array,
    lines: Sequence[Line],
) -> Explanation:
    """Return the answer to a query whose search has ended, with what was chosen."""
    account, question, output = posed.account, posed.question, posed.output
    found = counterfactuals(posed, X, y, lines)
    status: Status = "best_guess"
    verdict = jump = None
    if question is None:
        status = "reached" if found[0].valid else "best_guess"
        ending, reachable, trace = "already met", (output, output), np.ones(account.spent)
    else:
        seen, paid = question.y, np.array(account.paid, dtype=np.intp)
        reachable = (float(seen.min()), float(seen.max())) if len(seen) else (np.nan, np.nan)
        trace = np.maximum.accumulate(question.score(question.known.take(paid)[1]))
        if question.reached:
            status = "reached"
        else:
            verdict, jump = _verdict(question, ending), _jump(question)
            # The search gave up on what its surrogate knew then; all that is known may say more,
            # or that nothing can be said.
            likely = 0.0
            if verdict is not None:
                likely = 1.0 if verdict.probability is None else verdict.probability
            if ending == "exhausted" or (ending == "unreachable" and likely < UNLIKELY):
                status = "unreachable"
    method, seed = settings.method, settings.rng
    method = method if isinstance(method, str) else type(method).__name__
    return Explanation(
        query=lines[0][0],
        output=output,
        target=posed.target,
        wanted=posed.target.wanted(output),
        accepted=posed.target.acceptance(output, settings.tolerance),
        status=status,
        counterfactuals=found,
        stopped=ending,
        reachable=reachable,
        trace=trace,
        evaluations=account.evaluator.evaluations,
        n_evaluations=account.spent,
        space=settings.space,
        layout=account.region.schema.layout,
        tolerance=settings.tolerance,
        probability_reachable=None if verdict is None else verdict.probability,
        binding=() if verdict is None else verdict.binding,
        method=", ".join(question.ran) if question and question.ran else method,
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        jump=jump,
        n_wanted=settings.n,
    )


def _jump(question: Question) -> tuple[float, float] | None:
    """Return the nearest outputs on either side of what is missed, if both sides were seen."""
    y, pairs = question.y, []
    for low, high in question.acceptance:
        below, above = y[y < low], y[y > high]
        if len(below) and len(above):
            pairs.append((float(below.max()), float(above.min())))
    return min(pairs, key=lambda pair: pair[1] - pair[0], default=None)


def _verdict(question: Question, ending: Stopped) -> Verdict | None:
    """Return what the surrogate says of a miss, if it knows enough and there is time."""
    known, free = len(question.y), len(question.region.free)
    late = ending in ("timeout", "interrupted", "fault") or question.deadline.passed
    if late or not known:
        return None
    question.region.deadline = question.deadline
    try:
        with one_thread(), np.errstate(over="ignore"):
            if ending == "exhausted":  # every point was evaluated
                return replace(judge(question), conclusion=Conclusion.IMPOSSIBLE, probability=0.0)
            # a dozen rows, or a few and two per free feature, before it is worth telling
            return judge(question) if known >= min(12, 3 + 2 * free) else None
    except OutOfTime:
        return None
    finally:
        question.region.deadline = NEVER
