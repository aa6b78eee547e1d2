"""A feature's own scale: where a code stands on it, and what it is called."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array
from bayescfx.features import Feature
from bayescfx.result import wording
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class Scale:
    """One feature's codes on a line from its lowest to its highest."""

    feature: Feature
    low: float  # codes of the ends
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
        """Codes of the levels, if they are few enough to be marked one by one; else none."""
        n = len(self.feature.levels) if self.feature.levelled else 0
        return np.arange(n if n <= 12 else 0, dtype=np.float64)

    def place(self, code: float) -> float:
        """Return where a code stands, 0 to 1; the middle if there is only one."""
        if not self.high > self.low or math.isnan(code):
            return 0.5
        return (code - self.low) / (self.high - self.low)

    def label(self, code: float) -> str:
        """Return a code as a person writes it."""
        if math.isnan(code):
            return "missing"
        return wording.number(code) if self.feature.numeric else self.feature.label(code)

    def move(self, before: float, after: float) -> tuple[str, str]:
        """Return two codes with as many digits as tell them apart."""
        if self.feature.numeric and not math.isnan(before):
            first, second = wording.move(before, after).split(" → ")
            return first, second
        return self.label(before), self.label(after)

    def ticks(self, n: int = 4) -> list[tuple[float, str]]:
        """Return about `n` codes with their labels, for features that are not plain numbers."""
        codes = self.levels
        if not self.feature.levelled:
            codes = np.linspace(self.low, self.high, n)
        elif not len(codes):
            codes = np.unique(np.rint(np.linspace(0, len(self.feature.levels) - 1, n)))
        return [(code, self.label(code)) for code in codes.tolist()]
