"""What a proposal has tried so far: allowed points and their values."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.region import Region

_CHUNK = 4096  # rows per call of the function: bounds memory, lets the deadline be seen


class Acquisition(Protocol):
    """A function of codes that is worth maximising."""

    def value(self, X: Array, /) -> Array:
        """Return the values ``(n,)`` of rows ``(n, d)``; ``-inf`` is allowed."""
        ...

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        """Return values ``(n,)`` and their derivatives by each code ``(n, d)``."""
        ...


class Ledger:
    """Scores rows of a region, and remembers every allowed row and its value.

    Parameters
    ----------
    acquisition : Acquisition
        What is maximised.
    region : Region
        Rows outside of it score ``-inf``.
    avoid : Array of shape (n, d), optional
        Rows that score ``-inf`` as well: they have been evaluated before.
    deadline : Deadline
        Checked before every call of the function.
    """

    def __init__(
        self,
        acquisition: Acquisition,
        region: Region,
        avoid: Array | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.acquisition, self.region, self.deadline = acquisition, region, deadline
        self._known = frozenset() if avoid is None else frozenset(self.keys(avoid))
        self._rows: list[Array] = []
        self._values: list[Array] = []

    def keys(self, X: Array) -> list[bytes]:
        """Return one hashable key per row; rows with equal free codes have equal keys."""
        codes = np.ascontiguousarray(X[:, self.region.free]) + 0.0  # -0.0 becomes 0.0
        if not codes.shape[1]:
            return [b""] * len(codes)
        raw: list[bytes] = codes.view(f"V{codes.itemsize * codes.shape[1]}").ravel().tolist()
        return raw

    def new(self, X: Array) -> Mask:
        """Mask of the rows that are not to be avoided."""
        if not self._known:
            return np.ones(len(X), dtype=bool)
        return np.array([key not in self._known for key in self.keys(X)], dtype=bool)

    def value(self, X: Array, *, allowed: bool = False) -> Array:
        """Return the values of rows ``(n, d)``; ``-inf`` where a row is not allowed or not new.

        `allowed` says that all rows are known to lie in the region.
        """
        out = np.full(len(X), -np.inf)
        usable = self.new(X) if allowed else self.region.contains(X) & self.new(X)
        index = np.flatnonzero(usable)
        if index.size:
            rows = X if index.size == len(X) else X[index]
            out[index] = self._score(rows)
            self._rows.append(rows)
            self._values.append(out[index])
        return out

    def peek(self, X: Array) -> Array:
        """Values of rows that need not lie in the region; they are not remembered."""
        return self._score(X)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Values and gradients of rows that need not lie on the grid; they are not remembered."""
        self.deadline.check()
        value, gradient = self.acquisition.gradient(X)
        return np.where(np.isnan(value), -np.inf, value), gradient

    def tried(self) -> tuple[Array, Array]:
        """Every allowed, new row so far, once, with its value; best first."""
        if not self._rows:
            return np.empty((0, len(self.region.query))), np.empty(0)
        X, value = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(-value, kind="stable")
        seen: dict[bytes, int] = {}
        for at, key in zip(order.tolist(), self.keys(X[order]), strict=True):
            seen.setdefault(key, at)
        index = np.fromiter(seen.values(), dtype=np.intp, count=len(seen))
        return X[index], value[index]

    def _score(self, X: Array) -> Array:
        parts = []
        for start in range(0, len(X), _CHUNK):
            self.deadline.check()
            parts.append(self.acquisition.value(X[start : start + _CHUNK]))
        value = np.concatenate(parts) if parts else np.empty(0)
        return np.where(np.isnan(value), -np.inf, value)
