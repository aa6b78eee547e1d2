"""How often "out of reach" is said wrongly, and how early rightly.

The range of outputs that 50,000 random rows of a region reach says what is true. *Reachable*:
targets inside that range: four fifths of the way from f(query) to its far end, and near either
end. *Out of reach*: targets beyond either end by a fifth of the range's length; where a search
reaches such a target all the same, the random rows were wrong, and the problem is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.space.region import Region
from benchmarks.problems import MODELS, RANDOM_ROWS, Array, fitted, table
from benchmarks.reporting import aim, show_table

PROBLEMS = (*(("diabetes", model) for model in MODELS), ("friedman1", "lgbm"), ("friedman1", "svr"))
BUDGETS = (60, 100)
NEAR = 0.95  # how far on the way to an end is near it: the last rows are one in thousands
BEYOND = 0.2  # how far beyond the range, as a share of its length
EARLY = 0.6  # share of the budget before which a verdict should come
MOST_FALSE, LEAST_EARLY = 0.02, 0.8


@dataclass(frozen=True)
class Outcome:
    """How one search ended."""

    problem: str
    kind: str
    budget: int
    status: str
    spent: int


def spaces(X: Array) -> dict[str, cfx.Space]:
    """Return a space in which everything moves, and one with fixed features and few changes."""
    whole = cfx.Space.from_data(X)
    return {"box": whole, "few": whole.fix(1, 4, 5, 7).max_changes(3)}


def targets(region: Region, output: float, model: Any) -> dict[str, float]:
    """Return targets by kind: inside the range of outputs, at its ends, and beyond."""
    y = model.predict(region.rows(region.sample(RANDOM_ROWS, np.random.default_rng(0))))
    low, high = float(y.min()), float(y.max())
    far = high if high - output > output - low else low
    near = low if far == high else high
    wanted = {
        "inside": output + 0.8 * (far - output),
        "far end": output + NEAR * (far - output),
        "above": high + BEYOND * (high - low),
        "below": low - BEYOND * (high - low),
    }
    if abs(near - output) > 0.1 * (high - low):
        wanted["near end"] = output + NEAR * (near - output)
    return wanted


def outcomes(queries: int, budgets: tuple[int, ...]) -> Iterator[Outcome]:
    """Yield how each search ended."""
    for row in range(queries):
        for data, name in PROBLEMS:
            X, model = table(data).X, fitted(data, name)
            query = X[np.random.default_rng([row, 17]).integers(len(X))]
            output = float(model.predict(query[None])[0])
            for kind_of_space, space in spaces(X).items():
                for kind, target in targets(space.around(query), output, model).items():
                    for budget in budgets:
                        answer = cfx.explain(
                            model.predict, query, space, target, budget=budget, rng=row
                        )
                        yield Outcome(
                            f"{data} {name}, {kind_of_space}",
                            kind,
                            budget,
                            answer.status,
                            answer.n_evaluations,
                        )


def figures(found: list[Outcome]) -> dict[str, float]:
    """Return the share of false verdicts, of early ones, and what was left out."""
    beyond = [o for o in found if o.kind in ("above", "below")]
    inside = [o for o in found if o not in beyond]
    real = [o for o in beyond if o.status != "reached"]
    early = [o for o in real if o.status == "unreachable" and o.spent < EARLY * o.budget]
    return {
        "reachable": len(inside),
        "false": sum(o.status == "unreachable" for o in inside) / max(1, len(inside)),
        "beyond": len(real),
        "early": len(early) / max(1, len(real)),
        "ever": sum(o.status == "unreachable" for o in real) / max(1, len(real)),
        "reached after all": len(beyond) - len(real),
    }


def run(queries: int = 4, budgets: tuple[int, ...] = BUDGETS) -> dict[str, float]:
    """Measure, print, and return the figures."""
    found = []
    for outcome in outcomes(queries, budgets):
        found.append(outcome)
        print(
            f"{outcome.problem:22} {outcome.kind:9} budget {outcome.budget:3}: "
            f"{outcome.status} after {outcome.spent}",
            flush=True,
        )
    groups = {"all": found}
    for problem in dict.fromkeys(o.problem for o in found):
        groups[problem] = [o for o in found if o.problem == problem]
    for budget in budgets:
        groups[f"budget {budget}"] = [o for o in found if o.budget == budget]
    table_rows = [(name, *figures(group).values()) for name, group in groups.items()]
    head = ("problems", *figures(found))
    show_table("Out of reach: false and early verdicts", head, table_rows)
    result = figures(found)
    print(f"false {aim(result['false'], '<=', MOST_FALSE)}")
    print(f"early {aim(result['early'], '>=', LEAST_EARLY)}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=4)
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    chosen = parser.parse_args()
    run(chosen.queries, tuple(chosen.budgets))


if __name__ == "__main__":
    main()
