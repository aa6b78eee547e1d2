"""The allowed codes of features: one by one, and as arrays of all that move."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bayescfx.data import Categorical, Integer, Ordinal, Real
from bayescfx.space.region import Region, axis_fields
from bayescfx.space.rules.sparsity import Together
from bayescfx.space.space import Space


def mixed_space() -> Space:
    """Return a space with a feature for each way of finding the nearest allowed code."""
    return Space(
        {
            "fixed": Real(0, 1),
            "line": Real(0, 10),
            "tenths": Real(0, 2, step=0.1),
            "pairs": Integer(0, 20, step=2),
            "hour": Integer(0, 23, cyclic=True),
            "size": Ordinal(["s", "m", "l"]),
            "colour": Categorical(["red", "green", "blue"]),
        }
    ).fix("fixed")


def mixed_region() -> Region:
    query = {
        "fixed": 0.5,
        "line": 4.0,
        "tenths": 0.7,
        "pairs": 6,
        "hour": 23,
        "size": "m",
        "colour": "red",
    }
    return mixed_space().around(query)


def test_each_feature_is_snapped_in_the_cheapest_way() -> None:
    region = mixed_region()
    ways = [region.axes[j].snapping for j in region.free]
    assert ways == ["clip", "round", "round", "look up", "round", "round"]


def test_the_arrays_of_all_free_features_agree_with_their_axes() -> None:
    region = mixed_region()
    rng = np.random.default_rng(0)
    part = rng.uniform(-3.0, 25.0, size=(200, len(region.free)))
    snapped = region.free_axes.snap(part)
    for i, j in enumerate(region.free):
        np.testing.assert_array_equal(snapped[:, i], region.axes[j].snap(part[:, i]))
    assert region.free_axes.contains(snapped.T).all()
    for i in range(len(region.free)):
        moved = snapped.copy()
        moved[:, i] += 0.03
        is_line = region.step[region.free[i]] == 0
        if not is_line:
            assert not region.free_axes.contains(moved.T).any()


def test_distances_take_the_shorter_way_and_count_levels_once() -> None:
    region = mixed_region()
    part = np.array([[1.0, 0.2, 8.0, 1.0, 2.0, 2.0]])
    expected = [[3.0, 0.5, 2.0, 2.0, 1.0, 1.0]]
    np.testing.assert_allclose(region.free_axes.distances(part), expected)


def test_fields_of_a_region_follow_from_its_axes() -> None:
    region = mixed_region()
    assert region.free.tolist() == [1, 2, 3, 4, 5, 6]
    assert region.constant == [0]
    assert region.counted is None  # every feature may count as a change
    assert region.sliding.tolist() == [False, True, True, True, False, True, False]
    assert region.coarse.tolist() == [False, False, True, True, True, True, True]
    fields = axis_fields(region.axes, region.recomputed, region.weight, region.scale)
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(region, name))


def test_another_axis_changes_all_fields_that_depend_on_it() -> None:
    region = mixed_region()
    axis = dataclasses.replace(region.axes[3], choices=np.array([6.0]))
    other = region.with_axis(3, axis)
    assert other.free.tolist() == [1, 2, 4, 5, 6]
    assert other.constant == [0, 3]
    assert len(other.unit_costs) == len(other.free) == len(other.free_axes.low)
    assert other.axes[3].choices is axis.choices
    assert region.free.tolist() == [1, 2, 3, 4, 5, 6]  # the first one stays as it is


def test_blocks_and_derived_columns_follow_from_the_rules() -> None:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "c": Real(0, 2)}).together("a", "b")
    space = space.derive("c", lambda rows: rows["a"] + rows["b"])
    region = space.around({"a": 0.2, "b": 0.3, "c": 0.5})
    assert region.blocks == [[0, 1]]
    assert len(region.derived) == 1
    assert region.varying.tolist() == [0, 1, 2]
    assert region.counted is not None
    assert region.counted.tolist() == [True, True, False]
    without = region.without(*(rule for rule in region.rules if isinstance(rule, Together)))
    assert without.blocks == []
    assert len(without.derived) == 1


def test_regions_are_frozen() -> None:
    region = mixed_region()
    with pytest.raises(dataclasses.FrozenInstanceError):
        region.low = region.high  # type: ignore[misc]  # it is frozen
