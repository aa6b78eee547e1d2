"""Rules written as text, and rules given as functions of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.data import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.errors import SpaceError
from bayescfx.space.region import Region
from bayescfx.space.rules.require import FunctionRule, TextRule
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space

FEATURES: dict[Any, Feature] = {
    "a": Real(-10, 10),
    "b": Integer(-10, 10),
    "c-d": Real(-10, 10),
    "grade": Ordinal([1, 2, 4]),
    "flag": Categorical([False, True]),
    "colour": Categorical(["red", "blue"]),
}


def around(features: dict[Any, Feature]) -> Region:
    """Return a region over these features; rules look only at its schema."""
    space = Space(features)
    return space.around(space.decode(np.array([[f.code_range[0] for f in features.values()]])))


REGION = around(FEATURES)


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
        "a != b",
        "grade in [1, 4] and a not in [1, 2]",
        "b in [3]",
        "b not in [3] or a <= 0",
        "a <= b or a >= 2 and not b <= 3",
        "not (a <= 1 or b >= 2)",
        "flag == True or a <= 0",
        "False != flag",
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
    assert rule.holds(REGION, X).tolist() == expected


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
    for normal, bound in rule.halfspaces(REGION):
        inside &= X @ normal <= bound
    np.testing.assert_array_equal(inside[clear], rule.holds(REGION, X)[clear])


@pytest.mark.parametrize("text", ["a*b <= 1", "a**2 <= 1", "1/a <= 2", "grade <= 2"])
def test_a_rule_that_is_not_linear_has_no_half_spaces(text: str) -> None:
    assert TextRule.parse(text, FEATURES).halfspaces(REGION) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "must be a comparison"),
        ("a <=", "must be a comparison"),
        ("a is b", "must compare with"),
        ("a in b", "must compare with"),
        ("colour in []", "must list what is allowed"),
        ("1 <= 2", "must name at least one feature"),
        ("ab <= 1", "names 'ab', which is no feature"),
        ("gradee <= 1", "Did you mean 'grade'"),
        ("`c-e` <= 1", "names 'c-e', which is no feature. Did you mean 'c-d'"),
        ("c-d <= 1", "in backticks"),
        ("__import__('os').system('true') <= a", "Pass a function for anything else"),
        ("a.real <= 1", "Pass a function for anything else"),
        ("a <= 'x'", "`require` for 'a' must be numbers; got 'x'"),
        ("a <= True", "must compare 'a' with numbers"),
        ("a + 'x' <= 1", "Pass a function for anything else"),
        ("'x' == 'x'", "must compare a text with a feature"),
        ("colour == 'rot'", "'colour' has no level 'rot'. Levels: 'red', 'blue'"),
        ("colour == red", "Write texts in quotes"),
        ("colour <= 'red'", "needs an order, but the levels of 'colour' have none"),
        ("a <= 1 ->", "must be a comparison"),
        ("(a <= 1 -> b <= 1) and a <= 2", "must be a comparison"),
        ("not " * 3000 + "a <= 1", "must be a comparison"),
        ("[a][0] <= 1", "Pass a function for anything else"),
        ("colour <= 1", "has levels such as 'red'"),
        ("colour == 1", "has levels such as 'red'"),
        ("grade == 3", "'grade' has no level 3. Levels: 1, 2, 4"),
        ("-3 != grade", "'grade' has no level -3. Levels: 1, 2, 4"),
        ("grade in [1, 99]", "'grade' has no level 99"),
        ("grade not in [1, 2.5]", "'grade' has no level 2.5"),
        ("flag == 2", "'flag' has no level 2. Levels: False, True"),
        ("(" * 500 + "a" + ")" * 500 + " <= 1", "must be a comparison"),
        (" + ".join(["a"] * 100_000) + " <= 1", "must be a comparison"),
    ],
)
def test_text_that_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        TextRule.parse(text, FEATURES)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("µ", "μ"), "µ <= 3"),  # micro sign and mu, which Python's parser takes for one name
        (("μ", "µ"), "μ <= 3"),
        (("ﬁ", "fi"), "ﬁ <= 3"),
        (("b c", "quoted_2_"), "`b c` <= 3"),
        (("quoted_2_", "b c"), "quoted_2_ <= 3 and `b c` <= 9"),
        (("_0_", "_1_"), "_0_ <= 3"),
        (("a b", "a_b"), "`a b` <= 3"),
    ],
)
def test_names_are_matched_exactly(names: tuple[str, str], text: str) -> None:
    features: dict[Any, Feature] = dict.fromkeys(names, Real(0, 9))
    rule = TextRule.parse(text, features)
    holds = rule.holds(around(features), np.array([[2.0, 8.0], [8.0, 2.0]]))
    assert holds.tolist() == [True, False]


def test_a_name_that_two_columns_have_is_refused() -> None:
    features: dict[Any, Feature] = {1: Real(0, 9), "1": Real(0, 9), "a": Real(0, 9)}
    with pytest.raises(SpaceError, match="names '1', which may be 1 or '1'"):
        TextRule.parse("`1` <= 3", features)
    holds = TextRule.parse("a <= 3", features).holds(around(features), np.diag([9.0, 9.0, 4.0]))
    assert holds.tolist() == [True, True, False]


@pytest.mark.parametrize("text", ["＿0＿ <= a", "a <= ٣", "ａ <= 3", "a._9_ <= b"])
def test_look_alikes_are_no_names(text: str) -> None:
    with pytest.raises(SpaceError, match="rule"):
        TextRule.parse(text, FEATURES)


@pytest.mark.parametrize(
    "number", ["10**1000", "0**-1", "(-8)**0.5", "1/0", "1e999", "1" + "0" * 400, "10**300*10**300"]
)
def test_numbers_of_a_rule_are_finite(number: str) -> None:
    with pytest.raises(SpaceError, match="a rule must have finite numbers"):
        Space(FEATURES).require(f"a * ({number}) <= b")


@pytest.mark.parametrize("terms", [3, 1_500])
def test_a_long_sum_is_a_rule(terms: int) -> None:
    rule = TextRule.parse(" + ".join(["a"] * terms) + f" <= {terms}", FEATURES)
    X = rows([0.9, 1.1], 0, 0, 0, 0, 0)
    assert rule.holds(REGION, X).tolist() == [True, False]
    [(normal, bound)] = rule.halfspaces(REGION)
    assert (normal[0], bound) == (terms, terms)


LEVELS: dict[Any, Feature] = {
    "cut": Ordinal(["Fair", "Good", "Ideal"]),
    "colour": Categorical(["D", "E", "grün"]),
    "price": Real(0, 1000),
    "sold": Moment("2016-01-01", "2016-12-31"),
}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cut == 'Ideal' or price <= 500", lambda c, k, p: c == 2 or p <= 500),
        ("colour in ['D', \"grün\"]", lambda c, k, p: k in (0, 2)),
        ("colour not in ('D', 'E')", lambda c, k, p: k == 2),
        ("colour != 'E'", lambda c, k, p: k != 1),
        ("cut >= 'Good'", lambda c, k, p: c >= 1),
        ("'Good' > cut", lambda c, k, p: c < 1),
        ("colour == 'D' -> price >= 500", lambda c, k, p: k != 0 or p >= 500),
        (
            "colour == 'D' -> cut == 'Fair' -> price >= 500",
            lambda c, k, p: k != 0 or c != 0 or p >= 500,
        ),
        ("not colour == 'E' and price < 500", lambda c, k, p: k != 1 and p < 500),
    ],
)
def test_levels_are_named_in_quotes(text: str, says: Any) -> None:
    X = np.array([(c, k, p, 0) for c in range(3) for k in range(3) for p in (100.0, 500.0, 900.0)])
    rule, region = TextRule.parse(text, LEVELS), around(LEVELS)
    assert rule.holds(region, X).tolist() == [says(*row[:3]) for row in X]
    assert rule.curved(region)
    again = TextRule.from_plain(rule.to_plain(), LEVELS)
    assert again.holds(region, X).tolist() == rule.holds(region, X).tolist()


def test_a_missing_level_is_neither_this_one_nor_another() -> None:
    region, X = around(LEVELS), np.array([[np.nan, np.nan, 1.0, 0.0]])
    for text in ("colour == 'D'", "colour != 'D'", "colour not in ['D']", "cut <= 'Ideal'"):
        assert not TextRule.parse(text, LEVELS).holds(region, X)[0]
    assert TextRule.parse("colour == 'D' -> price <= 0", LEVELS).holds(region, X)[0]


def test_levels_that_are_allowed_are_all_that_is_tried() -> None:
    frame = pd.DataFrame({"level": [f"l{i}" for i in range(200)], "x": np.arange(200.0)})
    space = Space.from_data(frame, {"level": "categorical"}).require("level in ['l7', 'l9']")
    region = space.around(frame.iloc[3])
    choices = region.choices[0]
    assert choices is not None
    assert len(choices) == 3  # and the query's own, to start from
    assert not region.contains(region.query[None])[0]
    drawn = sample(region, 50, np.random.default_rng(0))
    assert len(drawn) == 50
    assert region.contains(drawn).all()


def test_a_time_is_written_as_text() -> None:
    feature = LEVELS["sold"]
    X = np.array([[0, 0, 0, feature.code("2016-03-01")], [0, 0, 0, feature.code("2016-08-01")]])
    rule, region = TextRule.parse("sold <= '2016-07-01'", LEVELS), around(LEVELS)
    assert rule.holds(region, X).tolist() == [True, False]
    assert not rule.curved(region)


@pytest.mark.parametrize(
    "text",
    ["sold >= 2016", "2016 < sold", "sold == 2016", "sold in [2016, 2017]", "sold + sold <= price"],
)
def test_a_number_is_no_point_in_time(text: str) -> None:
    with pytest.raises(SpaceError, match=r"'sold', a point in time, with another, or with one in"):
        TextRule.parse(text, LEVELS)
    with pytest.raises(
        SpaceError, match=r"`between` for 'sold' must be a point in time, .*; got 2016"
    ):
        Space(LEVELS).between({"sold": (2016, 2017)})


def test_a_duration_is_compared_with_numbers() -> None:
    features: dict[Any, Feature] = {
        "stay": Moment(pd.Timedelta("1D"), pd.Timedelta("30D")),
        "start": Moment("2016-01-01", "2016-03-01"),
        "end": Moment("2016-02-01", "2016-04-01"),
    }
    region = around(features)
    for text in ("stay >= 2", "end - start <= 2 * stay", "(end - start) * stay >= 7"):
        assert TextRule.parse(text, features).holds(region, region.query[None]).shape == (1,)
    with pytest.raises(SpaceError, match="for 'stay' must be a duration, such as '2 days'; got 3"):
        Space(features).between({"stay": (3, 4)})


def test_times_are_compared_as_times() -> None:
    start = Moment("2016-01-01", "2016-03-01")
    end = Moment("2016-02-01", "2016-04-01")
    features: dict[Any, Feature] = {"start": start, "end": end}
    X = rows([start.code("2016-02-10"), start.code("2016-02-11 00:00:01")], end.code("2016-02-11"))
    region = around(features)
    assert TextRule.parse("start <= end", features).holds(region, X).tolist() == [True, False]
    within = TextRule.parse("end - start <= 1", features)
    assert within.holds(region, X).tolist() == [True, True]
    [(normal, bound)] = within.halfspaces(region)
    assert (X @ normal <= bound).all()
    mixed: dict[Any, Feature] = {"start": start, "end": Moment("2016", "2017", unit="h")}
    with pytest.raises(SpaceError, match="mixes times of different units"):
        TextRule.parse("start <= end", mixed)


def test_a_missing_value_satisfies_no_text_rule() -> None:
    X = rows([np.nan, 1.0], 2, 0, [np.nan, 0], 0, 0)
    assert TextRule.parse("a <= b", FEATURES).holds(REGION, X).tolist() == [False, True]
    assert TextRule.parse("grade <= b", FEATURES).holds(REGION, X).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "curved"),
    [
        ("a <= b", False),
        ("a <= b <= a + 1", False),
        ("a == b and a*b <= 1", True),
        ("grade <= 2", True),
    ],
)
def test_a_rule_that_says_more_than_its_half_spaces_is_curved(text: str, curved: bool) -> None:
    assert TextRule.parse(text, FEATURES).curved(REGION) is curved


# ── functions ──


@pytest.mark.parametrize("bad", [lambda d: True, lambda d: d["a"], lambda d: [True]])
def test_a_function_must_return_one_boolean_per_row(bad: Any) -> None:
    rule = FunctionRule(bad, "odd")
    with pytest.raises(SpaceError, match="rule 'odd' must return one boolean per row; got shape"):
        rule.allows(pd.DataFrame({"a": [1.0, 2.0]}))


def test_a_function_is_taken_by_the_index_of_its_rows() -> None:
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0]})
    rule = FunctionRule(lambda d: d["a"].sort_values() > 2.5, "big")
    assert rule.allows(frame).tolist() == [True, False, False]
    masked = np.ma.masked_array([True, True, False], mask=[False, True, False])
    assert FunctionRule(lambda d: masked, "masked").allows(frame).tolist() == [True, False, False]


def test_a_function_may_return_nullable_booleans() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
    found = FunctionRule(lambda d: d["a"] > 1, "big").allows(frame)
    assert found.tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_function_rules_see_rows_as_the_model_does(kind: str) -> None:
    X: Any = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    X = X if kind == "array" else pd.DataFrame(X, columns=list("abc"))
    seen: list[Any] = []

    def rule(rows: Any) -> Any:
        seen.append(rows)
        return np.asarray(rows)[:, 0] >= -1

    region = Space.from_data(X).require(rule).around(X[0] if kind == "array" else X.iloc[0])
    sample(region, 5, np.random.default_rng(0))
    assert {type(rows) for rows in seen} == {type(X)}
    if kind == "frame":
        assert all(rows.dtypes.equals(X.dtypes) for rows in seen)
