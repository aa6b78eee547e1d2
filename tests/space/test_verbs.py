"""Verbs described as data: from the texts of a command line, TOML or JSON to a space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.errors import BayesCFXError, SettingsError
from bayescfx.space.parameters import Parameter
from bayescfx.space.verbs import VERBS, apply_verbs, intersect_verbs, load_functions, read_verbs

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, 50),
        "bmi": RNG.uniform(18, 40, 50),
        "job": RNG.choice(["Clerk", "cook", "a|b"], 50),
        "day": pd.Timestamp("2016-01-01") + pd.to_timedelta(RNG.integers(0, 90, 50), "D"),
        "red": [0, 1] * 25,
        "blue": [1, 0] * 25,
    }
)
SPACE = cfx.Space.from_data(DATA)


@pytest.mark.parametrize(
    ("verb", "texts", "value", "same"),
    [
        ("fix", ["age, bmi", "job"], ["age", "bmi", "job"], SPACE.fix("age", "bmi", "job")),
        ("allow", ["age"], ["age"], SPACE.allow("age")),
        ("only_up", ["age"], ["age"], SPACE.only_up("age")),
        ("only_down", ["day"], ["day"], SPACE.only_down("day")),
        ("between", ["bmi=20:", "bmi=:30.5"], {"bmi": (None, 30.5)}, None),
        ("between", ["job=clerk|a|b"], None, None),
        ("between", ["job=a|b"], {"job": ["a|b"]}, SPACE.between({"job": ["a|b"]})),
        ("between", ["job=clerk|cook"], {"job": ["Clerk", "cook"]}, None),
        (
            "between",
            ["day=2016-01-03 10:00..2016-02-01"],
            {"day": (pd.Timestamp("2016-01-03 10:00"), pd.Timestamp("2016-02-01"))},
            None,
        ),
        ("move", ["age=-1:2.5", "day=-2D:"], {"age": (-1, 2.5), "day": ("-2D", None)}, None),
        ("require", ["age <= bmi"], ["age <= bmi"], SPACE.require("age <= bmi")),
        ("steps", ["bmi=0.5"], {"bmi": 0.5}, SPACE.steps({"bmi": 0.5})),
        ("together", ["age,bmi"], [["age", "bmi"]], SPACE.together("age", "bmi")),
        ("max_changes", ["3"], 3, SPACE.max_changes(3)),
        ("near_data", [], True, SPACE.near_data(DATA)),
        ("groups", ["colour=red, blue"], {"colour": ["red", "blue"]}, None),
        ("cost", ["per_change=0.5"], {"per_change": 0.5}, SPACE.cost(per_change=0.5)),
        (
            "cost",
            ["norm=2", "per_feature=age=5", "per_feature=bmi=2"],
            {"norm": 2, "per_feature": {"age": 5, "bmi": 2}},
            SPACE.cost(norm=2, per_feature={"age": 5, "bmi": 2}),
        ),
    ],
)
def test_a_verb_is_read_from_the_command_line(
    verb: str, texts: list[str], value: Any, same: Any
) -> None:
    described = VERBS[verb]
    given = described.parameter.from_texts(described.option, texts)
    described.parameter.check(verb, given)
    if value is None:
        with pytest.raises(cfx.SpaceError, match="'job' has no level 'a'"):
            described.read(SPACE, given)
        return
    assert described.read(SPACE, given) == value
    space = described.apply(SPACE, given, DATA)
    assert str(space) == str(apply_verbs(SPACE, {verb: value}, DATA))
    if same is not None:
        assert str(space) == str(same)


def test_verbs_are_applied_in_their_order() -> None:
    space = apply_verbs(
        SPACE,
        {
            "cost": {"weight": 0.2, "per_feature": {"colour": "3"}},
            "fix": ["colour"],
            "near_data": {"quantile": 0.9},
            "groups": {"colour": ["red", "blue"]},
        },
        DATA,
    )
    assert space.price.per_feature == {"colour": 3}
    assert "near_data(quantile=0.9)" in str(space)
    assert next(iter(VERBS)) == "groups"


@pytest.mark.parametrize(
    ("settings", "message", "parameter"),
    [
        ({"fixx": []}, r"a space has no verb 'fixx'\. Did you mean 'fix'\?", None),
        ({"fix": ["agee"]}, "there is no feature 'agee'", "fix"),
        ({"between": {"bmi": "a:b"}}, "`between` for 'bmi' must be numbers; got 'a'", "between"),
        ({"between": {"bmi": "3"}}, "limits of 'bmi' must be like low:high; got '3'", "between"),
        ({"between": {"bmi": 3}}, "`between` for 'bmi' must be a pair", "between"),
        ({"between": {"job": 3}}, "'job' must be a list of levels; got 3", "between"),
        ({"move": {"job": "1:2"}}, "`move` needs an order, but 'job' is Categorical", "order"),
        (
            {"cost": {"heft": 1}},
            "space.cost must have only per_change, per_feature, norm, weight",
            "cost",
        ),
        ({"near_data": 3}, "space.near_data must be true or a table; got 3", "near_data"),
        ({"derive": {"bmi": "math:pi"}}, "`function` must be a function of rows", "function"),
    ],
)
def test_an_error_names_the_verb(
    settings: dict[str, Any], message: str, parameter: str | None
) -> None:
    with pytest.raises(BayesCFXError, match=message) as caught:
        apply_verbs(SPACE, settings, DATA)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize(
    ("verb", "value", "message"),
    [
        ("fix", "age", "it must be a list of names; got 'age'"),
        ("fix", [3], r"it must be a list of names; got \[3\]"),
        ("together", [["a"], "b"], "it must be a list of lists of names"),
        ("together", [[3]], "it must be a list of lists of names"),
        ("max_changes", True, "it must be a whole number; got True"),
        ("max_changes", 2.0, "it must be a whole number; got 2.0"),
        ("between", [1, 2], r"it must be a table of pairs \[low, high\] or lists of levels"),
        ("near_data", {"quantile": "x"}, "it.quantile must be a number; got 'x'"),
        ("cost", True, "it must be a table; got True"),
    ],
)
def test_a_value_of_another_kind_is_refused(verb: str, value: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        VERBS[verb].parameter.check("it", value)


@pytest.mark.parametrize(
    ("verb", "texts", "message"),
    [
        ("max_changes", ["x"], "--max-changes must be a whole number; got 'x'"),
        ("max_changes", [], "--max-changes must be a whole number; got ''"),
        ("between", ["bmi"], "--between must be like name=value; got 'bmi'"),
    ],
)
def test_a_text_of_another_kind_is_refused(verb: str, texts: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        VERBS[verb].parameter.from_texts(VERBS[verb].option, texts)


def test_two_settings_together_allow_what_both_allow() -> None:
    one = {
        "fix": ["age"],
        "allow": ["age", "bmi", "job"],
        "between": {"bmi": "20:30", "job": ["Clerk", "cook"], "day": "2016-01-05..2016-02-01"},
        "move": {"age": "-5:", "day": "-3D:3"},
        "max_changes": 4,
        "near_data": {"quantile": 0.99},
        "steps": {"bmi": 0.5},
        "together": [["age", "bmi"]],
        "cost": {"weight": 0.2},
    }
    other = {
        "fix": ["age", "red"],
        "allow": ["job", "age"],
        "between": {"bmi": [25, None], "job": ["cook"], "day": ["2016-01-09", None]},
        "move": {"age": [None, 2], "day": [-2, 2]},
        "max_changes": 2,
        "near_data": True,
        "require": ["age <= bmi"],
        "cost": {"per_feature": {"age": 2}},
    }
    both = intersect_verbs(SPACE, one, other)
    assert both == {
        "fix": ["age", "red"],
        "allow": ["job", "age"],
        "between": {
            "bmi": [25, 30],
            "job": ["cook"],
            "day": [pd.Timestamp("2016-01-09"), pd.Timestamp("2016-02-01")],
        },
        "move": {"age": [-5, 2], "day": [-2, 2]},
        "max_changes": 2,
        "near_data": {"quantile": 0.95},
        "steps": {"bmi": 0.5},
        "together": [["age", "bmi"]],
        "require": ["age <= bmi"],
        "cost": {"weight": 0.2, "per_feature": {"age": 2}},
    }
    query = DATA[DATA["job"] == "cook"].iloc[0].copy()
    query["bmi"] = 26.0
    query["day"] = pd.Timestamp("2016-01-10")
    in_turn = apply_verbs(apply_verbs(SPACE, one, DATA), other, DATA).around(query)
    at_once = apply_verbs(SPACE, both, DATA).around(query)
    np.testing.assert_array_equal(in_turn.low, at_once.low)
    np.testing.assert_array_equal(in_turn.high, at_once.high)


def test_every_item_of_a_value_can_be_taken_back() -> None:
    def relaxed(verb: str, value: Any) -> list[Any]:
        return list(VERBS[verb].parameter.relaxations(value))

    assert relaxed("fix", ["a", "b"]) == [("a", ["b"]), ("b", ["a"])]
    assert relaxed("fix", ["a"]) == [("a", None)]
    assert relaxed("allow", ["a", "b"]) == [("a, b", None)]
    assert relaxed("together", [["a", "b"]]) == [("a, b", None)]
    assert relaxed("between", {"a": [1, 2], "b": [3, 4]})[0] == ("a", {"b": [3, 4]})
    assert relaxed("max_changes", 2) == [("2", 3)]
    assert relaxed("near_data", True) == [("", None)]


def test_a_settings_file_and_the_command_line_add_up() -> None:
    def both(verb: str, old: Any, new: Any) -> Any:
        return VERBS[verb].parameter.extend(old, new)

    assert both("fix", ["a"], ["b"]) == ["a", "b"]
    assert both("fix", None, ["b"]) == ["b"]
    assert both("between", {"a": 1, "b": 2}, {"b": 3}) == {"a": 1, "b": 3}
    assert both("max_changes", 3, 2) == 2
    old = {"norm": 2, "per_change": 1, "per_feature": {"a": 2, "b": 3}}
    new = {"per_change": 0.0, "per_feature": {"b": 5}}
    assert both("cost", old, new) == {
        "norm": 2,
        "per_change": 0.0,
        "per_feature": {"a": 2, "b": 5},
    }


def test_functions_are_loaded_only_for_verbs_that_run_code() -> None:
    settings = {"derive": {"bmi": "some:name", "age": len}, "fix": ["age"]}
    assert load_functions(settings, str.upper) == {
        "derive": {"bmi": "SOME:NAME", "age": len},
        "fix": ["age"],
    }


def test_every_verb_describes_itself() -> None:
    for name, verb in VERBS.items():
        assert verb.name == name
        assert verb.help
        assert isinstance(verb.parameter, Parameter)
        assert verb.parameter.words
        assert verb.parameter.schema()
        assert repr(verb) == f"Verb({name!r}, {verb.parameter.kind})"
        assert verb.option.startswith("--")
        assert hasattr(cfx.Space, verb.python.partition("(…")[0])
        assert verb.python.endswith(")")
    assert read_verbs(SPACE, {}) == {}


@pytest.mark.parametrize("text", ["per_change", "per_change=", "premium=1", "=3"])
def test_an_option_with_parameters_names_them(text: str) -> None:
    with pytest.raises(cfx.SettingsError, match="--cost must be like name=value with per_change"):
        VERBS["cost"].parameter.from_texts("--cost", [text])
