"""Hyperparameters of the surrogate: how plausible they are, and the most plausible ones.

The logarithm of the posterior of the hyperparameters is the evidence of the data plus priors:

    log p(y | l, v, s) = -½ yᵀ K⁻¹ y - ½ log|K| - n/2 log 2π,    K = s k(l) + v I

with lengthscales l, noise v and output scale s. Maximum likelihood on a handful of points collapses
the lengthscales; the prior of Hvarfner et al. (2024), LogNormal(√2 + ½ log d, √3) for d varied
features on the unit cube, keeps them at the size of the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import Bounds, minimize

from bayescfx.arrays import Array, Indices
from bayescfx.deadline import NEVER, Deadline
from bayescfx.surrogate.kernels import Kernel

LENGTHSCALES = (0.025, 1e4)  # of the unit cube
NOISES = (1e-6, 1.0)  # of the variance of the outputs
OUTPUT_SCALES = (1e-2, 1e2)
LEAST_FIXED_NOISE = 1e-8  # while learning: keeps K definite when the noise is fixed at zero
MAX_STEPS = 60  # of one climb
MAX_LEAPS, LEAP = 5, 2.0  # between optima, in log lengthscale
# Relative gain at which a climb ends: to choose between optima, to follow one, to settle.
ROUGH, WARM, FINE = 1e-4, 1e-5, 1e-9
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

    def log_density(self, t: Array) -> tuple[float, Array]:
        """Return the log density of exp(t), summed, up to a constant; and its slope in each t."""
        u = t - self.location
        slope = u * (-1.0 / self.spread**2)
        return 0.5 * float(slope @ u) - float(t.sum()), slope - 1.0


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
    # Few outputs, near each other, understate the variance of the process: the mode is 4, not 1.
    # Measured on four kinds of models and 5 to 50 rows: better log density and smaller errors.
    output_scale: LogNormal = LogNormal(math.log(4.0) + 0.49, 0.7)

    @classmethod
    def for_dimensions(cls, d: int) -> Priors:
        """Return the priors for `d` varied features (Hvarfner et al. 2024)."""
        return cls(LogNormal(math.sqrt(2.0) + 0.5 * math.log(max(d, 1)), math.sqrt(3.0)))


class LogPosterior:
    """The log posterior of log hyperparameters, with its gradient, for one data set.

    The vector ``theta`` holds the log lengthscales of the features that vary, then the log noise
    and the log output scale, each of the last two only if it is free. Covariances are kept as
    pairs i > j, so that the squared distance and the gradient are one matrix-vector product each.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    z : ndarray of shape (n,)
        Standardised outputs.
    kernel : callable
        Correlation and slope as functions of the squared distance.
    priors : Priors
        Priors of the hyperparameters.
    categorical : sequence of int, default ()
        Columns with unordered levels.
    noise, output_scale : float or None
        Fixed values, or None to learn them.
    deadline : Deadline, default NEVER
        Checked at every evaluation.
    """

    def __init__(
        self,
        X: Array,
        z: Array,
        *,
        kernel: Kernel,
        priors: Priors,
        categorical: Sequence[int] = (),
        noise: float | None = None,
        output_scale: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        n, self.features = X.shape
        self.active: Indices = np.flatnonzero(np.any(X[0] != X, axis=0))
        self.priors, self.noise, self.output_scale = priors, noise, output_scale
        self.z, self._kernel, self._deadline = z, kernel, deadline
        self._i, self._j = np.tril_indices(n, -1)
        self._lower = self._j * n + self._i  # place of each pair in a matrix stored by columns
        self._matrix = np.zeros((n, n))
        self._differences = np.empty((len(self.active), len(self._i)))  # squared, by feature
        for row, j in zip(self._differences, self.active, strict=True):
            x = X[:, j]
            if j in categorical:
                row[:] = x[self._i] != x[self._j]
            else:
                np.subtract(x[self._i], x[self._j], out=row)
                row *= row
        low_high = [LENGTHSCALES] * len(self.active)
        low_high += [NOISES] * (noise is None) + [OUTPUT_SCALES] * (output_scale is None)
        self.bounds: Array = np.log(np.array(low_high).reshape(-1, 2)).T  # (2, size of theta)

    def pack(self, h: Hyperparameters) -> Array:
        """Return hyperparameters as a vector theta inside the bounds."""
        tail = [h.noise] * (self.noise is None) + [h.output_scale] * (self.output_scale is None)
        with np.errstate(divide="ignore"):
            theta = np.log(np.concatenate([h.lengthscales[self.active], tail]))
        low, high = self.bounds
        clipped: Array = np.clip(theta, low, high)
        return clipped

    def unpack(self, theta: Array) -> Hyperparameters:
        """Return a vector theta as hyperparameters; features that do not vary get the mode."""
        lengthscales = np.full(self.features, math.exp(self.priors.lengthscale.log_mode))
        lengthscales[self.active] = np.exp(theta[: len(self.active)])
        noise, scale = self._tail(theta)
        fixed = self.noise
        return Hyperparameters(lengthscales, noise if fixed is None else fixed, scale)

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
            noise = math.exp(theta[len(self.active)])
        noise = max(noise, LEAST_FIXED_NOISE)
        if scale is None:
            scale = math.exp(theta[-1])
        return noise, scale

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient at `theta`; -inf where K is singular."""
        self._deadline.check()
        z, n, k = self.z, len(self.z), len(self.active)
        noise, scale = self._tail(theta)
        weights = np.exp(-2.0 * theta[:k])
        c, slope = self._kernel(weights @ self._differences)
        # The lower triangle, stored by columns; LAPACK works in place and leaves the zeros above.
        stored = self._matrix.reshape(-1)
        stored[self._lower] = c if scale == 1.0 else scale * c
        stored[:: n + 1] = scale + noise
        L, info = dpotrf(self._matrix.T, lower=1, overwrite_a=1, clean=0)
        if info:
            return -math.inf, np.zeros_like(theta)
        value = -float(np.log(L.diagonal()).sum()) - 0.5 * n * LOG_2PI
        root, _ = dtrtri(L, lower=1, overwrite_c=1)
        v = root @ z
        alpha = v @ root
        fit = float(v @ v)
        # ∂ log evidence/∂t = ½ tr((α αᵀ - K⁻¹) ∂K/∂t)
        M = np.outer(alpha, alpha)
        M -= root.T @ root
        trace = float(M.trace())
        slope *= M.reshape(-1)[self._lower]
        gradient = np.empty_like(theta)
        gradient[:k] = self._differences @ slope
        gradient[:k] *= -2.0 * scale * weights
        if self.noise is None:
            gradient[k] = 0.5 * noise * trace
        if self.output_scale is None:
            gradient[-1] = 0.5 * (fit - n - noise * trace)
        return value - 0.5 * fit + self._add_priors(theta, gradient), gradient

    def _add_priors(self, theta: Array, gradient: Array) -> float:
        """Return the log prior at `theta` and add its slope to `gradient`."""
        k, p = len(self.active), self.priors
        total, slope = p.lengthscale.log_density(theta[:k])
        gradient[:k] += slope
        for free, prior, at in (
            (self.noise is None, p.noise, slice(k, k + 1)),
            (self.output_scale is None, p.output_scale, slice(-1, None)),
        ):
            if free:
                value, slope = prior.log_density(theta[at])
                gradient[at] += slope
                total += value
        return total


def _guesses(posterior: LogPosterior) -> Array:
    """Return first guesses: the mode of the priors, and places all around it."""
    mode = posterior.pack(posterior.mode())
    low, high = posterior.bounds
    # Few rows leave room for several optima; with many the first is enough, and climbs are dear.
    others = 8 if len(posterior.z) <= 100 else 1
    # A fixed seed: the same data give the same fit.
    steps = np.random.default_rng(0).uniform(-4.0, 4.0, (others, len(mode)))
    return np.concatenate([mode[None], np.clip(mode + steps, low, high)])


def _leaps(posterior: LogPosterior, theta: Array) -> Array:
    """Return the most plausible places where one lengthscale is much shorter or longer."""
    k = len(posterior.active)
    steps = np.concatenate([np.eye(k, len(theta)), -np.eye(k, len(theta))])
    low, high = posterior.bounds
    places = np.clip(theta + LEAP * steps, low, high)
    heights = np.array([posterior(place)[0] for place in places])
    best: Array = places[np.argsort(-heights, kind="stable")[:4]]
    return best


def _climb(posterior: LogPosterior, theta: Array, tolerance: float) -> tuple[float, Array]:
    """Return the height and the place that L-BFGS-B reaches from `theta`."""
    low, high = posterior.bounds

    def objective(t: Array) -> tuple[float, Array]:
        value, gradient = posterior(t)
        # A singular kernel is a wall, not an infinity: L-BFGS-B must be able to step back.
        return (-value, -gradient) if value > -math.inf else (1e25, gradient)

    found = minimize(
        objective,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options={"maxiter": MAX_STEPS, "ftol": tolerance, "gtol": 1e3 * tolerance},
    )
    return -float(found.fun), np.clip(np.asarray(found.x, dtype=np.float64), low, high)


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
        # New data may have made the earlier optimum worse than no knowledge at all.
        guesses = [posterior.pack(start), posterior.pack(posterior.mode())]
        _, theta = _climb(posterior, max(guesses, key=lambda t: posterior(t)[0]), WARM)
        return posterior.unpack(theta)
    height, theta = _best_climb(posterior, _guesses(posterior))
    # Optima differ in which features they blame: try one feature at a time.
    leaps = MAX_LEAPS if len(posterior.z) * len(posterior.active) <= 3000 else 0
    for _ in range(leaps):
        higher, there = _best_climb(posterior, _leaps(posterior, theta))
        if higher <= height + 1e-3:
            break
        height, theta = higher, there
    return posterior.unpack(_climb(posterior, theta, FINE)[1])


def _best_climb(posterior: LogPosterior, starts: Array) -> tuple[float, Array]:
    ends = [_climb(posterior, theta, ROUGH) for theta in starts]
    return max(ends, key=lambda end: end[0], default=(-math.inf, np.empty(0)))
