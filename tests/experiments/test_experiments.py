"""Small versions of all experiments: they run, report, draw, and give the same bytes."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from experiments import (
    composition,
    environment,
    results,
    runs,
)
from experiments.__main__ import EXPERIMENTS, main

import bayescfx as cfx
from tests.experiments.conftest import FOLDER, ROOT, needs_data

QUICK = runs.Settings(quick=True)


# -- Rules for all experiments --


def test_experiments_use_the_public_interface_only() -> None:
    inside = set()
    for path in sorted((ROOT / "experiments").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayescfx"):
                inside.add((str(node.module), *(name.name for name in node.names)))
    # The array alias, classic EI for comparison, the paper's surrogate, and its theory.
    assert inside <= {
        ("bayescfx.arrays", "Array"),
        ("bayescfx.arrays", "Array", "Mask"),
        ("bayescfx.acquisition", "expected_improvement"),
        ("bayescfx.surrogate.fit", "SurrogateSettings"),
    } | {one for one in inside if one[0].startswith("bayescfx.theory.")}


def test_the_same_result_is_the_same_bytes() -> None:
    result = {"b": np.array([0.1 + 0.2, np.inf]), "a": {"n": np.int64(3), "ok": np.bool_(True)}}
    text = results.dumps(result)
    assert text == results.dumps(result)
    assert json.loads(text) == {"b": [0.3, None], "a": {"n": 3, "ok": True}}


def test_an_object_in_a_result_is_refused() -> None:
    with pytest.raises(TypeError, match="AEP does not belong into a result"):
        results.plain({"x": cfx.AEP(0.0, 1.0)})


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    family = next(iter(composition.FAMILIES))
    tasks = [(family, 0, 0), (family, 1, 0)]
    assert runs.each(composition.search, tasks, "two", jobs=2) == runs.each(
        composition.search, tasks, "one", jobs=1
    )


def test_a_trace_that_ended_is_continued_with_its_best() -> None:
    assert runs.padded(np.array([0.1, 0.9]), 4).tolist() == [0.1, 0.9, 0.9, 0.9]
    assert runs.calls_to(np.array([0.1, 0.9, 1.0]), 0.9) == 2
    assert runs.calls_to(np.array([0.1]), 0.9) is None
    assert runs.median_calls([3, None, 5]) == 5.0
    assert runs.median_calls([3, None, None]) is None


# -- All experiments, small --


@pytest.mark.slow
@needs_data
@pytest.mark.timeout(1200)
def test_all_experiments_run_and_give_the_same_bytes_twice(tmp_path: Path) -> None:
    pages = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        assert main(["--quick", "--data", str(FOLDER), "--out", str(out), "--jobs", jobs]) == 0
        files = sorted({*(out / "results").glob("*.json")} - {out / "results" / environment.FILE})
        assert len(files) == len(EXPERIMENTS)
        texts = [path.read_text() for path in (*files, *sorted(out.glob("*.md")))]
        pages.append([text.partition("## Where it was run")[0] for text in texts])
    assert pages[0] == pages[1]
