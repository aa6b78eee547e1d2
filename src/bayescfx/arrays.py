"""The array types that every module shares, and rows of codes as keys to what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


def row_keys(X: Array) -> list[bytes]:
    """Return one key per row of codes ``(n, d)``; equal for equal rows only, all nan being one."""
    canonical = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    canonical[np.isnan(canonical)] = np.nan
    width = canonical.shape[1] * canonical.itemsize
    keys: list[bytes] = canonical.view(f"V{width}")[:, 0].tolist() if width else [b""] * len(X)
    return keys


def firsts(X: Array | Mask) -> Indices:
    """Return where the rows ``(n, d)`` are that are not the same as one before."""
    found: dict[bytes, int] = {}
    for i, key in enumerate(row_keys(np.asarray(X, dtype=np.float64))):
        found.setdefault(key, i)
    return np.fromiter(found.values(), dtype=np.intp, count=len(found))


def not_among(X: Array, known: Array) -> Mask:
    """Return which rows ``(n, d)`` are none of the known ones ``(m, d)``."""
    seen = map(set(row_keys(known)).__contains__, row_keys(X))
    return ~np.fromiter(seen, dtype=bool, count=len(X))


class Memory:
    """What a function said of rows; where they are too many, only those at hand are kept."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._places: dict[bytes, int] = {}
        self._values: list[Any] = []  # one array; none before the first row

    def recall(self, X: Array, ask: Callable[[list[int]], Any]) -> Any:
        """Return the values of rows ``(n, k)``; `ask` gets the positions of those not known."""
        keys, new = row_keys(X), dict[bytes, int]()
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


def same_codes(a: Array, b: Array | float) -> Mask:
    """Return where codes are equal; missing ones are."""
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def is_single(values: Array) -> bool:
    """Return whether numbers may come from single precision: all that are finite could."""
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values)[np.isfinite(values)].all())
