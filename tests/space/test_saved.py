"""A space in words and in files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import SpaceError
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.space.test_space import people


def test_a_space_prints_what_was_inferred_and_said() -> None:
    frame = people()
    frame["when"] = pd.Timestamp("2016-01-01") + pd.to_timedelta(np.arange(40), "D")
    space = (
        Space.from_data(frame)
        .fix("sex")
        .only_up("age")
        .between({"bmi": (18, 32), "smokes": [False], "when": ("2016-01-05", None)})
        .move({"grade": (-1, 2)})
        .require("age >= bmi")
        .require(lambda d: d.age > 0, "age is positive")
        .together("age", "bmi")
        .near_data(frame)
        .max_changes(2)
        .cost(norm=2, per_feature={"age": 5})
    )
    text = str(space)
    for part in (
        "Space of 6 features",
        "only up",
        "between 18 and 32",
        "only False",
        "at least 2016-01-05",
        "2016-01-01 … 2016-02-09 by D",
        "moves -1 … +2",
        "'lo' < 'mid' < 'hi'",
        "rule: age >= bmi",
        "rule: age is positive",
        "together: age, bmi",
        "rule: near_data(quantile=0.95)",
        "at most 2 changes",
        "cost: l2 distance (age × 5) + 0.2 per change",
    ):
        assert part in text, part
    assert repr(space) == "Space(age, bmi, sex, smokes, grade, when)"
    assert "+ 0.2 per change, not minimised" in str(space.cost(weight=0))
    assert "(age × 5), weight 0.3" in str(space.cost(weight=0.3, per_change=0))


def test_a_wide_space_prints_its_first_features() -> None:
    assert "… and 40 more" in str(Space.from_data(np.zeros((2, 100))))


def full_space() -> tuple[pd.DataFrame, Space]:
    frame = people()
    frame["when"] = pd.Timestamp("2016-01-01", tz="UTC") + pd.to_timedelta(np.arange(40), "D")
    frame[7] = pd.array([1, None] * 20, dtype="Int64")
    frame["red"] = np.tile([1, 0], 20)
    frame["blue"] = np.tile([0, 1], 20)
    space = (
        Space.from_data(frame)
        .group("colour", ["red", "blue"])
        .fix("sex", 7)
        .only_up("age")
        .between({"bmi": (18, None), "smokes": [False], "when": ("2015-12-25", "2016-02-01")})
        .move({"grade": (-1, 2)})
        .require("age >= bmi", "old enough")
        .together("age", "bmi")
        .max_changes(3)
        .cost(norm=2, per_feature={"age": 5}, per_change=0.7)
    )
    return frame, space


def test_a_space_survives_json() -> None:
    frame, space = full_space()
    again = Space.from_dict(json.loads(json.dumps(space.to_dict(), allow_nan=False)))
    assert str(again) == str(space)
    assert again.unrestored == ()
    before, after = space.around(frame.iloc[0]), again.around(frame.iloc[0])
    X = sample(before, 50, np.random.default_rng(0))
    Y = np.concatenate([X, X + 0.5])
    np.testing.assert_array_equal(after.contains(Y), before.contains(Y))
    np.testing.assert_array_equal(after.cost(X), before.cost(X))
    pd.testing.assert_frame_equal(pd.DataFrame(after.rows(X)), pd.DataFrame(before.rows(X)))


def test_what_json_cannot_hold_is_listed() -> None:
    frame = people()
    space = (
        Space.from_data(frame)
        .derive("bmi", lambda d: d.age / 2.0)
        .require(lambda d: d.age > 0, "positive")
        .near_data(frame)
    )
    again = Space.from_dict(space.to_dict())
    assert again.unrestored == ("derive('bmi')", "positive", "near_data(quantile=0.95)")
    assert "not restored: positive" in str(again)
    assert Space.from_dict(again.to_dict()).unrestored == again.unrestored
    with pytest.raises(SpaceError, match="`format` of a saved space must be 2; got 3"):
        Space.from_dict({**space.to_dict(), "format": 3})


def test_spaces_and_regions_can_be_sent_to_other_processes() -> None:
    frame, space = full_space()
    region = space.around(frame.iloc[0])
    X = sample(region, 10, np.random.default_rng(0))
    again = pickle.loads(pickle.dumps(region))
    np.testing.assert_array_equal(sample(again, 10, np.random.default_rng(0)), X)
    assert str(pickle.loads(pickle.dumps(space))) == str(space)


# ── files of earlier versions ──


# written by version 0.1.0: one list per verb, "categories" instead of "levels"
def test_a_rule_that_nobody_knows_is_listed() -> None:
    plain = Space.from_data(people()).fix("age").to_dict()
    plain["rules"] = [{"rule": "Unheard", "names": ["age"]}, *plain["rules"]]  # type: ignore[misc]  # a list
    again = Space.from_dict(plain)
    assert again.unrestored == ("Unheard",)
    assert "not restored: Unheard" in str(again)
