"""Many questions: what sharing saves when 100 queries are put to one model, a target each.

The cost is off, so that a search ends when its target is reached. The shifts go round, and only
targets within the outputs of 50,000 random rows are asked for.
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

QUERIES, BUDGET = 100, 40
DATA = "diabetes"


def questions(model: str, queries: int) -> list[Case]:
    """Return one question per query, the shifts going round."""
    most = len(table(DATA).X)
    pools = [iter(reachable_cell(DATA, model, shift, most)) for shift in SHIFTS]
    asked: dict[int, Case] = {}
    while len(asked) < queries:
        pool = pools[len(asked) % len(pools)]
        fresh = next(c for c in pool if c.row not in asked)
        asked[fresh.row] = fresh
    return list(asked.values())


def alone(asked: list[Case], budget: int, settings: Settings) -> dict[str, float]:
    """Return rows per query and success when every query is explained by itself."""
    method = settings.method or "bayes-cfx"
    found = [
        ask(c, budget=budget, cost=False, seed=settings.seed + i, method=method)
        for i, c in enumerate(asked)
    ]
    return {
        "rows": float(np.mean([len(f.recorder.outputs) for f in found])),
        "success": float(np.mean([f.answer.reached for f in found])),
        "seconds": sum(f.seconds for f in found) / len(found),
    }


def together(asked: list[Case], budget: int, settings: Settings) -> dict[str, float]:
    """Return rows per query and success when all are explained in one call."""
    recorder = Recorder(fitted(DATA, asked[0].model).predict)
    many = cfx.explain_many(
        recorder,
        np.array([c.query for c in asked]),
        space(DATA).cost(weight=0),
        [cfx.reach(c.target) for c in asked],
        budget=budget,
        rng=settings.seed,
        method=settings.method or "bayes-cfx",
    )
    return {
        "rows": len(recorder.outputs) / len(asked),
        "success": float(np.mean([answer.reached for answer in many])),
        "calls": len(recorder.calls),
    }


def run(settings: Settings) -> dict[str, Any]:
    """Return both sides per model, and the ratio of their rows."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    cells = []
    for model in settings.models or MODELS:
        asked = questions(model, settings.queries or QUERIES)
        shared, single = together(asked, budget, settings), alone(asked, budget, settings)
        ratio = shared["rows"] / single["rows"]
        cells.append({"model": model, "shared": shared, "alone": single, "ratio": ratio})
    return {"queries": settings.queries or QUERIES, "budget": budget, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print rows per query, success, and the ratio beside its aim."""
    rows = []
    for c in figures["cells"]:
        both = [c[side][key] for key in ("rows", "success") for side in ("shared", "alone")]
        equal = c["shared"]["success"] >= c["alone"]["success"]
        rows.append([c["model"], *both, c["ratio"], aim(c["ratio"], "<=", 0.5), equal])
    head = ["", "rows shared", "rows alone", "success shared", "success alone", "ratio", "aim"]
    title = f"Many questions: {figures['queries']} queries to one model, budget {figures['budget']}"
    show_table(title, [*head, "no fewer reached"], rows)
