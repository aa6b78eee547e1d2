"""Features that move together."""

from __future__ import annotations

import numpy as np
import pytest

from bayescfx.data import Integer, Real
from bayescfx.errors import SpaceWarning
from bayescfx.space.repair import project
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space


def pair(query: float = 0.66) -> tuple[Space, list[float]]:
    space = Space({"a": Real(0, 1), "b": Real(0, 10), "k": Integer(0, 9)})
    return space.together("a", "b", "k"), [query, 6.0, 5]


@pytest.mark.parametrize(
    ("row", "allowed"),
    [
        ([0.66, 6.0, 5], True),
        ([0.7, 7.0, 6], True),
        ([0.6, 5.0, 4], True),
        ([0.7, 5.0, 6], False),
        ([0.66, 7.0, 6], False),
        ([0.6600000000001687, 7.0, 6], False),  # rounding dust is no move ...
        ([0.6600000000001687, 6.0, 5], False),  # ... nor is it none
        ([0.66 + 2.5e-7 / 0.9, 7.0, 6], True),  # the unit of change is a quarter of the range
        ([0.66 + 2.5e-7 * 0.9, 7.0, 6], False),
    ],
)
def test_moves_go_the_same_way_and_count_from_a_millionth_of_the_unit(
    row: list[float], *, allowed: bool
) -> None:
    space, query = pair()
    region = space.around(query)
    assert region.contains(np.array([query, row]))[1] == allowed


def test_a_move_held_back_by_rounding_dust_makes_the_smallest_that_counts() -> None:
    space, query = pair()
    region = space.around(query)
    (fixed,) = project(region, np.array([[0.6600000000001687, 7.0, 6]]))
    assert fixed[1:].tolist() == [7.0, 6.0]
    assert 0 < fixed[0] - 0.66 < 1e-6
    assert len(project(region, np.array([[0.6600000000001687, 5.0, 4]]))) == 1  # goes back
    X = sample(region, 500, np.random.default_rng(0))
    assert (np.abs(X - region.query) >= 1e-6 * region.scale).all()


def test_features_that_can_not_all_move_stay_and_others_may_move() -> None:
    space, _ = pair()
    space = Space({**space.features, "free": Real(0, 1)}).together("a", "b", "k")
    with pytest.warns(SpaceWarning, match="no value for 'b'"):
        region = space.around([0.66, np.nan, 5, 0.5])
    X = sample(region, 20, np.random.default_rng(0))
    assert region.free.tolist() == [3]
    assert region.contains(X).all()
    assert (X[:, [0, 2]] == [0.66, 5]).all()
