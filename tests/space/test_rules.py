"""Rules as text and as functions, derived columns, the cost, linear algebra, closeness to data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from bayescfx.errors import SpaceError
from bayescfx.features import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.space.linear import coordinate_corrections, project_linear
from bayescfx.space.near import NearData
from bayescfx.space.rules import Cost, FunctionRule, TextRule
from bayescfx.space.space import Space

FEATURES: dict[Any, Feature] = {
    "a": Real(-10, 10),
    "b": Integer(-10, 10),
    "c-d": Real(-10, 10),
    "grade": Ordinal([1, 2, 4]),
    "flag": Categorical([False, True]),
    "colour": Categorical(["red", "blue"]),
}


def rows(*columns: Any) -> Any:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(float)


@pytest.mark.parametrize(
    "text",
    [
        "a <= b",
        "a + 2*b <= 10",
        "-(a - b) / 2 >= 3 * (a + 1) - 4",
        "0 <= a <= b",
        "`c-d` < a and b > -2",
        "a**2 + b*a <= 20",
        "a / b <= 1",
        "grade <= b",
        "a * flag <= 1",
        "2 ** 3 * a <= +b",
    ],
)
def test_a_text_rule_says_what_python_says(text: str) -> None:
    rng = np.random.default_rng(0)
    rule = TextRule.parse(text, FEATURES)
    X = rows(
        rng.uniform(-10, 10, 300),
        rng.integers(-10, 11, 300),
        rng.uniform(-10, 10, 300),
        rng.integers(0, 3, 300),
        rng.integers(0, 2, 300),
        0,
    )
    expected = []
    for a, b, c, g, f, _ in X:
        names = {"a": a, "b": b, "c_d": c, "grade": [1, 2, 4][int(g)], "flag": f}
        with np.errstate(divide="ignore"):
            expected.append(eval(text.replace("`c-d`", "c_d"), {}, names))
    assert rule.holds(X, FEATURES).tolist() == expected


@given(
    st.floats(-5, 5),
    st.floats(-5, 5),
    st.floats(-5, 5),
    st.sampled_from(["<=", ">=", "<", ">", "=="]),
)
def test_half_spaces_of_a_linear_rule_agree_with_the_rule(
    p: float, q: float, r: float, op: str
) -> None:
    text = f"{p!r} * a - b * {q!r} + 1 {op} {r!r} - a"
    rule = TextRule.parse(text, FEATURES)
    X = rows(np.linspace(-9, 9, 40), np.arange(40) % 19 - 9, 0, 0, 0, 0)
    left = p * X[:, 0] - X[:, 1] * q + 1
    right = r - X[:, 0]
    clear = np.abs(left - right) > 1e-6
    inside = np.ones(40, dtype=bool)
    for normal, bound in rule.halfspaces(FEATURES):
        inside &= X @ normal <= bound
    np.testing.assert_array_equal(inside[clear], rule.holds(X, FEATURES)[clear])


@pytest.mark.parametrize("text", ["a*b <= 1", "a**2 <= 1", "1/a <= 2", "grade <= 2"])
def test_a_rule_that_is_not_linear_has_no_half_spaces(text: str) -> None:
    assert TextRule.parse(text, FEATURES).halfspaces(FEATURES) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "must be a comparison"),
        ("a <=", "must be a comparison"),
        ("a != b", "must compare with"),
        ("1 <= 2", "must name at least one feature"),
        ("ab <= 1", "names 'ab', which is no feature"),
        ("gradee <= 1", "Did you mean 'grade'"),
        ("`c-e` <= 1", "names 'c-e', which is no feature. Did you mean 'c-d'"),
        ("c-d <= 1", "in backticks"),
        ("__import__('os').system('true') <= a", "Pass a function for anything else"),
        ("a.real <= 1", "Pass a function for anything else"),
        ("a <= 'x'", "Pass a function for anything else"),
        ("a <= True", "Pass a function for anything else"),
        ("[a][0] <= 1", "Pass a function for anything else"),
        ("colour <= 1", "has levels such as 'red'"),
        ("(" * 500 + "a" + ")" * 500 + " <= 1", "must be a comparison"),
    ],
)
def test_text_that_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        TextRule.parse(text, FEATURES)


def test_times_are_compared_as_times() -> None:
    start = Moment("2016-01-01", "2016-03-01")
    end = Moment("2016-02-01", "2016-04-01")
    features: dict[Any, Feature] = {"start": start, "end": end}
    X = rows([start.code("2016-02-10"), start.code("2016-02-11 00:00:01")], end.code("2016-02-11"))
    assert TextRule.parse("start <= end", features).holds(X, features).tolist() == [True, False]
    within = TextRule.parse("end - start <= 1", features)
    assert within.holds(X, features).tolist() == [True, True]
    [(normal, bound)] = within.halfspaces(features)
    assert (X @ normal <= bound).all()
    mixed: dict[Any, Feature] = {"start": start, "end": Moment("2016", "2017", unit="h")}
    with pytest.raises(SpaceError, match="mixes times of different units"):
        TextRule.parse("start <= end", mixed)


def test_a_missing_value_satisfies_no_text_rule() -> None:
    X = rows([np.nan, 1.0], 2, 0, [np.nan, 0], 0, 0)
    assert TextRule.parse("a <= b", FEATURES).holds(X, FEATURES).tolist() == [False, True]
    assert TextRule.parse("grade <= b", FEATURES).holds(X, FEATURES).tolist() == [False, True]


@pytest.mark.parametrize("bad", [lambda d: True, lambda d: d["a"], lambda d: [True]])
def test_a_function_must_return_one_boolean_per_row(bad: Any) -> None:
    rule = FunctionRule(bad, "odd")
    with pytest.raises(SpaceError, match="rule 'odd' must return one boolean per row; got shape"):
        rule.holds(pd.DataFrame({"a": [1.0, 2.0]}))


def test_a_function_may_return_nullable_booleans() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
    found = FunctionRule(lambda d: d["a"] > 1, "big").holds(frame)
    assert found.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": -1}, "`weight` must be a number >= 0; got -1"),
        ({"norm": 0.5}, "`norm` must be 0 or a number >= 1; got 0.5"),
        ({"norm": "1"}, "`norm` must be 0 or a number >= 1; got '1'"),
        ({"per_feature": {"a": float("nan")}}, r"`per_feature\['a'\]` must be a number >= 0"),
    ],
)
def test_an_impossible_cost_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Cost(**settings)


# ── linear rules ──


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_projection_finds_the_nearest_point_of_a_polytope(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 4
    inner = rng.uniform(0.2, 0.8, d)
    A = rng.normal(size=(3, d))
    b = A @ inner + rng.uniform(0, 0.2, 3)
    scale = rng.uniform(0.5, 2, d)
    x = rng.uniform(-0.5, 1.5, d)
    box = (np.zeros(d), np.ones(d))
    [z] = project_linear(x[None], A, b, box, np.repeat(scale[None], 1, axis=0), rounds=5000)
    assert (A @ z <= b + 1e-9).all()
    assert ((z >= 0) & (z <= 1)).all()
    best: Any = minimize(  # type: ignore[call-overload]  # the stubs lack this mix
        lambda y: float((((y - x) / scale) ** 2).sum()),
        inner,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * d,
        constraints=LinearConstraint(A, -np.inf, b),
        tol=1e-14,
    )
    assert (((z - x) / scale) ** 2).sum() <= best.fun * 1.001 + 1e-6


def test_projection_leaves_what_must_not_move() -> None:
    A, b = np.array([[1.0, 1.0]]), np.array([1.0])
    X = np.array([[2.0, 3.0], [2.0, 3.0]])
    mobility = np.array([[1.0, 0.0], [0.0, 0.0]])
    box = (np.full(2, -10.0), np.full(2, 10.0))
    found = project_linear(X, A, b, box, mobility)
    np.testing.assert_allclose(found, [[-2, 3], [2, 3]], atol=1e-9)


def test_corrections_move_single_coordinates_by_whole_steps() -> None:
    A, b = np.array([[2.0, 3.0, 1.0]]), np.array([5.0])
    X = np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    moving = np.ones((2, 3), dtype=bool)
    found, origin = coordinate_corrections(X, A, b, np.array([1.0, 1.0, 0.0]), moving)
    assert origin.tolist() == [0, 0, 0]
    np.testing.assert_allclose(found, [[-1, 2, 0], [2, 0, 0], [2, 2, -5]], atol=1e-9)
    assert (found @ A[0] <= b[0] + 1e-12).all()


# ── near data ──


def gower(X: Any, Y: Any, scale: Any, levels: Any, period: Any) -> Any:
    """Return all distances, cell by cell."""
    far = np.zeros((len(X), len(Y)))
    for i, x in enumerate(X):
        for k, y in enumerate(Y):
            for j in range(len(scale)):
                if np.isnan(x[j]) or np.isnan(y[j]):
                    far[i, k] += np.isnan(x[j]) != np.isnan(y[j])
                elif levels[j]:
                    far[i, k] += x[j] != y[j]
                else:
                    delta = abs(x[j] - y[j])
                    delta = min(delta, period[j] - delta) if period[j] else delta
                    far[i, k] += delta / scale[j]
    return far


@pytest.mark.parametrize("kind", ["numbers", "levels", "cyclic", "missing", "many levels"])
def test_closeness_to_data_is_what_brute_force_says(kind: str) -> None:
    rng = np.random.default_rng(1)
    many = 100 if kind == "many levels" else 4
    features: dict[Any, Feature] = {
        "a": Real(0, 1),
        "b": Real(0, 1),
        "c": Categorical(range(many)) if "levels" in kind else Real(0, many),
        "d": Integer(0, 6, cyclic=kind == "cyclic"),
    }
    data = rows(rng.random(60), rng.random(60), rng.integers(0, many, 60), rng.integers(0, 7, 60))
    if kind == "missing":
        data[::7, 0] = np.nan
    scale = np.array([0.2, 0.3, 1.0, 2.0])
    rule = NearData.fit(data, features, scale, quantile=0.8, neighbours=3)
    levels = [False, False, "levels" in kind, False]
    period = [0, 0, 0, 7 if kind == "cyclic" else 0]
    own = np.sort(gower(data, data, scale, levels, period), axis=1)[:, 3]
    assert rule.radius == pytest.approx(np.quantile(own, 0.8, method="higher"))
    query = data[3]
    X = np.repeat(query[None], 200, axis=0)
    X[:, 1] = rng.uniform(-0.5, 1.5, 200)
    X[:, 2] = rng.integers(0, many, 200)
    X[:, 3] = rng.integers(0, 7, 200)
    moving = np.array([False, True, True, True])
    here = rule.here(query, moving, np.array([0, -0.5, 0, 0]), np.array([1, 1.5, many, 6]))
    kth = np.sort(gower(X, data, scale, levels, period), axis=1)[:, 2]
    np.testing.assert_allclose(rule.distance(X), kth)
    np.testing.assert_array_equal(here.holds(X), kth <= rule.radius)
    assert 0 < here.holds(X).sum() < 200


def test_at_least_the_stated_share_of_the_data_is_near_itself() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 3))
    features: dict[Any, Feature] = {name: Real(-5, 5) for name in "abc"}
    for quantile in (0.5, 0.9, 1.0):
        rule = NearData.fit(data, features, np.ones(3), quantile, 5)
        assert (rule.distance(data) <= rule.radius).mean() >= quantile


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantile": 0.0}, r"`quantile` must lie in \(0, 1\]; got 0.0"),
        ({"neighbours": 0}, "`neighbours` must be at least 1"),
        ({"neighbours": 3}, "less than the number of rows, 3; got 3"),
    ],
)
def test_impossible_closeness_is_refused(arguments: Any, message: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(SpaceError, match=message):
        Space.from_data(frame).near_data(frame, **arguments)
