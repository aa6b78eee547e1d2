"""Features: ranges, grids and levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Categorical, Feature, Integer, Moment, Ordinal, Real, infer
from bayescfx.data.datetimes import times
from bayescfx.errors import QueryError, SpaceError, SpaceWarning


def anything(value: Any) -> Any:
    """Hide a wrong type from the type checker."""
    return value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(1, 0), r"`low <= high` must hold for Real; got low=1, high=0"),
        (lambda: Real(0, float("inf")), r"`high` of Real must be a finite number; got inf"),
        (lambda: Real(anything("0"), 1), r"`low` of Real must be a finite number; got '0'"),
        (lambda: Real(0, 1, step=0), r"`step` of Real must be a positive number; got 0"),
        (
            lambda: Integer(anything(0.5), 2),
            r"`low` of Integer must be a whole number",
        ),
        (lambda: Integer(0, 2**60), r"Categorical for identifiers"),
        (lambda: Integer(0, 5, step=-1), r"`step` of Integer must be a positive number; got -1"),
        (lambda: Ordinal([]), r"`levels` of Ordinal must not be empty"),
        (lambda: Categorical("abc"), r"`levels` of Categorical must be a list; got 'abc'"),
        (lambda: Categorical([1, 1]), r"`levels` of Categorical must be distinct"),
        (lambda: Categorical([1, None]), r"must not contain missing values"),
        (lambda: Moment("2016-01-02", "2016-01-01"), r"`low <= high` must hold for Moment"),
        (
            lambda: Moment("2016", "2017", unit=anything("year")),
            "must be one of W, D",
        ),
        (lambda: Moment("soon", "later"), r"point in time, such as 2016-01-31; got 'soon'"),
        (lambda: Moment("01.02.2016", "2017"), r"`low` of Moment .* got '01.02.2016'"),
        (lambda: Moment(pd.NaT, "2017"), r"`low` of Moment must not be missing"),
    ],
)
def test_an_impossible_feature_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


def test_grid_points_are_written_as_a_user_would() -> None:
    assert Real(0, 1, step=0.1).grid(np.arange(4.0), 0.0).tolist() == [0, 0.1, 0.2, 0.3]


def test_codes_of_times_count_units_from_the_lower_end() -> None:
    week = Moment("2016-01-01", "2016-01-08", unit="h")
    assert week.code_range == (0, 168)
    assert week.code("2016-01-01 02:00") == 2
    assert week.time(2) == pd.Timestamp("2016-01-01 02:00")
    assert week.code_step == 1


def test_durations_are_moments_too() -> None:
    spell = Moment(pd.Timedelta("1D"), pd.Timedelta("3D"))
    assert spell.duration
    assert spell.code_range == (0, 2)


def test_a_naive_time_is_read_in_the_zone_of_the_feature() -> None:
    low = pd.Timestamp("2016-01-01", tz="Europe/Berlin")
    assert Moment(low, low + pd.Timedelta("5D")).code("2016-01-03") == 2


def test_ranges_grow_to_cover_values_and_keep_their_grid() -> None:
    assert Real(0, 1).covering(pd.Series([2.5, np.nan])) == Real(0, 2.5)
    assert Integer(4, 10, step=3).covering(pd.Series([0, 12])) == Integer(-2, 12, step=3)
    assert Real(0, 1, step=0.25).covering(pd.Series([-0.3])) == Real(-0.5, 1, step=0.25)
    grown = Categorical(["a"]).covering(pd.Series(["b", "a", None]))
    assert grown == Categorical(["a", "b"])


def test_times_grow_without_moving_their_origin() -> None:
    before = Moment("2016-01-10", "2016-01-20")
    after = before.covering(pd.Series(pd.to_datetime(["2016-01-05"])))
    assert isinstance(after, Moment)
    assert after.low == pd.Timestamp("2016-01-05")
    assert after.code("2016-01-12") == before.code("2016-01-12")


def test_an_unknown_level_of_an_ordinal_has_no_place() -> None:
    with pytest.raises(SpaceError, match="its place in the order is unknown"):
        Ordinal(["low", "high"]).covering(pd.Series(["mid"]))


def test_points_in_time_are_written_as_finely_as_one_of_them_needs() -> None:
    assert times("2016-01-31") == ["2016-01-31"]
    assert times("2016-01-31", "2016-02-01 08:30") == ["2016-01-31 00:00", "2016-02-01 08:30"]


def test_a_step_is_a_positive_number() -> None:
    with pytest.raises(SpaceError, match="`step` of Integer must be a positive number; got None"):
        Integer(0, 5, step=anything(None))


@pytest.mark.parametrize(
    ("form", "like"),
    [
        ("%Y-%m-%d", "2016-01-31"),
        ("%Y-%m-%dT%H:%M:%S", "2016-01-31T00:00:00"),
        ("%d.%m.%Y", "31.01.2016"),
        ("%Y/%m/%d", "2016/01/31"),
        ("%d/%m/%Y", "31/01/2016"),
        ("%m/%d/%Y", "01/31/2016"),
        ("%d-%m-%Y %H:%M", "31-01-2016 00:00"),
        ("%-m/%-d/%Y", "1/31/2016"),
        ("%-d.%-m.%Y 08:05", "31.1.2016 08:05"),
    ],
)
def test_text_that_writes_dates_is_a_moment_and_stays_text(form: str, like: str) -> None:
    days = pd.date_range("2016-01-01", periods=40).strftime(form)
    form = form.replace("08:05", "%H:%M")
    cells = pd.Series([*days, None])
    feature = infer("day", cells)
    assert isinstance(feature, Moment)
    assert feature.form == form
    assert feature.code(like) == 30.0
    assert infer("day", cells, form) == feature
    codes = feature.encode(cells.array)
    assert codes[:40].tolist() == list(range(40))
    back = pd.Series(feature.decode(codes, cells.dtype))
    assert back[30] == like
    assert back[:40].equals(cells[:40])
    assert pd.isna(back[40])
    assert feature.covering(pd.Series([like.replace("2016", "2018")])).high.year == 2018
    assert Feature.from_plain(feature.to_plain()) == feature
    with pytest.raises(QueryError, match="a point in time must be written like"):
        feature.encode(pd.array(["soon", like], dtype=object))


def test_dates_whose_day_nobody_can_tell_stay_text_and_that_is_said() -> None:
    cells = pd.Series([f"0{day}/0{month}/2016" for day in range(1, 7) for month in range(1, 7)])
    with pytest.warns(SpaceWarning, match=r"'day' may be dates .* such as '01/01/2016', and is ta"):
        assert isinstance(infer("day", cells), Categorical)
    for kind, code in (("%d/%m/%Y", 1), ("%m/%d/%Y", 31)):
        feature = infer("day", cells, kind)
        assert isinstance(feature, Moment)
        assert feature.encode(cells[:1].array).tolist() == [0]
        assert feature.code("02/01/2016") == code
    with pytest.raises(SpaceError, match=r"give the kind as it is written, such as '%d/%m/%Y'"):
        infer("day", cells, "moment")
    with pytest.raises(SpaceError, match=r"written like '2016-01-31'; got '01/01/2016'"):
        infer("day", cells, "%Y-%m-%d")


def test_few_dates_mixed_forms_and_other_texts_are_levels() -> None:
    days = pd.Series(pd.date_range("2016-01-01", periods=40).strftime("%Y-%m-%d"))
    for cells in (
        days[:10],
        days.where(days.index != 3, "2016-1-4"),
        days.where(days.index != 3, "2016-02-31"),
        days + " about",
        days.astype("category"),
    ):
        assert infer("day", cells).kind == "categorical"
    assert infer("day", days[:10], "moment").kind == "moment"
    with pytest.raises(SpaceError, match="must be of a time dtype, or text such as"):
        infer("day", days + " about", "moment")


def test_what_is_said_of_a_column_of_dates_is_read_as_the_column_writes_them() -> None:
    days = pd.date_range("2016-01-01", periods=300, freq="5D")
    sold = infer("sold", pd.Series(days.strftime("%d.%m.%Y")))
    assert isinstance(sold, Moment)
    assert sold.time(sold.code("01.12.2019")) == pd.Timestamp("2019-12-01")
    assert sold.time(sold.code("2019-12-01")) == pd.Timestamp("2019-12-01")
    with pytest.raises(SpaceError, match="point in time"):
        sold.code("12/01/2019")
    with pytest.raises(SpaceError, match="point in time"):
        infer("sold", pd.Series(days)).code("01.12.2019")


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_a_grid_does_not_grow_farther_than_it_can_count(value: float) -> None:
    with pytest.raises(SpaceError, match=r"1e\+308 is too far away for steps of 0\.1"):
        Real(0.0, 1.0, step=0.1).covering(pd.Series([value]))
