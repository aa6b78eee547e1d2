"""One pass, many questions: Adult's queries one by one, and all together.

𝒟ₙ does not depend on the potential, so what one question learns serves all others (end of Section
3). Both ways use the same method, seeds and budget per query; calls are counted exactly. One by one
these are the searches of Figure 4 with the library's defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.adult import MAIN, load
from experiments.claims import Claim, Estimate, bootstrap
from experiments.drawing import BLUE, GREEN, figure
from experiments.fig4_adult import TOLERANCE
from experiments.fig4_claims import BUDGET, LEVEL
from experiments.runs import DEFAULTS, Settings, each, padded
from experiments.stuck import TARGET

NAME = "one_pass"
APART, JOINT = WAYS = ("one by one", "together")
EARLY = 4  # calls


def run(settings: Settings) -> dict[str, Any]:
    """Explain all queries one by one and together, with several seeds."""
    problem = load(MAIN, settings.data)
    queries = problem.queries.iloc[: settings.pick(len(problem.queries), 4)]
    seeds = range(settings.pick(3, 1))
    model = cfx.probability(problem.model.pipeline, True)
    space = problem.space
    apart = [
        (model, space, queries.iloc[[i]], 1000 * i + seed)
        for seed in seeds
        for i in range(len(queries))
    ]
    joint = [(model, space, queries, seed) for seed in seeds]
    # The joint passes take longest, so they start first.
    answers = each(traces, [*joint, *apart], NAME, settings.jobs)
    shape = (len(seeds), len(queries))
    parts = {APART: answers[len(joint) :], JOINT: answers[: len(joint)]}
    return {
        "queries": len(queries),
        "seeds": len(seeds),
        "budget": BUDGET,
        "ways": {
            way: {
                "calls": np.array([len(t) for task in part for t in task]).reshape(shape).T,
                "potential": np.array([padded(t, BUDGET) for task in part for t in task])
                .reshape(*shape, BUDGET)
                .mean(axis=0),
            }
            for way, part in parts.items()
        },
    }


def traces(task: tuple[Any, cfx.Space, pd.DataFrame, int]) -> list[Array]:
    """Return the best potential after every call of each query."""
    model, space, queries, seed = task
    answers = cfx.explain_many(
        model,
        queries,
        space,
        cfx.reach(TARGET),
        method=DEFAULTS.search,
        budget=BUDGET,
        tolerance=TOLERANCE,
        rng=seed,
        short_decimals=False,
    )
    return [np.asarray(answer.trace) for answer in answers]


def calls(result: dict[str, Any], way: str) -> Array:
    """Return calls per query, mean over seeds."""
    return np.asarray(np.mean(result["ways"][way]["calls"], axis=1))


def potential(result: dict[str, Any], way: str, call: int) -> Array:
    """Return the best potential per query after a call, mean over seeds."""
    return np.array(result["ways"][way]["potential"])[:, call - 1]


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims at the end of Section 3."""
    saved = bootstrap(calls(result, APART) - calls(result, JOINT))
    early = bootstrap(potential(result, JOINT, EARLY) - potential(result, APART, EARLY))
    done = bootstrap(potential(result, JOINT, BUDGET) >= LEVEL)
    share = saved.value / calls(result, APART).mean()
    unit = "queries as units, though those of one pass share their rows"
    return [
        Claim(
            "one-pass.many",
            "Abstract, Section 3",
            "multiple questions are answered in a single pass",
            f"{done.text('.2f')} of the queries at {LEVEL:.0%} of the peak; answered is 0.9",
            done.less(0.9),
            f"{result['queries']} questions to one model, {result['seeds']} passes",
        ),
        Claim(
            "one-pass.fewer",
            "Section 3",
            "a shared dataset can lead to fewer samples",
            f"{saved.text('+.2f')} calls saved per query ({share:.0%})",
            saved,
            unit,
        ),
        Claim(
            "one-pass.rates",
            "Section 3",
            "… and to improved convergence rates",
            f"mean potential at call {EARLY}: {early.text()} against one by one",
            early,
            unit,
        ),
    ]


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the potential, and the share of questions still open, against calls per query."""
    steps = np.arange(1, result["budget"] + 1)
    looks = ((BLUE, "--", "o"), (GREEN, "-", "D"))
    with figure(path, 14.0, 5.2) as canvas:
        left, right = canvas.subplots(1, 2)
        for way, (color, line, mark) in zip(WAYS, looks, strict=True):
            look = {"color": color, "linestyle": line, "marker": mark, "markevery": 3}
            found = [bootstrap(potential(result, way, int(k))) for k in steps]
            label = f"{way}: {calls(result, way).mean():.1f} calls per query"
            left.plot(steps, [e.value for e in found], label=label, **look)
            band = [e.low for e in found], [e.high for e in found]
            left.fill_between(steps, *band, color=color, alpha=0.25)
            used = np.array(result["ways"][way]["calls"])
            right.plot(steps, [(used > k).mean() for k in steps], label=way, **look)
        left.set(xlabel="calls per query", ylabel="best potential, relative to the peak")
        left.set(ylim=(0, 1.03), title="Mean and 95 % interval over queries")
        left.legend(loc="lower right")
        right.set(xlabel="calls per query", ylabel="share of questions", ylim=(0, 1.03))
        right.set_title("Questions still open")


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    rows = "\n".join(_line(result, way) for way in WAYS)
    verdict = {claim.key: claim.verdict for claim in claims(result)}
    return f"""\
## One pass, many questions

Adult's {result["queries"]} queries, {result["seeds"]} seeds, at most {result["budget"]} calls per
query, the library's defaults; a question ends when it is answered (99.9 % of the peak). Mean and
95 % interval over queries.

| way | calls per query | median | slowest tenth | for all | potential at call 2 | at call {EARLY} |
|---|---|---|---|---|---|---|
{rows}

![One pass](figures/one_pass.png)

The paper gives no figure. Fewer samples: **{verdict["one-pass.fewer"]}**; faster convergence:
**{verdict["one-pass.rates"]}**. One by one these are the searches of Figure 4's "Bayes-CFX
(defaults)", call by call. Call 1 is f(q) itself, which nothing can save; the next calls of a query
are one round, begun before any of its answers is known.
"""


def _line(result: dict[str, Any], way: str) -> str:
    used = np.array(result["ways"][way]["calls"])
    cells: list[Estimate] = [bootstrap(potential(result, way, call)) for call in (2, EARLY)]
    return (
        f"| {way} | {bootstrap(calls(result, way)).text('.2f')} | {np.median(used):g} | "
        f"{np.quantile(used, 0.9):g} | {used.sum(axis=0).mean():.0f} | "
        f"{' | '.join(cell.text('.3f') for cell in cells)} |"
    )
