"""Distances and broken constraints of mixed tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.mixed import Frame, Rules

LEVELS = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
ROWS = pd.DataFrame(
    {
        "age": [20, 30, 40, 50],
        "grade": pd.Series(["low", "middle", "high", "low"], dtype=LEVELS),
        "job": pd.Categorical(["a", "b", "c", "a"]),
        "hour": [0, 6, 12, 23],
        "sex": pd.Categorical(["f", "m", "f", "m"]),
    }
)
RULES = Rules(fixed=("sex",), up=("age", "grade"), within={"hour": (0, 22)}, period={"hour": 24})
FRAME = Frame("people", ROWS, np.zeros(4), RULES)


def changed(**cells: object) -> pd.Series[Any]:
    row = ROWS.iloc[1].copy()
    for name, value in cells.items():
        row[name] = value
    return row


@pytest.mark.parametrize(
    ("cells", "broken"),
    [
        ({}, []),
        ({"age": 31, "grade": "high", "job": "a", "hour": 22}, []),
        ({"age": 29}, ["age"]),
        ({"age": 51}, ["age"]),  # beyond the data
        ({"age": 30.5}, ["age"]),  # not an integer
        ({"grade": "low", "sex": "f"}, ["grade", "sex"]),
        ({"hour": 23}, ["hour"]),  # beyond the limit
    ],
)
def test_broken_constraints_are_named(cells: dict[str, object], broken: list[str]) -> None:
    assert FRAME.broken(ROWS.iloc[1], changed(**cells)) == broken


def test_an_unchanged_value_breaks_no_constraint() -> None:
    assert FRAME.broken(ROWS.iloc[3], ROWS.iloc[3]) == []


def test_distance_is_in_mads_with_one_per_level_and_the_short_way_of_cyclic_features() -> None:
    row = changed(age=40, grade="high", job="a", hour=23)
    scale = FRAME.scale
    expected = 10 / scale[0] + 1 / scale[1] + 1 + 7 / scale[3]
    assert FRAME.distance(ROWS.iloc[1], row) == pytest.approx(expected)
    assert FRAME.changes(ROWS.iloc[1], row) == 4


def test_random_rows_have_the_dtypes_of_the_data() -> None:
    rows = FRAME.random(100)
    assert rows.dtypes.to_dict() == ROWS.dtypes.to_dict()
    assert len(rows) == 100
