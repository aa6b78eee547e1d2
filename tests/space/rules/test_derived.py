"""Columns that are recomputed from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import SpaceError, SpaceWarning
from bayescfx.space.sampling import draw, sample
from bayescfx.space.space import Space


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(a: Any, b: Any) -> bool:
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


def body() -> tuple[pd.DataFrame, Space]:
    frame = pd.DataFrame(
        {"weight": rng(1).uniform(50, 100, 40), "height": rng(2).uniform(1.5, 2, 40)}
    )
    frame["bmi"] = frame["weight"] / frame["height"] ** 2
    frame["band"] = (frame["bmi"] // 5).astype(int)
    space = Space.from_data(frame).derive("bmi", lambda d: d["weight"] / d["height"] ** 2)
    return frame, space.derive("band", lambda d: d["bmi"] // 5)


def test_derived_columns_follow_and_are_no_changes_of_their_own() -> None:
    frame, space = body()
    region = space.max_changes(1).around(frame.iloc[0])
    X = sample(region, 30, rng())
    rows = region.rows(X)
    assert isinstance(rows, pd.DataFrame)
    np.testing.assert_allclose(rows["bmi"], rows["weight"] / rows["height"] ** 2)
    np.testing.assert_array_equal(rows["band"], rows["bmi"] // 5)
    assert region.free.tolist() == [0, 1]
    assert not region.changes(X)[:, 2:].any()
    stale = X.copy()
    stale[:, 2] += 1
    assert not region.contains(stale).any()
    assert same(region.complete(stale), X)


def test_the_query_s_own_derived_cell_stays_until_its_inputs_move() -> None:
    frame, space = body()
    query = frame.iloc[0].copy()
    query["bmi"] = round(query["bmi"], 1)  # rounded in the data, but not by the function
    with pytest.warns(SpaceWarning, match=r"derive\('bmi'\) gives 28.4227, but the query has 28.4"):
        region = space.around(query)
    assert same(region.complete(region.query[None, :]), region.query[None, :])
    assert region.contains(region.query[None, :])[0]


def test_limits_and_rules_of_a_derived_column_bind() -> None:
    frame, space = body()
    inside = frame[frame["bmi"].between(20, 24)].iloc[0]
    region = space.between({"bmi": (20, 25)}).require("bmi + height <= 26.5").around(inside)
    rows = region.rows(sample(region, 50, rng()))
    assert isinstance(rows, pd.DataFrame)
    assert rows["bmi"].between(20, 25).all()
    assert (rows["bmi"] + rows["height"] <= 26.5).all()


def test_a_derived_column_that_does_not_fit_is_an_error() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]})
    space = Space.from_data(frame)
    bad = space.derive("c", lambda d: np.where(d["a"] > 1.5, "z", "x"))
    with pytest.raises(SpaceError, match="derived column 'c' must be one of its levels; got 'z'"):
        sample(bad.around(frame.iloc[0]), 10, rng())
    short = space.derive("c", lambda d: "x")
    with pytest.raises(SpaceError, match=r"derive\('c'\) must return one value per row"):
        sample(short.around(frame.iloc[0]), 10, rng())


def test_a_function_is_asked_once_about_each_row() -> None:
    frame, _ = body()
    asked: list[pd.DataFrame] = []

    def bmi(rows: pd.DataFrame) -> Any:
        asked.append(rows.copy())
        rows["weight"] = 0.0  # this must not change the rows of others
        return asked[-1]["weight"] / asked[-1]["height"] ** 2

    def light(rows: pd.DataFrame) -> Any:
        tested.append(rows.copy())
        return rows["bmi"] < 30

    tested: list[pd.DataFrame] = []
    space = Space.from_data(frame).derive("bmi", bmi).require(light)
    region = space.around(frame.iloc[0])
    asked.clear()
    X = region.complete(draw(region, 50, rng()))
    assert [len(rows) for rows in asked] == [50]
    inside = region.contains(np.vstack([X, X[::-1]]))
    assert inside.tolist() == [*inside[:50], *inside[:50][::-1]]
    assert same(inside[:50], X[:, 2] < 30)
    assert region.contains(X[10:20]).tolist() == inside[10:20].tolist()
    assert [len(rows) for rows in asked] == [50]
    assert [len(rows) for rows in tested] == [50]
    assert not pd.concat(asked).duplicated().any()


def test_derived_columns_may_come_in_any_order() -> None:
    frame, _ = body()
    space = Space.from_data(frame).derive("band", lambda d: d["bmi"] // 5)
    region = space.derive("bmi", lambda d: d["weight"] / d["height"] ** 2).around(frame.iloc[0])
    X = sample(region, 30, rng())
    ordered = body()[1].around(frame.iloc[0])
    assert same(X, ordered.complete(X))
    assert ordered.contains(X).all()


def test_derived_columns_that_never_settle_are_an_error() -> None:
    frame, _ = body()
    space = Space.from_data(frame).derive("band", lambda d: d["bmi"] + d["weight"])
    with pytest.warns(SpaceWarning, match="derive"):
        region = space.derive("bmi", lambda d: d["band"] + 1).around(frame.iloc[0])
    with pytest.raises(SpaceError, match=r"derive\('band'\), derive\('bmi'\) depend on each other"):
        sample(region, 5, rng())
