"""Array types, and rows of codes as dictionary keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


def row_keys(X: Array) -> list[bytes]:
    """Return one key per row of codes ``(n, d)``; rows have equal keys if all codes are equal.

    Missing codes (nan) are equal to each other, and -0.0 is equal to 0.0.
    """
    canonical = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    canonical[np.isnan(canonical)] = np.nan
    width = canonical.shape[1] * canonical.itemsize
    if not width:
        return [b""] * len(X)
    keys: list[bytes] = canonical.view(f"V{width}")[:, 0].tolist()
    return keys


def firsts(X: Array | Mask) -> Indices:
    """Return the positions of the rows ``(n, d)`` that equal no earlier row."""
    positions: dict[bytes, int] = {}
    for i, key in enumerate(row_keys(np.asarray(X, dtype=np.float64))):
        positions.setdefault(key, i)
    return np.fromiter(positions.values(), dtype=np.intp, count=len(positions))


def sorted_rows(X: Array) -> Array:
    """Return the rows ``(n, d)`` in the order of their columns, equal ones once."""
    # np.unique(axis=0) compares one number after the other, which takes several times as long.
    ordered = X[np.lexsort(X.T[::-1])] + 0.0  # -0.0 + 0.0 is 0.0
    is_new = np.ones(len(X), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.asarray(ordered[is_new])


def not_among(X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` equal none of the other rows ``(m, d)``."""
    keys = set(row_keys(others))
    return np.array([key not in keys for key in row_keys(X)], dtype=bool)


class Memory:
    """A cache of a function's values by row of codes.

    When it holds more than `most` rows, the next new rows drop all that are not asked for with
    them.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._places: dict[bytes, int] = {}
        self._values: list[Any] = []  # one array; none before the first row

    def recall(self, X: Array, compute: Callable[[list[int]], Any]) -> Any:
        """Return the values of rows ``(n, k)``; `compute` gets the positions of unknown rows."""
        keys = row_keys(X)
        unknown: dict[bytes, int] = {}
        for i, key in enumerate(keys):
            if key not in self._places:
                unknown.setdefault(key, i)
        if unknown:
            values = compute(list(unknown.values()))
            if len(self._places) > self._most:
                self._keep_only(keys)
            self._values = [np.concatenate([*self._values, values])]
            self._places |= {key: i for i, key in enumerate(unknown, len(self._places))}
        return self._values[0][self._positions(keys)]

    def _keep_only(self, keys: list[bytes]) -> None:
        """Drop all rows but those with some of these keys."""
        kept = [key for key in dict.fromkeys(keys) if key in self._places]
        self._values = [self._values[0][self._positions(kept)]]
        self._places = {key: i for i, key in enumerate(kept)}

    def _positions(self, keys: list[bytes]) -> Indices:
        return np.fromiter((self._places[key] for key in keys), np.intp, len(keys))


def same_codes(a: Array, b: Array | float) -> Mask:
    """Return where codes are equal, elementwise; missing codes are equal to each other."""
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def is_single(values: Array) -> bool:
    """Return whether all finite numbers are exact in single precision."""
    with np.errstate(over="ignore"):
        is_exact = values.astype(np.float32) == values
    return bool(is_exact[np.isfinite(values)].all())
