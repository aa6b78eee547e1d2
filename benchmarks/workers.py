"""Throughput of many queries with workers and on clusters, and the memory of a stream.

The queries are people of the Adult data with a probability below 0.5 by a logistic regression; the
target is at least 0.5. Measured are: the same queries with one and with two workers (loky), after a
first call that starts them; a local Dask cluster that loses a worker half-way; Ray; the resident
memory of a stream; and the rows that sharing saves with a model that takes 10 ms per row.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from experiments.data import load_adult
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from benchmarks.ours import space
from benchmarks.problems import fitted, table
from benchmarks.reporting import aim, show_table


@cache
def bank() -> tuple[Any, pd.DataFrame, cfx.Space]:
    """Return the model, the refused people, and the space of allowed changes."""
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


def answer(queries: int, n_jobs: int | None) -> list[tuple[Any, ...]]:
    """Explain the first queries; return the fields that identify their answers."""
    model, people, allowed = bank()
    queried = people.head(queries)
    many = cfx.explain_many(model, queried, allowed, cfx.at_least(0.5), rng=0, n_jobs=n_jobs)
    return [(a.status, *a.best.row, a.best.output, a.best.cost, a.n_evaluations) for a in many]


def throughput(queries: int) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Return queries per second with one and with two workers, and the answers.

    One and two workers take turns with a quarter of the queries, four times, because the speed of
    a machine changes within minutes.
    """
    start = time.perf_counter()
    answer(128, 2)
    start_seconds = time.perf_counter() - start
    part = max(1, queries // 4)
    seconds: list[tuple[float, float]] = []
    are_same = True
    for _ in range(4):
        found = []
        for jobs in (1, 2):
            start = time.perf_counter()
            used = time.process_time()
            found.append(answer(part, jobs))
            seconds.append((time.perf_counter() - start, time.process_time() - used))
        are_same &= found[0] == found[1]
    one = np.array(seconds[::2])
    two = np.array(seconds[1::2])
    figures = {
        "queries": 4 * part,
        "per second and core": float(np.median(part / one[:, 1])),
        "per second, one process": float(np.median(part / one[:, 0])),
        "per second, two workers": float(np.median(part / two[:, 0])),
        "two workers / one": float(np.median(one[:, 0] / two[:, 0])),
        "same answers": are_same,
        "parent's CPU ms per query": 1e3 * float(np.median(two[:, 1])) / part,
        "seconds to start two workers and 128 queries": start_seconds,
    }
    return figures, answer(queries, 2)


def on_dask(expected: Sequence[tuple[Any, ...]]) -> dict[str, Any] | None:
    """Return whether a cluster of two processes, one killed half-way, gives the same answers."""
    if find_spec("distributed") is None:
        return None
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        start = time.perf_counter()
        answer(128, None)
        pace = (time.perf_counter() - start) / 128
        victim = next(iter(client.run(os.getpid).values()))
        delay = pace * len(expected) / 3
        killer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
        killer.start()
        start = time.perf_counter()
        found = answer(len(expected), None)
        seconds = time.perf_counter() - start
        killer.cancel()
    return {
        "queries": len(found),
        "same answers": found == list(expected),
        "killed after seconds": delay if delay < seconds else None,
        "seconds": seconds,
    }


def on_ray(expected: Sequence[tuple[Any, ...]]) -> dict[str, Any] | None:
    """Return whether two workers of Ray give the same answers."""
    if find_spec("ray") is None:
        return None
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        start = time.perf_counter()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            found = answer(len(expected), None)
        seconds = time.perf_counter() - start
    finally:
        ray.shutdown()
    same = found == list(expected)
    return {"queries": len(found), "same answers": same, "seconds": seconds}


def slow_model(queries: int) -> list[dict[str, Any]]:
    """Return the figures of Bayes-CFX with 10 ms per row: one call, and one call per query."""
    rows = table("diabetes")
    predict = fitted("diabetes", "svr").predict
    target = cfx.at_least(float(np.quantile(predict(rows.X), 0.8)))
    chosen = np.flatnonzero(predict(rows.X) < np.quantile(predict(rows.X), 0.7))[:queries]
    n_sent = [0]

    def model(X: Any) -> Any:
        n_sent[0] += len(X)
        time.sleep(0.01 * len(X))
        return predict(X)

    options: Any = {"method": "bayes-cfx", "budget": 100}
    found = []
    for name in ("one explain_many", "separate calls"):
        n_sent[0] = 0
        start = time.perf_counter()
        used = time.process_time()
        if name == "one explain_many":
            many = [
                *cfx.explain_many(
                    model, rows.X[chosen], space("diabetes"), target, **options, rng=0
                )
            ]
        else:
            many = [
                cfx.explain(model, rows.X[i], space("diabetes"), target, **options, rng=k)
                for k, i in enumerate(chosen)
            ]
        wall = time.perf_counter() - start
        cpu = time.process_time() - used
        costs = [a.best.cost for a in many if a.reached]
        found.append(
            {
                "way": name,
                "rows per query": n_sent[0] / len(chosen),
                "seconds per query": wall / len(chosen),
                "CPU seconds per query": cpu / len(chosen),
                "reached": len(costs) / len(chosen),
                "mean cost": float(np.mean(costs)),
            }
        )
    return found


def memory(counts: Sequence[int]) -> dict[int, float]:
    """Return the resident memory in MB of a stream after each number of queries."""
    model, people, allowed = bank()
    rng = np.random.default_rng(0)
    n_seen = 0
    megabytes: dict[int, float] = {}

    def frames() -> Iterator[pd.DataFrame]:
        for _ in range(0, max(counts), 500):
            yield people.iloc[rng.integers(len(people), size=500)]

    for part in cfx.explain_stream(model, frames(), allowed, cfx.at_least(0.5), rng=0):
        n_seen += len(part)
        for count in counts:
            if n_seen - len(part) < count <= n_seen:
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                megabytes[count] = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return megabytes


def run(queries: int = 10_000, slow: int = 64) -> dict[str, Any]:
    """Return all figures; the stream runs first, before other parts have filled the memory."""
    stream = memory([queries * share // 10 for share in (2, 5, 10, 20)])
    fast, expected = throughput(queries)
    counts, sizes = np.array([*stream.items()]).T
    slope = float(np.polyfit(counts, sizes, 1)[0]) * 1000
    return {
        "workers": fast,
        "dask": on_dask(expected),
        "ray": on_ray(expected[:1000]),
        "slow model": slow_model(slow),
        "stream MB": {str(n): mb for n, mb in stream.items()},
        "stream MB per 1,000 queries": slope,
    }


def show(found: dict[str, Any]) -> None:
    """Print the figures and the aims."""
    fast = found["workers"]
    show_table("Adult, logistic regression", ["what", "figure"], [*map(list, fast.items())])
    print("  queries per second and core", aim(fast["per second and core"], ">=", 50))
    print("  two workers / one", aim(fast["two workers / one"], ">=", 1.7))
    for name in ("dask", "ray"):
        figures = found[name] or {"left out": f"{name} is not installed"}
        show_table(name, ["what", "figure"], [*map(list, figures.items())])
    lines = found["slow model"]
    show_table("10 ms per row", list(lines[0]), [list(line.values()) for line in lines])
    show_table("a stream", ["queries", "MB"], [*map(list, found["stream MB"].items())])
    print(f"  {found['stream MB per 1,000 queries']:.3g} MB more per 1,000 queries")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="640 queries, 8 for the slow model")
    quick = parser.parse_args().quick
    show(run(640, 8) if quick else run())


if __name__ == "__main__":
    main()
