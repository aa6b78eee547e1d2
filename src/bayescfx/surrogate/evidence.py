"""Hyperparameters of the surrogate: how plausible they are, and the most plausible ones.

The logarithm of the posterior of the hyperparameters is the evidence of the data plus priors:

    log p(y | l, v, s) = -½ yᵀ K⁻¹ y - ½ log|K| - n/2 log 2π,    K = s k(l) + v I

with lengthscales l, noise v, output scale s and, for the tabular kernel, the share of its steps.
Maximum likelihood on a handful of points collapses the lengthscales; the prior of Hvarfner et al.
(2024), LogNormal(√2 + ½ log d, √3) for d varied features on the unit cube, keeps them at the size
of the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices
from bayescfx.deadline import NEVER, Deadline
from bayescfx.surrogate.kernels import Kernel

LENGTHSCALES = (0.025, 1e4)  # of the unit cube
NOISES = (1e-6, 1.0)  # of the variance of the outputs
OUTPUT_SCALES = (1e-2, 1e2)
ODDS = (1e-8, 1e4)  # of a step against a smooth change
# Relative gain at which a climb ends: to choose between optima, to follow one, to settle.
ROUGH, WARM, FINE = 1e-4, 1e-5, 1e-9
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """What the surrogate learns besides the data; all for standardised outputs."""

    lengthscales: Array  # one per feature (d,)
    noise: float  # variance of the noise
    output_scale: float = 1.0  # variance of the process
    steps: float = 0.0  # which share of that variance belongs to steps along the axes


@dataclass(frozen=True, slots=True, eq=False)
class LogNormal:
    """A log-normal prior, in terms of the logarithm t of the variable."""

    location: float  # mean and standard deviation of the logarithm
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


@dataclass(frozen=True, slots=True, eq=False)
class Alike(LogNormal):
    """A prior of variables whose geometric mean, and deviation from it, are log-normal.

    A few rows can tell how quickly a model varies, and less well along which of many features.
    """

    apart: float  # standard deviation of the logarithms about their mean

    def log_density(self, t: Array) -> tuple[float, Array]:
        """Return the log density, up to a constant; and its slope in each t."""
        if not len(t):
            return 0.0, np.zeros(0)
        mean = t.mean()
        value, slope = LogNormal.log_density(self, np.array([mean]))
        apart = (t - mean) * (-1.0 / self.apart**2)
        return value + 0.5 * float(apart @ (t - mean)), apart + slope[0] / len(t)


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    """Priors of the kinds of hyperparameters, for standardised outputs."""

    lengthscale: LogNormal  # for the unit cube
    noise: LogNormal = LogNormal(-4.0, 1.0)
    # Few outputs, near each other, understate the variance of the process: the mode is 4, not 1.
    # Measured on four kinds of models and 5 to 50 rows: better log density and smaller errors.
    output_scale: LogNormal = LogNormal(math.log(4.0) + 0.49, 0.7)
    # Scale of the log-odds of the steps' share, about even odds; their distribution is Cauchy's,
    # so that enough rows can rule steps out.
    steps: float = 1.0

    @classmethod
    def for_dimensions(cls, d: int, alike: float | None = None) -> Priors:
        """Return the priors for `d` varied features; `alike`: how much log lengthscales differ."""
        size = math.sqrt(2.0) + 0.5 * math.log(max(d, 1)), math.sqrt(3.0)
        return cls(LogNormal(*size) if alike is None else Alike(*size, alike))


class LogPosterior:
    """The log posterior of log hyperparameters, with its gradient, for one data set.

    The vector ``theta`` holds the log lengthscales of the features that vary, then the log noise
    and the log output scale, each if it is free, and the log-odds of steps, if there are any.
    Covariances are kept as pairs i > j, so that distance and gradient are one product each.
    """

    def __init__(
        self,
        X: Array,
        z: Array,  # standardised outputs
        *,
        kernel: Kernel,
        priors: Priors,
        categorical: Sequence[int] = (),
        steps: bool = False,
        noise: float | None = None,  # fixed, or None to learn it
        output_scale: float | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        n, self.features = X.shape
        self.active: Indices = np.flatnonzero(np.any(X[0] != X, axis=0))
        self.priors, self.noise, self.output_scale = priors, noise, output_scale
        self.z, self._kernel, self._deadline, self.has_steps = z, kernel, deadline, steps
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
        self._apart = np.sqrt(self._differences / X.shape[1]) if steps else None  # city block
        low_high = [LENGTHSCALES] * len(self.active)
        low_high += [NOISES] * (noise is None) + [OUTPUT_SCALES] * (output_scale is None)
        low_high += [ODDS] * steps
        self.bounds: Array = np.log(np.array(low_high).reshape(-1, 2)).T  # (2, size of theta)

    def pack(self, h: Hyperparameters) -> Array:
        """Return hyperparameters as a vector theta inside the bounds."""
        tail = [h.noise] * (self.noise is None) + [h.output_scale] * (self.output_scale is None)
        tail += [h.steps / (1.0 - h.steps) if h.steps < 1.0 else math.inf] * self.has_steps
        with np.errstate(divide="ignore"):
            theta = np.log(np.concatenate([h.lengthscales[self.active], tail]))
        return np.asarray(np.clip(theta, *self.bounds))

    def unpack(self, theta: Array) -> Hyperparameters:
        """Return a vector theta as hyperparameters; features that do not vary get the mode."""
        lengthscales = np.full(self.features, math.exp(self.priors.lengthscale.log_mode))
        lengthscales[self.active] = np.exp(theta[: len(self.active)])
        noise, *rest = self._tail(theta)
        return Hyperparameters(lengthscales, noise if self.noise is None else self.noise, *rest)

    def mode(self) -> Hyperparameters:
        """Return the modes of the priors, the first guess without data."""
        p = self.priors
        lengthscales = np.full(self.features, math.exp(p.lengthscale.log_mode))
        noise = math.exp(p.noise.log_mode) if self.noise is None else self.noise
        scale = self.output_scale
        scale = math.exp(p.output_scale.log_mode) if scale is None else scale
        return Hyperparameters(lengthscales, noise, scale, 0.5 if self.has_steps else 0.0)

    def _tail(self, theta: Array) -> tuple[float, float, float]:
        """Return noise, output scale and share of steps."""
        noise, scale, at = self.noise, self.output_scale, len(self.active)
        if noise is None:
            noise = math.exp(theta[at])
            at += 1
        noise = max(noise, 1e-8)  # keeps K definite when the noise is fixed at zero
        if scale is None:
            scale = math.exp(theta[at])
        steps = 1.0 / (1.0 + math.exp(-theta[-1])) if self.has_steps else 0.0
        return noise, scale, steps

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient at `theta`; -inf where K is singular."""
        self._deadline.check()
        z, n, k = self.z, len(self.z), len(self.active)
        noise, scale, share = self._tail(theta)
        weights = np.exp(-2.0 * theta[:k])
        c, slope = self._kernel(weights @ self._differences)
        if self._apart is not None:
            jumps = np.exp(-np.exp(-theta[:k]) @ self._apart)
            excess = jumps - c
            c = c + share * excess
            slope *= 1.0 - share
        # The lower triangle, stored by columns; LAPACK works in place and leaves the zeros above.
        stored = self._matrix.reshape(-1)
        stored[self._lower] = c if scale == 1.0 else scale * c
        stored[:: n + 1] = scale + noise
        L, info = scipy.linalg.lapack.dpotrf(self._matrix.T, lower=1, overwrite_a=1, clean=0)
        if info:
            return -math.inf, np.zeros_like(theta)
        value = -float(np.log(L.diagonal()).sum()) - 0.5 * n * LOG_2PI
        root, _ = scipy.linalg.lapack.dtrtri(L, lower=1, overwrite_c=1)
        v = root @ z
        alpha = v @ root
        fit = float(v @ v)
        # ∂ log evidence/∂t = ½ tr((α αᵀ - K⁻¹) ∂K/∂t)
        M = np.outer(alpha, alpha)
        M -= root.T @ root
        trace = float(M.trace())
        pairs = M.reshape(-1)[self._lower]
        slope *= pairs
        gradient = np.empty_like(theta)
        gradient[:k] = self._differences @ slope
        gradient[:k] *= -2.0 * scale * weights
        if self._apart is not None:
            jumps *= pairs
            gradient[:k] += (share * scale) * np.sqrt(weights) * (self._apart @ jumps)
            gradient[-1] = scale * share * (1.0 - share) * float(excess @ pairs)
        if self.noise is None:
            gradient[k] = 0.5 * noise * trace
        if self.output_scale is None:
            gradient[k + (self.noise is None)] = 0.5 * (fit - n - noise * trace)
        return value - 0.5 * fit + self._add_priors(theta, gradient), gradient

    def _add_priors(self, theta: Array, gradient: Array) -> float:
        """Return the log prior at `theta` and add its slope to `gradient`."""
        k, p = len(self.active), self.priors
        total, slope = p.lengthscale.log_density(theta[:k])
        gradient[:k] += slope
        after = k + (self.noise is None)
        for free, prior, at in (
            (self.noise is None, p.noise, slice(k, k + 1)),
            (self.output_scale is None, p.output_scale, slice(after, after + 1)),
        ):
            if free:
                value, slope = prior.log_density(theta[at])
                gradient[at] += slope
                total += value
        if self.has_steps:
            u = theta[-1] / p.steps
            gradient[-1] -= 2.0 * u / (p.steps * (1.0 + u * u))
            total -= math.log1p(u * u)
        return total


def _leaps(posterior: LogPosterior, theta: Array) -> Array:
    """Return the most plausible places where one lengthscale is much shorter or longer."""
    k = len(posterior.active)
    steps = np.concatenate([np.eye(k, len(theta)), -np.eye(k, len(theta))])
    places = np.clip(theta + 2.0 * steps, *posterior.bounds)  # in log lengthscale
    heights = np.array([posterior(place)[0] for place in places])
    return np.asarray(places[np.argsort(-heights, kind="stable")[:4]])


def _climb(posterior: LogPosterior, theta: Array, tolerance: float) -> tuple[float, Array]:
    """Return the height and the place that L-BFGS-B reaches from `theta`."""
    low, high = posterior.bounds

    def objective(t: Array) -> tuple[float, Array]:
        value, gradient = posterior(t)
        # A singular kernel is a wall, not an infinity: L-BFGS-B must be able to step back.
        return (-value, -gradient) if value > -math.inf else (1e25, gradient)

    found = scipy.optimize.minimize(
        objective,
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=scipy.optimize.Bounds(low, high),
        options={"maxiter": 60, "ftol": tolerance, "gtol": 1e3 * tolerance},
    )
    return -float(found.fun), np.clip(np.asarray(found.x, dtype=np.float64), low, high)


def most_plausible(posterior: LogPosterior, start: Hyperparameters | None) -> Hyperparameters:
    """Return the hyperparameters at the highest log posterior found."""
    if posterior.bounds.shape[1] == 0:
        return posterior.mode()
    mode = posterior.pack(posterior.mode())
    if start is not None:
        # New data may have made the earlier optimum worse than no knowledge at all.
        theta = posterior.pack(start)
        if posterior(mode)[0] > posterior(theta)[0]:
            theta = mode
        return posterior.unpack(_climb(posterior, theta, WARM)[1])
    # Few rows leave room for several optima; with many the first is enough, and climbs are dear.
    others = 8 if len(posterior.z) <= 100 else 1
    # A fixed seed: the same data give the same fit.
    steps = np.random.default_rng(0).uniform(-4.0, 4.0, (others, len(mode)))
    around = np.clip(mode + steps, *posterior.bounds)
    height, theta = _best_climb(posterior, np.concatenate([mode[None], around]))
    # Optima differ in which features they blame: try one feature at a time.
    leaps = 5 if len(posterior.z) * len(posterior.active) <= 3000 else 0
    for _ in range(leaps):
        higher, there = _best_climb(posterior, _leaps(posterior, theta))
        if higher <= height + 1e-3:
            break
        height, theta = higher, there
    return posterior.unpack(_climb(posterior, theta, FINE)[1])


def _best_climb(posterior: LogPosterior, starts: Array) -> tuple[float, Array]:
    """Return the height and the place of the highest end reached from the `starts` ``(n, k)``."""
    best = -math.inf, np.empty(0)
    for theta in starts:
        best = max(best, _climb(posterior, theta, ROUGH), key=itemgetter(0))
    return best
