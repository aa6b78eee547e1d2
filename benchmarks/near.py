"""How well `near_data` separates real rows from shuffled rows, and its cost.

The rule is fitted to 70 % of a table; 95 % of the other rows should pass. It should refuse rows in
which every column is shuffled independently and, harder, rows with two cells from other rows. The
usual alternative is measured beside it: the distance to the fifth nearest row, in units of the
columns' scales. The share of shuffled rows that any rule can refuse depends on the dependence
between the columns of a table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

import bayescfx as cfx
from bayescfx.space.rules.near import NearData
from benchmarks.mixed import FRAMES, available, frame
from benchmarks.problems import Array, table
from benchmarks.reporting import aim, show_table

QUANTILE = 0.95
LEAST = 0.8  # share of shuffled rows to refuse
NUMBERS = ("diabetes", "cancer", "digits", "friedman1")


def tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the numeric tables and the available mixed tables, with their names."""
    for name in NUMBERS:
        yield name, pd.DataFrame(table(name).X).rename(columns=lambda j: f"x{j}")
    for name in filter(available, FRAMES):
        yield name, frame(name).X


def neighbours(space: cfx.Space, X: Array) -> Callable[[Array], Array]:
    """Return a rule: the fifth neighbour in `X` is as near as for 95 % of the data."""
    levels = [j for j, f in enumerate(space.features.values()) if f.categorical]
    codes = [np.unique(X[:, j]) for j in levels]

    def points(rows: Array) -> Array:
        hot = [0.5 * (rows[:, [j]] == known) for j, known in zip(levels, codes, strict=True)]
        return np.hstack([np.delete(rows / space.scale, levels, axis=1), *hot])

    found = NearestNeighbors(n_neighbors=6, p=1).fit(points(X))
    limit = np.quantile(found.kneighbors(points(X))[0][:, 5], QUANTILE)
    return lambda rows: np.asarray(found.kneighbors(points(rows))[0][:, 4] <= limit)


def measure(X: pd.DataFrame) -> dict[str, float]:
    """Return the shares of rows that pass or are refused, and the CPU times."""
    rng = np.random.default_rng(0)
    X = X.iloc[rng.permutation(len(X))[:6000]].reset_index(drop=True)
    cut = int(0.7 * len(X))
    space = cfx.Space.from_data(X)
    data = space.encode(X.iloc[:cut])
    held = space.encode(X.iloc[cut:])
    every = np.arange(held.shape[1])
    n = max(2000, len(held))
    base = held[rng.integers(len(held), size=n)]
    others = held[rng.integers(len(held), size=base.shape), every]
    two = np.argsort(rng.random(base.shape), axis=1) < 2
    begin = time.process_time()
    (rule,) = space.near_data(X.iloc[:cut], QUANTILE).rules
    learnt = time.process_time() - begin
    assert isinstance(rule, NearData)
    begin = time.process_time()
    rule.plausibility.score(others[:300])
    scored = time.process_time() - begin

    def near(rows: Array) -> Any:
        return rule.plausibility.score(rows) >= rule.least

    old = neighbours(space, data)
    swapped = np.where(two, others, base)
    return {
        "rows": cut,
        "columns": len(every),
        "pass": float(near(held).mean()),
        "shuffled refused": 1.0 - float(near(others).mean()),
        "two cells refused": 1.0 - float(near(swapped).mean()),
        "neighbours: pass": float(old(held).mean()),
        "shuffled": 1.0 - float(old(others).mean()),
        "two cells": 1.0 - float(old(swapped).mean()),
        "learn ms": 1e3 * learnt,
        "300 rows ms": 1e3 * scored,
    }


def run() -> dict[str, Any]:
    """Measure, print and return the figures."""
    found = {name: measure(X) for name, X in tables()}
    rows = [(name, *figures.values()) for name, figures in found.items()]
    show_table("Near the data", ("table", *next(iter(found.values()))), rows)
    refused = [figures["shuffled refused"] for figures in found.values()]
    print(f"shuffled refused, median {aim(float(np.median(refused)), '>=', LEAST)}")
    return found


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    run()


if __name__ == "__main__":
    main()
