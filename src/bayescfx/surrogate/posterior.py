"""A Gaussian process conditioned on data.

Outputs are standardised, y = offset + scale · z. With K = s k + noise·I = L Lᵀ, α = K⁻¹ z,
covariances c(x) = s k(x, X) and v(x) = L⁻¹ c(x):

    mean(x) = c(x)ᵀ α             ∂ mean/∂x_j = Σ_i α_i ∂c_i/∂x_j
    var(x)  = s - |v(x)|²         ∂ var/∂x_j  = -2 Σ_i (K⁻¹ c(x))_i ∂c_i/∂x_j

where ∂c_i/∂x_j = 2 s k'(s_i) (x_j - X_ij)/l_j². Every sum over i is a matrix product. The steps of
the tabular kernel add -s r exp(-t_i) sign(x_j - X_ij)/(l_j √d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices
from bayescfx.errors import SurrogateWarning, warn
from bayescfx.surrogate.evidence import LOG_2PI, Hyperparameters
from bayescfx.surrogate.kernels import Kernel

BLOCK = 64  # rows per pass of a gradient: they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The shift and the scale between the user's outputs and standardised ones."""

    offset: float  # y = offset + scale * z
    scale: float


def standardised(y: Array, *, centred: bool) -> tuple[Array, Units]:
    """Return outputs `y` ``(n,)`` with variance 1, about their average or zero, and their units."""
    largest = float(np.max(np.abs(y)))
    if largest == 0.0:
        return y, Units(0.0, 1.0)
    u = y / largest  # squares of 1e200 must not overflow, nor those of 1e-200 vanish
    centre = float(u.mean()) if centred else 0.0
    spread = float(np.sqrt(np.mean((u - centre) ** 2)))
    # Constant outputs have no scale; their own size is the only guess.
    if spread < 1e-14:
        spread = 1.0
    units = Units(centre * largest, spread * largest)
    return (y - units.offset) / units.scale, units


def cholesky(K: Array) -> tuple[Array, float]:
    """Return the lower factor of K plus the least jitter that makes it definite, and the jitter."""
    L, info = scipy.linalg.lapack.dpotrf(K, lower=1, clean=1)
    jitter = 0.0
    largest = float(K.diagonal().max())
    while info:
        jitter = 10.0 * jitter if jitter else 1e-12 * largest
        L, info = scipy.linalg.lapack.dpotrf(K + jitter * np.eye(len(K)), lower=1, clean=1)
    if jitter > 1e-6 * largest:
        warn(
            f"the kernel is singular: a noise of {jitter:.0e} was added. "
            "Raise `noise` or remove rows that nearly coincide.",
            SurrogateWarning,
        )
    return L, jitter


class Covariances(NamedTuple):
    """Covariances between m rows and n others."""

    c: Array  # (m, n)
    slope: Array  # k' of the smooth part, as a correlation (m, n)
    jumps: Array | None  # covariances of the part with steps (m, n), if there is one


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The process before any data."""

    h: Hyperparameters
    kernel: Kernel  # correlation and slope as functions of the squared distance
    numeric: Indices | slice  # columns that are compared as numbers
    unordered: Sequence[int]  # columns that are compared for equality

    @classmethod
    def of(cls, h: Hyperparameters, kernel: Kernel, categorical: Sequence[int]) -> Prior:
        """Return the prior, given the columns that are compared for equality."""
        if not categorical:
            return cls(h, kernel, slice(None), ())
        columns = np.arange(len(h.lengthscales))
        return cls(h, kernel, np.setdiff1d(columns, categorical), categorical)

    def covariances(self, A: Array, B: Array) -> Covariances:
        """Return covariances of rows (m, d) and (n, d), over the lengthscales, without noise."""
        h = self.h
        at = self.numeric
        s: Array = scipy.spatial.distance.cdist(A[:, at], B[:, at], "sqeuclidean")
        for j in self.unordered:
            s += (A[:, j, None] != B[:, j]) / h.lengthscales[j] ** 2
        c, slope = self.kernel(s)
        c *= h.output_scale * (1.0 - h.steps)
        if not h.steps:
            return Covariances(c, slope, None)
        t: Array = scipy.spatial.distance.cdist(A[:, at], B[:, at], "cityblock")
        for j in self.unordered:
            t += (A[:, j, None] != B[:, j]) / h.lengthscales[j]
        t *= -1.0 / math.sqrt(max(A.shape[1], 1))  # without columns, no row differs
        jumps = np.exp(t, out=t)
        jumps *= h.output_scale * h.steps
        c += jumps
        return Covariances(c, slope, jumps)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The process conditioned on data; made by :func:`condition`.

    Its methods take rows near the unit cube, and return values in the units of y.
    """

    prior: Prior
    units: Units
    X: Array  # rows (n, d)
    A: Array  # the same over the lengthscales
    z: Array  # standardised outputs (n,)
    L: Array  # Cholesky factor of K, and its inverse (n, n)
    L_inverse: Array
    alpha: Array  # K⁻¹ z (n,)
    jitter: float  # added to the noise so that K has a factor

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the outputs, as densities in the units of y."""
        n = len(self.z)
        value = -0.5 * float(self.z @ self.alpha) - float(np.log(self.L.diagonal()).sum())
        return value - 0.5 * n * LOG_2PI - n * float(np.log(self.units.scale))

    def _variance(self, V: Array) -> Array:
        """Return the standardised variance ``(m,)`` for v(x) in the rows of `V` ``(m, n)``."""
        s = self.prior.h.output_scale
        # at least what cancellation leaves of a variance of zero
        return np.asarray(np.maximum(s - np.einsum("ij,ij->i", V, V), 1e-14 * s))

    def predict(self, X: Array, *, noise: bool = False) -> tuple[Array, Array]:
        """Return mean and deviation ``(m,)`` at rows ``(m, d)``, with or without noise."""
        h = self.prior.h
        c = self.prior.covariances(X / h.lengthscales, self.A).c
        mean = c @ self.alpha
        variance = self._variance(c @ self.L_inverse.T)
        if noise:
            variance += h.noise
        units = self.units
        return units.offset + units.scale * mean, units.scale * np.sqrt(variance)

    def predict_gradient(
        self, X: Array, *, noise: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Return mean and deviation ``(m,)``, and their gradients ``(m, d)``."""
        h = self.prior.h
        units = self.units
        at = self.prior.numeric
        A = X / h.lengthscales
        c, slope, jumps = self.prior.covariances(A, self.A)
        V = c @ self.L_inverse.T
        pull = np.empty((2, *c.shape))  # of the known rows on the mean, and on the variance
        pull[0] = self.alpha
        pull[1] = V @ self.L_inverse
        slopes = np.zeros((2, *X.shape))
        # counted from one of the rows, so that less cancels
        near = A[:, at] - self.A[0, at]
        known = self.A[:, at] - self.A[0, at]
        slope *= 2.0 * h.output_scale * (1.0 - h.steps)
        weights = slope * pull
        slopes[:, :, at] = weights.sum(axis=2)[:, :, None] * near - weights @ known
        if jumps is not None:
            jumps /= math.sqrt(max(X.shape[1], 1))
            pull *= jumps
            for k in range(0, len(X), BLOCK):
                some = slice(k, k + BLOCK)
                side = np.sign(self.A[:, at] - A[some, None, at])
                slopes[:, some, at] += np.einsum("gmn,mnj->gmj", pull[:, some], side)
        slopes /= h.lengthscales
        slopes[1] *= -2.0
        variance = self._variance(V)
        if noise:
            variance += h.noise
        std = np.sqrt(variance)
        d_mean, d_variance = slopes
        d_mean *= units.scale
        d_variance *= (0.5 * units.scale / std)[:, None]  # now the gradient of the deviation
        mean = units.offset + units.scale * (c @ self.alpha)
        return mean, units.scale * std, d_mean, d_variance

    def sample(self, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Return `n` joint samples ``(n, m)`` at rows ``(m, d)`` without noise."""
        A = X / self.prior.h.lengthscales
        c = self.prior.covariances(A, self.A).c
        V = c @ self.L_inverse.T
        mean = c @ self.alpha
        covariance = self.prior.covariances(A, A).c - V @ V.T
        # Eigenvalues instead of Cholesky: posterior covariances are singular at known points.
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        standard: Array = mean + rng.standard_normal((n, len(mean))) @ root.T
        return self.units.offset + self.units.scale * standard

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return residuals α_i / K⁻¹_ii and deviations 1 / √K⁻¹_ii ``(n,)``, noise included."""
        precision = np.einsum("ij,ij->j", self.L_inverse, self.L_inverse)
        scale = self.units.scale
        return scale * (self.alpha / precision), scale * np.sqrt(1.0 / precision)

    def with_points(self, X: Array, y: Array) -> Posterior:
        """Return the process conditioned on more rows ``(m, d)`` and outputs ``(m,)``.

        Hyperparameters and units stay. The Cholesky factor grows at a cost of n² per row.
        """
        h = self.prior.h
        n = len(self.X)
        new = X / h.lengthscales
        rows = np.concatenate([self.X, X])
        z = np.concatenate([self.z, (y - self.units.offset) / self.units.scale])
        c = self.prior.covariances(new, self.A).c
        corner = self.prior.covariances(new, new).c
        corner.flat[:: len(X) + 1] = h.output_scale + h.noise + self.jitter
        # Block factor: [[L, 0], [B, C]] with B = c L⁻ᵀ and C Cᵀ = corner - B Bᵀ.
        B = c @ self.L_inverse.T
        C, info = scipy.linalg.lapack.dpotrf(corner - B @ B.T, lower=1, clean=1)
        if info:
            return condition(self.prior, self.units, rows, z)
        C_inverse, _ = scipy.linalg.lapack.dtrtri(C, lower=1)
        L = np.zeros((len(rows), len(rows)), order="F")
        L[:n, :n] = self.L
        L[n:, :n] = B
        L[n:, n:] = C
        L_inverse = np.zeros((len(rows), len(rows)), order="F")
        L_inverse[:n, :n] = self.L_inverse
        L_inverse[n:, n:] = C_inverse
        L_inverse[n:, :n] = -C_inverse @ (B @ self.L_inverse)
        alpha = L_inverse.T @ (L_inverse @ z)
        A = np.concatenate([self.A, new])
        return Posterior(self.prior, self.units, rows, A, z, L, L_inverse, alpha, self.jitter)


def condition(prior: Prior, units: Units, X: Array, z: Array) -> Posterior:
    """Return the process conditioned on standardised outputs `z` ``(n,)`` at rows ``(n, d)``."""
    h = prior.h
    A = X / h.lengthscales
    K = prior.covariances(A, A).c
    K.flat[:: len(K) + 1] = h.output_scale + h.noise
    L, jitter = cholesky(K)
    L_inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1)
    alpha, _ = scipy.linalg.lapack.dpotrs(L, z, lower=1)
    return Posterior(prior, units, X, A, z, L, L_inverse, alpha, jitter)
