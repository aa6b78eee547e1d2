"""An audit: how many answers can be beaten, and by how much, by reverting, shrinking and sweeping.

Five tables that no search was tuned on: smooth and stepped functions, whole numbers, categories,
a circle and rules. Answers are judged by what the search minimises, distance and a little per
changed feature, and by the distance alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.space.region import Region
from benchmarks.auditor import MEASURES, Auditor
from benchmarks.mixed import available
from benchmarks.ours import ask, space
from benchmarks.parts import Settings
from benchmarks.problems import TOLERANCE, Case, fitted, income_cell, reachable_cell, rows_of
from benchmarks.reporting import aim, show_table

QUERIES = 17  # per table
BUDGETS = {2000: "sweep", 100: "bayes-cfx"}
TABLES = {"friedman1": "svr", "cancer-texture": "rf"} | dict.fromkeys(
    ("digits", "adult", "taxi"), "lgbm"
)
BEATEN = (0.01, 0.05, 0.1)
AIMS = {2000: 0.0, 100: 0.05}  # the share of answers that may be beaten by more than 10 %


def questions(data: str, queries: int) -> list[Case]:
    """Return the questions about a table: more and less of the output in turns."""
    model = TABLES[data]
    if data == "adult":
        return income_cell(model, queries)
    up, down = (reachable_cell(data, model, shift, queries) for shift in (1.0, -1.0))
    return [c for pair in zip(up, down, strict=False) for c in pair][:queries]


def audited(asked: Case, answer: cfx.Explanation) -> dict[str, Any]:
    """Return by how much an answer can be beaten, as a share of what it costs."""
    region = space(asked.data).around(asked.query)
    predict = fitted(asked.data, asked.model).predict
    auditor = Auditor(region, lambda X: predict(region.rows(X)), asked.hits)
    row = answer.best.row
    codes = region.encode(rows_of(asked.data).stack(row))[0]
    alone = Auditor(auditor.region, auditor.model, auditor.hits)
    reached = bool(alone.consider(codes[None], allowed=True)[0])
    auditor.audit(codes if reached else None)
    gains = {m: 1.0 - auditor.price[m] / alone.price[m] if reached else None for m in MEASURES}
    return {
        "case": asked.key,
        "reached": reached,
        "missed": not reached and auditor.best["distance"] is not None,
        "allowed": bool(region.contains(codes[None])[0]) and not asked.scored(row)["broken"],
        "price": alone.price,
        "gain": gains,
        "by": auditor.by,
        "answer": moves(region, codes),
        "nearer": {m: moves(region, row) for m, row in auditor.best.items() if row is not None},
        "audited_rows": auditor.rows,
    }


def moves(region: Region, row: Array) -> str:
    """Return what a row changes, in words."""
    texts = []
    for j in np.flatnonzero(region.changes(row[None])[0]):
        before, after = region.axes[j].feature.display(region.query[j], row[j])
        texts.append(f"{region.names[j]} {before} → {after}")
    return ", ".join(texts)


def run(settings: Settings) -> dict[str, Any]:
    """Return what the audit found, per budget and table."""
    cells = []
    for budget in settings.budgets or tuple(BUDGETS):
        method = settings.method or BUDGETS.get(budget, "bayes-cfx")
        for data in TABLES:
            if not available(data):
                continue
            records = []
            for i, asked in enumerate(questions(data, settings.queries or QUERIES)):
                found = ask(
                    asked,
                    budget=budget,
                    cost=True,
                    seed=settings.seed + i,
                    tolerance=TOLERANCE,
                    method=method,
                )
                records.append(audited(asked, found.answer))
            name = {"budget": budget, "method": method, "data": data, "model": TABLES[data]}
            cells.append(name | {"answers": records})
    return {"cells": cells}


def summary(records: list[dict[str, Any]], measure: str) -> list[float]:
    """Return how many answers were beaten, as shares, and the worst; a miss is beaten by all."""
    gains = [1.0 if r["missed"] else r["gain"][measure] for r in records]
    known = np.array([gain for gain in gains if gain is not None])
    if not len(known):
        return [0.0] * (len(BEATEN) + 1)
    return [*(float(np.mean(known > by)) for by in BEATEN), float(known.max())]


def show(figures: dict[str, Any]) -> None:
    """Print the shares beaten per budget and table, and over all tables beside the aim."""
    head = ["", "questions", "reached", "missed", "broken rules", *(f"> {by:.0%}" for by in BEATEN)]
    for measure in MEASURES:
        rows: list[list[object]] = []
        for budget in dict.fromkeys(c["budget"] for c in figures["cells"]):
            cells = [c for c in figures["cells"] if c["budget"] == budget]
            everything = [r for c in cells for r in c["answers"]]
            method = cells[0]["method"]
            groups = [(f"{c['data']} {c['model']}", c["answers"]) for c in cells]
            for name, records in [*groups, ("all", everything)]:
                counts = [
                    sum(r["reached"] for r in records),
                    sum(r["missed"] for r in records),
                    sum(not r["allowed"] for r in records),
                ]
                shares = summary(records, measure)
                aimed = name == "all" and measure == "effort" and budget in AIMS
                verdict = aim(shares[2], "<=", AIMS[budget]) if aimed else ""
                label = f"{budget} rows, {method}: {name}"
                rows.append([label, len(records), *counts, *shares, verdict])
        show_table(
            f"Audit by {measure}: share of answers that can be beaten by more than so much, and "
            "the worst",
            [*head, "worst", "aim on > 10 %"],
            rows,
        )
    everything = [(r, c) for c in figures["cells"] for r in c["answers"]]
    for r, c in sorted(everything, key=lambda pair: -(pair[0]["gain"]["effort"] or 0.0)):
        if r["missed"]:
            print(f"  missed with {c['budget']} rows: {r['case']}: {r['nearer']['effort']}")
        elif r["reached"] and r["gain"]["effort"] > BEATEN[-1]:
            print(
                f"  beaten by {r['gain']['effort']:.0%} with {c['budget']} rows: {r['case']}: "
                f"{r['answer']} at {r['price']['effort']:.3g}; {r['nearer']['effort']} "
                f"by {', '.join(r['by']['effort'][1:])}"
            )
