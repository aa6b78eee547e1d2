"""Audit: how many answers can be improved, and by how much.

The five tables were not used for tuning: smooth and stepped functions, integers, categories, a
cyclic feature and rules. Answers are judged by their cost, the objective of the search, and by the
distance alone.
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
AIMS = {2000: 0.0, 100: 0.05}  # share of answers that may be improved by more than 10 %


def questions(data: str, queries: int) -> list[Case]:
    """Return the questions about a table, with higher and lower targets in turns."""
    model = TABLES[data]
    if data == "adult":
        return income_cell(model, queries)
    up, down = (reachable_cell(data, model, shift, queries) for shift in (1.0, -1.0))
    return [c for pair in zip(up, down, strict=False) for c in pair][:queries]


def audit(case: Case, answer: cfx.Explanation) -> dict[str, Any]:
    """Return the improvement of an answer that the auditor finds, as a share of its cost."""
    region = space(case.data).around(case.query)
    predict = fitted(case.data, case.model).predict
    auditor = Auditor(region, lambda X: predict(region.rows(X)), case.hits)
    row = answer.best.row
    codes = region.encode(rows_of(case.data).stack(row))[0]
    alone = Auditor(auditor.region, auditor.model, auditor.hits)
    reached = bool(alone.consider(codes[None], allowed=True)[0])
    auditor.audit(codes if reached else None)
    gains: dict[str, float | None] = dict.fromkeys(MEASURES)
    if reached:
        gains = {m: 1.0 - auditor.price[m] / alone.price[m] for m in MEASURES}
    return {
        "case": case.key,
        "reached": reached,
        "missed": not reached and auditor.best["distance"] is not None,
        "allowed": bool(region.contains(codes[None])[0]) and not case.scored(row)["broken"],
        "price": alone.price,
        "gain": gains,
        "by": auditor.by,
        "answer": moves(region, codes),
        "nearer": {m: moves(region, row) for m, row in auditor.best.items() if row is not None},
        "audited_rows": auditor.rows,
    }


def moves(region: Region, row: Array) -> str:
    """Return the changes of a row as text."""
    texts = []
    for j in np.flatnonzero(region.changes(row[None])[0]):
        before, after = region.axes[j].feature.display(region.query[j], row[j])
        texts.append(f"{region.names[j]} {before} → {after}")
    return ", ".join(texts)


def run(settings: Settings) -> dict[str, Any]:
    """Return the results of the audit per budget and table."""
    cells = []
    for budget in settings.budgets or tuple(BUDGETS):
        method = settings.method or BUDGETS.get(budget, "bayes-cfx")
        for data in TABLES:
            if not available(data):
                continue
            records = []
            for i, case in enumerate(questions(data, settings.queries or QUERIES)):
                found = ask(
                    case,
                    budget=budget,
                    cost=True,
                    seed=settings.seed + i,
                    tolerance=TOLERANCE,
                    method=method,
                )
                records.append(audit(case, found.answer))
            name = {"budget": budget, "method": method, "data": data, "model": TABLES[data]}
            cells.append(name | {"answers": records})
    return {"cells": cells}


def summary(records: list[dict[str, Any]], measure: str) -> list[float]:
    """Return the shares of improved answers and the largest gain; a miss counts as a gain of 1."""
    gains = [1.0 if r["missed"] else r["gain"][measure] for r in records]
    known = np.array([gain for gain in gains if gain is not None])
    if not len(known):
        return [0.0] * (len(BEATEN) + 1)
    return [*(float(np.mean(known > by)) for by in BEATEN), float(known.max())]


Cell = dict[str, Any]
Records = list[dict[str, Any]]


def show(figures: dict[str, Any]) -> None:
    """Print the shares of improved answers per budget and table, and the improved answers."""
    head = ["", "questions", "reached", "missed", "broken rules", *(f"> {by:.0%}" for by in BEATEN)]
    for measure in MEASURES:
        rows: list[list[object]] = []
        for budget in dict.fromkeys(cell["budget"] for cell in figures["cells"]):
            cells = [cell for cell in figures["cells"] if cell["budget"] == budget]
            rows += _rows(cells, measure)
        show_table(
            f"Audit by {measure}: share of answers that can be improved by more than so much, and "
            "the largest gain",
            [*head, "worst", "aim on > 10 %"],
            rows,
        )
    _show_improved(figures["cells"])


def _rows(cells: list[Cell], measure: str) -> list[list[object]]:
    """Return a line per cell of one budget, and one for all of them with the aim."""
    budget = cells[0]["budget"]
    label = f"{budget} rows, {cells[0]['method']}"
    rows = []
    for cell in cells:
        name = f"{label}: {cell['data']} {cell['model']}"
        rows.append([name, *_figures(cell["answers"], measure), ""])
    everything = [record for cell in cells for record in cell["answers"]]
    has_aim = measure == "cost" and budget in AIMS
    share_above_10 = summary(everything, measure)[2]
    verdict = aim(share_above_10, "<=", AIMS[budget]) if has_aim else ""
    rows.append([f"{label}: all", *_figures(everything, measure), verdict])
    return rows


def _figures(records: Records, measure: str) -> list[Any]:
    """Return the counts of answers, then the shares of `summary`."""
    return [
        len(records),
        sum(record["reached"] for record in records),
        sum(record["missed"] for record in records),
        sum(not record["allowed"] for record in records),
        *summary(records, measure),
    ]


def _show_improved(cells: list[Cell]) -> None:
    """Print the missed answers and those improved by more than 10 %, the largest gain first."""
    pairs = [(record, cell["budget"]) for cell in cells for record in cell["answers"]]
    pairs.sort(key=lambda pair: -(pair[0]["gain"]["cost"] or 0.0))
    for record, budget in pairs:
        if record["missed"]:
            print(f"  missed with {budget} rows: {record['case']}: {record['nearer']['cost']}")
        elif record["reached"] and record["gain"]["cost"] > BEATEN[-1]:
            print(
                f"  improved by {record['gain']['cost']:.0%} with {budget} rows: "
                f"{record['case']}: {record['answer']} at {record['price']['cost']:.3g}; "
                f"{record['nearer']['cost']} by {', '.join(record['by']['cost'][1:])}"
            )
