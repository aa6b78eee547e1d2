"""Definitions of Section 2 as checks.

Definition "Potential" (not maximal at the query, continuously differentiable), Definition
"Potential Duality" (the epsilon-optimal target set), and the threshold sets whose brittleness
motivates both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Mask
from bayescfx.errors import TargetError
from bayescfx.potentials import Potential
from bayescfx.potentials.potential import checked_share


@dataclass(frozen=True, slots=True)
class ThresholdSet:
    r"""Outputs that differ from the query's by at least `epsilon`: the brittle alternative.

    .. math:: \{\, y : |y - f(x_0)| \ge \varepsilon \,\}

    Section 2 ("Setting thresholds for regression models is brittle", Figure 1): every member is
    as good as any other, and the nearest one jumps with `epsilon`.

    Examples
    --------
    >>> ThresholdSet(1.0, 0.5).contains([1.2, 1.5, 0.0]).tolist()
    [False, True, True]
    """

    origin: float  # the query's output
    epsilon: float  # the smallest change that counts

    def __post_init__(self) -> None:
        if not (math.isfinite(self.origin) and self.epsilon > 0.0):
            raise TargetError(
                "ThresholdSet: `origin` must be finite and `epsilon` positive; "
                f"got {self.origin!r} and {self.epsilon!r}."
            )

    def contains(self, outputs: ArrayLike) -> Mask:
        """Return which outputs are in the set."""
        return np.asarray(np.abs(np.asarray(outputs, dtype=float) - self.origin) >= self.epsilon)


def is_potential(potential: Potential, output: float, outputs: ArrayLike) -> bool:
    """Return whether a potential is not maximal at the query (Definition "Potential").

    That is: whether some of the known `outputs` ``(n,)`` has a larger one than `output`, f(query).

    Examples
    --------
    >>> from bayescfx.potentials import AEP
    >>> is_potential(AEP(0.0, 1.0), 0.0, [0.5, 2.0]), is_potential(AEP(0.0, 1.0), 1.0, [0.5, 2.0])
    (True, False)
    """
    values = potential.value(np.asarray(outputs, dtype=float))
    return bool(np.max(values, initial=-np.inf) > float(potential.value(output)))


def in_target_set(potential: Potential, outputs: ArrayLike, epsilon: float, best: float) -> Mask:
    r"""Return which outputs ``(n,)`` are epsilon-optimal (Definition "Potential Duality").

    That is where :math:`\rho(y) \ge (1 - \varepsilon)\,\rho^*`, with `epsilon` in [0, 1) and `best`
    the optimum :math:`\rho^*` that the model can reach: `potential.peak`, if it can reach the peak.

    Examples
    --------
    >>> from bayescfx.potentials import AEP
    >>> in_target_set(AEP(0.0, 1.0), [0.5, 1.0, 1.1], 0.05, AEP(0.0, 1.0).peak).tolist()
    [False, True, True]
    """
    return np.asarray(potential.value(outputs) >= (1.0 - checked_share(epsilon)) * best)
