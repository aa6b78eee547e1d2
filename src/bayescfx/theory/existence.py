"""CFX-Existence (Theorem 2.1, NP-complete): whether any allowed row reaches the target set.

It is in NP, because a row is its own certificate: limits, rules, and one call of the model
(:func:`is_witness`; for a whole answer, `Explanation.verify`). It is NP-hard, because a formula
becomes a model over boolean features, and "satisfied" its target set (:class:`Formula`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.models.model import Model
from bayescfx.potentials import Intervals, contains
from bayescfx.space.region import Region


def is_witness(model: Model, region: Region, accepted: Intervals, rows: Any) -> Mask:
    """Return which rows ``(n,)`` certify that a counterfactual exists: allowed, and in the set."""
    return region.contains(region.encode(rows)) & contains(accepted, model.scores(rows))


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula in conjunctive normal form, and the model that it becomes."""

    variables: int
    clauses: Array  # literals (m, k): v + 1 for variable v, negative if negated

    def satisfied(self, rows: Any) -> Array:
        """Return how many clauses each assignment ``(n, variables)`` satisfies."""
        position = np.abs(self.clauses).astype(int) - 1
        sign = self.clauses > 0
        X = np.asarray(rows).astype(bool)
        return np.asarray((X[:, position] == sign).any(axis=2).sum(axis=1), dtype=float)

    def value(self, rows: Any) -> Array:
        """Return the formula itself, 0 or 1, of each assignment ``(n, variables)``."""
        return np.asarray(self.satisfied(rows) == len(self.clauses), dtype=float)

    def most_satisfiable(self) -> int:
        """Return the largest number of clauses that any assignment satisfies."""
        number = np.arange(2**self.variables)[:, None]
        return int(self.satisfied(number >> np.arange(self.variables) & 1).max())
