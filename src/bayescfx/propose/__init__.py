"""Where to look next: the maximum of any function over a region."""

from bayescfx.propose.ledger import Acquisition
from bayescfx.propose.proposal import Proposal, propose

__all__ = ["Acquisition", "Proposal", "propose"]
