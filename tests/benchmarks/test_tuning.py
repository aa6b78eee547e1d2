"""The benchmark of the tuning numbers: its changes and its figures."""

from __future__ import annotations

import importlib
from dataclasses import fields

import numpy as np
import pytest
from benchmarks.tuning import CLASSES, Result, changes


def test_numbers_are_halved_and_doubled_and_whole_ones_stay_whole() -> None:
    assert dict(changes(8)) == {"half": 4, "double": 16}
    assert dict(changes(1)) == {"half": 1, "double": 2}
    assert dict(changes(0.5)) == {"half": 0.25, "double": 1.0}


def test_of_a_tuple_some_members_stay() -> None:
    assert dict(changes((1, 2, 3))) == {"every other": (1, 3), "the middle one": (2,)}
    assert not list(changes((0.5,)))


@pytest.mark.parametrize("path", CLASSES.values())
def test_every_class_has_numbers_to_change(path: str) -> None:
    numbers = importlib.import_module(path).TUNING
    for field in fields(numbers):
        for _, changed in changes(getattr(numbers, field.name)):
            assert isinstance(changed, int | float | tuple)


def test_figures_are_compared_with_the_default() -> None:
    default = Result(np.ones(2), np.array([1.0, 2.0]), np.array([100, 100]), 0.01)
    other = Result(np.array([1.0, 0.0]), np.array([1.1, np.nan]), np.array([50, 200]), 0.02)
    assert other.compare(default) == pytest.approx((-0.5, 1.1, 1.0, 2.0))
