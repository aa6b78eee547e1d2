"""CFX-Existence, executable: a CNF formula becomes a model over boolean features and a target set.

That is the reduction behind Theorem 2.1. A search finds a satisfying assignment or stops with a
best guess; checking an assignment takes one call of the model. Brute force over all assignments
gives the truth.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.theory.existence import Formula, is_witness
from experiments.claims import Claim, bootstrap, fact
from experiments.drawing import BLACK, BLUE, GREY, ORANGE, figure
from experiments.runs import Settings, each

NAME = "existence"
BUDGET = 150
SIZES = ((6, 28), (8, 38), (10, 46), (12, 56))  # variables, clauses: some of each kind


def formula(variables: int, clauses: int, seed: int) -> Formula:
    """Return a random 3-SAT formula that is false if every variable is.

    Otherwise f(q) would be in the target set, and no search would be needed.
    """
    rng = np.random.default_rng([variables, clauses, seed])
    while True:
        chosen = np.array([rng.choice(variables, size=3, replace=False) for _ in range(clauses)])
        found = Formula(variables, (chosen + 1) * rng.choice([-1, 1], size=chosen.shape))
        if not found.value(np.zeros((1, variables)))[0]:
            return found


def run(settings: Settings) -> dict[str, Any]:
    """Solve formulas with both encodings, and enumerate the target sets of a small model."""
    sizes = SIZES[: settings.pick(len(SIZES), 1)]
    seeds = settings.pick(6, 2)
    tasks = [
        (variables, clauses, seed, literal)
        for variables, clauses in sizes[::-1]  # long ones first
        for seed in range(seeds)
        for literal in (False, True)
    ]
    found = each(satisfy, tasks, NAME, settings.jobs)
    small = formula(*SIZES[0], seed=0)
    return {
        "budget": BUDGET,
        "seeds": seeds,
        "searches": found,
        "algebra": algebra(small.satisfied(assignments(SIZES[0][0]))),
        "one_to_one": algebra(np.arange(5.0)),
    }


def assignments(variables: int) -> pd.DataFrame:
    """Return all assignments, ``2**variables`` rows; the first is all false."""
    number = np.arange(2**variables)[:, None]
    bits = (number >> np.arange(variables) & 1).astype(bool)
    return pd.DataFrame(bits, columns=[f"v{k}" for k in range(variables)])


def satisfy(task: tuple[int, int, int, bool]) -> dict[str, Any]:
    """Search for a satisfying assignment, starting from all variables false."""
    variables, clauses, seed, literal = task
    cnf = formula(variables, clauses, seed)
    model = cnf.value if literal else cnf.satisfied
    rows = assignments(variables)
    space = cfx.Space({name: cfx.Categorical([False, True]) for name in rows}).cost(
        weight=0, per_change=0
    )
    answer = cfx.explain(
        model,
        rows.iloc[0],
        space,
        cfx.at_least(1.0 if literal else float(clauses)),
        method="bayes-cfx",
        budget=BUDGET,
        rng=seed,
        short_decimals=False,
    )
    witnesses = is_witness(_scored(model), space.around(rows.iloc[[0]]), answer.accepted, rows)
    best = pd.DataFrame([np.asarray(answer.best.row, dtype=bool)], columns=list(rows))
    return {
        "variables": variables,
        "clauses": clauses,
        "seed": seed,
        "literal": literal,
        "most_satisfiable": cnf.most_satisfiable(),
        "solutions": int(cnf.value(rows).sum()),
        "witnesses": int(witnesses.sum()),
        "agree": bool((witnesses == (cnf.value(rows) == 1.0)).all()),
        "status": answer.status,
        "calls": answer.n_evaluations,
        "satisfied": int(cnf.satisfied(best)[0]),
        **(check(cnf, answer, model, rows, best) if answer.reached else {}),
    }


def _scored(model: Any) -> Any:
    """Return a function of rows in the form that `is_witness` takes."""
    return SimpleNamespace(scores=model)


def check(
    cnf: Formula, answer: cfx.Explanation, model: Any, rows: pd.DataFrame, best: pd.DataFrame
) -> dict[str, Any]:
    """Check a certificate, and that its unsatisfying neighbours are refused."""
    n_rows: list[int] = []

    def counting_model(rows: Any) -> Any:
        n_rows.append(len(rows))
        return model(rows)

    is_verified = answer.verify(counting_model)
    flips = best.to_numpy() ^ np.eye(best.shape[1], dtype=bool)
    wrong = pd.DataFrame(flips[cnf.value(flips) == 0.0], columns=list(rows))
    space = cfx.Space({name: cfx.Categorical([False, True]) for name in rows})
    region = space.around(rows.iloc[[0]])
    refused = ~is_witness(_scored(model), region, answer.accepted, wrong)
    return {
        "certificate": bool(is_verified and cnf.value(best)[0] == 1.0),
        "rows_to_check": sum(n_rows),
        "wrong_neighbours": len(wrong),
        "refused": int(refused.sum()),
    }


def algebra(outputs: Any) -> dict[str, int]:
    """Count the non-empty sets of 𝕋 for a model given by its outputs, and their empty primal sets.

    The first output is the query's; 𝕋 is made of the others that differ from it (Definition 2.1).
    """
    outputs = np.asarray(outputs, dtype=float)
    reached = sorted({*outputs.tolist()} - {float(outputs[0])})
    targets = [set(t) for k in range(len(reached)) for t in combinations(reached, k + 1)]
    empty = sum(not any(y in target for y in outputs.tolist()) for target in targets)
    return {"outputs": len(reached), "sets": len(targets), "empty": empty}


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the calls of the satisfiable formulas."""
    looks = ((False, BLUE, "o", "f = satisfied clauses"), (True, ORANGE, "^", "f = the formula"))
    sizes = sorted({row["variables"] for row in result["searches"]})
    with figure(path, 9.0, 5.4) as canvas:
        ax = canvas.subplots()
        for literal, color, mark, label in looks:
            can, found, _ = _split(result, literal)
            missed = [row for row in can if row not in found]
            for part, fill, text in (
                (found, color, label),
                (missed, "white", f"{label}: not found"),
            ):
                if part:
                    shift = 0.25 if literal else -0.25
                    x = [row["variables"] + shift + 0.07 * (row["seed"] - 2.5) for row in part]
                    y = [row["calls"] for row in part]
                    ax.plot(x, y, mark, color=color, markerfacecolor=fill, markersize=9, label=text)
        ax.plot(sizes, [2**n for n in sizes], ":", color=GREY, label="all assignments")
        ax.axhline(result["budget"], color=BLACK, linewidth=1)
        ax.annotate("budget", (sizes[-1] + 0.5, result["budget"] * 1.12), ha="right")
        ax.set_yscale("log")
        ax.set(xlabel="variables", ylabel="model calls", xticks=sizes, ylim=(0.8, 6_000))
        ax.set_title("CFX-Existence: satisfiable formulas")
        ax.legend(fontsize=10, loc="upper left")


def _split(result: dict[str, Any], literal: bool) -> tuple[list[Any], ...]:
    """Return the searches of an encoding: satisfiable, satisfiable and found, unsatisfiable."""
    rows = [row for row in result["searches"] if row["literal"] == literal]
    can = [row for row in rows if row["solutions"]]
    found = [row for row in can if row["status"] == "reached"]
    return can, found, [row for row in rows if not row["solutions"]]


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 2 and Appendix A on CFX-Existence."""
    return [*_search_claims(result), *_target_set_claims(result)]


def _search_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on the reduction from SAT, on checking and on finding a solution."""
    rows = result["searches"]
    formulas = {(row["variables"], row["seed"]) for row in rows}
    certified = [row for row in rows if "certificate" in row]
    good = sum(row["certificate"] for row in certified)
    wrong, refused = (sum(r[key] for r in certified) for key in ("wrong_neighbours", "refused"))
    most = max((row["rows_to_check"] for row in certified), default=0)  # the row and the query
    can, found, _ = _split(result, literal=True)
    effort = bootstrap([row["calls"] for row in can] or [0.0])
    return [
        Claim(
            "existence.np-complete",
            "Theorem 2.1",
            "CFX-Existence is NP-complete",
            "true of target sets given by a membership circuit",
            None,
            "not of T ∈ 𝕋, see below; the printed reduction makes a formula of the model, where "
            "hardness needs a model of the formula, as here",
        ),
        Claim(
            "existence.reduction",
            "Definition 2.2, Definition A.1, Theorem 2.1 (hardness)",
            "a reduction from SAT",
            f"S is the set of satisfying assignments for {len(formulas)} formulas, both encodings",
            fact(all(row["agree"] for row in rows)),
            "every assignment of every formula is compared",
        ),
        Claim(
            "existence.verify",
            "Section 2, Theorem 2.1 (inclusion)",
            "verifying counterfactuals is relatively easy",
            f"{good} of {len(certified)} certificates hold, {most} rows of the model each; "
            f"{refused} of {wrong} wrong neighbours are refused",
            fact(good == len(certified) > 0 and refused == wrong and most <= 2),
            "satisfiable formulas only, none that the query satisfies; easy: at most two rows",
        ),
        Claim(
            "existence.finding",
            "Section 2",
            "finding a solution may be hard",
            f"f = the formula: {effort.text('.0f')} calls each, {len(found)} of {len(can)} found",
            effort.less(2.0),
            f"harder: more than the two rows of checking; a search ends at {result['budget']}",
        ),
    ]


def _target_set_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on the target sets of Definition 2.1."""
    sets = result["algebra"]
    single = result["one_to_one"]
    return [
        Claim(
            "existence.non-empty",
            "Definition 2.1, Appendix A",
            "T ∈ 𝕋 is reachable, but we do not know whether S has entries",
            f"S is empty for {sets['empty']} of the {sets['sets']} non-empty T of a model "
            f"with {sets['outputs']} outputs",
            fact(sets["empty"] > 0),
            "Definition 2.1 takes T from outputs that f has: every non-empty T has a non-empty S",
        ),
        Claim(
            "existence.one-to-one",
            "Appendix A",
            "if f(q) is only achieved at q, no set in 𝕋 has a non-empty S",
            f"{single['sets'] - single['empty']} of {single['sets']} sets have one",
            fact(single["empty"] == single["sets"]),
            "a model with five rows and five outputs; it takes a constant f",
        ),
    ]


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    lines = "\n".join(_line(result, literal) for literal in (False, True))
    return f"""\
## Theorem 2.1: existence

A random 3-SAT formula becomes a model over boolean features, the query is "all false" (which never
satisfies it), the target set is "satisfied". Two encodings: f counts satisfied clauses, or f is the
formula itself, 0 or 1. At most {result["budget"]} calls; by default a search ends earlier if the
surrogate holds the target out of reach. Brute force says which formulas can be satisfied.

| encoding | satisfiable | found | median calls | best guess | **called unreachable, wrongly** | \
certificates that hold | not satisfiable | called unreachable | called reached, wrongly |
|---|---|---|---|---|---|---|---|---|---|
{lines}

{_wrongly(result)}

![Existence](figures/existence.png)

**What the theorem says.** By Definition 2.1 a target set consists of outputs that the model has, so
every non-empty one has a counterfactual, and CFX-Existence as stated asks only whether T is empty.
The reduction shows more: if T may be any set that can be tested ("the formula is true"), deciding
whether a row reaches it is as hard as SAT, while a row that does is its own certificate.
"""


def _wrongly(result: dict[str, Any]) -> str:
    """Return how often a satisfiable formula is called unreachable, as text."""
    can = [row for row in result["searches"] if row["solutions"]]
    wrong = sum(row["status"] == "unreachable" for row in can)
    text = f'Satisfiable formulas called "unreachable": {wrong} of {len(can)} searches.'
    return text + (" That verdict is a belief of the surrogate, and no proof." if wrong else "")


def _line(result: dict[str, Any], literal: bool) -> str:
    can, found, cannot = _split(result, literal)
    ends, lost = ([row["status"] for row in rows] for rows in (can, cannot))
    calls = f"{np.median([row['calls'] for row in found]):g}" if found else "–"
    cells = (
        "f = the formula" if literal else "f = satisfied clauses",
        len(can),
        len(found),
        calls,
        ends.count("best_guess"),
        ends.count("unreachable"),
        f"{sum(row['certificate'] for row in found)} of {len(found)}",
        len(cannot),
        lost.count("unreachable"),
        lost.count("reached"),
    )
    return f"| {' | '.join(map(str, cells))} |"
