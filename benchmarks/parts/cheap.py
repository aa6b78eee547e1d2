"""Cheap models: a search without a surrogate, against the exact optimum, Bayes-CFX and dice-ml.

Three sides answer the same questions in one run: ours with 2,000 rows, Bayes-CFX with 1,000 rows in
batches, and dice-ml's random search. For ensembles of trees the optimum with at most two changed
features is known (`limit`), for the logistic regression the optimum with any number of changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.space.cost import Cost
from benchmarks.limit import limit
from benchmarks.mixed import available
from benchmarks.parts import Settings
from benchmarks.parts.nearest import DICE, SHIFT, solve, summary
from benchmarks.peers import dice
from benchmarks.problems import Case, half_cell, income_cell, nearest_distance, reachable_cell
from benchmarks.reporting import aim, show_table

Records = list[dict[str, Any]]

QUERIES = 20
BUDGET = 2000
BAYES_BUDGET = 1000
BAYES = f"Bayes-CFX, {BAYES_BUDGET} rows"
CELLS = {  # the table of each model
    **dict.fromkeys(("lgbm", "rf", "svr", "mlp", "knn"), "diabetes"),
    "logistic": "cancer",
    "pipeline": "adult",
}
RELATIVE = {"lgbm": 1.05, "rf": 1.05, "logistic": 1.1}  # median, of the exact optimum
WORST = 1.3  # worst distance, in units of the two-feature limit
CPU = 0.2  # CPU time, in units of dice-ml's


def questions(model: str, queries: int) -> list[Case]:
    """Return the questions to a model."""
    if model == "logistic":
        return half_cell(queries)
    if model == "pipeline":
        return income_cell(model, queries)
    return reachable_cell(CELLS[model], model, SHIFT, queries)


def exact(case: Case, per_change: float = 0.0) -> float:
    """Return the exact optimum; nan where it is not known."""
    if case.model in ("lgbm", "rf"):
        return limit(case, per_change)
    return nearest_distance(case) if case.model == "logistic" and not per_change else np.nan


def relative(cases: list[Case], records: Records) -> dict[str, float | None]:
    """Return median and worst distance and cost in units of the optimum; a miss is infinite.

    Questions that no two changes can answer are left out. The figures with ``_cost`` are those
    of the cost, the others of the distance.
    """
    figures: dict[str, float | None] = {}
    for name, per_change in (("", 0.0), ("_cost", Cost.per_change)):
        best = {c.key: exact(c, per_change) for c in cases}
        known = [r for r in records if np.isfinite(best[r["case"]])]
        ratios = [_price(r, per_change) / best[r["case"]] for r in known]
        figures[f"relative{name}"] = float(np.median(ratios)) if ratios else None
        figures[f"worst{name}"] = float(np.max(ratios)) if ratios else None
        figures.setdefault("compared", len(ratios))
    return figures


def _price(record: dict[str, Any], per_change: float) -> float:
    """Return the distance of an answer plus a price per change; infinite for a miss."""
    if not record["hit"]:
        return np.inf
    return float(record["distance"]) + per_change * float(record["features"])


def distance_ratio(ours: Records, theirs: Records) -> float | None:
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
        cases = questions(model, settings.queries or QUERIES)
        solve(cases[:1], method, budget)  # a warm-up, because of imports
        batches = cfx.BayesCFX(batch=settings.batch)
        sides = {
            f"ours, {budget} rows": solve(cases, method, budget, settings.seed)[1],
            BAYES: solve(cases, batches, BAYES_BUDGET, settings.seed)[1],
            DICE: dice(cases, settings.peers),
        }
        ours = next(iter(sides.values()))
        for side, records in sides.items():
            if records:
                name = {"data": CELLS[model], "model": model, "side": side}
                cells.append(name | _cell(cases, records, ours))
    return {"method": method, "cells": cells}


def _cell(cases: list[Case], records: Records, ours: Records) -> dict[str, Any]:
    """Return the figures of one side, compared with the optimum and with our side."""
    in_model = [r["seconds_in_model"] for r in records if "seconds_in_model" in r]
    return {
        **summary(records),
        **relative(cases, records),
        "nearer": distance_ratio(ours, records),
        "answers": records,
        "in_model": 1e3 * float(np.mean(in_model)) if in_model else None,
    }


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
    """Print all sides of each cell, and our aims."""
    cells = figures["cells"]
    keys = ("hits", "mean", "median", "compared", "relative", "worst", "relative_cost")
    keys += ("worst_cost", "nearer", "features", "rows")
    head = ["", "", "hits", "mean", "median", "compared", "of limit", "worst", "cost of limit"]
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
        f"features; cancer: any) median and worst, also of the cost ({Cost.per_change:g} per "
        "change); ours in units of each side's, where both hit",
        head,
        rows,
    )
