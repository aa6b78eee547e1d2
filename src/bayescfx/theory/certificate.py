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
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.errors import SettingsError
from bayescfx.potentials import Potential
from bayescfx.search.gradient import ProjectedGradient, Visit, localopt_residual
from bayescfx.search.polytope import Polytope, Slice
from bayescfx.search.question import Question

Circuit: TypeAlias = Literal["f", "gradient of f", "rho", "gradient of rho"]
Field: TypeAlias = Callable[[Array], Array]
Domain: TypeAlias = Polytope | Slice  # or any other convex set that can do what these can

_ROUNDING = 16.0 * np.finfo(float).eps  # relative error that a circuit may make


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """A point that the projected gradient step moves by no more than `delta`."""

    point: Array  # c, shape (k,)
    residual: float  # ‖c − Π[c + η ∇ρ(f(c))]‖₂
    delta: float  # the tolerance


@dataclass(frozen=True, eq=False)
class LipschitzViolation:
    """Two points at which a circuit is not L-Lipschitz."""

    which: Circuit
    a: Array  # its inputs: (k,) for f and its gradient, (1,) for rho and its slope
    b: Array
    ratio: float  # distance of its values over that of its inputs; larger than L


@dataclass(frozen=True, eq=False)
class GradientViolation:
    """A point at which the stated gradient is not that of the function.

    Were it, and L-Lipschitz, the difference quotient over a step ``h`` along one coordinate
    would differ from the stated component by at most ``L h / 2``.
    """

    which: Literal["f", "rho"]
    point: Array  # (k,) or (1,)
    coordinate: int
    stated: float  # the component
    measured: float  # the difference quotient
    bound: float  # by how much they may differ


Solution: TypeAlias = LocalOptimum | LipschitzViolation | GradientViolation


@dataclass(frozen=True, eq=False)
class Instance:
    """The input of CFX-Potential-Localopt."""

    f: Field  # the model, (n, k) -> (n,)
    gradient: Field  # what is said to be its gradient, (n, k) -> (n, k)
    potential: Potential  # rho (`value`) and its derivative (`slope`)
    domain: Domain
    eta: float  # step size
    delta: float  # tolerance
    lipschitz: float | None = None  # the L of all four circuits; without it no violation is sought

    @property
    def constant(self) -> float:
        """L, or an error if none is stated."""
        if self.lipschitz is None:
            raise SettingsError(
                "`lipschitz` must be a positive number; got None. State the constant L."
            )
        return self.lipschitz

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
    >>> from bayescfx.potentials import AEP
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

    It is about the one of ``search.visits(question)`` with the highest potential where the
    certificate holds, else about the last; points are in units of the features' scales. Rows not
    evaluated before are charged to the question's account.
    """
    certified = [visit for visit in visits if visit.residual <= search.tolerance]
    rho = question.potential
    chosen = max(certified, key=lambda visit: float(rho.value(visit.output)), default=visits[-1])
    slopes = search.slopes(question, chosen.point)
    part, f, gradient = slopes.part, slopes.outputs, slopes.gradients
    instance = Instance(f, gradient, rho, part, chosen.step, search.tolerance, lipschitz)
    alike = [part.coordinates(visit.point) for visit in visits if part.holds(visit.point)]
    # difference quotients can't disprove a gradient made of difference quotients
    check = None if search.gradient is None else 1e-5
    return certify(instance, part.coordinates(chosen.point), np.array(alike), difference=check)


def lipschitz_violation(instance: Instance, Z: Array) -> LipschitzViolation | None:
    """Return the pair of points ``(n, k)`` that breaks L-Lipschitz continuity most, or None."""
    L, y = instance.constant, instance.f(Z)
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
    """Return a point of ``(n, k)`` at which a stated gradient is not that of its function."""
    L, y, rho = instance.constant, instance.f(Z), instance.potential
    slope = rho.slope(y)
    functions: tuple[tuple[Literal["f", "rho"], Field, Domain | None, Array, Array, Array], ...] = (
        ("f", instance.f, instance.domain, Z, y, instance.gradient(Z)),
        ("rho", lambda Y: rho.value(Y[:, 0]), None, y[:, None], rho.value(y), slope[:, None]),
    )
    for which, function, domain, points, values, gradients in functions:
        for point, value, gradient in zip(points, values, gradients, strict=True):
            rows, at = _steps(domain, point, difference)
            if not len(at):
                continue
            by = rows[np.arange(len(at)), at] - point[at]
            measured, stated, h = (function(rows) - value) / by, gradient[at], np.abs(by)
            # rounding of the values, and of the points, which the slope passes on
            rounding = _ROUNDING * (abs(value) + np.abs(stated * point[at])) / h
            bound = 0.5 * L * h + rounding
            i = int(np.argmax(np.abs(measured - stated) - bound))
            if abs(measured[i] - stated[i]) > bound[i]:
                numbers = (float(part[i]) for part in (stated, measured, bound))
                return GradientViolation(which, point, int(at[i]), *numbers)
    return None


def _steps(domain: Domain | None, z: Array, difference: float) -> tuple[Array, Indices]:
    """Return points one step forwards, or else backwards, along each coordinate, in the domain."""
    if domain is None:  # the line of outputs
        return z[None, :] + difference * max(1.0, abs(z[0])), np.zeros(1, dtype=np.intp)
    ahead = domain.settle(z + difference * np.eye(len(z)))
    back = domain.settle(z - difference * np.eye(len(z)))
    forwards, backwards = domain.contains(ahead), domain.contains(back)
    rows = np.where(forwards[:, None], ahead, back)
    at = np.flatnonzero((forwards | backwards) & (np.diagonal(rows) != z))
    return rows[at], at
