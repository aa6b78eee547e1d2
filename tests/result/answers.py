"""Answers for tests: one found among random rows, one with round numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.data.schema import by_feature
from bayescfx.data.tables import row_of, rows_of
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator
from bayescfx.explainer.report import AnswerRow, counterfactuals
from bayescfx.models.model import as_model
from bayescfx.potentials import reach
from bayescfx.potentials.targets import as_target
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation
from bayescfx.search.chosen_rows import ChosenRows
from bayescfx.search.question import Question
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space

FRAME = pd.DataFrame(
    {
        "age": np.array([30, 40, 50, 60], dtype=np.int16),
        "bmi": np.array([32.1, 27.4, 21.0, 35.5]),
        'job\'s "name"': ["clerk", "cook", "<b>ünïcode</b> & co", "漢"],
        "grade": pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "mid", "hi"], ordered=True),
        "since": pd.to_datetime(["2020-01-01", "2021-06-01", "2019-05-05", "2022-02-02"]),
        "score": np.array([0.1, 0.2, np.nan, 0.4], dtype=np.float32),
        "ok": [True, False, True, True],
    }
)


def model(rows: pd.DataFrame) -> Array:
    high = (rows["grade"] == "hi").to_numpy()
    y: Array = 5.0 * rows["bmi"].to_numpy(float) + rows["age"].to_numpy(float) + 10.0 * high
    return y


def sums(rows: Any) -> Array:
    y: Array = np.asarray(rows, dtype=float).sum(axis=1)
    return y


def ask(
    f: Callable[[Any], Array] = model,
    space: Space | None = None,
    query: Any = None,
    target: Any = None,
    n: int = 3,
) -> Explanation:
    """Return an answer found among a few random rows."""
    space = Space.from_data(FRAME).fix("since", "score", "ok") if space is None else space
    region = space.around(FRAME.iloc[0] if query is None else query)
    asked_target = as_target(reach(by=-40) if target is None else target)
    evaluator = Evaluator(as_model(f), region.schema, Evaluations())
    rng = np.random.default_rng(0)
    question = Question(evaluator, region, 60, rng)
    output = float(question.evaluate(region.query[None])[0])
    question.begin(asked_target, output)
    single = replace(region, max_changes=1)
    question.evaluate(np.concatenate([sample(region, 30, rng), sample(single, 10, rng)]))
    X, y = question.X, question.y
    best = np.argsort(-question.score(y), kind="stable")[:n]
    rows, layout = rows_of(region.rows(np.vstack([region.query, X[best]]))), region.schema.layout
    cells = by_feature(region.schema, rows)
    lines = [AnswerRow(row, named, None) for row, named in zip(rows, cells, strict=True)]
    reached = bool(question.accepted(y[best[:1]])[0])
    return Explanation(
        query=lines[0].row,
        output=output,
        target=asked_target,
        wanted=question.wanted,
        accepted=question.acceptance,
        status="reached" if reached else "best_guess",
        counterfactuals=counterfactuals(question, ChosenRows(X[best], y[best], X[best]), lines),
        stopped="budget",
        reachable=(float(y.min()), float(y.max())),
        trace=np.maximum.accumulate(question.score(evaluator.known.outputs[question.paid])),
        evaluations=evaluator.evaluations,
        n_evaluations=question.spent,
        space=space,
        layout=layout,
        seed=0,
    )


def plain_answer(**changes: Any) -> Explanation:
    """Return an answer with round numbers, for the wording."""
    space = Space.from_data(pd.DataFrame({"bmi": [20.5, 40.0], "bp": [80, 120]}))
    rows = pd.DataFrame({"bmi": [32.1, 27.4], "bp": [101, 93]})
    region = space.around(rows.iloc[[0]])
    table = region.rows(region.query[None])
    best = Counterfactual(
        row=pd.Series([27.4, 93], index=["bmi", "bp"], dtype=object),
        output=171.0,
        potential=1.0,
        changes={"bmi": (32.1, 27.4), "bp": (101, 93)},
        cost=1.25,
        valid=True,
        distance=0.85,
    )
    answer = Explanation(
        query=row_of(table, 0),
        output=214.0,
        target=as_target(reach(by=-43)),
        wanted=((171.0, 171.0),),
        accepted=((168.85, 173.15),),
        status="reached",
        counterfactuals=(best,),
        stopped="nothing nearer expected",
        reachable=(150.25, 260.0),
        trace=np.array([0.0, 1.0]),
        evaluations=Evaluations(rows, [214.0, 171.0]),
        n_evaluations=2,
        space=space,
        layout=region.schema.layout,
    )
    return replace(answer, **changes)
