"""Nearest and sparsest: how near the answers come with 50, 100 and 1,000 rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import ask, nearness
from benchmarks.parts import Settings
from benchmarks.peers import dice
from benchmarks.problems import TOLERANCE, Case, reachable_cell
from benchmarks.reporting import aim, show_table

QUERIES, BUDGETS, SHIFT = 20, (50, 100, 1000), 1.0
BATCHED = 500  # from so many rows on, the model is taken to be cheap and asked in batches
# On LightGBM and the diabetes data.
AIMS = {50: 2.4, 100: 2.2, 1000: 2.0}


def method(settings: Settings, budget: int) -> Any:
    """Return the search for a budget."""
    if budget >= BATCHED and settings.method == "bayes-cfx":
        return cfx.BayesCFX(batch=settings.batch)
    return settings.method


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
    asked: list[Case], settings: Settings, budget: int
) -> tuple[dict[str, float | None], list[dict[str, Any]]]:
    """Ask all questions of a cell; return the figures and the single answers."""
    records = [
        nearness(
            question,
            ask(
                question,
                budget=budget,
                cost=True,
                seed=settings.seed + i,
                tolerance=TOLERANCE,
                method=method(settings, budget),
            ),
        )
        for i, question in enumerate(asked)
    ]
    return summary(records), records


def run(settings: Settings) -> dict[str, Any]:
    """Return the figures per table, model and budget, and dice-ml's on the same questions."""
    cells = []
    for data in settings.data:
        for model in settings.models:
            asked = reachable_cell(data, model, SHIFT, settings.queries or QUERIES)
            name = {"data": data, "model": model}
            for budget in settings.budgets or BUDGETS:
                figures, records = solve(asked, settings, budget)
                cells.append(
                    name | {"side": "ours", "budget": budget} | figures | {"answers": records}
                )
            theirs = dice(asked, settings.peers)
            if theirs:
                cells.append(
                    name | {"side": "dice-ml random"} | summary(theirs) | {"answers": theirs}
                )
    return {"tolerance": TOLERANCE, "shift": SHIFT, "batch": settings.batch, "cells": cells}


def show(figures: dict[str, Any]) -> None:
    """Print the cells, with the aim beside those that have one."""
    rows = []
    for c in figures["cells"]:
        mine = c["side"] == "ours"
        aimed = mine and c["data"] == "diabetes" and c["model"] == "lgbm" and c["budget"] in AIMS
        # mean: the figures that the aims are compared with are means
        text = aim(c["mean"], "<=", AIMS[c["budget"]]) if aimed and c["mean"] is not None else ""
        label = f"ours, {c['budget']} rows" if mine else c["side"]
        rows.append(
            [f"{c['data']} {c['model']}", label]
            + [c[k] for k in ("hits", "mean", "median", "features", "rows", "seconds")]
            + [text]
        )
    show_table(
        f"Nearest and sparsest, +{figures['shift']:g} sd, hit = within "
        f"{100 * figures['tolerance']:g} % of the shift, {figures['batch']} rows a batch at 1,000",
        ["", "", "hits", "mean", "median", "features", "rows", "CPU s", "aim (hits 1)"],
        rows,
    )
