"""Calls to treecf, which runs in a separate environment, and the comparison with its answers.

treecf minimises the distance and a price per changed feature. Ours is the same sum where the
distance is at least 1; below, the price is smaller in proportion. So our optimum is also treecf's
if its distance is at least 1, and otherwise it costs no more than treecf's.

treecf's grid is made of multiples of the step in floating point (206 * 0.001 is above 0.206), and
it leaves the grid in cells without a grid point. Its answers are therefore placed on the decimal
grid of the question; those that miss the target then, answer another question and are not compared.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.space.cost import Cost
from benchmarks.readable import Subject

SAME_COST = 1e-5  # on continuous features both sides stop at different floats beside an edge
_READ = ("lgbm", "xgboost", "catboost", "hist", "boosting", "forest")


def can_read(asked: Subject) -> bool:
    """Return whether treecf reads the model and its distance is the same."""
    return asked.data in ("diabetes", "friedman-12") and asked.model in _READ


def answers(
    asked: Subject, accepted: Mapping[int, Any], python: Path, seconds: float
) -> list[dict[str, Any]] | str:
    """Return treecf's answers to the questions, or the reason why there are none.

    Parameters
    ----------
    asked : Subject
        The model and its table.
    accepted : dict of int to intervals
        The accepted outputs of each row.
    python : Path
        The Python of treecf's environment.
    seconds : float
        The time limit of a question.
    """
    region = asked.space.around(asked.X.iloc[0])
    questions = []
    for row, intervals in accepted.items():
        query = [float(value) for value in asked.X.iloc[row]]
        questions.append({"row": row, "query": query, "accepted": [float(v) for v in intervals[0]]})
    request = {
        "names": [str(name) for name in asked.X],
        "low": region.low.tolist(),
        "high": region.high.tolist(),
        "step": region.step.tolist(),
        "scale": region.scale.tolist(),
        "per_change": Cost.per_change,
        "seconds": seconds,
        "questions": questions,
    }
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.pickle"
        model.write_bytes(pickle.dumps(asked.estimator))
        path = Path(folder) / "request.json"
        path.write_text(json.dumps({**request, "model": str(model)}))
        script = Path(__file__).with_name("peer_treecf.py")
        threads = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "PYTHONPATH": ""}
        done = subprocess.run(
            [str(python), "-P", str(script), str(path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **threads},
        )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [place_on_grid(asked, accepted[record["row"]], record) for record in records]


def place_on_grid(asked: Subject, accepted: Any, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the cost on our grid, and whether the answer reaches the target there.

    Parameters
    ----------
    asked : Subject
        The model and its table.
    accepted : intervals
        The accepted outputs.
    record : dict
        The record of treecf's answer; returned as it is if there is none.
    """
    if "answer" not in record:
        return record
    region = asked.space.around(asked.X.iloc[record["row"]])
    codes = region.on_grid(np.array([record["answer"]], dtype=np.float64))
    output = float(asked.estimator.predict(asked.space.decode(codes))[0])
    is_hit = any(low <= output <= high for low, high in accepted)
    cost = float(region.cost(codes)[0])
    return {**record, "grid_cost": cost, "is_on_grid": is_hit and bool(region.contains(codes)[0])}


def optimum_difference(mine: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Return the relative difference of two proven optima; None if they can't be compared."""
    is_optimal = mine["proof"] == "optimal" and other["proof"] == "optimal"
    if not is_optimal or not other["is_on_grid"]:
        return None
    return abs(_cost(other) / float(mine["cost"]) - 1.0)


def contradiction(mine: dict[str, Any], other: dict[str, Any]) -> str:
    """Return how a proof of one side excludes the answer of the other; empty if it does not."""
    has_answer = other.get("is_on_grid", False)
    if mine["proof"] == "out of reach" and has_answer:
        return "ours says out of reach, treecf has an answer"
    if mine["cost"] is not None and other["proof"] == "certified":
        return f"treecf says infeasible, ours costs {mine['cost']}"
    is_optimal = mine["proof"] == "optimal"
    if is_optimal and has_answer and _cost(other) < mine["cost"] * (1 - SAME_COST):
        return f"ours is not optimal: {mine['cost']}, treecf {_cost(other)}"
    difference = optimum_difference(mine, other)
    if difference is not None and difference > SAME_COST:
        return f"treecf's is not optimal: {_cost(other)}, ours {mine['cost']}"
    return ""


def _cost(record: dict[str, Any]) -> float:
    """Return what treecf minimises, on our grid."""
    return float(record["grid_cost"])


def compare(ours: Sequence[dict[str, Any]], theirs: list[dict[str, Any]] | str) -> dict[str, Any]:
    """Return treecf's figures, and how far its optima are from ours."""
    if isinstance(theirs, str):
        return {"error": theirs}
    seconds = np.array([record["seconds"] for record in theirs])
    is_proven = np.array([record["proof"] in ("optimal", "certified") for record in theirs])
    differences = []
    problems = []
    for mine, other in zip(ours, theirs, strict=True):
        difference = optimum_difference(mine, other)
        if difference is not None:
            differences.append(difference)
        problem = contradiction(mine, other)
        if problem:
            problems.append(f"row {mine['row']}: {problem}")
    our_seconds = [record["seconds"] for record in ours]
    our_proofs = [record["proof"] in ("optimal", "out of reach") for record in ours]
    return {
        "n": len(theirs),
        "our_proven": float(np.mean(our_proofs)),
        "our_median": float(np.median(our_seconds)),
        "our_worst": float(np.max(our_seconds)),
        "proven": float(np.mean(is_proven)),
        "proven_1s": float(np.mean(is_proven & (seconds <= 1.0))),
        "median": float(np.median(seconds)),
        "worst": float(np.max(seconds)),
        "compared": len(differences),
        "off_grid": sum(not record.get("is_on_grid", True) for record in theirs),
        "difference": max(differences, default=None),
        "contradictions": problems,
    }
