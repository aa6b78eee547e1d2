"""Expected counterfactual improvement, EI-CFX (Section 3, Appendix B).

Pure functions of arrays. The search maximises the logarithm: the closed form of Proposition 3.1
loses its digits from about eight deviations on and then is flat zero, exactly in the late phase
when the target set is thin.

The paper's misprints, corrected here: the limits of integration need Lambert's W at ``-rho*``, and
``mu~ = mu - f(q)``, not ``mu - rho(q)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.acquisition.closed_form import ep_closed_form
from bayescfx.acquisition.integral import LogIntegral, Prepared, log_integral, prepare
from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, is_a
from bayescfx.errors import SettingsError
from bayescfx.potentials import AEP, SEP, Potential
from bayescfx.potentials.pieces import pieces_over
from bayescfx.potentials.wrapped import Sampled

WIDEST = 1e9  # widths; beyond it the closed form is not used
NARROWEST = 1e-80  # widths; smaller deviations count as zero
PASS = 5_000  # points per pass: they stay in the cache ...
PASS_FEW = 10_000  # ... and so do more of them where pieces are few
FEW_PIECES = 3
REACH = 40.0  # deviations, beyond which a normal density is 0 in double precision
MAX_EXCESS = 4.0  # a sampled range is used again while it is at most so many times too long


def log_ei_cfx(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> Array:
    """Return the logarithm of the expected counterfactual improvement, stable everywhere.

    Parameters
    ----------
    mean, std, potential, best
        As in :func:`ei_cfx`.

    Returns
    -------
    ndarray of shape (n,)
        ``-inf`` where no improvement is possible.

    Examples
    --------
    >>> log_ei_cfx([-0.5], [0.1], AEP(0.0, 1.0), 0.3).round(5).tolist()
    [-81.00838]
    """
    mean, std, best = _checked(mean, std, potential, best)
    return LogEI(potential, best).value_and_gradient(mean, std).value


def log_ei_cfx_gradient(
    mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike
) -> tuple[Array, Array]:
    """Return the derivatives of :func:`log_ei_cfx` by mean and deviation.

    Parameters
    ----------
    mean, std, potential, best
        As in :func:`ei_cfx`.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        Finite everywhere; 0 where no improvement is possible.

    Examples
    --------
    >>> bool(log_ei_cfx_gradient([0.8], [0.3], AEP(0.0, 1.0), 0.2)[0] > 0)
    True
    """
    mean, std, best = _checked(mean, std, potential, best)
    return LogEI(potential, best).value_and_gradient(mean, std)[1:]


def ei_cfx(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> Array:
    r"""Return the expected counterfactual improvement at each point.

    With :math:`\mu` the `mean`, :math:`\sigma` the `std` and :math:`\rho^*` the `best` (Definition
    3.1),

    .. math:: \mathbb{E}\bigl[\max(0,\ \rho(y) - \rho^*)\bigr], \quad y \sim N(\mu, \sigma^2),

    in closed form for the EP family (Proposition 3.1) wherever that keeps its digits.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the model output; `std` may be zero.
    potential : Potential
        Any potential.
    best : float or ndarray of shape (n,)
        The best potential so far; may be negative, or differ from point to point.

    Returns
    -------
    ndarray of shape (n,)
        Not negative.

    Examples
    --------
    >>> ei_cfx([0.8], [0.3], AEP(0.0, 1.0), 0.2).round(6).tolist()
    [0.100663]
    """
    return _ei(mean, std, potential, best).value


def ei_cfx_gradient(
    mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike
) -> tuple[Array, Array]:
    """Return the derivatives of :func:`ei_cfx` by mean and deviation.

    Parameters
    ----------
    mean, std, potential, best
        As in :func:`ei_cfx`.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        Finite everywhere.
    """
    return _ei(mean, std, potential, best)[1:]


def _checked(
    mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return mean, deviation and best potential as arrays of one shape, or raise."""
    is_potential = is_a(potential, Potential) and not is_a(potential, type)
    check(is_potential, "potential", "a potential with `value` and `slope`", potential)
    means = as_numbers("mean", mean)
    stds = as_numbers("std", std)
    bests = as_numbers("best", best)
    check(bool((stds >= 0).all()), "std", "numbers >= 0", std)
    try:
        means, stds, bests = np.broadcast_arrays(means, stds, bests)
    except ValueError as error:
        shapes = f"mean {means.shape}, std {stds.shape}, best {bests.shape}"
        raise SettingsError(f"`mean`, `std` and `best` must fit together; got {shapes}.") from error
    return means, stds, bests


def _ei(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> LogIntegral:
    """Return EI-CFX with gradient: the closed form where it is sound, else from the log form."""
    mean, std, best = _checked(mean, std, potential, best)
    log = LogEI(potential, best).value_and_gradient(mean, std)
    value = np.exp(log.value)
    out = LogIntegral(value, value * log.d_mean, value * log.d_std)
    if not isinstance(potential, AEP | SEP):
        return out
    width = potential.width
    s = np.clip(std / width, 1.0 / WIDEST, WIDEST)
    inside = (s == std / width) & (best >= 0.0) & (best < potential.peak)
    closed = np.zeros((3, *mean.shape))
    level = np.clip(best, 0.0, potential.peak)
    for sign in potential.signs:
        m = np.clip(sign * (mean - potential.origin) / width, -WIDEST, WIDEST)
        value, d_mean, d_std, sound = ep_closed_form(m, s, level)
        inside = inside & sound
        closed += value, sign * d_mean / width, d_std / width
    return LogIntegral(*np.where(inside, closed, out))


class LogEI:
    """Log EI-CFX prepared for one potential and one threshold, or one per point, for many calls."""

    def __init__(self, potential: Potential, best: ArrayLike) -> None:
        self.potential = potential
        self.best = np.asarray(best, dtype=float)
        self._sampled: Sampled | None = None
        self._shared: Prepared | None = None

    def value_and_gradient(self, mean: ArrayLike, std: ArrayLike) -> LogIntegral:
        """Return log EI-CFX and its derivatives by mean and deviation, each of shape (n,)."""
        mean = np.asarray(mean, float)
        std = np.asarray(std, float)
        if mean.shape != std.shape or self.best.ndim:
            mean, std, _ = np.broadcast_arrays(mean, std, self.best)
        shape = mean.shape
        best = np.broadcast_to(self.best, shape).ravel()
        mean = mean.ravel()
        std = std.ravel()
        possible = best < getattr(self.potential, "peak", np.inf)
        live = (std > NARROWEST * getattr(self.potential, "width", 1.0)) & possible
        if live.all():
            return LogIntegral(*self._integrals(mean, std, best).reshape(3, *shape))
        # the limit for a deviation of zero; nothing if no improvement is left
        gain = self.potential.value(mean) - best
        out = np.zeros((3, len(mean)))
        some = possible & (gain > 0.0)
        out[0] = np.log(gain, out=np.full(gain.shape, -np.inf), where=some)
        out[1, some] = self.potential.slope(mean[some]) / gain[some]
        out[:, live] = self._integrals(mean[live], std[live], best[live])
        return LogIntegral(*out.reshape(3, *shape))

    def _integrals(self, mean: Array, std: Array, best: Array) -> Array:
        """Return values and derivatives ``(3, n)`` where deviations are positive."""
        out = np.empty((3, len(mean)))
        potential = self._with_knots(mean, std)
        size = PASS
        if self.best.ndim == 0 and len(mean):
            self._shared = self._shared or prepare(pieces_over(potential, best[:1]))
            pieces = self._shared.pieces
            if len(pieces.log_top) <= FEW_PIECES and pieces.kinks is not None:
                size = PASS_FEW
        for k in range(0, len(mean), size):
            part = slice(k, k + size)
            prepared = self._shared or Prepared(pieces_over(potential, best[part]))
            out[:, part] = log_integral(prepared, mean[part], std[part])
            least = prepared.pieces.least
            low = k + np.flatnonzero(best[part] < least)
            if low.size:  # the rest of a threshold below all values counts everywhere
                value = np.logaddexp(out[0, low], np.log(least - best[low]))
                out[1:, low] *= np.exp(out[0, low] - value)
                out[0, low] = value
        return out

    def _with_knots(self, mean: Array, std: Array) -> Potential:
        """Return the potential itself if it knows its pieces, else one sampled around points."""
        if hasattr(self.potential, "knots") or not mean.size:
            return self.potential
        low = float(np.min(mean - REACH * std))
        high = float(np.max(mean + REACH * std))
        sampled = self._sampled
        if sampled is not None:
            covers = sampled.low <= low <= high <= sampled.high
            if covers and sampled.high - sampled.low <= MAX_EXCESS * (high - low):
                return sampled
        self._sampled = Sampled(self.potential, low, high)
        self._shared = None
        return self._sampled
