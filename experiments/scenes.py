"""What Figure 3 is drawn on: two features of a logistic regression, a query, the target 50 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.adult import Adult

EPSILON = 0.1


@dataclass(frozen=True, eq=False)
class Scene:
    """The unit square of two features: probabilities on a grid, and the question."""

    features: tuple[str, str]
    grid: Array
    p: Array
    query: Array
    potential: cfx.AEP

    @property
    def inside(self) -> Array:
        """Which grid points belong to the ε-target set."""
        ((low, high),) = self.potential.target_set(EPSILON)
        return np.asarray((self.p >= low) & (self.p <= high))


def unit_grid(size: int) -> Array:
    """Return ``size²`` points of the unit square."""
    ticks = np.linspace(0.0, 1.0, size)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def downwards(start: float) -> cfx.AEP:
    """Return AEP₋ with its peak at 50 %."""
    return cfx.AEP(start, start - 0.5, side=-1)


def breast_cancer(size: int) -> Scene:
    """Return a steep scene: P(malignant) by two features, and the row nearest to 95 %."""
    features = ("mean radius", "mean concave points")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[list(features)].to_numpy(), data.target.to_numpy() == 0
    clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    grid = unit_grid(size)
    p = clf.predict_proba(low + grid * span)[:, 1]
    confident = clf.predict_proba(X)[:, 1]
    k = int(np.argmin(np.abs(confident - 0.95)))
    return Scene(features, grid, p, (X[k] - low) / span, downwards(float(confident[k])))


def adult(size: int, problem: Adult, least: float = 1.0) -> Scene:
    """Return a gentle scene: Adult's model by age and hours, and the row nearest to 90 %.

    Among rows without capital gains for which the two features alone can bring the probability
    down to `least`: with 25 % all of the target set lies within the square.
    """
    features = ("age", "hours-per-week")
    names = list(features)
    rows = problem.rows[problem.rows["capital-change"] == 0].reset_index(drop=True)
    low, high = (problem.rows[names].agg(which).to_numpy() for which in ("min", "max"))
    lowest = rows.copy()
    lowest[names] = low  # both coefficients are positive
    confident = problem.model(rows)
    k = int(np.argmin(np.abs(confident - 0.9) + (problem.model(lowest) > least)))
    grid = unit_grid(size)
    table = rows.iloc[[k] * len(grid)].reset_index(drop=True)
    table[names] = low + grid * (high - low)
    query = (rows.loc[k, names].to_numpy(float) - low) / (high - low)
    return Scene(features, grid, problem.model(table), query, downwards(float(confident[k])))
