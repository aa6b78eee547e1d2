"""Far targets of cheap models: beyond all outputs of the data, but reachable.

The range of a model's outputs is found by coordinate ascent from twelve rows, over at most 200
values of each feature, which takes about 100,000 rows. Targets lie between the extreme output of
the data and the extreme output found. A search that misses such a target must not call it
unreachable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import space
from benchmarks.parts import Settings
from benchmarks.problems import Array, fitted, table
from benchmarks.reporting import show_table

QUERIES = 5  # per target
BUDGET = 2000
PAIRS = (
    ("friedman1", "lgbm"),
    ("friedman1", "mlp"),
    ("friedman1", "svr"),
    ("friedman2", "rf"),
    ("cancer-texture", "rf"),
    ("digits", "lgbm"),
)
SHARES = (0.3, 0.6, 0.9)  # of the way from the data's extreme output to the extreme found
DOUBT = 0.02  # a smaller probability calls a target unreachable


def top(data: str, model: str, sign: float, starts: int = 12) -> float:
    """Return the highest (`sign` 1) or lowest (-1) output that coordinate ascent finds."""
    X = table(data).X
    rng = np.random.default_rng(0)
    values = [_thin(np.unique(column)) for column in X.T]
    extreme_rows = np.argsort(-sign * _outputs(data, model, X))[: starts // 2]
    drawn = [[rng.choice(v) for v in values] for _ in range(starts - len(extreme_rows))]
    best = -np.inf
    for row in np.vstack([X[extreme_rows], drawn]):
        best = max(best, _ascend(data, model, sign, row, values))
    return sign * best


def _ascend(data: str, model: str, sign: float, row: Array, values: list[Array]) -> float:
    """Return the height at which no change of a single feature helps, starting from a row."""
    height = -np.inf
    while True:
        rows = np.vstack([_vary(row, j, v) for j, v in enumerate(values)])
        y = sign * _outputs(data, model, rows)
        if y.max() <= height:
            return height
        height = float(y.max())
        row = rows[y.argmax()]


def _thin(values: Array) -> Array:
    """Return at most 200 of the sorted values, evenly spaced."""
    return np.asarray(values[np.linspace(0, len(values) - 1, min(len(values), 200)).astype(int)])


def _vary(x: Array, j: int, values: Array) -> Array:
    """Return copies of a row with feature `j` set to each value."""
    rows = np.repeat(x[None], len(values), axis=0)
    rows[:, j] = values
    return rows


def _outputs(data: str, model: str, X: Array) -> Array:
    return np.asarray(fitted(data, model).predict(X))


def run(settings: Settings) -> dict[str, Any]:
    """Return the outcome for each model, target and query."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    n_queries = settings.queries or QUERIES
    records = []
    for data, model in PAIRS:
        n_rows = len(table(data).X)
        queries = np.random.default_rng(7).integers(n_rows, size=n_queries)
        for share, target in targets(data, model):
            for i in queries:
                records.append(
                    {
                        "data": data,
                        "model": model,
                        "share": share,
                        **outcome(data, model, int(i), target, budget, settings),
                    }
                )
    return {"budget": budget, "records": records}


def targets(data: str, model: str) -> Iterator[tuple[float, Any]]:
    """Yield far targets above and below the outputs of the data, with their shares of the way."""
    outputs = _outputs(data, model, table(data).X)
    for sign, end in ((1.0, outputs.max()), (-1.0, outputs.min())):
        farthest = top(data, model, sign)
        for share in SHARES:
            value = float(end + share * (farthest - end))
            yield share, cfx.at_least(value) if sign > 0 else cfx.at_most(value)


def outcome(
    data: str, model: str, row: int, target: Any, budget: int, settings: Settings
) -> dict[str, Any]:
    """Explain one row; return whether the target is reached or wrongly called unreachable."""
    begin = time.process_time()
    answer = cfx.explain(
        fitted(data, model).predict,
        table(data).X[row],
        space(data),
        target,
        budget=budget,
        method=settings.method or "auto",
        rng=settings.seed + row,
    )
    probability = answer.probability_reachable
    is_doubted = probability is not None and probability < DOUBT
    is_denied = answer.status == "unreachable" or is_doubted
    return {
        "reached": answer.reached,
        "denied": is_denied and not answer.reached,
        "seconds": time.process_time() - begin,
        "cost": answer.best.cost,
    }


def show(figures: dict[str, Any]) -> None:
    """Print the shares of targets reached and of targets wrongly called unreachable."""
    records = figures["records"]
    rows = []
    for data, model in (*PAIRS, ("all", "")):
        mine = [r for r in records if data == "all" or (r["data"], r["model"]) == (data, model)]
        shares = [np.mean([r["reached"] for r in mine if r["share"] == s]) for s in SHARES]
        denied, seconds = (float(np.mean([r[key] for r in mine])) for key in ("denied", "seconds"))
        rows.append([f"{data} {model}", len(mine), *map(float, shares), denied, seconds])
    head = ["", "questions", *(f"{s:g} of the way" for s in SHARES), "called out of reach", "CPU s"]
    show_table(f"Far targets that can be reached, {figures['budget']} rows", head, rows)
