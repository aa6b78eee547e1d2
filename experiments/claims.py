"""Claims of the paper, our figures, and verdicts by stated rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array

# The only words of judgement; the page prints them with these rules.
RULES = {
    "reproduced": "the figure and its whole 95 % interval are on the side the paper says",
    "contradicted": "the figure and its whole 95 % interval are on the other side",
    "undecided": "the interval has a part on either side",
    "proved": "a theorem with a proof: nothing is measured, what can be executed is claimed apart",
}


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval.

    Parameters
    ----------
    value, low, high : float
        The figure and the ends of the interval; all three equal where nothing is random.
    """

    value: float
    low: float
    high: float

    def less(self, level: float) -> Estimate:
        """Return the excess over `level`."""
        return Estimate(self.value - level, self.low - level, self.high - level)

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low)

    def spanning(self, *others: Estimate) -> Estimate:
        """Return the figure with an interval that also covers those of the others."""
        all_ = (self, *others)
        return Estimate(self.value, min(e.low for e in all_), max(e.high for e in all_))

    def meets(self, other: Estimate) -> bool:
        """Return whether the two intervals overlap."""
        return self.low <= other.high and other.low <= self.high

    def text(self, form: str = "+.3f") -> str:
        """Return ``value [low, high]``, or the value alone where nothing is random."""
        if self.low == self.high:
            return f"{self.value:{form}}"
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper with our figure and the verdict.

    Parameters
    ----------
    key : str
        Its name, the same in every run: ``"adult.few-calls"``.
    where : str
        Where the paper says it: ``"Section 4, Figure 4 (a)"``.
    paper : str
        The claim, in the paper's words or number.
    ours : str
        Our figure with its interval.
    margin : Estimate or None
        By how much the figure is on the paper's side: above 0 the paper is right, below 0 wrong.
        None for a proof, where nothing is measured.
    why : str
        One line: the reason of a difference, or the basis of the figure.
    """

    key: str
    where: str
    paper: str
    ours: str
    margin: Estimate | None
    why: str

    @property
    def verdict(self) -> str:
        """One of the words of `RULES`."""
        if self.margin is None:
            return "proved"
        if self.margin.low > 0.0:
            return "reproduced"
        return "contradicted" if self.margin.high < 0.0 else "undecided"


def exactly(value: float) -> Estimate:
    """Return a figure without random error."""
    return Estimate(float(value), float(value), float(value))


def fact(holds: bool) -> Estimate:
    """Return the margin of a claim that holds or does not."""
    return exactly(1.0 if holds else -1.0)


def bootstrap(
    values: Any, statistic: Callable[..., Array] = np.mean, resamples: int = 4_000, seed: int = 0
) -> Estimate:
    """Return a statistic of independent units with its percentile bootstrap interval.

    Parameters
    ----------
    values : array_like ``(units,)``
        One value per independent unit: per query, the mean over its seeds; never one per run.
    statistic : callable, default numpy.mean
        Takes values and ``axis=``.
    resamples, seed : int
        Number of resamples, and the seed of their generator.
    """
    values = np.asarray(values, dtype=float)
    chosen = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    low, high = np.quantile(statistic(values[chosen], axis=1), [0.025, 0.975])
    return Estimate(float(statistic(values, axis=0)), float(low), float(high))
