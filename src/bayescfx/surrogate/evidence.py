"""Hyperparameters of the surrogate: their posterior, and its mode.

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

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.ascent import AscentBox, ascend
from bayescfx.deadline import NEVER, Deadline
from bayescfx.surrogate.kernels import Kernel

LENGTHSCALES = (0.025, 1e4)  # bounds, relative to the unit cube
NOISES = (1e-6, 1.0)  # bounds, relative to the variance of the outputs
OUTPUT_SCALES = (1e-2, 1e2)  # bounds, relative to the variance of the outputs
ODDS = (1e-8, 1e4)  # bounds of the odds of a step against a smooth change
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class EvidenceTuning:
    """Tuned numbers of the search for the posterior mode.

    Beside each is what half and double of it change: the evaluations of the log posterior
    (`python -m benchmarks.tuning --only evidence`, 12 fits, 2026-11-18). None changes the log
    posterior that is reached by more than 0.002, or the error of predictions by more than 0.2 %.
    """

    #: Expected gain at which a climb ends, to choose between optima or to follow one (+4 %, -4 %),
    #: and to settle (numerical).
    rough: float = 1e-2
    fine: float = 1e-8
    #: Evaluations of a single climb (a cap: no change), and of each of several climbs of which the
    #: highest goes on (+5 %, +23 %).
    n_calls: int = 60
    n_calls_each: int = 15
    #: The range of a climb in logarithms: a tenth is the first step, a half the longest (0, +1 %).
    span: float = 4.0
    #: Random starts around the mode (-28 %, +55 %), and their distance in logarithms (-7 %, +2 %).
    #: Without them a better optimum by 0.6 is missed in 1 of 32 fits to rounded outputs.
    n_starts: int = 8
    start_distance: float = 4.0
    #: One lengthscale at a time is made shorter or longer by this much, in logarithms (-6 %, +5 %),
    #: and climbs start at so many of the most plausible places (-10 %, +19 %). Without them a
    #: better optimum by 2.7 is missed in 1 of 70 fits with the kernel RBF.
    leap: float = 2.0
    n_leap_places: int = 4
    #: With more rows times features there are neither: climbs are expensive, optima are clear.
    max_size_of_restarts: int = 1500


TUNING = EvidenceTuning()


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """The hyperparameters of the surrogate, for standardised outputs."""

    lengthscales: Array  # one per feature (d,)
    noise: float  # variance of the noise
    output_scale: float = 1.0  # variance of the process
    steps: float = 0.0  # the share of that variance that belongs to steps along the axes
    curvature: Array | None = None  # where a fit ended: inverse Hessian of the log posterior


@dataclass(frozen=True, slots=True, eq=False)
class LogNormal:
    """A log-normal prior, in terms of the logarithm t of the variable."""

    location: float  # mean of the logarithm
    spread: float  # standard deviation of the logarithm

    @property
    def log_mode(self) -> float:
        """The logarithm of the most probable value."""
        return self.location - self.spread**2

    def log_density(self, t: Array) -> tuple[Array, Array]:
        """Return the summed log density of exp(t) ``(...)``, up to a constant, and its slopes."""
        u = t - self.location
        slope = u * (-1.0 / self.spread**2)
        return (0.5 * slope * u - t).sum(axis=-1), slope - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Alike(LogNormal):
    """A prior of variables whose geometric mean, and deviation from it, are log-normal.

    A few rows show how quickly a model varies, but hardly along which of many features.
    """

    apart: float  # standard deviation of the logarithms about their mean

    def log_density(self, t: Array) -> tuple[Array, Array]:
        """Return the log density ``(...)``, up to a constant, and its slope by each t."""
        n = t.shape[-1]
        mean = t.sum(axis=-1, keepdims=True) / max(n, 1)
        u = mean - self.location
        slope = u * (-1.0 / self.spread**2)
        value = (0.5 * slope * u - mean).sum(axis=-1)
        apart = (t - mean) * (-1.0 / self.apart**2)
        value = value * (n > 0) + 0.5 * (apart * (t - mean)).sum(axis=-1)
        return value, apart + (slope - 1.0) / max(n, 1)


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
        location = math.sqrt(2.0) + 0.5 * math.log(max(d, 1))
        spread = math.sqrt(3.0)
        if alike is None:
            return cls(LogNormal(location, spread))
        return cls(Alike(location, spread, alike))


class LogPosterior:
    """The log posterior of log hyperparameters, with its gradient, for one data set.

    The vector ``theta`` holds the log lengthscales of the features that vary, then the log noise
    and the log output scale, each if it is free, and the log-odds of steps, if there are any.
    Covariances are stored as pairs i > j, so that distance and gradient are one product each.
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
        self.priors = priors
        self.noise = noise
        self.output_scale = output_scale
        self.z = z
        self.has_steps = steps
        self._kernel = kernel
        self._deadline = deadline
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
        if self.has_steps:
            tail.append(h.steps / (1.0 - h.steps) if h.steps < 1.0 else math.inf)
        with np.errstate(divide="ignore"):
            theta = np.log(np.concatenate([h.lengthscales[self.active], tail]))
        return np.asarray(np.clip(theta, *self.bounds))

    def unpack(self, theta: Array) -> Hyperparameters:
        """Return a vector theta as hyperparameters; features that do not vary get the mode."""
        lengthscales = np.full(self.features, math.exp(self.priors.lengthscale.log_mode))
        lengthscales[self.active] = np.exp(theta[: len(self.active)])
        noise, scale, steps = self._tail(theta)
        return Hyperparameters(
            lengthscales,
            float(noise) if self.noise is None else self.noise,
            float(scale),
            float(steps),
        )

    def mode(self) -> Hyperparameters:
        """Return the modes of the priors, the first guess without data."""
        priors = self.priors
        lengthscales = np.full(self.features, math.exp(priors.lengthscale.log_mode))
        noise = math.exp(priors.noise.log_mode) if self.noise is None else self.noise
        scale = self.output_scale
        if scale is None:
            scale = math.exp(priors.output_scale.log_mode)
        return Hyperparameters(lengthscales, noise, scale, 0.5 if self.has_steps else 0.0)

    def _tail(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return noise, output scale and share of steps of vectors ``(..., size of theta)``."""
        at = len(self.active)
        fixed = np.ones(theta.shape[:-1])
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
        n = len(self.z)
        k = len(self.active)
        m = len(theta)
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
        value, is_singular = _invert_factors(factors)
        v = factors @ self.z
        alpha = (v[:, None] @ factors)[:, 0]
        fit = (v * v).sum(axis=1)
        # ∂ log evidence/∂t = ½ tr((α αᵀ - K⁻¹) ∂K/∂t)
        M = alpha[:, :, None] * alpha[:, None, :] - factors.transpose(0, 2, 1) @ factors
        M = M.reshape(m, n * n)
        trace = M[:, :: n + 1].sum(axis=1)
        pairs = M[:, self._lower]
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
        gradient[is_singular] = 0.0
        return value, gradient

    def _add_priors(self, theta: Array, gradient: Array) -> Array:
        """Return the log priors ``(m,)`` at `theta` and add their slopes to `gradient`."""
        k = len(self.active)
        priors = self.priors
        total, slope = priors.lengthscale.log_density(theta[:, :k])
        gradient[:, :k] += slope
        after = k + (self.noise is None)
        for is_free, prior, at in (
            (self.noise is None, priors.noise, slice(k, k + 1)),
            (self.output_scale is None, priors.output_scale, slice(after, after + 1)),
        ):
            if is_free:
                value, slope = prior.log_density(theta[:, at])
                gradient[:, at] += slope
                total = total + value
        if self.has_steps:
            u = theta[:, -1] / priors.steps
            gradient[:, -1] -= 2.0 * u / (priors.steps * (1.0 + u * u))
            total = total - np.log1p(u * u)
        return total


def _invert_factors(K: Array) -> tuple[Array, Mask]:
    """Replace matrices ``(m, n, n)`` by the inverses of their lower Cholesky factors.

    Return minus half their log determinants ``(m,)``, and which of them are singular.
    """
    value = np.empty(len(K))
    is_singular = np.zeros(len(K), dtype=bool)
    for i, matrix in enumerate(K):
        L, is_singular[i] = scipy.linalg.lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        if is_singular[i]:
            matrix[:] = np.eye(len(matrix))
            value[i] = -math.inf
        else:
            value[i] = -np.log(L.diagonal()).sum()
        scipy.linalg.lapack.dtrtri(matrix, lower=1, overwrite_c=1)
    return value, is_singular


def _leaps(posterior: LogPosterior, theta: Array) -> Array:
    """Return the most plausible places where one lengthscale is much shorter or longer."""
    k = len(posterior.active)
    steps = np.concatenate([np.eye(k, len(theta)), -np.eye(k, len(theta))])
    places = np.clip(theta + TUNING.leap * steps, *posterior.bounds)
    order = np.argsort(-posterior.many(places)[0], kind="stable")
    return np.asarray(places[order[: TUNING.n_leap_places]])


def _climb(
    posterior: LogPosterior, starts: Array, tolerance: float, H: Array | None = None
) -> tuple[float, Array, Array | None]:
    """Return height, place and inverse Hessian, if known, of the highest end from the `starts`."""
    n_calls = TUNING.n_calls if len(starts) == 1 else TUNING.n_calls_each
    low, high = np.repeat(posterior.bounds[:, None], len(starts), axis=1)
    columns = np.tile(np.arange(starts.shape[1]), (len(starts), 1))
    span = TUNING.span
    lengths = np.full(low.shape, span)
    kink = np.full(low.shape, np.nan)
    box = AscentBox(columns, low, high, lengths, kink, np.empty((0, low.shape[1])), np.empty(0))
    H = None if H is None else H[None] / span**2
    places, heights, H = ascend(posterior.many, starts, box, H, n_calls, tolerance, np.inf)
    best = int(np.argmax(heights))
    curvature = H[best] * span**2 if H[best].any() else None
    return float(heights[best]), places[best], curvature


def most_plausible(posterior: LogPosterior, start: Hyperparameters | None) -> Hyperparameters:
    """Return the hyperparameters at the highest log posterior found."""
    if posterior.bounds.shape[1] == 0:
        return posterior.mode()
    mode = posterior.pack(posterior.mode())
    if start is None:
        return _from_scratch(posterior, mode)
    # New data may have made the earlier optimum worse than the mode of the priors.
    theta = posterior.pack(start)
    heights, slopes = posterior.many(np.stack([theta, mode]))
    H = start.curvature
    if heights[1] > heights[0]:
        theta = mode
        H = None
    elif H is None or len(H) != len(theta):
        H = None
    elif slopes[0] @ H @ slopes[0] <= TUNING.rough:
        return start
    _, theta, H = _climb(posterior, theta[None], TUNING.rough, H)
    return replace(posterior.unpack(theta), curvature=H)


def _from_scratch(posterior: LogPosterior, mode: Array) -> Hyperparameters:
    """Return the hyperparameters at the highest of several optima."""
    # Few rows leave room for several optima.
    is_small = 0 < len(posterior.z) * len(posterior.active) <= TUNING.max_size_of_restarts
    n_starts = TUNING.n_starts if is_small else 0
    # A fixed seed: the same data give the same fit.
    rng = np.random.default_rng(0)
    steps = rng.uniform(-TUNING.start_distance, TUNING.start_distance, (n_starts, len(mode)))
    around = np.clip(mode + steps, *posterior.bounds)
    height, theta, H = _climb(posterior, np.concatenate([mode[None], around]), TUNING.rough)
    # Optima differ in the features to which they attribute the outputs: try one at a time.
    while is_small:
        higher, there, curvature = _climb(posterior, _leaps(posterior, theta), TUNING.rough)
        if higher <= height + 2.0 * TUNING.rough:
            break
        height = higher
        theta = there
        H = curvature
    _, theta, H = _climb(posterior, theta[None], TUNING.fine, H)
    return replace(posterior.unpack(theta), curvature=H)
