"""Potentials of the output, and targets that become potentials (Section 2)."""

from bayescfx.potentials.class_targets import Becomes as Becomes
from bayescfx.potentials.class_targets import ClassTarget as ClassTarget
from bayescfx.potentials.class_targets import Flips as Flips
from bayescfx.potentials.class_targets import becomes as becomes
from bayescfx.potentials.class_targets import flips as flips
from bayescfx.potentials.ep_family import AEP as AEP
from bayescfx.potentials.ep_family import SEP as SEP
from bayescfx.potentials.ep_family import Valley as Valley
from bayescfx.potentials.plateau import Plateau as Plateau
from bayescfx.potentials.potential import Intervals as Intervals
from bayescfx.potentials.potential import LevelPotential as LevelPotential
from bayescfx.potentials.potential import Potential as Potential
from bayescfx.potentials.potential import contains as contains
from bayescfx.potentials.targets import Target as Target
from bayescfx.potentials.targets import at_least as at_least
from bayescfx.potentials.targets import at_most as at_most
from bayescfx.potentials.targets import between as between
from bayescfx.potentials.targets import change as change
from bayescfx.potentials.targets import decrease as decrease
from bayescfx.potentials.targets import increase as increase
from bayescfx.potentials.targets import reach as reach
from bayescfx.potentials.wrapped import Linked as Linked
from bayescfx.potentials.wrapped import Logit as Logit
