"""What is wanted: potentials of the output, and targets that become potentials (Section 2)."""

from bayescfx.potentials.ep_family import AEP, SEP
from bayescfx.potentials.plateau import Plateau
from bayescfx.potentials.potential import Interval, Intervals, LevelPotential, Potential, contains
from bayescfx.potentials.targets import (
    Target,
    at_least,
    at_most,
    between,
    change,
    decrease,
    increase,
    reach,
)
from bayescfx.potentials.wrapped import Linked, Logit

__all__ = [
    "AEP",
    "SEP",
    "Interval",
    "Intervals",
    "LevelPotential",
    "Linked",
    "Logit",
    "Plateau",
    "Potential",
    "Target",
    "at_least",
    "at_most",
    "between",
    "change",
    "contains",
    "decrease",
    "increase",
    "reach",
]
