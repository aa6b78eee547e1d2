"""Potentials and points that the tests of log EI share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.acquisition import (
    LogEI,
)
from bayescfx.acquisition.integral import LogIntegral
from bayescfx.arrays import Array
from bayescfx.potentials import (
    AEP,
    SEP,
    LevelPotential,
    Linked,
    Logit,
    Plateau,
    Potential,
    Valley,
)


def log_ei(mean: ArrayLike, std: ArrayLike, potential: Potential, best: ArrayLike) -> LogIntegral:
    """Return log EI-CFX with its gradient."""
    return LogEI(potential, best).value_and_gradient(mean, std)


ALL: list[LevelPotential] = [
    AEP(0.0, 1.0),
    AEP(3.0, 0.2, -1),
    SEP(-1.0, 2.0),
    Plateau(1.0, 2.0, 0.5),
    Plateau(1.0, math.inf, 0.5),
    Plateau(-math.inf, -1.0, 0.5),
    Valley(0.5, 1.5),
    Linked(AEP(0.9, 0.4, -1), Logit()),
    Linked(Plateau(0.8, math.inf, 0.2), Logit()),
]


def points(n: int = 400) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return 3.0 * rng.normal(size=n), 10.0 ** rng.uniform(-4.0, 2.0, n)
