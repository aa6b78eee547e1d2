"""Same seed, same answer: in two runs, for any `n_jobs`, without side effects."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.search.methods import METHODS
from benchmarks.ours import ask, space
from benchmarks.parts import Settings
from benchmarks.problems import MODELS, fitted, order, reachable_cell, table
from benchmarks.reporting import show_table

BUDGET = 30
MANY = 70  # queries: two blocks of `explain_many`
MANY_BUDGET = 6


def content(answers: Sequence[cfx.Explanation]) -> list[tuple[Any, ...]]:
    """Return the fields that must be equal in two runs, to the last bit."""
    return [
        (
            answer.status,
            answer.n_evaluations,
            answer.trace.tolist(),
            [(np.asarray(c.row).tolist(), c.output) for c in answer.counterfactuals],
        )
        for answer in answers
    ]


def global_states() -> str:
    """Return the global random states of Python and NumPy as text."""
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - the global state is what is checked
    with np.printoptions(threshold=10_000):
        return repr((random.getstate(), state))


def many(model: str, seed: int, n_jobs: int) -> list[tuple[Any, ...]]:
    """Return the content of 70 answers."""
    rows = order("diabetes")[:MANY]
    answers = cfx.explain_many(
        fitted("diabetes", model).predict,
        table("diabetes").X[rows],
        space("diabetes"),
        cfx.reach(percent=30),
        method="bayes-cfx",
        budget=MANY_BUDGET,
        rng=seed,
        n_jobs=n_jobs,
    )
    return content(answers)


def run(settings: Settings) -> dict[str, Any]:
    """Return whether each check holds, by name."""
    checks: dict[str, bool] = {}
    models = settings.models or MODELS
    cases = {model: reachable_cell("diabetes", model, 1.0, 1)[0] for model in models}
    before = global_states()  # only now, because fitting a model may draw from them
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for model in models:
            for method in METHODS:
                first, second = (
                    ask(
                        cases[model], budget=BUDGET, cost=True, seed=settings.seed, method=method
                    ).answer
                    for _ in range(2)
                )
                checks[f"{model}, {method}: twice the same"] = content([first]) == content([second])
            checks[f"{model}: n_jobs 1 and 2 the same"] = many(model, settings.seed, 1) == many(
                model, settings.seed, 2
            )
    checks["global random states untouched"] = before == global_states()
    checks["no warning"] = not caught
    return {"checks": checks, "warnings": sorted({str(w.message) for w in caught})}


def show(figures: dict[str, Any]) -> None:
    """Print the number of checks that hold, and each that fails."""
    checks = figures["checks"]
    broken = [[name, False] for name, holds in checks.items() if not holds]
    title = f"Same seed, same answer: {len(checks) - len(broken)} of {len(checks)} checks hold"
    show_table(title, ["", "holds"], broken or [["all", True]])
    for text in figures["warnings"]:
        print(f"  warning: {text}")
