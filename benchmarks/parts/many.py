"""A thousand queries through `explain_many` on one core, with the model's time.

The queries are rows of the diabetes data. Beyond the first pass through the table, two values of
each query come from other rows. The target is one standard deviation more, where random rows reach
it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import Recorder, space
from benchmarks.parts import Settings
from benchmarks.problems import TOLERANCE, Array, fitted, order, outputs, random_outputs, table
from benchmarks.reporting import aim, show_table

QUERIES = 1000
BUDGET = 2000
DATA = "diabetes"
EXCHANGED = 2  # values from other rows
PER_SECOND = 20.0  # the aim


def questions(model: str, queries: int) -> tuple[Array, Array]:
    """Return queries ``(n, d)`` and their targets ``(n,)``."""
    X = table(DATA).X
    rng = np.random.default_rng(0)
    rows = np.resize(X[order(DATA)], (4 * queries, X.shape[1]))
    for row in rows[len(X) :]:
        at = rng.choice(X.shape[1], EXCHANGED, replace=False)
        row[at] = X[rng.integers(len(X), size=EXCHANGED), at]
    targets = fitted(DATA, model).predict(rows) + float(outputs(DATA, model).std())
    kept = np.flatnonzero(targets <= random_outputs(DATA, model).max())[:queries]
    return rows[kept], targets[kept]


def run(settings: Settings) -> dict[str, Any]:
    """Return queries per second and hits per model."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    method = settings.method or "sweep"
    cells = []
    for model in settings.models or ("lgbm",):
        queries, targets = questions(model, settings.queries or QUERIES)
        predict = fitted(DATA, model).predict
        goals = [cfx.reach(value) for value in targets]
        options: dict[str, Any] = {"method": method, "tolerance": TOLERANCE, "rng": settings.seed}
        cfx.explain_many(predict, queries[:2], space(DATA), goals[:2], budget=50, **options)
        recorder = Recorder(predict)
        begin = time.process_time()
        answers = cfx.explain_many(recorder, queries, space(DATA), goals, budget=budget, **options)
        seconds = time.process_time() - begin
        found = np.array([answer.best.row for answer in answers], dtype=np.float64)
        before = predict(queries)
        after = predict(found)
        miss = TOLERANCE * np.abs(targets - before) * (1 + 1e-9)
        hit = np.abs(after - targets) <= miss
        distance = (np.abs(found - queries) / table(DATA).scale).sum(axis=1)
        cells.append(
            {
                "model": model,
                "queries": len(queries),
                "per_second": len(queries) / seconds,
                "hits": float(hit.mean()),
                "median": float(np.median(distance[hit])) if hit.any() else None,
                "rows": len(recorder.outputs) / len(queries),
                "calls": len(recorder.calls),
                "in_model": recorder.inside / seconds,
            }
        )
    return {"method": method, "budget": budget, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print queries per second and the aim."""
    keys = ("queries", "per_second", "hits", "median", "rows", "calls", "in_model")
    rows = [
        [c["model"], *(c[k] for k in keys), aim(c["per_second"], ">=", PER_SECOND)]
        for c in figures["cells"]
    ]
    show_table(
        f"Many queries to a cheap model in one `explain_many`, method {figures['method']!r}, "
        f"budget {figures['budget']}",
        [
            *("", "queries", "per CPU second", "hits", "distance", "rows per query"),
            *("model calls", "share in model", "aim"),
        ],
        rows,
    )
