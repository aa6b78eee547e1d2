"""Where to look next: the maximum of any function over a region."""

from bayescfx.propose.ledger import Acquisition
from bayescfx.propose.proposal import Proposal, propose
from bayescfx.propose.refine import Effort

__all__ = ["Acquisition", "Effort", "Proposal", "propose"]
