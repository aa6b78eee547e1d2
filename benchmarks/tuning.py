"""Evidence for tuning numbers: each at its value, at half, at double, and with its rule off.

::

    python -m benchmarks.tuning                        # every number
    python -m benchmarks.tuning --only pairs start     # the numbers of some classes
    python -m benchmarks.tuning --change off           # only with rules switched off
    python -m benchmarks.tuning --confirm              # on the tables kept for confirming

A fixed set of questions (`KINDS`, and `PARTS` of `benchmarks.tuning_parts`) is asked with the
defaults and some seeds, and once with every changed number. Of each change five figures are
printed and written to ``results/tuning.json``,
against the mean of the defaults: the difference of the share of hits, the geometric means of the
ratios of cost and of rows, the difference of the share of the way to the target that is left, and
the share of questions with another answer. The *noise* of a figure is what another seed changes at
the defaults: its standard deviation. A number is worth its name if a change of it changes a figure
by more than about two of these.

Searches that are given a changed number also draw other random numbers. So every change of
Bayes-CFX changes answers, and small effects are hidden by the noise.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import bayescfx as cfx
from benchmarks.questions import Problem, problem
from benchmarks.reporting import show_table, write
from benchmarks.tuning_parts import PARTS

#: The tuning classes: a short name, the module that holds the object `TUNING`, and the suite of
#: questions that its numbers are measured with.
CLASSES = {
    "sweep": ("bayescfx.search.sweep", "sweep"),
    "climb": ("bayescfx.search.climb", "sweep"),
    "pairs": ("bayescfx.search.pairs", "sweep"),
    "finish": ("bayescfx.search.finish", "sweep"),
    "neighbourhood": ("bayescfx.space.neighbourhood", "sweep"),
    "bayes": ("bayescfx.search.bayes", "bayes"),
    "objectives": ("bayescfx.search.objectives", "bayes"),
    "start": ("bayescfx.search.start", "bayes"),
    "fit": ("bayescfx.surrogate.fit", "bayes"),
    "evidence": ("bayescfx.surrogate.evidence", "fits"),
    "propose": ("bayescfx.propose.tuning", "maxima"),
    "ascent": ("bayescfx.ascent", "maxima"),
    "sampling": ("bayescfx.space.sampling", "draws"),
    "repair": ("bayescfx.space.repair", "draws"),
    "learning": ("bayescfx.search.question", "many"),
    "verdict": ("bayescfx.search.verdict", "verdict"),
    "binding": ("bayescfx.search.binding", "binding"),
    "auto": ("bayescfx.search.auto", "auto"),
}
FACTORS = {"half": 0.5, "double": 2.0}
#: Values that switch the rule of a number off, by class and number.
OFF: dict[str, dict[str, Any]] = {
    "bayes": {
        "max_start_share": 0.0,
        "cost_until": 1.0,
        "near_until": 1.0,
        "settle_share": 0.0,
        "min_saving": 0.0,
        "n_prior_errors": 1e9,
        "min_drawn_batch": 10**9,
    },
    "objectives": {
        "max_tie": 0.0,
        "flat_loss": 0.0,
        "failed_hit_loss": 0.0,
    },
    "fit": {"max_rows_fitted_each_time": 10**9},
    "evidence": {"n_starts": 0, "max_size_of_restarts": 0},
    "propose": {
        "start_share": 10**9,
        "long_changes": 1.0,
        "least_allowed": 0.0,
        "supports": 0,
        "apart": 0.0,
        "wide": 10**9,
        "pool_per_point": 0,
    },
    "ascent": {"least_share": 0.0},
    "sampling": {"first_draws": 0, "redrawn": 0.0, "walked": 1},
    "repair": {"corrections": 0},
    "verdict": {
        "close_share": 0.0,
        "near_miss": 0.0,
        "n_corrections": 0,
        "max_learning_factor": 1.0,
        "suspicious": 0.0,
        "first_look_before": 1.0,
    },
    "binding": {"min_share_of_best": 0.0, "difference_outside": 0.0},
    "auto": {"large_budget": 10**9, "rows_for_proof": 0},
}
SEEDS = 4  # runs with the defaults
TOLERANCE = 0.02  # a band accepts this share of the wanted change on either side
FAR = 0.8  # a far target: this share of the way from f(query) to the end of the outputs
BEYOND = 0.3  # an unreachable target: this share of the outputs' range beyond its end


@dataclass(frozen=True)
class Kind:
    """Questions of one kind.

    Attributes
    ----------
    n_queries : int
        Per table.
    target : str
        "one-sided", "band", "far" or "beyond" (see `_target`).
    options : dict
        Arguments of `explain_many`.
    has_cost : bool
        Whether moving costs something.
    """

    n_queries: int
    target: str
    options: dict[str, Any]
    has_cost: bool = True

    @property
    def n(self) -> int:
        """Return the number of answers wanted."""
        return int(self.options.get("n", 1))


def _kind(n_queries: int, target: str, budget: int | None = None, **options: Any) -> Kind:
    """Return a kind of questions for Bayes-CFX, each on its own and without proofs."""
    base = {"method": "bayes-cfx", "budget": budget, "share": "none", "prove": False}
    return Kind(n_queries, target, base | options)


_SWEEP: dict[str, Any] = {"method": "sweep"}
KINDS: dict[str, tuple[Kind, ...]] = {
    "sweep": (
        Kind(12, "one-sided", _SWEEP),
        Kind(9, "band", _SWEEP),
        Kind(4, "one-sided", _SWEEP | {"n": 3}),
        Kind(5, "far", _SWEEP),
    ),
    "bayes": (
        _kind(2, "one-sided", 20),
        _kind(1, "one-sided", 50),
        _kind(1, "band", 20),
        _kind(1, "far", 25),
        _kind(1, "one-sided", 25, n=3),
        _kind(1, "one-sided", 80, method=cfx.BayesCFX(batch=20)),
        replace(_kind(1, "far", 15), has_cost=False),
    ),
    "many": (_kind(8, "one-sided", 20, share="block"),),
    "verdict": (_kind(2, "far", 44), _kind(2, "beyond", 44)),
    "auto": (
        Kind(3, "one-sided", {"budget": 300}),
        Kind(2, "far", {"budget": 1000}),
        Kind(2, "band", {}),
    ),
}


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
        The share of the wanted answers that reach the target; for verdicts and binding
        constraints, whether they are right.
    costs : array of shape (q,)
        The mean cost of the answers; nan where the target is not reached.
    rows : array of shape (q,)
        Rows sent to the model.
    left : array of shape (q,)
        The share of the way to the target that is left.
    """

    hits: np.ndarray
    costs: np.ndarray
    rows: np.ndarray
    left: np.ndarray

    @classmethod
    def of(cls, outcomes: Sequence[tuple[float, float, float, float]]) -> Result:
        """Return a result from one tuple per question."""
        return cls(*np.array(outcomes, dtype=np.float64).T)

    @classmethod
    def mean(cls, results: Sequence[Result]) -> Result:
        """Return the means over runs, geometric ones of cost and rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # targets that no run reaches
            costs = np.exp(np.nanmean([np.log(result.costs) for result in results], axis=0))
        return cls(
            np.mean([result.hits for result in results], axis=0),
            costs,
            np.exp(np.mean([np.log(result.rows) for result in results], axis=0)),
            np.mean([result.left for result in results], axis=0),
        )

    def compare(self, default: Result) -> tuple[float, float, float, float]:
        """Return the differences of hits, log cost, log rows and the way left."""
        ratios = np.log(self.costs / default.costs)
        return (
            float((self.hits - default.hits).mean()),
            float(np.nanmean(ratios)) if np.isfinite(ratios).any() else 0.0,
            float(np.log(self.rows / default.rows).mean()),
            float((self.left - default.left).mean()),
        )

    def changed(self, default: Result) -> float:
        """Return the share of questions that have another answer than with the same seed."""
        pairs = ((self.hits, default.hits), (self.rows, default.rows), (self.left, default.left))
        is_same = np.isclose(self.costs, default.costs, rtol=1e-12, equal_nan=True)
        for new, old in pairs:
            is_same &= new == old
        return float(1.0 - is_same.mean())


def _target(table: Problem, row: int, kind: str) -> Any:
    """Return the target of a row: more for outputs below the median, else less."""
    outputs = table.outputs
    output = float(outputs[row])
    side = 1.0 if output <= float(np.median(outputs)) else -1.0
    way = side * float(outputs.std())
    low, high = table.output_range
    end = high if side > 0 else low
    if kind == "far":
        way = FAR * (end - output)
    elif kind == "beyond":
        way = end + side * BEYOND * (high - low) - output
    value = output + way
    if kind == "band":
        reach = TOLERANCE * abs(way)
        return cfx.between(value - reach, value + reach)
    return cfx.at_least(value) if side > 0 else cfx.at_most(value)


def _outcome(
    answer: cfx.Explanation, kind: Kind, *, is_verdict: bool
) -> tuple[float, float, float, float]:
    """Return hit, cost, rows and the share of the way that is left."""
    valid = [cf.cost for cf in answer.counterfactuals if cf.valid]
    hit = len(valid) / kind.n
    if is_verdict:
        hit = float((answer.status == "unreachable") == (kind.target == "beyond"))
    cost = float(np.mean(valid)) if valid and kind.has_cost else np.nan
    outputs = np.array([answer.output, answer.best.output])
    misses = np.min([np.abs(outputs - np.clip(outputs, *ends)) for ends in answer.accepted], axis=0)
    left = 0.0 if valid else float(min(1.0, misses[1] / misses[0]))
    return hit, cost, answer.n_evaluations, left


def ask(suite: str, seed: int = 0, *, confirming: bool = False) -> Result:
    """Ask all questions of a suite with the tuning numbers as they are now."""
    if suite == "binding":
        return _ask_binding(seed)
    if suite in PARTS:
        return Result.of(list(PARTS[suite](seed, confirming=confirming)))
    outcomes = []
    for table in problems(confirming=confirming).values():
        order = np.random.default_rng(5).permutation(len(table.X)).tolist()
        for kind in KINDS[suite]:
            is_ruled = bool(table.space.rules)
            if kind.target == "far" and is_ruled and suite == "sweep":
                continue  # with rules, the range of the outputs is not known
            chosen = [order.pop() for _ in range(kind.n_queries)]
            if kind.target == "far" and is_ruled and suite == "verdict":
                continue  # nor whether the target can be reached
            targets = [_target(table, row, kind.target) for row in chosen]
            space = table.space if kind.has_cost else table.space.cost(weight=0.0)
            queries = table.X.iloc[chosen]
            answers = cfx.explain_many(
                table.model, queries, space, targets, rng=seed, **kind.options
            )
            for answer in answers:
                outcomes.append(_outcome(answer, kind, is_verdict=suite == "verdict"))
    return Result.of(outcomes)


# -- Binding constraints --------------------------------------------------------------------------


def _plane(frame: pd.DataFrame) -> np.ndarray:
    """Return a linear function of three of four features."""
    return np.asarray(frame["a"] + 2.0 * frame["b"] + 3.0 * frame["c"])


def _staircase(frame: pd.DataFrame) -> np.ndarray:
    """Return the plane in steps of an eighth, flat beyond the ends, as trees are."""
    return _plane((8 * frame[list("abc")]).apply(np.floor).clip(0, 7) / 7)


def _capped(frame: pd.DataFrame) -> np.ndarray:
    """Return the plane, but never more than 2.5: no constraint keeps more away."""
    return np.asarray(np.minimum(_plane(frame), 2.5))


def _binding_cases() -> Iterator[tuple[Callable[[pd.DataFrame], np.ndarray], Any, float, str]]:
    """Yield models, spaces, targets and the constraint to be named first, if any."""
    unit = cfx.Space({name: cfx.Real(0, 1) for name in "abcd"})
    bound = {
        "limit on 'c' (at most 0.5)": unit.between({"c": (0, 0.5)}),
        "limit on 'c' (at most 0.4)": unit.move({"c": (-0.1, 0.1)}),
        "limit on 'b' (at most 0.3)": unit.only_down("b"),
        "at most 1 change": unit.max_changes(1),
        "at most 2 changes": unit.max_changes(2),
        "rule 'b + c <= 0.9'": unit.require("b + c <= 0.9"),
    }
    for named, space in bound.items():
        yield _plane, space, 8.0, named
        yield _staircase, space, 8.0, named
    for space in (unit, unit.between({"c": (0, 0.9)}), unit.max_changes(3), unit.only_up("d")):
        yield _capped, space, 5.0, ""


def _ask_binding(seed: int) -> Result:
    """Ask for binding constraints after 50 random rows; a hit is the right first constraint."""
    query = {"a": 0.3, "b": 0.3, "c": 0.3, "d": 0.5}
    outcomes = []
    for model, space, value, named in _binding_cases():
        answer = cfx.explain(
            model, query, space, cfx.at_least(value), method="random", budget=50, rng=seed
        )
        first = answer.binding[0].words if answer.binding else ""
        outcomes.append((float(first == named), np.nan, float(len(answer.binding)) + 1.0, 0.0))
    return Result.of(outcomes)


# -- Changes --------------------------------------------------------------------------------------


def changes(value: Any, off: Any = None) -> Iterator[tuple[str, Any]]:
    """Yield half and double of a number, and the value `off`, if any, that ends its rule.

    Of a tuple of numbers every other member, and no member but the middle one.
    """
    if isinstance(value, tuple):
        if len(value) > 1:
            yield "every other", value[::2]
            yield "the middle one", (value[len(value) // 2],)
    else:
        for name, factor in FACTORS.items():
            changed = value * factor
            yield name, max(1, round(changed)) if isinstance(value, int) else changed
    if off is not None:
        yield "off", off


def put(old: Any, new: Any) -> None:
    """Replace a tuning object in all modules of the library that use it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bayescfx"):
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)


@dataclass(frozen=True)
class Default:
    """Runs with the defaults, their mean and the noise of its figures."""

    first: Result
    mean: Result
    noise: tuple[float, ...]

    @classmethod
    def measure(cls, suite: str, *, confirming: bool) -> Default:
        """Ask a suite with the defaults and several seeds."""
        runs = [ask(suite, seed, confirming=confirming) for seed in range(SEEDS)]
        mean = Result.mean(runs)
        figures = np.array([run.compare(mean) for run in runs])
        noise = np.sqrt((figures**2).sum(axis=0) / (SEEDS - 1))
        print(
            f"{suite}: {100 * mean.hits.mean():.1f} % hits, {mean.rows.mean():.0f} rows, "
            f"{len(mean.hits)} questions; noise {np.round(noise, 4).tolist()}",
            flush=True,
        )
        return cls(runs[0], mean, tuple(noise.tolist()))


def measure(
    only: Sequence[str], wanted: Sequence[str], *, confirming: bool
) -> Iterator[dict[str, Any]]:
    """Yield a line per changed number: class, field, value, change, and the figures."""
    defaults: dict[str, Default] = {}
    for name in only:
        path, suite = CLASSES[name]
        if suite not in defaults:
            defaults[suite] = Default.measure(suite, confirming=confirming)
        default = defaults[suite]
        numbers: Any = importlib.import_module(path).TUNING
        for field in fields(numbers):
            value = getattr(numbers, field.name)
            for change, changed in changes(value, OFF.get(name, {}).get(field.name)):
                if wanted and change not in wanted:
                    continue
                new = replace(numbers, **{field.name: changed})
                put(numbers, new)
                result = ask(suite, confirming=confirming)
                put(new, numbers)
                yield _line(name, field.name, value, change, result, default)


def _line(
    name: str, field: str, value: Any, change: str, result: Result, default: Default
) -> dict[str, Any]:
    """Return the figures of one change."""
    hits, cost, rows, left = result.compare(default.mean)
    figures = (hits, cost, rows, left)
    pairs = zip(figures, default.noise, strict=True)
    largest = max(abs(figure) / max(noise, 1e-3) for figure, noise in pairs)
    line: dict[str, Any] = {"class": name, "number": field, "value": str(value), "change": change}
    line |= {"hits": hits, "cost": float(np.exp(cost)), "rows": float(np.exp(rows)), "left": left}
    return line | {"changed": result.changed(default.first), "in noise": largest}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CLASSES, help="the numbers of some classes")
    parser.add_argument("--change", nargs="+", default=[], help='only "half", "double" or "off"')
    parser.add_argument("--confirm", action="store_true", help="on the tables kept apart")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings of the library do not count here
    lines = []
    begin = time.process_time()
    for line in measure(options.only or list(CLASSES), options.change, confirming=options.confirm):
        lines.append(line)
        print(
            *(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in line.values()),
            flush=True,
        )
    print(f"{time.process_time() - begin:.0f} s of CPU")
    show_table("Each change against the defaults", list(lines[0]), [[*x.values()] for x in lines])
    name = "tuning-confirm" if options.confirm else "tuning"
    write(name, lines, quick=bool(options.only or options.change))
    return 0


if __name__ == "__main__":
    sys.exit(main())
