"""Constraints that conflict: the smallest sets, against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data import Categorical, Integer, Real
from bayescfx.space.conflict import find_conflict
from bayescfx.space.constraint import Constraint, constraints, relaxed_regions, without
from bayescfx.space.region import Region
from bayescfx.space.sampling import draw_candidates
from bayescfx.space.space import Space

WIDE = {name: Real(0, 2) for name in "abcd"}
WHOLE = {name: Integer(0, 3) for name in "abc"}
ZERO = dict.fromkeys("abcd", 0.0)


def conflict(space: Space, query: Any = ZERO, **more: Any) -> cfx.InfeasibleError:
    """Return the error of a question whose constraints conflict."""
    with pytest.raises(cfx.InfeasibleError) as caught:
        cfx.explain(lambda rows: rows["a"], query, space, cfx.at_least(5), rng=0, **more)
    return caught.value


@pytest.mark.parametrize("budget", [20, 300])
def test_all_constraints_of_a_conflict_are_named(budget: int) -> None:
    space = Space(WIDE).fix("d").max_changes(2).between({"a": (0, 1.5)})
    for name in "abc":
        space = space.require(f"{name} >= 1")
    error = conflict(space, budget=budget)
    assert error.constraints == (
        "at most 2 changes",
        "rule 'a >= 1'",
        "rule 'b >= 1'",
        "rule 'c >= 1'",
    )
    assert str(error).endswith(
        "These constraints conflict: at most 2 changes, rule 'a >= 1', rule 'b >= 1' and rule "
        "'c >= 1'. Relax one of them."
    )


def test_limits_fixed_features_and_rules_may_conflict() -> None:
    fixed = conflict(Space(WIDE).fix("a").only_up("b").require("a >= 1"))
    assert fixed.constraints == ("'a' being fixed", "rule 'a >= 1'")
    limit = conflict(Space(WIDE).between({"a": (0, 1)}).only_up("b").require("a + d >= 3.5"))
    assert limit.constraints == ("limit on 'a' (between 0 and 1)", "rule 'a + d >= 3.5'")
    together = conflict(Space(WIDE).together("a", "b").fix("b").require("a >= 1"))
    assert together.constraints == (
        "moving 'a' and 'b' together",
        "'b' being fixed",
        "rule 'a >= 1'",
    )
    down = conflict(Space(WIDE).only_down("c").require("c >= 1"))
    assert down.constraints == ("limit on 'c' (only down)", "rule 'c >= 1'")


def test_what_is_not_proven_is_not_stated_as_a_fact() -> None:
    space = Space(WIDE).fix("a").require(lambda rows: rows["a"] > 1, label="big a")
    error = conflict(space)
    assert error.constraints == ("'a' being fixed", "rule 'big a'")
    assert "conflict as far as 2048 tried rows show: 'a' being fixed" in str(error)
    alone = conflict(Space(WIDE).fix("b").require("a * c >= 5"))
    assert alone.constraints == ("rule 'a * c >= 5'",)
    assert "This constraint alone forbids every row" in str(alone)


def test_levels_conflict_with_a_rule_about_them() -> None:
    space = Space({**WIDE, "job": Categorical(["clerk", "cook", "pilot"])})
    query = {**ZERO, "job": "cook"}
    bound = space.between({"job": ["clerk", "cook"]}).require("job in ['pilot']")
    assert conflict(bound, query).constraints == (
        "limit on 'job' (only 'clerk', 'cook')",
        "rule 'job in ['pilot']'",
    )


def test_many_fixed_features_take_little_time() -> None:
    names = [f"x{j}" for j in range(80)]
    space = Space({name: Real(0, 1) for name in names}).fix(*names[:70])
    space = space.require("x0 + x75 >= 1.5").require("x76 <= 0.5")
    query = dict.fromkeys(names, 0.0)
    with pytest.raises(cfx.InfeasibleError) as caught:
        cfx.explain(lambda rows: rows["x1"], query, space, 1.0, rng=0)
    assert caught.value.constraints == ("'x0' being fixed", "rule 'x0 + x75 >= 1.5'")


def random_space(seed: int) -> tuple[Region, list[Constraint]]:
    """Return a small region with random constraints, and these."""
    rng = np.random.default_rng(seed)
    space = Space(WHOLE)
    for name in rng.permutation(list("abc"))[: rng.integers(3)]:
        verb = rng.integers(3)
        if verb == 0:
            space = space.fix(str(name))
        elif verb == 1:
            space = space.between({str(name): (0, int(rng.integers(1, 3)))})
        else:
            space = space.only_down(str(name))
    if rng.random() < 0.5:
        space = space.max_changes(int(rng.integers(1, 3)))
    rules = ["a + b >= 4", "b + c >= 3", "a >= 2", "b >= 2", "c >= 2", "a <= b", "a * c >= 4"]
    for rule in rng.permutation(rules)[: rng.integers(1, 5)]:
        space = space.require(str(rule))
    region = space.around({name: int(rng.integers(0, 2)) for name in "abc"})
    return region, constraints(region)


def has_row(region: Region) -> bool:
    rows = region.enumerate(10_000)
    assert rows is not None
    return bool(region.changes(rows).any())


def test_conflicts_are_smallest_sets_by_enumeration() -> None:
    n_conflicts = 0
    rng = np.random.default_rng(0)
    for seed in range(150):
        region, every = random_space(seed)
        found = find_conflict(region, lambda relaxed: draw_candidates(relaxed, rng))
        if has_row(region) or not has_row(without(region, every)):
            assert found is None
            continue
        assert found is not None
        n_conflicts += 1
        assert found.is_proven
        names = set(found.words)
        kept = [each for each in every if each.full_words in names]
        others = [each for each in every if each.full_words not in names]
        assert not has_row(without(region, others))
        for one in kept:
            assert has_row(without(region, [*others, one]))
    assert n_conflicts > 20


def test_a_region_without_a_constraint_has_the_rows_that_only_it_forbids() -> None:
    """Also where rules narrow the limits of features, as lists of levels and blocks do."""
    space = (
        Space({**WHOLE, "job": Categorical(["clerk", "cook", "pilot"])})
        .fix("a")
        .together("b", "c")
        .require("job in ['clerk', 'cook']")
        .max_changes(2)
    )
    query = {"a": 1, "b": 1, "c": 1, "job": "cook"}
    region = space.around(query)
    free = Space({**WHOLE, "job": Categorical(["clerk", "cook", "pilot"])})
    every = free.around(query).enumerate(10_000)
    assert every is not None
    frame = pd.DataFrame(every, columns=["a", "b", "c", "job"])
    moved = frame != every[0]
    sides = np.sign(frame[["b", "c"]] - 1)
    keeps = {
        "'a' being fixed": ~moved["a"],
        "moving 'b' and 'c' together": sides["b"] == sides["c"],
        "rule 'job in ['clerk', 'cook']'": frame["job"] != 2,
        "at most 2 changes": moved.sum(axis=1) <= 2,
    }
    relaxed = {constraint.words: part for constraint, part in relaxed_regions(region)}
    assert set(relaxed) == set(keeps)
    for left_out, part in relaxed.items():
        kept = [mask for words, mask in keeps.items() if words != left_out]
        expected = np.logical_and.reduce(kept)
        assert part.contains(every).tolist() == expected.tolist()
    for pair in itertools.combinations(constraints(region), 2):
        both = without(region, pair)
        left_out_words = [each.words for each in pair]
        kept = [mask for words, mask in keeps.items() if words not in left_out_words]
        assert both.contains(every).tolist() == np.logical_and.reduce(kept).tolist()


def test_limits_beyond_the_data_stay_beyond_them_when_they_are_left_out() -> None:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 20), "b": np.linspace(0, 1, 20)})
    space = Space.from_data(frame).between({"a": (0.5, 3.0)})
    region = space.around(frame.iloc[15])
    [(constraint, relaxed)] = list(relaxed_regions(region))
    assert constraint.full_words == "limit on 'a' (between 0.5 and 3)"
    assert (relaxed.low[0], relaxed.high[0]) == (0.0, 3.0)


def test_a_column_that_identifies_rows_is_not_named_as_a_constraint() -> None:
    frame = pd.DataFrame({"name": [f"customer {k}" for k in range(60)], "a": np.linspace(0, 1, 60)})
    with pytest.warns(cfx.SpaceWarning, match="name"):
        space = Space.from_data(frame)
    region = space.around(frame.iloc[3])
    assert constraints(region) == []
