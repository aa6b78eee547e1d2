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
from dataclasses import dataclass, replace

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices
from bayescfx.ascent import Box, ascend
from bayescfx.deadline import NEVER, Deadline
from bayescfx.surrogate.kernels import Kernel

LENGTHSCALES = (0.025, 1e4)  # of the unit cube
NOISES = (1e-6, 1.0)  # of the variance of the outputs
OUTPUT_SCALES = (1e-2, 1e2)
ODDS = (1e-8, 1e4)  # of a step against a smooth change
# Expected gain at which a climb ends: to choose between optima, to follow one, to settle.
ROUGH, WARM, FINE = 1e-2, 1e-2, 1e-8
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """What the surrogate learns besides the data; all for standardised outputs."""

    lengthscales: Array  # one per feature (d,)
    noise: float  # variance of the noise
    output_scale: float = 1.0  # variance of the process
    steps: float = 0.0  # which share of that variance belongs to steps along the axes
    curvature: Array | None = None  # where a fit ended: inverse Hessian of the log posterior


@dataclass(frozen=True, slots=True, eq=False)
class LogNormal:
    """A log-normal prior, in terms of the logarithm t of the variable."""

    location: float  # mean and standard deviation of the logarithm
    spread: float

    @property
    def log_mode(self) -> float:
        """The logarithm of the most probable value."""
        return self.location - self.spread**2

    def log_density(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of exp(t), summed ``(...)``, up to a constant; its slopes."""
        u = t - self.location
        slope = u * (-1.0 / self.spread**2)
        return (0.5 * slope * u - t).sum(axis=-1), slope - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Alike(LogNormal):
    """A prior of variables whose geometric mean, and deviation from it, are log-normal.

    A few rows can tell how quickly a model varies, and less well along which of many features.
    """

    apart: float  # standard deviation of the logarithms about their mean

    def log_density(self, t: Array) -> tuple[Array, Array]:
        """Return the log density ``(...)``, up to a constant; and its slope in each t."""
        n = t.shape[-1]
        mean = t.sum(axis=-1, keepdims=True) / max(n, 1)
        value, slope = LogNormal.log_density(self, mean)
        apart = (t - mean) * (-1.0 / self.apart**2)
        return value * (n > 0) + 0.5 * (apart * (t - mean)).sum(axis=-1), apart + slope / max(n, 1)


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
        noise, scale, steps = map(float, self._tail(theta))
        return Hyperparameters(
            lengthscales, noise if self.noise is None else self.noise, scale, steps
        )

    def mode(self) -> Hyperparameters:
        """Return the modes of the priors, the first guess without data."""
        p = self.priors
        lengthscales = np.full(self.features, math.exp(p.lengthscale.log_mode))
        noise = math.exp(p.noise.log_mode) if self.noise is None else self.noise
        scale = self.output_scale
        scale = math.exp(p.output_scale.log_mode) if scale is None else scale
        return Hyperparameters(lengthscales, noise, scale, 0.5 if self.has_steps else 0.0)

    def _tail(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return noise, output scale and share of steps of vectors ``(..., size of theta)``."""
        at, fixed = len(self.active), np.ones(theta.shape[:-1])
        noise = np.exp(theta[..., at]) if self.noise is None else self.noise * fixed
        at += self.noise is None
        noise = np.maximum(noise, 1e-8)  # keeps K definite when the noise is fixed at zero
        given = self.output_scale
        scale = np.exp(theta[..., at]) if given is None else given * fixed
        steps = 1.0 / (1.0 + np.exp(-theta[..., -1])) if self.has_steps else 0.0 * fixed
        return noise, scale, steps

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient at `theta`; -inf where K is singular."""
        value, gradient = self.many(theta[None])
        return float(value[0]), gradient[0]

    def many(self, theta: Array) -> tuple[Array, Array]:
        """Return the log posterior ``(m,)`` of vectors theta ``(m, size)``, and its gradients."""
        self._deadline.check()
        z, n, k, m = self.z, len(self.z), len(self.active), len(theta)
        noise, scale, share = np.stack(self._tail(theta))[:, :, None]
        weights = np.exp(-2.0 * theta[:, :k])
        c, slope = self._kernel(weights @ self._differences)
        if self._apart is not None:
            jumps = np.exp(-np.exp(-theta[:, :k]) @ self._apart)
            excess = jumps - c
            c = c + share * excess
            slope *= 1.0 - share
        # The lower triangles, stored by columns; LAPACK works in place and leaves the zeros above.
        stored = np.zeros((m, n * n))
        stored[:, self._lower] = scale * c
        stored[:, :: n + 1] = scale + noise
        factors = stored.reshape(m, n, n).transpose(0, 2, 1)
        value, bad = np.empty(m), np.zeros(m, dtype=bool)
        for i, K in enumerate(factors):
            L, bad[i] = scipy.linalg.lapack.dpotrf(K, lower=1, overwrite_a=1, clean=0)
            if bad[i]:
                K[:] = np.eye(n)
            value[i] = -np.log(L.diagonal()).sum() if not bad[i] else -math.inf
            scipy.linalg.lapack.dtrtri(K, lower=1, overwrite_c=1)
        v = factors @ z
        alpha = (v[:, None] @ factors)[:, 0]
        fit = (v * v).sum(axis=1)
        # ∂ log evidence/∂t = ½ tr((α αᵀ - K⁻¹) ∂K/∂t)
        M = alpha[:, :, None] * alpha[:, None, :] - factors.transpose(0, 2, 1) @ factors
        M = M.reshape(m, n * n)
        trace, pairs = M[:, :: n + 1].sum(axis=1), M[:, self._lower]
        gradient = np.empty_like(theta)
        slope *= pairs
        gradient[:, :k] = slope @ self._differences.T
        gradient[:, :k] *= -2.0 * scale * weights
        if self._apart is not None:
            jumps *= pairs
            gradient[:, :k] += share * scale * np.sqrt(weights) * (jumps @ self._apart.T)
            odds = scale * share * (1.0 - share)
            gradient[:, -1] = odds[:, 0] * (excess * pairs).sum(axis=1)
        if self.noise is None:
            gradient[:, k] = 0.5 * noise[:, 0] * trace
        if self.output_scale is None:
            gradient[:, k + (self.noise is None)] = 0.5 * (fit - n - noise[:, 0] * trace)
        value += self._add_priors(theta, gradient) - 0.5 * fit - 0.5 * n * LOG_2PI
        gradient[bad] = 0.0
        return value, gradient

    def _add_priors(self, theta: Array, gradient: Array) -> Array:
        """Return the log priors ``(m,)`` at `theta` and add their slopes to `gradient`."""
        k, p = len(self.active), self.priors
        total, slope = p.lengthscale.log_density(theta[:, :k])
        gradient[:, :k] += slope
        after = k + (self.noise is None)
        for free, prior, at in (
            (self.noise is None, p.noise, slice(k, k + 1)),
            (self.output_scale is None, p.output_scale, slice(after, after + 1)),
        ):
            if free:
                value, slope = prior.log_density(theta[:, at])
                gradient[:, at] += slope
                total = total + value
        if self.has_steps:
            u = theta[:, -1] / p.steps
            gradient[:, -1] -= 2.0 * u / (p.steps * (1.0 + u * u))
            total = total - np.log1p(u * u)
        return total


def _leaps(posterior: LogPosterior, theta: Array) -> Array:
    """Return the most plausible places where one lengthscale is much shorter or longer."""
    k = len(posterior.active)
    steps = np.concatenate([np.eye(k, len(theta)), -np.eye(k, len(theta))])
    places = np.clip(theta + 2.0 * steps, *posterior.bounds)  # in log lengthscale
    return np.asarray(places[np.argsort(-posterior.many(places)[0], kind="stable")[:4]])


def _climb(
    posterior: LogPosterior, starts: Array, tolerance: float, H: Array | None = None
) -> tuple[float, Array, Array | None]:
    """Return height, place and inverse Hessian, if known, of the highest end from the `starts`."""
    calls = 60 if len(starts) == 1 else 15  # of several, the highest climbs on
    low, high = np.repeat(posterior.bounds[:, None], len(starts), axis=1)
    columns = np.tile(np.arange(starts.shape[1]), (len(starts), 1))
    span = 4.0  # of which a tenth is the first step, and a half the longest
    lengths, kink = np.full(low.shape, span), np.full(low.shape, np.nan)
    box = Box(columns, low, high, lengths, kink, np.empty((0, low.shape[1])), np.empty(0))
    H = None if H is None else H[None] / span**2
    places, heights, H = ascend(posterior.many, starts, box, H, calls, tolerance, np.inf)
    best = int(np.argmax(heights))
    return float(heights[best]), places[best], H[best] * span**2 if H[best].any() else None


def most_plausible(posterior: LogPosterior, start: Hyperparameters | None) -> Hyperparameters:
    """Return the hyperparameters at the highest log posterior found."""
    size = posterior.bounds.shape[1]
    if size == 0:
        return posterior.mode()
    mode = posterior.pack(posterior.mode())
    if start is not None:
        # New data may have made the earlier optimum worse than no knowledge at all.
        theta, H = posterior.pack(start), start.curvature
        heights, slopes = posterior.many(np.stack([theta, mode]))
        if heights[1] > heights[0] or H is None or len(H) != size:
            theta, H = (theta, mode)[int(heights[1] > heights[0])], None
        elif slopes[0] @ H @ slopes[0] <= WARM:
            return start
        _, theta, H = _climb(posterior, theta[None], WARM, H)
        return replace(posterior.unpack(theta), curvature=H)
    # Few rows leave room for several optima; with many the first is enough, and climbs are dear.
    others = 8 if len(posterior.z) <= 100 else 1
    # A fixed seed: the same data give the same fit.
    steps = np.random.default_rng(0).uniform(-4.0, 4.0, (others, len(mode)))
    around = np.clip(mode + steps, *posterior.bounds)
    height, theta, H = _climb(posterior, np.concatenate([mode[None], around]), ROUGH)
    # Optima differ in which features they blame: try one feature at a time.
    leaps = 5 if 0 < len(posterior.z) * len(posterior.active) <= 3000 else 0
    for _ in range(leaps):
        higher, there, curvature = _climb(posterior, _leaps(posterior, theta), ROUGH)
        if higher <= height + 2.0 * ROUGH:
            break
        height, theta, H = higher, there, curvature
    _, theta, H = _climb(posterior, theta[None], FINE, H)
    return replace(posterior.unpack(theta), curvature=H)
