"""Instances of CFX-Potential-Localopt on [0, 1]²: wells, potentials, and broken promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.theory.certificate import GradientViolation, Instance, LipschitzViolation, certify

ETA = 0.03
DELTA = 1e-3


@dataclass(frozen=True)
class Wells:
    """A function to be minimised, by its centres ``(k, 2)`` and depths ``(k,)``."""

    centres: Any
    depths: Any
    spread: float = 0.2

    def __call__(self, X: Array) -> Array:
        """Return g, shape (n,)."""
        return np.asarray(-self._bumps(X).sum(axis=1))

    def gradient(self, X: Array) -> Array:
        """Return its gradient, shape (n, 2)."""
        gap = X[:, None, :] - np.asarray(self.centres)
        return np.asarray((self._bumps(X)[:, :, None] * gap).sum(axis=1) / self.spread**2)

    def _bumps(self, X: Array) -> Array:
        gap = X[:, None, :] - np.asarray(self.centres)
        bumps = np.exp(-0.5 * (gap**2).sum(axis=2) / self.spread**2)
        return np.asarray(np.asarray(self.depths) * bumps)


@dataclass(frozen=True)
class Potential:
    """A potential given by its value and slope; `peak` bounds the outputs of f."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    peak: float = 2.4

    def superlevel(self, level: float) -> tuple[tuple[float, float], ...]:
        """Return all outputs from `level` on."""
        return ((level, np.inf),)

    def target_set(self, epsilon: float) -> tuple[tuple[float, float], ...]:
        """Return all outputs from ``(1 - epsilon) * peak`` on."""
        return self.superlevel((1.0 - epsilon) * self.peak)

    def knots(self) -> Array:
        """Return the ends of the range of outputs, which has no kink inside."""
        return np.array([0.0, self.peak])


IDENTITY = Potential(lambda y: np.asarray(y, dtype=float), lambda y: np.ones_like(y, dtype=float))


class Square:
    """The domain [0, 1]²."""

    def contains(self, Z: Array) -> Mask:
        """Return which points ``(n, 2)`` are inside."""
        return np.asarray(((Z >= 0.0) & (Z <= 1.0)).all(axis=1))

    def project(self, z: Array) -> Array:
        """Return the nearest point inside."""
        return np.clip(z, 0.0, 1.0)

    def settle(self, Z: Array) -> Array:
        """Return the points as they are."""
        return Z


def instance(f: Any, gradient: Any, potential: Potential = IDENTITY, **stated: float) -> Instance:
    """Return an instance on the unit square."""
    domain: Any = Square()
    rho: Any = potential
    return Instance(f, gradient, rho, domain, ETA, DELTA, **stated)


def violations() -> list[dict[str, Any]]:
    """Break each promise in turn, with L = 2; recompute every witness."""
    x1 = np.array([1.0, 0.0])

    def line(slope: float) -> tuple[Any, Any]:
        return (lambda X: slope * X[:, 0]), (lambda X: np.tile(slope * x1, (len(X), 1)))

    f, gradient = line(1.0)
    wave = (lambda X: np.sin(20 * X[:, 0]) / 20, lambda X: np.cos(20 * X[:, :1]) * x1)
    broken: dict[str, Instance] = {
        "nothing": instance(f, gradient, lipschitz=2.0),
        "f": instance(*line(5.0), lipschitz=2.0),
        "gradient of f": instance(*wave, lipschitz=2.0),
        "rho": instance(f, gradient, _rho(lambda y: 5 * y, lambda y: 5 + 0 * y), lipschitz=2.0),
        "gradient of rho": instance(
            f,
            gradient,
            _rho(lambda y: np.sin(20 * y) / 20, lambda y: np.cos(20 * y)),
            lipschitz=2.0,
        ),
        "∇f is not the gradient": instance(f, line(-1.0)[1], lipschitz=2.0),
        "∇ρ is not the gradient": instance(
            f, gradient, _rho(lambda y: y, lambda y: -1 + 0 * y), lipschitz=2.0
        ),
    }
    visited = np.random.default_rng(0).random((20, 2))
    rows = []
    for promise, given in broken.items():
        witness = certify(given, np.array([0.41, 0.3]), visited)
        rows.append({"broken": promise, "witness": _name(witness), "holds": proves(given, witness)})
    return rows


def _rho(value: Any, slope: Any) -> Potential:
    return Potential(lambda y: value(np.asarray(y, float)), lambda y: slope(np.asarray(y, float)))


def _name(witness: Any) -> str | None:
    """Return the name of the promise that a witness breaks."""
    if isinstance(witness, LipschitzViolation):
        return witness.which
    return f"∇{'f' if witness.which == 'f' else 'ρ'} is not the gradient" if witness else None


def proves(given: Instance, witness: Any) -> bool:
    """Return whether a witness is valid, by evaluating the circuits again."""
    rho = given.potential
    circuits: dict[str, Callable[[Array], Array]] = {
        "f": given.f,
        "gradient of f": given.gradient,
        "rho": lambda y: rho.value(y[:, 0]),
        "gradient of rho": lambda y: rho.slope(y[:, 0]),
    }
    if isinstance(witness, LipschitzViolation):
        rise = np.diff(circuits[witness.which](np.array([witness.a, witness.b])), axis=0)
        apart = float(np.linalg.norm(witness.a - witness.b))
        return float(np.linalg.norm(rise)) > given.constant * apart
    if isinstance(witness, GradientViolation):
        step = 1e-4
        name = witness.which
        ends = witness.point + step * np.eye(len(witness.point))[witness.coordinate] * [[-1], [1]]
        slope = np.diff(circuits[name](ends))[0] / (2 * step)
        return bool(abs(slope - witness.stated) > given.constant * step)
    return False
