"""Reasons for a miss: computed and checked ones are true, against brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from bayescfx.data import Categorical, Integer, Real
from bayescfx.space.constraint import relaxed_regions
from bayescfx.space.region import Region
from bayescfx.space.space import Space

BOWL = Space({"a": Real(0, 10), "b": Real(0, 10)}).fix("b")
BOWL_QUERY = {"a": 1.0, "b": 1.0}


def bowl(rows: pd.DataFrame) -> Any:
    return -((rows["a"] - 5) ** 2) + 10 * rows["b"]


def cars() -> tuple[pd.DataFrame, Callable[[pd.DataFrame], Any], pd.Series]:
    """Return a table in which the year matters far more than the age, a model, and a query."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 80, 400),
            "year": rng.integers(1990, 2010, 400),
            "size": rng.normal(size=400).round(2),
        }
    )

    def price(rows: pd.DataFrame) -> Any:
        return 0.2 * rows["age"] + 8 * (rows["year"] - 2000) + 3 * rows["size"]

    return table, price, table[table["year"] < 1995].iloc[0]


@pytest.mark.parametrize("budget", [20, 40, 100, None, 2000])
def test_a_fixed_feature_is_named_after_the_model_was_asked(budget: int | None) -> None:
    answer = cfx.explain(bowl, BOWL_QUERY, BOWL, cfx.at_least(40), budget=budget, rng=0)
    assert not answer.reached
    [only] = answer.binding
    assert (only.words, only.evidence) == ("'b' being fixed", "checked")
    assert only.features == ("b",)
    row = BOWL_QUERY | {name: after for name, (_, after) in only.changes.items()}
    assert bowl(pd.DataFrame([row]))[0] == only.output
    assert only.output is not None
    assert only.output >= 40
    assert only.makes_reachable
    text = "Removing this constraint would make it reachable (checked): 'b' being fixed (b 1 → "
    assert text in repr(answer)
    assert answer.n_evaluations <= (budget or 100)
    assert answer.best.row["b"] == 1.0  # no row outside the constraints is an answer


@pytest.mark.parametrize("kind", ["callable", "trees", "linear"])
@pytest.mark.parametrize("budget", [None, 40])
def test_the_fixed_year_is_the_reason_and_not_the_range_of_the_age(
    kind: str, budget: int | None
) -> None:
    table, price, query = cars()
    model: Any = price
    if kind != "callable":
        estimator = GradientBoostingRegressor() if kind == "trees" else LinearRegression()
        model = estimator.fit(table, price(table))
    space = Space.from_data(table).fix("year").only_up("age")
    goal = float(price(query.to_frame().T).iloc[0]) + 60
    answer = cfx.explain(model, query, space, cfx.at_least(goal), budget=budget, rng=0)
    assert not answer.reached
    assert [each.words for each in answer.binding] == ["'year' being fixed"]
    is_computed = kind != "callable" and budget is None
    assert answer.binding[0].evidence == ("computed" if is_computed else "checked")
    if is_computed:
        free = Space.from_data(table).only_up("age")
        freed = cfx.explain(model, query, free, cfx.at_least(goal), rng=0)
        assert answer.binding[0].cost == pytest.approx(freed.best.cost, rel=1e-6)


def test_a_constraint_that_helps_without_being_enough_is_said_to_bring_it_closer() -> None:
    answer = cfx.explain(bowl, BOWL_QUERY, BOWL, cfx.at_least(300), budget=200, rng=0)
    [only] = answer.binding
    assert (only.evidence, only.makes_reachable) == ("checked", False)
    assert "Removing this constraint would bring it closer (checked): 'b' being" in repr(answer)
    assert only.output == pytest.approx(100, abs=1.0)


def test_where_no_row_is_left_a_reason_is_a_guess() -> None:
    space = Space({name: Real(0, 1) for name in "abc"}).between({"c": (0, 0.5)})
    query = dict.fromkeys("abc", 0.2)
    answer = cfx.explain(
        lambda rows: rows["a"] + 3 * rows["c"],
        query,
        space,
        cfx.at_least(4.0),
        method="bayes-cfx",
        budget=30,
        rng=0,
    )
    assert {each.evidence for each in answer.binding} == {"guess"}
    assert "might bring it closer (a guess): limit on 'c' (at most 0.5)" in repr(answer)


def test_if_no_single_constraint_is_enough_two_are_named() -> None:
    table, price, query = cars()
    model = LinearRegression().fit(table, price(table))
    space = Space.from_data(table).fix("year", "age")
    freed = cfx.reachable(model, query, Space.from_data(table))
    goal = freed.highest - 0.5
    answer = cfx.explain(model, query, space, cfx.at_least(goal), rng=0)
    assert answer.proof == "out of reach"
    assert answer.no_single_constraint
    [both] = answer.binding
    assert both.words == "both 'year' being fixed and 'age' being fixed"
    assert both.features == ("year", "age")
    nearest = cfx.explain(model, query, Space.from_data(table), cfx.at_least(goal), rng=0)
    assert both.cost == pytest.approx(nearest.best.cost, rel=1e-3)
    assert "Removing a single constraint does not make it reachable (computed)." in repr(answer)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.no_single_constraint


def test_reasons_survive_json_and_are_shown_everywhere() -> None:
    answer = cfx.explain(bowl, BOWL_QUERY, BOWL, cfx.at_least(40), budget=40, rng=0)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.binding == answer.binding
    plain = json.loads(answer.to_json())["binding"][0]
    assert plain["evidence"] == "checked"
    for text in (answer._repr_html_(), answer.verdict, repr(again)):
        assert "being fixed (b 1 → " in text.replace("&#x27;", "'")
    assert str(answer.binding[0]).startswith("'b' being fixed (checked: b 1 → ")


def test_a_model_that_fails_where_constraints_forbid_rows_still_gets_an_answer() -> None:
    def strict(rows: pd.DataFrame) -> Any:
        if (rows["b"] != 1.0).any():
            raise ValueError("b must be 1")
        return bowl(rows)

    answer = cfx.explain(strict, BOWL_QUERY, BOWL, cfx.at_least(40), budget=60, rng=0)
    assert not answer.reached
    assert all(each.evidence == "guess" for each in answer.binding)


@pytest.mark.parametrize("budget", [12, 30, 75])
def test_checks_stay_within_the_budget(budget: int) -> None:
    n_rows = 0

    def counted(rows: pd.DataFrame) -> Any:
        nonlocal n_rows
        n_rows += len(rows)
        return np.sin(5 * rows["a"]) + rows["c"] + 3 * rows["d"]

    names = "abcdefgh"
    space = Space({name: Real(0, 1) for name in names}).fix("d", "e", "f", "g", "h")
    query = dict.fromkeys(names, 0.1)
    answer = cfx.explain(counted, query, space, cfx.at_least(2.5), budget=budget, rng=0)
    assert not answer.reached
    assert n_rows <= budget
    assert n_rows == answer.n_evaluations
    assert n_rows - len(answer.trace) in (0, 1)  # a row may be scored again, as a check
    if budget >= 30:
        assert answer.stopped in ("budget", "unreachable")
        assert answer.binding[0].words == "'d' being fixed"
        assert answer.binding[0].evidence == "checked"


def test_a_search_that_reaches_the_target_has_its_whole_budget() -> None:
    space = Space({name: Real(0, 1) for name in "abcd"}).fix("d")
    query = dict.fromkeys("abcd", 0.1)

    def f(rows: pd.DataFrame) -> Any:
        return rows["a"] + rows["b"] * rows["c"]

    answer = cfx.explain(f, query, space, cfx.at_least(0.3), budget=30, rng=0)
    assert answer.reached
    assert answer.stopped != "budget" or answer.n_evaluations == 30


def test_queries_of_one_call_get_their_own_reasons() -> None:
    queries = [{"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 9.0}, {"a": 9.0, "b": 2.0}]
    answers = cfx.explain_many(bowl, queries, BOWL, cfx.at_least(40), budget=40, rng=0)
    assert [answer.reached for answer in answers] == [False, True, False]
    for k in (0, 2):
        assert [each.words for each in answers[k].binding] == ["'b' being fixed"]
    assert answers[1].binding == ()


def random_question(seed: int) -> tuple[Space, dict[str, Any], Callable[[pd.DataFrame], Any]]:
    """Return a small discrete space with random constraints, a query, and a random table."""
    rng = np.random.default_rng(seed)
    space = Space(
        {
            "a": Integer(0, 3),
            "b": Integer(0, 3),
            "c": Integer(0, 2),
            "d": Categorical(["x", "y", "z"]),
        }
    )
    query: dict[str, Any] = {name: int(rng.integers(0, 3)) for name in "abc"}
    query["d"] = str(rng.choice(["x", "y", "z"]))
    space = space.fix(str(rng.choice(list("abcd"))))
    if rng.random() < 0.5:
        space = space.between({"a": (0, 2)})
    if rng.random() < 0.5:
        space = space.only_up("b")
    if rng.random() < 0.5:
        space = space.max_changes(int(rng.integers(1, 3)))
    if rng.random() < 0.5:
        space = space.require("a + b <= 4")
    if rng.random() < 0.3:
        space = space.require("d in ['x', 'y']")
    weights = rng.normal(size=4)
    shift = rng.normal(size=(4, 4, 3, 3))

    def f(rows: pd.DataFrame) -> Any:
        levels = rows["d"].map({"x": 0, "y": 1, "z": 2}).to_numpy(dtype=int)
        cells = [rows[name].to_numpy(dtype=int) for name in "abc"]
        linear = sum(w * each for w, each in zip(weights, [*cells, levels], strict=True))
        return linear + 0.7 * shift[(*cells, levels)]

    return space, query, f


def outputs(region: Region, f: Callable[[pd.DataFrame], Any]) -> tuple[Any, Any]:
    """Return all rows of a region, and their outputs."""
    rows = region.enumerate(10_000)
    assert rows is not None
    return rows, np.asarray(f(pd.DataFrame(region.rows(rows))))


def check_by_brute_force(
    answer: cfx.Explanation, region: Region, f: Callable[[pd.DataFrame], Any], goal: float
) -> bool:
    """Check each statement against enumeration; return whether one constraint is enough."""
    costs = {}
    best = {}
    for constraint, relaxed in relaxed_regions(region):
        X, y = outputs(relaxed, f)
        costs[constraint.words] = float(relaxed.cost(X[y >= goal]).min(initial=np.inf))
        best[constraint.words] = float(y.max())
    n_true = 0
    for each in answer.binding:
        if each.evidence == "guess" or each.words.startswith("both "):
            continue
        n_true += 1
        assert each.output is not None
        assert each.output <= best[each.words] + 1e-9
        assert each.makes_reachable == (each.output >= goal)
        if each.evidence == "computed":
            assert each.cost == pytest.approx(costs[each.words], rel=1e-5)
        elif each.cost is not None:
            assert each.cost >= costs[each.words] - 1e-9
    is_one_enough = min(costs.values(), default=np.inf) < np.inf
    if is_one_enough:
        assert n_true
        assert answer.binding[0].makes_reachable
    if answer.no_single_constraint:
        assert not is_one_enough
    return is_one_enough


@pytest.mark.parametrize("is_readable", [False, True])
def test_what_is_named_is_true_by_enumeration(is_readable: bool) -> None:
    n_enough = 0
    for seed in range(25):
        space, query, f = random_question(seed)
        model: Any = f
        if is_readable:
            free = Space(dict(space.features)).around(query).enumerate(10_000)
            assert free is not None
            table = pd.DataFrame(space.around(query).rows(free))
            tree = DecisionTreeRegressor(max_depth=6, random_state=0)
            model = in_numbers(tree, table, np.asarray(f(table)))
            f = model.predict
        region = space.around(query)
        _, y = outputs(region, f)
        goal = float(y.max()) + 0.3
        answer = cfx.explain(model, query, space, cfx.at_least(goal), budget=2000, rng=0)
        assert not answer.reached
        n_enough += check_by_brute_force(answer, region, f, goal)
    assert n_enough > 10


def in_numbers(estimator: Any, table: pd.DataFrame, y: Any) -> Any:
    """Return a fitted pipeline with a tree that has the levels as numbers."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer((OneHotEncoder(), ["d"]), remainder="passthrough")
    return make_pipeline(columns, estimator).fit(table, y)


def test_a_computed_cost_is_exact_or_an_upper_bound() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(0, 10, (300, 8)).round(1), columns=list("abcdefgh"))
    model = LGBMRegressor(n_estimators=60, verbose=-1, n_jobs=1, random_state=0)
    model.fit(X, X.to_numpy() @ np.arange(1.0, 9.0) + 10 * np.sin(X["a"]))
    space = cfx.Space.from_data(X)
    seen = set()
    for k in range(4):
        limited = space.max_changes(1)
        answer = cfx.explain(model, X.iloc[k], limited, cfx.increase(percent=35), rng=0)
        if answer.proof != "out of reach" or "at most 1 change" not in str(answer.binding):
            continue
        free = cfx.explain(model, X.iloc[k], space, cfx.increase(percent=35), rng=0)
        [found] = [each for each in answer.binding if each.words == "at most 1 change"]
        assert free.bound is not None
        assert found.cost is not None
        seen.add(found.is_lowest)
        assert found.cost >= free.bound * (1.0 - 1e-6)
        assert ("at most" in found.shown_by()) != found.is_lowest
        if found.is_lowest:
            assert found.cost <= free.best.cost * (1.0 + 1e-6)
    assert seen
