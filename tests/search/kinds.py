"""Every kind of region with a model and a target, and questions about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.errors import OutOfTime
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, OnFault, Stop
from bayescfx.models.model import Model
from bayescfx.potentials import Target, reach
from bayescfx.search.question import Question, Search
from bayescfx.space.space import Space
from tests.conftest import Recorder
from tests.search.questions import drive

EASY_TARGET = reach(by=1.0)
LEVELS = ["red", "green", "blue", "grey"]


@dataclass(frozen=True)
class Kind:
    """A space with a query, a model, a target that is easy to reach, and a check of raw rows."""

    space: Space
    query: Any
    model: Callable[[pd.DataFrame], Any]
    check: Callable[[pd.DataFrame], Any]
    target: Target = EASY_TARGET


def _kinds() -> dict[str, Kind]:
    unit = {name: Real(0, 1) for name in "abcde"}
    low = dict.fromkeys("abcde", 0.25)
    abc = {name: unit[name] for name in "abc"}

    def inside(rows: pd.DataFrame) -> Any:
        return ((rows >= 0) & (rows <= 1)).to_numpy().all(axis=1)

    def few_changes(rows: pd.DataFrame) -> Any:
        return inside(rows) & ((rows != 0.25).to_numpy().sum(axis=1) <= 2)

    return {
        "real": Kind(
            Space(abc), dict.fromkeys("abc", 0.25), lambda r: 2 * r["a"] + r["b"] - r["c"], inside
        ),
        "integer": Kind(
            Space({name: Integer(0, 9) for name in "abc"}),
            {"a": 2, "b": 2, "c": 2},
            lambda r: 0.2 * r["a"] + 0.1 * r["b"] - 0.1 * r["c"],
            lambda r: r.isin(range(10)).all(axis=1) & (set(r.dtypes) == {np.dtype(int)}),
        ),
        "categorical": Kind(
            Space({name: Categorical(LEVELS) for name in "abc"}),
            {"a": "red", "b": "red", "c": "red"},
            lambda r: 1.0 * (r["a"] == "blue") + 0.25 * (r["b"] != r["c"]),
            lambda r: r.isin(LEVELS).all(axis=1),
        ),
        "mixed": Kind(
            Space(
                {
                    "a": Real(0, 1),
                    "b": Integer(0, 9),
                    "c": Ordinal(["low", "mid", "high"]),
                    "d": Categorical(LEVELS),
                }
            ),
            {"a": 0.25, "b": 2, "c": "low", "d": "red"},
            lambda r: 2 * r["a"] + 0.1 * r["b"] + 0.3 * (r["c"] == "high") + (r["d"] == "blue"),
            lambda r: (
                r["a"].between(0, 1)
                & r["b"].isin(range(10))
                & r["c"].isin(["low", "mid", "high"])
                & r["d"].isin(LEVELS)
            ),
        ),
        "at most k": Kind(
            Space(unit).max_changes(2), low, lambda r: r.sum(axis=1) + r["a"], few_changes
        ),
        "text rules": Kind(
            Space(abc).require("a <= b").require("a + b + c <= 2"),
            dict.fromkeys("abc", 0.25),
            lambda r: r["a"] + r["b"] + 0.5 * r["c"],
            lambda r: inside(r) & (r["a"] <= r["b"]) & (r.sum(axis=1) <= 2),
        ),
        "callable rules": Kind(
            Space(abc).require(lambda r: r["a"] ** 2 + r["b"] ** 2 <= 1, "in the disc"),
            dict.fromkeys("abc", 0.25),
            lambda r: 2 * r["a"] + r["b"] - r["c"],
            lambda r: inside(r) & (r["a"] ** 2 + r["b"] ** 2 <= 1),
        ),
        "derived": Kind(
            Space(abc).derive("c", lambda r: r["a"] * r["b"]),
            {"a": 0.25, "b": 0.25, "c": 0.0625},
            lambda r: r["a"] + 2 * r["c"],
            lambda r: inside(r) & (r["c"] == r["a"] * r["b"]),
        ),
        "cyclic": Kind(
            Space({"a": Real(0, 1), "b": Integer(0, 6, cyclic=True)}).move({"b": (-2, 2)}),
            {"a": 0.25, "b": 0},
            lambda r: 2 * r["a"] + 0.2 * (r["b"] == 5),
            lambda r: r["a"].between(0, 1) & r["b"].isin([5, 6, 0, 1, 2]),
        ),
    }


KINDS = _kinds()
AB = Space({"a": Real(0, 4), "b": Real(0, 40)})  # scales 1 and 10


def smooth(rows: pd.DataFrame) -> Any:
    return rows["a"] ** 2 + np.sin(rows["b"] / 10.0)


def smooth_slope(rows: pd.DataFrame) -> Array:
    return np.stack([2.0 * rows["a"], np.cos(rows["b"] / 10.0) / 10.0], axis=1)


SMOOTH = Kind(AB, {"a": 1.0, "b": 10.0}, smooth, lambda r: r["a"] >= 0, reach(by=2.0))


def ask(
    kind: Kind,
    budget: int,
    *,
    weight: float = 0.0,
    seed: int = 0,
    n: int = 1,
    on_fault: OnFault = "raise",
) -> tuple[Question, Recorder]:
    """Return a question with f(query) evaluated, and the model that records it."""
    region = kind.space.cost(weight=weight).around(kind.query)
    model = Recorder(kind.model)
    evaluator = Evaluator(Model(model), region.schema, Evaluations(), on_fault=on_fault)
    question = Question(evaluator, region, budget, np.random.default_rng(seed), n=n)
    question.begin(kind.target, float(question.evaluate(region.query[None, :])[0]))
    return question, model


def finish(search: Search, question: Question) -> str:
    """Run a search and return why it ended."""
    try:
        return drive(search, question)
    except Stop as stop:
        return stop.stopped
    except OutOfTime:
        return "timeout"
