"""Proposals: the maximum of any function over a region."""

from bayescfx.propose.ledger import Acquisition
from bayescfx.propose.proposal import Proposal, propose
from bayescfx.propose.tuning import Effort

__all__ = ["Acquisition", "Effort", "Proposal", "propose"]
