"""Expensive models: distances with 100 and 50 rows, in units of the two-feature limit.

The questions are those that two changed features can answer, each with several seeds. The time of a
step is measured in `overhead`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.limit import limit
from benchmarks.parts import Settings
from benchmarks.parts.cheap import relative
from benchmarks.parts.nearest import SHIFT, solve, summary
from benchmarks.problems import Case, reachable_cell, table
from benchmarks.reporting import aim, show_table

QUERIES = 20
SEEDS = 3
BUDGETS = (100, 50)
DATA = "diabetes"
SEED_STEP = 1000  # between the seeds of two runs over the questions
AIMS = {100: {"relative": 1.08, "worst": 2.0}, 50: {"relative": 1.15}}
NAMES = {"relative": "median", "worst": "worst"}


def answerable(model: str, queries: int) -> list[Case]:
    """Return the first questions that at most two changed features can answer."""
    cases: list[Case] = []
    for case in reachable_cell(DATA, model, SHIFT, len(table(DATA).X)):
        if len(cases) == queries:
            break
        if limit(case) < np.inf:
            cases.append(case)
    return cases


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per model and budget, over all seeds."""
    method = settings.method or "bayes-cfx"
    cells = []
    for model in settings.models or ("lgbm", "rf"):
        cases = answerable(model, settings.queries or QUERIES)
        for budget in settings.budgets or BUDGETS:
            records = []
            for seed in range(SEEDS):
                records += solve(cases, method, budget, settings.seed + SEED_STEP * seed)[1]
            figures = summary(records) | relative(cases, records)
            name = {"model": model, "budget": budget}
            cells.append(name | figures | {"answers": records})
    return {"method": method, "seeds": SEEDS, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print the cells and their aims."""
    keys = (
        "problems",
        "hits",
        "median",
        "relative",
        "worst",
        "relative_cost",
        "worst_cost",
        "rows",
        "seconds",
    )
    rows = [
        [
            f"{c['model']}, {c['budget']} rows",
            *(c[k] for k in keys),
            ", ".join(
                f"{NAMES[k]} {aim(c[k], '<=', most)}"
                for k, most in AIMS.get(c["budget"], {}).items()
            ),
        ]
        for c in figures["cells"]
    ]
    head = ["", "problems", "hits", "distance", "of limit", "worst", "cost of limit"]
    head += ["worst", "rows", "CPU s"]
    title = f"Expensive models, method {figures['method']!r}, {figures['seeds']} seeds"
    show_table(
        f"{title}: median distance, absolute and in units of the limit", [*head, "aims"], rows
    )
