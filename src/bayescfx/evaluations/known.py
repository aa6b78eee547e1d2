"""Codes and outputs of everything evaluated, found again by the exact codes of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayescfx.arrays import Array


class Known:
    """Codes ``(n, d)`` and outputs ``(n,)``, nan for a fault; `index` finds a row by its key."""

    def __init__(self, d: int) -> None:
        self._X, self._y = np.empty((64, d)), np.empty(64)
        self.codes, self.outputs = self._X[:0], self._y[:0]
        self.index: dict[bytes, int] = {}
        self.any_faults = False  # whether some row has no output

    def extend(self, keys: Sequence[bytes], X: Array, y: Array) -> range:
        """Add rows that are new, each once, and return their positions."""
        start, stop = len(self.outputs), len(self.outputs) + len(y)
        while stop > len(self._y):
            self._X = np.concatenate([self._X, np.empty_like(self._X)])
            self._y = np.concatenate([self._y, np.empty_like(self._y)])
        self._X[start:stop], self._y[start:stop] = X, y
        self.codes, self.outputs = self._X[:stop], self._y[:stop]
        self.index.update(zip(keys, range(start, stop), strict=True))
        self.any_faults |= bool(np.isnan(y).any())
        return range(start, stop)
