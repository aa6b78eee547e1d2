"""What it costs to know much: the CPU seconds of a step by the number of known evaluations.

A search of 40 rows for the diabetes data and a support vector machine goes on from 100, 1,000,
10,000 and 100,000 known rows around the data. The step is the median time between two model calls;
what counts is its ratio to that at 100 rows, measured in the same process, a hit or none being
known when the search begins.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import space
from benchmarks.problems import fitted, table
from benchmarks.reporting import aim, show_table

KNOWN = (100, 1_000, 10_000, 100_000)
RATIO = 3.0  # the aim


def step_cost(known: int, quantile: float, query: int) -> dict[str, float]:
    """Return what a search costs whose target is a quantile of the outputs, and what it finds."""
    rows, rng = table("diabetes"), np.random.default_rng(1)
    predict = fitted("diabetes", "svr").predict
    noise = 0.3 * rows.X.std(axis=0) * rng.normal(size=(known, rows.X.shape[1]))
    X = np.clip(rows.X[rng.integers(len(rows.X), size=known)] + noise, rows.low, rows.high)
    target = float(np.quantile(predict(rows.X), quantile)) + (quantile == 1.0) * 1e3
    heard = [time.process_time()]
    answer = cfx.explain(
        predict,
        rows.X[query],
        space("diabetes"),
        cfx.at_least(target),
        method="bayes-cfx",
        budget=40,
        evaluations=cfx.Evaluations(X, predict(X)),
        rng=0,
        on_step=lambda _: heard.append(time.process_time()),
    )
    seconds = np.diff(heard)
    cost = answer.best.cost if answer.reached else np.nan
    return {"start": float(seconds[0]), "step": float(np.median(seconds[1:])), "cost": cost}


def run(queries: int = 5, most: int = KNOWN[-1]) -> dict[str, Any]:
    """Return the medians by known rows, and their ratios to the first."""
    cells = []
    for words, quantile in (("within reach", 0.95), ("out of reach", 1.0)):
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
    return {"steps": cells, "worst_ratio": max(cell["ratio"] for cell in cells)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--most", type=int, default=KNOWN[-1], help="known rows, at most")
    given = parser.parse_args()
    found = run(given.queries, given.most)
    show_table(
        f"A step by known rows; the worst ratio {aim(found['worst_ratio'], '<=', RATIO)}",
        ["target", "known", "start s", "step s", "ratio", "reached", "cost"],
        [list(cell.values()) for cell in found["steps"]],
    )


if __name__ == "__main__":
    main()
