"""Figure 4 and its table: four searches on Adult, 30 calls.

Each query asks for a probability of 0.5: AEP₋ with f(q) − w = 0.5. No cost of moving. The four
methods see the paper's box and its surrogate (RBF, zero mean, on probabilities); a fifth line is
this library with its defaults (rows of the data to start from, log-odds, Matérn 5/2). Supplements:
the verdict against brute force where capital change is fixed too, so that some queries can't reach
0.5; plainer Bayesian searches, see `plain_bayes`; and climbs of L-BFGS-B to their end.

Queries are the independent units: every figure is a mean over seeds first.
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
from experiments.adult import FREE, MAIN, OTHER, READINGS, Adult, load, lowest
from experiments.claims import bootstrap
from experiments.drawing import LOOK, figure
from experiments.fig4_claims import (
    BAYES,
    BUDGET,
    FEW,
    LBFGSB,
    LEVEL,
    OURS,
    PAPER,
    RANDOM,
    against_random,
    ahead,
    claims,
    median_calls,
)
from experiments.runs import DEFAULTS, PAPER_METHODS, Method, Settings, calls_to, each, padded
from experiments.stuck import TARGET, Found, climbs, limits, stuck

__all__ = ["NAME", "claims", "details", "draw", "run", "tell"]

NAME = "fig4_adult"
TOLERANCE = 0.02  # a search ends at 99.9 % of the peak
METHODS = (*PAPER_METHODS, DEFAULTS)
FEWER = ("age", "hours-per-week")  # free in the supplement on verdicts


@dataclass(frozen=True, eq=False)
class Group:
    """The searches of one method on all queries and seeds of one reading."""

    problem: Adult
    method: Method
    queries: int
    seeds: int
    free: tuple[str, ...] = FREE

    def tasks(self) -> list[tuple[Any, ...]]:
        """Return the arguments of `search`, query by query."""
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
    # The other reading is used in the table of changes only, so one seed is enough.
    seeds = {r: settings.pick(10 if r == MAIN else 1, 1) for r in READINGS}
    groups = {
        (reading, method.name): Group(problem, method, few[reading], seeds[reading])
        for reading, problem in problems.items()
        for method in (METHODS if reading == MAIN else PAPER_METHODS)
    }
    groups[MAIN, "verdict"] = Group(problems[MAIN], DEFAULTS, few[MAIN], 1, FEWER)
    found = _all_at_once(groups, settings.jobs)
    main = problems[MAIN]
    readings = {}
    for reading, problem in problems.items():
        methods = {
            name: _summary(found[one, name], few[reading])
            for one, name in groups
            if one == reading and name != "verdict"
        }
        readings[reading] = _describe(problem, few[reading], settings) | {"methods": methods}
    return {
        "budget": BUDGET,
        "level": LEVEL,
        "target": TARGET,
        "seeds": seeds[MAIN],
        "readings": readings,
        "verdict": {
            "free": FEWER,
            "reachable": _reachable(main, FEWER, settings)[: few[MAIN]],
            "status": [one.status for one in found[MAIN, "verdict"]],
        },
        "stuck": stuck(main, found[MAIN, OURS], seeds[MAIN]),
        "climbs": [climbs(main, i) for i in range(few[MAIN])],
        "plain": _plain(main, settings),
    }


def _reachable(problem: Adult, free: tuple[str, ...], settings: Settings) -> Mask:
    """Return which queries can come within the tolerance of 0.5, by brute force."""
    start = problem.model(problem.queries)
    enough = TARGET + TOLERANCE * (start - TARGET)
    return np.asarray(lowest(problem, settings.pick(21, 5), free) <= enough)


def _all_at_once(groups: dict[Any, Group], jobs: int) -> dict[Any, list[Found]]:
    """Run all groups as one list of tasks, slow methods first, so that no core waits."""
    order = sorted(groups, key=lambda key: groups[key].method.name[0] != "B")
    tasks = {key: groups[key].tasks() for key in order}
    answers = iter(each(search, [t for key in order for t in tasks[key]], NAME, jobs))
    return {key: [next(answers) for _ in tasks[key]] for key in order}


def _describe(problem: Adult, queries: int, settings: Settings) -> dict[str, Any]:
    return {
        "rows": len(problem.rows),
        "right": [problem.right, problem.holdout],
        "queries": queries,
        "unreachable": int((~_reachable(problem, FREE, settings)[:queries]).sum()),
        "mean_query": problem.queries[list(FREE)].iloc[:queries].mean().tolist(),
        "limits": limits(problem).T,
    }


def _plain(problem: Adult, settings: Settings) -> dict[str, Any]:
    """Return the final potentials of simpler Bayesian searches on every third query."""
    queries = range(0, settings.pick(len(problem.queries), 2), 3)
    ways = plain_bayes.WAYS[:: settings.pick(1, 2)]
    tasks = [(way, problem, i, TARGET, BUDGET, 1000 * i) for way in ways for i in queries]
    answers = iter(each(plain_bayes.search, tasks, f"{NAME}: plainer", settings.jobs))
    return {
        "queries": list(queries),
        "final": {way.name: [next(answers) for _ in queries] for way in ways},
    }


def search(task: tuple[Any, pd.Series[Any], cfx.Space, Any, int]) -> Found:
    """Search for one counterfactual."""
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
        short_decimals=False,
    )
    names = list(FREE)
    row = pd.Series(answer.best.row, index=query.index)
    known = answer.evaluations.to_frame()
    return Found(
        padded(np.asarray(answer.trace), BUDGET),
        row[names].to_numpy(float) - query[names].to_numpy(float),
        answer.status,
        known[names].to_numpy(float),
        np.asarray(answer.evaluations.outputs),
    )


def _summary(found: list[Found], queries: int) -> dict[str, Any]:
    """Return means over seeds per query, and the figures of all searches for the plot."""
    traces, changes = (
        np.array([getattr(one, key) for one in found]) for key in ("trace", "change")
    )
    calls = np.array([calls_to(trace, LEVEL) or BUDGET + 1 for trace in traces])
    by_query = (queries, -1)
    return {
        "potential": traces.reshape(*by_query, BUDGET).mean(axis=1),
        "sd": traces.std(axis=0),
        "solved": (traces >= LEVEL).mean(axis=0),
        "calls": calls.reshape(by_query),
        "change": changes.reshape(*by_query, len(FREE)).mean(axis=1),
        "unreachable": sum(one.status == "unreachable" for one in found),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw convergence with standard errors and deviations, and the share of solved searches."""
    calls = np.arange(1, result["budget"] + 1)
    with figure(path, 15.0, 6.2) as canvas:
        left, right = canvas.subplots(1, 2)
        for k, (name, summary) in enumerate(result["readings"][MAIN]["methods"].items()):
            look = {**LOOK[name], "markevery": (k, 5), "markersize": 7}
            mean, se = _mean_and_se(summary["potential"])
            left.plot(calls, mean, label=name, **look)
            left.fill_between(calls, mean - se, mean + se, color=look["color"], alpha=0.35)
            if name in (LBFGSB, OURS):
                sd = np.array(summary["sd"])
                low = np.maximum(mean - sd, 0.0)
                high = np.minimum(mean + sd, 1.0)
                left.fill_between(calls, low, high, color=look["color"], alpha=0.12, linewidth=0)
            right.plot(calls, summary["solved"], label=name, **look)
        left.set(xlabel="model calls", ylabel="best potential, relative to the peak")
        left.set(ylim=(0, 1.03), title="Mean, standard error (queries); pale: standard deviation")
        right.set(xlabel="model calls", ylabel="share of searches", ylim=(0, 1.03))
        right.set_title(f"Searches at {result['level']:.0%} of the peak")
        handles, texts = left.get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside upper center", ncols=len(texts), fontsize=14)


def _mean_and_se(by_query: Any) -> tuple[Array, Array]:
    """Return mean and standard error over queries of ``(queries, …)``."""
    values = np.array(by_query)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    main = result["readings"][MAIN]
    verdict = {claim.key: claim.verdict for claim in claims(result)}
    lead = ahead(result, OURS, BAYES, BUDGET)
    potential = f"mean potential at call {FEW} | at call {BUDGET}"
    rows = "\n".join(_speed(name, summary) for name, summary in main["methods"].items())
    return f"""\
## Figure 4 and its table: Adult income

Preprocessing and logistic regression of the appendix (fitted to 1e-10) on {main["rows"]:,} rows.
{main["queries"]} queries with age < 30 and f(q) ≥ 0.9, {result["seeds"]} seeds, {BUDGET} calls with
f(q) as the first; free: age, capital change, hours per week, as a box of the data's ranges. Means
over seeds per query; 95 % intervals over queries.

| method | median calls to {LEVEL:.0%} | there by call {FEW} / 15 / {BUDGET} | {potential} |
|---|---|---|---|---|
{rows}

![Figure 4](figures/fig4_adult.png)

That Bayes-CFX is fast ("after few queries") is **{verdict["adult.few-calls"]}**; that it ends
highest is **{verdict["adult.highest"]}**; that a surrogate of ρ∘f is much less effective is
**{verdict["adult.composed"]}** ({lead.text()} between the two at call {BUDGET}). Random
search ahead of naïve Bayesian optimisation is **{verdict["adult.random-beats-bayes"]}**, ahead of
L-BFGS-B **{verdict["adult.random-beats-lbfgsb"]}**.

{_stuck(result)}

Mean change with its standard error over queries, paper / ours:

{_changes(result, MAIN)}

Where potentials are compared, an interval spans both readings of "capital change" (gain − loss, and
gain + loss), of which the paper has one. The other reading, verdicts and plainer searches are in
the [details](reproduction-details.md#adult-income).
"""


def _speed(name: str, summary: dict[str, Any]) -> str:
    solved = " / ".join(f"{summary['solved'][call - 1]:.0%}" for call in (FEW, 15, BUDGET))
    potential = np.array(summary["potential"])
    means = " | ".join(bootstrap(potential[:, c - 1]).text(".3f") for c in (FEW, BUDGET))
    return f"| {name} | {median_calls(summary)} | {solved} | {means} |"


def _stuck(result: dict[str, Any]) -> str:
    main = result["readings"][MAIN]
    searches = main["queries"] * result["seeds"]
    if not result["stuck"]:
        return f"All {searches} searches of Bayes-CFX end at {LEVEL:.0%} of the peak or above."
    lines = "\n".join(
        f"* query {one['query']}, seed {one['seed']}: potential {one['potential']:.3f} from call "
        f"{one['since']} on (p = {one['best']:.3f}). There the surrogate has ± "
        f"{one['sd_at_best']:.3f} left, and EI-CFX is {one['ei_at_best']:.0%} of its highest in "
        f"the box; {one['near_best']} of the {BUDGET - one['since']} later rows are within 1 % of "
        f"the box around it. The corner with the lowest p ({one['true']:.2f}) is believed to have "
        f"{one['believed'][0]:.2f} ± {one['believed'][1]:.2f}."
        for one in result["stuck"]
    )
    lengths = np.array([one["lengthscales"] for one in result["stuck"]])
    return f"""\
**Why {len(result["stuck"])} of {searches} searches of Bayes-CFX fail.** The first rows lie where p
is flat near 1. The RBF then takes lengthscales longer than the box (median
{np.median(lengths):.1f}) and is sure of that plain; and because it learns a noise, something seems
left to gain at the best row itself: EI-CFX is highest there, and the search asks beside it until
the noise is learnt away.
On log-odds there is no plain: with the library's defaults
{main["methods"][DEFAULTS.name]["solved"][-1]:.0%} of the searches are solved.

{lines}"""


def _changes(result: dict[str, Any], reading: str) -> str:
    methods = result["readings"][reading]["methods"]
    lines = ["| method | age | capital change | hours per week |", "|---|---|---|---|"]
    for name, summary in methods.items():
        mean, se = _mean_and_se(summary["change"])
        cells = []
        for k, form in enumerate((".1f", ",.0f", ".1f")):
            paper = f"{PAPER[name][k]:+{form}}" if name in PAPER else "–"
            cells.append(f"{paper} / {mean[k]:+{form}} ± {se[k]:{form}}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def details(result: dict[str, Any]) -> str:
    """Return the other reading, the verdicts, and simpler searches."""
    other = result["readings"][OTHER]
    plain = "\n".join(
        f"| {name} | {np.mean(final):.3f} | {against_random(result, name).text()} |"
        for name, final in result["plain"]["final"].items()
    )
    return f"""\
## Adult income

**Which "capital change"?** "The sum of capital gain and capital loss" is gain − loss above (a loss
counts as negative). With gain + loss: {other["queries"]} queries, one seed, mean change:

{_changes(result, OTHER)}

{_readings(result)}

**The verdict beside brute force.** {_verdicts(result)}

**How naïve is naïve?** One lengthscale by maximum likelihood, plain EI with a jitter, five random
rows to begin with, as packages of the time did it; {len(result["plain"]["queries"])} of the
queries, one seed. Potential at call {BUDGET}, and its difference to random search on the same ones:

| search | mean potential | minus random search |
|---|---|---|
{plain}
"""


def _readings(result: dict[str, Any]) -> str:
    rows = "; ".join(
        f"with {reading.replace('-', '−')} the queries average {part['mean_query'][1]:,.0f} and at "
        f"most {part['mean_query'][1] - part['limits'][1][0]:,.0f} can be lost, random search is "
        f"off the paper's three numbers by {_miss(part):.1f} standard errors (root mean square)"
        for reading, part in result["readings"].items()
    )
    return f"Random search has no settings, so its row is the one to compare: {rows}."


def _miss(part: dict[str, Any]) -> float:
    mean, se = _mean_and_se(part["methods"][RANDOM]["change"])
    return float(np.sqrt(np.mean(((mean - np.array(PAPER[RANDOM])) / se) ** 2)))


def _verdicts(result: dict[str, Any]) -> str:
    main = result["readings"][MAIN]
    fewer = result["verdict"]
    wrong = main["methods"][DEFAULTS.name]["unreachable"]
    pairs = list(zip(fewer["reachable"], fewer["status"], strict=True))
    can, cannot = (
        [status for reachable, status in pairs if reachable == wanted] for wanted in (True, False)
    )
    return (
        f"By brute force over the box {main['unreachable']} of {main['queries']} queries can't "
        f"reach {TARGET:g}; {wrong} searches with the library's defaults are called unreachable. "
        f"With {' and '.join(fewer['free'])} alone (one seed) {len(cannot)} of {len(pairs)} can't: "
        f'{cannot.count("unreachable")} are called "unreachable", {cannot.count("best_guess")} end '
        f'as "best guess" and {cannot.count("reached")} as "reached". Of the {len(can)} that can, '
        f"{can.count('reached')} are reached, {can.count('best_guess')} end as best guess, "
        f"{can.count('unreachable')} are wrongly called unreachable."
    )
