"""Moves of a proposal that no gradient sees."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.moves import Changes, improve, improve_by_pairs
from bayescfx.propose.tuning import TUNING
from bayescfx.space.region import Region
from bayescfx.space.space import Space
from tests.propose.functions import generator

QUERY = {"a": 0.5, "k": 3, "c": "u", "n": 500}


def mixed(bound: int | None = None) -> Region:
    """A continuous feature, a short grid, levels, and a long grid."""
    space = Space(
        {
            "a": Real(0, 1),
            "k": Integer(0, 9),
            "c": Categorical(list("uvw")),
            "n": Integer(0, 10**6),
        }
    )
    return (space if bound is None else space.max_changes(bound)).around(QUERY)


class Hits:
    """Counts how many features have the right code: no gradient shows the way."""

    def __init__(self, goal: Array) -> None:
        self.goal = goal

    def value(self, X: Array) -> Array:
        found: Array = (self.goal == X).sum(axis=1).astype(np.float64)
        return found

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return self.value(X), np.zeros(X.shape)


def test_features_are_grouped_by_how_they_are_searched() -> None:
    free = FreeFeatures.of(mixed())
    assert free.smooth.tolist() == [0]
    assert free.listed.tolist() == [1, 2]
    assert free.long.tolist() == [3]
    assert free.sloped.tolist() == [0, 3]


def test_few_values_are_all_tried_and_of_others_the_ends_too() -> None:
    region = mixed()
    free = FreeFeatures.of(region)
    assert free.values(1, generator()).tolist() == list(range(10))
    places = free.values(0, generator())
    assert len(places) == TUNING.jumps + 3
    assert {0.0, 0.5, 1.0} <= set(places)
    long = free.values(3, generator())
    assert (long == np.round(long)).all()
    assert {0.0, 500.0, 1e6} <= set(long)


def test_a_change_differs_from_its_row_in_one_feature() -> None:
    region = mixed()
    X = np.vstack([region.query, [0.2, 7.0, 1.0, 10.0]])
    changes = Changes.of(FreeFeatures.of(region), X, generator())
    changed = changes.apply(X) != X[changes.rows]
    assert (changed.sum(axis=1) == 1).all()
    assert set(changes.rows) == {0, 1}
    # Doubling steps along the long grid, from each row's own code.
    long = changes.take(changes.features == 3)
    assert {501.0, 502.0, 504.0} <= set(long.codes[long.rows == 0])
    assert {11.0, 12.0, 14.0} <= set(long.codes[long.rows == 1])


def test_moves_that_help_alone_are_made_together() -> None:
    region = mixed()
    ledger = Ledger(Hits(np.array([1.0, 8.0, 2.0, 500.0])), region)
    X, value = improve(ledger, region.query[None], np.array([1.0]), generator())
    np.testing.assert_array_equal(X, [[1.0, 8.0, 2.0, 500.0]])
    assert value.tolist() == [4.0]


def test_under_a_bound_a_move_may_be_an_exchange() -> None:
    region = mixed(bound=1)
    goal = np.array([0.5, 8.0, 0.0, 500.0])
    start = region.query.copy()
    start[2] = 1.0  # the only change that is allowed, but the wrong one
    ledger = Ledger(Hits(goal), region)
    X, value = improve(ledger, start[None], np.array([2.0]), generator())
    np.testing.assert_array_equal(X, goal[None])
    assert value.tolist() == [4.0]


def test_two_moves_that_only_help_together_are_found() -> None:
    region = mixed()

    class Both(Hits):
        def value(self, X: Array) -> Array:
            return np.asarray((X[:, [1, 2]] == [8.0, 2.0]).all(axis=1), dtype=float)

    ledger = Ledger(Both(region.query), region)
    X, _ = improve(ledger, region.query[None], np.zeros(1), generator())
    np.testing.assert_array_equal(X, region.query[None])
    X, value = improve_by_pairs(ledger, region.query[None], np.zeros(1), generator())
    np.testing.assert_array_equal(X[0, [1, 2]], [8.0, 2.0])
    assert value.tolist() == [1.0]
