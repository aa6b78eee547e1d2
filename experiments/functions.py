"""Test functions on the unit cube, with their targets and optima."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array


@dataclass(frozen=True)
class Case:
    """One function on the unit cube, a query and a target.

    Parameters
    ----------
    name : str
        What kind it is.
    f : callable
        ``(n, d) -> (n,)``.
    dimension : int
        Number of features.
    query : float
        Every coordinate of the first query.
    target : float
        The wanted output.
    best : float
        The output in the cube that is nearest to the target in potential; the target itself where
        it can be reached.
    without : float, optional
        The same for those who never enter the part that is cut off by a jump.
    look : tuple of float, optional
        A place where it is worth knowing what a search believes: that part, or the optimum.
    """

    name: str
    f: Callable[[Array], Array]
    dimension: int
    query: float
    target: float
    best: float
    without: float | None = None
    look: tuple[float, ...] | None = None

    def queries(self, n: int) -> Array:
        """Return `n` queries ``(n, d)``: the first, and random ones as far from the target.

        As far means at least half as far, in output, as the first.
        """
        first = np.full((1, self.dimension), self.query)
        drawn = np.random.default_rng(self.dimension).random((1_000, self.dimension))
        away = np.abs(self.f(np.vstack([first, drawn])) - self.target)
        return np.vstack([first, drawn[away[1:] >= 0.5 * away[0]]])[:n]

    def optimum(self, query: Array) -> float:
        """Return ρ* relative to the potential's peak, for a query ``(d,)``."""
        return self.worth(query, self.best)

    def worth(self, query: Array, output: float) -> float:
        """Return the potential of an output, relative to its peak."""
        potential = cfx.reach(self.target).potential(float(self.f(query[None])[0]))
        return float(potential.value(output)) / potential.peak


def smooth(X: Array) -> Array:
    """Return a wave, 1 feature."""
    return np.asarray(np.sin(6.0 * X[:, 0]) + X[:, 0])


def flat(X: Array) -> Array:
    """Return a cliff between two plains, 2 features."""
    return np.asarray(1.0 / (1.0 + np.exp(-60.0 * (X[:, 0] + 0.5 * X[:, 1] - 1.1))))


def steps(X: Array) -> Array:
    """Return a sum of step functions, like those of trees, 3 features."""
    return np.asarray((np.floor(X * [10.0, 7.0, 5.0]) * [1.0, 1.7, 2.9]).sum(axis=1))


def broken(X: Array) -> Array:
    """Return a slope with a jump along a circle, 2 features; the target lies inside only."""
    inside = ((X - [0.7, 0.65]) ** 2).sum(axis=1) < 0.18**2
    return np.asarray(X[:, 0] + 0.5 * X[:, 1] + np.where(inside, 2.0, 0.0))


def multimodal(X: Array) -> Array:
    """Return Rastrigin's function, 4 features."""
    z = 4.0 * X - 1.7
    return np.asarray((z**2 - 2.0 * np.cos(2 * np.pi * z)).sum(axis=1))


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def hartmann(X: Array) -> Array:
    """Return Hartmann's function with 6 features; its maximum is 3.32237."""
    gap = (_A * (X[:, None, :] - _P) ** 2).sum(axis=2)
    return np.asarray((np.array([1.0, 1.2, 3.0, 3.2]) * np.exp(-gap)).sum(axis=1))


def bounded(X: Array) -> Array:
    """Return a dome of height 1, 3 features."""
    return np.asarray(np.exp(-4.0 * ((X - [0.3, 0.8, 0.55]) ** 2).sum(axis=1)))


CASES = (
    Case("smooth, 1 feature", smooth, 1, 0.2, 0.5, 0.5),
    Case("flat but for a cliff, 2", flat, 2, 0.1, 0.5, 0.5),
    Case("discontinuous, 2", broken, 2, 0.1, 2.9, 2.9, without=1.5, look=(0.7, 0.65)),
    Case("steps, 3", steps, 3, 0.05, 20.9, 20.9),
    Case("target out of reach, 3", bounded, 3, 0.0, 1.5, 1.0, look=(0.3, 0.8, 0.55)),
    Case("multimodal, 4", multimodal, 4, 0.9, -6.0, -6.0),
    Case("smooth and narrow, 6", hartmann, 6, 0.9, 3.0, 3.0),
)
