"""Moves: which values are tried."""

from __future__ import annotations

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.space.effort import effort
from bayescfx.space.neighbourhood import finer_moves, line_values, single_moves


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
    assert (effort(region, moves.X) < 0.7).all()
