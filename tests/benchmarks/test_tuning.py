"""The benchmark of the tuning numbers: its changes and its figures."""

from __future__ import annotations

import importlib
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from benchmarks.tuning import CLASSES, KINDS, OFF, Result, changes, put
from benchmarks.tuning_parts import PARTS, ask_draws


def test_numbers_are_halved_and_doubled_and_whole_ones_stay_whole() -> None:
    assert dict(changes(8)) == {"half": 4, "double": 16}
    assert dict(changes(1)) == {"half": 1, "double": 2}
    assert dict(changes(0.5)) == {"half": 0.25, "double": 1.0}
    assert dict(changes(0.5, 0.0))["off"] == 0.0


def test_of_a_tuple_some_members_stay() -> None:
    assert dict(changes((1, 2, 3))) == {"every other": (1, 3), "the middle one": (2,)}
    assert not list(changes((0.5,)))


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_has_numbers_to_change(name: str) -> None:
    path, suite = CLASSES[name]
    assert suite in KINDS or suite in PARTS or suite == "binding"
    numbers = importlib.import_module(path).TUNING
    names = [field.name for field in fields(numbers)]
    assert set(OFF.get(name, {})) <= set(names)
    for field in names:
        for _, changed in changes(getattr(numbers, field)):
            assert isinstance(changed, int | float | tuple)


def test_a_changed_number_reaches_every_module_that_uses_it() -> None:
    tuning: Any = importlib.import_module("bayescfx.propose.tuning")
    moves: Any = importlib.import_module("bayescfx.propose.moves")
    old = tuning.TUNING
    new = replace(old, at_once=7)
    put(old, new)
    assert vars(moves)["TUNING"].at_once == 7
    put(new, old)
    assert vars(moves)["TUNING"] is old


def test_figures_are_compared_with_the_default() -> None:
    default = Result.of([(1.0, 1.0, 100, 0.0), (1.0, 2.0, 100, 0.0)])
    other = Result.of([(1.0, 1.1, 50, 0.0), (0.0, np.nan, 200, 0.5)])
    assert other.compare(default) == pytest.approx((-0.5, math.log(1.1), 0.0, 0.25))
    assert other.changed(default) == 1.0
    assert other.changed(other) == 0.0
    mean = Result.mean([default, other])
    assert mean.costs == pytest.approx([math.sqrt(1.1), 2.0])


def test_draws_are_the_same_for_the_same_seed() -> None:
    first = list(ask_draws(0, confirming=False))
    assert first == list(ask_draws(0, confirming=False))
    assert all(0.0 <= outcome[0] <= 1.0 for outcome in first)
