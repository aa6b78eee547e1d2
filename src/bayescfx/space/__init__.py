"""What may move: a space of features and rules, and the region around one query."""

from bayescfx.space.region import Region
from bayescfx.space.space import Space

__all__ = ["Region", "Space"]
