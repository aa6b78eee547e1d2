"""What a proposal has tried so far: allowed points and their values."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.deadline import NEVER, Deadline
from bayescfx.propose.free import FreeFeatures
from bayescfx.space.region import Region


class Acquisition(Protocol):
    """A function of codes that is worth maximising."""

    def value(self, X: Array, /) -> Array:
        """Return the values ``(n,)`` of rows ``(n, d)``; ``-inf`` is allowed."""

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        """Return values ``(n,)`` and their derivatives by each code ``(n, d)``."""


class Evaluated(Protocol):
    """A set of rows, which may be many."""

    def __len__(self) -> int: ...

    def holds(self, X: Array, /) -> Mask:
        """Return which rows ``(n, d)`` are in it."""


class _Rows:
    def __init__(self, rows: Array) -> None:
        self._keys = frozenset(row_keys(rows))

    def __len__(self) -> int:
        return len(self._keys)

    def holds(self, X: Array) -> Mask:
        return np.fromiter(map(self._keys.__contains__, row_keys(X)), np.bool_, len(X))


class Ledger:
    """Scores rows of a region, and remembers allowed rows and values, but those to `avoid`."""

    def __init__(
        self,
        acquisition: Acquisition,
        region: Region,
        avoid: Array | Evaluated | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.acquisition, self.region, self.deadline = acquisition, region, deadline
        self.free = FreeFeatures.of(region)
        self.avoided = _Rows(avoid) if isinstance(avoid, np.ndarray) else avoid
        self._rows: list[Array] = [np.empty((0, len(region.query)))]
        self._values: list[Array] = [np.empty(0)]

    @cached_property
    def spread(self) -> float:
        """How far the best of the first rows lies above their median: the unit of tolerances."""
        first = np.concatenate(self._values)
        first = first[np.isfinite(first)]
        above = float(first.max() - np.median(first)) if first.size else 0.0
        return above if above > 0 else 1.0

    def allowed(self, X: Array) -> Mask:
        """Return which of the snapped rows ``(n, d)`` lie in the region."""
        if self.region.rules:
            return self.region.contains(X)
        bound = self.region.max_changes
        if bound is None or bound >= len(self.region.free):
            return np.ones(len(X), dtype=bool)
        return np.asarray(self.region.changes(X).sum(axis=1) <= bound)

    def value(self, X: Array, *, allowed: bool = False) -> Array:
        """Return the values of snapped rows ``(n, d)``; ``-inf`` where not allowed.

        Rows to avoid have their value too: the way to the best new row may lead over them.
        `allowed` says that all rows are known to lie in the region.
        """
        if not allowed and not (inside := self.allowed(X)).all():
            out = np.full(len(X), -np.inf)
            if inside.any():
                out[inside] = self.value(X[inside], allowed=True)
            return out
        value = np.empty(len(X))
        for start in range(0, len(X), 4096):  # bounds memory, lets the deadline be seen
            self.deadline.check()
            value[start : start + 4096] = self.acquisition.value(X[start : start + 4096])
        value = np.where(np.isnan(value), -np.inf, value)
        self._rows.append(X)
        self._values.append(value)
        return value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return values and gradients of rows that need not lie on the grid; not remembered."""
        region = self.region
        self.deadline.check()
        # Coordinates a hair beside the query's value are put back on it.
        hair = 1e-8 * (1.0 + np.abs(region.query))
        tidy = np.where(np.abs(X - region.query) <= hair, region.query, X)
        if region.derived:
            columns, shifted = self._shifted(X)
            parts = np.split(region.complete(np.vstack([X, tidy, *shifted])), len(shifted) + 2)
            X, tidy, moved = parts[0], parts[1], np.array(parts[2:]).reshape(shifted.shape)
        value, gradient = self.acquisition.gradient(X)
        if region.derived:
            gradient = gradient + self._through_derived(X, columns, moved, gradient)
        if region.curved:
            value = np.where(region.contains(tidy), value, -np.inf)
        return np.where(np.isnan(value), -np.inf, value), gradient

    def _shifted(self, X: Array) -> tuple[Indices, Array]:
        """Return what a gradient moves, and the rows with each moved a little, shape (c, n, d)."""
        region, columns = self.region, self.free.sloped
        reach = 1e-6 * (region.high - region.low)[columns]
        shifted = np.repeat(X[None], len(columns), axis=0)
        inward = np.where(X[:, columns] + reach > region.high[columns], -reach, reach).T
        shifted[np.arange(len(columns)), :, columns] += inward
        return columns, shifted

    def _through_derived(self, X: Array, columns: Indices, moved: Array, partial: Array) -> Array:
        """Return slopes that reach the function through derived columns, by differences."""
        derived, out = np.flatnonzero(self.region.recomputed), np.zeros_like(X)
        width = moved[np.arange(len(columns)), :, columns] - X[:, columns].T
        slope = np.nan_to_num((moved[:, :, derived] - X[:, derived]) / width[:, :, None])
        out[:, columns] = (slope * partial[:, derived]).sum(axis=2).T
        return out

    def tried(self, most: int) -> tuple[Array, Array]:
        """Return the best allowed, new rows so far, at most `most`, each once; best first."""
        X, value = np.concatenate(self._rows), np.concatenate(self._values)
        order, size = np.argsort(-value, kind="stable"), 32 + most
        seen: dict[bytes, int] = {}
        for start in range(0, len(order), size):
            some = order[start : start + size]
            if self.avoided is not None:
                some = some[~self.avoided.holds(X[some])]
            for at, key in zip(some.tolist(), row_keys(X[some][:, self.region.free]), strict=True):
                seen.setdefault(key, at)
            if len(seen) >= most:
                break
        index = np.fromiter(seen.values(), dtype=np.intp, count=len(seen))[:most]
        return X[index], value[index]
