"""Expensive models: how near to the two-feature limit with 100 and with 50 rows.

The same questions with several seeds, those that two changed features can answer. What a step costs
is measured in `overhead`.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from benchmarks.limit import limit
from benchmarks.parts import Settings
from benchmarks.parts.cheap import relative
from benchmarks.parts.nearest import SHIFT, solve, summary
from benchmarks.problems import reachable_cell, table
from benchmarks.reporting import aim, show_table

QUERIES, SEEDS, BUDGETS, DATA = 20, 3, (100, 50), "diabetes"
APART = 1000  # between the seeds of two runs over the questions
AIMS = {100: {"relative": 1.08, "worst": 2.0}, 50: {"relative": 1.15}}
NAMES = {"relative": "median", "worst": "worst"}


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per model and budget, over all seeds."""
    method = settings.method or "bayes-cfx"
    cells = []
    for model in settings.models or ("lgbm", "rf"):
        pool = reachable_cell(DATA, model, SHIFT, len(table(DATA).X))
        asked = list(islice((c for c in pool if limit(c) < np.inf), settings.queries or QUERIES))
        for budget in settings.budgets or BUDGETS:
            records = []
            for seed in range(SEEDS):
                records += solve(asked, method, budget, settings.seed + APART * seed)[1]
            figures = summary(records) | relative(asked, records)
            name = {"model": model, "budget": budget}
            cells.append(name | figures | {"answers": records})
    return {"method": method, "seeds": SEEDS, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print the cells beside their aims."""
    keys = (
        "problems",
        "hits",
        "median",
        "relative",
        "worst",
        "relative_effort",
        "worst_effort",
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
    head = ["", "problems", "hits", "distance", "of limit", "worst", "with premium"]
    head += ["worst", "rows", "CPU s"]
    title = f"Expensive models, method {figures['method']!r}, {figures['seeds']} seeds"
    show_table(
        f"{title}: distance (median) and how it compares with the limit", [*head, "aims"], rows
    )
