"""Steps that data show: the answers have as many decimals as the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data.numbers import shared_step
from bayescfx.errors import SpaceError
from bayescfx.space.sampling import background, draw, sample
from bayescfx.space.space import Space


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def even(low: float, high: float, decimals: int, n: int) -> Any:
    return rng().uniform(low, high, n).round(decimals)


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (even(18, 42, 1, 442), 0.1),
        (even(-5, 5, 2, 10_000), 0.01),
        (even(0, 100_000, 2, 2_000), 0.01),  # no number twice, but many of them
        (even(0, 0.1, 3, 300), 0.001),
        (even(0, 1, 1, 200), 0.1),
        (even(0, 90, 0, 200), 1.0),
        (even(0, 1, 0, 20), 1.0),  # flags
        (even(0, 100, 0, 300) / 2, 0.5),
        (even(0, 100, 0, 300) / 4, 0.25),
        (even(0, 90, 0, 400) * 500, 500.0),
        (even(0, 9, 0, 400) * 5, 1.0),  # ten different numbers may all be multiples by chance
        (np.round(even(0, 30, 0, 300) / 3, 2), 0.01),
        (even(18, 42, 1, 442).astype(np.float32), 0.1),
        (even(-9, 9, 2, 3_000).astype(np.float32), 0.01),
        (pd.array(even(18, 42, 1, 442), dtype="Float64"), 0.1),
        (np.where(rng(1).random(400) < 0.3, np.nan, even(0, 50, 1, 400)), 0.1),
        (even(18, 42, 4, 442), None),
        (even(0, 1, 3, 100), None),  # printed with three decimals
        (even(18, 42, 1, 19), None),
        (rng().normal(size=500), None),
        (np.repeat(rng().normal(size=50), 10), None),
        (rng().uniform(1e6, 2e6, 2_000).astype(np.float32), None),  # all are on some grid
        (rng().uniform(1e14, 2e14, 2_000), None),
        (np.full(100, 0.5), None),
        (np.full(100, np.nan), None),
        (np.append(even(18, 42, 1, 442), 20.05), 0.05),
        (np.append(even(18, 42, 1, 442), 20.00001), None),
    ],
)
def test_a_step_is_seen_where_all_numbers_lie_on_a_decimal_grid(
    column: Any, step: float | None
) -> None:
    assert shared_step(pd.Series(column)) == step


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_rows_have_the_decimals_of_the_data_exactly(dtype: Any, decimals: int) -> None:
    X = rng().uniform(-3, 9, (3_000, 3)).round(decimals).astype(dtype)
    space = Space.from_data(X)
    region = space.around(X[0])
    assert region.step.tolist() == [10.0**-decimals] * 3
    rows: Any = region.rows(np.vstack([sample(region, 500, rng()), background(region)]))
    assert len(rows) > 600
    assert rows.dtype == X.dtype
    assert (rows == np.round(rows.astype(float), decimals).astype(dtype)).all()
    assert region.contains(space.encode(X)).all()
    off = draw(region, 50, rng())
    off[:, 0] += 0.3 * 10.0**-decimals
    assert not region.contains(off).any()
    np.testing.assert_array_equal(region.snap(off), draw(region, 50, rng()))


def test_answers_have_the_decimals_of_the_data() -> None:
    frame = pd.DataFrame(rng().uniform(0, 9, (200, 3)).round(1), columns=list("abc"))
    frame["d"] = rng(1).normal(size=200)
    space = Space.from_data(frame)
    ask = ({"a": 3.3, "b": 0.7, "c": 2.1, "d": 0.5}, space, cfx.increase(by=4))
    answer = cfx.explain(lambda X: X.sum(axis=1), *ask, budget=30, n=3, rng=0)
    for found in answer.counterfactuals:
        row: Any = found.row
        assert row["a":"c"].tolist() == [round(cell, 1) for cell in row["a":"c"]]
    assert answer.reached
    lifted = cfx.explain(lambda X: X.sum(axis=1), *ask, budget=60, method="gradient", rng=0)
    assert lifted.reached  # the paper's recurrence needs continuous features
    assert any(value != round(value, 1) for _, value in lifted.best.changes.values())
    assert lifted.verify(lambda X: X.sum(axis=1))


def test_steps_are_shown_and_can_be_changed() -> None:
    frame = pd.DataFrame({"a": even(18.3, 42, 1, 200), "k": np.arange(200), "c": ["u", "v"] * 100})
    space = Space.from_data(frame)
    assert space.graded == {"a"}
    assert "by 0.1" in str(space)
    assert Space.from_dict(space.to_dict()).graded == {"a"}
    assert Space.from_data(frame, kinds={"a": "real"}).features["a"].step is None
    smooth = space.steps({"a": None})
    assert smooth.features["a"].step is None
    assert smooth.graded == set()
    halves = space.steps({"a": 0.5, "k": 10})
    region = halves.around(frame.iloc[0])
    X = sample(region, 100, rng())
    moved = X[X[:, 0] != region.query[0], 0]
    assert (moved == np.round(2 * moved) / 2).all()
    assert set(X[:, 1]) <= set(range(0, 200, 10))
    assert halves.steps({"k": None}).features["k"].step == 1
    with pytest.raises(SpaceError, match=r"`steps` needs numbers, but 'c' is Categorical"):
        space.steps({"c": 1})
    with pytest.raises(SpaceError, match=r"`step` of Real must be a positive number; got -1"):
        space.steps({"a": -1})
    with pytest.raises(SpaceError, match=r"there is no feature 'b'"):
        space.steps({"b": 1})


def test_movable_features_are_listed_first() -> None:
    space = Space({name: cfx.Real(0, 1) for name in "abcd"}).fix("a", "c")
    lines = str(space.derive("b", lambda rows: rows["d"])).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["d", "a", "b", "c"]


def test_one_hot_columns_of_floats_are_still_grouped() -> None:
    hot = np.eye(3)[rng().integers(0, 3, 60)]
    space = Space.from_data(pd.DataFrame(hot, columns=list("abc"))).group("g", list("abc"))
    assert space.graded == set()
    assert sample(space.around([1.0, 0.0, 0.0]), 5, rng())[:, 0].min() > 0
