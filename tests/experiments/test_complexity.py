"""CFX-Existence, Localopt and Globalopt: experiments, and errors that they detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments import circuits, existence, localopt, results, runs

from tests.experiments.conftest import verdicts

QUICK = runs.Settings(quick=True)


def searched(literal: bool, solutions: int, status: str, **other: Any) -> dict[str, Any]:
    """Return the record of a search as `satisfy` returns it."""
    row: dict[str, Any] = {
        "variables": 6,
        "seed": 0,
        "literal": literal,
        "solutions": solutions,
        "agree": True,
    }
    row |= {"status": status, "calls": 30}
    if status == "reached":
        row |= {"certificate": True, "rows_to_check": 2, "wrong_neighbours": 3, "refused": 3}
    return row | other


def make_result(*searches: dict[str, Any]) -> dict[str, Any]:
    sets = {"outputs": 3, "sets": 7, "empty": 0}
    return {"budget": 150, "searches": [*searches], "algebra": sets, "one_to_one": sets}


def test_satisfiable_formulas_are_satisfied(tmp_path: Path) -> None:
    result = results.save("existence", existence.run(QUICK), tmp_path)
    for row in result["searches"]:
        assert (row["status"] == "reached") == (row["satisfied"] == row["clauses"])
        assert (row["solutions"] > 0) == (row["most_satisfiable"] == row["clauses"])
        assert ("certificate" in row) == (row["status"] == "reached")
        assert row["agree"]
    existence.draw(result, tmp_path / "existence.png")
    assert "## Theorem 2.1" in existence.tell(result)


def test_no_formula_is_satisfied_by_the_query() -> None:
    for seed in range(200):  # without the rule, one in forty would be
        assert existence.formula(6, 28, seed).value(np.zeros((1, 6)))[0] == 0.0


def test_certificates_are_counted_for_found_assignments() -> None:
    result = make_result(
        searched(True, 4, "reached"),
        searched(False, 4, "reached"),
        searched(True, 0, "best_guess", seed=1),
        searched(False, 0, "unreachable", seed=1),
    )
    assert "| f = the formula | 1 | 1 | 30 | 0 | 0 | 1 of 1 | 1 | 0 | 0 |" in existence.tell(result)
    named = {claim.key: claim for claim in existence.claims(result)}
    assert named["existence.verify"].ours.startswith("2 of 2 certificates hold")
    assert named["existence.verify"].verdict == "reproduced"


def test_a_satisfiable_formula_called_unreachable_is_in_the_table() -> None:
    text = existence.tell(
        make_result(searched(True, 4, "unreachable"), searched(False, 4, "reached"))
    )
    assert "| f = the formula | 1 | 0 | – | 0 | 1 | 0 of 0 |" in text
    assert 'called "unreachable": 1 of 2 searches.' in text
    assert "no proof" in text


@pytest.mark.parametrize("wrong", [{"certificate": False}, {"refused": 2}, {"rows_to_check": 9}])
def test_a_failing_certificate_contradicts_the_claim(wrong: dict[str, Any]) -> None:
    result = make_result(searched(True, 4, "reached", **wrong))
    assert verdicts(existence, result)["existence.verify"] == "contradicted"


def test_a_reduction_that_misses_an_assignment_contradicts_the_claim() -> None:
    result = make_result(searched(True, 4, "reached", agree=False))
    assert verdicts(existence, result)["existence.reduction"] == "contradicted"


def test_every_set_of_the_algebra_has_a_counterfactual() -> None:
    assert existence.algebra([0.0, 1.0, 1.0, 2.0]) == {"outputs": 2, "sets": 3, "empty": 0}
    assert existence.algebra([1.0, 1.0]) == {"outputs": 0, "sets": 0, "empty": 0}


# -- Local and global optima --


@pytest.fixture(scope="module")
def local() -> dict[str, Any]:
    plain: dict[str, Any] = results.plain(localopt.run(runs.Settings(quick=True)))
    return plain


def test_ends_of_the_recurrence_are_certified(local: dict[str, Any], tmp_path: Path) -> None:
    for row in (*local["exact"], *local["differences"]):
        assert row["certified"]
        assert row["residual"] <= local["delta"]
    found = verdicts(localopt, local)
    assert found.pop("globalopt.zero-gradient") == "contradicted"
    assert found.pop("localopt.cls-complete") == found.pop("globalopt.cls-hard") == "proved"
    found.pop("localopt.local")  # needs more than two starts
    assert set(found.values()) == {"reproduced"}
    localopt.draw(local, tmp_path / "local.png")
    assert "| rho | rho | yes |" in localopt.tell(local)


def test_a_missing_witness_contradicts_the_claim(local: dict[str, Any]) -> None:
    rows = [
        row | ({"witness": None} if row["broken"] == "rho" else {}) for row in local["violations"]
    ]
    found = verdicts(localopt, local | {"violations": rows})
    assert found["localopt.violations"] == "contradicted"


def test_the_residual_is_that_of_the_recurrence() -> None:
    X = np.random.default_rng(1).random((5, 2))
    step = 1e-6
    for g in (localopt.INSIDE, localopt.OUTSIDE):
        for j in range(2):
            nudge = step * np.eye(2)[j]
            slope = (g(X + nudge) - g(X - nudge)) / (2 * step)
            assert g.gradient(X)[:, j] == pytest.approx(slope, abs=1e-6)
    assert localopt.residual(localopt.INSIDE, np.array([0.5, 0.5])) > circuits.DELTA
