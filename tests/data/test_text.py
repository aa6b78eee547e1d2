"""Features read and write text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.data import Categorical, Feature, Integer, Moment, Ordinal, Real
from bayescfx.errors import SpaceError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LEVELS = st.one_of(
    st.text(max_size=4),
    st.integers(-3, 3).map(lambda k: f"#{k}"),
    st.integers(-5, 5),
    st.floats(-3, 3, width=16),
    st.booleans(),
    st.tuples(st.integers(0, 2), st.text(max_size=1)),
)


def read_back(feature: Feature, code: float) -> float:
    return feature.code(feature.parse(feature.format(code), "a"), "a")


@given(FINITE)
def test_the_text_of_a_number_is_exact(code: float) -> None:
    assert read_back(Real(0, 1), code) == code


@given(st.integers(-(2**53), 2**53))
def test_the_text_of_a_whole_number_has_no_point(code: int) -> None:
    whole = Integer(-(2**53), 2**53)
    assert read_back(whole, float(code)) == code
    assert "." not in whole.format(float(code))


@given(st.lists(LEVELS, min_size=1, max_size=8, unique=True))
def test_the_text_of_a_level_is_no_other_levels(levels: list[Any]) -> None:
    for feature in (Categorical(levels), Ordinal(levels)):
        for code in range(len(levels)):
            assert read_back(feature, float(code)) == code


UNITS = st.sampled_from(["W", "D", "h", "min", "s", "ms"])
FORMS = st.sampled_from(["", "%d/%m/%Y", "%Y-%d-%m", "%-d.%-m.%Y", "%Y-%m-%dT%H:%M:%S"])


@given(st.integers(0, 300), UNITS, FORMS, st.sampled_from(["2016-01-31", "2016-10-29 22:31:05"]))
def test_the_text_of_a_time_is_exact(code: int, unit: Any, form: str, low: str) -> None:
    feature = Moment(low, "2030-01-01", unit=unit, form=form)
    assert read_back(feature, float(code)) == code


@given(st.integers(0, 20_000), UNITS)
def test_the_text_of_a_time_in_a_zone_is_exact_when_clocks_change(code: int, unit: Any) -> None:
    low = pd.Timestamp("2016-10-29 22:31", tz="Europe/Berlin")
    feature = Moment(low, low + pd.Timedelta(365, "D"), unit=unit)
    assert read_back(feature, float(code)) == code


@given(st.integers(-400, 400), UNITS)
def test_the_text_of_a_duration_is_exact(code: int, unit: Any) -> None:
    feature = Moment(pd.Timedelta(0), pd.Timedelta("9D"), unit=unit)
    assert read_back(feature, float(code)) == code


@pytest.mark.parametrize(
    ("feature", "code", "text"),
    [
        (Real(0, 50), 36.6, "36.6"),
        (Real(0, 50), 36.0, "36"),
        (Real(0, 50), -0.0, "0"),
        (Integer(0, 10**6), 100000.0, "100000"),
        (Ordinal(["low", "high"]), 1.0, "high"),
        (Categorical([False, True]), 0.0, "False"),
        (Moment("2016-01-01", "2016-02-01"), 30.0, "2016-01-31"),
        (Moment("2016-01-01", "2016-02-01", unit="h"), 30.0, "2016-01-02 06:00"),
        (Moment("2016-01-01", "2016-02-01", form="%d/%m/%Y"), 30.0, "31/01/2016"),
        (Moment(pd.Timedelta(0), pd.Timedelta("9D")), 2.0, "2 days 00:00:00"),
    ],
)
def test_codes_are_written_as_users_write_them(feature: Feature, code: float, text: str) -> None:
    assert feature.format(code) == text
    assert feature.format(math.nan) == ""
    assert feature.parse("") is None


@pytest.mark.parametrize(
    ("feature", "text", "value"),
    [
        (Real(0, 50), "1e3", 1000.0),
        (Real(0, 50), " -2 ", -2),
        (Real(0, 50), "inf", math.inf),
        (Real(0, 50), 3, 3),
        (Categorical(["Clerk", "cook"]), "clerk", "Clerk"),
        (Categorical(["clerk", "Clerk"]), "Clerk", "Clerk"),
        (Categorical([False, True]), "true", True),
        (Ordinal([1, 2.5]), "2.50", 2.5),
        (Ordinal([1, 2.5]), 1.0, 1),
        (Ordinal(["a", "b"]), "#1", "b"),
        (Moment("2016-01-01", "2016-02-01"), "2016-01-31", pd.Timestamp("2016-01-31")),
        (Moment("2016", "2017", form="%d/%m/%Y"), "02/01/2016", pd.Timestamp("2016-01-02")),
        (Moment(pd.Timedelta(0), pd.Timedelta("9D")), "36h", pd.Timedelta("1D 12h")),
    ],
)
def test_text_is_read_however_it_is_spelt(feature: Feature, text: Any, value: Any) -> None:
    found = feature.parse(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("feature", "text", "message"),
    [
        (Real(0, 50), "6o", "`between` for 'a' must be numbers; got '6o'"),
        (Integer(0, 50), "x", "`between` for 'a' must be numbers; got 'x'"),
        (Categorical(["clerk", "cook"]), "clark", "'a' has no level 'clark'. Did you mean 'clerk'"),
        (Moment("2016", "2017"), "soon", "`between` for 'a' must be a point in time"),
        (Moment("2016", "2017"), "02/01/2016", "point in time, such as 2016-01-31; got '02/01/2"),
        (Moment(pd.Timedelta(0), pd.Timedelta("9D")), "x", "`between` for 'a' must be a duration"),
    ],
)
def test_a_text_that_is_no_value_is_refused(feature: Feature, text: str, message: str) -> None:
    with pytest.raises(SpaceError, match=message.replace("(", r"\(")):
        feature.parse(text, "a")


def test_a_time_that_occurs_twice_needs_its_offset() -> None:
    low = pd.Timestamp("2016-10-29", tz="Europe/Berlin")
    feature = Moment(low, low + pd.Timedelta(9, "D"), unit="h")
    with pytest.raises(SpaceError, match="'a' must be a time that occurs once; got '2016-10-30"):
        feature.parse("2016-10-30 02:30", "a")
    assert feature.parse("2016-10-30 02:30+02:00") < feature.parse("2016-10-30 02:30+01:00")


def test_a_kind_without_text_of_its_own_writes_its_cells() -> None:
    class Doubled(Real):
        """A number whose code is its half."""

        format = Feature.format

        def decode(self, codes: Any, dtype: Any) -> Any:
            return np.asarray(codes * 2.0)

        def code(self, value: Any, name: Any = "value", verb: str = "between") -> float:
            return super().code(value, name, verb) / 2

    try:
        assert Doubled(0, 9).format(1.25) == "2.5"
        assert read_back(Doubled(0, 9), 1.25) == 1.25
    finally:
        del Feature.kinds["doubled"]
