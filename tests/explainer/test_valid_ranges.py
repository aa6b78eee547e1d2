"""Valid ranges: what is printed is parsed, typed into the model, and must reach the target."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.potentials import contains
from bayescfx.result.valid_range import range_text, rounded_inwards


def table(seed: int = 0, n: int = 400) -> tuple[pd.DataFrame, Any]:
    """Return features of several kinds, and what depends on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "large": rng.uniform(1e4, 9e4, n),
            "tenths": np.round(rng.normal(20, 4, n), 1),
            "whole": rng.integers(0, 40, n),
            "single": rng.normal(size=n).astype(np.float32),
            "level": rng.choice(["red", "green", "blue", "black"], n),
            "hour": rng.integers(0, 24, n),
        }
    )
    y = 2 * X.real + X.large / 2e4 + X.tenths / 3 + X.whole / 10 + 2 * X.single
    y += 3 * X.level.isin(["red", "black"]) + 2 * np.cos(X.hour / 24 * 2 * np.pi)
    return X, y + rng.normal(scale=0.2, size=n)


def test_a_single_value_at_the_end_of_the_space_is_the_only_one() -> None:
    quality = cfx.Ordinal(["poor", "fair", "good"])
    assert range_text(quality, (2, 2), 2, is_lowest=False, is_highest=True) == "only good"
    assert range_text(quality, (1, 2), 1, is_lowest=False, is_highest=True) == (
        "any allowed value from fair"
    )
    assert range_text(quality, (0, 0), 0, is_lowest=True, is_highest=True) == "any allowed value"


def test_ends_with_few_digits_are_printed_as_they_are() -> None:
    low, high = rounded_inwards(
        4.226800000000001, 4.2836, 4.25
    )  # 4.2836 is stored a little below itself
    assert high == "4.2836"
    assert 4.226800000000001 <= float(low) <= 4.2269
    assert rounded_inwards(-4.2836, -4.2268, -4.25) == ("-4.2836", "-4.2268")
    # The answer's own value stays inside.
    assert rounded_inwards(86.12833517, 171.51, 86.13) == ("86.13", "171.51")


def fit(kind: str, X: pd.DataFrame, y: Any) -> Any:
    """Return a fitted model that compares in single or in double precision."""
    numbers = [name for name in X if name != "level"]
    one_hot = make_column_transformer(
        (OneHotEncoder(), ["level"]), (StandardScaler(), numbers), remainder="drop"
    )
    ordinal = make_column_transformer((OrdinalEncoder(), ["level"]), remainder="passthrough")
    if kind == "forest":
        forest = RandomForestRegressor(n_estimators=8, max_depth=5, random_state=0)
        return make_pipeline(ordinal, forest).fit(X, y)
    if kind == "scaled boosting":
        boosting = GradientBoostingRegressor(n_estimators=10, random_state=0)
        return make_pipeline(one_hot, boosting).fit(X, y)
    if kind == "histograms":
        boosting = HistGradientBoostingRegressor(max_iter=10, random_state=0)
        return make_pipeline(ordinal, boosting).fit(X, y)
    package, name = kind.split(".")
    boosting = getattr(pytest.importorskip(package), name)
    options = {"verbose": -1} if package == "lightgbm" else {}
    return make_pipeline(
        ordinal, boosting(n_estimators=10, max_depth=4, random_state=0, **options)
    ).fit(X, y)


def printed_ranges(answer: cfx.Explanation) -> dict[str, list[str]]:
    """Return the values that the answer prints as the ends of its valid ranges, by feature."""
    line = next(text for text in str(answer).splitlines() if text.startswith("Stays valid"))
    found = {}
    for part in line.removeprefix("Stays valid with ").removesuffix(".").split(", or "):
        name, words = part.split(" ", 1)
        words = re.sub("^(any allowed value( up to| from)?|only) ?", "", words)
        found[name] = [value for value in re.split(" to | or |, ", words) if value]
    return found


def outputs_with(model: Any, row: Any, name: str, values: list[Any]) -> Any:
    """Return the model's outputs for a row with other values of one feature, typed by hand."""
    typed = pd.DataFrame([row] * len(values)).reset_index(drop=True)
    types = {column: type(value) for column, value in row.items()}
    typed = typed.astype({c: t for c, t in types.items() if issubclass(t, np.generic)})
    dtype = typed[name].dtype
    typed[name] = pd.Series(values).astype(dtype)
    return model.predict(typed)


KINDS = [
    "forest",
    pytest.param("scaled boosting", marks=pytest.mark.slow),
    "histograms",
    "lightgbm.LGBMRegressor",
    "xgboost.XGBRegressor",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_printed_end_reaches_the_target_when_typed_into_the_model(kind: str) -> None:
    X, y = table()
    model = fit(kind, X, y)
    space = cfx.Space.from_data(X, kinds={"hour": cfx.Integer(0, 23, cyclic=True)}).max_changes(2)
    explainer = cfx.Explainer(model, space)
    n_ends = 0
    moved = set()
    for i, target in enumerate(("+15%", "-15%", "+20%")):
        answer = explainer.explain(X.iloc[7 * i], target, rng=0, method="exact")
        if not answer.reached or not answer.best.changes:
            continue
        ranges = answer.best.valid_ranges
        assert ranges is not None
        assert list(ranges) == list(answer.best.changes)
        for name, texts in printed_ranges(answer).items():
            values = [X[name].dtype.type(text) if name != "level" else text for text in texts]
            each = ranges[name]
            values += [end for end in (each.low, each.high, *each.values) if end is not None]
            outputs = outputs_with(model, answer.best.row, name, values)
            assert contains(answer.accepted, outputs).all(), (name, texts, outputs)
            n_ends += len(texts)
            moved.add(name)
        assert answer.verify(model)
    assert n_ends >= 3
    assert len(moved) >= 2


@pytest.mark.parametrize("kind", ["forest", "histograms"])
def test_ranges_are_as_large_as_can_be(kind: str) -> None:
    X, y = table(1)
    model = fit(kind, X, y)
    space = cfx.Space.from_data(X).max_changes(2)
    answer = cfx.explain(model, X.iloc[3], space, "+15%", rng=0, method="exact")
    assert answer.best.valid_ranges
    for name, each in answer.best.valid_ranges.items():
        if each.values:
            others = sorted(set(X[name]) - set(each.values))
            outputs = outputs_with(model, answer.best.row, name, others)
            assert not contains(answer.accepted, outputs).any()
            continue
        step = space.features[name].code_step
        outside = [np.nextafter(each.low, -np.inf), np.nextafter(each.high, np.inf)]
        if X[name].dtype == np.float32:
            outside = [np.float32(each.low), np.float32(each.high)]
            outside = [
                np.nextafter(end, np.float32(s)) for end, s in zip(outside, (-9, 9), strict=True)
            ]
        if step:
            outside = [each.low - step, each.high + step]
        kept = [not each.is_lowest, not each.is_highest]
        outputs = outputs_with(model, answer.best.row, name, outside)
        if kind == "forest" and not step and X[name].dtype != np.float32:
            # A forest sees single precision: the next number that it tells apart.
            continue
        assert not contains(answer.accepted, outputs)[kept].any(), name


def test_open_ends_are_named_as_such() -> None:
    X = pd.DataFrame({"a": np.arange(100), "b": np.arange(100.0) % 7})
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, max_depth=1)
    model.fit(X, X.a > 49.5)
    space = cfx.Space.from_data(X)
    answer = cfx.explain(model, X.iloc[10], space, ">= 0.5", rng=0)
    assert answer.best.valid_ranges is not None
    each = answer.best.valid_ranges["a"]
    assert (each.low, each.high, each.is_lowest, each.is_highest) == (50, 99, False, True)
    assert "Stays valid with a any allowed value from 50." in str(answer)
    assert "Stays valid with a any allowed value from 50." in answer.to_markdown()
    assert "Stays valid with a any allowed value from 50." in answer._repr_html_()
    back = cfx.explain(model, X.iloc[90], space.between({"a": (20, 99)}), "<= 0.5", rng=0)
    assert "Stays valid with a any allowed value up to 49." in str(back)
    assert back.best.valid_ranges is not None
    assert back.best.valid_ranges["a"].low == 20.0


def test_ranges_survive_json_and_verification_finds_false_ones() -> None:
    X, y = table(2)
    model = fit("histograms", X, y)
    answer = cfx.explain(
        model, X.iloc[5], cfx.Space.from_data(X).allow("real", "tenths"), "-5%", rng=0, n=2
    )
    again = cfx.Explanation.from_json(answer.to_json())
    assert str(again) == str(answer)
    for one, other in zip(answer.counterfactuals, again.counterfactuals, strict=True):
        assert one.valid_ranges == other.valid_ranges
    ranges = dict(answer.best.valid_ranges or {})
    name = next(name for name, each in ranges.items() if not each.values)
    low = answer.query[name]
    ranges[name] = replace(ranges[name], low=min(low, ranges[name].low), high=max(low, 99.0))
    best = replace(answer.best, valid_ranges=ranges)
    wrong = replace(answer, counterfactuals=(best, *answer.counterfactuals[1:]))
    assert any(repr(name) in text for text in wrong.violations(model))


def test_classifiers_and_one_hot_groups_have_ranges() -> None:
    X, y = table(3)
    wide = pd.get_dummies(X.drop(columns=["hour"]), columns=["level"], dtype=int)
    model = RandomForestClassifier(n_estimators=10, max_depth=6, random_state=0)
    model.fit(wide, y > np.median(y))
    score = cfx.probability(model, True)
    space = cfx.Space.from_data(wide)
    low = int(np.argmin(model.predict_proba(wide)[:, 1]))
    answer = cfx.explain(score, wide.iloc[low], space, cfx.at_least(0.5), rng=0)
    assert answer.best.valid_ranges
    for name, texts in printed_ranges(answer).items():
        for text in texts:
            row = pd.DataFrame([answer.best.row])
            row[name] = float(text)
            assert model.predict_proba(row[wide.columns])[0, 1] >= 0.5


def test_one_sided_targets_leave_room_on_their_open_side() -> None:
    X = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) % 7})
    model = GradientBoostingRegressor(random_state=0).fit(X, X.a)
    space = cfx.Space.from_data(X)
    answer = cfx.explain(model, X.iloc[10], space, ">= 30", rng=0)
    assert answer.best.valid_ranges is not None
    (valid,) = answer.best.valid_ranges.values()
    assert valid.is_highest
    assert valid.high == 59.0


def test_models_that_cant_be_read_have_no_ranges() -> None:
    X, _ = table(4)
    X = X[["real", "tenths"]]
    space = cfx.Space.from_data(X)
    opaque = cfx.explain(lambda rows: rows["real"], X.iloc[0], space, cfx.increase(by=0.1), rng=0)
    assert opaque.best.valid_ranges is None
    assert "Stays valid" not in str(opaque)
