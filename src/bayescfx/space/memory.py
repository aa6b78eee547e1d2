"""What functions of the user said of rows, so that none is asked about a row twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, row_keys


class Memory:
    """Values of a function by row; where they are too many, only those at hand are kept."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._places: dict[bytes, int] = {}
        self._values: list[Any] = []  # one array; none before the first row

    def recall(self, X: Array, ask: Callable[[list[int]], Any]) -> Any:
        """Return the values of rows ``(n, k)``; `ask` gets the positions of those not known."""
        keys = row_keys(X)
        new: dict[bytes, int] = {}
        for i, key in enumerate(keys):
            if key not in self._places:
                new.setdefault(key, i)
        if new:
            values = ask(list(new.values()))
            if len(self._places) > self._most:
                kept = [key for key in dict.fromkeys(keys) if key in self._places]
                self._values = [self._values[0][self._at(kept)]]
                self._places = {key: i for i, key in enumerate(kept)}
            self._values = [np.concatenate([*self._values, values])]
            self._places |= {key: i for i, key in enumerate(new, len(self._places))}
        return self._values[0][self._at(keys)]

    def _at(self, keys: list[bytes]) -> Indices:
        return np.fromiter(map(self._places.__getitem__, keys), np.intp, len(keys))
