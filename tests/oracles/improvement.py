"""Log EI-CFX in high precision (at least 60 digits), straight from its definition.

Nothing is shared with the library. The EP family is done by the closed form with Lambert's W in as
many digits as its cancellation needs; plateaus by composite Gauss-Legendre with 40 nodes on
short pieces. Derivatives of the EP family are central differences in the same precision; those
of plateaus are integrals of the exact derivatives of the integrand, because deep inside a range
they are smaller than any difference can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath as mp

DIGITS = 60
_FAR = 160  # nats below the largest piece where a piece is left out: 1e-69


@dataclass(frozen=True)
class Question:
    """One evaluation of log EI-CFX: a potential by its numbers, and the three arguments."""

    kind: str  # "aep+", "aep-", "sep", "valley" or "plateau"; "valley+", "valley-": a side
    shape: tuple[float, ...]  # (origin, width), or (low, high, width)
    mean: float
    std: float
    best: float

    def inputs(self) -> list[float]:
        return [*self.shape, self.mean, self.std, self.best]

    def changed(self, position: int, number: float) -> Question:
        inputs = self.inputs()
        inputs[position] = number
        n = len(self.shape)
        return Question(self.kind, tuple(inputs[:n]), inputs[n], inputs[n + 1], inputs[n + 2])

    def neighbours(self) -> list[Question]:
        """Return the questions that differ in the last place of one input."""
        found = []
        for position, number in enumerate(self.inputs()):
            if math.isfinite(number) and number != 0.0:
                for direction in (-math.inf, math.inf):
                    found.append(self.changed(position, math.nextafter(number, direction)))
        return found


def log_ei(question: Question, mean: Any = None, std: Any = None) -> Any:
    """Return log E[max(0, rho(y) - best)] for normal y, as an mpf."""
    with mp.workdps(DIGITS):
        mean = mp.mpf(question.mean) if mean is None else mean
        std = mp.mpf(question.std) if std is None else std
        best = mp.mpf(question.best)
        # potentials are not negative
        floor = max(-best, mp.mpf(0))
        best = max(best, mp.mpf(0))
        shape = [mp.mpf(x) for x in question.shape]
        if question.kind == "plateau":
            total = _plateau(shape, mean, std, best)[0]
        else:
            sides = {"+": (1,), "-": (-1,)}.get(question.kind[-1], (-1, 1))
            is_valley = question.kind.startswith("valley")
            origin, width = shape
            total = mp.fsum(
                _one_side(side * (mean - origin) / width, std / width, best, is_valley)
                for side in sides
            )
        total += floor
        return mp.log(total) if total > 0 else mp.mpf("-inf")


def gradient(question: Question) -> tuple[Any, Any]:
    """Return d log EI / d mean and / d std."""
    with mp.workdps(DIGITS):
        mean = mp.mpf(question.mean)
        std = mp.mpf(question.std)
        if question.kind == "plateau":
            best = mp.mpf(question.best)
            shape = [mp.mpf(x) for x in question.shape]
            total, slope, bend = _plateau(shape, mean, std, max(best, mp.mpf(0)))
            total += max(-best, mp.mpf(0))
            return slope / total, std * bend / total
        if question.best < 0.0:  # the floor adds no slope, so scale the inner gradient
            inner = question.changed(len(question.inputs()) - 1, 0.0)
            share = mp.exp(log_ei(inner) - log_ei(question))
            return tuple(share * part for part in gradient(inner))
        h = std * mp.mpf(10) ** -12
        d_mean = (log_ei(question, mean + h, std) - log_ei(question, mean - h, std)) / (2 * h)
        d_std = (log_ei(question, mean, std + h) - log_ei(question, mean, std - h)) / (2 * h)
        return d_mean, d_std


def ulp_effect(question: Question) -> float:
    """Return the change of log EI for one unit in the last place of any input."""
    value = log_ei(question)
    return max(float(abs(log_ei(other) - value)) for other in question.neighbours())


def gradient_effect(question: Question) -> tuple[float, float]:
    """Return the change of the gradient for one unit in the last place of any input."""
    here = gradient(question)
    effects = [0.0, 0.0]
    for other in question.neighbours():
        for k, part in enumerate(gradient(other)):
            effects[k] = max(effects[k], float(abs(part - here[k])))
    return effects[0], effects[1]


def term_sizes(question: Question) -> tuple[float, float]:
    """Return the sizes of the two sides' terms in the gradient of a symmetric potential.

    A sum is known to no better than the roundings of its terms; 0 for all other potentials.
    """
    one_sided = {"sep": ("aep-", "aep+"), "valley": ("valley-", "valley+")}.get(question.kind)
    if one_sided is None:
        return 0.0, 0.0
    sizes = [0.0, 0.0]
    for kind in one_sided:
        side = Question(kind, question.shape, question.mean, question.std, max(question.best, 0.0))
        share = mp.exp(log_ei(side) - log_ei(question))
        for k, part in enumerate(gradient(side)):
            sizes[k] += float(abs(share * part))
    return sizes[0], sizes[1]


def _one_side(m: Any, s: Any, best: Any, is_valley: bool = False) -> Any:
    """Return EI of ``z**2 exp(-z**2)``, z > 0, with digits doubled until they suffice."""
    digits = DIGITS
    previous = None
    while digits < 10_000:
        with mp.workdps(digits):
            value = _closed_form(+m, +s, +best, is_valley)
        if previous is not None and abs(value - previous) <= mp.mpf(10) ** -50 * abs(value):
            return value
        previous = value
        digits = 2 * digits
    raise ArithmeticError(f"no convergence at {m}, {s}, {best}")


def _closed_form(m: Any, s: Any, best: Any, is_valley: bool) -> Any:
    if best >= mp.exp(-1):
        return mp.mpf(0)
    z0 = mp.sqrt(-mp.lambertw(-best, 0).real) if best else mp.mpf(0)
    z1 = mp.sqrt(-mp.lambertw(-best, -1).real) if best else mp.inf
    beyond = mp.mpf(0)
    if is_valley:  # it ends at its peak, and stays there
        z1 = mp.mpf(1)
        beyond = (mp.exp(-1) - best) * _mass((z1 - m) / s, mp.inf)
    kappa = 1 + 2 * s * s
    gamma = m / kappa
    eta = s / mp.sqrt(kappa)
    a = (z0 - gamma) / eta
    b = (z1 - gamma) / eta
    m0 = _mass(a, b)
    m1 = _density(a) - _density(b)
    m2 = m0 + _moment(a) - _moment(b)
    inner = gamma * gamma * m0 + 2 * gamma * eta * m1 + eta * eta * m2
    scale = mp.exp(-m * m / kappa) / mp.sqrt(kappa)
    return scale * inner - best * _mass((z0 - m) / s, (z1 - m) / s) + beyond


def _density(x: Any) -> Any:
    return mp.mpf(0) if mp.isinf(x) else mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _moment(x: Any) -> Any:
    return mp.mpf(0) if mp.isinf(x) else x * _density(x)


def _mass(a: Any, b: Any) -> Any:
    """Return the normal probability of [a, b], from the tail that keeps its digits."""
    if a < 0 < b:
        return 1 - _upper(-a) - _upper(b)
    return _upper(a) - _upper(b) if a >= 0 else _upper(-b) - _upper(-a)


def _upper(x: Any) -> Any:
    return mp.mpf(0) if x == mp.inf else mp.erfc(x / mp.sqrt(2)) / 2


def _plateau(shape: list[Any], mean: Any, std: Any, best: Any) -> tuple[Any, Any, Any]:
    """Return E[g], E[g'] and E[g''] of a plateau's improvement g.

    The flat part counts by its probability, the tails piece by piece; the kink at the end of the
    superlevel set is the part of g'' that is no function.
    """
    low, high, width = shape
    peak = mp.mpf(math.exp(-1.0))
    if best >= peak:
        return mp.mpf(0), mp.mpf(0), mp.mpf(0)
    end = mp.sqrt(peak / best - 1) if best else mp.mpf(10) ** 40
    total = mp.mpf(0)
    slope = mp.mpf(0)
    bend = mp.mpf(0)
    if low < high:
        total += (peak - best) * _mass((low - mean) / std, (high - mean) / std)
    knots = [mp.mpf(0), *(mp.mpf(2) ** k for k in range(-1, 133))]
    knots = [k for k in knots if k < end] + [end]
    s = std / width
    tops = []
    for corner, sign in ((low, -1), (high, 1)):
        if mp.isfinite(corner):
            m = sign * (mean - corner) / width
            if best:
                bend += 2 * end / (1 + end * end) ** 2 * _density((end - m) / s) / s
            for a, b in pairwise(knots):
                near = (min(max(m, a), b) - m) / s
                tops.append((-near * near / 2, near, sign, m, a, b))
    largest = max(top for top, *_ in tops)
    for top, near, sign, m, a, b in tops:
        if top >= largest - _FAR:
            reach = mp.sqrt(near * near + 2 * _FAR)
            ends = max(a, m - reach * s), min(b, m + reach * s)
            gain, first, second = _piece(lambda z: _improvement(z, best / peak), ends, m, s)
            total += peak * gain
            slope += sign * first
            bend += second
    return total, peak * slope / width, peak * bend / width**2


def _improvement(z: Any, level: Any) -> tuple[Any, Any, Any]:
    """Return improvement, slope and bend of a tail in peaks, at z widths from the range."""
    fall = 1 / (1 + z * z)
    return fall - level, -2 * z * fall * fall, (6 * z * z - 2) * fall**3


def _piece(parts: Callable[[Any], Any], ends: tuple[Any, Any], m: Any, s: Any) -> list[Any]:
    """Integrate each of some functions times N over an interval by composite Gauss-Legendre."""
    a, b = ends
    if b <= a:
        return [mp.mpf(0)] * 3
    pieces = max(2, min(12, int(mp.ceil((b - a) / (2 * s)))))
    # A steep density needs short pieces even on a short interval.
    steep = max(abs(a - m), abs(b - m)) / s * ((b - a) / s)
    pieces = max(pieces, min(12, int(mp.ceil(steep / 20))))
    totals = [mp.mpf(0)] * 3
    half = (b - a) / pieces / 2
    for k in range(pieces):
        middle = a + (2 * k + 1) * half
        for x, w in _legendre(40):
            z = middle + half * x
            weight = w * mp.exp(-(((z - m) / s) ** 2) / 2)
            totals = [t + weight * p for t, p in zip(totals, parts(z), strict=True)]
    scale = half / s / mp.sqrt(2 * mp.pi)
    return [t * scale for t in totals]


@cache
def _legendre(n: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights of Gauss-Legendre on [-1, 1], by Newton from Chebyshev points."""
    with mp.workdps(2 * DIGITS):
        rule = []
        for k in range(1, n + 1):
            x = mp.cos(mp.pi * (k - mp.mpf(1) / 4) / (n + mp.mpf(1) / 2))
            for _ in range(9):
                p = mp.mpf(1)
                q = mp.mpf(0)
                for j in range(1, n + 1):
                    p, q = ((2 * j - 1) * x * p - (j - 1) * q) / j, p
                slope = n * (x * p - q) / (x * x - 1)
                x -= p / slope
            rule.append((x, 2 / ((1 - x * x) * slope * slope)))
    return rule
