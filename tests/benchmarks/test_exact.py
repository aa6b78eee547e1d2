"""The checks of the benchmark of proofs."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.exact import contradictions, gap
from benchmarks.treecf_answers import contradiction, optimum_difference


def record(**values: Any) -> dict[str, Any]:
    """Return the record of a proven answer, with some values replaced."""
    proven = {"row": 1, "proof": "optimal", "cost": 2.0, "bound": 2.0, "distance": 1.6}
    return {**proven, **values}


def test_a_lower_cost_contradicts_a_bound() -> None:
    lower = record(proof=None, bound=None, cost=1.9)
    assert contradictions({"sweep": [record()], "proof": [record()], "exact": [record()]}) == []
    assert len(contradictions({"sweep": [lower], "proof": [record()], "exact": [record()]})) == 2


def test_an_answer_contradicts_out_of_reach() -> None:
    nothing = record(proof="out of reach", cost=None, bound=None)
    sides = {"sweep": [record()], "proof": [nothing], "exact": [record()]}
    assert "out of reach" in contradictions(sides)[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [({}, 0.0), ({"proof": "within 100 %", "bound": 1.0}, 0.5), ({"proof": None, "cost": None}, 1)],
)
def test_gap(values: dict[str, Any], expected: float) -> None:
    assert gap(record(**values)) == expected


def test_optima_of_both_sides_are_compared() -> None:
    same = {"proof": "optimal", "grid_cost": 2.0, "is_on_grid": True}
    assert optimum_difference(record(), same) == pytest.approx(0.0)
    assert optimum_difference(record(distance=0.9), same) == pytest.approx(0.0)
    assert contradiction(record(), same) == ""
    assert "treecf's is not optimal" in contradiction(record(), {**same, "grid_cost": 2.2})
    assert "ours is not optimal" in contradiction(record(), {**same, "grid_cost": 1.8})
    assert contradiction(record(), {**same, "grid_cost": 1.8, "is_on_grid": False}) == ""
    assert "infeasible" in contradiction(record(), {"proof": "certified"})
