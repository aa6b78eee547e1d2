"""Suggestions for misspelled names."""

from __future__ import annotations

import pytest

from bayescfx.errors import suggest


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("garge", "garage"),  # a letter is missing
        ("garagge", "garage"),  # one too many
        ("gerage", "garage"),  # another one
        ("agrage", "garage"),  # two swapped
        ("temprture", "temperature"),  # two missing of many
        ("tempretaure", "temperature"),
        ("ag", "age"),
        ("dgo", "dog"),
        ("BMI", "bmi"),
        ("bayes_cfx", "bayes-cfx"),
        ("LivingArea", "living area"),
        ("bm1", "bmi"),
        ("Strasse", "Straße"),
        ("q1 2018", "Q1_2018"),
    ],
)
def test_a_misspelling_is_suggested(given: str, known: str) -> None:
    assert suggest(given, ["something else", known]) == f" Did you mean {known!r}?"


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("arae", "garage"),
        ("sex", "age"),
        ("male", "female"),
        ("cost", "colour"),
        ("a", "b"),
        ("s1", "s3"),
        ("x21", "x20"),
        ("2018", "2019"),
        ("feature_12", "feature_13"),
        ("income", "incoming"),
        ("garage", "garage_cars"),
        ("north", "south"),
        ("", "a"),
        ("-", "?"),
    ],
)
def test_another_name_is_not_suggested(given: str, known: str) -> None:
    assert suggest(given, [known]) == ""


def test_the_closest_name_is_suggested() -> None:
    assert suggest("garrage", ["carriage", "garage"]) == " Did you mean 'garage'?"
