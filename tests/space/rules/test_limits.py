"""Limits of values, strict or not, and queries outside them: one rule, checked row by row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import bayescfx as cfx
from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.errors import InfeasibleError, SpaceError, SpaceWarning
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space

MODELS = {
    "boosting": lambda: GradientBoostingRegressor(n_estimators=25, random_state=0),
    "forest": lambda: RandomForestRegressor(12, max_depth=5, random_state=0),
    "linear": LinearRegression,
}


@dataclass(frozen=True)
class Limited:
    """A small space with limits, a query, and what each feature may be by the stated rule."""

    space: Space
    query: dict[str, Any]
    values: dict[str, list[Any]]  # every value of the features
    allowed: dict[str, list[Any]]  # the values inside limits, and the query's unless strict

    @property
    def region(self) -> Region:
        """The region of the query, without warnings."""
        return self.space.regions([self.query]).regions[0]

    def rows(self) -> pd.DataFrame:
        """Return all allowed rows, made without the library."""
        return pd.DataFrame(list(product(*self.allowed.values())), columns=list(self.allowed))


def random_limits(seed: int, *, numbers: bool = False) -> Limited:
    """Return a random small space; the query may lie outside strict and other limits."""
    rng = np.random.default_rng(seed)
    kinds: list[Any] = [Integer(0, 7), Real(0, 3, step=0.5)]
    if not numbers:
        kinds += [Ordinal(list("abcde")), Categorical(["x", "y", "z"]), Integer(0, 6, cyclic=True)]
    features = {f"f{k}": kinds[k % len(kinds)] for k in range(4)}
    space = Space(features)
    query: dict[str, Any] = {}
    values: dict[str, list[Any]] = {}
    allowed: dict[str, list[Any]] = {}
    for name, feature in features.items():
        every = list(feature.levels) if feature.has_levels else None
        if every is None:
            codes = feature.grid(np.arange(0, (feature.high - feature.low) / feature.step + 1), 0.0)
            every = codes.tolist() if feature.step == 0.5 else codes.astype(int).tolist()
        own = every[rng.integers(len(every))]
        inside = every
        is_strict = False
        if rng.random() < 0.75:
            is_strict = bool(rng.random() < 0.5)
            first, last = np.sort(rng.choice(len(every), 2))
            inside = every[first : last + 1]
            limit = inside if feature.has_levels else (inside[0], inside[-1])
            space = space.between({name: limit}, strict=is_strict)
        query[name] = own
        values[name] = every
        allowed[name] = inside if is_strict or own in inside else [*inside, own]
    return Limited(space, query, values, allowed)


def as_set(rows: pd.DataFrame) -> set[tuple[Any, ...]]:
    return set(rows.itertuples(index=False, name=None))


@pytest.mark.parametrize("seed", range(40))
def test_exactly_the_rows_that_the_rule_allows_are_allowed(seed: int) -> None:
    case = random_limits(seed)
    region = case.region
    every = pd.DataFrame(list(product(*case.values.values())), columns=list(case.values))
    codes = region.encode(every)
    kept = region.contains(codes)
    expected = as_set(case.rows())
    assert as_set(every[kept]) == expected
    found = region.enumerate(10**6)
    assert found is not None
    assert as_set(pd.DataFrame(region.rows(found))) == expected
    if len(expected - {tuple(case.query.values())}):
        drawn = region.rows(sample(region, 20, np.random.default_rng(seed)))
        assert as_set(pd.DataFrame(drawn)) <= expected


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", range(8))
def test_proven_answers_are_the_nearest_of_all_allowed_rows(kind: str, seed: int) -> None:
    case = random_limits(100 + seed, numbers=True)
    rng = np.random.default_rng(seed)
    region = case.region
    data = pd.DataFrame({n: rng.choice(v, 200) for n, v in case.values.items()})
    y = data.to_numpy(float) @ rng.normal(size=4) + np.sin(data["f0"]) * data["f1"]
    model = MODELS[kind]().fit(data, y)
    rows = case.rows()
    outputs = model.predict(rows)
    target = cfx.at_least(float(np.quantile(outputs, 0.8)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaceWarning)
        answer = cfx.explain(model, case.query, case.space, target, rng=0)
    costs = region.cost(region.encode(rows))[outputs >= answer.wanted[0][0] - 1e-9]
    assert answer.reached
    assert tuple(answer.best.row) in as_set(rows)
    if answer.stopped != "already met":
        assert str(answer.proof).startswith("optimal")
    assert answer.best.cost == pytest.approx(costs.min())
    assert answer.verify(model)


def strict_numbers() -> tuple[Space, dict[str, float], Any]:
    """Return continuous features, a query outside strict limits of two, and a smooth model."""
    space = Space({name: Real(0, 10) for name in "abcd"})
    space = space.between({"a": (2, 4), "b": (None, 5)}, strict=True)
    return (
        space.between({"c": (3, 6)}),
        {"a": 7.0, "b": 9.0, "c": 1.0, "d": 5.0},
        lambda r: 2 * r["a"] - r["b"] + r["c"] * r["d"] / 4,
    )


def keeps_limits(row: Any) -> Any:
    is_inside = 2 <= row["a"] <= 4 and row["b"] <= 5
    return is_inside and (3 <= row["c"] <= 6 or row["c"] == 1.0)


@pytest.mark.parametrize("method", ["auto", "sweep", "bayes-cfx", "random", "lbfgsb"])
def test_every_method_moves_a_query_into_strict_limits(method: str) -> None:
    space, query, model = strict_numbers()
    for target in (cfx.at_least(9.0), cfx.at_most(-100.0), cfx.at_most(100.0)):
        with pytest.warns(
            SpaceWarning, match=r"'c' is 1 \(between 3 and 6\). Such a value may stay"
        ):
            answer = cfx.explain(model, query, space, target, method=method, budget=60, rng=0, n=2)
        assert answer.stopped != "already met"
        assert all(keeps_limits(found.row) for found in answer.counterfactuals)
        assert answer.reached == (target != cfx.at_most(-100.0)), answer
        assert answer.verify(model)


@pytest.mark.parametrize("strict", [False, True])
def test_proofs_on_the_line_keep_the_rule(strict: bool) -> None:
    rng = np.random.default_rng(3)
    data = pd.DataFrame(rng.uniform(0, 10, (300, 3)), columns=list("abc"))
    y = 2.0 * data["a"] - data["b"] + np.sin(data["c"])
    space = Space({name: Real(0, 10) for name in "abc"})
    space = space.between({"a": (2, 4), "b": (1, 3)}, strict=strict)
    query = {"a": 7.0, "b": 6.0, "c": 5.0}
    grid = np.linspace(0, 10, 41)
    for make in (
        *MODELS.values(),
        lambda: MLPRegressor(hidden_layer_sizes=(6,), max_iter=800, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(data, y)
            now = float(model.predict(pd.DataFrame([query]))[0])
            answer = cfx.explain(model, query, space, cfx.at_most(now - 3.0), rng=0)
        row = answer.best.row
        for name, (low, high) in {"a": (2, 4), "b": (1, 3)}.items():
            assert low <= row[name] <= high or (not strict and row[name] == query[name])
        assert str(answer.proof).startswith("optimal")
        # No row of a grid is nearer.
        codes = np.array(list(product([*grid, 7.0], [*grid, 6.0], [*grid, 5.0])))
        region = space.regions([query]).regions[0]
        codes = codes[region.contains(codes)]
        costs = region.cost(codes)[
            model.predict(pd.DataFrame(codes, columns=list("abc"))) <= now - 3
        ]
        assert answer.best.cost <= 1.01 * costs.min() + 1e-9  # its numbers are short decimals


def test_a_value_outside_is_named_where_it_happens(tmp_path: Path) -> None:
    space, query, model = strict_numbers()
    with pytest.warns(SpaceWarning) as caught:
        answer = cfx.explain(model, query, space.fix("c"), cfx.at_least(6.0), rng=0)
    assert [str(each.message) for each in caught] == [
        "the query lies outside its limits: 'c' is 1 (between 3 and 6). Such a value may stay, and "
        "changes only to one inside. To require a value inside, make the limit strict "
        "(strict=True)."
    ]
    said = "c stays at 1, outside its limits (between 3 and 6)."
    for text in (str(answer), cfx.Explanation.from_json(answer.to_json())):
        assert said in str(text)
    assert "c stays at 1, outside its limits (between 3 and 6)" in answer.to_markdown()
    assert said in answer._repr_html_()
    path = tmp_path / "answer.html"
    cfx.plots.report(answer, path)
    assert said in path.read_text(encoding="utf-8")
    assert answer.best.changes.keys() >= {"a", "b"}


def test_several_answers_say_which_of_them_keeps_a_value() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10)}).between({"a": (0, 4)})
    with pytest.warns(SpaceWarning):
        answer = cfx.explain(
            lambda r: r["b"] - r["a"], {"a": 7.0, "b": 5.0}, space, cfx.at_least(1.0), n=2, rng=0
        )
    lines = [line for line in str(answer).splitlines() if "outside its limits" in line]
    stays = [k for k, found in enumerate(answer.counterfactuals, 1) if "a" not in found.changes]
    assert lines == [
        f"Answer {k}: a stays at 7, outside its limits (between 0 and 4)." for k in stays
    ]
    assert 0 < len(stays) < 2


def test_many_queries_outside_limits_are_counted() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10)}).between({"a": (0, 4)})
    queries = pd.DataFrame({"a": [1.0, 7.0, 8.0, 9.0], "b": 5.0}, index=list("wxyz"))
    with pytest.warns(SpaceWarning, match=r"for the query 'x' \(and 2 more\): .* 'a' is 7 \(betw"):
        cfx.explain_many(lambda r: r["b"] - r["a"], queries, space, cfx.at_least(1.0), rng=0)


def test_strict_limits_are_shown_saved_and_combined() -> None:
    space = Space({"a": Real(0, 10), "k": Categorical(["x", "y", "z"])})
    strict = space.between({"a": (2, 8), "k": ["x", "y"]}, strict=True).between({"a": (None, 5)})
    lines = str(strict).splitlines()
    assert lines[2].endswith("between 2 and 5, strict between 2 and 8")
    assert lines[3].endswith("only 'x', 'y', strict")
    again = Space.from_dict(strict.to_dict())
    assert str(again) == str(strict)
    # 7 is inside what is strict: it may stay, but not move to another value above 5
    with pytest.warns(SpaceWarning, match=r"'a' is 7 \(between 2 and 5\)"):
        region = again.around({"a": 7.0, "k": "z"})
    X = np.array([[7, 0], [6.5, 0], [4, 1], [1, 0], [4, 2], [9, 0]])
    assert region.contains(X).tolist() == [True, False, True, False, False, False]
    narrower = strict.between({"a": (3, 4)}, strict=True).around({"a": 3.5, "k": "x"})
    assert (narrower.low[0], narrower.high[0]) == (3, 4)
    with pytest.raises(SpaceError, match="`strict` must be True or False; got 1"):
        space.between({"a": (2, 8)}, strict=1)  # type: ignore[arg-type]


def test_what_cannot_move_into_strict_limits_is_infeasible() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10)}).between({"a": (0, 4)}, strict=True)
    for blocked in (space.fix("a"), space.only_up("a")):
        with pytest.raises(InfeasibleError, match="limit on 'a'"):
            cfx.explain(lambda r: r["b"], {"a": 7.0, "b": 1.0}, blocked, 3.0, rng=0)


def test_rows_from_elsewhere_are_measured_by_strict_limits() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10)}).between({"a": (0, 4)}, strict=True)
    query = {"a": 7.0, "b": 1.0}
    rows = pd.DataFrame({"a": [7.0, 9.0, 3.0], "b": [2.0, 2.0, 2.0]})
    found = cfx.assess(lambda r: r["b"], query, rows, space, cfx.at_least(2.0))
    assert found["broken"].tolist() == ["the limits of 'a'", "the limits of 'a'", ""]
    tried = cfx.what_if(lambda r: r["b"], query, {"b": 3.0}, space)
    assert tried.broken == ("the limits of 'a'",)


def test_a_derived_column_keeps_strict_limits() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10), "sum": Real(0, 20)})
    space = space.derive("sum", lambda r: r["a"] + r["b"])
    query = {"a": 7.0, "b": 8.0, "sum": 15.0}
    strict = space.between({"sum": (None, 9)}, strict=True).around(query)
    assert not strict.contains(strict.query[None])[0]
    rows = pd.DataFrame(strict.rows(sample(strict, 50, np.random.default_rng(0))))
    assert (rows["sum"] <= 9).all()
    with pytest.warns(SpaceWarning, match="'sum' is 15"):
        region = space.between({"sum": (None, 9)}).around(query)
    assert region.contains(region.query[None])[0]


def test_a_missing_value_lies_outside_strict_limits() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 7.0] * 5, "b": np.arange(20.0)})
    space = Space.from_data(frame).between({"a": (0, 4)}, strict=True)
    with pytest.warns(SpaceWarning, match="has no value for 'a'"):
        region = space.around(frame.iloc[1])
    assert not region.contains(region.query[None])[0]


def test_what_strict_limits_cost_is_computed() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(0, 10, (200, 2)).round(1), columns=["a", "b"])
    model = LinearRegression().fit(data, data["a"] + 0.1 * data["b"])
    space = Space.from_data(data).between({"a": (0, 4)}, strict=True)
    answer = cfx.explain(model, {"a": 7.0, "b": 5.0}, space, cfx.at_least(7.8), rng=0)
    assert answer.proof == "out of reach"
    assert [each.words for each in answer.binding] == ["limit on 'a'"]
