"""Nearest and sparsest: how near the answers come with 50, 100 and 1,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import ask, nearness
from benchmarks.parts import Settings
from benchmarks.peers import dice
from benchmarks.problems import MODELS, TOLERANCE, Case, reachable_cell
from benchmarks.reporting import aim, show_table

QUERIES, BUDGETS, SHIFT = 20, (50, 100, 1000), 1.0
BATCHED = 500  # from so many rows on, the model is taken to be cheap and asked in batches
DICE = "dice-ml random"
AIMED = ("diabetes", "lgbm")
# Mean distances: the figures that the aims are compared with are means.
AIMS = {50: 2.4, 100: 2.2, 1000: 2.0}


def method(settings: Settings, budget: int) -> Any:
    """Return the search for a budget."""
    name = settings.method or "bayes-cfx"
    batched = budget >= BATCHED and name == "bayes-cfx"
    return cfx.BayesCFX(batch=settings.batch) if batched else name


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
    asked: list[Case], search: Any, budget: int, seed: int = 0
) -> tuple[dict[str, float | None], list[dict[str, Any]]]:
    """Ask all questions of a cell; return the figures and the single answers."""
    records = [
        nearness(
            question,
            ask(
                question,
                budget=budget,
                cost=True,
                seed=seed + i,
                tolerance=TOLERANCE,
                method=search,
            ),
        )
        for i, question in enumerate(asked)
    ]
    return summary(records), records


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per table, model and budget, and dice-ml's on the same questions."""
    cells = []
    for data in settings.data:
        for model in settings.models or MODELS:
            asked = reachable_cell(data, model, SHIFT, settings.queries or QUERIES)
            name = {"data": data, "model": model}
            for budget in settings.budgets or BUDGETS:
                search = method(settings, budget)
                figures, records = solve(asked, search, budget, settings.seed)
                cells.append(
                    name | {"side": "ours", "budget": budget} | figures | {"answers": records}
                )
            theirs = dice(asked, settings.peers)
            if theirs:
                cells.append(name | {"side": DICE} | summary(theirs) | {"answers": theirs})
    for c in cells:
        c["common"] = common_mean(c, cells)
    return {"tolerance": TOLERANCE, "shift": SHIFT, "batch": settings.batch, "cells": cells}


def common_mean(c: dict[str, Any], cells: list[dict[str, Any]]) -> float | None:
    """Return the mean distance over the questions that every side and budget hit.

    A side that misses the hard questions is not nearer for it.
    """
    beside = [d for d in cells if (d["data"], d["model"]) == (c["data"], c["model"])]
    hit = set.intersection(*({r["case"] for r in d["answers"] if r["hit"]} for d in beside))
    found = [r["distance"] for r in c["answers"] if r["case"] in hit]
    return float(np.mean(found)) if found else None


def aims(c: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """Return the aims of a cell with their verdicts; only LightGBM on the diabetes data has any."""
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
    """Print the cells, with the aims beside those that have any."""
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
        f"{100 * figures['tolerance']:g} % of the shift, from {BATCHED} rows on in batches of "
        f"{figures['batch']}",
        ["", "", "hits", "mean", "of common hits", "median", "features", "rows", "CPU s", "aims"],
        rows,
    )
