"""Start sets, and candidates from which proposals start."""

from __future__ import annotations

import numpy as np
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.search.question import Question
from bayescfx.search.start import (
    few_rows,
    first_rows,
    single_changes,
    towards_query,
    towards_target,
)
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.search.test_bayes import DATA, ask


def test_with_a_cost_each_feature_is_moved_once_at_the_start() -> None:
    question, _ = ask()
    rows = first_rows(question, 4)
    changed = question.region.changes(rows)
    assert changed.sum(axis=1).tolist() == [1] * 4
    assert changed.any(axis=0).all()
    units = np.abs(rows - question.region.query) / question.region.scale
    assert (units.max(axis=1) <= 1.0 + 1e-9).all()


def test_with_more_features_than_rows_they_are_moved_in_groups() -> None:
    question, _ = ask()
    changed = question.region.changes(first_rows(question, 2))
    assert len(changed) == 2
    assert changed.any(axis=0).all()


def test_without_a_cost_data_rows_come_first() -> None:
    question, _ = ask(weight=0.0)
    rows = first_rows(question, 5)
    data = {tuple(row) for row in DATA.to_numpy().tolist()}
    assert {tuple(row) for row in rows.tolist()} <= data


def test_without_data_random_rows_come_first() -> None:
    space = Space({name: Real(0, 1) for name in "abcd"})
    question, _ = ask(space=space, weight=0.0)
    assert len(first_rows(question, 5)) == 5


def mixed_question(weight: float | None) -> Question:
    space = Space(
        {
            "a": Real(0, 1),
            "b": Integer(0, 9),
            "c": Categorical(list("xyz")),
            "h": Integer(0, 23, cyclic=True),
        }
    ).require("a <= 0.1 * b + 0.2")
    question, _ = ask(
        lambda r: 2 * r["a"] + 0.1 * r["b"] + (r["c"] == "y"),
        space,
        {"a": 0.3, "b": 5, "c": "x", "h": 7},
        weight=weight,
    )
    question.evaluate(sample(question.region, 10, np.random.default_rng(0)))
    return question


@pytest.mark.parametrize("weight", [None, 0.0])
def test_all_candidates_are_allowed(weight: float | None) -> None:
    question = mixed_question(weight)
    region, X = question.region, question.X
    sets: list[Array] = [
        first_rows(question, 6),
        towards_target(question),
        towards_query(question, X[3:5]),
        few_rows(question, X[3], 2),
        single_changes(region),
    ]
    for rows in sets:
        assert len(rows)
        assert region.contains(rows).all()
    assert ((few_rows(question, X[3], 2) != X[3]).sum(axis=1) <= 4).all()
