"""Log EI-CFX of many points: what depends on potential and threshold alone is prepared once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.acquisition.integral import LogIntegral, Prepared, log_integral, prepare
from bayescfx.arrays import Array
from bayescfx.potentials.pieces import pieces_over
from bayescfx.potentials.potential import Potential
from bayescfx.potentials.sampled import Sampled


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
    >>> from bayescfx import AEP
    >>> value, d_mean, d_std = LogEI(AEP(0.0, 1.0), 0.2).value_and_gradient([0.8], [0.3])
    >>> round(float(value[0]), 5)
    -2.29597
    """

    def __init__(self, potential: Potential, best: ArrayLike) -> None:
        self.potential, self.best = potential, np.asarray(best, dtype=float)
        self._sampled: Sampled | None = None
        self._shared: Prepared | None = None

    def value_and_gradient(self, mean: ArrayLike, std: ArrayLike) -> LogIntegral:
        """Return log EI-CFX and its derivatives by mean and deviation, each of shape (n,)."""
        mean, std, best = np.broadcast_arrays(
            np.asarray(mean, float), np.asarray(std, float), self.best
        )
        shape = mean.shape
        mean, std, best = mean.ravel(), std.ravel(), best.ravel()
        # deviations below so many widths count as zero
        live = std > 1e-80 * getattr(self.potential, "width", 1.0)
        live &= best < getattr(self.potential, "peak", np.inf)
        every = bool(live.all())
        out = np.zeros((3, len(mean)))
        if not every:  # the limit for a deviation of zero; nothing if no improvement is left
            gain = self.potential.value(mean) - best
            gain[best >= getattr(self.potential, "peak", np.inf)] = 0.0
            some = gain > 0.0
            out[0, ~some] = -np.inf
            out[0, some] = np.log(gain[some])
            out[1, some] = self.potential.slope(mean[some]) / gain[some]
            mean, std, best = mean[live], std[live], best[live]
        found = out if every else np.empty((3, len(mean)))
        known = self._with_knots(mean, std)
        for k in range(0, len(mean), 5000):  # points per pass: what they need stays in the cache
            part, levels = slice(k, k + 5000), best[k : k + 5000]
            if self.best.ndim > 0:
                prepared = Prepared(pieces_over(known, levels))
            else:
                prepared = self._shared or prepare(pieces_over(known, levels[:1]))
                self._shared = prepared
            found[:, part] = log_integral(prepared, mean[part], std[part])
            least = prepared.pieces.least
            negative = np.flatnonzero(levels < least)
            if negative.size:  # what a threshold leaves below all values counts everywhere
                floor = np.log(least - levels[negative])
                inner = found[:, k + negative]
                value = np.logaddexp(inner[0], floor)
                inner[1:] *= np.exp(inner[0] - value)
                inner[0] = value
                found[:, k + negative] = inner
        if not every:
            out[:, live] = found
        return LogIntegral(*out.reshape(3, *shape))

    def _with_knots(self, mean: Array, std: Array) -> Potential:
        """Return the potential itself if it knows its pieces, else a sampled one.

        What has been sampled is kept for as long as it covers the points, and not far more.
        """
        if hasattr(self.potential, "knots") or not mean.size:
            return self.potential
        low, high = float(np.min(mean - 40.0 * std)), float(np.max(mean + 40.0 * std))
        known = self._sampled
        if known is None or not (
            known.low <= low <= high <= known.high and known.high - known.low <= 4.0 * (high - low)
        ):
            known = self._sampled = Sampled(self.potential, low, high)
            self._shared = None
        return known
