"""A Gaussian process conditioned on data, in standardised outputs.

With K = s k + noise·I = L Lᵀ, α = K⁻¹ z, covariances c(x) = s k(x, X) and v(x) = L⁻¹ c(x):

    mean(x) = c(x)ᵀ α             ∂ mean/∂x_j = Σ_i α_i ∂c_i/∂x_j
    var(x)  = s - |v(x)|²         ∂ var/∂x_j  = -2 Σ_i (K⁻¹ c(x))_i ∂c_i/∂x_j

where ∂c_i/∂x_j = 2 s k'(s_i) (x_j - X_ij)/l_j². Every sum over i is a matrix product. The steps of
the tabular kernel add -s r exp(-t_i) sign(x_j - X_ij)/(l_j √d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array
from bayescfx.errors import SurrogateWarning, warn
from bayescfx.surrogate.evidence import LOG_2PI, Hyperparameters
from bayescfx.surrogate.kernels import Columns, Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The shift and the scale between the user's outputs and standardised ones."""

    offset: float  # y = offset + scale * z
    scale: float


def standardised(y: Array, *, centred: bool) -> tuple[Array, Units]:
    """Return outputs `y` with variance 1, about their average or zero, and their units."""
    largest = float(np.max(np.abs(y)))
    if largest == 0.0:
        return y, Units(0.0, 1.0)
    u = y / largest  # squares of 1e200 must not overflow, nor those of 1e-200 vanish
    centre = float(u.mean()) if centred else 0.0
    spread = float(np.sqrt(np.mean((u - centre) ** 2)))
    # Constant outputs say nothing about their scale; their own size is the only guess.
    if spread < 1e-14:
        spread = 1.0
    units = Units(centre * largest, spread * largest)
    return (y - units.offset) / units.scale, units


def cholesky(K: Array) -> tuple[Array, float]:
    """Return the lower factor of K plus the least jitter that makes it definite, and that."""
    L, info = scipy.linalg.lapack.dpotrf(K, lower=1, clean=1)
    jitter, largest = 0.0, float(K.diagonal().max())
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
    """What rows have in common with known ones."""

    c: Array  # covariances (m, n)
    slope: Array  # k' of the smooth part, as a correlation (m, n)
    jumps: Array | None  # covariances of the part with steps (m, n), if there is one


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The process before any data."""

    h: Hyperparameters
    kernel: Kernel  # correlation and slope as functions of the squared distance
    columns: Columns  # how rows differ

    def covariances(self, A: Array, B: Array) -> Covariances:
        """Return what rows (m, d) and (n, d), over the lengthscales, have in common, no noise."""
        h, columns, jumps = self.h, self.columns, None
        c, slope = self.kernel(columns.apart(A, B, h.lengthscales, "sqeuclidean"))
        c *= h.output_scale * (1.0 - h.steps)
        if h.steps:
            t = columns.apart(A, B, h.lengthscales, "cityblock")
            t *= -1.0 / math.sqrt(A.shape[1])
            jumps = np.exp(t, out=t)
            jumps *= h.output_scale * h.steps
            c += jumps
        return Covariances(c, slope, jumps)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What is known after conditioning; made by :func:`condition`."""

    prior: Prior
    X: Array  # rows (n, d)
    A: Array  # the same over the lengthscales
    z: Array  # standardised outputs (n,)
    L: Array  # Cholesky factor of K, and its inverse (n, n)
    L_inverse: Array
    alpha: Array  # K⁻¹ z (n,)
    jitter: float  # added to the noise so that K has a factor

    @property
    def h(self) -> Hyperparameters:
        """The hyperparameters."""
        return self.prior.h

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the standardised outputs."""
        value = -0.5 * float(self.z @ self.alpha) - float(np.log(self.L.diagonal()).sum())
        return value - 0.5 * len(self.z) * LOG_2PI

    def _variance(self, V: Array) -> Array:
        s = self.h.output_scale
        # at least what cancellation leaves of a variance of zero
        return np.asarray(np.maximum(s - np.einsum("ij,ij->i", V, V), 1e-14 * s))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return mean and variance at each row, without noise."""
        c = self.prior.covariances(X / self.h.lengthscales, self.A).c
        return c @ self.alpha, self._variance(c @ self.L_inverse.T)

    def predict_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and variance (m,), and their gradients (m, d), without noise."""
        h, A, at = self.h, X / self.h.lengthscales, self.prior.columns.numeric
        c, slope, jumps = self.prior.covariances(A, self.A)
        V = c @ self.L_inverse.T
        pull = np.empty((2, *c.shape))  # of the known rows on the mean, and on the variance
        pull[0], pull[1] = self.alpha, V @ self.L_inverse
        slopes = np.zeros((2, *X.shape))
        # counted from one of the rows, so that less cancels
        near, known = A[:, at] - self.A[0, at], self.A[:, at] - self.A[0, at]
        slope *= 2.0 * h.output_scale * (1.0 - h.steps)
        weights = slope * pull
        slopes[:, :, at] = weights.sum(axis=2)[:, :, None] * near - weights @ known
        if jumps is not None:
            jumps /= math.sqrt(X.shape[1])
            pull *= jumps
            for k in range(0, len(X), 64):  # rows that stay in the cache
                side, some = np.sign(self.A[:, at] - A[k : k + 64, None, at]), slice(k, k + 64)
                slopes[:, some, at] += np.einsum("gmn,mnj->gmj", pull[:, some], side)
        slopes /= h.lengthscales
        slopes[1] *= -2.0
        return c @ self.alpha, self._variance(V), slopes[0], slopes[1]

    def joint(self, X: Array) -> tuple[Array, Array]:
        """Return the joint mean (m,) and covariance (m, m) of the rows, without noise."""
        A = X / self.h.lengthscales
        c = self.prior.covariances(A, self.A).c
        V = c @ self.L_inverse.T
        return c @ self.alpha, self.prior.covariances(A, A).c - V @ V.T

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return residuals α_i / K⁻¹_ii and variances 1 / K⁻¹_ii, noise included."""
        precision = np.einsum("ij,ij->j", self.L_inverse, self.L_inverse)
        return self.alpha / precision, 1.0 / precision


def condition(prior: Prior, X: Array, z: Array) -> Posterior:
    """Return the process conditioned on standardised outputs `z` at rows `X`."""
    h, A = prior.h, X / prior.h.lengthscales
    K = prior.covariances(A, A).c
    K.flat[:: len(K) + 1] = h.output_scale + h.noise
    L, jitter = cholesky(K)
    L_inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1)
    alpha, _ = scipy.linalg.lapack.dpotrs(L, z, lower=1)
    return Posterior(prior, X, A, z, L, L_inverse, alpha, jitter)


def extend(p: Posterior, X: Array, z: Array) -> Posterior:
    """Return the process conditioned on more points, growing the factor at a cost of n² each."""
    h, n, rows = p.h, len(p.X), np.concatenate([p.X, X])
    new, outputs = X / h.lengthscales, np.concatenate([p.z, z])
    c, corner = (p.prior.covariances(new, A).c for A in (p.A, new))
    corner.flat[:: len(X) + 1] = h.output_scale + h.noise + p.jitter
    # Block factor: [[L, 0], [B, C]] with B = c L⁻ᵀ and C Cᵀ = corner - B Bᵀ.
    B = c @ p.L_inverse.T
    C, info = scipy.linalg.lapack.dpotrf(corner - B @ B.T, lower=1, clean=1)
    if info:
        return condition(p.prior, rows, outputs)
    C_inverse, _ = scipy.linalg.lapack.dtrtri(C, lower=1)
    L, L_inverse = np.zeros((2, len(rows), len(rows)), order="F")
    L[:n, :n], L[n:, :n], L[n:, n:] = p.L, B, C
    L_inverse[:n, :n], L_inverse[n:, n:] = p.L_inverse, C_inverse
    L_inverse[n:, :n] = -C_inverse @ (B @ p.L_inverse)
    alpha, A = L_inverse.T @ (L_inverse @ outputs), np.concatenate([p.A, new])
    return Posterior(p.prior, rows, A, outputs, L, L_inverse, alpha, p.jitter)
