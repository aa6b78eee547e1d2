"""Numbers in JSON, which knows no infinity."""

from __future__ import annotations

import math
from typing import Any

from bayescfx.potentials import Intervals


def finite(value: Any) -> float | None:
    """Return a number; nothing where JSON has none."""
    return float(value) if math.isfinite(value) else None


def pair(ends: tuple[float, float] | None) -> list[float | None] | None:
    """Return two numbers; nothing where there are none."""
    return None if ends is None or math.isnan(ends[0]) else [finite(end) for end in ends]


def ends(intervals: Intervals) -> list[list[float | None]]:
    """Return the ends of intervals; nothing where there is none."""
    return [[finite(low), finite(high)] for low, high in intervals]
