"""The selection of answers among evaluated rows."""

from __future__ import annotations

import numpy as np

from bayescfx.data import Categorical, Real
from bayescfx.potentials import at_least
from bayescfx.search.finish import different, distinct, further, needless
from bayescfx.space.region import Region
from bayescfx.space.space import Space
from tests.search.questions import UNIT, asked


def cube() -> Region:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "c": Categorical(list("uvw"))})
    return space.around({"a": 0.5, "b": 0.5, "c": "u"})


def test_a_row_that_goes_further_the_same_way_is_no_other_answer() -> None:
    region = cube()
    near, far, other, level = np.array(
        [[0.6, 0.5, 0.0], [0.9, 0.5, 0.0], [0.1, 0.5, 0.0], [0.5, 0.5, 1.0]]
    )
    assert further(region, far[None], near[None])[0, 0]
    assert not further(region, near[None], far[None])[0, 0]
    assert not different(region, far[None], near[None])[0, 0]
    assert different(region, far[None], other[None])[0, 0]  # the other side
    assert different(region, far[None], level[None])[0, 0]  # another feature
    assert different(region, level[None], np.array([[0.5, 0.5, 2.0]]))[0, 0]  # another level


def test_a_row_is_needless_if_fewer_of_its_changes_hit() -> None:
    region = cube()
    hits = np.array([[0.9, 0.9, 0.0], [0.9, 0.5, 0.0]])
    assert needless(region, hits, hits[0])
    assert not needless(region, hits, hits[1])
    shorter = np.array([[0.9, 0.9, 0.0], [0.8, 0.5, 0.0]])  # another change, not one taken back
    assert not needless(region, shorter, shorter[0])


def test_different_sets_of_features_come_first() -> None:
    question = asked(Space(UNIT), at_least(3.5), rows=0)
    rows = [
        [1.0, 0.5, 0.5, 0.5],
        [0.5, 0.8, 0.5, 0.5],
        [0.5, 0.5, 0.7, 0.5],
        [0.5, 0.5, 0.8, 0.5],
        [0.9, 0.9, 0.5, 0.5],
    ]
    question.evaluate(np.array(rows))
    chosen = question.X[distinct(question, 3)]
    changed = question.region.changes(chosen)
    assert len({tuple(row) for row in changed.tolist()}) == 3
    np.testing.assert_array_equal(chosen[0], rows[2])  # the cheapest
    assert distinct(question, 1).tolist() == distinct(question, 3).tolist()[:1]


def test_without_a_hit_only_rows_nearer_to_the_target_than_the_query_are_guesses() -> None:
    question = asked(Space(UNIT), at_least(5.9), rows=0)
    question.evaluate(np.array([[0.1, 0.5, 0.5, 0.5], [0.5, 0.9, 0.5, 0.5]]))
    np.testing.assert_array_equal(question.X[distinct(question, 5)], [[0.5, 0.9, 0.5, 0.5]])
