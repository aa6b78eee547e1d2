"""Pairs of moves, and several at once: their costs and expected outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.search.objectives import Record
from bayescfx.search.pairs import Pairs, chance
from bayescfx.space.neighbourhood import line_values, single_moves
from tests.space.test_neighbourhood import table

ABOVE = ((7.0, np.inf),)  # accepted outputs


@pytest.mark.parametrize("norm", [0, 1, 2])
def test_the_cost_of_a_pair_is_the_effort_of_its_row(norm: int) -> None:
    X = table()
    region = cfx.Space.from_data(X).cost(norm=norm).around(X.iloc[3])
    moves = single_moves(region, region.query, 8, line_values(region, 8))
    pairs = Pairs(region, moves._replace(gain=np.ones(len(moves.X))), ABOVE, 0.0, 0.0)
    rows = pairs.rows(np.arange(len(pairs.i)))
    np.testing.assert_allclose(pairs.cost, region.cost(rows), rtol=1e-12)
    assert (region.changes(rows).sum(axis=1) == 2).all()


def some_pairs() -> tuple[Any, Pairs, Any]:
    X = table()
    region = cfx.Space.from_data(X).around(X.iloc[3])
    moves = single_moves(region, region.query, 16, line_values(region, 16))
    gain = np.random.default_rng(1).normal(size=len(moves.X))
    return region, Pairs(region, moves._replace(gain=gain), ABOVE, 5.0, 5.0), gain


def test_the_first_guess_is_the_sum() -> None:
    _, pairs, gain = some_pairs()
    every = np.arange(len(pairs.i))
    np.testing.assert_allclose(pairs.mean[every], 5.0 + gain[pairs.i] + gain[pairs.j])


def test_the_deviation_is_that_of_a_brownian_sheet() -> None:
    _, pairs, gain = some_pairs()
    place = pairs.moves.place
    std = pairs.std
    sheet = np.sqrt(place[pairs.i] * place[pairs.j])
    np.testing.assert_allclose(std, np.std(gain) / 3.0 * sheet, rtol=1e-6)


def test_of_each_two_rays_one_pair_is_screened() -> None:
    region, pairs, _ = some_pairs()
    ray = pairs.moves.ray
    lanes = np.unique(np.stack([ray[pairs.i], ray[pairs.j]]), axis=1).shape[1]
    rows = pairs.screen(10_000, None)
    assert len(rows) == lanes
    assert (~pairs.is_open).sum() == lanes
    assert (region.changes(rows).sum(axis=1) == 2).all()
    assert len(pairs.screen(3, None)) == 3


def test_pairs_are_chosen_by_their_expected_saving_and_each_once() -> None:
    _, pairs, _ = some_pairs()
    rows = pairs.choose(20, None)
    closed = np.flatnonzero(~pairs.is_open)
    assert len(closed) == 20
    worth = chance(pairs.accepted, pairs.mean, pairs.std) / pairs.cost
    assert worth[closed].min() >= np.delete(worth, closed).max() * (1.0 - 1e-6)
    assert not len(set(map(bytes, rows)) & set(map(bytes, pairs.choose(20, None))))


@pytest.mark.parametrize("n", [1, 2])
def test_pairs_that_cost_more_than_the_answers_are_left_out(n: int) -> None:
    region, pairs, _ = some_pairs()
    every = pairs.rows(np.arange(len(pairs.i)))
    hits = every[np.argsort(pairs.cost, kind="stable")[[200, 500]]]
    record = Record(region, hits, n)
    rows = pairs.choose(10_000, record)
    assert len(rows)
    assert (region.cost(rows) < record.beat(rows)).all()


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
    pairs = Pairs(region, moves._replace(gain=gain), ABOVE, 0.0, 0.0)
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
