"""Overhead per step, fit and proposal, with 10 features and about 40 points.

Both sides start from the query and the same 36 evaluated Sobol points of the diabetes data's box,
with a target that does not count as reached. The time outside the model is measured for a few
steps. BoTorch runs right after our side. Our own loops with the same number of points, before and
after the first hit, are timed too. Seconds are CPU seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.ours import Recorder, ask, space
from benchmarks.parts import Settings
from benchmarks.peers import botorch, stored
from benchmarks.problems import MODELS, TOLERANCE, Case, fitted, reachable_cell, sobol, table
from benchmarks.reporting import aim, show_table

POINTS = 36
STEPS = 6
QUERIES = 3
SHIFT = 1.0
NEVER_REACHED = 1e-9  # a tolerance that no output meets
RATIO = 30.0  # the aim
TIMES = {
    "ours": "ours",
    "ours_nearer": "ours, nearest hit",
    "botorch": "BoTorch",
    "botorch_stored": "BoTorch's own loop, earlier run",
}


def step_seconds(case: Case, seed: int) -> list[float]:
    """Return our seconds per step with the evaluated points."""
    rows = table(case.data)
    predict = fitted(case.data, case.model).predict
    X = rows.low + sobol(case.data, POINTS) * (rows.high - rows.low)
    known = cfx.Evaluations()
    known.append(X, predict(X))
    recorder = Recorder(predict)
    cfx.explain(
        recorder,
        case.query,
        space(case.data).cost(weight=0),
        cfx.reach(case.target),
        method="bayes-cfx",
        evaluations=known,
        tolerance=NEVER_REACHED,
        budget=STEPS + 2,
        rng=seed,
    )
    return [seconds for _, seconds in recorder.gaps()][1:]


def loop_seconds(case: Case, seed: int) -> list[float]:
    """Return our seconds per step of a search for the nearest hit, from 36 points on."""
    options = {"tolerance": TOLERANCE, "method": "bayes-cfx"}
    found = ask(case, budget=POINTS + STEPS, cost=True, seed=seed, **options)
    return [seconds for known, seconds in found.recorder.gaps() if known >= POINTS]


def run(settings: Settings) -> dict[str, Any]:
    """Return the median seconds of both sides per model, and their ratio."""
    cells = []
    for model in settings.models or MODELS:
        cases = reachable_cell("diabetes", model, SHIFT, settings.queries or QUERIES)
        mine: list[float] = []
        loop: list[float] = []
        for i, case in enumerate(cases):
            mine += step_seconds(case, settings.seed + i)
            loop += loop_seconds(case, settings.seed + i)
        figures: dict[str, Any] = {
            "model": model,
            "ours": float(np.median(mine)),
            "ours_nearer": float(np.median(loop)) if loop else None,
            "botorch": None,
            "botorch_stored": stored_botorch_seconds(model),
            "ratio": None,
        }
        theirs = botorch_seconds(cases) if settings.peers in ("auto", "run") else None
        if theirs is not None:
            figures["botorch"] = theirs
            figures["ratio"] = theirs / figures["ours"]
        cells.append(figures)
    return {"points": POINTS, "cells": cells}


def botorch_seconds(cases: list[Case]) -> float | None:
    """Return BoTorch's median seconds per step; the first step, with imports, is left out."""
    seconds: list[float] = []
    for answer in botorch(cases, POINTS, POINTS + 1 + STEPS):
        seconds += answer["step_seconds"][1:]
    return float(np.median(seconds)) if seconds else None


def stored_botorch_seconds(model: str) -> float | None:
    """Return BoTorch's median seconds for the last steps of its own loop, from an earlier run."""
    steps = [
        seconds
        for key, answer in stored().items()
        if key.startswith(f"diabetes/{model}/")
        for seconds in answer["step_seconds"][-4:]
    ]
    return float(np.median(steps)) if steps else None


def show(figures: dict[str, Any]) -> None:
    """Print milliseconds per step, the ratio and its aim."""
    rows = [
        [
            c["model"],
            *(None if c[k] is None else 1e3 * c[k] for k in TIMES),
            c["ratio"],
            aim(c["ratio"], ">=", RATIO),
        ]
        for c in figures["cells"]
    ]
    show_table(
        f"Overhead per step, 10 features, from {figures['points']} points on, CPU ms (median)",
        ["", *TIMES.values(), "ratio", "aim"],
        rows,
    )
