"""The reproduction in small: every experiment runs, tells, draws, and gives the same bytes."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments import (
    composition,
    environment,
    fig3_acquisition,
    fig3_words,
    fig4_adult,
    results,
    runs,
    scenes,
    table2_taxi,
    table2_words,
    taxi,
)
from experiments.__main__ import EXPERIMENTS, main

import bayescfx as cfx
from tests.experiments.conftest import FOLDER, ROOT, needs_data

QUICK = runs.Settings(quick=True)


# ── rules for all experiments ──


def test_experiments_use_the_public_interface_only() -> None:
    inside = set()
    for path in sorted((ROOT / "experiments").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayescfx"):
                inside.add((str(node.module), *(name.name for name in node.names)))
    # the array alias, classic EI to compare with, how to say "as in the paper", and its theory
    assert inside <= {
        ("bayescfx.arrays", "Array"),
        ("bayescfx.arrays", "Array", "Mask"),
        ("bayescfx.acquisition", "expected_improvement"),
        ("bayescfx.search.surrogate", "SurrogateSettings"),
    } | {one for one in inside if one[0].startswith("bayescfx.theory.")}


def test_the_same_result_is_the_same_bytes() -> None:
    result = {"b": np.array([0.1 + 0.2, np.inf]), "a": {"n": np.int64(3), "ok": np.bool_(True)}}
    text = results.dumps(result)
    assert text == results.dumps(result)
    assert json.loads(text) == {"b": [0.3, None], "a": {"n": 3, "ok": True}}


def test_an_object_does_not_get_into_a_result() -> None:
    with pytest.raises(TypeError, match="AEP does not belong into a result"):
        results.plain({"x": cfx.AEP(0.0, 1.0)})


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    family = next(iter(composition.FAMILIES))
    tasks = [(family, 0, 0), (family, 1, 0)]
    assert runs.each(composition.search, tasks, "two", jobs=2) == runs.each(
        composition.search, tasks, "one", jobs=1
    )


def test_a_trace_that_ended_keeps_its_best() -> None:
    assert runs.padded(np.array([0.1, 0.9]), 4).tolist() == [0.1, 0.9, 0.9, 0.9]
    assert runs.calls_to(np.array([0.1, 0.9, 1.0]), 0.9) == 2
    assert runs.calls_to(np.array([0.1]), 0.9) is None
    assert runs.median_calls([3, None, 5]) == 5.0
    assert runs.median_calls([3, None, None]) is None


# ── figure 3 ──


def test_the_acquisition_concentrates_on_the_target_set() -> None:
    scene = scenes.breast_cancer(25)
    shares = fig3_acquisition.shares((scene, "random", 3))
    area = float(scene.inside.mean())
    assert shares["EI-CFX, log-odds"][-1] > 3 * area
    assert shares["EI-CFX, log-odds"][-1] > shares["EI on ρ∘f"][-1]


# ── searches ──


@needs_data
def test_the_taxi_grid_and_the_space_allow_the_same_rows() -> None:
    found = taxi.load(FOLDER, rounds=2)
    query = found.query()
    assert (query["passenger_count"], query["weekday"], query["hour"]) == (1, 0, 10)
    rows = taxi.grid(found, query, 7)
    region = found.space(query).around(query)
    assert region.contains(region.encode(rows)).all()
    assert set(rows["weekday"]) == {5, 6, 0, 1, 2}
    assert (rows["minute_of_day"] // 60 == rows["hour"]).all()


# ── words follow numbers ──


def taxi_row(percent: int, bound: int | None, share: float, status: str) -> dict[str, Any]:
    """Return a row of Table 2 as `run` makes it."""
    out = status != "reached"
    brute = {"potential": 0.9, "percent": 46.6 if out else percent, "moves": [0, 1, 0, 0.5]}
    answer = {"status": status, "calls": 9, "percent": percent, "moves": [1, 0, 0, -0.5]}
    return {
        "percent": percent,
        "bound": bound,
        "brute": brute | {"satisfiable": not out, "accepted": 0 if out else 7, "rows": 100},
        "share": [share],
        "share_early": [0.5 * share],
        "answers": [answer],
    }


def taxi_result(share: float, status: str) -> dict[str, Any]:
    """Return a result of Table 2 in which targets above 20 % are out of reach."""
    rows = [
        taxi_row(percent, bound, share, "reached" if percent <= 20 else status)
        for percent, bound, _, _ in table2_words.PAPER
    ]
    part = {
        "seeds": 1,
        "query": {"distance": 0.5, "minute_of_day": 639.0, "hour": 10.0},
        "seconds": 86.0,
        "output": 4.8,
        "reachable_percent": [-40.0, 47.6],
        "shorter_trip_percent": 20.0,
        "rows": rows,
    }
    numbers = {"trips_read": 9, "trips": 8, "faster_than_30_km_h": 0.05, "rounds": 100}
    numbers |= {"distance_sd": 3.9, "rmse_log_train": 0.17, "budget": 200, "early": 100}
    variants = {variant.name: part for variant in table2_taxi.VARIANTS}
    return numbers | {"matches": 55, "distances": 2_001, "variants": variants}


def test_table_2_says_what_its_numbers_say() -> None:
    good = table2_words.tell(taxi_result(0.995, "unreachable"))
    assert "yes on the scale of log (lowest 0.9950 of 20 rows" in good
    assert "0.4975 if every search had ended at call 100" in good
    assert '15 of 15 searches for targets out of reach end as "unreachable", 0 as' in good
    assert "hour 9 with the minute of 10:39" in good
    assert "1.0 with it" not in good
    assert "2.0 without a cost, 2.0 with it" in good
    bad = table2_words.tell(taxi_result(0.98, "best_guess"))
    assert "**no** on the scale of log (lowest 0.9800" in bad
    assert "0 of 15 searches" in bad
    assert "brute force gets up to 93% of the way" in bad


def test_a_figure_3_in_which_the_naive_acquisition_wins_says_so() -> None:
    curve = {
        row: {"median": [0.1] * 7 + [last]}
        for row, last in zip(fig3_words.ROWS, (0.4, 0.9, 0.95), strict=True)
    }
    scene = {
        "features": ["a", "b"],
        "f_query": 0.9,
        "lowest": 0.1,
        "log_odds_span": 5.0,
        "area": 0.1,
        "share": dict.fromkeys(fig3_words.DESIGNS, curve | {"apart": 0.5}),
    }
    scenes_ = dict.fromkeys(fig3_words.SCENES, scene)
    text = fig3_words.tell({"scenes": scenes_, "epsilon": 0.1, "seeds": 20})
    assert "ahead of EI on ρ∘f at n = 8 in 0 of 6 cases" in text
    assert "**Contradicts the paper in one point.**" in text
    assert "90% on breast cancer" in text
    assert "less than half of the mass is in the set in 6 of 6 cases" in text


# ── everything, in small ──


@pytest.mark.slow
@needs_data
@pytest.mark.timeout(1200)
def test_everything_runs_and_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    pages = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        assert main(["--quick", "--data", str(FOLDER), "--out", str(out), "--jobs", jobs]) == 0
        files = sorted({*(out / "results").glob("*.json")} - {out / "results" / environment.FILE})
        assert len(files) == len(EXPERIMENTS)
        texts = [path.read_text() for path in (*files, *sorted(out.glob("*.md")))]
        pages.append([text.partition("## Where it was run")[0] for text in texts])
    assert pages[0] == pages[1]


@pytest.mark.slow
@needs_data
def test_every_satisfiable_taxi_row_reaches_99_percent_of_brute_force() -> None:
    result = results.plain(table2_taxi.run(runs.Settings(quick=True, data=FOLDER)))
    for part in result["variants"].values():
        for row in part["rows"]:
            if row["brute"]["satisfiable"]:
                assert min(row["share"]) >= 0.99
            assert all(answer["verified"] for answer in row["answers"])


@pytest.mark.slow
@needs_data
def test_adult_is_solved_by_bayes_cfx_in_30_calls() -> None:
    result = results.plain(fig4_adult.run(runs.Settings(quick=True, data=FOLDER)))
    main_reading = result["readings"]["gain - loss"]
    assert 0.83 < main_reading["accuracy"] < 0.86
    assert main_reading["methods"]["Bayes-CFX"]["potential"]["mean"][-1] > 0.99
