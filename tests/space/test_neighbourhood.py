"""The neighbourhood of a row: values of features, moves, changes taken back or exchanged."""

from __future__ import annotations

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.space.neighbourhood import (
    block_values,
    crossings,
    cumulative_moves,
    data_values,
    finer_moves,
    frequent_levels,
    line_values,
    listed_values,
    n_to_settle,
    shorten,
    single_moves,
    spread_values,
    step_values,
)
from bayescfx.space.region import Region


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.normal(50.0, 10.0, n),
            "k": rng.integers(0, 8, n),
            "c": rng.choice(list("uvwz"), n),
            "z": rng.uniform(0.0, 1.0, n),
        }
    )


def test_every_value_of_a_feature_with_few_is_tried_and_of_others_many_near_the_query() -> None:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    moves = single_moves(region, region.query, 32, line_values(region, 32))
    assert region.contains(moves.X).all()
    assert ((region.query != moves.X).sum(axis=1) == 1).all()
    tried = [set(moves.X[moves.block == b, b]) for b in range(4)]
    assert tried[1] == set(range(8)) - {region.query[1]}
    assert tried[2] == set(range(4)) - {region.query[2]}
    values = np.array(sorted(tried[0]))
    assert len(values) > 24
    assert {region.low[0], region.high[0]} <= tried[0]
    steps = np.diff(np.sort(np.append(values, region.query[0])))
    at = np.searchsorted(values, region.query[0])
    assert steps[at] < steps[[0, -1]].max()
    # Each ray goes one way, farther and farther.
    for ray in np.unique(moves.ray):
        away = np.abs(moves.X - region.query).sum(axis=1)[moves.ray == ray]
        assert (np.diff(away) > 0.0).all()
        assert moves.place[moves.ray == ray][-1] == 1.0


def test_around_a_row_the_way_back_to_the_query_is_among_the_moves() -> None:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    base = region.query.copy()
    base[0], base[2] = region.high[0], (base[2] + 1) % 4
    moves = single_moves(region, base, 16, line_values(region, 16))
    for j in (0, 2):
        assert region.query[j] in moves.X[moves.block == j, j]


def test_features_that_move_together_are_one_block() -> None:
    X = table()
    space = cfx.Space.from_data(X).together("x", "z")
    region = space.around(X.iloc[3])
    moves = single_moves(region, region.query, 16, line_values(region, 16))
    assert region.contains(moves.X).all()
    moved = moves.X[:, [0, 3]] - region.query[[0, 3]]
    both = (moved != 0.0).any(axis=1)
    assert both.any()
    assert (np.sign(moved[both, 0]) == np.sign(moved[both, 1])).all()


def test_finer_moves_lie_between_neighbours_that_differ() -> None:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    values = line_values(region, 8)
    moves = single_moves(region, region.query, 8, values)
    step = region.query[0] + 0.6 * (region.high[0] - region.query[0])
    moves = moves._replace(gain=(moves.X[:, 0] > step).astype(float))
    between = finer_moves(region, moves, values, np.inf, 30)
    assert 0 < len(between.X) <= 3  # a single step
    upwards = np.sort(moves.X[moves.X[:, 0] > region.query[0], 0])
    after = np.searchsorted(upwards, step, side="right")
    low = upwards[after - 1] if after else region.query[0]
    assert ((between.X[:, 0] > low) & (between.X[:, 0] < upwards[after])).all()
    assert not len(finer_moves(region, moves, values, 0.0, 30).X)  # nothing costs less than nothing
    joined = moves.merge(between._replace(gain=(between.X[:, 0] > step).astype(float)))
    assert len(joined.X) == len(moves.X) + len(between.X)
    assert all((np.diff(joined.place[joined.ray == ray]) > 0.0).all() for ray in set(joined.ray))
    assert len(joined.distinct_gains().X) < len(joined.X)
    assert set(joined.distinct_gains().gain[joined.distinct_gains().block == 0]) == {0.0, 1.0}


def test_moves_that_cost_too_much_are_left_out() -> None:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    moves = single_moves(region, region.query, 8, line_values(region, 8), 0.7)
    assert len(moves.X)
    assert (region.cost(moves.X) < 0.7).all()


# ── values of a feature ──


def mixed_region() -> Region:
    space = cfx.Space(
        {
            "r": cfx.Real(0, 10),
            "k": cfx.Integer(0, 5),
            "c": cfx.Categorical(list("uvwz")),
            "h": cfx.Integer(0, 23, cyclic=True),
        }
    )
    return space.around({"r": 4.0, "k": 2, "c": "v", "h": 0})


def test_values_are_listed_only_if_they_are_few() -> None:
    region = mixed_region()
    listed = listed_values(region, 1, 6)
    assert listed is not None
    assert listed.tolist() == [0, 1, 2, 3, 4, 5]
    assert listed_values(region, 1, 5) is None
    assert listed_values(region, 0, 1000) is None  # continuous


def test_of_many_levels_the_frequent_ones_are_kept_and_the_querys_own() -> None:
    levels = list("abcdefgh")
    X = pd.DataFrame({"c": list("aaabbbccd") + levels})
    region = cfx.Space.from_data(X).around({"c": "h"})
    assert region.choices[0] is not None
    kept = frequent_levels(region, 0, 4)
    assert set(kept) == {0.0, 1.0, 2.0, 7.0}
    assert frequent_levels(region, 0, 8) is region.choices[0]


def test_spread_values_lie_at_shares_of_the_range_and_on_the_grid() -> None:
    region = mixed_region()
    shares = np.array([0.0, 0.5, 0.999])
    np.testing.assert_allclose(spread_values(region, 0, shares), [0.0, 5.0, 9.99])
    assert spread_values(region, 1, shares).tolist() == [0.0, 3.0, 5.0]
    long = cfx.Space({"n": cfx.Integer(0, 10**6)}).around({"n": 5})
    assert long.choices[0] is None
    found = spread_values(long, 0, shares)
    assert found[0] == 0.0
    assert found.tolist() == np.round(found).tolist()
    assert (found <= 10**6).all()


def test_data_values_are_those_of_the_data_with_both_limits() -> None:
    X = table(500)
    region = cfx.Space.from_data(X).between({"x": (40, 60)}).around({**X.iloc[3], "x": 50.0})
    found = data_values(region, 0, 10)
    assert found[0] == region.low[0]
    assert found[-1] == region.high[0]
    assert np.isin(np.round(found[1:-1], 9), np.round(X["x"], 9)).all()
    few = cfx.Space({"x": cfx.Real(0, 1)}).around({"x": 0.5})
    np.testing.assert_allclose(data_values(few, 0, 5), np.linspace(0, 1, 5))


def test_a_step_either_way_stays_within_the_limits_and_begins_where_data_are() -> None:
    X = pd.DataFrame({"a": np.linspace(0.0, 10.0, 101)})
    space = cfx.Space.from_data(X)
    region = space.around({"a": 8.0})
    unit = float(region.scale[0])
    steps = step_values(region, [0], 1.0)[:, 0]
    np.testing.assert_allclose(steps, [8.0 - unit, min(8.0 + unit, 10.0)])
    assert step_values(region, [0], 0.0).shape == (0, 1)
    circle = mixed_region()
    assert set(step_values(circle, [3], 1.0 / circle.scale[3])[:, 0]) == {1.0, 23.0}


def test_a_block_takes_each_of_few_values_nearest_first_or_a_step() -> None:
    region = mixed_region()
    assert block_values(region, [1], 16, 1.0)[:, 0].tolist()[:2] in ([1.0, 3.0], [3.0, 1.0])
    assert len(block_values(region, [1], 16, 1.0)) == 5
    assert len(block_values(region, [2], 16, 1.0)) == 3
    assert len(block_values(region, [0], 16, 1.0)) == 2


# ── rows from changes ──


def test_crossings_lie_between_moves_on_either_side_of_the_target() -> None:
    region = cfx.Space({"a": cfx.Real(0, 1), "b": cfx.Real(0, 1)}).around({"a": 0.0, "b": 0.0})
    moves = single_moves(region, region.query, 4, line_values(region, 4))
    moves = moves._replace(gain=moves.X[:, 0] * 10.0)
    rows = crossings(region, moves, 0.0, [(6.1, 6.3)], 10)
    assert len(rows)
    assert np.isclose(rows[:, 0], 0.62).any()  # where a linear model hits the middle
    assert (np.diff(region.cost(rows)) >= 0.0).all()
    assert not len(crossings(region, moves, 0.0, [(11.0, 12.0)], 10))


def test_moves_add_up_one_block_after_the_other() -> None:
    region = cfx.Space({name: cfx.Real(0, 1) for name in "abc"}).around(dict.fromkeys("abc", 0.5))
    X = np.array([[0.9, 0.5, 0.5], [0.8, 0.5, 0.5], [0.5, 0.1, 0.5], [0.9, 0.9, 0.9]])
    rows = cumulative_moves(region, region.query, X)
    np.testing.assert_array_equal(rows, [[0.9, 0.5, 0.5], [0.9, 0.1, 0.5]])
    assert cumulative_moves(region, region.query, X[:0]).shape == (0, 3)


def test_only_a_share_of_a_change_is_left() -> None:
    region = cfx.Space({name: cfx.Real(0, 1) for name in "abc"}).around(dict.fromkeys("abc", 0.5))
    x = np.array([0.9, 0.1, 0.7])
    rows = shorten(region, x, [0, 1], np.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(rows, [[0.5, 0.5, 0.7], [0.6, 0.4, 0.7], [0.9, 0.1, 0.7]])


def test_rows_to_settle_grow_with_the_changes_but_not_beyond_two_for_each() -> None:
    region = cfx.Space({name: cfx.Real(0, 1) for name in "abcdef"}).around(
        dict.fromkeys("abcdef", 0.5)
    )
    X = np.where(np.tri(6, 6, dtype=bool), 0.9, 0.5)
    assert n_to_settle(region, X).tolist() == [0, 2, 5, 8, 10, 12]
