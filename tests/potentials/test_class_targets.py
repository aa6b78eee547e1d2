"""Targets of classifiers, as Python and as text."""

from __future__ import annotations

import math
from typing import Any

import pytest

import bayescfx as cfx
from bayescfx.errors import TargetError
from bayescfx.potentials import Becomes, Flips
from bayescfx.potentials.class_targets import check_probability_target
from bayescfx.potentials.target_text import parse_target
from bayescfx.potentials.targets import as_target, target_from_dict


@pytest.mark.parametrize(
    ("text", "label", "probability"),
    [
        ("becomes good", "good", None),
        ("becomes Very Good .7", "Very Good", 0.7),
        ("becomes 1", "1", None),
        ("becomes class 2", "class 2", None),
        ("becomes good 70 %", "good", 0.7),
        ("becomes 'grade 0.5' 0.6", "grade 0.5", 0.6),
        ("becomes >50K 0.8", ">50K", 0.8),
        ("becomes good >= 1", "good", 1.0),
        ("becomes good with a probability of at least 0.7", "good", 0.7),
    ],
)
def test_a_label_is_wanted_as_text(text: str, label: str, probability: float | None) -> None:
    target = parse_target(text)
    assert target == cfx.becomes(label, probability)
    assert parse_target(str(target)) == target


def test_flips_is_a_text() -> None:
    assert parse_target(" Flips ") == cfx.flips() == as_target(str(cfx.flips()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cfx.becomes("good", probability=70), r"at most 1; got 70. For 70 % write 0.7."),
        (lambda: cfx.becomes("good", probability=0), r"must be above 0 and at most 1; got 0.$"),
        (lambda: cfx.becomes(None), r"`label` must be one of clf.classes_; got None"),
        (lambda: cfx.becomes("good").wanted(0.5), r"'becomes good' is a target of classifiers"),
        (lambda: cfx.flips().wanted(0.5), r"'flips' is a target of classifiers"),
    ],
)
def test_what_is_no_target_is_an_error(make: Any, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        make()


@pytest.mark.parametrize(
    "target",
    [
        Becomes("good", low=0.5, high=math.inf, tie=0.5),
        Becomes(3, 0.7, low=-math.inf, high=0.3),
        Becomes(True),
        Flips("good", "bad", 0.5, 0.4),
        Flips(),
    ],
)
def test_targets_survive_json(target: Becomes | Flips) -> None:
    assert target_from_dict(target.to_dict()) == target


def test_a_query_at_the_tie_has_the_label_that_wins_ties() -> None:
    winner = Becomes("a", low=0.5 + 1e-9, high=math.inf, tie=0.5)
    assert winner.wanted(0.5) == ((0.5, math.inf),)
    assert winner.wanted(0.4) == ((0.5 + 1e-9, math.inf),)
    flip = Flips("b", "a", won=0.6, lost=0.4, wins_ties=False)
    assert flip.wanted(0.5) == ((0.6, math.inf),)
    assert flip.predicted(0.5) == "a"
    assert Flips("b", "a", 0.6, 0.4, wins_ties=True).wanted(0.5) == ((-math.inf, 0.4),)


@pytest.mark.parametrize(
    ("target", "output", "message"),
    [
        (cfx.at_least(1.2), 0.5, r"between 0 and 1; got 'at least 1.2'.$"),
        (cfx.at_least(70), 0.5, r"For 70 % write 0.7."),
        (cfx.reach(-0.1), 0.5, r"got 'exactly -0.1'"),
        (cfx.between(0.2, 1.5), 0.5, r"got 'between 0.2 and 1.5'"),
        (
            cfx.increase(by=0.5),
            0.8,
            r"'\+0.5' from 0.8 is none: at most 0.8 less or 0.2 more is possible",
        ),
        (cfx.decrease(percent=200), 0.8, r"at most 0.8 less or 0.2 more is possible"),
        (cfx.change(by=0.9), 0.8, r"at most 0.8 less or 0.2 more is possible"),
        (cfx.increase(by=0.1), 1.0, r"at most 1 less or 0 more is possible"),
    ],
)
def test_a_target_that_is_no_probability_is_an_error(
    target: Any, output: float, message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        check_probability_target(target, output)


@pytest.mark.parametrize(
    "target",
    [cfx.at_least(1), cfx.at_most(0), cfx.increase(percent=25), cfx.change(by=0.5), cfx.reach(0.3)],
)
def test_probabilities_are_targets(target: Any) -> None:
    check_probability_target(target, 0.8)
