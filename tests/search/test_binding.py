"""Binding constraints: limits, rules, the bound on changes, ends of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.evaluations.evaluator import Account
from bayescfx.search.verdict import (
    judge,
)
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.search.questions import MIDDLE, UNIT, asked, plane


def words(space: Space, target: object, **more: Any) -> tuple[str, ...]:
    return judge(asked(space, target, **more)).binding


def test_a_limit_of_the_user_is_named_with_its_value() -> None:
    assert words(Space(UNIT).between({"c": (0, 0.6)}), 8.0)[0] == "limit on 'c' (at most 0.6)"
    assert words(Space(UNIT).move({"c": (-0.1, 0.1)}), -4.0)[0] == "limit on 'c' (at least 0.4)"
    assert words(Space(UNIT).only_up("c"), -4.0)[0] == "limit on 'c' (at least 0.5)"


def test_an_end_of_the_data_is_not_called_a_limit() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 4)), columns=list("abcd"))
    high = frame["c"].max()
    found = words(Space.from_data(frame), 9.0, query=frame.iloc[0])
    assert found[0] == f"data range of 'c' (up to {high:.6g})"
    assert words(Space(UNIT), 9.0)[0] == "the upper end of 'c' (1)"


def test_values_below_zero_are_not_suggested_where_data_end_at_zero() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 4)), columns=list("abcd"))
    above = Space.from_data(frame - frame.min() + 0.1)
    at_zero = Space.from_data(frame - frame.min())
    query = {name: 0.5 for name in "abcd"}
    assert any("(from 0.1)" in text for text in words(above, -9.0, query=query))
    assert not any("(from 0)" in text for text in words(at_zero, -9.0, query=query))


def test_the_most_binding_limits_come_first_and_three_at_most() -> None:
    names = [text.split("'")[1] for text in words(Space(UNIT), 9.0)]
    assert names == ["c", "b", "a"]
    assert "d" not in names


def test_the_bound_on_changes_is_named() -> None:
    zero = dict.fromkeys("abcd", 0.0)
    two = words(Space(UNIT).max_changes(2), 8.0, query=zero, rows=50)
    assert two[0] == "at most 2 changes"
    one = words(Space(UNIT).max_changes(1), 8.0, query=zero, rows=50)
    assert one[0] == "at most 1 change"


def test_rules_are_named_by_their_labels() -> None:
    assert words(Space(UNIT).require("c <= a"), -3.0, rows=60)
    assert words(Space(UNIT).require("b + c <= 1"), 8.0, rows=60)[0] == "rule 'b + c <= 1'"

    def low(frame: pd.DataFrame) -> Any:
        return frame["c"] < 0.6

    found = words(Space(UNIT).require(low, label="little c"), 8.0, rows=60)
    assert found[0] == "rule 'little c'"


def test_features_that_move_together_may_bind() -> None:
    def apart(frame: pd.DataFrame) -> Any:
        return 3 * frame["a"] - 3 * frame["b"]

    found = words(Space(UNIT).together("a", "b"), 5.0, f=apart, rows=60)
    assert found[0] == "moving 'a' and 'b' together"


def test_levels_left_out_are_named() -> None:
    space = Space({"a": Real(0, 1), "job": Categorical(["clerk", "cook", "pilot"])})

    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 10.0 * (frame["job"] == "pilot")

    wide = space.around({"a": 0.5, "job": "clerk"})
    question = asked(
        space.between({"job": ["clerk", "cook"]}), 20.0, f=f, query={"a": 0.5, "job": "clerk"}
    )
    Account(question.evaluator, wide, 20).evaluate(sample(wide, 20, np.random.default_rng(3)))
    assert judge(question).binding[0] == "limit on 'job' (only 'clerk', 'cook')"


def test_an_ordered_feature_with_levels_left_out_is_named() -> None:
    space = Space({"a": Real(0, 1), "size": Ordinal(["S", "M", "L", "XL"])})

    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 3.0 * frame["size"].map({"S": 0, "M": 1, "L": 2, "XL": 3}).astype(float)

    question = asked(
        space.between({"size": ["S", "M", "L"]}), 12.0, f=f, query={"a": 0.5, "size": "S"}
    )
    assert judge(question).binding[0] == "limit on 'size' (only 'S', 'M', 'L')"


def staircase(frame: pd.DataFrame) -> Any:
    """Return `plane` in steps of an eighth, and flat beyond the ends, like trees."""
    stairs = (8 * frame[list("abc")]).apply(np.floor).clip(0, 7) / 7
    return plane(stairs)


def sums(frame: pd.DataFrame) -> Any:
    return frame["b"] + frame["c"] < 0.9


def exchanged(frame: pd.DataFrame) -> Any:
    return np.abs(frame["b"] + frame["c"] - 1.0) < 0.01


LOW = {"a": 0.3, "b": 0.3, "c": 0.3, "d": 0.5}
LEVELS: dict[str, Real | Integer] = {**UNIT, "c": Integer(0, 10)}
BOUND: list[tuple[str, Space, float, dict[str, float]]] = [
    ("limit on 'c' (at most 0.5)", Space(UNIT).between({"c": (0, 0.5)}), 8.0, LOW),
    ("limit on 'c' (at least 0.4)", Space(UNIT).between({"c": (0.4, 1)}), -4.0, MIDDLE),
    ("limit on 'c' (at most 0.4)", Space(UNIT).move({"c": (-0.1, 0.1)}), 8.0, LOW),
    ("limit on 'c' (at least 0.5)", Space(UNIT).only_up("c"), -4.0, MIDDLE),
    ("limit on 'c' (at most 0.3)", Space(UNIT).only_down("c"), 8.0, LOW),
    ("limit on 'b' (at most 0.3)", Space(UNIT).only_down("b"), 9.0, LOW),
    ("at most 1 change", Space(UNIT).max_changes(1), 5.0, LOW),
    ("at most 2 changes", Space(UNIT).max_changes(2), 7.0, LOW),
    ("rule 'b + c <= 0.9'", Space(UNIT).require("b + c <= 0.9"), 8.0, LOW),
    ("rule 'sums'", Space(UNIT).require(sums), 8.0, LOW),
    ("rule 'c <= d'", Space(UNIT).fix("d").require("c <= d"), 8.0, LOW),
    ("limit on 'c' (at most 0.5)", Space(UNIT).between({"c": (0, 0.5)}).max_changes(3), 80.0, LOW),
]


@pytest.mark.parametrize("f", [plane, staircase])
@pytest.mark.parametrize(("named", "space", "target", "query"), BOUND)
def test_the_binding_constraint_is_named_first(
    f: Callable[[Any], Any],
    named: str,
    space: Space,
    target: float,
    query: dict[str, float],
) -> None:
    assert words(space, target, f=f, query=query, rows=50)[:1] == (named,)


@pytest.mark.parametrize(("method", "budget"), [("auto", 300), ("bayes-cfx", 50)])
@pytest.mark.parametrize("width", [0.05, 0.1])
@pytest.mark.parametrize("other", [0.1, 1.0])
def test_a_limit_binds_although_all_changes_are_used_up(
    method: str, budget: int, width: float, other: float
) -> None:
    def f(frame: pd.DataFrame) -> Any:
        stairs: Any = np.floor(8 * frame[["a", "b"]]) / 8  # in jumps, as trees do
        return 5 * stairs["a"] + other * stairs["b"]

    low, high = round(0.5 - width, 2), round(0.5 + width, 2)
    space = Space(UNIT).between({"a": (low, high)}).max_changes(1)
    target = cfx.at_least(3.5 + 5 * width + 0.5 * other)
    answer = cfx.explain(f, MIDDLE, space, target, method=method, budget=budget, rng=0)
    # a fifth more of `a` brings 1, one more change at most 0.5
    named = "limit on 'a'" if method == "auto" else f"limit on 'a' (at most {high})"
    assert answer.binding[0].words == named
    assert answer.binding[0].evidence == ("checked" if method == "auto" else "guess")


def test_a_constraint_with_a_small_gain_is_not_named() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return 5 * frame["a"] + 0.1 * frame["b"]

    space = Space(UNIT).between({"a": (0.4, 0.6)}).max_changes(1)
    answer = cfx.explain(f, MIDDLE, space, cfx.at_least(4.0), budget=300, rng=0)
    assert [each.words for each in answer.binding] == ["limit on 'a'"]


def test_a_rule_that_is_nearly_an_equality_is_named_where_the_model_is_smooth() -> None:
    # all rows known lie in a strip; of steps across it the surrogate knows by its trend only
    space = Space(UNIT).require(exchanged)
    assert words(space, 8.0, rows=50)[:1] == ("rule 'exchanged'",)


def test_the_bound_of_an_integer_is_named() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 2 * frame["b"] + 0.3 * frame["c"]

    space = Space(LEVELS).between({"c": (0, 4)})
    assert words(space, 8.0, f=f, query={**LOW, "c": 3}, rows=50)[0] == "limit on 'c' (at most 4)"


@pytest.mark.parametrize(
    "space",
    [
        Space(UNIT),
        Space(UNIT).between({"c": (0, 0.9)}),
        Space(UNIT).max_changes(3),
        Space(UNIT).require("d <= 0.6"),
        Space(UNIT).only_up("d"),
    ],
)
def test_nothing_is_named_where_the_model_is_flat_beyond(space: Space) -> None:
    def capped(frame: pd.DataFrame) -> Any:
        return np.minimum(plane(frame), 2.5)

    assert words(space, 5.0, f=capped, query=LOW, rows=60) == ()


@pytest.mark.parametrize(
    "space",
    [
        Space(UNIT).between({"d": (0.4, 0.6)}),
        Space(UNIT).require("d <= 0.6"),
        Space(UNIT).max_changes(3),
        Space(UNIT).only_down("d"),
    ],
)
def test_a_limit_that_does_not_bind_is_not_named(space: Space) -> None:
    ends = words(space, 9.0, rows=50)
    assert ends
    assert all(text.startswith("the upper end of") for text in ends)


def test_a_fixed_feature_binds_if_other_questions_moved_it() -> None:
    free = Space(UNIT).around(MIDDLE)
    question = asked(Space(UNIT).fix("c"), 8.0)
    assert "'c' being fixed" not in judge(question).binding  # nothing is known of its effect
    Account(question.evaluator, free, 40).evaluate(sample(free, 40, np.random.default_rng(3)))
    assert judge(question).binding[0] == "'c' being fixed"


def test_nothing_binds_where_no_feature_matters() -> None:
    assert words(Space(UNIT), 8.0, f=lambda frame: 0.0 * frame["a"] + 1.0) == ()


@pytest.mark.parametrize("size", [1e150, 1.0, 1e-150])
@pytest.mark.parametrize("changes", [1, 2])
def test_the_scale_of_outputs_does_not_matter(size: float, changes: int) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    space = cfx.Space.from_data(X).max_changes(changes)
    answer = cfx.explain(
        lambda X: size * np.sin(X).sum(axis=1), X[0], space, cfx.at_least(4.0 * size), rng=0
    )
    assert not answer.reached
    assert f"at most {changes} change" in answer.binding[0].words
