"""Distance and sparsity of the answers with 50, 100 and 1,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import ask, make_record
from benchmarks.parts import Settings
from benchmarks.peers import dice
from benchmarks.problems import MODELS, TOLERANCE, Case, reachable_cell
from benchmarks.reporting import aim, show_table

QUERIES = 20
BUDGETS = (50, 100, 1000)
SHIFT = 1.0
BATCHED = 500  # from this budget on, the model counts as cheap and is called in batches
DICE = "dice-ml random"
AIMED = ("diabetes", "lgbm")
# Mean distances, because the published figures are means.
AIMS = {50: 2.4, 100: 2.2, 1000: 2.0}


def method(settings: Settings, budget: int) -> Any:
    """Return the search for a budget."""
    name = settings.method or "bayes-cfx"
    is_batched = budget >= BATCHED and name == "bayes-cfx"
    return cfx.BayesCFX(batch=settings.batch) if is_batched else name


def summary(records: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the figures of one cell; distances and features are those of the hits."""
    hits = [r for r in records if r["hit"]]
    figures: dict[str, float | None] = {
        "problems": len(records),
        "hits": float(np.mean([r["hit"] for r in records])),
        "rows": float(np.mean([r["rows"] for r in records])),
        "seconds": float(np.mean([r["seconds"] for r in records])),
    }
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        figures[name] = float(statistic([r["distance"] for r in hits])) if hits else None
    figures["features"] = float(np.median([r["features"] for r in hits])) if hits else None
    return figures


def solve(
    cases: list[Case], search: Any, budget: int, seed: int = 0
) -> tuple[dict[str, float | None], list[dict[str, Any]]]:
    """Ask all questions of a cell; return the figures and the single records."""
    records = [
        make_record(
            case,
            ask(
                case,
                budget=budget,
                cost=True,
                seed=seed + i,
                tolerance=TOLERANCE,
                method=search,
            ),
        )
        for i, case in enumerate(cases)
    ]
    return summary(records), records


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per table, model and budget, and dice-ml's on the same questions."""
    cells = []
    for data in settings.data:
        for model in settings.models or MODELS:
            cases = reachable_cell(data, model, SHIFT, settings.queries or QUERIES)
            name = {"data": data, "model": model}
            for budget in settings.budgets or BUDGETS:
                search = method(settings, budget)
                figures, records = solve(cases, search, budget, settings.seed)
                cells.append(
                    name | {"side": "ours", "budget": budget} | figures | {"answers": records}
                )
            theirs = dice(cases, settings.peers)
            if theirs:
                cells.append(name | {"side": DICE} | summary(theirs) | {"answers": theirs})
    for c in cells:
        c["common"] = common_mean(c, cells)
    return {"tolerance": TOLERANCE, "shift": SHIFT, "batch": settings.batch, "cells": cells}


def common_mean(c: dict[str, Any], cells: list[dict[str, Any]]) -> float | None:
    """Return the mean distance over the questions that every side and budget hit.

    Otherwise a side that misses the hard questions would look better.
    """
    beside = [d for d in cells if (d["data"], d["model"]) == (c["data"], c["model"])]
    hit = set.intersection(*({r["case"] for r in d["answers"] if r["hit"]} for d in beside))
    found = [r["distance"] for r in c["answers"] if r["case"] in hit]
    return float(np.mean(found)) if found else None


def aims(c: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """Return the verdicts on the aims of a cell; only LightGBM on the diabetes data has aims."""
    if c["side"] != "ours" or c["budget"] not in AIMS or (c["data"], c["model"]) != AIMED:
        return ""
    texts = [
        f"hits {aim(c['hits'], '>=', 1.0)}",
        f"mean {aim(c['mean'], '<=', AIMS[c['budget']])}",
        f"features {aim(c['features'], '<=', 2.0)}",
    ]
    dice_seconds = [d["seconds"] for d in cells if d["side"] == DICE and d["model"] == c["model"]]
    if c["budget"] >= BATCHED and dice_seconds:
        texts.append(f"CPU s {aim(c['seconds'], '<=', dice_seconds[0])}")
    return ", ".join(texts)


def show(figures: dict[str, Any]) -> None:
    """Print the cells and their aims."""
    keys = ("hits", "mean", "common", "median", "features", "rows", "seconds")
    rows = [
        [
            f"{c['data']} {c['model']}",
            f"ours, {c['budget']} rows" if c["side"] == "ours" else c["side"],
            *(c[k] for k in keys),
            aims(c, figures["cells"]),
        ]
        for c in figures["cells"]
    ]
    show_table(
        f"Nearest and sparsest, {figures['shift']:+g} sd, hit = within "
        f"{100 * figures['tolerance']:g} % of the shift, batches of "
        f"{figures['batch']} from {BATCHED} rows on",
        ["", "", "hits", "mean", "of common hits", "median", "features", "rows", "CPU s", "aims"],
        rows,
    )
