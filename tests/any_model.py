"""The methods that take any model; the exact search needs one that can be read."""

from __future__ import annotations

from bayescfx.search.methods import METHODS

METHODS_FOR_ANY_MODEL = tuple(name for name in METHODS if name != "exact")
