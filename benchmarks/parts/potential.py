"""Potential only: the share of the best known potential found in 40 calls, and how soon."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import ask
from benchmarks.parts import Settings
from benchmarks.peers import botorch_traces
from benchmarks.problems import MODELS, Case, cell, order
from benchmarks.reporting import aim, show_table

QUERIES = 20
PEER_QUERIES = 5
BUDGET = 40
SHIFTS = (0.5, 1.5, -1.0)
SHARE = 0.99
AIMS = {
    "share": (">=", 0.95),
    "calls": ("<=", 7.0),
    "shortfall": ("<=", 0.01),
    "worst": ("<=", 0.1),
}
NAMES = {
    "share": "share of problems at 99 % of the best known",
    "calls": "median calls until then",
    "shortfall": "mean shortfall, of the peak",
    "worst": "worst shortfall, of the peak",
}


def all_cases(settings: Settings, queries: int) -> list[Case]:
    """Return the problems, reachable or not."""
    return [
        case
        for data in settings.data
        for model in settings.models or MODELS
        for shift in SHIFTS
        for case in cell(data, model, shift, queries)
    ]


def method(settings: Settings) -> Any:
    """Return the search; ours must not give up, because unreachable targets need a best guess."""
    ours = settings.method in (None, "bayes-cfx")
    return cfx.BayesCFX(give_up=False) if ours else settings.method


def run(settings: Settings) -> dict[str, Any]:
    """Return the traces of both sides and their figures."""
    queries = settings.queries or QUERIES
    budget = settings.budgets[0] if settings.budgets else BUDGET
    cases = all_cases(settings, queries)
    traces = {}
    endings = {}
    seconds = []
    for case in cases:
        found = ask(
            case,
            budget=budget,
            cost=False,
            seed=settings.seed + order(case.data).index(case.row),
            method=method(settings),
        )
        traces[case.key] = found.recorder.outputs
        endings[case.key] = found.answer.stopped
        seconds.append(found.seconds)
    common = all_cases(settings, min(queries, PEER_QUERIES))
    theirs = botorch_traces(common, BUDGET, _mode(settings)) if budget == BUDGET else {}
    known = {c.key: best_known(c, traces[c.key], theirs.get(c.key, [])) for c in cases}
    shared = [c for c in common if c.key in theirs]
    figures: dict[str, Any] = {
        "budget": budget,
        "queries": queries,
        "ours": summary(cases, traces, known),
        "ours_common": summary(shared, traces, known) if shared else None,
        "botorch_common": summary(shared, theirs, known) if shared else None,
        "seconds_per_problem": float(np.mean(seconds)),
        "cells": cells(cases, traces, known),
        "hard": hardest(cases, traces, known),
        "best_known": known,
        "endings": endings,
        "traces": {key: np.round(y, 6).tolist() for key, y in traces.items()},
    }
    return figures


def _mode(settings: Settings) -> str:
    """Return the mode of BoTorch; on tables without an aim it runs only on request."""
    has_aims = settings.data == Settings.data
    return "cached" if settings.peers == "auto" and not has_aims else settings.peers


def best_known(case: Case, *found: list[float]) -> float:
    """Return the best potential of 50,000 random rows and of all rows that a method scored."""
    return max(case.best_random, *(float(case.potential(y).max()) for y in found if y))


def scores(case: Case, y: list[float], known: float) -> tuple[float, float]:
    """Return the shortfall as a share of the peak, and the calls until 99 % of the best known."""
    if known < 1e-9:  # no row is nearer to the target than the query
        return 0.0, 1.0
    trace = np.maximum.accumulate(case.potential(y))
    enough = trace >= SHARE * known
    calls = float(np.argmax(enough) + 1) if enough.any() else np.inf
    return known - float(trace[-1]), calls


def summary(
    cases: list[Case], traces: dict[str, list[float]], known: dict[str, float]
) -> dict[str, float]:
    """Return the four figures of a set of problems."""
    pairs = np.array([scores(c, traces[c.key], known[c.key]) for c in cases])
    return {
        "problems": len(cases),
        "share": float(np.mean(np.isfinite(pairs[:, 1]))),
        "calls": float(np.median(pairs[:, 1])),
        "shortfall": float(np.mean(pairs[:, 0])),
        "worst": float(np.max(pairs[:, 0])),
    }


def cells(
    cases: list[Case], traces: dict[str, list[float]], known: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Return the figures per table, model and shift."""
    groups: dict[str, list[Case]] = {}
    for c in cases:
        groups.setdefault(f"{c.data} {c.model} {c.shift:+g} sd", []).append(c)
    return {name: summary(group, traces, known) for name, group in groups.items()}


def hardest(
    cases: list[Case], traces: dict[str, list[float]], known: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the problems with the largest shortfalls."""
    short = [(scores(c, traces[c.key], known[c.key])[0], c.key) for c in cases]
    return [{"case": key, "shortfall": s} for s, key in sorted(short, reverse=True)[:8] if s > 0.01]


def show(figures: dict[str, Any]) -> None:
    """Print the figures beside their aims."""
    ours, mine, peer = (figures[k] for k in ("ours", "ours_common", "botorch_common"))
    head = ["", f"ours ({ours['problems']})", "aim"]
    rows = [[NAMES[k], ours[k], aim(ours[k], *AIMS[k])] for k in AIMS]
    if peer:
        head += [f"ours ({mine['problems']} common)", "BoTorch", "ahead"]
        for row, key in zip(rows, AIMS, strict=True):
            ahead = mine[key] >= peer[key] if key == "share" else mine[key] <= peer[key]
            row += [mine[key], peer[key], ahead]
    show_table(f"Potential only, {figures['budget']} calls, the query's included", head, rows)
    show_table(
        "  by cell",
        ["", "share", "calls", "shortfall", "worst"],
        [[name, *(c[k] for k in AIMS)] for name, c in figures["cells"].items()],
    )
    for hard in figures["hard"]:
        key = hard["case"]
        spent = len(figures["traces"][key])
        known = figures["best_known"][key]
        print(
            f"  short by {hard['shortfall']:.3f}: {key}, best known {known:.3f}, "
            f"ended by {figures['endings'][key]!r} after {spent} rows"
        )
    print(f"  {figures['seconds_per_problem']:.2f} CPU s per problem")
