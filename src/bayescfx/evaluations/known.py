"""Codes and outputs of everything evaluated, found again by the exact codes of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayescfx.arrays import Array


class Known:
    """Codes and outputs of everything evaluated, found again by the exact codes of a row."""

    def __init__(self, d: int) -> None:
        self._X = np.empty((64, d))
        self._y = np.empty(64)
        self._n = 0
        self._index: dict[bytes, int] = {}
        self._faults = 0

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

    @property
    def any_faults(self) -> bool:
        """Whether some row has no output."""
        return self._faults > 0

    def find(self, key: bytes) -> int | None:
        """Return the position of the row with this key."""
        return self._index.get(key)

    def extend(self, row_keys: Sequence[bytes], X: Array, y: Array) -> range:
        """Add rows that are new, each once, and return their positions."""
        start, stop = self._n, self._n + len(y)
        while stop > len(self._y):
            self._X = np.concatenate([self._X, np.empty_like(self._X)])
            self._y = np.concatenate([self._y, np.empty_like(self._y)])
        self._X[start:stop], self._y[start:stop] = X, y
        self._index.update(zip(row_keys, range(start, stop), strict=True))
        self._faults += int(np.count_nonzero(np.isnan(y)))
        self._n = stop
        return range(start, stop)
