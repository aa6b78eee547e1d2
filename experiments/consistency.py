"""Theorem 3.2, EI-CFX is asymptotically consistent: ρ*ₙ → ρ*, on functions of every kind.

The figure shows the shortfall 1 − ρ*ₙ/ρ* against n, on logarithmic scales. The theorem is about
the limit and about covariances with the no-empty-ball property; here there are 200 calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.claims import Claim, Estimate, bootstrap
from experiments.drawing import LOOK, figure
from experiments.functions import CASES, Case
from experiments.runs import PAPER_METHODS, Method, Settings, each, padded

NAME = "consistency"
BUDGET = 200
TOLERANCE = 1e-4  # a search ends at a shortfall of 2e-8
FLOOR = 1e-8
CALLS = (30, 100, 200)
NEAR = 0.01  # a shortfall that counts as near ρ*
SHARE = 0.9  # share of the questions that counts as "finds"
# The theorem is about the best guess in the limit, so no search gives up.
METHODS = (*PAPER_METHODS, Method("Bayes-CFX (defaults)", cfx.BayesCFX(give_up=False)))
JUMPS = ("discontinuous, 2", "steps, 3")


def run(settings: Settings) -> dict[str, Any]:
    """Run every method on every function, from several queries."""
    budget = settings.pick(BUDGET, 20)
    queries = settings.pick(10, 1)
    cases = CASES[:: settings.pick(1, 2)][: settings.pick(len(CASES), 3)]
    # Long tasks first (Bayesian methods, many features), so that no core waits at the end.
    tasks = [
        (case, method.name, budget, k)
        for method in METHODS[::-1]
        for case in cases[::-1]
        for k in range(queries)
    ]
    groups: dict[tuple[str, str], list[Any]] = {}
    for (case, method, _, _), one in zip(
        tasks, each(search, tasks, NAME, settings.jobs), strict=True
    ):
        groups.setdefault((case.name, method), []).append(one)
    parts = {
        case.name: {
            "optimum": [case.optimum(query) for query in case.queries(queries)],
            "outside": _outside(case, queries),
            "methods": {m.name: _summary(groups[case.name, m.name]) for m in METHODS},
        }
        for case in cases
    }
    calls = [min(call, budget) for call in CALLS]
    numbers = {"budget": budget, "queries": queries, "seeds": queries, "floor": FLOOR}
    return numbers | {"calls": calls, "cases": parts}


def search(task: tuple[Case, str, int, int]) -> tuple[Array, list[float] | None]:
    """Return the shortfall after each call, ``(budget,)``, and the belief at a point."""
    case, name, budget, k = task
    (method,) = (m.search for m in METHODS if m.name == name)
    query = case.queries(k + 1)[k]
    space = cfx.Space({j: cfx.Real(0.0, 1.0) for j in range(case.dimension)}).cost(
        weight=0, per_change=0
    )
    answer = cfx.explain(
        lambda rows: case.f(rows.to_numpy()),
        dict(enumerate(query.tolist())),
        space,
        cfx.reach(case.target),
        method=method,
        budget=budget,
        tolerance=TOLERANCE,
        rng=k,
        short_decimals=False,
    )
    best = padded(np.asarray(answer.trace), budget)
    belief = None
    if case.look is not None and name.startswith("Bayes-CFX"):
        belief = _belief(answer.evaluations, np.array([case.look]), method.surrogate)
    return np.maximum(1.0 - best / case.optimum(query), 0.0), belief


def _belief(evaluations: cfx.Evaluations, x: Array, settings: Any) -> list[float]:
    """Return posterior mean and deviation at a point, and the distance of the nearest row."""
    X, y = (np.asarray(part, float) for part in (evaluations.rows, evaluations.outputs))
    process = cfx.GaussianProcess(kernel=settings.kernel, mean=settings.mean).fit(X, y)
    mean, std = process.predict(x)
    return [float(mean[0]), float(std[0]), float(np.linalg.norm(X - x, axis=1).min())]


def _outside(case: Case, queries: int) -> list[float] | None:
    """Return the shortfall of a search that does not cross the jump."""
    if case.without is None:
        return None
    return [1.0 - case.worth(q, case.without) / case.optimum(q) for q in case.queries(queries)]


def _summary(found: list[tuple[Array, list[float] | None]]) -> dict[str, Any]:
    shortfall = np.array([values for values, _ in found])
    beliefs = [belief for _, belief in found if belief is not None]
    calls = [min(call, shortfall.shape[1]) - 1 for call in CALLS]
    return ({"believed": beliefs} if beliefs else {}) | {
        "median": np.median(shortfall, axis=0),
        "quartiles": np.quantile(shortfall, [0.25, 0.75], axis=0),
        "at": shortfall[:, calls],
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the median shortfall with quartiles, one panel per function."""
    cases = result["cases"]
    columns = min(4, len(cases))
    lines = -(-len(cases) // columns)
    n = np.arange(1, result["budget"] + 1)
    with figure(path, 4.3 * columns, 4.2 * lines) as canvas:
        axes = np.atleast_1d(canvas.subplots(lines, columns, sharex=True, sharey=True)).ravel()
        for ax, (name, part) in zip(axes, cases.items(), strict=False):
            for k, (method, summary) in enumerate(part["methods"].items()):
                look = {**LOOK[method], "markevery": (8 * k + 4, 40), "markersize": 6}
                low, high = np.maximum(summary["quartiles"], result["floor"])
                ax.plot(n, np.maximum(summary["median"], result["floor"]), label=method, **look)
                ax.fill_between(n, low, high, color=look["color"], alpha=0.15, linewidth=0)
            ax.set(xscale="log", yscale="log", title=name, ylim=(result["floor"] / 2, 2.0))
        for ax in axes[: len(cases)]:
            ax.set_xlabel("model calls n")
            ax.tick_params(labelbottom=True)
        for ax in axes[::columns]:
            ax.set_ylabel("shortfall 1 − ρ*ₙ/ρ*")
        for ax in axes[len(cases) :]:
            ax.axis("off")
        handles, labels = axes[0].get_legend_handles_labels()
        if len(axes) > len(cases):
            axes[-1].legend(handles, labels, loc="center", fontsize=14)
        else:
            axes[0].legend(loc="lower left")


# -- Claims and report --


def logs(result: dict[str, Any], method: str, call: int, cases: Any = None) -> Array:
    """Return log10 of the shortfall of each question after a call, not below the floor."""
    at = [
        np.array(part["methods"][method]["at"])[:, call]
        for name, part in result["cases"].items()
        if cases is None or name in cases
    ]
    return np.asarray(np.log10(np.maximum(np.concatenate(at), result["floor"])))


def found(result: dict[str, Any], method: str, cases: Any = None) -> Estimate:
    """Return the share of questions within 1 % of ρ* at the last call."""
    return bootstrap(logs(result, method, -1, cases) <= np.log10(NEAR))


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 3 on convergence."""
    ours = "Bayes-CFX"
    calls = result["calls"]
    fallen = bootstrap(logs(result, ours, 0) - logs(result, ours, -1))
    ahead = bootstrap(logs(result, "Bayes", -1) - logs(result, ours, -1))
    smooth = [name for name in result["cases"] if name not in JUMPS]
    jumps = [name for name in result["cases"] if name in JUMPS]
    rule = f"Finds: at least {SHARE:.0%} within {NEAR:.0%} of ρ\\* at call {calls[-1]}"
    shares = {
        "consistency.finds": (smooth, "Section 3", "guaranteed to find a point of S⁰ in the limit"),
        "consistency.jumps": (
            jumps,
            "Section 3, Section 5",
            "so even for non-differentiable models",
        ),
    }
    return [
        Claim(
            "consistency.theorem",
            "Theorem 3.2, Appendix C",
            "EI-CFX is asymptotically consistent",
            "follows from a theorem of others on composite functions",
            None,
            "if the covariance has the generalised no-empty-ball property, which is not shown for "
            "the RBF of the experiments, and the prior is fixed, not learnt",
        ),
        Claim(
            "consistency.falls",
            "Theorem 3.2",
            "ρ\\*ₙ → ρ\\*",
            f"from call {calls[0]} to {calls[-1]} the shortfall falls by a factor of "
            f"10^{fallen.text('.1f')}",
            fallen,
            "mean over functions and queries; those at the floor count as 0",
        ),
        *(
            Claim(
                key,
                where,
                paper,
                f"{found(result, ours, cases).text('.0%')} of the questions",
                found(result, ours, cases).less(SHARE),
                f"{'; '.join(cases)}. {rule}",
            )
            for key, (cases, where, paper) in shares.items()
            if cases
        ),
        Claim(
            "consistency.composition",
            "Section 3",
            "a surrogate of f is better than one of ρ∘f",
            f"its shortfall at call {calls[-1]} is smaller by a factor of 10^{ahead.text('+.1f')}",
            ahead,
            "Bayes-CFX beside Bayes, same kernel and mean, paired by question",
        ),
    ]


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    names = [m.name for m in PAPER_METHODS]
    return f"""\
## Theorem 3.2: asymptotic consistency

{len(result["cases"])} functions on the unit cube, {result["queries"]} queries each,
{result["budget"]} calls, in the paper's setting: RBF kernel, zero mean, EI-CFX alone (no local
steps, no giving up). Median shortfall 1 − ρ\\*ₙ/ρ\\* at the last call; a search ends at 2e-8.

{table(result, names)}

Lowest in its row, or level with the lowest as printed: {counts(result, names)}.

![Consistency](figures/consistency.png)

{"".join([*_reach(result), *_jump(result)])}The theorem speaks of functions that the prior could
have drawn: a jump is none, and a limit says nothing of {result["budget"]} calls.
"""


def details(result: dict[str, Any]) -> str:
    """Return the section of the appendix: the library's own defaults."""
    names = ["Bayes", "Bayes-CFX", "Bayes-CFX (defaults)"]
    shares = "\n".join(f"| {m.name} | {found(result, m.name).text('.0%')} |" for m in METHODS)
    return f"""\
## Theorem 3.2: with the library's defaults

The library's kernel and standardised mean, local steps that take turns with EI-CFX:

{table(result, names)}

Lowest in its row, or level with the lowest as printed: {counts(result, names)}.

Share of all questions within {NEAR:.0%} of ρ\\* at the last call:

| method | share |
|---|---|
{shares}
"""


def table(result: dict[str, Any], names: list[str]) -> str:
    """Return the median shortfall at the last call of some methods, one row per function."""
    lines = [f"| function | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for case, part in result["cases"].items():
        cells = (printed(part["methods"][name]["median"][-1], result) for name in names)
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def counts(result: dict[str, Any], names: list[str]) -> str:
    """Return the number of functions on which each method is lowest or tied, as printed."""
    wins = dict.fromkeys(names, 0)
    for part in result["cases"].values():
        last = {name: part["methods"][name]["median"][-1] for name in names}
        lowest = printed(min(last.values()), result)
        for name, value in last.items():
            wins[name] += printed(value, result) == lowest
    return ", ".join(f"{name} {count}" for name, count in wins.items())


def printed(value: float, result: dict[str, Any]) -> str:
    """Return a shortfall as text for the tables."""
    return f"{value:.1e}" if value > 2.5 * result["floor"] else "< 2e-8"


def _reach(result: dict[str, Any]) -> list[str]:
    """Discuss the unreachable target, where the optimum is the highest output."""
    part = result["cases"].get("target out of reach, 3")
    if part is None:
        return []
    texts = []
    for name in ("Bayes", "Bayes-CFX", "Bayes-CFX (defaults)"):
        middle = np.median(part["methods"][name]["at"], axis=0)
        texts.append(f"{name} {', '.join(printed(value, result) for value in middle)}")
    ours = part["methods"]["Bayes-CFX (defaults)"]["believed"]
    near = np.median([row[2] for row in ours])
    mean = np.median([row[0] for row in ours])
    return [
        f"**The target out of reach.** Median shortfall at calls "
        f"{', '.join(map(str, result['calls']))}: {'; '.join(texts)}. With the library's defaults "
        f"the surrogate expects {mean:.5f} at the optimum, where f is 1, and the nearest row that "
        f"was asked for is {near:.1e} away."
        + (" It keeps away from rows that it knows, as if there were steps." if near > 1e-3 else "")
        + "\n\n"
    ]


def _jump(result: dict[str, Any]) -> list[str]:
    """Return the number of searches that never cross the jump, and their posterior deviation."""
    part = result["cases"].get("discontinuous, 2")
    if part is None:
        return []
    texts = []
    for name in ("Bayes-CFX", "Bayes-CFX (defaults)"):
        ours = part["methods"][name]
        ends = np.array(ours["at"])[:, -1]
        pairs = zip(ends, part["outside"], ours["believed"], strict=True)
        stuck = [std for end, outside, (_, std, _) in pairs if end >= 0.999 * outside]
        text = f"{name}: {len(stuck)} of {len(ends)} never cross it"
        texts.append(text + (f" (deviation there at most {max(stuck):.1g})" if stuck else ""))
    return [f"**The jump.** The target lies beyond it, 2 above the slope. {'; '.join(texts)}.\n\n"]
