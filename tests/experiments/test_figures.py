"""Table 1, Figures 1 and 2, and the closed form: results and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments import (
    closed_form,
    fig1_thresholds,
    fig2_potentials,
    results,
    runs,
    table1_properties,
)

from tests.experiments.conftest import verdicts

QUICK = runs.Settings(quick=True)


@pytest.fixture(scope="module")
def figure_1() -> dict[str, Any]:
    plain: dict[str, Any] = results.plain(fig1_thresholds.run(QUICK))
    return plain


def test_thresholds_jump_and_a_bare_potential_jumps_just_as_far(
    figure_1: dict[str, Any], tmp_path: Path
) -> None:
    jump = figure_1["jump_eps1_to_eps2"]
    assert jump["threshold"]["size"] > 1.0
    assert jump["potential"]["size"] == pytest.approx(jump["threshold"]["size"], abs=0.01)
    assert jump["potential, λ = 0.5"]["size"] < 0.05
    assert figure_1["worth_jump"]["potential"] < 0.02
    for dot in figure_1["library"]:
        exact = np.interp(dot["parameter"], figure_1["sweep"], figure_1["curves"]["threshold"])
        assert dot["x"] == pytest.approx(exact, abs=0.06)
    fig1_thresholds.draw(figure_1, tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 10_000
    assert verdicts(fig1_thresholds, figure_1) == {
        "thresholds.brittle": "reproduced",
        "thresholds.points": "contradicted",
        "thresholds.resolved": "contradicted",
        "thresholds.ranks": "reproduced",
    }


def test_the_page_names_the_points_that_are_found(figure_1: dict[str, Any]) -> None:
    named = {claim.key: claim.ours for claim in fig1_thresholds.claims(figure_1)}
    assert named["thresholds.points"] == "3.68 rather than 1.50"
    for eps, x in figure_1["chosen"].items():
        rise = float(fig1_thresholds.f(x)) - figure_1["output"]
        assert rise == pytest.approx(figure_1[eps], abs=2e-3)


def test_the_nearest_of_the_target_set_jumps_where_its_lower_end_passes(
    figure_1: dict[str, Any],
) -> None:
    both = figure_1["hair"]
    assert both["S^ε"]["ratio"] == pytest.approx([1.0742, 1.0764], abs=1e-4)
    for before, after in (both[kind]["x"] for kind in both):
        assert after - before > 0.7
    text = fig1_thresholds.tell(figure_1)
    assert "w = 1.0742 and 1.0764 times" in text


def test_the_ep_family_is_as_defined(tmp_path: Path) -> None:
    result = results.save("two", fig2_potentials.run(QUICK), tmp_path)
    assert result["peak_at"] == [-1.0, 1.0]
    assert result["edge_error"] < 1e-12
    fig2_potentials.draw(result, tmp_path / "two.png")
    found = verdicts(fig2_potentials, result)
    assert found.pop("potentials.annulus") == "contradicted"
    assert set(found.values()) == {"reproduced"}
    assert "## Figure 2" in fig2_potentials.tell(result)


def test_a_jump_in_the_slope_is_detected() -> None:
    class Kinked:
        def value(self, y: Any) -> Any:
            return np.abs(y)

        def slope(self, y: Any) -> Any:
            return np.sign(y)

    kinked: Any = Kinked()
    coarse, fine = fig2_potentials.lipschitz(kinked)["slope"]
    assert fine > 5.0 * coarse


def test_the_closed_form_is_continuous_except_at_the_best_point(tmp_path: Path) -> None:
    result = results.save("form", closed_form.run(QUICK), tmp_path)
    assert result["formula_error"] < 1e-12
    left, right = result["slopes"]["other point"]
    assert abs(left) < 1e-6
    assert abs(right) < 1e-6
    assert verdicts(closed_form, result) == {
        "closed-form.formula": "reproduced",
        "closed-form.printed": "contradicted",
        "closed-form.roots": "reproduced",
        "closed-form.continuous": "reproduced",
        "closed-form.at-data": "contradicted",
        "closed-form.precision": "contradicted",
    }
    closed_form.draw(result, tmp_path / "form.png")
    assert "Proposition 3.1" in closed_form.tell(result)


def test_the_slope_along_the_line_is_that_of_the_value() -> None:
    x = np.linspace(0.52, 0.88, 9)
    step = 1e-6
    ahead, back = (closed_form.acquired(x + by, 0.0)[0] for by in (step, -step))
    assert closed_form.acquired(x, 0.0)[1] == pytest.approx((ahead - back) / (2 * step), abs=1e-6)


def test_a_violated_property_is_detected() -> None:
    rows = [
        {"model": m, "property": name, "reached": True, "verified": True, "kept": m != "stairs"}
        | {"moved": 2 if name == "no cost" else 1}
        for m in ("linear", "stairs")
        for name in table1_properties.PROPERTIES
    ]
    found = table1_properties.claims({"rows": rows})
    assert {claim.verdict for claim in found[:-1]} == {"contradicted"}
    assert "1 of 2 models" in found[0].ours
    assert found[-1].verdict == "reproduced"
    assert "+1.00 features fewer" in found[-1].ours


def test_the_rules_of_table_1_are_tested_on_the_rows() -> None:
    kept = table1_properties.ask(("linear", "same direction"))
    assert (kept["reached"], kept["verified"], kept["kept"]) == (True, True, True)
