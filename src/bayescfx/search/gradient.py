"""Projected gradient ascent of the potential (Section 2.1).

The paper's recurrence is ``x <- Π[x + η ∇ρ(f(x))]``. It works on the continuous features, each in
units of its own scale (:mod:`bayescfx.space.slice`), and ends at a point for which the
certificate of CFX-Potential-Localopt holds (:mod:`bayescfx.theory.certificate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from bayescfx.arrays import Array
from bayescfx.checks import check_positive, check_whole
from bayescfx.errors import SpaceError
from bayescfx.search.question import Ending, Question
from bayescfx.search.slopes import Slopes
from bayescfx.search.start import fresh_rows
from bayescfx.space.slice import Slice


@dataclass(frozen=True, eq=False)
class Visit:
    """One point of the recurrence."""

    point: Array  # codes (d,)
    output: float  # f(point)
    slope: Array  # ∇f(point), shape (k,), in units of the features' scales; 0 if not known
    gradient: Array  # ∇ρ(f(point)), shape (k,), in the same units
    step: float  # the η of the certificate
    residual: float  # ‖x − Π[x + η ∇ρ(f(x))]‖₂ in the same units
    known: bool = True  # the slope in every direction; without it a residual certifies nothing


@dataclass(frozen=True)
class ProjectedGradient:
    """Follow the gradient of the potential, projected onto the region.

    Only continuous features move; the others keep the value of the start. Numbers whose step was
    seen in the data count as continuous, so that answers may have more decimals than the data.
    Steps and residuals are Euclidean in units of the features' scales. Limits and linear rules are
    projected onto exactly (linear rules need the extra ``gradient``); other rules and the bound on
    changes are met by the region's own repair, and where that allows no step upwards the ascent
    ends without a certificate.

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

    continuous: ClassVar[bool] = True  # steps that were inferred from data are lifted for it

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
        """Yield the points of the recurrence, start after start, until a certified one hits."""
        if not len(Slice(question.region, question.region.query).features):
            raise SpaceError(
                "`ProjectedGradient` needs a continuous feature that may move; this query has "
                "none. Use another method, such as 'bayes-cfx'."
            )
        for slopes, start in self._starts(question):
            for visit in self._climb(slopes, start):
                yield visit
                certified = visit.residual <= self.tolerance
                if certified and question.accepted(np.array([visit.output]))[0]:
                    return

    def slopes(self, question: Question, row: Array) -> Slopes:
        """Return the model's slopes on the slice through a row."""
        part = Slice(question.region, row)
        return Slopes(question, part, self.gradient, self.difference)

    def _visit(self, slopes: Slopes, x: Array | None, eta: float | None = None) -> Visit | None:
        """Return a visit to a row, with its own η if none is given; None if the model fails."""
        found = None if x is None else slopes.at(x)
        if x is None or found is None:
            return None
        question, part, (output, slope) = slopes.question, slopes.part, found
        known = not np.isnan(slope).any()
        slope = np.nan_to_num(slope, nan=0.0)
        eta = eta or self.step or natural_step(question, slope)
        gradient = np.asarray(float(question.potential.slope(output)) * slope)
        residual = localopt_residual(part.coordinates(x), gradient, eta, part.project)
        return Visit(x, output, slope, gradient, eta, residual, known)

    def _starts(self, question: Question) -> Iterator[tuple[Slopes, Visit]]:
        """Yield where to start: the query, or one push away from it to each side wanted."""
        query = question.region.query
        first = [query] if question.region.contains(query[None, :])[0] else []
        for row in chain(first, islice(fresh_rows(question), self.restarts)):
            slopes = self.slopes(question, row)
            visit = self._visit(slopes, row)
            if visit is None:
                continue
            aims = _aims(question, visit.output)
            if row is not query and aims:  # the nearer side will do
                gaps = [abs(aim - visit.output) for aim in aims]
                aims = [aims[gaps.index(min(gaps))]]
            if not aims or not self._flat(question, visit):
                yield slopes, visit
            else:
                yield from ((slopes, self._lifted(slopes, visit, aim)) for aim in aims)

    def _flat(self, question: Question, visit: Visit) -> bool:
        """Return whether the certificate holds, trivially, where the target is missed."""
        hit = question.accepted(np.array([visit.output]))[0]
        return not hit and visit.residual <= self.tolerance

    def _lifted(self, slopes: Slopes, visit: Visit, aim: float) -> Visit:
        """Return where the potential is not flat, by pushing the output towards `aim`."""
        for _ in range(4):
            steepness = float(visit.slope @ visit.slope)
            if steepness == 0.0 or not self._flat(slopes.question, visit):
                break
            push = 0.5 * (aim - visit.output) / steepness
            z = slopes.part.coordinates(visit.point)
            landed = slopes.part.land(slopes.part.project(z + push * visit.slope))
            pushed = self._visit(slopes, landed)
            if pushed is None or (pushed.point == visit.point).all():
                break
            visit = pushed
        return visit

    def _climb(self, slopes: Slopes, visit: Visit) -> Iterator[Visit]:
        length = visit.step
        for _ in range(self.iterations):
            slopes.question.deadline.check()
            yield visit
            if visit.residual <= self.tolerance:
                return
            landed: Array | None
            if self.backtrack:
                landed, length = self._ascent(slopes, visit, length)
            else:  # whatever its potential
                landed = slopes.part.land(_step(slopes.part, visit, length))
            moved = self._visit(slopes, landed, visit.step)
            if moved is None:
                return
            visit = moved

    def _ascent(self, slopes: Slopes, visit: Visit, t: float) -> tuple[Array | None, float]:
        """Return a row that raises the potential enough, or None, and the length to try next."""
        rho, part = slopes.question.potential, slopes.part
        z, value = part.coordinates(visit.point), float(rho.value(visit.output))
        for _ in range(24):
            landed = part.land(_step(part, visit, t))
            if landed is None:
                t *= 0.5
                continue
            gap = float(np.linalg.norm(part.coordinates(landed) - z))
            if gap <= 1e-3 * self.tolerance:
                break
            output = float(slopes.question.account.evaluate(landed[None, :])[0])
            # the gain relative to what the slope promises, by Armijo's rule along the projection
            # arc; it is 1 - t / (2 t*) where t* leads to the top of a parabola
            share = (float(rho.value(output)) - value) * t / gap**2
            best = t / (2.0 * max(1.0 - share, 0.1)) if np.isfinite(share) else 0.0
            if share >= 0.25:
                return landed, max(best, 0.5 * t)
            t = min(max(best, 0.1 * t), 0.5 * t)
        return None, t


def localopt_residual(
    c: Array, gradient: Array, eta: float, projection: Callable[[Array], Array]
) -> float:
    """Return ‖c − Π[c + η ∇ρ(f(c))]‖₂ at a point ``(k,)`` with gradient ∇ρ(f(c)) ``(k,)``."""
    return float(np.linalg.norm(c - projection(c + eta * gradient)))


def natural_step(question: Question, slope: Array) -> float:
    """Return ``1 / (L ‖∇f‖²)``, with ``L`` the largest curvature of the potential on the way."""
    # From f(query) to the wanted outputs and as far beyond. With this step the recurrence
    # overshoots a local optimum of a linear model by no more than it was short.
    steepness = float(slope @ slope)
    ends = [question.output, *_aims(question, question.output)]
    reach = max(ends) - min(ends)
    if steepness == 0.0 or reach == 0.0:
        return 1.0
    y = np.linspace(min(ends) - reach, max(ends) + reach, 257)
    curvature = float(np.abs(np.diff(question.potential.slope(y)) / np.diff(y)).max())
    return 1.0 / (curvature * steepness) if curvature > 0.0 else 1.0


def _aims(question: Question, output: float) -> list[float]:
    """Return the nearest output of each interval wanted that does not hold `output`."""
    nearest = [min(max(output, low), high) for low, high in question.wanted]
    return [aim for aim in nearest if aim != output]


def _step(part: Slice, visit: Visit, length: float) -> Array:
    """Return Π[z + t ∇ρ(f(z))], shape (k,)."""
    return part.project(part.coordinates(visit.point) + length * visit.gradient)
