"""Overhead per step, fit and proposal, with 10 features and about 40 points.

Both sides get the query and the same 36 Sobol points of the diabetes data's box, already evaluated,
and a target that they may not call reached, and are timed outside of the model while they take a
few steps. BoTorch runs right after us. Our own loops at the same number of points, before and
after the first hit, are timed as well. Seconds are CPU seconds.
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

POINTS, STEPS, QUERIES, SHIFT = 36, 6, 3, 1.0
NEVER_REACHED = 1e-9  # a tolerance that no output meets
RATIO = 30.0
TIMES = {
    "ours": "ours",
    "ours_nearer": "ours, nearest hit",
    "botorch": "BoTorch",
    "botorch_stored": "BoTorch's own loop, earlier run",
}


def given_points(asked: Case, seed: int) -> list[float]:
    """Return our seconds per step, the given points being known."""
    rows, predict = table(asked.data), fitted(asked.data, asked.model).predict
    X = rows.low + sobol(asked.data, POINTS) * (rows.high - rows.low)
    known = cfx.Evaluations()
    known.append(X, predict(X))
    recorder = Recorder(predict)
    cfx.explain(
        recorder,
        asked.query,
        space(asked.data).cost(weight=0),
        cfx.reach(asked.target),
        method="bayes-cfx",
        evaluations=known,
        tolerance=NEVER_REACHED,
        budget=STEPS + 2,
        rng=seed,
    )
    return [seconds for _, seconds in recorder.gaps()][1:]


def own_loop(asked: Case, seed: int) -> list[float]:
    """Return our seconds per step of a search for the nearest hit, from 36 points on."""
    options = {"tolerance": TOLERANCE, "method": "bayes-cfx"}
    found = ask(asked, budget=POINTS + STEPS, cost=True, seed=seed, **options)
    return [seconds for known, seconds in found.recorder.gaps() if known >= POINTS]


def run(settings: Settings) -> dict[str, Any]:
    """Return the median seconds of both sides per model, and their ratio."""
    cells = []
    for model in settings.models or MODELS:
        asked = reachable_cell("diabetes", model, SHIFT, settings.queries or QUERIES)
        mine = [s for i, c in enumerate(asked) for s in given_points(c, settings.seed + i)]
        loop = [s for i, c in enumerate(asked) for s in own_loop(c, settings.seed + i)]
        figures: dict[str, Any] = {
            "model": model,
            "ours": float(np.median(mine)),
            "ours_nearer": float(np.median(loop)) if loop else None,
            "botorch": None,
            "botorch_stored": own_botorch_loop(model),
            "ratio": None,
        }
        if settings.peers in ("auto", "run"):
            answers = botorch(asked, POINTS, POINTS + 1 + STEPS)
            # The first step also pays for imports.
            theirs = [s for answer in answers for s in answer["step_seconds"][1:]]
            if theirs:
                figures["botorch"] = float(np.median(theirs))
                figures["ratio"] = figures["botorch"] / figures["ours"]
        cells.append(figures)
    return {"points": POINTS, "cells": cells}


def own_botorch_loop(model: str) -> float | None:
    """Return BoTorch's median seconds for the last steps of its own loop, from an earlier run."""
    steps = [
        seconds
        for key, answer in stored().items()
        if key.startswith(f"diabetes/{model}/")
        for seconds in answer["step_seconds"][-4:]
    ]
    return float(np.median(steps)) if steps else None


def show(figures: dict[str, Any]) -> None:
    """Print milliseconds per step and the ratio beside its aim."""
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
