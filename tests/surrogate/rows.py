"""Rows and outputs that the tests of the surrogate share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from bayescfx.arrays import Array
from bayescfx.surrogate.evidence import Hyperparameters, LogPosterior
from bayescfx.surrogate.process import GaussianProcess

KERNEL_NAMES: tuple[str, ...] = ("matern52", "rbf")


def smooth(X: Array) -> Array:
    y: Array = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * X[:, 2] * X[:, 1]
    return y


def data(n: int = 30, d: int = 4, seed: int = 0) -> tuple[Array, Array]:
    X = np.random.default_rng(seed).random((n, d))
    return X, 100.0 + 20.0 * smooth(X)


def mixed_data(n: int = 30, seed: int = 1) -> tuple[Array, Array]:
    """Two numeric columns, and two unordered ones at positions 1 and 3."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[:, 1] = rng.integers(0, 3, n)
    X[:, 3] = rng.integers(0, 4, n)
    return X, np.sin(4.0 * X[:, 0]) + (X[:, 1] == 2) * X[:, 2] + 0.2 * X[:, 3]


def central_differences(f: Callable[[Array], Array], X: Array, step: float = 1e-5) -> Array:
    """Return d f/d x for each row and column; f maps (n, d) to (n,)."""
    columns = []
    for j in range(X.shape[1]):
        e = np.zeros(X.shape[1])
        e[j] = step
        columns.append((f(X + e) - f(X - e)) / (2.0 * step))
    return np.stack(columns, axis=1)


def log_posterior(X: Array, y: Array, **settings: object) -> LogPosterior:
    gp = GaussianProcess(**settings)  # type: ignore[arg-type]  # forwarded keywords of one test file
    return gp.log_posterior(X, y)


def peer(kernel: str, h: Hyperparameters, *, normalise: bool) -> GaussianProcessRegressor:
    """Return scikit-learn's process with the same hyperparameters."""
    base = Matern(h.lengthscales, nu=2.5) if kernel == "matern52" else RBF(h.lengthscales)
    return GaussianProcessRegressor(
        ConstantKernel(h.output_scale) * base,
        alpha=h.noise,
        optimizer=None,
        normalize_y=normalise,
    )
