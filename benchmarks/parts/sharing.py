"""Rows saved by sharing: 100 queries to one model, each with its own target.

The cost is off, so a search ends when its target is reached. The shifts alternate, and all targets
lie within the outputs of 50,000 random rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import Recorder, ask, space
from benchmarks.parts import Settings
from benchmarks.parts.potential import SHIFTS
from benchmarks.problems import MODELS, Case, fitted, reachable_cell, table
from benchmarks.reporting import aim, show_table

QUERIES = 100
BUDGET = 40
DATA = "diabetes"


def questions(model: str, queries: int) -> list[Case]:
    """Return one question per query, with alternating shifts."""
    most = len(table(DATA).X)
    pools = [iter(reachable_cell(DATA, model, shift, most)) for shift in SHIFTS]
    cases: dict[int, Case] = {}
    while len(cases) < queries:
        pool = pools[len(cases) % len(pools)]
        fresh = next(c for c in pool if c.row not in cases)
        cases[fresh.row] = fresh
    return list(cases.values())


def alone(cases: list[Case], budget: int, settings: Settings) -> dict[str, float]:
    """Return rows per query and success with one `explain` per query."""
    method = settings.method or "bayes-cfx"
    found = [
        ask(c, budget=budget, cost=False, seed=settings.seed + i, method=method)
        for i, c in enumerate(cases)
    ]
    return {
        "rows": float(np.mean([len(f.recorder.outputs) for f in found])),
        "success": float(np.mean([f.answer.reached for f in found])),
        "seconds": sum(f.seconds for f in found) / len(found),
    }


def together(cases: list[Case], budget: int, settings: Settings) -> dict[str, float]:
    """Return rows per query and success with one `explain_many`."""
    recorder = Recorder(fitted(DATA, cases[0].model).predict)
    many = cfx.explain_many(
        recorder,
        np.array([c.query for c in cases]),
        space(DATA).cost(weight=0),
        [cfx.reach(c.target) for c in cases],
        budget=budget,
        rng=settings.seed,
        method=settings.method or "bayes-cfx",
    )
    return {
        "rows": len(recorder.outputs) / len(cases),
        "success": float(np.mean([answer.reached for answer in many])),
        "calls": len(recorder.calls),
    }


def run(settings: Settings) -> dict[str, Any]:
    """Return both sides per model, and the ratio of their rows."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    cells = []
    for model in settings.models or MODELS:
        cases = questions(model, settings.queries or QUERIES)
        shared = together(cases, budget, settings)
        single = alone(cases, budget, settings)
        ratio = shared["rows"] / single["rows"]
        cells.append({"model": model, "shared": shared, "alone": single, "ratio": ratio})
    return {"queries": settings.queries or QUERIES, "budget": budget, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print rows per query, success, the ratio and its aim."""
    rows = []
    for c in figures["cells"]:
        both = [c[side][key] for key in ("rows", "success") for side in ("shared", "alone")]
        equal = c["shared"]["success"] >= c["alone"]["success"]
        rows.append([c["model"], *both, c["ratio"], aim(c["ratio"], "<=", 0.5), equal])
    head = ["", "rows shared", "rows alone", "success shared", "success alone", "ratio", "aim"]
    title = f"Many questions: {figures['queries']} queries to one model, budget {figures['budget']}"
    show_table(title, [*head, "no fewer reached"], rows)
