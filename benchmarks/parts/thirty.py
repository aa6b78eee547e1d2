"""Thirty features: breast cancer, a logistic regression's probability, target a half."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.parts import Settings
from benchmarks.parts.nearest import method, solve, summary
from benchmarks.peers import dice
from benchmarks.problems import half_cell, nearest_distance
from benchmarks.reporting import aim, show_table

QUERIES = 20
BUDGETS = (100, 200)


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per budget, with distances relative to the exact optimum."""
    cases = half_cell(settings.queries or QUERIES)
    exact = {c.key: nearest_distance(c) for c in cases}
    cells: list[dict[str, Any]] = []
    for budget in settings.budgets or BUDGETS:
        figures, records = solve(cases, method(settings, budget), budget, settings.seed)
        cells.append({"side": "ours", "budget": budget, **figures, "answers": records})
    theirs = dice(cases, settings.peers)
    if theirs:
        cells.append({"side": "dice-ml random", **summary(theirs), "answers": theirs})
    for c in cells:
        ratios = [r["distance"] / exact[r["case"]] for r in c["answers"] if r["hit"]]
        c["relative"] = float(np.median(ratios)) if ratios else None
        c["worst_relative"] = float(np.max(ratios)) if ratios else None
    return {"exact": exact, "median_exact": float(np.median(list(exact.values()))), "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print the cells and their aims."""
    rows = []
    for c in figures["cells"]:
        budget = c.get("budget")
        text = {100: aim(c["hits"], ">=", 1.0), 200: aim(c["relative"], "<=", 1.1)}.get(budget, "")
        label = f"ours, {budget} rows" if budget else c["side"]
        keys = ("hits", "median", "relative", "worst_relative", "features", "rows", "seconds")
        rows.append([label, *(c[k] for k in keys), text])
    head = ["", "hits", "median", "rel. median", "rel. worst", "features", "rows", "CPU s", "aim"]
    title = f"Thirty features, exact nearest hit at a median of {figures['median_exact']:.3g}"
    show_table(title, head, rows)
