"""Figure 4 and its table: four searches on Adult, 30 calls.

Each query asks for a probability of 0.5: AEP₋ with f(q) − w = 0.5. No cost of moving. The four
methods see the paper's box and its surrogate (RBF, zero mean, on probabilities); a fifth line is
this library with its defaults (rows of the data to start from, log-odds, Matérn 5/2). Two
supplements: the verdict against brute force where capital change is fixed too, so that some queries
can't reach 0.5; and plainer Bayesian searches, see `plain_bayes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from experiments import plain_bayes
from experiments.adult import FREE, READINGS, Adult, load, lowest
from experiments.drawing import LOOK, figure
from experiments.fig4_words import MAIN, tell
from experiments.runs import (
    DEFAULTS,
    PAPER_METHODS,
    Method,
    Settings,
    calls_to,
    each,
    median_calls,
    padded,
    spread,
)

__all__ = ["NAME", "draw", "run", "tell"]

NAME = "fig4_adult"
BUDGET = 30
TARGET = 0.5
LEVEL = 0.99
TOLERANCE = 0.02  # a search ends at 99.9 % of the peak
METHODS = (*PAPER_METHODS, DEFAULTS)
FEWER = ("age", "hours-per-week")  # free in the supplement on verdicts


@dataclass(frozen=True, eq=False)
class Group:
    """Searches that belong together: one method on all queries and seeds of one reading."""

    problem: Adult
    method: Method
    queries: int
    seeds: int
    free: tuple[str, ...] = FREE

    def tasks(self) -> list[tuple[Any, ...]]:
        """Return what `search` needs, query by query."""
        model: Any = self.problem.model
        space = self.problem.box
        if self.method is DEFAULTS:
            space = self.problem.space.allow(*self.free)
            model = cfx.probability(model.pipeline, True)
        return [
            (model, self.problem.queries.iloc[i], space, self.method.search, 1000 * i + seed)
            for i in range(self.queries)
            for seed in range(self.seeds)
        ]


def run(settings: Settings) -> dict[str, Any]:
    """Run every method on every query and seed, under both readings of "capital change"."""
    problems = {reading: load(reading, settings.data) for reading in READINGS}
    few = {r: settings.pick(len(p.queries), 3) for r, p in problems.items()}
    # the other reading is only there for the table of changes: one seed is enough
    seeds = {r: settings.pick(5 if r == MAIN else 1, 1) for r in READINGS}
    groups = {
        (reading, method.name): Group(problem, method, few[reading], seeds[reading])
        for reading, problem in problems.items()
        for method in (METHODS if reading == MAIN else PAPER_METHODS)
    }
    groups[MAIN, "verdict"] = Group(problems[MAIN], DEFAULTS, few[MAIN], 1, FEWER)
    found = _all_at_once(groups, settings.jobs)
    result: dict[str, Any] = {"budget": BUDGET, "level": LEVEL, "target": TARGET, "readings": {}}
    for reading, problem in problems.items():
        reachable = _reachable(problem, FREE, settings)[: few[reading]]
        methods = {
            name: _summary(found[one, name], np.repeat(reachable, seeds[reading]))
            for one, name in groups
            if one == reading and name != "verdict"
        }
        result["readings"][reading] = _describe(problem, few[reading], reachable) | {
            "seeds": seeds[reading],
            "methods": methods,
        }
    result["verdict"] = {
        "free": FEWER,
        "reachable": _reachable(problems[MAIN], FEWER, settings)[: few[MAIN]],
        "status": [status for _, _, status in found[MAIN, "verdict"]],
    }
    random = np.array([one[0] for one in found[MAIN, "Random"]]).reshape(few[MAIN], -1, BUDGET)
    result["plain"] = _plain(problems[MAIN], random, settings)
    return result


def _reachable(problem: Adult, free: tuple[str, ...], settings: Settings) -> Mask:
    """Return which queries can come within the tolerance of 0.5, by brute force."""
    start = problem.model(problem.queries)
    enough = TARGET + TOLERANCE * (start - TARGET)
    return np.asarray(lowest(problem, settings.pick(21, 5), free) <= enough)


def _all_at_once(groups: dict[Any, Group], jobs: int) -> dict[Any, list[Any]]:
    """Run all groups as one list of tasks, slow methods first, so that no core waits."""
    order = sorted(groups, key=lambda key: groups[key].method.name[0] != "B")
    tasks = {key: groups[key].tasks() for key in order}
    answers = iter(each(search, [t for key in order for t in tasks[key]], NAME, jobs))
    return {key: [next(answers) for _ in tasks[key]] for key in order}


def _describe(problem: Adult, queries: int, reachable: Mask) -> dict[str, Any]:
    return {
        "rows": len(problem.rows),
        "accuracy": problem.accuracy,
        "queries": queries,
        "unreachable": int((~reachable).sum()),
        "mean_query": problem.queries[list(FREE)].iloc[:queries].mean().tolist(),
        "limits": problem.rows[list(FREE)].agg(["min", "max"]).to_numpy().T,
    }


def _plain(problem: Adult, random: Array, settings: Settings) -> dict[str, Any]:
    """Return how plainer Bayesian searches, and random search, fare on every sixth query."""
    queries = range(0, settings.pick(len(problem.queries), 2), 6)
    ways = plain_bayes.WAYS[:: settings.pick(1, 2)]
    tasks = [(way, problem, i, TARGET, BUDGET, 1000 * i) for way in ways for i in queries]
    answers = iter(each(plain_bayes.search, tasks, f"{NAME}: plainer", settings.jobs))
    found = {way.name: [next(answers) for _ in queries] for way in ways}
    return {
        "queries": len(queries),
        "random": float(random[list(queries), :, -1].mean()),
        "ways": {
            name: plain_bayes.describe(*(np.array(part) for part in zip(*mine, strict=True)))
            for name, mine in found.items()
        },
    }


def search(task: tuple[Any, pd.Series[Any], cfx.Space, Any, int]) -> tuple[Array, Array, str]:
    """Return the trace ``(30,)`` of a search, the change of the three features, the status."""
    model, query, space, method, seed = task
    answer = cfx.explain(
        model,
        query,
        space,
        cfx.reach(TARGET),
        method=method,
        budget=BUDGET,
        tolerance=TOLERANCE,
        rng=seed,
    )
    names = list(FREE)
    row = pd.Series(answer.best.row, index=query.index)
    change = row[names].to_numpy(float) - query[names].to_numpy(float)
    return padded(np.asarray(answer.trace), BUDGET), change, answer.status


def _summary(found: list[tuple[Array, Array, str]], reachable: Mask) -> dict[str, Any]:
    traces, changes = (np.array([one[k] for one in found]) for k in (0, 1))
    status = np.array([one[2] for one in found])
    calls = [calls_to(trace, LEVEL) for trace in traces]
    done = np.array([c is not None for c in calls])
    return {
        "potential": spread(traces),
        "solved": [float((traces[:, k] >= LEVEL).mean()) for k in range(BUDGET)],
        "median_calls": median_calls(calls),
        "solved_of_reachable": float(done[reachable].mean()) if reachable.any() else None,
        "called_unreachable": int((status == "unreachable").sum()),
        "wrongly_unreachable": int((status[reachable] == "unreachable").sum()),
        "mean_change": changes.mean(axis=0),
        "sd_change": changes.std(axis=0),
        "mean_size_of_change": np.abs(changes).mean(axis=0),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw convergence with standard errors and deviations, and the share of solved queries."""
    main = result["readings"][MAIN]
    calls = np.arange(1, result["budget"] + 1)
    with figure(path, 15.0, 6.2) as canvas:
        left, right = canvas.subplots(1, 2)
        for k, (name, summary) in enumerate(main["methods"].items()):
            look = {**LOOK[name], "markevery": (k, 5), "markersize": 7}
            mean, sd, se = (np.array(summary["potential"][key]) for key in ("mean", "sd", "se"))
            left.plot(calls, mean, label=name, **look)
            left.fill_between(calls, mean - se, mean + se, color=look["color"], alpha=0.35)
            if name in ("L-BFGS-B", "Bayes-CFX"):
                low, high = np.maximum(mean - sd, 0.0), np.minimum(mean + sd, 1.0)
                left.fill_between(calls, low, high, color=look["color"], alpha=0.12, linewidth=0)
            right.plot(calls, summary["solved"], label=name, **look)
        left.set(xlabel="model calls", ylabel="best potential, relative to the peak")
        left.set(ylim=(0, 1.03), title="Mean, standard error; pale: standard deviation")
        right.set(xlabel="model calls", ylabel="share of searches", ylim=(0, 1.03))
        right.set_title(f"Searches at {result['level']:.0%} of the peak")
        handles, texts = left.get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside upper center", ncols=len(texts), fontsize=14)
