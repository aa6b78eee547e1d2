"""Cheap models: a search without a surrogate, against the limit, Bayes-CFX and dice-ml.

Three sides answer the same questions in one run: ours with 2,000 rows, Bayes-CFX with 1,000 rows in
batches, and dice-ml's random search. Ensembles of trees have an exact optimum with at most two
changed features (`limit`), the logistic regression one with any number of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.space.effort import PREMIUM
from benchmarks.limit import limit
from benchmarks.mixed import available
from benchmarks.parts import Settings
from benchmarks.parts.nearest import DICE, SHIFT, solve, summary
from benchmarks.peers import dice
from benchmarks.problems import Case, half_cell, income_cell, nearest_distance, reachable_cell
from benchmarks.reporting import aim, show_table

Records = list[dict[str, Any]]

QUERIES, BUDGET, BAYES_BUDGET = 20, 2000, 1000
BAYES = f"Bayes-CFX, {BAYES_BUDGET} rows"
CELLS = {  # the table of each model
    **dict.fromkeys(("lgbm", "rf", "svr", "mlp", "knn"), "diabetes"),
    "logistic": "cancer",
    "pipeline": "adult",
}
RELATIVE = {"lgbm": 1.05, "rf": 1.05, "logistic": 1.1}  # median, of the exact optimum
WORST, CPU = 1.3, 0.2  # of the two-feature limit, and of dice-ml's CPU time


def questions(model: str, queries: int) -> list[Case]:
    """Return the questions put to a model."""
    if model == "logistic":
        return half_cell(queries)
    if model == "pipeline":
        return income_cell(model, queries)
    return reachable_cell(CELLS[model], model, SHIFT, queries)


def exact(asked: Case, premium: float = 0.0) -> float:
    """Return the exact optimum; not a number where nobody knows it."""
    if asked.model in ("lgbm", "rf"):
        return limit(asked, premium)
    return nearest_distance(asked) if asked.model == "logistic" and not premium else np.nan


def relative(asked: list[Case], records: Records) -> dict[str, float | None]:
    """Return median and worst distance in units of the optimum; a miss is infinitely far.

    Where no two changes reach the target there is nothing to compare with. The same with what the
    search minimises, a little more per changed feature, on both sides.
    """
    figures: dict[str, float | None] = {}
    for name, premium in (("", 0.0), ("_effort", PREMIUM)):
        best = {c.key: exact(c, premium) for c in asked}
        known = [r for r in records if np.isfinite(best[r["case"]])]
        ratios = [
            (r["distance"] + premium * r["features"] * min(r["distance"], 1.0)) / best[r["case"]]
            if r["hit"]
            else np.inf
            for r in known
        ]
        figures[f"relative{name}"] = float(np.median(ratios)) if ratios else None
        figures[f"worst{name}"] = float(np.max(ratios)) if ratios else None
        figures.setdefault("compared", len(ratios))
    return figures


def beside(ours: Records, theirs: Records) -> float | None:
    """Return our mean distance in units of theirs, over the questions that both hit."""
    near = {r["case"]: r["distance"] for r in theirs if r["hit"]}
    both = [(r["distance"], near[r["case"]]) for r in ours if r["hit"] and r["case"] in near]
    return float(np.divide(*np.mean(both, axis=0))) if both else None


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per model and side."""
    budget = settings.budgets[0] if settings.budgets else BUDGET
    method = settings.method or "sweep"
    cells = []
    for model in settings.models or CELLS:
        if not available(CELLS[model]):
            continue
        asked = questions(model, settings.queries or QUERIES)
        solve(asked[:1], method, budget)  # the first pays for imports
        batches = cfx.BayesCFX(batch=settings.batch)
        sides = {
            f"ours, {budget} rows": solve(asked, method, budget, settings.seed)[1],
            BAYES: solve(asked, batches, BAYES_BUDGET, settings.seed)[1],
            DICE: dice(asked, settings.peers),
        }
        ours = next(iter(sides.values()))
        for side, records in sides.items():
            if records:
                figures = summary(records) | relative(asked, records)
                name = {"data": CELLS[model], "model": model, "side": side}
                inside = [r["seconds_in_model"] for r in records if "seconds_in_model" in r]
                ratio = {"nearer": beside(ours, records), "answers": records}
                ratio["in_model"] = 1e3 * float(np.mean(inside)) if inside else None
                cells.append(name | figures | ratio)
    return {"method": method, "cells": cells}


def aims(c: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """Return the aims of our side with their verdicts."""
    if not c["side"].startswith("ours"):
        return ""
    others = {d["side"]: d for d in cells if d["model"] == c["model"]}
    texts = []
    if c["model"] in RELATIVE:
        texts += [f"hits {aim(c['hits'], '>=', 1.0)}"]
        texts += [f"median {aim(c['relative'], '<=', RELATIVE[c['model']])}"]
        if c["data"] == "diabetes":
            texts += [f"worst {aim(c['worst'], '<=', WORST)}"]
    elif BAYES in others:
        texts += [f"of Bayes-CFX {aim(others[BAYES]['nearer'], '<=', 1.0)}"]
    if DICE in others:
        texts += [f"CPU of dice-ml {aim(c['seconds'] / others[DICE]['seconds'], '<=', CPU)}"]
    return ", ".join(texts)


def show(figures: dict[str, Any]) -> None:
    """Print the sides of each cell, with our aims."""
    cells = figures["cells"]
    keys = ("hits", "mean", "median", "compared", "relative", "worst", "relative_effort")
    keys += ("worst_effort", "nearer", "features", "rows")
    head = ["", "", "hits", "mean", "median", "compared", "of limit", "worst", "with premium"]
    head += ["worst", "ours / this", "features", "rows", "CPU ms", "in model", "aims"]
    rows = [
        [
            f"{c['data']} {c['model']}",
            c["side"],
            *(c[k] for k in keys),
            1e3 * c["seconds"],
            c["in_model"],
            aims(c, cells),
        ]
        for c in cells
    ]
    show_table(
        f"Cheap models, method {figures['method']!r}: distances; of the exact optimum (two "
        f"features; cancer: any) median and worst, also with {PREMIUM:g} per changed feature; ours "
        "in units of each side's, where both hit",
        head,
        rows,
    )
