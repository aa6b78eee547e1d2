"""Hyperparameters of the surrogate: how plausible they are, and the most plausible ones.

The logarithm of the posterior of the hyperparameters is the evidence of the data plus priors:

    log p(y | l, v, s) = -½ yᵀ K⁻¹ y - ½ log|K| - n/2 log 2π,    K = s k(l) + v I

with lengthscales l, noise v and output scale s. Maximum likelihood on a handful of points collapses
the lengthscales; the prior of Hvarfner et al. (2024), LogNormal(√2 + ½ log d, √3) for d varied
features on the unit cube, keeps them at the size of the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import Bounds, minimize

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.kernels import Embedding, Kernel, squared_distances

LENGTHSCALES = (0.025, 1e4)  # of the unit cube
NOISES = (1e-6, 1.0)  # of the variance of the outputs
OUTPUT_SCALES = (1e-2, 1e2)
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """What the surrogate learns besides the data; all for standardised outputs.

    Parameters
    ----------
    lengthscales : ndarray of shape (d,)
        One per feature.
    noise : float
        Variance of the noise.
    output_scale : float, default 1.0
        Variance of the process.

    Examples
    --------
    >>> Hyperparameters(np.array([0.5, 2.0]), noise=1e-4).output_scale
    1.0
    """

    lengthscales: Array
    noise: float
    output_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal prior, in terms of the logarithm t of the variable.

    Parameters
    ----------
    location, spread : float
        Mean and standard deviation of the logarithm.

    Examples
    --------
    >>> LogNormal(0.0, 1.0).log_mode
    -1.0
    """

    location: float
    spread: float

    @property
    def log_mode(self) -> float:
        """The logarithm of the most probable value."""
        return self.location - self.spread**2

    def log_density(self, t: Array) -> Array:
        """Return the logarithm of the density of exp(t), up to a constant."""
        z = (t - self.location) / self.spread
        return -0.5 * z * z - t

    def slope(self, t: Array) -> Array:
        """Return the derivative of :meth:`log_density` with respect to t."""
        return -(t - self.location) / self.spread**2 - 1.0


@dataclass(frozen=True, slots=True)
class Priors:
    """Priors of the three kinds of hyperparameters.

    Parameters
    ----------
    lengthscale, noise, output_scale : LogNormal
        Priors for standardised outputs on the unit cube.

    Examples
    --------
    >>> round(Priors.for_dimensions(10).lengthscale.location, 3)
    2.566
    """

    lengthscale: LogNormal
    noise: LogNormal = LogNormal(-4.0, 1.0)
    output_scale: LogNormal = LogNormal(1.0, 1.0)

    @classmethod
    def for_dimensions(cls, d: int) -> Priors:
        """Return the priors for `d` varied features (Hvarfner et al. 2024)."""
        return cls(LogNormal(math.sqrt(2.0) + 0.5 * math.log(max(d, 1)), math.sqrt(3.0)))


class LogPosterior:
    """The log posterior of log hyperparameters, with its gradient, for one data set.

    The vector ``theta`` holds the log lengthscales of the features that vary, then the log noise
    and the log output scale, each of the last two only if it is free.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    y : ndarray of shape (n,)
        Standardised outputs.
    embedding : Embedding
        How rows become points.
    kernel : callable
        Correlation and slope as functions of the squared distance.
    priors : Priors
        Priors of the hyperparameters.
    noise, output_scale : float or None
        Fixed values, or None to learn them.
    deadline : Deadline, default NEVER
        Checked at every evaluation.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        *,
        embedding: Embedding,
        kernel: Kernel,
        priors: Priors,
        noise: float | None = None,
        output_scale: float | None = 1.0,
        deadline: Deadline = NEVER,
    ) -> None:
        varied: Mask = np.any(X[0] != X, axis=0)
        self.active: Indices = np.flatnonzero(varied)
        self.features = X.shape[1]
        self.priors = priors
        self.noise, self.output_scale = noise, output_scale
        self._y, self._kernel, self._deadline = y, kernel, deadline
        keep = varied[embedding.feature]
        self._Z = embedding.transform(X)[:, keep]
        # embedded column -> position in theta
        self._column: Indices = np.searchsorted(self.active, embedding.feature[keep])
        self._k = len(self.active)

    @property
    def bounds(self) -> Array:
        """Lower and upper bounds of theta, of shape (2, size)."""
        pairs = [LENGTHSCALES] * self._k
        pairs += [NOISES] * (self.noise is None) + [OUTPUT_SCALES] * (self.output_scale is None)
        return np.log(np.array(pairs, dtype=np.float64).reshape(-1, 2)).T

    def pack(self, h: Hyperparameters) -> Array:
        """Return hyperparameters as a vector theta inside the bounds."""
        tail = [h.noise] * (self.noise is None) + [h.output_scale] * (self.output_scale is None)
        with np.errstate(divide="ignore"):
            theta = np.log(np.concatenate([h.lengthscales[self.active], tail]))
        low, high = self.bounds
        return np.clip(theta, low, high)

    def unpack(self, theta: Array) -> Hyperparameters:
        """Return a vector theta as hyperparameters; features that do not vary get the mode."""
        lengthscales = np.full(self.features, math.exp(self.priors.lengthscale.log_mode))
        lengthscales[self.active] = np.exp(theta[: self._k])
        noise, scale = self._tail(theta)
        return Hyperparameters(lengthscales, noise, scale)

    def mode(self) -> Hyperparameters:
        """Return the modes of the priors, the first guess without data."""
        p = self.priors
        lengthscales = np.full(self.features, math.exp(p.lengthscale.log_mode))
        noise = math.exp(p.noise.log_mode) if self.noise is None else self.noise
        scale = self.output_scale
        return Hyperparameters(
            lengthscales, noise, math.exp(p.output_scale.log_mode) if scale is None else scale
        )

    def _tail(self, theta: Array) -> tuple[float, float]:
        noise, scale = self.noise, self.output_scale
        if noise is None:
            noise = math.exp(theta[self._k])
        if scale is None:
            scale = math.exp(theta[-1])
        return noise, scale

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient at `theta`; -inf where K is singular."""
        self._deadline.check()
        y, n, k = self._y, len(self._y), self._k
        noise, scale = self._tail(theta)
        A = self._Z * np.exp(-theta[self._column])
        squares = np.einsum("ij,ij->i", A, A)
        s = squared_distances(A, squares, A, squares)
        K, slope = self._kernel(s)
        K *= scale
        K.flat[:: n + 1] = scale + noise
        L, info = dpotrf(K, lower=1, overwrite_a=1, clean=1)
        if info:
            return -math.inf, np.zeros_like(theta)
        alpha, _ = dpotrs(L, y, lower=1)
        fit = float(y @ alpha)
        value = -0.5 * fit - float(np.log(L.diagonal()).sum()) - 0.5 * n * LOG_2PI
        inverse, _ = dpotri(L, lower=1)
        trace = float(alpha @ alpha) - float(inverse.trace())
        # inverse is a lower triangle: with the factor 2 below it stands for the whole matrix.
        W = (np.outer(alpha, alpha) - 2.0 * inverse) * slope
        # sum_ij W_ij (a_i - a_j)², by products: no array of shape (n, n, D) is needed.
        sums = W.sum(axis=0) + W.sum(axis=1)
        spread = sums @ (A * A) - 2.0 * np.einsum("ij,ij->j", A, W @ A)
        gradient = np.empty_like(theta)
        gradient[:k] = -scale * np.bincount(self._column, spread, minlength=k)
        if self.noise is None:
            gradient[k] = 0.5 * noise * trace
        if self.output_scale is None:
            gradient[-1] = 0.5 * (fit - n - noise * trace)
        return value + self._add_priors(theta, gradient), gradient

    def _add_priors(self, theta: Array, gradient: Array) -> float:
        """Return the log prior at `theta` and add its slope to `gradient`."""
        k, p = self._k, self.priors
        t = theta[:k]
        total = float(p.lengthscale.log_density(t).sum())
        gradient[:k] += p.lengthscale.slope(t)
        if self.noise is None:
            total += float(p.noise.log_density(theta[k]))
            gradient[k] += p.noise.slope(theta[k])
        if self.output_scale is None:
            total += float(p.output_scale.log_density(theta[-1]))
            gradient[-1] += p.output_scale.slope(theta[-1])
        return total


def _starts(posterior: LogPosterior) -> Iterator[Array]:
    """Yield first guesses: the prior's mode, and rougher, smoother, and less noisy ones."""
    mode = posterior.mode()
    for stretch, noise in ((1.0, mode.noise), (0.3, 1e-4), (3.0, 1e-4), (3.0, 0.1)):
        yield posterior.pack(Hyperparameters(stretch * mode.lengthscales, noise, mode.output_scale))


def _climb(posterior: LogPosterior, theta: Array, *, steps: int, tolerance: float) -> Array:
    """Return the best point that L-BFGS-B finds from `theta`."""
    low, high = posterior.bounds

    def objective(t: Array) -> tuple[float, Array]:
        value, gradient = posterior(t)
        # A singular kernel is a wall, not an infinity: L-BFGS-B must be able to step back.
        return (-value, -gradient) if value > -math.inf else (1e25, gradient)

    options = {"maxiter": steps, "ftol": tolerance, "gtol": 1e-4, "maxcor": 10}
    found = minimize(
        objective, theta, jac=True, method="L-BFGS-B", bounds=Bounds(low, high), options=options
    )
    return np.clip(np.asarray(found.x, dtype=np.float64), low, high)


def most_plausible(posterior: LogPosterior, start: Hyperparameters | None) -> Hyperparameters:
    """Return the hyperparameters at the highest log posterior found.

    Parameters
    ----------
    posterior : LogPosterior
        What to maximise.
    start : Hyperparameters or None
        A warm start, refined in a few steps; without it several first guesses are tried.

    Returns
    -------
    Hyperparameters
    """
    if posterior.bounds.shape[1] == 0:
        return posterior.mode()
    if start is not None:
        found = _climb(posterior, posterior.pack(start), steps=30, tolerance=1e-6)
        return posterior.unpack(found)
    ends = [_climb(posterior, t, steps=60, tolerance=1e-9) for t in _starts(posterior)]
    return posterior.unpack(max(ends, key=lambda t: posterior(t)[0]))
