"""Where to look next: expected counterfactual improvement (Section 3, Appendix B).

Pure functions of arrays: posterior means and deviations of the model's output, a potential and
the best potential seen so far (one for all points, or one per point). The search maximises the
logarithm: the closed form of Proposition 3.1 loses its digits from about eight deviations on and
then is flat zero, exactly in the late phase when the target set is thin.

The paper's misprints, corrected here: the limits of integration need Lambert's W at ``-rho*``, and
``mu~ = mu - f(q)``, not ``mu - rho(q)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.acquisition.closed_form import ep_closed_form
from bayescfx.acquisition.integral import LogIntegral
from bayescfx.acquisition.log_ei import LogEI
from bayescfx.arrays import Array
from bayescfx.potentials import AEP, SEP, Potential


def log_ei_cfx(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> Array:
    """Return the logarithm of the expected counterfactual improvement, stable everywhere.

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
        ``-inf`` where no improvement is possible.

    Examples
    --------
    >>> log_ei_cfx([-0.5], [0.1], AEP(0.0, 1.0), 0.3).round(5).tolist()
    [-81.00838]
    """
    return LogEI(potential, best).value_and_gradient(mean, std).value


def log_ei_cfx_gradient(
    mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike
) -> tuple[Array, Array]:
    """Return the derivatives of :func:`log_ei_cfx` by mean and deviation.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the model output; `std` may be zero.
    potential : Potential
        Any potential.
    best : float or ndarray of shape (n,)
        The best potential so far.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        Finite everywhere; 0 where no improvement is possible.

    Examples
    --------
    >>> d_mean, d_std = log_ei_cfx_gradient([0.8], [0.3], AEP(0.0, 1.0), 0.2)
    >>> bool(d_mean[0] > 0)
    True
    """
    out = LogEI(potential, best).value_and_gradient(mean, std)
    return out.d_mean, out.d_std


def ei_cfx(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> Array:
    """Return the expected counterfactual improvement at each point.

    The expectation of ``max(0, rho(y) - best)`` for ``y ~ N(mean, std**2)`` (Definition 3.1), in
    closed form for the EP family (Proposition 3.1) wherever that keeps its digits.

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
    mean, std : ndarray of shape (n,)
        Posterior of the model output; `std` may be zero.
    potential : Potential
        Any potential.
    best : float or ndarray of shape (n,)
        The best potential so far.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        Finite everywhere.

    Examples
    --------
    >>> d_mean, d_std = ei_cfx_gradient([0.8], [0.3], AEP(0.0, 1.0), 0.2)
    >>> bool(d_mean[0] > 0)
    True
    """
    out = _ei(mean, std, potential, best)
    return out.d_mean, out.d_std


def _ei(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> LogIntegral:
    """Return EI-CFX with gradient: the closed form where it is sound, else from the log form."""
    log = LogEI(potential, best).value_and_gradient(mean, std)
    value = np.exp(log.value)
    out = LogIntegral(value, value * log.d_mean, value * log.d_std)
    if not isinstance(potential, AEP | SEP):
        return out
    mean, std, level = np.broadcast_arrays(*(np.asarray(a, float) for a in (mean, std, best)))
    s = np.clip(std / potential.width, 1e-9, 1e9)
    inside = (s == std / potential.width) & (level >= 0.0) & (level < potential.peak)
    level = np.clip(level, 0.0, potential.peak)
    parts = []
    for sign in potential.signs:
        m = np.clip(sign * (mean - potential.origin) / potential.width, -1e9, 1e9)
        value, d_mean, d_std, sound = ep_closed_form(m, s, level)
        inside = inside & sound
        parts.append((value, sign * d_mean / potential.width, d_std / potential.width))
    totals = (sum(part[k] for part in parts) for k in range(3))
    return LogIntegral(*(np.where(inside, t, o) for t, o in zip(totals, out, strict=True)))
