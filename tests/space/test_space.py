"""What may move: verbs, and queries outside the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.errors import QueryError, SpaceError, SpaceWarning
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


def test_a_space_never_changes() -> None:
    space = Space.from_data(people())
    before = str(space)
    space.fix("age").only_up("bmi").between({"bmi": (1, 2)}).max_changes(1).cost(weight=0)
    assert str(space) == before
    with pytest.raises(AttributeError):
        space.scale = np.ones(5)  # type: ignore[misc]  # it is frozen


def test_verbs_combine_by_intersection() -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10), "c": Categorical(["abc", 1, 2])})
    limited = (
        space.between({"a": (1, 8)})
        .between({"a": (3, 9)})
        .move({"a": (-4, 4)})
        .move({"a": (-1, 9)})
        .only_up("b")
        .max_changes(3)
        .max_changes(2)
        .between({"c": [1, 2]})
    )
    with pytest.warns(SpaceWarning, match=r"outside its limits: 'c' is 'abc' \(only 1, 2\)"):
        region = limited.around({"a": 5.0, "b": 4.0, "c": "abc"})
    assert region.low.tolist() == [4, 4, 0]
    assert region.high.tolist() == [8, 10, 2]
    assert region.max_changes == 2


def test_only_up_contradicts_only_down() -> None:
    space = Space({"a": Real(0, 1)})
    for one, other in (("only_up", "only_down"), ("only_down", "only_up")):
        begun = getattr(space, one)("a")
        with pytest.raises(SpaceError, match=f"`{other}` for 'a' contradicts `{one}`. .* fix"):
            getattr(begun, other)("a")
        assert getattr(begun, one)("a").features == space.features  # twice the same is fine


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
    space = Space({"a": Real(0, 10), "b": Real(0, 1)}).between({"a": (2, 4)})
    with pytest.warns(
        SpaceWarning, match=r"outside its limits: 'a' is 7 \(between 2 and 4\). Such"
    ):
        region = space.around([7.0, 0.5])
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
    with pytest.warns(SpaceWarning, match=r"'grade' is 'b' \(only 'a', 'e'\)"):
        listed = space.between({"grade": ["a", "e"]}).around({"grade": "b"})
    assert listed.choices[0] is not None
    assert listed.choices[0].tolist() == [0, 1, 4]


def test_together_merges_chains_of_features() -> None:
    space = Space({name: Real(0, 1) for name in "abcd"}).together("a", "b").together("c", "b")
    assert [rule.block for rule in space.rules] == [("a", "b", "c")]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.fix("agee"), "there is no feature 'agee'. Did you mean 'age'"),
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
        (lambda s: s.derive("b", len), "is no feature 'b'"),
        (lambda s: s.cost(per_feature={"ag": 1}), "is no feature 'ag'. Did you mean 'age'"),
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
