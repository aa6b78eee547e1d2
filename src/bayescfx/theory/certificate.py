"""CFX-Potential-Localopt: what certifies a locally optimal counterfactual (Appendix A).

A solution of the problem is a point ``c`` of the domain with

    ‖c − Π[c + η ∇ρ(f(c))]‖₂ ≤ δ,

or a witness that the input breaks what it claims: a pair of points at which f, ∇f, ρ or ∇ρ is not
L-Lipschitz, or a point at which ∇f (∇ρ) is not the gradient of f (ρ). Every solution carries the
numbers with which it can be checked.

A point where the potential is flat satisfies the condition trivially: local optimality says
nothing about reaching the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.family import Potential
from bayescfx.search.gradient import ProjectedGradient, Visit, localopt_residual
from bayescfx.search.question import Question

Circuit: TypeAlias = Literal["f", "gradient of f", "rho", "gradient of rho"]
Field: TypeAlias = Callable[[Array], Array]

_ROUNDING = 16.0 * np.finfo(float).eps  # relative error that a circuit may make


class Domain(Protocol):
    """A convex set of points ``(k,)``."""

    def project(self, z: Array) -> Array:
        """Return the Euclidean projection of a point ``(k,)``."""
        ...

    def contains(self, Z: Array) -> Mask:
        """Return which points ``(n, k)`` belong to the set."""
        ...

    def settle(self, Z: Array) -> Array:
        """Return the nearest points ``(n, k)`` that can be told to the model exactly."""
        ...


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """A point that the projected gradient step moves by no more than `delta`.

    Parameters
    ----------
    point : Array of shape (k,)
        The point c.
    residual : float
        ‖c − Π[c + η ∇ρ(f(c))]‖₂.
    delta : float
        The tolerance.
    """

    point: Array
    residual: float
    delta: float


@dataclass(frozen=True, eq=False)
class LipschitzViolation:
    """Two points at which a circuit is not L-Lipschitz.

    Parameters
    ----------
    which : {"f", "gradient of f", "rho", "gradient of rho"}
        The circuit.
    a, b : Array
        Its inputs: points ``(k,)`` for f and its gradient, outputs ``(1,)`` for rho and its slope.
    ratio : float
        How far apart its values are, relative to the distance of `a` and `b`; larger than L.
    """

    which: Circuit
    a: Array
    b: Array
    ratio: float


@dataclass(frozen=True, eq=False)
class GradientViolation:
    """A point at which the stated gradient is not that of the function.

    Were it, and L-Lipschitz, the difference quotient over a step ``h`` along one coordinate
    would differ from the stated component by at most ``L h / 2``.

    Parameters
    ----------
    which : {"f", "rho"}
        The function.
    point : Array of shape (k,) or (1,)
        Where.
    coordinate : int
        Along which coordinate.
    stated, measured : float
        The component as stated, and the difference quotient.
    bound : float
        By how much they may differ.
    """

    which: Literal["f", "rho"]
    point: Array
    coordinate: int
    stated: float
    measured: float
    bound: float


Solution: TypeAlias = LocalOptimum | LipschitzViolation | GradientViolation


@dataclass(frozen=True, eq=False)
class Instance:
    """The input of CFX-Potential-Localopt.

    Parameters
    ----------
    f : callable, (n, k) -> (n,)
        The model.
    gradient : callable, (n, k) -> (n, k)
        What is said to be its gradient.
    potential : Potential
        rho (``value``) and its derivative (``slope``).
    domain : Domain
        Projection onto the domain, and membership.
    eta, delta : float
        Step size and tolerance, positive.
    lipschitz : float, optional
        The constant L that all four circuits are said to keep; without it no violation is sought.
    """

    f: Field
    gradient: Field
    potential: Potential
    domain: Domain
    eta: float
    delta: float
    lipschitz: float | None = None

    def ascent(self, c: Array) -> Array:
        """Return ∇ρ(f(c)), shape (k,), by the chain rule."""
        y = self.f(c[None, :])
        return np.asarray(self.potential.slope(y)[0] * self.gradient(c[None, :])[0])


def certify(
    instance: Instance, c: Array, visited: Array | None = None, *, difference: float | None = 1e-5
) -> Solution | None:
    """Return what makes `c` a solution of CFX-Potential-Localopt, or a violation, or None.

    Parameters
    ----------
    instance : Instance
        The input of the problem.
    c : Array of shape (k,)
        The candidate, in the domain.
    visited : Array of shape (n, k), optional
        Further points, among which violations are sought.
    difference : float or None, default 1e-5
        Step of the difference quotients that gradients are compared with; None leaves that out,
        as for gradients that are difference quotients themselves.

    Returns
    -------
    LocalOptimum, LipschitzViolation, GradientViolation or None
        None if `c` is no local optimum and no violation shows at the points given.

    Examples
    --------
    >>> from bayescfx.potentials.family import AEP
    >>> from bayescfx.search.polytope import Polytope
    >>> box = Polytope(np.zeros(1), np.full(1, 2.0), np.empty((0, 1)), np.empty(0))
    >>> double, two = lambda Z: 2 * Z[:, 0], lambda Z: np.full(Z.shape, 2.0)
    >>> instance = Instance(double, two, AEP(0.0, 1.0), box, eta=0.1, delta=1e-6, lipschitz=4.0)
    >>> certify(instance, np.array([0.5])).residual
    0.0
    >>> certify(instance, np.array([0.2])) is None
    True
    """
    residual = localopt_residual(c, instance.ascent(c), instance.eta, instance.domain.project)
    if residual <= instance.delta:
        return LocalOptimum(c, residual, instance.delta)
    if instance.lipschitz is None:
        return None
    Z = c[None, :] if visited is None else np.vstack([c, visited])
    found = lipschitz_violation(instance, Z)
    if found is not None or difference is None:
        return found
    return gradient_violation(instance, Z, difference)


def certify_run(
    search: ProjectedGradient,
    question: Question,
    visits: Sequence[Visit],
    *,
    lipschitz: float | None = None,
) -> Solution | None:
    """Return the certificate of a projected gradient ascent, or a witness against `lipschitz`.

    Parameters
    ----------
    search : ProjectedGradient
        The search.
    question : Question
        The question; rows not evaluated before are charged to its account.
    visits : sequence of Visit
        What ``search.visits(question)`` yielded.
    lipschitz : float, optional
        The L that f, ∇f, ρ and ∇ρ are said to keep, in units of the features' scales.

    Returns
    -------
    LocalOptimum, LipschitzViolation, GradientViolation or None
        About the visit of highest potential among those where the certificate holds, else about
        the last; points are coordinates in units of the scales.
    """
    chosen = _best(question, visits, search.tolerance)
    slopes = search.slopes(question, chosen.point)
    part = slopes.part
    instance = Instance(
        slopes.outputs,
        slopes.gradients,
        question.potential,
        part,
        chosen.step,
        search.tolerance,
        lipschitz,
    )
    alike = [part.coordinates(visit.point) for visit in visits if part.holds(visit.point)]
    # difference quotients can't disprove a gradient made of difference quotients
    check = None if search.gradient is None else 1e-5
    return certify(instance, part.coordinates(chosen.point), np.array(alike), difference=check)


def _best(question: Question, visits: Sequence[Visit], tolerance: float) -> Visit:
    """Return the certified visit of highest potential, or else the last visit."""
    certified = [visit for visit in visits if visit.residual <= tolerance]
    if not certified:
        return visits[-1]
    return max(certified, key=lambda visit: float(question.potential.value(visit.output)))


def lipschitz_violation(instance: Instance, Z: Array) -> LipschitzViolation | None:
    """Return the pair of points that breaks L-Lipschitz continuity most, of any circuit, or None.

    Parameters
    ----------
    instance : Instance
        With a Lipschitz constant.
    Z : Array of shape (n, k)
        Points of the domain.
    """
    L = _stated(instance)
    y = instance.f(Z)
    outputs = y[:, None]
    circuits: tuple[tuple[Circuit, Array, Array], ...] = (
        ("f", Z, outputs),
        ("gradient of f", Z, instance.gradient(Z)),
        ("rho", outputs, instance.potential.value(y)[:, None]),
        ("gradient of rho", outputs, instance.potential.slope(y)[:, None]),
    )
    found = [_steepest(which, inputs, values) for which, inputs, values in circuits]
    worst = max(found, key=lambda pair: pair.ratio)
    return worst if worst.ratio > L else None


def _steepest(which: Circuit, inputs: Array, values: Array) -> LipschitzViolation:
    """Return the pair with the largest ratio, rounding errors given the benefit of the doubt."""
    apart = np.linalg.norm(inputs[:, None] - inputs[None], axis=-1)
    rise = np.linalg.norm(values[:, None] - values[None], axis=-1)
    rise -= _ROUNDING * np.linalg.norm(values, axis=1).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((apart > 0.0) & (rise > 0.0), rise / apart, 0.0)
    i, j = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return LipschitzViolation(which, inputs[i], inputs[j], float(ratio[i, j]))


def gradient_violation(
    instance: Instance, Z: Array, difference: float = 1e-5
) -> GradientViolation | None:
    """Return a point at which a stated gradient is not that of its function, or None.

    Parameters
    ----------
    instance : Instance
        With a Lipschitz constant.
    Z : Array of shape (n, k)
        Points of the domain.
    difference : float, default 1e-5
        Step of the difference quotients.
    """
    L = _stated(instance)
    y, rho = instance.f(Z), instance.potential
    for z, value, stated in zip(Z, y, instance.gradient(Z), strict=True):
        rows, coordinates = _steps(instance.domain, z, difference)
        steps = _Steps(z, float(value), stated, rows, coordinates)
        found = steps.mismatch("f", instance.f, L)
        if found is not None:
            return found
    for value in y:
        at = np.array([value])
        rows, first = at[None, :] + difference * max(1.0, abs(value)), np.zeros(1, dtype=np.intp)
        steps = _Steps(at, float(rho.value(value)), rho.slope(at), rows, first)
        found = steps.mismatch("rho", lambda Y: rho.value(Y[:, 0]), L)
        if found is not None:
            return found
    return None


@dataclass(frozen=True)
class _Steps:
    """Points ``(m, k)`` one step along one coordinate ``(m,)`` each from a point ``(k,)``."""

    point: Array
    value: float
    stated: Array
    rows: Array
    coordinates: Indices

    def mismatch(
        self, which: Literal["f", "rho"], function: Field, L: float
    ) -> GradientViolation | None:
        """Return the worst difference between quotient and gradient, if it proves anything."""
        if not len(self.rows):
            return None
        at = self.coordinates
        by = self.rows[np.arange(len(at)), at] - self.point[at]
        measured, stated, h = (function(self.rows) - self.value) / by, self.stated[at], np.abs(by)
        # rounding of the values, and of the points, which the slope passes on
        rounding = _ROUNDING * (abs(self.value) + np.abs(stated * self.point[at])) / h
        bound = 0.5 * L * h + rounding
        i = int(np.argmax(np.abs(measured - stated) - bound))
        if not abs(measured[i] - stated[i]) > bound[i]:
            return None
        numbers = (float(part[i]) for part in (stated, measured, bound))
        return GradientViolation(which, self.point, int(at[i]), *numbers)


def _steps(domain: Domain, z: Array, difference: float) -> tuple[Array, Indices]:
    """Return points one step forwards, or else backwards, along each coordinate, in the domain."""
    ahead = domain.settle(z + difference * np.eye(len(z)))
    back = domain.settle(z - difference * np.eye(len(z)))
    forwards, backwards = domain.contains(ahead), domain.contains(back)
    rows = np.where(forwards[:, None], ahead, back)
    at = np.flatnonzero((forwards | backwards) & (np.diagonal(rows) != z))
    return rows[at], at


def _stated(instance: Instance) -> float:
    if instance.lipschitz is None:
        raise ValueError("`lipschitz` must be a positive number; got None. State the constant L.")
    return instance.lipschitz
