"""Closeness to data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Categorical, Real
from bayescfx.errors import SpaceError
from bayescfx.space.plausibility import Plausibility
from bayescfx.space.rules.near import NearData
from bayescfx.space.sampling import draw, sample
from bayescfx.space.space import Space
from tests.oracles.plausibility import Counted


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rows(*columns: Any) -> Any:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(float)


def mixed(n: int = 80, seed: int = 1) -> tuple[Any, list[bool]]:
    """Return rows of which some columns depend on each other, with gaps and missing cells."""
    r = rng(seed)
    a, level = r.normal(size=n), r.integers(0, 4, n)
    b = a + 0.1 * r.normal(size=n)
    c = np.where(level < 2, r.uniform(0, 1, n), r.uniform(8, 9, n))
    b[::9] = np.nan
    return rows(a, b, c, level, r.integers(0, 7, n)), [False, False, False, True, False]


def learnt(data: Any, levels: list[bool]) -> Plausibility:
    kinds = [Categorical(range(9)) if level else Real(0, 1) for level in levels]
    return Plausibility.fit(data, kinds)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_what_counting_says(seed: int) -> None:
    data, levels = mixed(seed=seed)
    usual, counted = learnt(data, levels), Counted(data, levels)
    assert {(p.i, p.j) for p in usual.pairs} == {(i, j) for i, j, _ in counted.tree}
    np.testing.assert_allclose(usual.scores, np.sort(counted.own), atol=1e-9)
    X = data[rng(9).integers(len(data), size=(60, 5)), np.arange(5)]
    X[:20, 2] = rng(3).uniform(-3, 12, 20)  # in the gap, and beyond
    X[20:30, 3] = 5.0  # a level that no row has
    expected = [counted.score(x) for x in X]
    np.testing.assert_allclose(usual.score(X), expected, atol=1e-9)
    below = [np.mean(np.array(counted.own) < score - 1e-9) for score in expected]
    np.testing.assert_allclose(usual.share(X), below, atol=0.02)


def test_real_rows_pass_and_shuffled_ones_are_refused() -> None:
    data, levels = mixed(4000)
    usual = learnt(data[:3000], levels)
    least = np.quantile(usual.scores, 0.05)
    assert (usual.score(data[3000:]) >= least).mean() > 0.93
    shuffled = np.column_stack([rng(j).permutation(data[3000:, j]) for j in range(5)])
    assert (usual.score(shuffled) < least).mean() > 0.8


def test_at_least_the_stated_share_of_the_data_is_near_itself() -> None:
    data, _ = mixed(400)
    frame = pd.DataFrame(data, columns=list("abcde")).astype({"d": int, "e": int})
    for quantile in (0.5, 0.9, 1.0):
        space = Space.from_data(frame, {"d": "categorical"}).near_data(frame, quantile)
        (rule,) = space.rules
        assert isinstance(rule, NearData)
        assert (rule.plausibility.scores >= rule.least).mean() >= quantile


def test_what_is_as_usual_as_the_query_is_usual_enough() -> None:
    t = rng().uniform(0, 10, 500)
    frame = pd.DataFrame({"a": t, "b": t + rng(1).normal(0, 0.1, 500), "c": rng(2).random(500)})
    odd = {"a": 1.0, "b": 9.0, "c": 0.5}
    region = Space.from_data(frame).fix("a", "b").near_data(frame).around(odd)
    assert region.contains(np.array([[1.0, 9.0, 0.7]])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantile": 0.0}, r"`quantile` must be a number in \(0, 1\]; got 0.0"),
        ({"quantile": 1.5}, "got 1.5"),
    ],
)
def test_impossible_closeness_is_refused(arguments: Any, message: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(SpaceError, match=message):
        Space.from_data(frame).near_data(frame, **arguments)


def test_rows_stay_near_the_data() -> None:
    t = rng().uniform(0, 10, 3000)
    frame = pd.DataFrame({"a": t, "b": 2 * t + rng(1).normal(0, 0.1, 3000)})
    space = Space.from_data(frame).near_data(frame)
    region = space.around(frame.iloc[0])
    assert region.contains(draw(region, 1000, rng())).sum() < 100
    X = sample(region, 200, rng())
    assert len(X) == 200
    assert np.abs(X[:, 1] - 2 * X[:, 0]).max() < 1
    assert np.ptp(X[:, 0]) > 8


def test_closeness_to_several_tables_combines() -> None:
    low = pd.DataFrame({"a": rng().uniform(0, 6, 500), "b": rng(1).uniform(0, 10, 500)})
    high = pd.DataFrame({"a": rng().uniform(4, 10, 500), "b": rng(1).uniform(0, 10, 500)})
    space = Space.from_data(pd.concat([low, high], ignore_index=True))
    region = space.near_data(low, 0.9).near_data(high, 0.8).around({"a": 5.0, "b": 5.0})
    labels = [rule.words.label for rule in region.rules]
    assert labels == ["near_data(quantile=0.9)", "near_data(quantile=0.8)"]
    X = sample(region, 100, rng())
    assert ((X[:, 0] > 3) & (X[:, 0] < 7)).all()


def test_rows_stay_near_the_data_of_a_one_hot_group() -> None:
    t = rng().uniform(0, 1, 300)
    frame = pd.DataFrame({"red": (t < 0.5).astype(int), "blue": (t >= 0.5).astype(int), "t": t})
    space = Space.from_data(frame).group("colour", ["red", "blue"]).near_data(frame)
    region = space.around(frame.iloc[0])
    X = sample(region, 50, rng())
    # what is blue lies above one half, or next to it
    assert (np.where(X[:, 0] == 1, 1, -1) * (X[:, 1] - 0.5) > -0.25).all()


def test_a_derived_cell_that_is_missing_is_compared_as_one() -> None:
    frame = pd.DataFrame({"a": rng(0).uniform(size=60), "b": rng(1).uniform(size=60)})
    frame["b"] = frame["a"].where(frame["a"] < 0.8)
    whole = frame.dropna()
    for data in (frame, whole):
        space = Space.from_data(frame).derive("b", lambda d: d["a"].where(d["a"] < 0.8))
        region = space.near_data(data).around(whole.iloc[0])
        X = region.complete(np.array([[0.5, 0.5], [0.85, 0.5]]))
        assert np.isnan(X[1, 1])
        assert region.contains(X).tolist() == [True, data is frame]
