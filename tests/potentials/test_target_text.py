"""Targets as text."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.potentials import Target
from bayescfx.potentials.target_text import parse_target
from bayescfx.potentials.targets import as_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (">= 150", cfx.at_least(150)),
        (">150", cfx.at_least(150)),
        ("≥ 1.5e2", cfx.at_least(150)),
        ("at least 150", cfx.at_least(150)),
        ("<= 0.3", cfx.at_most(0.3)),
        ("<.3", cfx.at_most(0.3)),
        ("≤ -3", cfx.at_most(-3)),
        ("<= −3", cfx.at_most(-3)),
        (">= -3", cfx.at_least(-3)),
        ("+20%", cfx.increase(percent=20)),
        ("+ 20 %", cfx.increase(percent=20)),
        ("+20", cfx.increase(by=20)),
        ("+.5", cfx.increase(by=0.5)),
        ("-15", cfx.decrease(by=15)),
        ("-15%", cfx.decrease(percent=15)),
        ("−15", cfx.decrease(by=15)),
        ("±10%", cfx.change(percent=10)),
        ("+-10", cfx.change(by=10)),
        ("+/- 10 percent", cfx.change(percent=10)),
        ("=+20%", cfx.reach(percent=20)),
        ("= -20 percent", cfx.reach(percent=-20)),
        ("=+15", cfx.reach(by=15)),
        ("=−15", cfx.reach(by=-15)),
        ("[140,160]", cfx.between(140, 160)),
        ("[-5; 5]", cfx.between(-5, 5)),
        ("140..160", cfx.between(140, 160)),
        ("-7..-5", cfx.between(-7, -5)),
        ("140:160", cfx.between(140, 160)),
        ("between 140 and 160", cfx.between(140, 160)),
        ("150", cfx.reach(150)),
        ("= 150", cfx.reach(150)),
        ("reach -15", cfx.reach(-15)),
        ("exactly 150", cfx.reach(150)),
    ],
)
def test_targets_as_text(text: str, target: Any) -> None:
    assert parse_target(text) == target
    assert as_target(text) == target


@pytest.mark.parametrize(
    "target",
    [
        cfx.increase(percent=20),
        cfx.decrease(by=3.5),
        cfx.change(by=2),
        cfx.reach(-0.25),
        cfx.reach(percent=-20),
        cfx.reach(by=3),
        cfx.at_least(-3),
        cfx.at_most(3),
        cfx.between(-5, -1),
    ],
    ids=str,
)
def test_the_text_of_a_target_can_be_read_again(target: Target) -> None:
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("text", ["", "abc", "20%", "[1]", "1 2", "--5", "=±5", "nan", "inf"])
def test_other_texts_are_no_targets(text: str) -> None:
    with pytest.raises(cfx.TargetError, match=r"the target must be like '\+20%'"):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (">= +20%", "'>=' takes an output, not a change: write '+20%' for at least 20% more."),
        (">= 20%", "write '+20%' for at least 20% more."),
        ("<= -20%", "write '-20%' for at least 20% less."),
        ("at most 5 %", "'at most' takes an output, not a change: write '-5 %' for at least 5 % l"),
        (">= +500", "write '+500' for at least 500 more."),
    ],
)
def test_comparisons_with_a_change_name_the_text_to_write(text: str, advice: str) -> None:
    with pytest.raises(cfx.TargetError, match=re.escape(advice)):
        parse_target(text)


def rising(rows: pd.DataFrame) -> Any:
    return rows["a"] + rows["b"]


SPACE = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)})
QUERY = {"a": 2.0, "b": 2.0}


def test_explain_accepts_a_text() -> None:
    answer = cfx.explain(rising, QUERY, SPACE, "+25%", budget=60, rng=0)
    same = cfx.explain(rising, QUERY, SPACE, cfx.increase(percent=25), budget=60, rng=0)
    assert answer.target == cfx.increase(percent=25)
    assert list(answer.best.row) == list(same.best.row)
    assert answer.reached


def test_a_table_of_queries_accepts_one_text_or_one_for_each() -> None:
    queries = pd.DataFrame([QUERY, QUERY])
    alike = cfx.explain_many(rising, queries, SPACE, ">= 5", budget=60, rng=0)
    assert [answer.target for answer in alike] == [cfx.at_least(5)] * 2
    each = cfx.explain_many(rising, queries, SPACE, [">= 5", "-1"], budget=60, rng=0)
    assert [answer.target for answer in each] == [cfx.at_least(5), cfx.decrease(by=1)]


def test_what_if_accepts_a_text() -> None:
    assert cfx.what_if(rising, QUERY, {"a": 3.0}, SPACE, ">= 5").reached


def test_explain_refuses_other_texts() -> None:
    with pytest.raises(cfx.TargetError, match=r"the target must be like .*; got 'more'\."):
        cfx.explain(rising, QUERY, SPACE, "more", budget=60)
