"""How often "out of reach" is said wrongly, and how early rightly; what its probability is worth.

What is true is found by brute force: 50,000 random rows of a region, the best of them then improved
by many small moves. *Reachable* are targets that some random row reaches: half of the way from
f(query) to either end of the range of random outputs, most of it, and all of it. *Out of reach* are
targets beyond either end of everything found, by a fifth of the range; where a search reaches such
a target all the same, brute force was wrong, and the problem is left out.

Targets are values, and "at least" or "at most" so much. Beside the tables there are models made up
at random (`benchmarks.made`): peaks inside the box, integers and categories of which one level
stands out, single trees.

In the space called *narrow* a function of the user forbids nearly everything. Nothing should be
said of such a region, right or wrong: it counts for the false verdicts, not for the early ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import sample
from benchmarks.made import made
from benchmarks.problems import MODELS, RANDOM_ROWS, Array, Regressor, fitted, table
from benchmarks.reporting import aim, show_table

PAIRS = (
    *(("diabetes", model) for model in MODELS),
    ("friedman1", "lgbm"),
    ("friedman1", "svr"),
    ("friedman2", "mlp"),
    ("friedman2", "rf"),
    ("friedman3", "lgbm"),
    ("friedman3", "svr"),
    ("cancer-texture", "rf"),
    ("cancer-texture", "mlp"),
    ("digits", "lgbm"),
    ("digits", "svr"),
)
BUDGETS = (40, 100)
WAYS = (0.5, 0.8, 0.9, 0.95, 1.0)  # to an end of the range; its last row is one in 50,000
BEYOND = 0.2  # how far beyond the range, as a share of its length
EARLY = 0.6  # share of the budget before which a verdict should come
NARROW = 0.005  # half width of the strip of a rule that is nearly an equality
MOST_FALSE, LEAST_NAMED = 0.005, 0.8
BINS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.99, 1.0)


@dataclass(frozen=True)
class Outcome:
    """How one search ended."""

    problem: str
    space: str
    kind: str
    budget: int
    status: str
    spent: int
    probability: float | None
    binding: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Setting:
    """A model seen from one query through a space, and what brute force finds there."""

    model: Regressor
    query: Array
    space: cfx.Space
    strip: tuple[int, int] | None = None

    @cached_property
    def region(self) -> Region:
        """Where a counterfactual may lie."""
        return self.space.around(self.query)

    @cached_property
    def output(self) -> float:
        """f(query)."""
        return float(self.model.predict(self.query[None])[0])

    def f(self, X: Array) -> Array:
        """Return the outputs of codes, which are the values themselves here."""
        return np.asarray(self.model.predict(np.asarray(self.region.rows(X), dtype=np.float64)))

    @cached_property
    def rows(self) -> Array:
        """Random rows of the region; where a rule leaves a strip, they are put into it."""
        rng = np.random.default_rng(0)
        if self.strip is None:
            return sample(self.region, RANDOM_ROWS, rng)
        low, high = self.region.low, self.region.high
        X = rng.uniform(low, high, size=(RANDOM_ROWS, len(low)))
        return self._inside(self._straightened(X, rng))

    def _straightened(self, X: Array, rng: np.random.Generator) -> Array:
        """Return rows moved into the strip, those that leave the box cut out."""
        if self.strip is None:
            return X
        (i, j), span = self.strip, self.region.high - self.region.low
        moved = (X[:, i] - self.query[i]) / span[i]
        slack = NARROW * rng.uniform(-1, 1, len(X))
        X[:, j] = self.query[j] + (slack - moved) * span[j]
        return X

    def _inside(self, X: Array) -> Array:
        return X[self.region.contains(X)]

    @cached_property
    def y(self) -> Array:
        """The outputs of `rows`."""
        return self.f(self.rows)

    def extreme(self, side: int) -> float:
        """Return the highest (`side` 1) or lowest (-1) output found, the best rows improved."""
        rng, region = np.random.default_rng(1), self.region
        order = np.argsort(-side * self.y)[:64]
        X, y = self.rows[order], side * self.y[order]
        for turn in range(25):
            Z = np.repeat(X, 8, axis=0)
            fresh = self.rows[rng.integers(len(self.rows), size=len(Z))]
            ends = np.where(rng.random(Z.shape) < 0.5, region.low, region.high)
            Z = np.where(rng.random(Z.shape) < 1.5 / Z.shape[1], ends if turn % 2 else fresh, Z)
            Z = self._inside(self._straightened(project(region, Z), rng))
            X, y = np.vstack([X, Z]), np.append(y, side * self.f(Z)) if len(Z) else y
            order = np.argsort(-y)[:64]
            X, y = X[order], y[order]
        return float(side * y[0])

    def targets(self) -> Iterator[tuple[str, float]]:
        """Yield targets by kind: on the way to an end of the range, and beyond the ends."""
        low, high = float(self.y.min()), float(self.y.max())
        for name, end in (("low", low), ("high", high)):
            if abs(end - self.output) > 0.1 * (high - low):
                for way in WAYS:
                    target = self.output + way * (end - self.output)
                    if np.abs(self.y - target).min() <= 0.05 * abs(target - self.output):
                        yield f"{way:.0%} {name}", target
        bottom, top = self.extreme(-1), self.extreme(1)
        yield "above", top + BEYOND * (top - bottom)
        yield "below", bottom - BEYOND * (top - bottom)


def box(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Return a query, and a space in which everything moves."""
    return query, cfx.Space.from_data(X)


def few(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Fix every third feature, and let two change."""
    whole = cfx.Space.from_data(X)
    return query, whole.fix(*range(1, X.shape[1], 3)).max_changes(2)


def ruled(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Set directions, a limit on a move, and a limit on how far all move together."""
    span = np.ptp(X, axis=0)
    space = cfx.Space.from_data(X).only_up(0).only_down(1)
    return query, space.move({2: (-0.3 * span[2], 0.3 * span[2])}).require(_few_sums(query, span))


def _few_sums(query: Array, span: Array) -> Callable[[Any], Any]:
    """Return a rule: the features together don't move by more than half of a range."""

    def rule(rows: Any) -> Any:
        return np.abs(((np.asarray(rows, dtype=float) - query) / span).sum(axis=1)) <= 0.5

    return rule


def mixed(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Make the first feature one of eleven steps, and the last one of five levels."""
    low, high = X.min(axis=0), X.max(axis=0)
    steps = np.linspace(low[0], high[0], 11)
    levels = np.unique(np.quantile(X[:, -1], [0, 0.25, 0.5, 0.75, 1]))
    query = query.copy()
    query[0] = steps[np.abs(steps - query[0]).argmin()]
    query[-1] = levels[np.abs(levels - query[-1]).argmin()]
    kinds: dict[str, cfx.Ordinal | cfx.Categorical] = {
        "x0": cfx.Ordinal([float(step) for step in steps]),
        f"x{X.shape[1] - 1}": cfx.Categorical([float(level) for level in levels]),
    }
    rows = X.copy()
    rows[:, 0] = steps[np.abs(X[:, [0]] - steps).argmin(axis=1)]
    rows[:, -1] = levels[np.abs(X[:, [-1]] - levels).argmin(axis=1)]
    return query, cfx.Space.from_data(rows, kinds)


def narrow(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Require what is nearly an equality: what the first feature gains the second loses."""
    span = np.ptp(X, axis=0)

    def rule(rows: Any) -> Any:
        moved = (np.asarray(rows, dtype=float) - query) / span
        return np.abs(moved[:, 0] + moved[:, 1]) <= NARROW

    kinds = {f"x{j}": "real" for j in range(X.shape[1])}  # a grid would leave nothing of the strip
    return query, cfx.Space.from_data(X, kinds).require(rule, label="as much more as less")


SPACES = {"box": box, "few": few, "ruled": ruled, "mixed": mixed, "narrow": narrow}


def settings(data: str, model: str, row: int) -> Iterator[tuple[str, Setting]]:
    """Yield a query's settings, one for each kind of space."""
    X = table(data).X
    query = X[np.random.default_rng([row, 17]).integers(len(X))]
    for name, make in SPACES.items():
        moved, space = make(X, query)
        yield name, Setting(fitted(data, model), moved, space, (0, 1) if name == "narrow" else None)


def problems(row: int) -> Iterator[tuple[str, str, Setting]]:
    """Yield the settings of one query of each table, and of one model of each kind made up."""
    for data, name in PAIRS:
        for kind_of_space, setting in settings(data, name, row):
            yield f"{data} {name}", kind_of_space, setting
    for name, model, space in made(row):
        yield name, "made up", Setting(model, model.query, space)


def outcomes(queries: int, budgets: tuple[int, ...], first: int = 0) -> Iterator[Outcome]:
    """Yield how each search ended; values and sides of targets take turns."""
    for row in range(first, first + queries):
        for name, kind_of_space, setting in problems(row):
            for turn, (kind, target) in enumerate(setting.targets()):
                side = cfx.at_least if target > setting.output else cfx.at_most
                for budget in budgets:
                    answer = cfx.explain(
                        setting.model.predict,
                        setting.query,
                        setting.space,
                        side(target) if turn % 2 else target,
                        budget=budget,
                        method="bayes-cfx",
                        rng=row,
                        on_step=_enough,
                    )
                    yield Outcome(
                        name,
                        kind_of_space,
                        kind,
                        budget,
                        answer.status,
                        answer.n_evaluations,
                        answer.probability_reachable,
                        answer.binding,
                    )


def _enough(step: Any) -> None:
    """End a search that has reached its target: how near it comes is not asked here."""
    if step.reached:
        raise StopIteration


def beyond(outcome: Outcome) -> bool:
    """Return whether brute force says that the target is out of reach."""
    return outcome.kind in ("above", "below")


def figures(found: list[Outcome]) -> dict[str, float]:
    """Return the share of false verdicts, of early ones, and what was left out."""
    inside = [o for o in found if not beyond(o)]
    real = [o for o in found if beyond(o) and o.status != "reached"]
    said = [o for o in real if o.status == "unreachable"]
    false = sum(o.status == "unreachable" for o in inside)
    return {
        "reachable": len(inside),
        "reached": sum(o.status == "reached" for o in inside) / max(1, len(inside)),
        "false": false,
        "false share": false / max(1, len(inside)),
        "false, below 1 %": sum(
            o.status == "unreachable" and (o.probability or 0.0) < 0.01 for o in inside
        ),
        "beyond": len(real),
        "early": sum(o.spent < EARLY * o.budget for o in said) / max(1, len(real)),
        "ever": len(said) / max(1, len(real)),
        "nothing named": sum(not o.binding for o in said) / max(1, len(said)),
        "reached after all": sum(beyond(o) and o.status == "reached" for o in found),
    }


def calibration(found: list[Outcome]) -> list[tuple[str, int, float]]:
    """Return, per bin of the probability told, how many answers and which share was reachable."""
    told = [o for o in found if o.probability is not None]
    rows = []
    for low, high in pairwise(BINS):
        inside = [
            o for o in told if low <= (o.probability or 0.0) < high or (o.probability == high == 1)
        ]
        share = float(np.mean([not beyond(o) for o in inside])) if inside else float("nan")
        rows.append((f"{low:g} to {high:g}", len(inside), share))
    return rows


def groups(found: list[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes in groups: all, by kind of space, of target, of model, by budget."""
    result = {"all": found, "all but narrow": [o for o in found if o.space != "narrow"]}
    for field in ("space", "problem", "budget", "kind"):
        for value in dict.fromkeys(getattr(o, field) for o in found):
            result[f"{field} {value}"] = [o for o in found if getattr(o, field) == value]
    return result


def run(queries: int = 1, budgets: tuple[int, ...] = BUDGETS, first: int = 0) -> dict[str, Any]:
    """Measure, print, and return the figures."""
    found = []
    for outcome in outcomes(queries, budgets, first):
        found.append(outcome)
        print(
            f"{outcome.problem:20} {outcome.space:7} {outcome.kind:9} budget {outcome.budget:3}: "
            f"{outcome.status} after {outcome.spent}",
            flush=True,
        )
    return report(found)


def report(found: list[Outcome]) -> dict[str, Any]:
    """Print and return the figures."""
    rows = [(name, *figures(group).values()) for name, group in groups(found).items()]
    show_table("Out of reach: false and early verdicts", ("problems", *figures(found)), rows)
    told = calibration(found)
    show_table("The probability told, where not reached", ("bin", "answers", "reachable"), told)
    result = {name: figures(group) for name, group in groups(found).items()}
    print(f"false {aim(result['all']['false share'], '<=', MOST_FALSE)}")
    for budget in sorted({o.budget for o in found}):
        named = figures([o for o in found if o.budget == budget and o.space != "narrow"])["ever"]
        print(f"named with {budget} rows {aim(named, '>=', LEAST_NAMED)}")
    return {"figures": result, "calibration": told, "outcomes": [asdict(o) for o in found]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="which query to begin with")
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    chosen = parser.parse_args()
    run(chosen.queries, tuple(chosen.budgets), chosen.first)


if __name__ == "__main__":
    main()
