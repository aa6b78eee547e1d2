"""Cells as exact JSON."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.data.values import from_plain, same_cell, to_plain

CELLS: list[Any] = [
    None,
    True,
    -3,
    2**70,
    0.1,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    'it\'s "odd" \N{MICRO SIGN}',
    np.float64(0.1),
    np.float32(0.1),
    np.float16("inf"),
    np.float64("nan"),
    np.longdouble("0.1"),
    np.int8(-3),
    np.uint64(2**63 + 5),
    np.bool_(True),
    np.str_("x"),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020-01-01 12:00:00.123456789"),
    pd.Timestamp("2020-07-01 02:30", tz="Europe/Berlin"),
    pd.Timedelta("3D 4h"),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "h"),
    dt.datetime(2020, 1, 1, 3, tzinfo=dt.UTC),
    dt.date(2020, 1, 1),
    dt.time(3, 4),
    dt.timedelta(1, 2, 3),
    decimal.Decimal("0.10"),
    b"\x00\xff",
    ("a", (1, None)),
    [1.0, np.int16(2)],
    {"a": 1, ("b", 2): pd.NaT},
    pd.Interval(0, 1.5, closed="left"),
    pd.Period("2020-03", "M"),
    pd.Period("2020-03-05 10:00", "h"),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{type(cell).__name__} {cell}")
def test_every_kind_of_cell_survives_json_with_type_and_bits(cell: Any) -> None:
    text = json.dumps(to_plain(cell), allow_nan=False)
    assert same_cell(from_plain(json.loads(text)), cell)


@given(st.floats(allow_nan=True, width=64), st.floats(width=32), st.text(), st.integers())
def test_numbers_and_texts_survive_json(x: float, y: float, text: str, k: int) -> None:
    for cell in (x, np.float64(x), np.float32(y), text, k, (x, text)):
        assert same_cell(from_plain(json.loads(json.dumps(to_plain(cell)))), cell)


def test_cells_that_only_look_alike_are_told_apart() -> None:
    assert not same_cell(1, 1.0)
    assert not same_cell(1, True)
    assert not same_cell(0.0, -0.0)
    assert not same_cell(np.float32(0.5), np.float64(0.5))
    assert same_cell(pd.NaT, pd.NaT)


def test_a_cell_without_an_exact_form_is_refused() -> None:
    with pytest.raises(TypeError, match="a cell must be a number, text, boolean"):
        to_plain(object())
    with pytest.raises(TypeError, match="a cell must not be of type complex128"):
        to_plain(np.complex128(1j))


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ValueError, match="must carry a known tag"):
        from_plain({"$": "spam", "v": 1})
    with pytest.raises(ValueError, match="must carry a known tag"):
        from_plain({"$": "load", "v": "file"})
