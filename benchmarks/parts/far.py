"""Far targets of cheap models: beyond every output of the data, and yet within reach.

How far a model's output goes is found by climbing: from a dozen rows the best of all single changes
is made, over two hundred values of each feature, until none helps; that takes a hundred thousand
rows. Targets lie between there and the farthest output of the data. A search that misses one should
at least not call it out of reach.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import space
from benchmarks.parts import Settings
from benchmarks.problems import Array, fitted, table
from benchmarks.reporting import show_table

QUERIES, BUDGET = 5, 2000  # per target
PAIRS = (
    ("friedman1", "lgbm"),
    ("friedman1", "mlp"),
    ("friedman1", "svr"),
    ("friedman2", "rf"),
    ("cancer-texture", "rf"),
    ("digits", "lgbm"),
)
SHARES = (0.3, 0.6, 0.9)  # of the way from the data's farthest output to the top
DOUBT = 0.02  # a smaller probability says that a target is out of reach


def top(data: str, model: str, sign: float, starts: int = 12) -> float:
    """Return the highest, or with -1 the lowest, output that climbs lead to."""
    X, rng = table(data).X, np.random.default_rng(0)
    values = [_thinned(np.unique(column)) for column in X.T]
    at = np.argsort(-sign * _outputs(data, model, X))[: starts // 2]
    drawn = [[rng.choice(v) for v in values] for _ in range(starts - len(at))]
    best = -np.inf
    for x in np.vstack([X[at], drawn]):
        height = -np.inf
        while True:
            rows = np.vstack([_changed(x, j, v) for j, v in enumerate(values)])
            y = sign * _outputs(data, model, rows)
            if y.max() <= height:
                break
            height, x = float(y.max()), rows[y.argmax()]
        best = max(best, height)
    return sign * best


def _thinned(values: Array) -> Array:
    """Return at most two hundred of the sorted values, evenly."""
    return np.asarray(values[np.linspace(0, len(values) - 1, min(len(values), 200)).astype(int)])


def _changed(x: Array, j: int, values: Array) -> Array:
    """Return a row with feature `j` set to each of the values."""
    rows = np.repeat(x[None], len(values), axis=0)
    rows[:, j] = values
    return rows


def _outputs(data: str, model: str, X: Array) -> Array:
    return np.asarray(fitted(data, model).predict(X))


def run(settings: Settings) -> dict[str, Any]:
    """Return by model, target and query how the search ended."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    records = []
    for data, model in PAIRS:
        X, seen = table(data).X, _outputs(data, model, table(data).X)
        for sign, end in ((1.0, seen.max()), (-1.0, seen.min())):
            farthest = top(data, model, sign)
            for share in SHARES:
                value = float(end + share * (farthest - end))
                target = cfx.at_least(value) if sign > 0 else cfx.at_most(value)
                for i in np.random.default_rng(7).integers(
                    len(X), size=settings.queries or QUERIES
                ):
                    begin = time.process_time()
                    answer = cfx.explain(
                        fitted(data, model).predict,
                        X[i],
                        space(data),
                        target,
                        budget=budget,
                        method=settings.method or "auto",
                        rng=int(settings.seed + i),
                    )
                    likely = answer.probability_reachable
                    denied = answer.status == "unreachable" or (
                        likely is not None and likely < DOUBT
                    )
                    records.append(
                        {
                            "data": data,
                            "model": model,
                            "share": share,
                            "reached": answer.reached,
                            "denied": denied and not answer.reached,
                            "seconds": time.process_time() - begin,
                            "cost": answer.best.cost,
                        }
                    )
    return {"budget": budget, "records": records}


def show(figures: dict[str, Any]) -> None:
    """Print how often targets are reached, and how often wrongly called out of reach."""
    records, rows = figures["records"], []
    for data, model in (*PAIRS, ("all", "")):
        mine = [r for r in records if data == "all" or (r["data"], r["model"]) == (data, model)]
        shares = [np.mean([r["reached"] for r in mine if r["share"] == s]) for s in SHARES]
        denied, seconds = (float(np.mean([r[key] for r in mine])) for key in ("denied", "seconds"))
        rows.append([f"{data} {model}", len(mine), *map(float, shares), denied, seconds])
    head = ["", "questions", *(f"{s:g} of the way" for s in SHARES), "called out of reach", "CPU s"]
    show_table(f"Far targets that can be reached, {figures['budget']} rows", head, rows)
