"""Mixed data: Adult's raw columns with LightGBM, native categories and constraints.

The target is a probability of a high income of at least 0.5. Race, sex, family, country and capital
are fixed, age and education may only increase, and hours are at most 60: constraints that every
side supports. Answers are scored by the model and their constraints are checked independently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.mixed import available
from benchmarks.parts import Settings
from benchmarks.parts.cheap import distance_ratio
from benchmarks.parts.nearest import DICE, solve, summary
from benchmarks.peers import dice
from benchmarks.problems import income_cell
from benchmarks.reporting import aim, show_table

QUERIES = 40
BUDGET = 2000


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures of each side."""
    if not available("adult"):
        return {"method": settings.method, "cells": []}
    budget = settings.budgets[0] if settings.budgets else BUDGET
    method = settings.method or "sweep"
    cases = income_cell("lgbm", settings.queries or QUERIES)
    solve(cases[:1], method, budget)  # a warm-up, because of imports
    ours = solve(cases, method, budget, settings.seed)[1]
    sides = {
        f"ours, {budget} rows": ours,
        DICE: dice(cases, settings.peers),
        "dice-ml genetic": dice(cases, settings.peers, "genetic"),
    }
    cells = [
        {
            "side": side,
            **summary(records),
            "broken": float(np.mean([bool(r["broken"]) for r in records])),
            "nearer": distance_ratio(ours, records),
            "answers": records,
        }
        for side, records in sides.items()
        if records
    ]
    return {"method": method, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print all sides, and our aims."""
    cells = figures["cells"]
    keys = ("problems", "hits", "broken", "mean", "median", "nearer", "features", "rows", "seconds")
    rows = []
    for c in cells:
        texts = []
        if c["side"].startswith("ours"):
            most = max(d["hits"] for d in cells)
            texts = [f"broken {aim(c['broken'], '<=', 0.0)}", f"hits {aim(c['hits'], '>=', most)}"]
        rows.append([c["side"], *(c[k] for k in keys), ", ".join(texts)])
    show_table(
        f"Mixed data: Adult, raw columns, LightGBM, method {figures['method']!r}",
        [
            *("", "problems", "hits", "rules broken", "mean", "median", "ours / this"),
            *("features", "rows", "CPU s", "aims"),
        ],
        rows,
    )
