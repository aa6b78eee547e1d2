"""Log EI-CFX of many points: what depends on potential and threshold alone is prepared once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.acquisition.ep import Level, ep_log_integral, sep_log_integral, shared_level
from bayescfx.acquisition.panels import Panels, general_log_integral, panels_above
from bayescfx.acquisition.plateaus import PlateauLevel, plateau_level, plateau_log_integral
from bayescfx.acquisition.quadrature import LogIntegral
from bayescfx.arrays import Array, Indices
from bayescfx.potentials.family import AEP, PEAK, SEP, LevelPotential, Plateau, Potential
from bayescfx.potentials.levels import Edges, ep_edges, excess
from bayescfx.potentials.links import Sampled

_TINY = 1e-80  # deviations below this many widths count as zero
_HUGE = 1e60
_SAMPLED = 40.0  # deviations around the means in which a user's potential is examined
_SPARE = 4.0  # times the range needed that a sampled one may have: a wider one is too coarse
_BLOCK = 5000  # points per pass: what they need stays in the cache


@dataclass(frozen=True, slots=True)
class LogEI:
    """Log EI-CFX prepared for one potential and threshold, for many calls.

    Parameters
    ----------
    potential : Potential
        Any potential. Without `knots` it is sampled around the points asked for.
    best : float or ndarray of shape (n,)
        The best potential so far, one for all points or one per point; may be negative.

    Examples
    --------
    >>> value, d_mean, d_std = LogEI(AEP(0.0, 1.0), 0.2).value_and_gradient([0.8], [0.3])
    >>> round(float(value[0]), 5)
    -2.29597
    """

    potential: Potential
    best: ArrayLike
    _level: Level | None = field(init=False, repr=False, compare=False, default=None)
    _plateau: PlateauLevel | None = field(init=False, repr=False, compare=False, default=None)
    _sampled: Sampled | None = field(init=False, repr=False, compare=False, default=None)
    _panels: Panels | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.potential, AEP | SEP):
            edges = ep_edges(excess(np.asarray(self.best, dtype=float)))
            shared = edges.t_low.ndim == 0
            level = (
                shared_level(Edges(*map(np.atleast_1d, edges))) if shared else Level(edges, None)
            )
            object.__setattr__(self, "_level", level)
        elif isinstance(self.potential, Plateau) and np.ndim(self.best) == 0:
            best = np.clip(np.atleast_1d(np.asarray(self.best, dtype=float)), 0.0, PEAK)
            object.__setattr__(self, "_plateau", plateau_level(self.potential, best))

    def value_and_gradient(self, mean: ArrayLike, std: ArrayLike) -> LogIntegral:
        """Return log EI-CFX and its derivatives by mean and deviation, each of shape (n,)."""
        mean, std, best = np.broadcast_arrays(
            *(np.asarray(a, dtype=float) for a in (mean, std, self.best))
        )
        shape = mean.shape
        mean, std, best = mean.ravel(), std.ravel(), best.ravel()
        unit = getattr(self.potential, "width", 1.0)
        peak = getattr(self.potential, "peak", np.inf)
        live = (std > _TINY * unit) & (best < peak)
        if live.all():
            out = self._positive(mean, std, best, self._level_of(shape, None))
        else:
            out = _at_limit(mean, std, self.potential, best)
            rows = np.flatnonzero(live)
            level = self._level_of(shape, rows)
            found = self._positive(mean[rows], std[rows], best[rows], level)
            for full, part in zip(out, found, strict=True):
                full[rows] = part
        return LogIntegral(*(np.reshape(part, shape) for part in out))

    def _level_of(self, shape: tuple[int, ...], rows: Indices | None) -> Level | None:
        """Return the thresholds of some points."""
        if self._level is None or np.ndim(self.best) == 0:
            return self._level
        edges = Edges(*(np.broadcast_to(e, shape).ravel() for e in self._level.edges))
        return Level(edges if rows is None else Edges(*(e[rows] for e in edges)), None)

    def _positive(self, mean: Array, std: Array, best: Array, level: Level | None) -> LogIntegral:
        """Evaluate points with a positive deviation and room for improvement, block by block."""
        n = len(mean)
        if n <= _BLOCK:
            return self._block(mean, std, best, level)
        parts = []
        for i in range(0, n, _BLOCK):
            cut = slice(i, i + _BLOCK)
            some = level
            if level is not None and np.ndim(self.best) > 0:
                some = Level(Edges(*(e[cut] for e in level.edges)), None)
            parts.append(self._block(mean[cut], std[cut], best[cut], some))
        return LogIntegral(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _block(self, mean: Array, std: Array, best: Array, level: Level | None) -> LogIntegral:
        """Evaluate some points; `best` is the same for all if the threshold is."""
        least = best[:1] if np.ndim(self.best) == 0 else best
        if isinstance(self.potential, AEP | SEP):
            assert level is not None  # prepared for these families
            inner = _ep_family(mean, std, self.potential, level)
        elif isinstance(self.potential, Plateau):
            plateau = self._plateau or plateau_level(self.potential, np.maximum(least, 0.0))
            inner = plateau_log_integral(self.potential, mean, std, plateau)
        else:
            return general_log_integral(self._panels_for(mean, std, least), mean, std)
        return _raised(inner, best) if np.any(least < 0.0) else inner

    def _panels_for(self, mean: Array, std: Array, level: Array) -> Panels:
        """Return the potential's panels; a threshold that all points share keeps them."""
        known = self._with_knots(mean, std)
        if np.ndim(self.best) > 0 or not level.size:
            return panels_above(known, level)
        if self._panels is None or self._panels.potential is not known:
            object.__setattr__(self, "_panels", panels_above(known, level))
        assert self._panels is not None  # just set
        return self._panels

    def _with_knots(self, mean: Array, std: Array) -> LevelPotential:
        """Return the potential itself if it knows its pieces, else a sampled one.

        What has been sampled is kept for as long as it covers the points, and not far more.
        """
        if isinstance(self.potential, LevelPotential):
            return self.potential
        low = float(np.min(mean - _SAMPLED * std, initial=np.inf))
        high = float(np.max(mean + _SAMPLED * std, initial=-np.inf))
        known = self._sampled
        if (
            known is not None
            and known.low <= low
            and high <= known.high
            and known.high - known.low <= _SPARE * (high - low)
        ):
            return known
        low, high = (0.0, 1.0) if low > high else (low, high)
        object.__setattr__(self, "_sampled", found := Sampled(self.potential, low, high))
        return found


def _ep_family(mean: Array, std: Array, potential: AEP | SEP, level: Level) -> LogIntegral:
    """Return the log integral of the EP family in output units."""
    width = potential.width
    shift = mean - potential.origin
    if isinstance(potential, AEP):
        sign: Array | float = float(potential.side)
        shift, integral = sign * shift, ep_log_integral
    else:
        sign, shift, integral = np.sign(shift), np.abs(shift), sep_log_integral
    m = np.clip(shift / width, -_HUGE, _HUGE)
    m1 = np.clip((shift - width) / width, -_HUGE, _HUGE)
    value, d_mean, d_std = integral(m, m1, np.minimum(std / width, _HUGE), level)
    return LogIntegral(value, sign * d_mean / width, d_std / width)


def _raised(inner: LogIntegral, best: Array) -> LogIntegral:
    """Add what a negative threshold leaves everywhere: these potentials are never negative."""
    negative = best < 0.0
    floor = np.where(negative, np.log(np.where(negative, -best, 1.0)), -np.inf)
    value = np.logaddexp(inner.value, floor)
    share = np.where(negative, np.exp(inner.value - value), 1.0)
    return LogIntegral(value, share * inner.d_mean, share * inner.d_std)


def _at_limit(mean: Array, std: Array, potential: Potential, best: Array) -> LogIntegral:
    """Return the limit for a deviation of zero; nothing where no improvement is left."""
    gain = potential.value(mean) - best
    peak = getattr(potential, "peak", np.inf)
    positive = (gain > 0.0) & (best < peak)
    safe = np.where(positive, gain, 1.0)
    value = np.where(positive, np.log(safe), -np.inf)
    d_mean = np.where(positive, potential.slope(mean) / safe, 0.0)
    return LogIntegral(value, d_mean, np.zeros_like(value))
