"""What it costs to know much: the CPU seconds of a step by the number of known evaluations.

A search of 40 rows for the diabetes data and a support vector machine goes on from 100, 1,000,
10,000 and 100,000 known rows around the data. The step is the median time between two model calls;
what counts is its ratio to that at 100 rows, measured in the same process, a hit or none being
known when the search begins.

And what it is worth: questions to four models on two tables, each asked with the first 100 and with
all of 100,000 known rows. Nothing is to be lost: no target, and no nearness.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import space
from benchmarks.problems import MODELS, Array, Case, fitted, reachable_cell, table
from benchmarks.reporting import aim, show_table

KNOWN = (100, 1_000, 10_000, 100_000)
RATIO = 3.0  # the aim
TABLES = ("diabetes", "friedman1")  # the second is one that nothing was tuned on
DEARER = 1.02  # the most that an answer may cost of what it costs with 100 rows, in the median


@cache
def known_rows(data: str, model: str, n: int) -> tuple[Array, Array]:
    """Return rows around those of a table, and a model's outputs for them."""
    rows, rng = table(data), np.random.default_rng(1)
    noise = 0.3 * rows.X.std(axis=0) * rng.normal(size=(n, rows.X.shape[1]))
    X = np.clip(rows.X[rng.integers(len(rows.X), size=n)] + noise, rows.low, rows.high)
    return X, fitted(data, model).predict(X)


def step_cost(known: int, quantile: float, query: int) -> dict[str, float]:
    """Return what a search costs whose target is a quantile of the outputs, and what it finds."""
    rows, predict = table("diabetes"), fitted("diabetes", "svr").predict
    target = float(np.quantile(predict(rows.X), quantile)) + (quantile == 1.0) * 1e3
    heard = [time.process_time()]
    answer = cfx.explain(
        predict,
        rows.X[query],
        space("diabetes"),
        cfx.at_least(target),
        method="bayes-cfx",
        budget=40,
        evaluations=cfx.Evaluations(*known_rows("diabetes", "svr", known)),
        rng=0,
        on_step=lambda _: heard.append(time.process_time()),
    )
    seconds = np.diff(heard)
    cost = answer.best.cost if answer.reached else np.nan
    return {"start": float(seconds[0]), "step": float(np.median(seconds[1:])), "cost": cost}


def answer_cost(asked: Case, known: int, most: int) -> float:
    """Return what an answer costs that goes on from some of the known rows; nan if it misses."""
    X, y = known_rows(asked.data, asked.model, most)
    answer = cfx.explain(
        fitted(asked.data, asked.model).predict,
        asked.query,
        space(asked.data),
        cfx.at_least(asked.target),
        method="bayes-cfx",
        budget=40,
        evaluations=cfx.Evaluations(X[:known], y[:known]),
        rng=asked.row,
    )
    return answer.best.cost if answer.reached else np.nan


def success(queries: int, most: int = KNOWN[-1]) -> list[dict[str, Any]]:
    """Return what answers cost with all known rows relative to what they cost with 100 of them."""
    cells, ratios, reached = [], list[Array](), list[Array]()
    for data in TABLES:
        for model in MODELS:
            asked = reachable_cell(data, model, 1.0, queries)
            costs = np.array([[answer_cost(c, n, most) for n in (KNOWN[0], most)] for c in asked])
            ratios.append((costs[:, 1] / costs[:, 0])[np.isfinite(costs).all(axis=1)])
            reached.append(np.isfinite(costs))
            cells.append(_compared(f"{data}, {model}", reached[-1], ratios[-1]))
    return [*cells, _compared("all", np.concatenate(reached), np.concatenate(ratios))]


def _compared(name: str, reached: Any, ratios: Array) -> dict[str, Any]:
    few, many = reached.mean(axis=0)
    return {
        "model": name,
        "questions": len(reached),
        "reached, 100 rows": float(few),
        "reached, all rows": float(many),
        "mean ratio": float(ratios.mean()),
        "median ratio": float(np.median(ratios)),
        "dearer by 5 %": float((ratios > 1.05).mean()),
        "cheaper by 5 %": float((ratios < 0.95).mean()),
    }


def run(queries: int = 5, most: int = KNOWN[-1], asked: int = 38) -> dict[str, Any]:
    """Return the medians by known rows, their ratios to the first, and what answers cost."""
    cells = []
    for words, quantile in (("within reach", 0.95), ("out of reach", 1.0)) if queries else ():
        first = 0.0
        for known in (n for n in KNOWN if n <= most):
            found = [step_cost(known, quantile, query) for query in range(queries)]
            step, start = (float(np.median([f[key] for f in found])) for key in ("step", "start"))
            cost = np.array([f["cost"] for f in found])
            first = first or step
            cells.append(
                {
                    "target": words,
                    "known": known,
                    "start_seconds": start,
                    "step_seconds": step,
                    "ratio": step / first,
                    "reached": float(np.isfinite(cost).mean()),
                    "cost": float(np.nanmean(cost)) if np.isfinite(cost).any() else None,
                }
            )
    worst = max((cell["ratio"] for cell in cells), default=None)
    return {"steps": cells, "worst_ratio": worst, "success": success(asked, most) if asked else []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--most", type=int, default=KNOWN[-1], help="known rows, at most")
    parser.add_argument("--success", type=int, default=38, help="questions for each model")
    given = parser.parse_args()
    found = run(given.queries, given.most, given.success)
    if found["steps"]:
        show_table(
            f"A step by known rows; the worst ratio {aim(found['worst_ratio'], '<=', RATIO)}",
            ["target", "known", "start s", "step s", "ratio", "reached", "cost"],
            [list(cell.values()) for cell in found["steps"]],
        )
    if found["success"]:
        *_, whole = found["success"]
        show_table(
            f"Known rows: what is lost; median ratio {aim(whole['median ratio'], '<=', DEARER)}",
            list(whole),
            [list(cell.values()) for cell in found["success"]],
        )


if __name__ == "__main__":
    main()
