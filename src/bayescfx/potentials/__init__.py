"""What is wanted: potentials of the output, and targets that become potentials (Section 2)."""

from bayescfx.potentials.family import AEP, SEP, LevelPotential, Potential, contains
from bayescfx.potentials.levels import Interval, Intervals
from bayescfx.potentials.plateau import Plateau
from bayescfx.potentials.targets import (
    at_least,
    at_most,
    between,
    change,
    decrease,
    increase,
    reach,
)

__all__ = [
    "AEP",
    "SEP",
    "Interval",
    "Intervals",
    "LevelPotential",
    "Plateau",
    "Potential",
    "at_least",
    "at_most",
    "between",
    "change",
    "contains",
    "decrease",
    "increase",
    "reach",
]
