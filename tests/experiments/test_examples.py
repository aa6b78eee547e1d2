"""Consistency and the composition example: functions and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments import composition, consistency, functions, results, runs

import bayescfx as cfx
from tests.experiments.conftest import verdicts

QUICK = runs.Settings(quick=True)


# -- Composition --


def test_functions_pass_through_both_known_points_and_differ() -> None:
    ends = np.array([0.0, 1.0])
    for family in composition.FAMILIES:
        members = [composition.member(family, k) for k in range(4)]
        for f in members:
            assert f(ends) == pytest.approx([0.0, 2.0], abs=1e-12)
            assert composition.highest(f) == pytest.approx(1.0, abs=1e-3)
        middle = {round(float(f(np.array([0.87]))[0]), 6) for f in members}
        assert len(middle) == 4


def test_composition_finds_the_value_in_between(tmp_path: Path) -> None:
    result = results.save("composition", composition.run(QUICK), tmp_path)
    for part in result["families"].values():
        assert part["methods"]["Bayes-CFX"]["solved"] == 1.0
        assert part["methods"]["Bayes-CFX"]["median"] <= 6
    composition.draw(result, tmp_path / "composition.png")
    assert "| convex: 2xᵖ, p 2 … 8 |" in composition.tell(result)


def composed(ours: list[int | None], naive: list[int | None]) -> dict[str, Any]:
    def one(calls: list[int | None]) -> dict[str, Any]:
        return {"calls": calls, "median": 3.0, "solved": 1.0}

    part = {"highest": [1.0] * len(ours), "methods": {"Bayes-CFX": one(ours), "Bayes": one(naive)}}
    return {"budget": 25, "level": 0.99, "members": len(ours), "families": {"f": part}}


def test_a_miss_counts_as_one_call_more_than_the_budget() -> None:
    result = composed([2, 3, 2, 4], [9, None, 8, 7])
    assert verdicts(composition, result) == {
        "composition.exists": "reproduced",
        "composition.attains": "reproduced",
        "composition.not-guaranteed": "reproduced",
        "composition.better": "reproduced",
    }
    assert "| f | 3 (100%) | 3 (100%) | 4 / 0 / 0 |" in composition.tell(result)
    turned = verdicts(composition, composed([9, None, 8, 7], [2, 3, 2, 4]))
    assert turned["composition.better"] == "contradicted"
    assert turned["composition.not-guaranteed"] == "contradicted"


# -- Consistency --


def test_the_target_lies_beyond_the_jump() -> None:
    (case,) = (c for c in functions.CASES if c.without is not None)
    X = np.random.default_rng(0).random((100_000, 2))
    outside = case.f(X) < 2.0
    assert case.f(X[outside]).max() <= case.without
    assert case.f(np.array([case.look]))[0] == pytest.approx(case.target, abs=0.2)


def test_known_optima_of_the_functions_are_right_from_every_query() -> None:
    rng = np.random.default_rng(0)
    for case in functions.CASES:
        outputs = case.f(rng.random((200_000, case.dimension)))
        queries = case.queries(5)
        assert len(np.unique(queries, axis=0)) == 5
        for query in queries:
            potential = cfx.reach(case.target).potential(float(case.f(query[None])[0]))
            seen = potential.value(outputs) / potential.peak
            assert seen.max() <= case.optimum(query) + 1e-12, case.name
            assert seen.max() > 0.6 * case.optimum(query), case.name


def test_the_shortfall_falls(tmp_path: Path) -> None:
    result = results.save("consistency", consistency.run(QUICK), tmp_path)
    for part in result["cases"].values():
        for summary in part["methods"].values():
            assert all(np.diff(summary["median"]) <= 0)
    smooth = result["cases"]["smooth, 1 feature"]["methods"]
    assert smooth["Bayes-CFX"]["at"][0][-1] < 1e-4
    consistency.draw(result, tmp_path / "consistency.png")
    assert "**The target out of reach.**" in consistency.tell(result)
    assert "**The jump.**" in consistency.tell(result)
    assert "Bayes-CFX (defaults)" in consistency.details(result)


def fallen(**last: list[float]) -> dict[str, Any]:
    """Return a result with one function, and the shortfall at the last call of each query."""
    methods: dict[str, dict[str, Any]] = {
        m.name: {"median": [1.0, float(np.median(last[m.name[-3:]]))], "at": []}
        for m in consistency.METHODS
    }
    for name, one in methods.items():
        one["at"] = [[1.0, value, value] for value in last[name[-3:]]]
    case = {"optimum": [1.0], "outside": None, "methods": methods}
    numbers = {"budget": 200, "queries": 4, "floor": 1e-8, "calls": [30, 100, 200]}
    return numbers | {"cases": {"one": case}}


LAST = {"dom": [1e-3] * 4, "S-B": [1e-9] * 4, "yes": [2e-8] * 4, "CFX": [1e-8] * 4}
LAST |= {"ts)": [1e-9] * 4}


def test_a_tie_as_printed_counts_for_both() -> None:
    text = consistency.tell(fallen(**LAST))
    assert "| one | 1.0e-03 | < 2e-8 | < 2e-8 | < 2e-8 |" in text
    assert "as printed: Random 0, L-BFGS-B 1, Bayes 1, Bayes-CFX 1." in text


def test_consistency_is_judged_over_questions() -> None:
    found = verdicts(consistency, fallen(**LAST))
    assert found == {
        "consistency.theorem": "proved",
        "consistency.falls": "reproduced",
        "consistency.finds": "reproduced",
        "consistency.composition": "reproduced",
    }
    mixed = verdicts(consistency, fallen(**(LAST | {"CFX": [1e-8, 1e-8, 0.5, 0.5]})))
    assert mixed["consistency.finds"] == "undecided"
    behind = verdicts(consistency, fallen(**(LAST | {"CFX": [0.5] * 4})))
    assert behind["consistency.finds"] == behind["consistency.composition"] == "contradicted"
