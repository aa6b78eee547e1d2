"""Codes and outputs of everything evaluated, found again by the exact codes of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayescfx.arrays import Array


class Known:
    """Codes ``(n, d)`` and outputs ``(n,)`` of everything evaluated; `index` has each row's key."""

    def __init__(self, d: int) -> None:
        self._X = np.empty((64, d))
        self._y = np.empty(64)
        self._n = 0
        self.index: dict[bytes, int] = {}
        self.any_faults = False  # whether some row has no output

    def __len__(self) -> int:
        return self._n

    @property
    def codes(self) -> Array:
        """Codes ``(n, d)`` of all rows, faults included."""
        return self._X[: self._n]

    @property
    def outputs(self) -> Array:
        """Outputs ``(n,)``; nan for a fault."""
        return self._y[: self._n]

    def extend(self, keys: Sequence[bytes], X: Array, y: Array) -> range:
        """Add rows that are new, each once, and return their positions."""
        start, stop = self._n, self._n + len(y)
        while stop > len(self._y):
            self._X = np.concatenate([self._X, np.empty_like(self._X)])
            self._y = np.concatenate([self._y, np.empty_like(self._y)])
        self._X[start:stop], self._y[start:stop] = X, y
        self._n = stop
        self.index.update(zip(keys, range(start, stop), strict=True))
        self.any_faults |= bool(np.isnan(y).any())
        return range(start, stop)
