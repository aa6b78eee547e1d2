"""EI-CFX of the EP family in closed form, term by term as in Appendix B.

All quantities are in widths (``w = 1``) and counted from f(query): ``mu~`` is ``m``, ``sigma`` is
``s``. One side is enough: AEP- is AEP+ with the sign of ``m`` turned, SEP is their sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array, Mask
from bayescfx.potentials.ep_family import depth, ep_edges

MIN_SHARE = 1e-5  # of the largest term: what is left after cancellation has ten digits
SMALLEST = 1e-290  # no term of a larger value has been lost by underflow
FAR = 40.0  # phi is 0 in double precision from here on
HUGE = 1e30  # stands for infinity: finite, so that no nan can arise


class ClosedForm(NamedTuple):
    """EI-CFX, its derivatives by mean and deviation, and where all three are accurate."""

    value: Array
    d_mean: Array
    d_std: Array
    sound: Mask


def ep_closed_form(m: Array, s: Array, level: Array) -> ClosedForm:
    """Return ``E[max(0, rho(z) - level)]`` for ``rho(z) = z**2 exp(-z**2)``, z > 0.

    With ``kappa = 1 + 2 s**2``, ``gamma = m / kappa``, ``eta = s / sqrt(kappa)``,
    ``C = exp(-m**2 / kappa) / sqrt(kappa)`` and ``zeta`` running over
    ``[(z0 - gamma) / eta, (z1 - gamma) / eta]``, ``I = C * integral of (gamma + eta zeta)**2 phi``
    and ``EI = I - level * (Phi(tau1) - Phi(tau0))``, ``tau = (z - m) / s`` (Proposition 3.1).
    The derivatives are ``dEI/dm = E[rho']`` and, by the heat equation, ``dEI/ds = s E[rho'']``
    with the kinks at both limits. All arrays are ``(n,)``, `s` positive, `level` not negative.
    """
    t, v = ep_edges(depth(level))
    z0, z1 = np.sqrt(t)
    kappa = 1.0 + 2.0 * s * s
    gamma = m / kappa
    eta = s / np.sqrt(kappa)
    c = np.exp(-m * (m / kappa)) / np.sqrt(kappa)
    tau0 = (z0 - m) / s
    tau1 = (z1 - m) / s
    zeta0 = (z0 - gamma) / eta
    zeta1 = (z1 - gamma) / eta
    last0 = z0 + np.abs(m)
    last1 = np.where(np.isfinite(z1), z1, 0.0) + np.abs(m)
    moments, sizes = _normal_moments(zeta0, zeta1, last0 / eta, last1 / eta)
    m1, m2, m3, m4 = (_raw_moment(k, gamma, eta, moments) for k in (1, 2, 3, 4))
    a1, a2, a3, a4 = (_raw_moment(k, np.abs(gamma), eta, sizes) for k in (1, 2, 3, 4))
    mass, mass_size = _mass(tau0, tau1)
    mass_size = mass_size + _phi(tau0) * last0 / s + _phi(tau1) * last1 / s
    value = c * m2 - level * mass
    # rho' = 2 z (1 - z**2) exp(-z**2), rho'' = (2 - 10 z**2 + 4 z**4) exp(-z**2)
    closed = np.isfinite(z1)
    kink1 = np.where(closed, np.where(closed, v[1], 0.0) / np.where(closed, z1, 1.0), 0.0)
    kink0 = -v[0] / np.where(z0 > 0.0, z0, 1.0)
    kinks = 2.0 * level * (kink0 * _phi(tau0) + kink1 * _phi(tau1))  # slope = 2 level (1/z - z)
    d_mean = 2.0 * c * (m1 - m3)
    d_std = s * c * (2.0 * moments[0] - 10.0 * m2 + 4.0 * m4) + kinks
    # Each is accurate while its terms are not too large beside what is left of them.
    size = np.maximum(c * a2 + level * mass_size, 2.0 * s * c * (a1 + a3))
    bend_size = s * (s * c * (2.0 * sizes[0] + 10.0 * a2 + 4.0 * a4) + kinks)
    sound = (value > MIN_SHARE * np.maximum(size, bend_size)) & (value > SMALLEST)
    return ClosedForm(value, d_mean, d_std, sound)


def _phi(x: Array) -> Array:
    """Return the standard normal density."""
    return np.exp(-0.5 * np.square(np.clip(x, -FAR, FAR))) / math.sqrt(2.0 * math.pi)


def _mass(low: Array, high: Array) -> tuple[Array, Array]:
    """Return Phi(high) - Phi(low) from the tail that keeps its digits, and Phi + Phi."""
    flip = low > 0.0
    upper = scipy.special.ndtr(np.where(flip, -low, high))
    lower = scipy.special.ndtr(np.where(flip, -high, low))
    return upper - lower, upper + lower


def _normal_moments(
    low: Array, high: Array, low_error: Array, high_error: Array
) -> tuple[list[Array], list[Array]]:
    """Return ``m_k = (k - 1) m_{k-2} - [zeta**(k-1) phi]``, k = 0..4, and sizes of roundings."""
    a = np.clip(low, -HUGE, HUGE)
    b = np.clip(high, -HUGE, HUGE)
    fa = _phi(a)
    fb = _phi(b)
    a = np.clip(a, -FAR, FAR)
    b = np.clip(b, -FAR, FAR)
    mass, mass_size = _mass(low, high)
    ga = fa * (1.0 + np.abs(a) * low_error)
    gb = fb * (1.0 + np.abs(b) * high_error)
    moments = [mass, fa - fb]
    sizes = [mass_size + fa * low_error + fb * high_error, ga + gb]
    for k in (2, 3, 4):
        moments.append((k - 1) * moments[k - 2] - (b ** (k - 1) * fb - a ** (k - 1) * fa))
        ends = np.abs(b) ** (k - 1) * gb + np.abs(a) ** (k - 1) * ga
        sizes.append((k - 1) * sizes[k - 2] + ends)
    return moments, sizes


def _raw_moment(k: int, gamma: Array, eta: Array, moments: list[Array]) -> Array:
    """Return the integral of ``(gamma + eta zeta)**k phi``."""
    terms = [math.comb(k, j) * gamma ** (k - j) * eta**j * moments[j] for j in range(k + 1)]
    return np.asarray(np.sum(terms, axis=0))
