"""Functions to maximise, and the regions over which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from bayescfx.arrays import Array
from bayescfx.data import Real
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.evidence import Hyperparameters
from bayescfx.surrogate.kernels import KERNELS
from bayescfx.surrogate.process import GaussianProcess


@dataclass(frozen=True)
class Plain:
    """A function with its gradient by hand."""

    f: Callable[[Array], Array]
    slope: Callable[[Array], Array]

    def value(self, X: Array, /) -> Array:
        return self.f(X)

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        return self.f(X), self.slope(X)


class Improvement:
    """Log expected improvement of a random Gaussian process over a region, less a cost."""

    def __init__(
        self, region: Region, rng: np.random.Generator, n: int = 30, weight: float = 0.0
    ) -> None:
        self.region, self.weight = region, weight
        width = region.high - region.low
        ordered = ~region.categorical & (width > 0)
        self.span = np.where(ordered, width, 1.0)
        self.low = np.where(ordered, region.low, 0.0)
        self.rows = np.concatenate([region.query[None], sample(region, n - 1, rng)])
        d = len(region.free)
        scales = rng.uniform(0.2, 0.9, size=d) * np.sqrt(d)
        levels = [i for i, j in enumerate(region.free) if region.categorical[j]]
        U = self._unit(self.rows)
        gap = np.abs(U[:, None] - U[None])
        gap[..., levels] = gap[..., levels] > 0
        K = KERNELS["matern52"](np.einsum("ijk,k->ij", gap**2, scales**-2))[0]
        y = np.linalg.cholesky(K + 1e-8 * np.eye(len(U))) @ rng.normal(size=len(U))
        self.best = float(y.max())
        known = Hyperparameters(scales, noise=1e-6)
        self.process = GaussianProcess(categorical=levels).condition(U, y, known)

    def _unit(self, X: Array) -> Array:
        return np.asarray(((X - self.low) / self.span)[:, self.region.free])

    def _log(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Log EI and its slopes by mean and deviation; asymptotic far below the best."""
        z = (mean - self.best) / std
        bell = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        near = np.log(np.exp(bell) + z * ndtr(z), where=z > -5, out=np.zeros_like(z))
        far = bell - np.log(np.maximum(z**2, 1) + 3)
        log = np.where(z > -5, near, far)
        rate = np.exp(log_ndtr(z) - log)
        return np.log(std) + log, rate / std, (1 - rate * z) / std

    def value(self, X: Array, /) -> Array:
        mean, std = self.process.predict(self._unit(X))
        return self._log(mean, std)[0] - self.weight * self.region.distance(X)

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        mean, std, dmean, dstd = self.process.predict_gradient(self._unit(X))
        value, by_mean, by_std = self._log(mean, std)
        slope = np.zeros_like(X)
        free = self.region.free
        slope[:, free] = (by_mean[:, None] * dmean + by_std[:, None] * dstd) / self.span[free]
        slope -= self.weight * self.region.distance_gradient(X)
        return value - self.weight * self.region.distance(X), slope


def hill(centre: Array, width: float = 1.0) -> Plain:
    """One smooth maximum at `centre`, of value 0."""
    return Plain(
        lambda X: -np.sum(((X - centre) / width) ** 2, axis=1),
        lambda X: -2 * (X - centre) / width**2,
    )


def cube(d: int) -> Space:
    return Space({f"x{j}": Real(0, 1) for j in range(d)})


def middle(d: int) -> dict[str, float]:
    return {f"x{j}": 0.5 for j in range(d)}


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def branin(X: Array) -> Array:
    x, y = X[:, 0], X[:, 1]
    bend = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def branin_slope(X: Array) -> Array:
    x, y = X[:, 0], X[:, 1]
    bend = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    by_x = 2 * bend * (5 / np.pi - 5.1 / (2 * np.pi**2) * x)
    return -np.stack([by_x - 10 * (1 - 1 / (8 * np.pi)) * np.sin(x), 2 * bend], axis=1)
