"""False and early verdicts "unreachable", and the calibration of their probability.

The truth is found by brute force: 50,000 random rows of a region, the best of them improved by many
small moves. *Reachable* targets are reached by a random row: they lie at 50 to 100 % of the way
from f(query) to either end of the random outputs. *Unreachable* targets lie beyond all outputs
found, by 20 % of their range. If a search reaches such a target, brute force was wrong, and the
problem is left out.

Targets are values in turns with "at least" or "at most". Besides the tables there are random models
(`benchmarks.made`): interior peaks, integers and categories with an outlying level, single trees.

In the space *narrow* a rule of the user forbids nearly all rows. No verdict is expected there: the
space counts for the false verdicts, not for the early ones.
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
WAYS = (0.5, 0.8, 0.9, 0.95, 1.0)  # shares of the way to an end of the random outputs
BEYOND = 0.2  # how far beyond the range, as a share of its length
EARLY = 0.6  # an early verdict takes less than this share of the budget
NARROW = 0.005  # half width of the strip that the rule of *narrow* allows
MOST_FALSE = 0.005
LEAST_NAMED = 0.8
BINS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.99, 1.0)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one search."""

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
    """A model, a query and a space, with the outputs that brute force finds."""

    model: Regressor
    query: Array
    space: cfx.Space
    strip: tuple[int, int] | None = None

    @cached_property
    def region(self) -> Region:
        """The region of allowed rows."""
        return self.space.around(self.query)

    @cached_property
    def output(self) -> float:
        """f(query)."""
        return float(self.model.predict(self.query[None])[0])

    def f(self, X: Array) -> Array:
        """Return the outputs of codes, which equal the values here."""
        return np.asarray(self.model.predict(np.asarray(self.region.rows(X), dtype=np.float64)))

    @cached_property
    def rows(self) -> Array:
        """Random rows of the region; if the rule allows a strip only, they are moved into it."""
        rng = np.random.default_rng(0)
        if self.strip is None:
            return sample(self.region, RANDOM_ROWS, rng)
        low = self.region.low
        high = self.region.high
        X = rng.uniform(low, high, size=(RANDOM_ROWS, len(low)))
        return self._inside(self._move_into_strip(X, rng))

    def _move_into_strip(self, X: Array, rng: np.random.Generator) -> Array:
        """Return the rows with one feature changed such that they lie in the strip."""
        if self.strip is None:
            return X
        i, j = self.strip
        span = self.region.high - self.region.low
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
        """Return the highest (`side` 1) or lowest (-1) output after improving the best rows."""
        rng = np.random.default_rng(1)
        region = self.region
        order = np.argsort(-side * self.y)[:64]
        X = self.rows[order]
        y = side * self.y[order]
        for turn in range(25):
            Z = np.repeat(X, 8, axis=0)
            fresh = self.rows[rng.integers(len(self.rows), size=len(Z))]
            ends = np.where(rng.random(Z.shape) < 0.5, region.low, region.high)
            Z = np.where(rng.random(Z.shape) < 1.5 / Z.shape[1], ends if turn % 2 else fresh, Z)
            Z = self._inside(self._move_into_strip(project(region, Z), rng))
            X = np.vstack([X, Z])
            y = np.append(y, side * self.f(Z)) if len(Z) else y
            order = np.argsort(-y)[:64]
            X = X[order]
            y = y[order]
        return float(side * y[0])

    def targets(self) -> Iterator[tuple[str, float]]:
        """Yield reachable and unreachable targets, with their kinds."""
        low = float(self.y.min())
        high = float(self.y.max())
        for name, end in (("low", low), ("high", high)):
            if abs(end - self.output) > 0.1 * (high - low):
                for way in WAYS:
                    target = self.output + way * (end - self.output)
                    if np.abs(self.y - target).min() <= 0.05 * abs(target - self.output):
                        yield f"{way:.0%} {name}", target
        bottom = self.extreme(-1)
        top = self.extreme(1)
        yield "above", top + BEYOND * (top - bottom)
        yield "below", bottom - BEYOND * (top - bottom)


def box(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Return a query and a space without constraints."""
    return query, cfx.Space.from_data(X)


def few(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Fix every third feature, and allow two changes."""
    whole = cfx.Space.from_data(X)
    return query, whole.fix(*range(1, X.shape[1], 3)).max_changes(2)


def ruled(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Set directions, limits of one feature, and a limit on the sum of all changes."""
    span = np.ptp(X, axis=0)
    space = cfx.Space.from_data(X).only_up(0).only_down(1)
    return query, space.move({2: (-0.3 * span[2], 0.3 * span[2])}).require(_few_sums(query, span))


def _few_sums(query: Array, span: Array) -> Callable[[Any], Any]:
    """Return a rule: the sum of all changes is at most half a range."""

    def rule(rows: Any) -> Any:
        return np.abs(((np.asarray(rows, dtype=float) - query) / span).sum(axis=1)) <= 0.5

    return rule


def mixed(X: Array, query: Array) -> tuple[Array, cfx.Space]:
    """Make the first feature ordinal (eleven steps) and the last categorical (five levels)."""
    low = X.min(axis=0)
    high = X.max(axis=0)
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
    """Require nearly an equality: the first two features change by opposite amounts."""
    span = np.ptp(X, axis=0)

    def rule(rows: Any) -> Any:
        moved = (np.asarray(rows, dtype=float) - query) / span
        return np.abs(moved[:, 0] + moved[:, 1]) <= NARROW

    kinds = {f"x{j}": "real" for j in range(X.shape[1])}  # no grid point lies in the strip
    return query, cfx.Space.from_data(X, kinds).require(rule, label="as much more as less")


SPACES = {"box": box, "few": few, "ruled": ruled, "mixed": mixed, "narrow": narrow}


def settings(data: str, model: str, row: int) -> Iterator[tuple[str, Setting]]:
    """Yield the settings of a query, one for each kind of space."""
    X = table(data).X
    query = X[np.random.default_rng([row, 17]).integers(len(X))]
    for name, make in SPACES.items():
        moved, space = make(X, query)
        yield name, Setting(fitted(data, model), moved, space, (0, 1) if name == "narrow" else None)


def problems(row: int) -> Iterator[tuple[str, str, Setting]]:
    """Yield the settings of one query of each table, and of one random model of each kind."""
    for data, name in PAIRS:
        for kind_of_space, setting in settings(data, name, row):
            yield f"{data} {name}", kind_of_space, setting
    for name, model, space in made(row):
        yield name, "made up", Setting(model, model.query, space)


def outcomes(queries: int, budgets: tuple[int, ...], first: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each search; values and one-sided targets take turns."""
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
                        on_step=_stop_when_reached,
                    )
                    yield Outcome(
                        name,
                        kind_of_space,
                        kind,
                        budget,
                        answer.status,
                        answer.n_evaluations,
                        answer.probability_reachable,
                        tuple(each.words for each in answer.binding),
                    )


def _stop_when_reached(step: Any) -> None:
    """End a search that has reached its target; the distance does not matter here."""
    if step.reached:
        raise StopIteration


def is_beyond(outcome: Outcome) -> bool:
    """Return whether the target is unreachable by brute force."""
    return outcome.kind in ("above", "below")


def figures(found: list[Outcome]) -> dict[str, float]:
    """Return counts and shares of false, early and omitted verdicts."""
    reachable = [o for o in found if not is_beyond(o)]
    beyond = [o for o in found if is_beyond(o)]
    unreachable = [o for o in beyond if o.status != "reached"]
    right = [o for o in unreachable if o.status == "unreachable"]
    false = [o for o in reachable if o.status == "unreachable"]
    n_reached = sum(o.status == "reached" for o in reachable)
    n_early = sum(o.spent < EARLY * o.budget for o in right)
    return {
        "reachable": len(reachable),
        "reached": n_reached / max(1, len(reachable)),
        "false": len(false),
        "false share": len(false) / max(1, len(reachable)),
        "false, below 1 %": sum((o.probability or 0.0) < 0.01 for o in false),
        "beyond": len(unreachable),
        "early": n_early / max(1, len(unreachable)),
        "ever": len(right) / max(1, len(unreachable)),
        "nothing named": sum(not o.binding for o in right) / max(1, len(right)),
        "reached after all": len(beyond) - len(unreachable),
    }


def calibration(found: list[Outcome]) -> list[tuple[str, int, float]]:
    """Return, per bin of the stated probability, the number of answers and the reachable share."""
    stated = [o for o in found if o.probability is not None]
    rows = []
    for low, high in pairwise(BINS):
        inside = [o for o in stated if _is_in_bin(o.probability or 0.0, low, high)]
        share = float(np.mean([not is_beyond(o) for o in inside])) if inside else float("nan")
        rows.append((f"{low:g} to {high:g}", len(inside), share))
    return rows


def _is_in_bin(probability: float, low: float, high: float) -> bool:
    """Return whether a probability lies in [low, high); the last bin includes 1."""
    return low <= probability < high or probability == high == 1


def groups(found: list[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes in groups: all, by kind of space, of target, of model, by budget."""
    result = {"all": found, "all but narrow": [o for o in found if o.space != "narrow"]}
    for field in ("space", "problem", "budget", "kind"):
        for value in dict.fromkeys(getattr(o, field) for o in found):
            result[f"{field} {value}"] = [o for o in found if getattr(o, field) == value]
    return result


def run(queries: int = 1, budgets: tuple[int, ...] = BUDGETS, first: int = 0) -> dict[str, Any]:
    """Measure, print and return the figures."""
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
    show_table("Unreachable: false and early verdicts", ("problems", *figures(found)), rows)
    bins = calibration(found)
    show_table("Probability of targets not reached", ("bin", "answers", "reachable"), bins)
    result = {name: figures(group) for name, group in groups(found).items()}
    print(f"false {aim(result['all']['false share'], '<=', MOST_FALSE)}")
    for budget in sorted({o.budget for o in found}):
        named = figures([o for o in found if o.budget == budget and o.space != "narrow"])["ever"]
        print(f"named with {budget} rows {aim(named, '>=', LEAST_NAMED)}")
    return {"figures": result, "calibration": bins, "outcomes": [asdict(o) for o in found]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first query")
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    chosen = parser.parse_args()
    run(chosen.queries, tuple(chosen.budgets), chosen.first)


if __name__ == "__main__":
    main()
