"""What a space learns from data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Categorical, Integer, Moment, Ordinal, Real
from bayescfx.errors import SpaceError
from bayescfx.space.inference import robust_scale
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.space.test_space import people


def test_kinds_are_inferred_from_dtypes() -> None:
    frame = people()
    frame["nullable"] = pd.array([1, None] * 20, dtype="Int64")
    frame["day"] = pd.Timestamp("2016-01-01") + pd.to_timedelta(np.arange(40), "D")
    frame["second"] = pd.Timestamp("2016-01-01") + pd.to_timedelta(np.arange(40) * 400_001, "s")
    frame["colour"] = pd.Categorical(["b", "r"] * 20, categories=["r", "g", "b"])
    features = Space.from_data(frame).features
    assert features["age"] == Integer(int(frame.age.min()), int(frame.age.max()))
    assert features["bmi"] == Real(frame.bmi.min(), frame.bmi.max())
    assert features["sex"] == Categorical(["f", "m"])
    assert features["smokes"] == Categorical([False, True])
    assert features["grade"] == Ordinal(["lo", "mid", "hi"])
    assert features["nullable"] == Integer(1, 1)
    assert features["day"] == Moment("2016-01-01", "2016-02-09", unit="D")
    # at most 10,000 steps: minutes would be more
    assert getattr(features["second"], "unit", None) == "h"
    # a declared category that never occurs is no place to move to
    assert features["colour"] == Categorical(["r", "b"])


def test_kinds_can_be_corrected() -> None:
    frame = pd.DataFrame({"zip": [10, 20, 10], "grade": ["b", "a", "c"], "n": [1.0, 2.0, np.nan]})
    kinds: dict[Any, Any] = {"zip": "categorical", "grade": "b < a < c < d", "n": "integer"}
    features = Space.from_data(frame, kinds=kinds).features
    assert features["zip"] == Categorical([10, 20])
    assert features["grade"] == Ordinal(["b", "a", "c", "d"])
    for order in ("ordinal", "20 < 10"):
        levels = Space.from_data(frame, kinds={"zip": order}).features["zip"].levels
        assert levels == ((10, 20) if order == "ordinal" else (20, 10))
    assert features["n"] == Integer(1, 2)
    assert Space.from_data(frame, kinds={"n": Real(0, 9, step=3)}).features["n"].step == 3


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"agee": "real"}, "`kinds` names no column 'agee'. Did you mean 'age'"),
        ({"age": "Real"}, r"must be one of 'real', 'integer'.*Did you mean 'real'"),
        ({"age": "real"}, "column 'age' must be of a float dtype to be Real; got int64"),
        ({"sex": "integer"}, "column 'sex' must hold numbers"),
        ({"bmi": "integer"}, "column 'bmi' must hold whole numbers"),
        ({"sex": Real(0, 1)}, "column 'sex' must hold numbers; got dtype"),
        ({"age": Moment("2016", "2017")}, "must be of a time dtype"),
        ({"sex": "ordinal"}, "column 'sex' must say the order of its levels, which are text"),
        ({"sex": "g < h"}, "the order of 'sex' must have every level of the column"),
    ],
)
def test_impossible_kinds_are_refused(kinds: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_data(people(), kinds=kinds)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"`X` must be a DataFrame or a 2-D array; got shape \(3,\)"),
        (
            pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0.0])}),
            r"column 'a' must be dense; got Sparse.*Convert it with X\[name\]\.sparse\.to_dense",
        ),
        (np.zeros((0, 3)), r"at least one row and one column; got \(0, 3\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' occurs twice"),
        (pd.DataFrame({("a", 1): [1]}), "one level of column names"),
        (pd.DataFrame({"a": [[1], [2]]}), "column 'a' must hold hashable values"),
        (pd.DataFrame({"a": [2**60, 1]}), "Categorical for identifiers"),
    ],
)
def test_data_that_is_no_table_is_refused(X: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_data(X)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 3, 10], 1.0),  # median absolute deviation
        ([0, 0, 0, 0, 1, 2, 2, 0], 2.0),  # where most rows have one value, of the others
        ([0] * 9 + [10], 10.0),
        ([1] * 94 + [2] * 6, 1.0),  # one level is one unit, however rare
        ([0] * 90 + [*range(100, 1100, 100)], 550.0),
        ([5, 5], 1.0),
        ([], 1.0),
        ([np.nan, np.inf, 1.0, 3.0], 1.0),
    ],
)
def test_the_unit_of_change_is_the_usual_deviation(values: list[float], scale: float) -> None:
    assert robust_scale(np.array(values, dtype=float)) == pytest.approx(scale)


def test_a_column_of_missing_values_is_only_a_nuisance() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "gone": [np.nan, np.nan], "none": [None, None]})
    space = Space.from_data(frame).fix("gone", "none")
    rows = space.around(frame.iloc[0]).rows(np.array([[1.5, np.nan, np.nan]]))
    assert isinstance(rows, pd.DataFrame)
    assert rows.isna().to_numpy().tolist() == [[False, True, True]]
    assert rows.dtypes.equals(frame.dtypes)


def test_a_single_row_of_data_makes_a_space() -> None:
    frame = people(1)
    space = Space.from_data(frame)
    assert space.scale.tolist() == [1.0] * 5
    region = space.around(frame.iloc[0])
    assert [space.schema.names[j] for j in region.free] == ["smokes", "grade"]


def test_the_background_is_bounded_and_spread_over_the_data() -> None:
    X = np.arange(20_000.0).reshape(-1, 1)
    space = Space.from_data(X)
    assert space.sample.rows.shape == (5_000, 1)
    assert space.sample.rows[0, 0] == 0
    assert space.sample.rows[-1, 0] == 19_999


def test_data_with_levels_the_user_left_out_still_makes_a_background() -> None:
    frame = pd.DataFrame({"c": ["a", "b", "x"], "n": [1.0, 2.0, 3.0]})
    space = Space.from_data(frame, kinds={"c": Categorical(["a", "b"])})
    assert space.sample.rows.tolist() == [[0, 1], [1, 2]]


def test_a_categorical_with_5000_levels_works() -> None:
    frame = pd.DataFrame({"zip": [f"z{i:04d}" for i in range(5000)], "n": np.arange(5000.0)})
    space = Space.from_data(frame, {"zip": "categorical"})
    region = space.max_changes(1).around(frame.iloc[17])
    X = sample(region, 500, np.random.default_rng(0))
    assert region.contains(X).all()
    assert len(np.unique(X[:, 0])) > 100
    assert region.choices[0] is not None
    assert len(region.choices[0]) == 5000


@pytest.mark.slow
def test_a_million_rows_make_a_space_in_bounded_memory() -> None:
    import tracemalloc

    n, d = 1_000_000, 80
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    tracemalloc.start()
    space = Space.from_data(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert space.sample.rows.shape == (5_000, d)
    assert peak < X.nbytes / 2
