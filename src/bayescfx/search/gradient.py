"""Projected gradient ascent of the potential (Section 2.1).

The paper's recurrence is ``x <- Π[x + η ∇ρ(f(x))]``. It works on the continuous features, each in
units of its own scale (:mod:`bayescfx.search.polytope`), and ends at a point for which the
certificate of CFX-Potential-Localopt holds (:mod:`bayescfx.theory.certificate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import SpaceError
from bayescfx.search.baselines import check_positive, check_whole
from bayescfx.search.draws import fresh_rows
from bayescfx.search.polytope import Slice
from bayescfx.search.question import Ending, Question
from bayescfx.search.slopes import Slopes, Spot

_ARMIJO = 0.25  # share of the gain promised by the slope that a step must keep
_TRIALS = 24  # lengths tried before an ascent counts as stuck
_LIFTS = 4  # pushes away from where the potential is flat
_SAMPLES = 257  # outputs at which the curvature of the potential is measured


@dataclass(frozen=True, eq=False)
class Visit:
    """One point of the recurrence.

    Parameters
    ----------
    point : Array of shape (d,)
        Codes.
    output : float
        f(point).
    gradient : Array of shape (k,)
        ∇ρ(f(point)) in units of the features' scales.
    step : float
        The η of the certificate.
    residual : float
        ‖x − Π[x + η ∇ρ(f(x))]‖₂ in the same units.
    """

    point: Array
    output: float
    gradient: Array
    step: float
    residual: float


@dataclass(frozen=True)
class ProjectedGradient:
    """Follow the gradient of the potential, projected onto the region.

    Only continuous features move; the others keep the value of the start. Steps and residuals are
    Euclidean in units of the features' scales. Limits and linear rules are projected onto exactly
    (linear rules need the extra ``gradient``); other rules and the bound on changes are met by the
    region's own repair, and where that allows no step upwards the ascent ends without a
    certificate.

    The query is a stationary point of every EP potential. Where the potential is flat at a start
    that does not reach the target, the start is therefore first pushed along the gradient of f,
    half way to the wanted output.

    Parameters
    ----------
    step : float, optional
        The step size η. By default one over the curvature of the potential seen through the
        model's slope at the start, see :func:`natural_step`.
    tolerance : float, default 1e-3
        The δ of the certificate.
    gradient : callable, optional
        Rows, as the model gets them, to the derivatives of the model's output: one column for
        each of theirs, or for each numeric one, or a frame with their names. By default
        finite differences, one model row per continuous feature.
    difference : float, default 1e-4
        Width of finite differences, as a share of each feature's range.
    backtrack : bool, default True
        Shorten steps that don't raise the potential, and lengthen those that do. The certificate
        always speaks of η. Without, every step is the plain recurrence.
    restarts : int, default 8
        How often to start again at a random row while the target is not reached.
    iterations : int, default 500
        The most steps from one start.

    Examples
    --------
    >>> ProjectedGradient(step=0.1, backtrack=False).tolerance
    0.001
    """

    step: float | None = None
    tolerance: float = 1e-3
    gradient: Callable[[Any], Any] | None = field(default=None, repr=False)
    difference: float = 1e-4
    backtrack: bool = True
    restarts: int = 8
    iterations: int = 500

    def __post_init__(self) -> None:
        if self.step is not None:
            check_positive("step", self.step)
        check_positive("tolerance", self.tolerance)
        check_positive("difference", self.difference)
        check_whole("restarts", self.restarts, 0)
        check_whole("iterations", self.iterations, 1)

    def run(self, question: Question) -> Ending:
        """Follow the recurrence from the query, then from random rows."""
        for _ in self.visits(question):
            pass
        return "converged"

    def visits(self, question: Question) -> Iterator[Visit]:
        """Yield the points of the recurrence, start after start.

        Ends when the certificate holds at a point that reaches the target, or no restart is left.

        Raises
        ------
        SpaceError
            If no continuous feature may move.
        """
        if not len(Slice(question.region, question.region.query).features):
            raise SpaceError(
                "`ProjectedGradient` needs a continuous feature that may move; this query has "
                "none. Use another method, such as 'bayes-cfx'."
            )
        for slopes, spot in self._starts(question):
            eta = self._eta(question, spot)
            for visit in self._climb(slopes, spot, eta):
                yield visit
                certified = visit.residual <= self.tolerance
                if certified and question.accepted(np.array([visit.output]))[0]:
                    return

    # ── starts ──

    def slopes(self, question: Question, row: Array) -> Slopes:
        """Return the model's slopes on the slice through a row."""
        part = Slice(question.region, row)
        return Slopes(question, part, self.gradient, self.difference)

    def _starts(self, question: Question) -> Iterator[tuple[Slopes, Spot]]:
        """Yield where to start: the query, or one push away from it to each side wanted."""
        region = question.region
        if region.contains(region.query[None, :])[0]:
            slopes = self.slopes(question, region.query)
            spot = slopes.at(region.query)
            aims = _aims(question, question.output)
            if spot is not None and aims and self._flat(question, slopes, spot):
                for aim in aims:
                    yield slopes, self._lifted(question, slopes, spot, aim)
            elif spot is not None:
                yield slopes, spot
        for row in islice(fresh_rows(question), self.restarts):
            slopes = self.slopes(question, row)
            spot = slopes.at(row)
            if spot is not None:
                aims = _aims(question, spot.output)
                nearest = min(aims, key=lambda aim: abs(aim - spot.output), default=spot.output)
                yield slopes, self._lifted(question, slopes, spot, nearest)

    def _lifted(self, question: Question, slopes: Slopes, spot: Spot, aim: float) -> Spot:
        """Return a spot where the potential is not flat, by pushing the output towards `aim`."""
        for _ in range(_LIFTS):
            steepness = float(spot.slope @ spot.slope)
            if steepness == 0.0 or not self._flat(question, slopes, spot):
                break
            push = 0.5 * (aim - spot.output) / steepness
            z = slopes.part.coordinates(spot.point)
            landed = slopes.part.land(slopes.part.project(z + push * spot.slope))
            pushed = None if landed is None else slopes.at(landed)
            if pushed is None or (pushed.point == spot.point).all():
                break
            spot = pushed
        return spot

    def _flat(self, question: Question, slopes: Slopes, spot: Spot) -> bool:
        """Return whether the certificate holds, trivially, at a spot that misses the target."""
        visit = _visit(question, slopes.part, spot, self._eta(question, spot))
        hit = question.accepted(np.array([spot.output]))[0]
        return not hit and visit.residual <= self.tolerance

    def _eta(self, question: Question, spot: Spot) -> float:
        return natural_step(question, spot.slope) if self.step is None else self.step

    # ── the recurrence ──

    def _climb(self, slopes: Slopes, spot: Spot, eta: float) -> Iterator[Visit]:
        length = eta
        for _ in range(self.iterations):
            slopes.question.deadline.check()
            visit = _visit(slopes.question, slopes.part, spot, eta)
            yield visit
            if visit.residual <= self.tolerance:
                return
            moved = (self._ascent if self.backtrack else _plain)(slopes, visit, length)
            if moved is None:
                return
            spot, length = moved

    def _ascent(self, slopes: Slopes, visit: Visit, length: float) -> tuple[Spot, float] | None:
        """Return a spot that raises the potential enough, and the length to try next."""
        rho, part = slopes.question.potential, slopes.part
        z, value = part.coordinates(visit.point), float(rho.value(visit.output))
        t = length
        for _ in range(_TRIALS):
            landed = part.land(_step(part, visit, t))
            if landed is None:
                t *= 0.5
                continue
            gap = float(np.linalg.norm(part.coordinates(landed) - z))
            if gap <= 1e-3 * self.tolerance:
                return None
            output = float(slopes.question.account.evaluate(landed[None, :])[0])
            # the gain relative to what the slope promises, by Armijo's rule along the projection
            # arc; it is 1 - t / (2 t*) where t* leads to the top of a parabola
            share = (float(rho.value(output)) - value) * t / gap**2
            best = t / (2.0 * max(1.0 - share, 0.1)) if np.isfinite(share) else 0.0
            if share >= _ARMIJO:
                spot = slopes.at(landed)
                return None if spot is None else (spot, max(best, 0.5 * t))
            t = min(max(best, 0.1 * t), 0.5 * t)
        return None


def _plain(slopes: Slopes, visit: Visit, length: float) -> tuple[Spot, float] | None:
    """Return the spot that the recurrence leads to, whatever its potential."""
    landed = slopes.part.land(_step(slopes.part, visit, length))
    spot = None if landed is None else slopes.at(landed)
    return None if spot is None else (spot, length)


def localopt_residual(
    c: Array, gradient: Array, eta: float, projection: Callable[[Array], Array]
) -> float:
    """Return ‖c − Π[c + η ∇ρ(f(c))]‖₂.

    Parameters
    ----------
    c : Array of shape (k,)
        The point.
    gradient : Array of shape (k,)
        ∇ρ(f(c)).
    eta : float
        The step size.
    projection : callable
        Π, the Euclidean projection onto the domain.

    Examples
    --------
    >>> unit = lambda z: np.clip(z, 0.0, 1.0)
    >>> localopt_residual(np.array([1.0, 0.5]), np.array([2.0, 0.0]), 0.1, unit)
    0.0
    """
    return float(np.linalg.norm(c - projection(c + eta * gradient)))


def natural_step(question: Question, slope: Array) -> float:
    """Return ``1 / (L ‖∇f‖²)`` with ``L`` the largest curvature of the potential on the way.

    The way is from f(query) to the wanted outputs and as far beyond. For a linear model this is the
    step size for which the recurrence can't overshoot a local optimum by more than it was short.

    Parameters
    ----------
    question : Question
        Potential and wish.
    slope : Array of shape (k,)
        ∇f at the start.
    """
    steepness = float(slope @ slope)
    ends = [question.output, *_aims(question, question.output)]
    reach = max(ends) - min(ends)
    if steepness == 0.0 or reach == 0.0:
        return 1.0
    y = np.linspace(min(ends) - reach, max(ends) + reach, _SAMPLES)
    curvature = float(np.abs(np.diff(question.potential.slope(y)) / np.diff(y)).max())
    return 1.0 / (curvature * steepness) if curvature > 0.0 else 1.0


def _aims(question: Question, output: float) -> list[float]:
    """Return the nearest output of each interval wanted that does not hold `output`."""
    nearest = [min(max(output, low), high) for low, high in question.wanted]
    return [aim for aim in nearest if aim != output]


def _step(part: Slice, visit: Visit, length: float) -> Array:
    """Return Π[z + t ∇ρ(f(z))], shape (k,)."""
    return part.project(part.coordinates(visit.point) + length * visit.gradient)


def _visit(question: Question, part: Slice, spot: Spot, eta: float) -> Visit:
    """Return a spot with the gradient of the potential and its residual."""
    gradient = np.asarray(float(question.potential.slope(spot.output)) * spot.slope)
    residual = localopt_residual(part.coordinates(spot.point), gradient, eta, part.project)
    return Visit(spot.point, spot.output, gradient, eta, residual)
