"""Closeness to data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import SpaceError
from bayescfx.features import Categorical, Feature, Integer, Real
from bayescfx.space.rules.near import Metric, NearData
from bayescfx.space.sampling import draw, sample
from bayescfx.space.space import Space


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rows(*columns: Any) -> Any:
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(float)


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
    rule = NearData.fit(data, Metric.of(features.values(), scale), quantile=0.8, neighbours=3)
    levels = [False, False, "levels" in kind, False]
    period = [0, 0, 0, 7 if kind == "cyclic" else 0]
    own = np.sort(gower(data, data, scale, levels, period), axis=1)[:, 3]
    assert rule.radius == pytest.approx(np.quantile(own, 0.8, method="higher"))
    query = data[3]
    X = np.repeat(query[None], 200, axis=0)
    X[:, 1] = rng.uniform(-0.5, 1.5, 200)
    X[:, 2] = rng.integers(0, many, 200)
    X[:, 3] = rng.integers(0, 7, 200)
    region: Any = SimpleNamespace(
        query=query,
        free=np.array([1, 2, 3]),
        recomputed=np.zeros(4, dtype=bool),
        low=np.array([0, -0.5, 0, 0]),
        high=np.array([1, 1.5, many, 6]),
    )
    here = rule.seen_from(region)
    kth = np.sort(gower(X, data, scale, levels, period), axis=1)[:, 2]
    np.testing.assert_allclose(rule.metric.kth(X, data, 3), kth)
    for seen in (rule, here):
        np.testing.assert_array_equal(seen.holds(region, X), kth <= rule.radius)
    assert len(here.data) <= len(data)
    assert 0 < here.holds(region, X).sum() < 200


def test_at_least_the_stated_share_of_the_data_is_near_itself() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 3))
    features: dict[Any, Feature] = {name: Real(-5, 5) for name in "abc"}
    for quantile in (0.5, 0.9, 1.0):
        rule = NearData.fit(data, Metric.of(features.values(), np.ones(3)), quantile, 5)
        assert (rule.metric.kth(data, data, 5) <= rule.radius).mean() >= quantile


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
        region = space.near_data(data, neighbours=1).around(whole.iloc[0])
        X = region.complete(np.array([[0.5, 0.5], [0.85, 0.5]]))
        assert np.isnan(X[1, 1])
        assert region.contains(X).tolist() == [True, data is frame]
