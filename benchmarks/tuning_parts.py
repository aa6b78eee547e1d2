"""Direct questions to the parts of a search, for `benchmarks.tuning`: fits, maxima and draws.

A search hides small effects of its parts, because every change also changes its random numbers. So
the surrogate, `propose` and the sampling are measured on their own:

* *fits*: surrogates of 12 sets of rows. ``cost`` is the error of predictions, ``rows`` the number
  of evaluations of the log posterior, ``left`` minus the log posterior that is reached.
* *maxima*: proposals of each effort for acquisitions on mixed features, with and without rules and
  a bound on changes. ``rows`` are rows at which the acquisition is computed, ``left`` is minus the
  value that is reached, in nats.
* *draws*: samples and repairs in regions with tight rules. ``hits`` is the share of the wanted rows
  that are found, ``cost`` the mean distance of other allowed rows from the nearest of them, or the
  length of a repair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.propose.proposal import propose
from bayescfx.space.region import Region
from bayescfx.space.repair import repair
from bayescfx.space.sampling import draw, sample
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.evidence import LogPosterior, most_plausible
from bayescfx.surrogate.fit import TUNING as FIT_TUNING
from bayescfx.surrogate.process import GaussianProcess
from benchmarks.propose import Question, make_question
from benchmarks.questions import Problem, problem

#: Hit, cost, rows and what is left of one question.
Outcome = tuple[float, float, float, float]

FIT_SIZES = (12, 30, 60)  # rows that surrogates are fitted to
TEST_ROWS = 200
MAXIMA = 3  # acquisitions of each kind
SAMPLED = 200  # rows that are drawn from a region
REFERENCE_ROWS = 300
EFFORTS = ("thorough", "brief", "swift", "glance")


# -- Fits -----------------------------------------------------------------------------------------


def _fit_tables(*, confirming: bool) -> list[Problem]:
    """Return the tables whose models are fitted."""
    cells = [
        ("diabetes", "lgbm"),
        ("friedman", "svr"),
        ("flats", "boosted pipeline"),
        ("diabetes", "linear"),
    ]
    if confirming:
        cells = [("diabetes", "forest"), ("friedman", "mlp"), ("flats", "linear pipeline")]
    return [problem(*cell) for cell in cells]


def ask_fits(_seed: int, *, confirming: bool) -> Iterator[Outcome]:
    """Fit surrogates from scratch, and again with a tenth more rows from there."""
    for at, table in enumerate(_fit_tables(confirming=confirming)):
        for n in FIT_SIZES:
            rng = np.random.default_rng([at, n])  # fits are the same for any seed
            region = table.space.around(table.X.iloc[int(rng.integers(len(table.X)))])
            codes = np.vstack([region.query, sample(region, n + TEST_ROWS, rng)])
            y = np.asarray(table.model.predict(region.rows(codes)), dtype=np.float64)
            yield _fit(region, codes, y, n)


def _fit(region: Region, codes: Any, y: Any, n: int) -> Outcome:
    """Return the figures of one surrogate of the first `n` rows."""
    coordinates = Coordinates(region, codes[:n])
    Z = coordinates(codes)
    process = GaussianProcess(
        kernel="tabular",
        categorical=coordinates.categorical_columns,
        alike=FIT_TUNING.lengthscale_deviation,
    )
    first = process.log_posterior(Z[: n - n // 10], y[: n - n // 10])
    calls = [0]
    start = most_plausible(_counted(first, calls), None)
    posterior = process.log_posterior(Z[:n], y[:n])
    best = most_plausible(_counted(posterior, calls), start)
    height = float(posterior.many(posterior.pack(best)[None])[0][0])
    process.condition(Z[:n], y[:n], best)
    error = process.posterior.predict(Z[n:])[0] - y[n:]
    return 1.0, float(np.sqrt(np.mean(error**2)) / y.std()), float(calls[0]), -height


def _counted(posterior: LogPosterior, calls: list[int]) -> LogPosterior:
    """Return the posterior with a count of the places where it is evaluated."""
    many = posterior.many

    def counted(theta: Any) -> Any:
        calls[0] += len(theta)
        return many(theta)

    posterior.many = counted  # type: ignore[method-assign]  # for this object only
    return posterior


# -- Maxima ---------------------------------------------------------------------------------------


@dataclass
class _Counted:
    """An acquisition with a count of its rows."""

    gain: Any
    n_rows: int = 0

    def value(self, X: Any) -> Any:
        """Return the values of rows."""
        self.n_rows += len(X)
        return self.gain.value(X)

    def gradient(self, X: Any) -> Any:
        """Return values and gradients of rows."""
        self.n_rows += len(X)
        return self.gain.gradient(X)


@cache
def _maxima(*, confirming: bool) -> tuple[Question, ...]:
    """Return acquisitions: without rules, with three linear rules, and with many features."""
    first = 100 if confirming else 0
    made = []
    for k in range(first, first + MAXIMA):
        made.append(make_question(k))
        made.append(make_question(k, rules=3))
        made.append(make_question(k, 20 if k % 2 else 6))
    return tuple(made)


def ask_maxima(seed: int, *, confirming: bool) -> Iterator[Outcome]:
    """Maximise each acquisition with every effort, in turns with a bound on changes."""
    for k, question in enumerate(_maxima(confirming=confirming)):
        bound = 3 if k % 2 else None
        region = replace(question.region, max_changes=bound)
        for effort in EFFORTS:
            rng = np.random.default_rng([seed, k])
            gain = _Counted(question.gain)
            starts = question.X[np.argsort(-question.gain.value(question.X))[:8]]
            starts = starts[region.contains(starts)]
            found = propose(
                gain,
                region,
                rng,
                starts,
                k=16 if effort == "glance" else 1,
                avoid=question.X,
                effort=effort,  # type: ignore[arg-type]  # one of them
            )
            yield 1.0, np.nan, float(gain.n_rows), -float(found.values.max(initial=-30.0))


# -- Draws ----------------------------------------------------------------------------------------


def _regions(*, confirming: bool) -> Iterator[Region]:
    """Yield regions with rules that forbid most draws."""
    shift = 0.05 if confirming else 0.0
    unit = cfx.Space({name: cfx.Real(0, 1) for name in "abcdef"})
    middle = dict.fromkeys("abcdef", 0.3)
    total = "a + b + c + d"
    thin = unit.require(f"{total} >= {1.15 + shift}").require(f"{total} <= {1.25 + shift}")
    yield thin.around(middle)
    yield thin.max_changes(3).around(middle)
    yield unit.require(f"a + 2 * b - c <= {0.5 + shift}").require("d >= e").around(middle)
    yield unit.require(f"a + b >= {1.6 + shift}").require("c + d <= 0.2").around(middle)
    ring = unit.require(
        lambda rows: np.abs(np.hypot(rows["a"] - 0.5, rows["b"] - 0.5) - 0.3) < 0.01
    )
    yield ring.around(middle)
    yield ring.require("c + d <= 0.7").max_changes(4).around(middle)
    corner = unit.require(lambda rows: (rows[["a", "b", "c", "d"]] > 0.85 - shift).all(axis=1))
    yield corner.around(middle)
    grid = {
        "a": cfx.Integer(0, 40),
        "b": cfx.Integer(0, 40),
        "c": cfx.Real(0, 1),
        "d": cfx.Real(0, 9),
    }
    whole = cfx.Space(grid).require("a + b == 40").require("d <= 9 * c")
    at = {"a": 20, "b": 20, "c": 0.5, "d": 3.0}
    yield whole.around(at)
    several = cfx.Space(grid).require("2 * a - 3 * b <= -18").require("3 * a + b <= 81")
    yield several.require("d - a <= -16").around(at)


@cache
def _cases(*, confirming: bool) -> tuple[tuple[Region, Any, Any], ...]:
    """Return regions with allowed rows for reference, and draws to repair."""
    cases = []
    for region in _regions(confirming=confirming):
        rng = np.random.default_rng(99)
        cases.append((region, sample(region, REFERENCE_ROWS, rng), draw(region, SAMPLED, rng)))
    return tuple(cases)


def ask_draws(seed: int, *, confirming: bool) -> Iterator[Outcome]:
    """Sample each region, and repair draws."""
    for region, reference, drawn in _cases(confirming=confirming):
        found = sample(region, SAMPLED, np.random.default_rng(seed))
        gaps = np.abs((reference[:, None] - found) / region.scale).sum(axis=2)
        share = len(np.unique(found, axis=0)) / SAMPLED
        yield share, float(gaps.min(axis=1).mean()), 1.0, 0.0
        repaired, allowed = repair(region, drawn)
        moved = np.abs((repaired - drawn) / region.scale).sum(axis=1)[allowed]
        cost = float(moved.mean()) if len(moved) else np.nan
        yield float(allowed.mean()), cost, 1.0, 0.0


PARTS = {"fits": ask_fits, "maxima": ask_maxima, "draws": ask_draws}
