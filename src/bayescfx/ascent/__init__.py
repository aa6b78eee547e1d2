"""Uphill from many starts at once, inside boxes and under linear rules."""

from bayescfx.ascent.climb import Box, ascend

__all__ = ["Box", "ascend"]
