"""Few rows for each of many queries, whose rows are shared or not: which answers are nearer.

Sets of queries to one model, each asked in one `explain_many` that shares rows and in one that does
not, which is the same as separate calls. A third run, separate again with another seed, shows how
much single answers differ by chance.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

import bayescfx as cfx
from benchmarks.ours import Recorder, space
from benchmarks.parts import Settings
from benchmarks.problems import MODELS, Array, Case, fitted, reachable_cell, table
from benchmarks.reporting import aim, show_table

SETS = 5  # of each of four models
QUERIES = 16
BUDGETS = (20, 23, 36, 39, 57, 100, 200)  # odd ones, too: a rule must not fit one budget only
SHIFTS = (0.5, 1.0)  # standard deviations, for every other set
MOST_COST = 1.0  # times that of separate calls
MOST_SECONDS = 1.2
FAR = 1.5  # an answer is much farther if it costs so many times as much


@dataclass(frozen=True, eq=False)
class Run:
    """The answers to one set of queries."""

    hits: Array
    costs: Array
    rows: int
    seconds: float


@dataclass(frozen=True)
class Cell:
    """A model with a budget: sums over all sets."""

    data: str
    model: str
    budget: int
    hits: float
    hits_alone: float
    mean: float
    mean_again: float
    worst: float
    worst_again: float
    much_farther: int
    much_farther_again: int
    common: int
    rows: float
    seconds: float


def sets(data: str, model: str, n_sets: int, n_queries: int, first: int) -> list[list[Case]]:
    """Return sets of questions that random rows reach; sets share no row while there are enough."""
    most = len(table(data).X)
    pools = [reachable_cell(data, model, shift, most) for shift in SHIFTS]
    found = []
    for i in range(first, first + n_sets):
        pool = pools[i % len(pools)]
        start = (i // len(pools)) * n_queries
        found.append([pool[(start + k) % len(pool)] for k in range(n_queries)])
    return found


def ask(
    cases: list[Case], budget: int, share: Literal["block", "none"], seed: int, method: str
) -> Run:
    """Answer one set."""
    recorder = Recorder(fitted(cases[0].data, cases[0].model).predict)
    targets = [cfx.at_least(c.target) if c.shift > 0.75 else cfx.reach(c.target) for c in cases]
    begin = time.process_time()
    answers = cfx.explain_many(
        recorder,
        np.array([c.query for c in cases]),
        space(cases[0].data),
        targets,
        budget=budget,
        rng=seed,
        share=share,
        method=method,
    )
    seconds = time.process_time() - begin - recorder.inside
    hits = np.array([answer.reached for answer in answers])
    costs = np.array([answer.best.cost for answer in answers], dtype=np.float64)
    return Run(hits, costs, len(recorder.outputs), seconds)


def compare(
    data: str, model: str, budget: int, asked: list[list[Case]], settings: Settings
) -> Cell:
    """Return shared runs beside separate ones."""
    method = settings.method or "bayes-cfx"
    shared = []
    alone = []
    again = []
    for i, cases in enumerate(asked):
        seed = settings.seed + i
        shared.append(ask(cases, budget, "block", seed, method))
        alone.append(ask(cases, budget, "none", seed, method))
        again.append(ask(cases, budget, "none", seed + 1000, method))
    ratios, mean = _ratios(shared, alone)
    ratios_again, mean_again = _ratios(again, alone)
    return Cell(
        data,
        model,
        budget,
        hits=float(np.mean([run.hits.mean() for run in shared])),
        hits_alone=float(np.mean([run.hits.mean() for run in alone])),
        mean=mean,
        mean_again=mean_again,
        worst=float(ratios.max()),
        worst_again=float(ratios_again.max()),
        much_farther=int((ratios > FAR).sum()),
        much_farther_again=int((ratios_again > FAR).sum()),
        common=len(ratios),
        rows=sum(run.rows for run in shared) / sum(run.rows for run in alone),
        seconds=sum(run.seconds for run in shared) / sum(run.seconds for run in alone),
    )


def _ratios(runs: list[Run], others: list[Run]) -> tuple[Array, float]:
    """Return the ratio of costs for each query that both hit, and that of the mean costs."""
    is_common = np.concatenate([r.hits & o.hits for r, o in zip(runs, others, strict=True)])
    costs = np.concatenate([run.costs for run in runs])[is_common]
    other_costs = np.concatenate([run.costs for run in others])[is_common]
    return costs / other_costs, float(costs.mean() / other_costs.mean())


def show(figures: dict[str, Any]) -> None:
    """Print ratios of shared to separate runs, and of one seed's separate runs to another's."""
    rows = []
    for cell in figures["cells"]:
        rows.append(
            [
                f"{cell['data']}, {cell['model']}, {cell['budget']}",
                *(cell[key] for key in ("hits", "hits_alone", "mean", "mean_again")),
                *(cell[key] for key in ("much_farther", "much_farther_again", "common")),
                *(cell[key] for key in ("worst", "worst_again", "rows", "seconds")),
                aim(cell["mean"], "<=", MOST_COST),
                aim(cell["seconds"], "<=", MOST_SECONDS),
            ]
        )
    show_table(
        "Answers of queries that share their rows, beside separate calls (and separate calls with "
        "another seed)",
        [
            *("", "hits", "alone", "mean cost", "(seed)", f"{FAR} times as far", "(seed)", "of"),
            *("worst", "(seed)", "rows", "CPU", "aim on cost", "aim on CPU"),
        ],
        rows,
    )


def run(settings: Settings) -> dict[str, Any]:
    """Return a cell per table, model and budget."""
    cells = []
    for data in settings.data:
        for model in settings.models or MODELS:
            asked = sets(data, model, SETS, settings.queries or QUERIES, settings.seed)
            for budget in settings.budgets or BUDGETS:
                cells.append(asdict(compare(data, model, budget, asked, settings)))
    return {"queries": settings.queries or QUERIES, "cells": cells}
