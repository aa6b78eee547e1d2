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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, is_single
from bayescfx.checks import check_positive
from bayescfx.errors import SettingsError
from bayescfx.potentials import Potential
from bayescfx.search.gradient import localopt_residual
from bayescfx.space.linear import Polytope
from bayescfx.space.slice import Slice

Circuit: TypeAlias = Literal["f", "gradient of f", "rho", "gradient of rho"]
Field: TypeAlias = Callable[[Array], Array]
Domain: TypeAlias = Polytope | Slice  # or any other convex set that can do what these can


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
    """A point at which the stated gradient is not that of the function."""

    which: Literal["f", "rho"]
    point: Array  # (k,) or (1,)
    coordinate: int
    stated: float  # the component
    measured: float  # the difference quotient
    bound: float  # by how much they may differ over a step h: L h / 2, and what rounding explains


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

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_positive("delta", self.delta)
        if self.lipschitz is not None:
            check_positive("lipschitz", self.lipschitz)

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
    """Return what makes `c` ``(k,)`` a solution of CFX-Potential-Localopt, or None.

    A violation is sought among `c` and the points `visited` ``(n, k)``. Gradients are compared
    with difference quotients over a step of `difference`; None leaves that out, as for gradients
    that are difference quotients themselves. No witness rests on rounding: what the model's own
    precision can explain, by its type of number and as measured around the points, is none.
    """
    if not instance.domain.contains(c[None, :])[0]:
        raise SettingsError(
            f"`c` must be a point of the domain; got {c.tolist()}. Project it onto the domain."
        )
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


def lipschitz_violation(instance: Instance, Z: Array) -> LipschitzViolation | None:
    """Return the pair of points ``(n, k)`` that breaks L-Lipschitz continuity most, or None."""
    L, y, slopes = instance.constant, instance.f(Z), instance.gradient(Z)
    outputs, rho = y[:, None], instance.potential
    circuits: tuple[tuple[Circuit, Array, Array, float], ...] = (
        ("f", Z, outputs, precision(y)),
        ("gradient of f", Z, slopes, max(precision(y), precision(slopes))),
        ("rho", outputs, rho.value(y)[:, None], precision()),
        ("gradient of rho", outputs, rho.slope(y)[:, None], precision()),
    )
    found = [_steepest(*circuit, L) for circuit in circuits]
    excess, worst = max(found, key=lambda one: one[1].ratio)
    if excess > 0.0 and worst.which == "f":
        excess -= sum(measured_noise(instance, z) for z in (worst.a, worst.b))
    return worst if excess > 0.0 else None


def _steepest(
    which: Circuit, inputs: Array, values: Array, relative: float, L: float
) -> tuple[float, LipschitzViolation]:
    """Return by how much a pair rises more than it may and rounding explains, and the pair."""
    apart = np.linalg.norm(inputs[:, None] - inputs[None], axis=-1)
    rise = np.linalg.norm(values[:, None] - values[None], axis=-1)
    inexact = [relative * np.linalg.norm(each, axis=1).max() for each in (inputs, values)]
    excess = np.where(apart > 0.0, rise - inexact[1] - L * (apart + inexact[0]), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(excess > 0.0, rise / apart, 0.0)
    i, j = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return float(excess[i, j]), LipschitzViolation(which, inputs[i], inputs[j], float(ratio[i, j]))


def precision(values: Array | None = None) -> float:
    """Return the relative error that numbers may have: of single precision, if all are such."""
    single = values is not None and is_single(values)
    return 16.0 * float(np.finfo(np.float32 if single else np.float64).eps)


def measured_noise(instance: Instance, z: Array, along: int | None = None) -> float:
    """Return how far f strays from lines through a point ``(k,)``, along one coordinate or all."""
    noise, by = 0.0, 1e-5 * np.arange(-8, 9)  # as far apart as difference quotients look
    for j in range(len(z)) if along is None else [along]:
        rows = instance.domain.settle(z + by[:, None] * np.eye(len(z))[j])
        rows = rows[instance.domain.contains(rows)]
        if len(rows) > 2:
            line = np.column_stack([np.ones(len(rows)), rows[:, j] - z[j]])
            y = instance.f(rows)
            fit = np.linalg.lstsq(line / [1.0, by[-1]], y)[0]
            noise = max(noise, 4.0 * float(np.abs(y - line / [1.0, by[-1]] @ fit).max()))
    return noise


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
        relative = max(precision(values), precision(gradients)) if domain else precision()
        step = max(difference, float(np.sqrt(relative)))  # shorter ones would show rounding only
        for point, value, gradient in zip(points, values, gradients, strict=True):
            rows, at = _steps(domain, point, step)
            if not len(at):
                continue
            by = rows[np.arange(len(at)), at] - point[at]
            measured, stated, h = (function(rows) - value) / by, gradient[at], np.abs(by)
            # rounding of the values, and of the points, which the slope passes on
            rounding = relative * (abs(value) + np.abs(stated * point[at])) / h
            bound = 0.5 * L * h + rounding
            i = int(np.argmax(np.abs(measured - stated) - bound))
            if which == "f" and abs(measured[i] - stated[i]) > bound[i]:
                bound[i] += measured_noise(instance, point, int(at[i])) / h[i]
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
