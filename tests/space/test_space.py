"""What may move: inference, verbs, text and files."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import QueryError, SpaceError, SpaceWarning
from bayescfx.features import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.space.inference import robust_scale
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "bmi": rng.normal(25, 4, n),
            "sex": rng.choice(["f", "m"], n),
            "smokes": rng.random(n) < 0.3,
            "grade": pd.Categorical(
                rng.choice(["lo", "mid", "hi"], n), ["lo", "mid", "hi"], ordered=True
            ),
        }
    )


# ── inference ──


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
    kinds: dict[Any, Any] = {"zip": "categorical", "grade": "ordinal", "n": "integer"}
    features = Space.from_data(frame, kinds=kinds).features
    assert features["zip"] == Categorical([10, 20])
    assert features["grade"] == Ordinal(["a", "b", "c"])
    assert features["n"] == Integer(1, 2)
    assert Space.from_data(frame, kinds={"n": Real(0, 9, step=3)}).features["n"].step == 3  # type: ignore[union-attr]  # it is Real


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
        ([0, 0, 0, 0, 1, 2, 2, 0], 1.25),  # MAD 0: interquartile range
        ([0] * 9 + [10], 3.0),  # IQR 0: standard deviation
        ([5, 5], 1.0),
        ([], 1.0),
        ([np.nan, np.inf, 1.0, 3.0], 1.0),
    ],
)
def test_scales_fall_back_from_mad_to_iqr_to_std_to_one(values: list[float], scale: float) -> None:
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
    assert space.background.shape == (5_000, 1)
    assert space.background[0, 0] == 0
    assert space.background[-1, 0] == 19_999


def test_data_with_levels_the_user_left_out_still_makes_a_background() -> None:
    frame = pd.DataFrame({"c": ["a", "b", "x"], "n": [1.0, 2.0, 3.0]})
    space = Space.from_data(frame, kinds={"c": Categorical(["a", "b"])})
    assert space.background.tolist() == [[0, 1], [1, 2]]


def test_a_categorical_with_5000_levels_works() -> None:
    frame = pd.DataFrame({"zip": [f"z{i:04d}" for i in range(5000)], "n": np.arange(5000.0)})
    region = Space.from_data(frame).max_changes(1).around(frame.iloc[17])
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
    assert space.background.shape == (5_000, d)
    assert peak < X.nbytes / 2


# ── verbs ──


def test_a_space_never_changes() -> None:
    space = Space.from_data(people())
    before = str(space)
    space.fix("age").only_up("bmi").between({"bmi": (1, 2)}).max_changes(1).cost(weight=0)
    assert str(space) == before
    with pytest.raises(AttributeError):
        space.scale = np.ones(5)  # type: ignore[misc]  # it is frozen


def test_verbs_combine_by_intersection() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10), "c": Categorical(["abc", 1, 2])})
    region = (
        space.between({"a": (1, 8)})
        .between({"a": (3, 9)})
        .move({"a": (-4, 4)})
        .move({"a": (-1, 9)})
        .only_up("b")
        .max_changes(3)
        .max_changes(2)
        .between({"c": [1, 2]})
        .around({"a": 5.0, "b": 4.0, "c": "abc"})
    )
    assert region.low.tolist() == [4, 4, 0]
    assert region.high.tolist() == [8, 10, 2]
    assert region.max_changes == 2


def test_only_up_and_only_down_together_fix_a_feature() -> None:
    region = Space({"a": Real(0, 1)}).only_up("a").only_down("a").around({"a": 0.5})
    assert len(region.free) == 0


def test_allow_fixes_all_the_others() -> None:
    frame = people()
    region = Space.from_data(frame).allow("age", "bmi").allow("bmi", "sex").around(frame.iloc[0])
    assert region.free.tolist() == [1]


def test_limits_of_the_user_may_exceed_the_data_but_not_a_declared_feature() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    wide = {"a": (0, 5)}
    assert Space.from_data(frame).between(wide).around({"a": 1.0}).high.tolist() == [5]
    assert Space({"a": Real(1, 2)}).between(wide).around({"a": 1.0}).high.tolist() == [2]
    half = Space.from_data(frame).between({"a": (None, 7)}).around({"a": 1.0})
    assert (half.low[0], half.high[0]) == (1, 7)


def test_a_query_beyond_its_limits_may_stay_but_changes_go_into_them() -> None:
    region = Space({"a": Real(0, 10), "b": Real(0, 1)}).between({"a": (2, 4)}).around([7.0, 0.5])
    X = np.array([[7, 0.5], [5, 0.5], [4, 0.5], [3, 0.5], [6.9, 0.5]])
    assert region.contains(X).tolist() == [True, False, True, True, False]
    assert (region.low[0], region.high[0]) == (2, 7)
    assert region.snap(X)[:, 0].tolist() == [7, 4, 4, 3, 7]
    drawn = sample(region, 200, np.random.default_rng(0))[:, 0]
    assert ((drawn <= 4) | (drawn == 7)).all()


def test_a_cyclic_feature_moves_around_the_circle() -> None:
    space = Space({"weekday": Integer(0, 6, cyclic=True)}).move({"weekday": (-2, 2)})
    region = space.around({"weekday": 0})
    assert region.choices[0] is not None
    assert region.choices[0].tolist() == [0, 1, 2, 5, 6]
    # the taxi table of the paper: Monday - 2 days = Saturday
    assert region.distance(np.array([[5.0]])) == pytest.approx(2 / region.scale[0])
    assert region.snap(np.array([[3.4], [6.6], [-1.0], [4.0]]))[:, 0].tolist() == [2, 0, 6, 5]


def test_times_move_in_whole_units_from_where_the_query_stands() -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2016-01-01 00:00:23", "2016-03-01 07:00:00"])})
    space = Space.from_data(
        frame, kinds={"when": Moment("2016-01-01", "2016-03-02", unit="D")}
    ).move({"when": ("-2D", 1)})
    region = space.around({"when": pd.Timestamp("2016-02-10 08:15:30")})
    points = region.enumerate(10)
    assert points is not None
    rows = region.rows(np.sort(points, axis=0))
    assert isinstance(rows, pd.DataFrame)
    assert [str(t) for t in rows["when"]] == [
        f"2016-02-{day:02d} 08:15:30" for day in (8, 9, 10, 11)
    ]
    limited = space.between({"when": ("2016-02-09", None)}).around({"when": "2016-02-10 08:15:30"})
    assert len(limited.choices[0]) == 3  # type: ignore[arg-type]  # finite


def test_an_ordinal_moves_by_levels() -> None:
    space = Space({"grade": Ordinal(["a", "b", "c", "d", "e"])})
    region = space.only_up("grade").move({"grade": (-9, 2)}).around({"grade": "b"})
    assert region.choices[0] is not None
    assert region.choices[0].tolist() == [1, 2, 3]
    listed = space.between({"grade": ["a", "e"]}).around({"grade": "b"})
    assert listed.choices[0] is not None
    assert listed.choices[0].tolist() == [0, 1, 4]


def test_together_merges_chains_of_features() -> None:
    space = Space({name: Real(0, 1) for name in "abcd"}).together("a", "b").together("c", "b")
    assert space.blocks == (("a", "b", "c"),)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.fix("agee"), "`space` has no feature 'agee'. Did you mean 'age'"),
        (lambda s: s.only_up("sex"), "`only_up` needs an order, but 'sex' is Categorical"),
        (lambda s: s.only_down("day"), "`only_down` needs an order, but 'day' is cyclic"),
        (lambda s: s.move({"sex": (0, 1)}), "`move` needs an order, but 'sex' is Categorical"),
        (lambda s: s.move({"age": 3}), r"`move` for 'age' must be a pair \(low, high\); got 3"),
        (lambda s: s.move({"age": ("a", 1)}), "`move` for 'age' must be numbers; got 'a'"),
        (lambda s: s.between({"age": (3, 1)}), "must have low <= high"),
        (lambda s: s.between({"age": "20-30"}), r"must be a pair \(low, high\); got '20-30'"),
        (lambda s: s.between({"age": (np.nan, 1)}), "must be numbers; got nan"),
        (lambda s: s.between({"sex": "f"}), "must be a list of levels; got 'f'"),
        (lambda s: s.between({"sex": ["x"]}), "'sex' has no level 'x'. Levels: 'f', 'm'"),
        (
            lambda s: s.between({"age": (20, 30)}).between({"age": (40, 50)}),
            "`between` leaves nothing for 'age'",
        ),
        (lambda s: s.between({"sex": ["f"]}).between({"sex": ["m"]}), "leaves no level of 'sex'"),
        (lambda s: s.together("age"), "`together` needs at least two features"),
        (lambda s: s.together("age", "sex"), "`together` needs an order"),
        (lambda s: s.max_changes(0), "`k` must be a whole number >= 1; got 0"),
        (lambda s: s.max_changes(True), "`k` must be a whole number >= 1; got True"),
        (lambda s: s.max_changes(1.5), "`k` must be a whole number >= 1; got 1.5"),
        (lambda s: s.require(3), "`rule` must be text or a function of rows; got 3"),
        (lambda s: s.derive("bmi", 3), "`function` must be a function of rows; got 3"),
        (lambda s: s.derive("b", len), "has no feature 'b'"),
        (lambda s: s.cost(per_feature={"ag": 1}), "has no feature 'ag'. Did you mean 'age'"),
        (lambda s: s.derive("bmi", len).together("bmi", "age"), "it is derived from other"),
        (lambda s: s.together("bmi", "age").derive("bmi", len), "it moves together with others"),
    ],
)
def test_an_impossible_wish_is_refused(act: Any, message: str) -> None:
    features: dict[Any, Feature] = {
        "age": Integer(17, 90),
        "bmi": Real(15, 50),
        "sex": Categorical(["f", "m"]),
        "day": Integer(0, 6, cyclic=True),
    }
    with pytest.raises(SpaceError, match=message):
        act(Space(features))


@pytest.mark.parametrize("features", [{}, [Real(0, 1)], {"a": "real"}])
def test_features_must_be_a_dict_of_features(features: Any) -> None:
    with pytest.raises(SpaceError, match="must be"):
        Space(features)


# ── queries outside the data ──


def test_a_query_outside_the_range_is_included_once_with_a_warning() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]})
    space = Space.from_data(frame)
    with pytest.warns(SpaceWarning, match=r"'a' by the range 1.0 … 9.0; 'c' by the level 'z'"):
        region = space.around({"a": 9.0, "c": "z"})
    assert region.high[0] == 9
    assert region.choices[1] is not None
    assert region.choices[1].tolist() == [0, 1, 2]
    rows = region.rows(region.query[None, :])
    assert isinstance(rows, pd.DataFrame)
    assert rows.iloc[0].to_dict() == {"a": 9.0, "c": "z"}
    assert space.features["a"] == Real(1, 2)


def test_many_queries_can_share_one_coding() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]})
    queries = pd.DataFrame({"a": [9.0, 0.0], "c": ["z", "x"]})
    space = Space.from_data(frame).including(queries)
    assert space.features["a"] == Real(0, 9)
    assert space.encode(queries).tolist() == [[9, 2], [0, 0]]
    assert space.around(queries.iloc[0]).choices[1] is not None  # and no warning


def test_a_missing_value_that_might_move_is_fixed_and_said() -> None:
    frame = people()
    space = Space.from_data(frame)
    query = frame.iloc[0].copy()
    query["bmi"] = np.nan
    with pytest.warns(SpaceWarning, match="the query has no value for 'bmi'; treated as fixed"):
        region = space.around(query)
    assert 1 not in region.free
    X = sample(region, 20, np.random.default_rng(0))
    assert region.contains(X).all()
    assert np.isnan(X[:, 1]).all()
    assert np.isfinite(region.distance(X)).all()
    assert np.isfinite(region.distance_gradient(X)).all()
    assert not region.changes(X)[:, 1].any()
    space.fix("bmi").around(query)  # said already: no warning


def test_a_query_off_the_circle_or_with_an_unknown_ordinal_is_refused() -> None:
    space = Space({"day": Integer(0, 6, cyclic=True), "g": Ordinal(["lo", "hi"])})
    with pytest.raises(QueryError, match=r"must lie on the circle of 'day'.*got .*7"):
        space.around({"day": 7, "g": "lo"})
    with pytest.raises(QueryError, match="`query` does not fit 'g': 'mid' is not one of the lev"):
        space.around({"day": 6, "g": "mid"})


# ── text and files ──


def test_a_space_prints_what_was_inferred_and_said() -> None:
    frame = people()
    frame["when"] = pd.Timestamp("2016-01-01") + pd.to_timedelta(np.arange(40), "D")
    space = (
        Space.from_data(frame)
        .fix("sex")
        .only_up("age")
        .between({"bmi": (18, 32), "smokes": [False], "when": ("2016-01-05", None)})
        .move({"grade": (-1, 2)})
        .require("age >= bmi")
        .require(lambda d: d.age > 0, "age is positive")
        .together("age", "bmi")
        .near_data(frame)
        .max_changes(2)
        .cost(norm=2, per_feature={"age": 5})
    )
    text = str(space)
    for part in (
        "Space of 6 features",
        "only up",
        "between 18 … 32",
        "only False",
        "at least 2016-01-05",
        "2016-01-01 … 2016-02-09 by D",
        "moves -1 … +2",
        "'lo' < 'mid' < 'hi'",
        "rule: age >= bmi",
        "rule: age is positive",
        "together: age, bmi",
        "rule: near_data(quantile=0.95)",
        "at most 2 changes",
        "cost: 0.1 × l2 distance (age × 5)",
    ):
        assert part in text, part
    assert repr(space) == "Space(age, bmi, sex, smokes, grade, when)"
    assert "cost: none" in str(space.cost(weight=0))


def test_a_wide_space_prints_its_first_features() -> None:
    assert "… and 40 more" in str(Space.from_data(np.zeros((2, 100))))


def full_space() -> tuple[pd.DataFrame, Space]:
    frame = people()
    frame["when"] = pd.Timestamp("2016-01-01", tz="UTC") + pd.to_timedelta(np.arange(40), "D")
    frame[7] = pd.array([1, None] * 20, dtype="Int64")
    frame["red"] = np.tile([1, 0], 20)
    frame["blue"] = np.tile([0, 1], 20)
    space = (
        Space.from_data(frame)
        .group("colour", ["red", "blue"])
        .fix("sex", 7)
        .only_up("age")
        .between({"bmi": (18, None), "smokes": [False], "when": ("2016-01-05", "2016-02-01")})
        .move({"grade": (-1, 2)})
        .require("age >= bmi", "old enough")
        .together("age", "bmi")
        .max_changes(3)
        .cost(norm=2, per_feature={"age": 5})
    )
    return frame, space


def test_a_space_survives_json() -> None:
    frame, space = full_space()
    again = Space.from_dict(json.loads(json.dumps(space.to_dict(), allow_nan=False)))
    assert str(again) == str(space)
    assert again.unrestored == ()
    before, after = space.around(frame.iloc[0]), again.around(frame.iloc[0])
    X = sample(before, 50, np.random.default_rng(0))
    Y = np.concatenate([X, X + 0.5])
    np.testing.assert_array_equal(after.contains(Y), before.contains(Y))
    np.testing.assert_array_equal(after.distance(X), before.distance(X))
    pd.testing.assert_frame_equal(pd.DataFrame(after.rows(X)), pd.DataFrame(before.rows(X)))


def test_what_json_cannot_hold_is_listed() -> None:
    frame = people()
    space = (
        Space.from_data(frame)
        .derive("bmi", lambda d: d.age / 2.0)
        .require(lambda d: d.age > 0, "positive")
        .near_data(frame)
    )
    again = Space.from_dict(space.to_dict())
    assert again.unrestored == ("positive", "derive('bmi')", "near_data(quantile=0.95)")
    assert "not restored: positive" in str(again)
    assert Space.from_dict(again.to_dict()).unrestored == again.unrestored
    with pytest.raises(SpaceError, match="`format` of a saved space must be 1; got 2"):
        Space.from_dict({**space.to_dict(), "format": 2})


def test_spaces_and_regions_can_be_sent_to_other_processes() -> None:
    frame, space = full_space()
    region = space.around(frame.iloc[0])
    X = sample(region, 10, np.random.default_rng(0))
    again = pickle.loads(pickle.dumps(region))
    np.testing.assert_array_equal(sample(again, 10, np.random.default_rng(0)), X)
    assert str(pickle.loads(pickle.dumps(space))) == str(space)
