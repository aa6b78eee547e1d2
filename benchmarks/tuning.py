"""Evidence for the tuning numbers of the sweep: each at its value, at half and at double.

::

    python -m benchmarks.tuning                        # every number; about ten minutes
    python -m benchmarks.tuning --only pairs           # the numbers of one class
    python -m benchmarks.tuning --confirm              # on the tables kept for confirming

A fixed set of questions is asked once with the defaults and once with every changed number. Of
each change three figures are printed and written to ``results/tuning.json``: the difference of
the share of hits, and the geometric means of cost and of rows, new / default. A number is worth
its name if half or double of it changes one of them clearly.

The questions of a table are one-sided targets, narrow bands, three answers at once, and far
targets. They are asked with ``method="sweep"``, its default budget and one seed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import bayescfx as cfx
from benchmarks.questions import Problem, problem
from benchmarks.reporting import show_table, write

#: The tuning classes: a short name, the module that holds the object `TUNING`.
CLASSES = {
    "sweep": "bayescfx.search.sweep",
    "climb": "bayescfx.search.climb",
    "pairs": "bayescfx.search.pairs",
    "finish": "bayescfx.search.finish",
    "neighbourhood": "bayescfx.space.neighbourhood",
}
FACTORS = {"half": 0.5, "double": 2.0}
SEED = 0
TOLERANCE = 0.02  # a band accepts this share of the wanted change on either side
FAR = 0.8  # a far target: this share of the way from f(query) to the end of the outputs
#: Kinds of questions: the number of queries per table, and the number of answers wanted.
KINDS = {"one-sided": (12, 1), "band": (9, 1), "three answers": (4, 3), "far": (5, 1)}


@cache
def _hills() -> Problem:
    """Return a forest on made data like house prices by place: 1,500 rows, 8 columns."""
    rng = np.random.default_rng(3)
    n = 1500
    X = pd.DataFrame(
        {
            "latitude": rng.uniform(32.0, 42.0, n).round(2),
            "longitude": rng.uniform(-124.0, -114.0, n).round(2),
            "income": rng.gamma(4.0, 1.0, n).round(3),
            "age": rng.integers(1, 53, n),
            "rooms": rng.gamma(25.0, 0.2, n).round(2),
            "bedrooms": rng.gamma(30.0, 0.035, n).round(3),
            "people": rng.integers(3, 4000, n),
            "occupancy": rng.gamma(9.0, 0.33, n).round(2),
        }
    )
    place = np.hypot(X["latitude"] - 37.0, X["longitude"] + 122.0)
    price = 0.5 * X["income"] + 2.0 * np.exp(-place) + 0.1 * X["rooms"] - 0.2 * X["occupancy"]
    price += 0.3 * np.sin(X["age"] / 8.0) + rng.normal(0.0, 0.2, n)
    model = RandomForestRegressor(20, min_samples_leaf=3, random_state=0, n_jobs=1).fit(X, price)
    return Problem(model, X, cfx.Space.from_data(X))


def problems(*, confirming: bool) -> dict[str, Problem]:
    """Return the tables by name: those that decisions are made on, or those that confirm them."""
    if confirming:
        return {
            "diabetes forest ruled": problem("diabetes", "forest", "ruled"),
            "friedman mlp free": problem("friedman", "mlp", "free"),
            "flats linear free": problem("flats", "linear pipeline", "free"),
        }
    return {
        "diabetes lgbm free": problem("diabetes", "lgbm", "free"),
        "diabetes lgbm ruled": problem("diabetes", "lgbm", "ruled"),
        "friedman svr free": problem("friedman", "svr", "free"),
        "flats boosted ruled": problem("flats", "boosted pipeline", "ruled"),
        "hills forest free": _hills(),
    }


@dataclass(frozen=True)
class Result:
    """The answers to one set of questions, one entry per question.

    Attributes
    ----------
    hits : array of shape (q,)
        The share of the wanted answers that reach the target.
    costs : array of shape (q,)
        The mean cost of the answers; nan where the target is not reached.
    rows : array of shape (q,)
        Rows sent to the model.
    cpu : float
        CPU seconds per question.
    """

    hits: np.ndarray
    costs: np.ndarray
    rows: np.ndarray
    cpu: float

    def compare(self, default: Result) -> tuple[float, float, float, float]:
        """Return the difference of hits, and the ratios of cost, rows and CPU to the default."""
        with np.errstate(invalid="ignore"):
            ratios = np.log(self.costs / default.costs)
        cost = float(np.exp(np.nanmean(ratios)))
        rows = float(np.exp(np.mean(np.log(self.rows / default.rows))))
        return float((self.hits - default.hits).mean()), cost, rows, self.cpu / default.cpu


def _target(table: Problem, row: int, kind: str) -> Any:
    """Return the target of a row: more for outputs below the median, else less."""
    outputs = table.outputs
    output = float(outputs[row])
    side = 1.0 if output <= float(np.median(outputs)) else -1.0
    way = side * float(outputs.std())
    if kind == "far":
        low, high = table.output_range
        way = FAR * ((high if side > 0 else low) - output)
    value = output + way
    if kind == "band":
        reach = TOLERANCE * abs(way)
        return cfx.between(value - reach, value + reach)
    return cfx.at_least(value) if side > 0 else cfx.at_most(value)


def ask(tables: dict[str, Problem]) -> Result:
    """Ask all questions of some tables with the tuning numbers as they are now."""
    hits: list[float] = []
    costs: list[float] = []
    rows: list[int] = []
    begin = time.process_time()
    for table in tables.values():
        order = np.random.default_rng(5).permutation(len(table.X)).tolist()
        for kind, (n_queries, n) in KINDS.items():
            if kind == "far" and table.space.rules:
                continue  # with rules, the range of the outputs is not known
            chosen = [order.pop() for _ in range(n_queries)]
            targets = [_target(table, row, kind) for row in chosen]
            queries = table.X.iloc[chosen]
            for answer in cfx.explain_many(
                table.model, queries, table.space, targets, method="sweep", n=n, rng=SEED
            ):
                valid = [cf.cost for cf in answer.counterfactuals if cf.valid]
                hits.append(len(valid) / n)
                costs.append(float(np.mean(valid)) if valid else np.nan)
                rows.append(answer.n_evaluations)
    cpu = (time.process_time() - begin) / len(hits)
    return Result(np.array(hits), np.array(costs), np.array(rows), cpu)


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield half and double of a number; of a tuple every other member, and no member but one."""
    if isinstance(value, tuple):
        if len(value) > 1:
            yield "every other", value[::2]
            yield "the middle one", (value[len(value) // 2],)
        return
    for name, factor in FACTORS.items():
        changed = value * factor
        yield name, max(1, round(changed)) if isinstance(value, int) else changed


def measure(tables: dict[str, Problem], only: str | None) -> list[list[Any]]:
    """Return a line per changed number: class, field, value, change, and the figures."""
    ask(tables)  # the first run loads modules
    default = ask(tables)
    print(
        f"defaults: {100 * default.hits.mean():.1f} % hits, {default.rows.mean():.0f} rows, "
        f"{1e3 * default.cpu:.1f} ms of CPU per question, {len(default.hits)} questions"
    )
    lines = []
    for name, path in CLASSES.items():
        if only not in (None, name):
            continue
        module: Any = importlib.import_module(path)
        numbers = module.TUNING
        for field in fields(numbers):
            value = getattr(numbers, field.name)
            for change, changed in changes(value):
                module.TUNING = replace(numbers, **{field.name: changed})
                figures = ask(tables).compare(default)
                lines.append([name, field.name, str(value), change, *figures])
                print(*lines[-1][:4], *(f"{figure:.4f}" for figure in figures), flush=True)
            module.TUNING = numbers
    return lines


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=CLASSES, help="the numbers of one class")
    parser.add_argument("--confirm", action="store_true", help="on the tables kept apart")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings of the library do not count here
    lines = measure(problems(confirming=options.confirm), options.only)
    head = ["class", "number", "value", "change", "hits", "cost", "rows", "cpu"]
    show_table("Each number at half and at double, against the defaults", head, lines)
    name = "tuning-confirm" if options.confirm else "tuning"
    write(name, [dict(zip(head, line, strict=True)) for line in lines], quick=bool(options.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
