"""How fast many queries are answered: with workers, and in how much memory.

The job is that of a bank: people of the Adult data whom a logistic regression gives less than 0.5,
asked for at least 0.5. The same queries with one and with two workers (loky), seconds of the wall
clock, answers compared; and the resident memory of a stream after some numbers of queries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments.data import load_adult
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from benchmarks.reporting import aim, show_table


@cache
def bank() -> tuple[Any, pd.DataFrame, cfx.Space]:
    """Return the model, the people whom it refuses, and what they may change."""
    whole = load_adult().dropna().reset_index(drop=True)
    X = whole.drop(columns=["income", "fnlwgt"], errors="ignore")
    y = whole["income"].astype(str).str.contains(">50").to_numpy()
    numbers = X.select_dtypes("number").columns.tolist()
    others = [name for name in X.columns if name not in numbers]
    cells = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others)
    )
    model = make_pipeline(cells, LogisticRegression(max_iter=1000)).fit(X, y)
    refused = X[model.predict_proba(X)[:, 1] < 0.5].reset_index(drop=True)
    fixed = ("age", "race", "sex", "native-country")
    return cfx.probability(model, True), refused, cfx.Space.from_data(X).fix(*fixed)


def throughput(queries: int) -> dict[str, Any]:
    """Return queries per second with one and with two workers, and whether answers agree."""
    model, people, space = bank()
    found: dict[int, tuple[float, float, list[Any]]] = {}
    for jobs in (1, 2):
        start, used = time.perf_counter(), time.process_time()
        many = cfx.explain_many(
            model, people.head(queries), space, cfx.at_least(0.5), rng=0, n_jobs=jobs
        )
        wall, cpu = time.perf_counter() - start, time.process_time() - used
        found[jobs] = wall, cpu, [(a.best.output, a.best.cost, a.n_evaluations) for a in many]
    return {
        "queries": queries,
        "per second and core": queries / found[1][1],
        "two workers / one": found[1][0] / found[2][0],
        "same answers": found[1][2] == found[2][2],
    }


def memory(queries: int, n_jobs: int) -> dict[int, float]:
    """Return the resident memory in MB of a stream after some numbers of queries."""
    model, people, space = bank()
    rng, seen, found = np.random.default_rng(0), 0, dict[int, float]()

    def frames() -> Iterator[pd.DataFrame]:
        for _ in range(0, queries, 500):
            yield people.iloc[rng.integers(len(people), size=500)]

    wanted = cfx.at_least(0.5)
    for part in cfx.explain_stream(model, frames(), space, wanted, rng=0, n_jobs=n_jobs):
        seen += len(part)
        if seen * 10 // queries > (seen - len(part)) * 10 // queries:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            found[seen] = pages * 4096 / 1e6
    return found


def run(queries: int = 10_000) -> dict[str, Any]:
    """Return both."""
    fast, held = throughput(queries), memory(2 * queries, 1)
    show_table("Adult, logistic regression", list(fast), [list(fast.values())])
    show_table("memory of a stream", ["queries", "MB"], [[n, mb] for n, mb in held.items()])
    places, sizes = np.array([*held.items()]).T
    later = places > places.max() / 4
    slope = float(np.polyfit(places[later], sizes[later], 1)[0]) * 1000
    print("queries per second and core", aim(fast["per second and core"], ">=", 50))
    print("two workers / one", aim(fast["two workers / one"], ">=", 1.7))
    print(f"memory: {slope:.3g} MB more per 1,000 queries")
    return {**fast, "MB": {str(n): mb for n, mb in held.items()}, "MB per 1,000": slope}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    run(parser.parse_args().queries)


if __name__ == "__main__":
    main()
