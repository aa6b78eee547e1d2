"""From codes and outputs to the answer in the user's own terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import NEVER
from bayescfx.errors import OutOfTime
from bayescfx.evaluations.evaluator import Account, Stopped
from bayescfx.explainer.settings import CallSettings
from bayescfx.potentials import Target
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation, Status
from bayescfx.search.question import Question
from bayescfx.search.selection import distinct
from bayescfx.search.threads import one_thread
from bayescfx.search.verdict import Verdict, judge
from bayescfx.space.region import Region
from bayescfx.space.schema import by_feature
from bayescfx.space.usual import Usual
from bayescfx.tables import Layout, Row, cells_of, row_of, rows_of


@dataclass(frozen=True, eq=False)
class Posed:
    """A query with its wish and f(query); without a question if it has what is wanted already."""

    label: int  # position among all queries of the call
    account: Account
    target: Target
    output: float
    question: Question | None


def report(settings: CallSettings, posed: Posed, ending: Stopped) -> Explanation:
    """Return the answer to a query whose search has ended."""
    account, question, output = posed.account, posed.question, posed.output
    region = account.region
    status: Status = "best_guess"
    verdict, data = None, settings.space.usual
    if question is None:  # the query has what is wanted already: it is its own answer
        allowed = bool(region.contains(region.query[None])[0])
        status, ending = "reached" if allowed else "best_guess", "already met"
        own = None if data is None else float(data.share(region.query[None])[0])
        query, layout = query_row(region)
        still = Counterfactual(query, output, 1.0, {}, 0.0, allowed, own)
        found: tuple[Counterfactual, ...] = (still,)
        reachable = (output, output)
        trace = np.ones(account.spent)
    else:
        X, y = question.X, question.y
        if len(y):
            reachable = (float(y.min()), float(y.max()))
            chosen = distinct(question, settings.n)
            X, y = X[chosen], y[chosen]
        else:  # nothing allowed was scored, and the query itself breaks a rule
            reachable = (np.nan, np.nan)
            X, y = region.query[None], np.array([output])
        if question.reached:
            status = "reached"
        elif ending in ("unreachable", "exhausted"):
            status = "unreachable"
        query, layout, found = _told(question, X, y, data)
        verdict = None if question.reached else _verdict(question, ending)
        trace = np.maximum.accumulate(
            question.score(question.known.take(np.array(account.paid, dtype=np.intp))[1])
        )
    method, seed = settings.method, settings.rng
    method = method if isinstance(method, str) else type(method).__name__
    return Explanation(
        query=query,
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
        layout=layout,
        tolerance=settings.tolerance,
        probability_reachable=None if verdict is None else verdict.probability,
        binding=() if verdict is None else verdict.binding,
        method=", ".join(question.ran) if question and question.ran else method,
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        jump=None if question is None or question.reached else _jump(question),
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
                return replace(judge(question), probability=0.0)
            # a dozen rows, or a few and two per free feature, before it is worth telling
            return judge(question) if known >= min(12, 3 + 2 * free) else None
    except OutOfTime:
        return None
    finally:
        question.region.deadline = NEVER


def counterfactuals(
    question: Question, X: Array, y: Array, data: Usual | None = None
) -> tuple[Counterfactual, ...]:
    """Return scored codes ``(n, d)`` with outputs ``(n,)`` as counterfactuals, in this order."""
    return _told(question, X, y, data)[2]


def _told(
    question: Question, X: Array, y: Array, data: Usual | None
) -> tuple[Row, Layout, tuple[Counterfactual, ...]]:
    """Return the query, the layout of its table, and counterfactuals, made in one table."""
    region = question.region
    rows = region.rows(np.vstack([region.query, X]))
    cells = cells_of(rows)
    query, *lines = rows_of(rows, cells)
    before, *after = by_feature(region.schema, cells)
    moved, cost = region.changes(X), region.distance(X)
    potential, valid = question.score(y), question.accepted(y)
    usual = None if data is None else data.share(X)
    found = []
    for i, own in enumerate(after):
        changes = {name: (before[name], own[name]) for name in compress(region.names, moved[i])}
        row, share = lines[i], None if usual is None else float(usual[i])
        output, score, price = float(y[i]), float(potential[i]), float(cost[i])
        found.append(Counterfactual(row, output, score, changes, price, bool(valid[i]), share))
    return query, region.schema.layout, tuple(found)


def query_row(region: Region) -> tuple[Row, Layout]:
    """Return the query in the user's columns, and their layout."""
    rows = region.rows(region.query[None])
    return row_of(rows, 0), region.schema.layout
