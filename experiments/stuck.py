"""Why searches on Adult fail: Bayes-CFX that is stuck, L-BFGS-B on a plateau."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.adult import FREE, Adult
from experiments.fig4_claims import LEVEL

TARGET = 0.5


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a search: best potentials ``(30,)``, changes ``(3,)``, status, rows, outputs."""

    trace: Array
    change: Array
    status: str
    rows: Array
    outputs: Array


def limits(problem: Adult) -> Array:
    """Return lowest and highest values of the free features, ``(2, 3)``."""
    return problem.rows[list(FREE)].agg(["min", "max"]).to_numpy(float)


def stuck(problem: Adult, found: list[Found], seeds: int) -> list[dict[str, Any]]:
    """Return the surrogate's beliefs where searches of Bayes-CFX ended below 99 %.

    At the best row, where EI-CFX is compared with its highest in the box, and in the corner of the
    box where the probability is lowest.
    """
    low, high = limits(problem)
    beliefs = []
    for k, one in enumerate(found):
        if one.trace[-1] >= LEVEL:
            continue
        n = int(np.argmax(one.trace)) + 1
        U = (one.rows - low) / (high - low)
        y = one.outputs
        query = problem.queries.iloc[[k // seeds]]
        corner = np.where(_linear(problem, query)[0] > 0.0, 0.0, 1.0)
        process = cfx.GaussianProcess(kernel="rbf", mean="zero").fit(U[:n], y[:n])
        rows = np.random.default_rng(0).random((4_000, len(FREE)))
        rows[:1_000] = np.round(rows[:1_000])  # corners
        mean, std = process.predict(np.vstack([U[n - 1], corner, rows]))
        rho = cfx.reach(TARGET).potential(float(y[0]))
        alpha = cfx.ei_cfx(mean, std, rho, float(rho.value(y[n - 1])))
        beliefs.append(
            {
                "query": k // seeds,
                "seed": k % seeds,
                "potential": float(one.trace[-1]),
                "since": n,
                "best": float(y[n - 1]),
                "near_best": int((np.abs(U[n:] - U[n - 1]).max(axis=1) < 0.01).sum()),
                "sd_at_best": float(std[0]),
                "ei_at_best": float(alpha[0] / alpha.max()),
                "lengthscales": process.hyperparameters.lengthscales,
                "believed": [float(mean[1]), float(std[1])],
                "true": float(problem.model(_at(query, (low + corner * (high - low))[None]))[0]),
            }
        )
    return beliefs


def _at(query: pd.DataFrame, values: Array) -> pd.DataFrame:
    """Return copies of the query with the values ``(n, 3)`` of the free features."""
    rows = query.iloc[[0] * len(values)].reset_index(drop=True)
    rows[list(FREE)] = values
    return rows


def _linear(problem: Adult, query: pd.DataFrame) -> tuple[Array, float]:
    """Return slopes and offset of the log-odds, which are linear in the unit box."""
    low, high = limits(problem)
    middle = low + 0.5 * (high - low)
    p = problem.model(_at(query, np.vstack([middle, middle + 0.1 * np.diag(high - low)])))
    u = np.log(p / (1.0 - p))
    slope = (u[1:] - u[0]) / 0.1
    return slope, float(u[0] - 0.5 * slope.sum())


def climbs(problem: Adult, i: int, starts: int = 20) -> list[float]:
    """Return the final potentials of L-BFGS-B on ρ∘f from random rows of the box."""
    query = problem.queries.iloc[[i]]
    slope, offset = _linear(problem, query)
    rho = cfx.reach(TARGET).potential(float(problem.model(query)[0]))

    def loss(u: Array) -> tuple[float, Array]:
        p = 1.0 / (1.0 + np.exp(-(offset + slope @ u)))
        steep = float(rho.slope(p)) * p * (1.0 - p)
        return -float(rho.value(p)) / rho.peak, -steep * slope / rho.peak

    box = [(0.0, 1.0)] * len(FREE)
    options: Any = {"ftol": 1e-12, "gtol": 1e-10, "maxiter": 1_000}
    return [
        -float(minimize(loss, u, jac=True, method="L-BFGS-B", bounds=box, options=options).fun)
        for u in np.random.default_rng(i).random((starts, len(FREE)))
    ]
