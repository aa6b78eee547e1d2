"""Tables and their layout, and rows as keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import row_keys
from bayescfx.data.tables import Column, Layout, cells_of, row_of
from bayescfx.errors import QueryError
from tests.evaluations.rows import MIXED, same_tables


def test_a_layout_survives_json() -> None:
    layout = Layout.of(MIXED)
    again = Layout.from_plain(layout.to_plain())
    assert again == layout
    table = again.table(cells_of(MIXED))
    assert isinstance(table, pd.DataFrame)
    same_tables(table, MIXED)


def test_a_row_of_one_dtype_keeps_it_and_a_mixed_row_keeps_its_cells() -> None:
    row = row_of(pd.DataFrame({"a": [1.5], "b": [2.5]}), 0)
    assert isinstance(row, pd.Series)
    assert row.dtype == np.float64
    mixed = row_of(pd.DataFrame({"a": [1], "b": [2.5]}), 0)
    assert isinstance(mixed, pd.Series)
    assert [type(cell) for cell in mixed] == [int, float]


def test_a_number_that_no_cell_of_a_column_holds_is_told() -> None:
    flag = Column("flag", np.dtype(bool))
    assert flag.strict_one(1, "query").tolist() == [True]
    with pytest.raises(QueryError, match="`query` must fit the dtypes of the space; got 1000000"):
        flag.strict_one(10**30, "query")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", 300), ("int8", np.int64(300)), ("int64", 10**30), ("int64", 1.5), ("uint8", -1)],
)
def test_a_single_number_is_never_wrapped_or_cut(dtype: str, value: Any) -> None:
    with pytest.raises(QueryError, match="must fit the dtypes of the space"):
        Column("n", np.dtype(dtype)).strict_one(value, "query")


def test_cells_may_differ_and_have_one_code_where_they_are_floats_times_or_objects() -> None:
    dtypes = ["float64", "datetime64[us]", "object", "int64", "bool"]
    variants = [Column("x", np.dtype(dtype)).has_variants for dtype in dtypes]
    assert variants == [True, True, True, False, False]


def test_keys_are_equal_only_for_equal_rows() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, 1.0], [0.0, np.nextafter(1.0, 2.0)]])
    assert len(set(row_keys(X))) == 4
    assert row_keys(np.asfortranarray(X)) == row_keys(X)
    assert row_keys(X[::2]) == [row_keys(X)[0], row_keys(X)[2]]


def test_negative_zero_and_any_nan_are_one_key() -> None:
    a, b = row_keys(np.array([[0.0, np.nan], [-0.0, -np.nan]]))
    assert a == b
