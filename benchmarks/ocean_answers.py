"""Forests that OCEAN can read, calls to it in its own environment, and the comparison of answers.

OCEAN (`oceanpy`) reads classifiers only and minimises the sum of the changes of the columns as they
are. So tables are divided by the units of change first. OCEAN has no price for a changed feature;
ours is made negligible: a unit of change costs 1,000 here, and a changed feature 0.2. OCEAN answers
with the float32 beside a threshold, ours with the float64, so that distances differ a little.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import bayescfx as cfx
from benchmarks.mixed import available, frame

UNIT_COST = 1000.0
SAME_DISTANCE = 1e-2  # at most 30 changed features of 0.2 / 1,000, and rounding to float32
#: Tables, with the number of trees and their depth.
CELLS = (("cancer", 10, None), ("cancer", 20, None), ("adult", 10, 6))


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted forest for two classes, and the space of its questions."""

    X: pd.DataFrame  # in units of change
    model: Any
    space: cfx.Space

    def label(self, row: int) -> int:
        """Return the class that the answer must have: the other one."""
        return 1 - int(self.model.predict(self.X.iloc[[row]].to_numpy())[0])

    def target(self, row: int) -> Any:
        """Return the same as a target for the probability of class 1; a tie is class 0."""
        above = float(np.nextafter(0.5, 1.0))
        return cfx.at_least(above) if self.label(row) else cfx.at_most(0.5)

    def rows(self, n: int) -> list[int]:
        """Return the rows to ask about."""
        return [int(row) for row in np.random.default_rng(0).permutation(len(self.X))[:n]]


def make_forest(data: str, n_trees: int, depth: int | None) -> Forest | None:
    """Return a fitted forest; None, with a message, if the table is missing."""
    if not available(data):
        return None
    if data == "cancer":
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        X = X.rename(columns=lambda name: name.replace(" ", "_"))
    else:
        rows = frame(data)
        X, y = rows.X.loc[:, ~np.asarray(rows.has_levels)], rows.y.astype(np.int64)
    units = cfx.Space.from_data(X).scale
    X = X / units
    space = cfx.Space.from_data(X, kinds=dict.fromkeys(X.columns, "real"))
    parts = {part.name: getattr(space, part.name) for part in fields(space)}
    space = cfx.Space._of(**{**parts, "scale": np.full(len(units), 1.0 / UNIT_COST)})
    model = RandomForestClassifier(n_estimators=n_trees, max_depth=depth, random_state=0, n_jobs=1)
    return Forest(X, model.fit(X.to_numpy(), np.asarray(y)), space)


def answers(
    forest: Forest, rows: Sequence[int], python: Path, seconds: float
) -> list[dict[str, Any]] | str:
    """Return OCEAN's answers to the questions, or the reason why there are none.

    Parameters
    ----------
    forest : Forest
        The model and its table.
    rows : sequence of int
        The queries.
    python : Path
        The Python of OCEAN's environment.
    seconds : float
        The time limit of a question.
    """
    questions = []
    for row in rows:
        query = forest.X.iloc[row].tolist()
        questions.append({"row": row, "query": query, "label": forest.label(row)})
    request = {
        "names": [str(name) for name in forest.X],
        "rows": forest.X.to_numpy().tolist(),
        "seconds": seconds,
        "questions": questions,
    }
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.pickle"
        model.write_bytes(pickle.dumps(forest.model))
        path = Path(folder) / "request.json"
        path.write_text(json.dumps({**request, "model": str(model)}))
        script = Path(__file__).with_name("peer_ocean.py")
        done = subprocess.run(
            [str(python), "-P", str(script), str(path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [check(forest, record) for record in lines if "row" in record]


def check(forest: Forest, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the distance of its answer and whether it has the class."""
    if "answer" not in record:
        return record
    found = np.array(record["answer"])
    distance = float(np.abs(found - forest.X.iloc[record["row"]].to_numpy()).sum())
    label = int(forest.model.predict(found[None])[0])
    return {**record, "distance": distance, "is_hit": label == forest.label(record["row"])}


def compare(ours: Sequence[dict[str, Any]], theirs: list[dict[str, Any]] | str) -> dict[str, Any]:
    """Return the figures of both sides, and how far their optima are from each other."""
    if isinstance(theirs, str):
        return {"error": theirs}
    differences = []
    problems = []
    for mine, other in zip(ours, theirs, strict=True):
        problem, difference = _difference(mine, other)
        problems += [f"row {mine['row']}: {problem}"] if problem else []
        differences += [] if difference is None else [difference]
    figures: dict[str, Any] = {"n": len(ours)}
    for name, records in (("ours", ours), ("ocean", theirs)):
        seconds = [record["seconds"] for record in records]
        proven = [
            record["proof"] in ("optimal", "out of reach", "infeasible") for record in records
        ]
        figures[f"{name}_proven"] = float(np.mean(proven))
        figures[f"{name}_median"] = float(np.median(seconds))
        figures[f"{name}_worst"] = float(np.max(seconds))
    compared = {"compared": len(differences), "difference": max(differences, default=None)}
    return {**figures, **compared, "contradictions": problems}


def _difference(mine: dict[str, Any], other: dict[str, Any]) -> tuple[str, float | None]:
    """Return what is wrong with a pair of answers, and the difference of two proven optima."""
    if "answer" not in other:
        is_wrong = other["proof"] == "infeasible" and mine["cost"] is not None
        return ("OCEAN says infeasible, ours has an answer" if is_wrong else "", None)
    if not other["is_hit"]:
        return "OCEAN's answer has the wrong class", None
    if mine["proof"] == "out of reach":
        return "ours says out of reach, OCEAN has an answer", None
    distance = mine["distance"] / UNIT_COST
    gap = distance - other["distance"]
    if mine["proof"] == "optimal" and gap > SAME_DISTANCE:
        return f"ours is not optimal: {distance}, OCEAN {other['distance']}", None
    if other["proof"] == "optimal" and gap < -SAME_DISTANCE:
        return f"OCEAN's is not optimal: {other['distance']}, ours {distance}", None
    both = mine["proof"] == "optimal" and other["proof"] == "optimal"
    return "", abs(gap) if both else None
