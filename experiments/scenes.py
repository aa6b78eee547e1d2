"""The scenes of Figure 3: two features of a logistic regression, a query, the target 50 %.

Queries are fixed rows of the raw data, and every model is fitted to 1e-10: another environment has
the same scenes to the last printed digit.
"""

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
CANCER = "breast cancer"
CORNER = "Adult, set at a corner"
BAND = "Adult, set as a band"
# The row of the raw data (counted from 0), and the reason for it.
CHOSEN = {
    CANCER: (509, "the patient nearest to 95 %; a cliff between two plains"),
    CORNER: (
        46_616,
        "within 0.001 of 90 %, no capital change; the two features can just bring it to 50 %, so "
        "that the target set is a corner of the square",
    ),
    BAND: (
        32_001,
        "the same, but they can bring it to 25 %, so that the target set is a band across the "
        "square",
    ),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """The unit square of two features: probabilities on a grid, and the question.

    `limits` are lowest and highest values of the features, ``(2, 2)``.
    """

    features: tuple[str, str]
    limits: Array
    grid: Array
    p: Array
    query: Array
    potential: cfx.AEP

    @property
    def inside(self) -> Array:
        """Return which grid points belong to the ε-target set."""
        ((low, high),) = self.potential.target_set(EPSILON)
        return np.asarray((self.p >= low) & (self.p <= high))


def unit_grid(size: int) -> Array:
    """Return ``size²`` points of the unit square."""
    ticks = np.linspace(0.0, 1.0, size)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def downwards(start: float) -> cfx.AEP:
    """Return AEP₋ with its peak at 50 %."""
    return cfx.AEP(start, start - 0.5, side=-1)


def scenes(size: int, problem: Adult) -> dict[str, Scene]:
    """Return all scenes by name, with ``size²`` grid points each."""
    cancer = _cancer(size, CHOSEN[CANCER][0])
    return {CANCER: cancer} | {n: _adult(size, problem, CHOSEN[n][0]) for n in (CORNER, BAND)}


def _cancer(size: int, row: int) -> Scene:
    """P(malignant) by two features."""
    features = ("mean radius", "mean concave points")
    data = load_breast_cancer(as_frame=True)
    X = data.data[list(features)].to_numpy()
    y = data.target.to_numpy() == 0
    model = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    clf = make_pipeline(StandardScaler(), model).fit(X, y)
    low = X.min(axis=0)
    span = np.ptp(X, axis=0)
    grid = unit_grid(size)
    p = clf.predict_proba(low + grid * span)[:, 1]
    start = float(clf.predict_proba(X[[row]])[0, 1])
    limits = np.array([low, low + span])
    return Scene(features, limits, grid, p, (X[row] - low) / span, downwards(start))


def _adult(size: int, problem: Adult, row: int) -> Scene:
    """Adult's model by age and hours."""
    features = ("age", "hours-per-week")
    names = list(features)
    limits = problem.rows[names].agg(["min", "max"]).to_numpy(float)
    grid = unit_grid(size)
    query = problem.rows.loc[[row]]
    table = query.iloc[[0] * len(grid)].reset_index(drop=True)
    table[names] = limits[0] + grid * np.ptp(limits, axis=0)
    start = float(problem.model(query)[0])
    place = (query[names].to_numpy(float)[0] - limits[0]) / np.ptp(limits, axis=0)
    return Scene(features, limits, grid, problem.model(table), place, downwards(start))
