"""One question: a query, its output, a wish, and where to look (Section 2 of the paper).

The wish is a potential rho of the model's output y. A surrogate may see the output on another scale
(log-odds for a probability); potential and target set stay on the output itself, and are only
carried over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.model.model import Link
from bayescfx.potentials.family import LevelPotential, contains
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.links import Linked, Logit
from bayescfx.potentials.wishes import Target
from bayescfx.space.region import Region


@dataclass(frozen=True)
class Problem:
    """A query seen through its region, and what is wanted of the model's output.

    Parameters
    ----------
    region : Region
        Where a counterfactual may lie; knows the query and the cost of moving.
    output : float
        f(query).
    target : Target
        The wish as it was said.
    potential : Potential
        The wish as a function of the output.
    tolerance : float
        How much of the wanted change may be missed.
    link : {"logit"}, optional
        The scale on which the surrogate sees outputs.

    Examples
    --------
    >>> from bayescfx.features import Real
    >>> from bayescfx.space.space import Space
    >>> from bayescfx.potentials.targets import increase
    >>> region = Space({"a": Real(0, 1)}).around({"a": 0.5})
    >>> problem = Problem.of(region, 100.0, increase(by=20), tolerance=0.05)
    >>> problem.acceptance, problem.score(np.array([100.0, 120.0]))
    (((119.0, 121.0),), array([0., 1.]))
    """

    region: Region
    output: float
    target: Target
    potential: LevelPotential
    tolerance: float
    link: Link | None = None

    @classmethod
    def of(
        cls,
        region: Region,
        output: float,
        target: Target,
        *,
        tolerance: float = 0.05,
        link: Link | None = None,
    ) -> Problem:
        """Return the problem that a target poses once f(query) is known."""
        return cls(region, output, target, target.potential(output), tolerance, link)

    @cached_property
    def acceptance(self) -> Intervals:
        """Outputs that count as reached."""
        return self.target.acceptance(self.output, self.tolerance)

    @cached_property
    def wanted(self) -> Intervals:
        """The outputs asked for, without any tolerance."""
        return self.target.wanted(self.output)

    def accepted(self, y: Array) -> Mask:
        """Return which outputs ``(n,)`` reach the target; a fault does not."""
        return contains(self.acceptance, y)

    def score(self, y: Array) -> Array:
        """Return the potential of outputs ``(n,)`` relative to its peak, 0 to 1; 0 for a fault."""
        fault = np.isnan(y)
        share = self.potential.value(np.where(fault, self.output, y)) / self.potential.peak
        return np.where(fault, 0.0, np.clip(share, 0.0, 1.0))

    # ── on the surrogate's scale ──

    @cached_property
    def surrogate_potential(self) -> LevelPotential:
        """The potential as a function of what the surrogate models."""
        return self.potential if self.link is None else Linked(self.potential, Logit())

    @cached_property
    def surrogate_acceptance(self) -> Intervals:
        """The accepted outputs on the surrogate's scale; ends at 0 and 1 become infinite."""
        if self.link is None:
            return self.acceptance
        inside = [(low, high) for low, high in self.acceptance if high >= 0.0 and low <= 1.0]
        return tuple(Logit().interval(low, high) for low, high in inside)

    def to_surrogate(self, y: Array) -> Array:
        """Return outputs ``(n,)`` on the surrogate's scale; always finite for finite outputs."""
        return y if self.link is None else Logit().forward(y)
