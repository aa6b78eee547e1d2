"""Coordinates of the surrogate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate import coordinates as coordinates_module
from bayescfx.surrogate.coordinates import Coordinates

SKEWED = np.random.default_rng(0).lognormal(3.0, 1.0, size=400)


def region() -> Region:
    """Return a region with a skewed and an even feature, a circle, and levels; one is fixed."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            "skewed": SKEWED,
            "even": np.linspace(0.0, 10.0, 400),
            "hour": rng.integers(0, 24, 400),
            "rank": pd.Categorical(rng.choice(["low", "mid"], 400), ["low", "mid"], ordered=True),
            "job": rng.choice(["cook", "clerk", "nurse"], 400),
            "fixed": rng.normal(size=400),
        }
    )
    kinds = {"hour": Integer(0, 23, cyclic=True)}
    return Space.from_data(data, kinds=kinds).fix("fixed").around(data.iloc[7])


REGION = region()
COORDINATES = Coordinates(REGION, REGION.query[None])
ROWS = sample(REGION, 50, np.random.default_rng(2))


def test_every_free_feature_has_coordinates_and_a_fixed_one_has_none() -> None:
    assert COORDINATES.linear.tolist() == [0, 1, 3]
    assert COORDINATES.cyclic.tolist() == [2]
    assert COORDINATES.categorical.tolist() == [4]
    assert COORDINATES.width == COORDINATES(ROWS).shape[1] == 3 + 2 + 1
    assert COORDINATES.categorical_columns == (5,)


def test_a_fixed_feature_that_varies_among_known_rows_has_coordinates_too() -> None:
    known = np.vstack([REGION.query, REGION.query])
    known[1, 5] += 2.0
    wider = Coordinates(REGION, known)
    assert 5 in wider.linear
    assert np.ptp(wider(known)[:, list(wider.linear).index(5)]) == 1.0


def test_coordinates_of_a_line_rise_from_zero_to_one() -> None:
    for row, j in enumerate(COORDINATES.linear):
        ends = np.repeat(REGION.query[None], 201, axis=0)
        ends[:, j] = np.linspace(REGION.low[j], REGION.high[j], 201)
        z = COORDINATES(ends)[:, row]
        assert z[0] == pytest.approx(0.0, abs=1e-12)
        assert z[-1] == pytest.approx(1.0, abs=1e-12)
        assert (np.diff(z) > 0).all()


def test_half_of_a_coordinate_is_the_rank_among_the_data() -> None:
    rows = np.repeat(REGION.query[None], 3, axis=0)
    share = np.array([0.25, 0.5, 0.75])
    rows[:, 0] = np.quantile(SKEWED, share)
    straight = (rows[:, 0] - REGION.low[0]) / (REGION.high[0] - REGION.low[0])
    assert COORDINATES(rows)[:, 0] == pytest.approx(0.5 * share + 0.5 * straight, abs=0.02)


def test_few_data_make_a_straight_line() -> None:
    space = Space({"a": Real(0.0, 4.0), "b": Ordinal(["x", "y", "z"])})
    around = space.around({"a": 1.0, "b": "x"})
    z = Coordinates(around, around.query[None])(np.array([[1.0, 0.0], [3.0, 2.0]]))
    assert z == pytest.approx(np.array([[0.25, 0.0], [0.75, 1.0]]))


def test_a_repeated_value_has_the_middle_of_its_ranks() -> None:
    data = pd.DataFrame({"a": np.concatenate([np.zeros(100), np.full(300, 1.0), [2.0, 4.0]])})
    around = Space.from_data(data, kinds={"a": "real"}).around({"a": 0.5})
    coordinates = Coordinates(around, around.query[None])
    z = coordinates(np.array([[0.0], [1.0], [4.0]]))[:, 0]
    middle = 0.5 * (0.25 + 1.0)
    assert z == pytest.approx([0.0, 0.5 * middle + 0.5 * 0.25, 1.0], abs=0.05)


def test_hours_lie_on_a_circle() -> None:
    rows = np.repeat(REGION.query[None], 3, axis=0)
    rows[:, 2] = [23.0, 0.0, 12.0]
    z = COORDINATES(rows)
    gaps = COORDINATES.distances(z, z[1:2])[:, 0]
    assert gaps == pytest.approx([np.sin(np.pi / 24), 0.0, 1.0], abs=1e-6)


def test_unequal_levels_are_one_apart() -> None:
    rows = np.repeat(REGION.query[None], 3, axis=0)
    rows[:, 4] = [0.0, 1.0, 2.0]
    z = COORDINATES(rows)
    assert COORDINATES.distances(z, z) == pytest.approx(1.0 - np.eye(3), abs=1e-6)


def test_distances_are_euclidean() -> None:
    z = COORDINATES(ROWS)
    ordered = z[:, :-1]
    squares = ((ordered[:, None] - ordered) ** 2).sum(axis=2) + (z[:, None, -1] != z[:, -1])
    assert COORDINATES.distances(z, z) == pytest.approx(np.sqrt(squares), abs=1e-6)


def test_the_pull_back_is_the_derivative_by_each_code() -> None:
    weights = np.random.default_rng(3).normal(size=COORDINATES.width)
    # away from the kinks between cells
    rows = ROWS.copy()
    cell = (REGION.high - REGION.low) / 1024
    for j in COORDINATES.linear:
        rows[:, j] = (
            REGION.low[j] + (np.floor((rows[:, j] - REGION.low[j]) / cell[j]) + 0.5) * cell[j]
        )
    (pulled,) = COORDINATES.pull_back(rows, np.tile(weights, (len(rows), 1)))
    for j in range(rows.shape[1]):
        step = np.zeros(rows.shape[1])
        step[j] = 0.25 * cell[j]
        if j in COORDINATES.linear and step[j] > 0:
            rise = (COORDINATES(rows + step) - COORDINATES(rows - step)) @ weights
            assert pulled[:, j] == pytest.approx(rise / (2 * step[j]), rel=1e-6, abs=1e-9)
        else:
            assert (pulled[:, j] == 0.0).all()


def test_missing_values_have_no_coordinate() -> None:
    data = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [np.nan, 1.0, 2.0], "c": list("xyx")})
    around = Space.from_data(data).fix("b").around(data.iloc[0])
    coordinates = Coordinates(around, around.encode(data.iloc[:1]))
    assert coordinates.linear.tolist() == [0]
    assert np.isfinite(coordinates(around.query[None])).all()


def rows_of(space: Space, query: dict[str, object]) -> Array:
    around = space.around(query)
    return Coordinates(around, around.query[None])(sample(around, 20, np.random.default_rng(0)))


def test_all_kinds_alone_have_coordinates() -> None:
    levels = Space({"a": Categorical(list("xyz")), "b": Categorical(list("uv"))})
    assert rows_of(levels, {"a": "x", "b": "u"}).shape[1] == 2
    circle = Space({"h": Integer(0, 23, cyclic=True)})
    assert rows_of(circle, {"h": 3}).shape[1] == 2
    assert rows_of(Space({"a": Real(0, 1)}), {"a": 0.5}).shape[1] == 1


def test_a_feature_is_tabulated_once_per_region(monkeypatch: pytest.MonkeyPatch) -> None:
    around = region()
    calls: list[float] = []

    def tabulated(data: Array, low: float, high: float) -> Array:
        calls.append(low)
        return inner(data, low, high)

    inner = coordinates_module._tabulated
    monkeypatch.setattr(coordinates_module, "_tabulated", tabulated)
    first = Coordinates(around, around.query[None])
    again = Coordinates(around, ROWS)
    assert len(calls) == len(first.linear)
    np.testing.assert_array_equal(again(ROWS), first(ROWS))
