"""A feature's own scale: where a code stands on it, and what it is called."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array
from bayescfx.features import Feature
from bayescfx.result import wording
from bayescfx.space.region import Region

MOST_LEVELS = 12  # levels that are marked one by one


@dataclass(frozen=True, eq=False)
class Scale:
    """One feature's codes on a line from its lowest to its highest.

    Parameters
    ----------
    feature : Feature
        Kind, range and levels.
    low, high : float
        Codes of the ends.

    Examples
    --------
    >>> from bayescfx.features import Ordinal
    >>> scale = Scale(Ordinal(["low", "mid", "high"]), 0.0, 2.0)
    >>> float(scale.place(1.0)), scale.label(2.0)
    (0.5, 'high')
    """

    feature: Feature
    low: float
    high: float

    @classmethod
    def of(cls, region: Region, j: int, *codes: float) -> Scale:
        """Return the scale of feature `j`, wide enough for what is allowed and for `codes`."""
        feature = region.schema.features[region.names[j]]
        known = [*feature.code_range, region.low[j], region.high[j], region.query[j], *codes]
        finite = [code for code in known if math.isfinite(code)]
        return cls(feature, float(min(finite)), float(max(finite)))

    @property
    def ordered(self) -> bool:
        """Whether a place on the scale means more or less."""
        return not self.feature.categorical

    @property
    def levels(self) -> Array:
        """Codes of the levels, if there are few; else none."""
        feature = self.feature
        if feature.levelled and len(feature.levels) <= MOST_LEVELS:
            return np.arange(len(feature.levels), dtype=np.float64)
        return np.empty(0)

    def place(self, code: float) -> float:
        """Return where a code stands, 0 to 1; the middle if there is only one."""
        if not self.high > self.low or math.isnan(code):
            return 0.5
        return (code - self.low) / (self.high - self.low)

    def label(self, code: float) -> str:
        """Return a code as a person writes it."""
        if math.isnan(code):
            return "missing"
        return wording.number(code) if self.plain else self.feature.label(code)

    def move(self, before: float, after: float) -> tuple[str, str]:
        """Return two codes with as many digits as tell them apart."""
        if self.plain and not math.isnan(before):
            first, second = wording.move(before, after).split(" → ")
            return first, second
        return self.label(before), self.label(after)

    def ticks(self, n: int = 4) -> list[tuple[float, str]]:
        """Return about `n` codes with their labels, for features that are not plain numbers."""
        if self.feature.levelled:
            codes = np.arange(len(self.feature.levels), dtype=np.float64)
            if len(codes) > MOST_LEVELS:
                codes = np.unique(np.rint(np.linspace(0, len(codes) - 1, n)))
        else:
            codes = np.linspace(self.low, self.high, n)
        return [(float(code), self.label(float(code))) for code in codes]

    @property
    def plain(self) -> bool:
        """Whether codes are the numbers the user knows."""
        return self.feature.numeric
