"""Bayesian optimisation as in packages of the paper's time, to see why its *Bayes* was weak.

A Gaussian process with one lengthscale, fitted by maximum likelihood; five random rows to begin
with; plain expected improvement with a jitter, maximised from the best of 1,000 random rows. That
is close to GPyOpt's defaults (with the paper's RBF kernel), written down with scikit-learn's
process. Inputs in their own units, or in the unit box.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import bayescfx as cfx
from bayescfx.acquisition import expected_improvement
from bayescfx.arrays import Array
from experiments.adult import FREE, Adult

START = 5
ANCHORS = 1_000
CLIMBS = 2
JITTER = 0.01


@dataclass(frozen=True)
class Plain:
    """A variant of plain Bayesian optimisation.

    Parameters
    ----------
    composed : bool
        Surrogate of f and EI-CFX; else surrogate of ρ∘f and EI.
    unit : bool
        Inputs in the unit box; else in their own units.
    """

    composed: bool
    unit: bool

    @property
    def name(self) -> str:
        """The name in JSON and on the page."""
        units = "unit box" if self.unit else "own units"
        return f"{'EI-CFX' if self.composed else 'EI on ρ∘f'}, {units}"


WAYS = tuple(Plain(composed, unit) for unit in (False, True) for composed in (False, True))


def search(task: tuple[Plain, Adult, int, float, int, int]) -> float:
    """Return the best relative potential after the last call."""
    way, problem, i, target, budget, seed = task
    rng = np.random.default_rng(seed)
    low, high = problem.rows[list(FREE)].agg(["min", "max"]).to_numpy(float)
    query = problem.queries.iloc[[i]]
    start = float(problem.model(query)[0])
    rho = cfx.reach(target).potential(start)

    def f(X: Array) -> Array:
        rows = query.iloc[[0] * len(X)].reset_index(drop=True)
        rows[list(FREE)] = low + X * (high - low)
        return problem.model(rows)

    X = rng.random((START, len(FREE)))
    y = f(X)
    while len(y) < budget - 1:  # f(q) is the first call
        scale = np.ones(len(FREE)) if way.unit else high - low
        X = np.vstack([X, _next(way, X, y, scale, rho, rng)])
        y = np.append(y, f(X[-1:]))
    return float(rho.value(y).max() / rho.peak)


def _next(
    way: Plain, X: Array, y: Array, scale: Array, rho: Any, rng: np.random.Generator
) -> Array:
    """Return the row of the unit box where the acquisition is highest, ``(3,)``."""
    worth = rho.value(y)
    process = _fit(X * scale, y if way.composed else worth)
    best = float(worth.max())

    def acquisition(U: Array) -> Array:
        mean, std = process.predict(U * scale, return_std=True)
        if way.composed:
            return cfx.ei_cfx(mean, std, rho, best)
        return expected_improvement(mean, std, best + JITTER * rho.peak)

    anchors = rng.random((ANCHORS, X.shape[1]))
    values = acquisition(anchors)
    top = anchors[np.argsort(-values, kind="stable")[:CLIMBS]]
    unit = max(float(values.max()), 1e-300)

    def loss(u: Array) -> float:
        return -float(acquisition(u[None])[0]) / unit

    ends = [
        minimize(
            loss,
            x,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(x),
            options={"maxfun": 40},
        ).x
        for x in top
    ]
    found = np.vstack([top[:1], ends])
    return np.asarray(found[np.argmax(acquisition(found))])


def _fit(X: Array, y: Array) -> GaussianProcessRegressor:
    """Return scikit-learn's process, fitted by maximum likelihood."""
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-3, 1e7)) + WhiteKernel(
        1e-4, (1e-8, 1.0)
    )
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    with warnings.catch_warnings():
        # A lengthscale at its bound is part of the experiment.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return process.fit(X, y)
