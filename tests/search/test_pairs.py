"""Pairs of moves, and several at once: their costs and expected outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.search.pairs import Pairs, chance
from bayescfx.space.effort import effort
from bayescfx.space.neighbourhood import line_values, single_moves
from tests.space.test_neighbourhood import table


@pytest.mark.parametrize("norm", [0, 1, 2])
def test_the_cost_of_a_pair_is_the_effort_of_its_row(norm: int) -> None:
    X = table()
    region = cfx.Space.from_data(X).cost(norm=norm).around(X.iloc[3])
    moves = single_moves(region, region.query, 8, line_values(region, 8))
    pairs = Pairs(region, moves._replace(gain=np.ones(len(moves.X))), 0.0, 0.0)
    rows = pairs.rows(np.arange(len(pairs.i)))
    np.testing.assert_allclose(pairs.cost, effort(region, rows), rtol=1e-12)
    assert (region.changes(rows).sum(axis=1) == 2).all()


def some_pairs() -> tuple[Any, Pairs, Any]:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    moves = single_moves(region, region.query, 16, line_values(region, 16))
    gain = np.random.default_rng(1).normal(size=len(moves.X))
    return region, Pairs(region, moves._replace(gain=gain), 5.0, 5.0), gain


def test_the_first_guess_is_the_sum() -> None:
    _, pairs, gain = some_pairs()
    every = np.arange(len(pairs.i))
    np.testing.assert_allclose(pairs.guess(every)[0], 5.0 + gain[pairs.i] + gain[pairs.j])


def test_interactions_are_a_gaussian_process_with_the_brownian_sheet() -> None:
    _, pairs, gain = some_pairs()
    moves = pairs.moves
    mine = np.flatnonzero((moves.block[pairs.i] == 0) & (moves.block[pairs.j] == 3))
    rng = np.random.default_rng(2)
    seen = rng.choice(mine, 6, replace=False)
    error = rng.normal(size=6)
    pairs.is_open[seen] = False
    pairs.learn(seen, 5.0 + gain[pairs.i[seen]] + gain[pairs.j[seen]] + error, np.inf)
    rest = mine[pairs.is_open[mine]]

    def sheet(a: int, b: int) -> float:  # one entry at a time, from the definition
        out = 1.0
        for of in (pairs.i, pairs.j):
            one, two = of[a], of[b]
            same = moves.ray[one] == moves.ray[two]
            out *= min(moves.place[one], moves.place[two]) if same else 0.0
        return out

    K = np.array([[sheet(a, b) for b in seen] for a in seen]) + 0.01 * np.eye(6)
    k = np.array([[sheet(a, b) for b in seen] for a in rest])
    mean, std = pairs.guess(rest)
    excess = mean - 5.0 - gain[pairs.i[rest]] - gain[pairs.j[rest]]
    np.testing.assert_allclose(excess, k @ np.linalg.inv(K) @ error, atol=1e-10)
    prior = np.array([sheet(a, a) for a in rest])
    variance = np.maximum(prior - np.einsum("ab,bc,ac->a", k, np.linalg.inv(K), k), 1e-4)
    share = [max(sheet(a, a), 1e-3) for a in seen]
    np.testing.assert_allclose(std**2, np.mean(error**2 / share) * variance, rtol=1e-6)


def test_other_blocks_learn_nothing_but_the_scale() -> None:
    _, pairs, _ = some_pairs()
    moves = pairs.moves
    mine = (moves.block[pairs.i] == 0) & (moves.block[pairs.j] == 3)
    before = pairs.guess(np.flatnonzero(~mine))[0]
    seen = np.flatnonzero(mine)[:5]
    pairs.learn(seen, np.full(5, 100.0), np.inf)
    np.testing.assert_array_equal(pairs.guess(np.flatnonzero(~mine))[0], before)


def test_a_failed_row_changes_no_guess() -> None:
    _, pairs, _ = some_pairs()
    every = np.arange(len(pairs.i))
    before = pairs.guess(every)
    pairs.learn(np.arange(4), np.full(4, np.nan), np.inf)
    for old, new in zip(before, pairs.guess(every), strict=True):
        np.testing.assert_array_equal(old, new)


def test_chance_is_large_inside_small_outside_and_never_lost_in_rounding() -> None:
    mean = np.array([0.5, 3.0, -40.0, 40.0])
    likely = chance(((0.0, 1.0), (100.0, np.inf)), mean, np.full(4, 0.1))
    assert likely[0] > 0.99
    assert likely[0] > likely[1] > likely[3] > 0.0
    assert likely[1] > likely[2] > 0.0


def test_several_moves_at_once_are_the_cheapest_if_effects_add_up() -> None:
    """Against the fractional knapsack: the largest gain per cost first, the last one in part."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(300, 8)), columns=list("abcdefgh"))
    slopes = rng.normal(size=8)
    region = cfx.Space.from_data(X).cost(weight=0).around(X.iloc[0])
    moves = single_moves(region, region.query, 32, line_values(region, 32))
    gain = (moves.X - region.query) @ slopes
    pairs = Pairs(region, moves._replace(gain=gain), 0.0, 0.0)
    room = np.where(slopes > 0.0, region.high, region.low) - region.query
    most = float((room * slopes).sum())
    for aim in (0.2 * most, 0.5 * most, 0.8 * most):
        rows, mean = pairs.combinations(aim)
        np.testing.assert_allclose(mean, (rows - region.query) @ slopes, atol=1e-9)
        hit = mean >= aim - 1e-9
        cost, left = 0.0, aim
        for j in np.argsort(-np.abs(slopes * region.scale)):
            part = min(1.0, left / (room[j] * slopes[j]))
            cost += part * abs(room[j]) / region.scale[j]
            left -= part * room[j] * slopes[j]
        assert region.distance(rows[hit]).min() <= 1.02 * cost
