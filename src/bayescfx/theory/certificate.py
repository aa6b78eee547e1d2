"""CFX-Potential-Localopt: certificates of locally optimal counterfactuals (Appendix A).

A solution of the problem is a point ``c`` of the domain with

    ‖c − Π[c + η ∇ρ(f(c))]‖₂ ≤ δ,

or a witness that the input breaks its promise: a pair of points at which f, ∇f, ρ or ∇ρ is not
L-Lipschitz, or a point at which ∇f (∇ρ) is not the gradient of f (ρ). Every solution carries the
numbers needed to check it.

A point where the potential is flat satisfies the condition trivially: local optimality says
nothing about reaching the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

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
Domain: TypeAlias = Polytope | Slice  # or any other convex set with their methods

#: Relative errors of numbers: so many roundings. From what precision allows, not tuned.
N_ROUNDINGS = 16.0
#: Difference quotients are measured over this step, in coordinates.
DIFFERENCE = 1e-5
#: The noise of f is this multiple of the largest error of a line through 2 n + 1 points.
NOISE_FACTOR = 4.0
N_BESIDE = 8


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
    gradient: Field  # its stated gradient, (n, k) -> (n, k)
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
    instance: Instance,
    c: Array,
    visited: Array | None = None,
    *,
    difference: float | None = DIFFERENCE,
) -> Solution | None:
    """Return the proof that `c` ``(k,)`` solves CFX-Potential-Localopt, or None.

    A violation is sought among `c` and the points `visited` ``(n, k)``. Gradients are compared
    with difference quotients over a step of `difference`; None leaves that out, as for gradients
    that are difference quotients themselves. No witness rests on rounding: differences that the
    model's precision explains, by its type of number and as measured around the points, are none.
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
    L = instance.constant
    rho = instance.potential
    y = instance.f(Z)
    outputs = y[:, None]
    slopes = instance.gradient(Z)
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
    """Return the steepest pair, and its rise beyond what L and rounding allow."""
    apart = np.linalg.norm(inputs[:, None] - inputs[None], axis=-1)
    rise = np.linalg.norm(values[:, None] - values[None], axis=-1)
    input_error = relative * np.linalg.norm(inputs, axis=1).max()
    value_error = relative * np.linalg.norm(values, axis=1).max()
    excess = np.where(apart > 0.0, rise - value_error - L * (apart + input_error), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(excess > 0.0, rise / apart, 0.0)
    i, j = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return float(excess[i, j]), LipschitzViolation(which, inputs[i], inputs[j], float(ratio[i, j]))


def precision(values: Array | None = None) -> float:
    """Return the relative error that numbers may have: of single precision, if all are such."""
    single = values is not None and is_single(values)
    return N_ROUNDINGS * float(np.finfo(np.float32 if single else np.float64).eps)


def measured_noise(instance: Instance, z: Array, along: int | None = None) -> float:
    """Return how far f strays from lines through a point ``(k,)``, along one coordinate or all."""
    noise = 0.0
    by = DIFFERENCE * np.arange(-N_BESIDE, N_BESIDE + 1)  # as far as difference quotients look
    for j in range(len(z)) if along is None else [along]:
        rows = instance.domain.settle(z + by[:, None] * np.eye(len(z))[j])
        rows = rows[instance.domain.contains(rows)]
        if len(rows) > 2:
            line = np.column_stack([np.ones(len(rows)), rows[:, j] - z[j]]) / [1.0, by[-1]]
            y = instance.f(rows)
            fit = np.linalg.lstsq(line, y)[0]
            noise = max(noise, NOISE_FACTOR * float(np.abs(y - line @ fit).max()))
    return noise


class _Claim(NamedTuple):
    """A function with stated gradients at some points."""

    which: Literal["f", "rho"]
    function: Field
    domain: Domain | None  # None: the line of outputs
    points: Array  # (n, k)
    values: Array  # (n,)
    gradients: Array  # (n, k)


def gradient_violation(
    instance: Instance, Z: Array, difference: float = DIFFERENCE
) -> GradientViolation | None:
    """Return a point of ``(n, k)`` at which a stated gradient is not that of its function."""
    rho = instance.potential
    y = instance.f(Z)
    slope = rho.slope(y)[:, None]
    claims = (
        _Claim("f", instance.f, instance.domain, Z, y, instance.gradient(Z)),
        _Claim("rho", lambda Y: rho.value(Y[:, 0]), None, y[:, None], rho.value(y), slope),
    )
    for claim in claims:
        for i in range(len(claim.points)):
            violation = _violation_at(instance, claim, i, difference)
            if violation is not None:
                return violation
    return None


def _violation_at(
    instance: Instance, claim: _Claim, row: int, difference: float
) -> GradientViolation | None:
    """Return the worst violation at one point of a claim, or None."""
    relative = precision()
    if claim.domain is not None:
        relative = max(precision(claim.values), precision(claim.gradients))
    step = max(difference, float(np.sqrt(relative)))  # shorter ones would show rounding only
    point = claim.points[row]
    value = claim.values[row]
    rows, at = _steps(claim.domain, point, step)
    if not len(at):
        return None
    by = rows[np.arange(len(at)), at] - point[at]
    h = np.abs(by)
    measured = (claim.function(rows) - value) / by
    stated = claim.gradients[row][at]
    # Rounding of the values, and of the points, which the slope passes on.
    rounding = relative * (abs(value) + np.abs(stated * point[at])) / h
    bound = 0.5 * instance.constant * h + rounding
    error = np.abs(measured - stated)
    i = int(np.argmax(error - bound))
    if claim.which == "f" and error[i] > bound[i]:
        bound[i] += measured_noise(instance, point, int(at[i])) / h[i]
    if not error[i] > bound[i]:  # nan shows nothing
        return None
    return GradientViolation(
        claim.which, point, int(at[i]), float(stated[i]), float(measured[i]), float(bound[i])
    )


def _steps(domain: Domain | None, z: Array, difference: float) -> tuple[Array, Indices]:
    """Return points one step forwards, or else backwards, along each coordinate, in the domain."""
    if domain is None:  # the line of outputs
        return z[None, :] + difference * max(1.0, abs(z[0])), np.zeros(1, dtype=np.intp)
    ahead = domain.settle(z + difference * np.eye(len(z)))
    back = domain.settle(z - difference * np.eye(len(z)))
    forwards = domain.contains(ahead)
    backwards = domain.contains(back)
    rows = np.where(forwards[:, None], ahead, back)
    at = np.flatnonzero((forwards | backwards) & (np.diagonal(rows) != z))
    return rows[at], at
