"""Numbers as text: as few digits as tell them apart."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.result.wording import number, number_apart, pair_apart


@pytest.mark.parametrize(
    ("value", "others", "text"),
    [
        (203.48173, [], "203.5"),
        (203.48173, [271.4, 203.48173], "203.5"),
        (203.48173, [203.52], "203.48"),
        (203.5, [203.50004], "203.5"),
        (203.50004, [203.5], "203.50004"),
        (0.1 + 0.2, [0.3], "0.30000000000000004"),
        (1e9, [1e9 + 1], "1000000000"),
        (2.0, [math.inf, -math.inf, math.nan], "2"),
    ],
)
def test_a_number_has_the_digits_that_tell_it_apart(
    value: float, others: list[float], text: str
) -> None:
    assert number_apart(value, others) == text


def test_differences_by_rounding_may_count_as_none() -> None:
    assert number_apart(0.1 + 0.2, [0.3], rounding=1e-12) == "0.3"
    assert number_apart(0.30001, [0.3], rounding=1e-12) == "0.30001"


def test_the_least_number_of_digits_can_be_chosen() -> None:
    assert pair_apart(2.6649, 2.6651, 3) == ("2.66", "2.67")
    assert pair_apart(2.6601, 2.6599, 3) == ("2.6601", "2.6599")


@given(st.floats(allow_nan=False))
def test_neighbouring_numbers_are_told_apart(value: float) -> None:
    other = math.nextafter(value, 0.0 if value > 0 else 1.0)
    first, second = pair_apart(value, other)
    assert (first == second) == (value == other)
    assert number(value) == number_apart(value, [value])
