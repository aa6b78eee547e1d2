"""The array types that every module shares, and rows of codes as keys."""

from __future__ import annotations

from typing import TypeAlias

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


def not_among(X: Array, known: Array) -> Mask:
    """Return which rows ``(n, d)`` are none of the known ones ``(m, d)``."""
    seen = map(set(row_keys(known)).__contains__, row_keys(X))
    return ~np.fromiter(seen, dtype=bool, count=len(X))


def same_codes(a: Array, b: Array | float) -> Mask:
    """Return where codes are equal; missing ones are."""
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def is_single(values: Array) -> bool:
    """Return whether numbers may come from single precision: all that are finite could."""
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32) == values)[np.isfinite(values)].all())
