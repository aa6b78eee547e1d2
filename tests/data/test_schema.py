"""The user's table: codes and rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bayescfx.data.schema import Own
from bayescfx.data.tables import as_frame, cells_of, pick
from bayescfx.data.values import same_cell
from bayescfx.errors import QueryError, SpaceError, SpaceWarning
from bayescfx.space.sampling import draw, sample
from bayescfx.space.space import Space


def mixed() -> pd.DataFrame:
    """Return one column of every dtype the library knows."""
    return pd.DataFrame(
        {
            "real": [0.1, -0.0, 3e300],
            "single": np.array([0.1, 2.5, -7], dtype=np.float32),
            "whole": [1, 2, 90],
            "byte": np.array([1, 2, 200], dtype=np.uint8),
            "flag": [True, False, True],
            "text": pd.array(["a", "b", 'c"\N{MICRO SIGN}'], dtype="str"),
            "object": pd.Series([("a", 1), "x", 2.5], dtype=object),
            "colour": pd.Categorical(["r", "g", "r"], categories=["r", "g", "b"]),
            "grade": pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True),
            "Int": pd.array([1, None, 5], dtype="Int64"),
            "Float": pd.array([0.5, 1.5, None], dtype="Float64"),
            "Bool": pd.array([True, None, False], dtype="boolean"),
            "string": pd.array(["u", None, "v"], dtype="string"),
            "day": pd.array(["2016-01-01", "2016-02-01", None], dtype="datetime64[us]"),
            "zoned": pd.to_datetime(
                ["2016-01-01 10:00", "2016-07-01 11:00", "2016-03-05 00:30"]
            ).tz_localize("Europe/Berlin"),
            "spell": pd.to_timedelta(["1D", "3D", "12h"]),
            5: [1.0, 2.0, np.nan],
        }
    )


def test_encode_then_decode_is_the_identity_for_every_dtype() -> None:
    frame = mixed()
    space = Space.from_data(frame)
    again = space.decode(space.encode(frame))
    assert isinstance(again, pd.DataFrame)
    pd.testing.assert_frame_equal(again, frame)


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.just(3)),
        elements=st.floats(-1e12, 1e12),
    )
)
def test_encode_then_decode_is_the_identity_for_arrays(X: Any) -> None:
    spans = np.ptp(X, axis=0)
    assume(((spans == 0.0) | (spans >= 1e-305)).all())  # others are refused
    space = Space.from_data(X)
    again = space.decode(space.encode(X))
    assert isinstance(again, np.ndarray)
    assert again.dtype == X.dtype
    np.testing.assert_array_equal(again, X)


@pytest.mark.parametrize("dtype", ["float32", "int16", "object"])
def test_arrays_come_back_in_their_own_dtype(dtype: str) -> None:
    X = np.array([[1, 2], [3, 4]]).astype(dtype)
    space = Space.from_data(X)
    rows = space.around(X[0]).rows(space.encode(X))
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == X.dtype
    assert rows.tolist() == X.tolist()


def test_cells_that_did_not_move_are_the_query_s_own() -> None:
    frame = mixed()
    own = ("a", 1)
    query = frame.iloc[0].copy()
    query["object"] = own
    query["real"] = -0.0
    region = Space.from_data(frame).fix("Int", "Float", "Bool", "string", 5).around(query)
    codes = np.repeat(region.query[None, :], 3, axis=0)
    codes[1:, 2] = [7.0, 8.0]
    codes[:, 0] = 0.0  # equals the query's -0.0
    rows = region.rows(codes)
    assert isinstance(rows, pd.DataFrame)
    for name in frame.columns.drop("whole"):
        for i in range(3):
            expected = pd.Series([query[name]], dtype=frame[name].dtype).iloc[0]
            assert same_cell(rows[name].iloc[i], expected), name
    assert rows["object"].iloc[1] is own


@pytest.mark.parametrize("table", ["mixed", "numbers", "array"])
@pytest.mark.parametrize("movable", [1, 3, 17])
def test_rows_of_several_queries_are_each_their_own(table: str, movable: int) -> None:
    frame: Any = {
        "mixed": mixed(),
        "numbers": pd.DataFrame(np.random.default_rng(0).normal(size=(3, 17))),
        "array": np.random.default_rng(0).normal(size=(3, 17)),
    }[table]
    space = Space.from_data(frame)
    names = space.schema.names[:movable]
    queries = [frame.iloc[[i]] if table != "array" else frame[i] for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaceWarning)  # missing cells stay
        regions = [space.allow(*names).around(query) for query in queries]
    X = [draw(region, 8, np.random.default_rng(0)) for region in regions]
    whose = np.tile(np.arange(3), 8)
    both = space.schema.rows(
        np.stack(X, axis=1).reshape(24, -1), Own.of_all([region.own for region in regions]), whose
    )
    for i, region in enumerate(regions):
        alone, part = (as_frame(rows) for rows in (region.rows(X[i]), pick(both, whose == i)))
        pd.testing.assert_frame_equal(alone, part)
        cells = zip(cells_of(alone), cells_of(part), strict=True)
        assert all(same_cell(a, b) for one, two in cells for a, b in zip(one, two, strict=True))


def test_what_is_done_to_rows_does_not_show_in_later_ones() -> None:
    region = Space.from_data(mixed()).allow("whole").around(mixed().iloc[0])
    before: Any = region.rows(region.query[None])
    spoilt: Any = region.rows(region.query[None])
    spoilt.loc[0, "text"] = "b"
    spoilt["real"] = 7.0
    spoilt["colour"].array[0] = "g"
    after: Any = region.rows(region.query[None])
    pd.testing.assert_frame_equal(after, before)


@pytest.mark.parametrize("give", ["series", "frame", "dict", "array"])
def test_a_query_may_come_in_any_shape(give: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["u", "v"])
    query: Any = {
        "series": frame.loc["v"],
        "frame": frame.loc[["v"]],
        "dict": {"b": 4, "a": 2.0},
        "array": frame.loc["v"].to_numpy(),
    }[give]
    assert Space.from_data(frame).around(query).query.tolist() == [2, 4]


def test_columns_of_a_frame_may_come_in_any_order() -> None:
    frame = mixed()
    space = Space.from_data(frame)
    np.testing.assert_array_equal(space.encode(frame.iloc[:, ::-1]), space.encode(frame))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"a": 1}, r"`query` must have every column of the space; missing: 'b'"),
        ({"a": 1, "b": "x", "y": 2}, r"must have only the columns of the space; unknown: 'y'"),
        ({"a": 1.5, "b": "x"}, r"got 1.5 in column 'a' of dtype int64"),
        ({"a": "1", "b": "x"}, r"got '1' in column 'a' of dtype int64"),
        ({"a": None, "b": "x"}, r"got None in column 'a' of dtype int64"),
        ({"a": 2**70, "b": "x"}, r"in column 'a' of dtype int64"),
        ([1, 2, 3], r"`query` must have 2 columns; got shape \(1, 3\)"),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), r"`query` must be one row; got 2"),
        (pd.DataFrame([[1, "x", 2]], columns=["a", "b", "b"]), r"must not have a column twice"),
    ],
)
def test_a_query_that_does_not_fit_is_refused(query: Any, message: str) -> None:
    space = Space.from_data(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    with pytest.raises(QueryError, match=message):
        space.around(query)


def test_a_category_that_the_dtype_lacks_is_refused() -> None:
    space = Space.from_data(pd.DataFrame({"c": pd.Categorical(["r", "g"])}))
    with pytest.raises(QueryError, match=r"got 'b' in column 'c' of dtype category \('g', 'r'\)"):
        space.around({"c": "b"})


def test_rows_with_unknown_levels_have_no_codes() -> None:
    space = Space.from_data(pd.DataFrame({"c": ["r", "g"]}))
    with pytest.raises(QueryError, match=r"'c' has others than 'g', 'r'.*space.including"):
        space.encode(pd.DataFrame({"c": ["r", "b"]}))


def test_whole_floats_of_a_row_fit_an_integer_column() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    region = Space.from_data(frame).around(frame.iloc[0])  # a Series of floats
    rows = region.rows(region.query[None, :])
    assert isinstance(rows, pd.DataFrame)
    pd.testing.assert_frame_equal(rows, frame.iloc[[0]])


def test_rows_come_with_the_categories_and_order_of_the_data() -> None:
    frame = mixed()
    region = Space.from_data(frame).fix("Int", "Float", "Bool", "string", 5).around(frame.iloc[0])
    rows = region.rows(sample(region, 50, np.random.default_rng(0)))
    assert isinstance(rows, pd.DataFrame)
    assert list(rows) == list(frame)
    assert rows.dtypes.equals(frame.dtypes)


def test_a_feature_is_found_by_name_or_by_number_in_arrays() -> None:
    space = Space.from_data(np.zeros((2, 3)))
    assert space.schema.position("x1") == space.schema.position(1) == 1
    with pytest.raises(SpaceError, match=r"there is no feature 'x7'. Features: x0, x1, x2"):
        space.fix("x7")
    message = r"features must be named one by one; got \['x0', 'x1'\]\. Write \*names for a list\."
    with pytest.raises(SpaceError, match=message):
        space.fix(["x0", "x1"])  # type: ignore[arg-type]  # a mistake that users make


# ── one-hot groups ──


def hot(dtype: str = "int64") -> pd.DataFrame:
    codes = np.array([0, 1, 2, 1])
    block = (codes[:, None] == np.arange(3)).astype(dtype)
    return pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0]}).join(
        pd.DataFrame(block, columns=["red", "green", "blue"])
    )


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8"])
def test_a_group_is_one_feature_and_always_has_one_1(dtype: str) -> None:
    frame = hot(dtype)
    space = Space.from_data(frame).group("colour", ["red", "green", "blue"]).max_changes(1)
    region = space.around(frame.iloc[0])
    assert space.schema.names == ("size", "colour")
    rows = region.rows(sample(region, 64, np.random.default_rng(0)))
    assert isinstance(rows, pd.DataFrame)
    assert rows.dtypes.equals(frame.dtypes)
    assert (rows[["red", "green", "blue"]].sum(axis=1) == 1).all()
    assert {"green", "blue"} <= set(rows[["red", "green", "blue"]].idxmax(axis=1))
    np.testing.assert_array_equal(region.encode(rows)[:, 1] > 0, rows["red"] == 0)


def test_a_group_takes_levels_like_any_categorical() -> None:
    frame = hot()
    space = Space.from_data(frame).group("colour", ["red", "green", "blue"])
    with pytest.warns(SpaceWarning, match="outside its limits: 'colour' is 'red'"):
        region = space.between({"colour": ["blue"]}).fix("size").around(frame.iloc[0])
    points = region.enumerate(10)
    assert points is not None
    assert points[:, 1].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.group("c", ["red"]), "must be distinct and at least two"),
        (lambda s: s.group("size", ["red", "blue"]), "'size' is a feature already"),
        (lambda s: s.fix("red").group("c", ["red", "blue"]), "`group` must come first"),
        (lambda s: s.group("c", ["red", "blu"]), "no feature 'blu'. Did you mean 'blue'"),
    ],
)
def test_an_impossible_group_is_refused(act: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        act(Space.from_data(hot()))


def test_columns_that_are_not_one_hot_make_no_group() -> None:
    frame = pd.DataFrame({"a": [1, 1], "b": [1, 1], "t": ["x", "y"]})
    with pytest.raises(SpaceError, match="no row of the data has exactly one 1"):
        Space.from_data(frame).group("g", ["a", "b"])
    with pytest.raises(SpaceError, match="'t' must be a column of 0 and 1"):
        Space.from_data(frame).group("g", ["a", "t"])
    space = Space.from_data(hot()).group("colour", ["red", "green", "blue"])
    with pytest.raises(QueryError, match=r"exactly one 1 in the group 'colour'; got \[1.0, 1.0"):
        space.around({"size": 1.0, "red": 1, "green": 1, "blue": 0})


def test_codes_outside_a_range_and_unknown_levels_are_found_but_not_missing_ones() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]})
    schema = Space.from_data(frame).schema
    codes = np.array([[1.0, 0.0], [3.5, 1.0], [0.5, -1.0], [np.nan, np.nan]])
    expected = [[False, False], [True, False], [True, True], [False, False]]
    assert schema.is_outside(codes).tolist() == expected
