"""The rows that a proposal has tried so far, with their values."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.deadline import NEVER, Deadline
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.tuning import TUNING
from bayescfx.space.region import Region


class Acquisition(Protocol):
    """A function of codes to maximise."""

    def value(self, X: Array, /) -> Array:
        """Return the values ``(n,)`` of rows ``(n, d)``; ``-inf`` is allowed."""

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        """Return values ``(n,)`` and their derivatives by each code ``(n, d)``."""


class Evaluated(Protocol):
    """A set of rows, which may be large."""

    def __len__(self) -> int: ...

    def holds(self, X: Array, /) -> Mask:
        """Return which rows ``(n, d)`` belong to it."""


class _RowSet:
    """The rows of an array ``(n, d)`` as a set."""

    def __init__(self, rows: Array) -> None:
        self._keys = frozenset(row_keys(rows))

    def __len__(self) -> int:
        return len(self._keys)

    def holds(self, X: Array) -> Mask:
        """Return which rows ``(n, d)`` belong to it."""
        return np.array([key in self._keys for key in row_keys(X)], dtype=np.bool_)


class Ledger:
    """Scores rows of a region and remembers those that are allowed.

    Parameters
    ----------
    acquisition : Acquisition
        The function to maximise.
    region : Region
        Where it is maximised.
    avoid : array of shape (m, d), or a set of rows, optional
        Rows that are never proposed; they have values all the same.
    deadline : Deadline, optional
        Raises `OutOfTime` when it has passed.
    """

    def __init__(
        self,
        acquisition: Acquisition,
        region: Region,
        avoid: Array | Evaluated | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.acquisition = acquisition
        self.region = region
        self.deadline = deadline
        self.free = FreeFeatures.of(region)
        self.avoided = _RowSet(avoid) if isinstance(avoid, np.ndarray) else avoid
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
        """Return which rows ``(n, d)`` on the grid lie in the region."""
        if self.region.rules:
            return self.region.contains(X)
        bound = self.region.max_changes
        if bound is None or bound >= len(self.region.free):
            return np.ones(len(X), dtype=bool)
        return np.asarray(self.region.changes(X).sum(axis=1) <= bound)

    def value(self, X: Array) -> Array:
        """Return the values ``(n,)`` of rows on the grid; ``-inf`` where they are not allowed.

        Rows to avoid have their value too: the way to the best new row may lead over them.
        """
        inside = self.allowed(X)
        if inside.all():
            return self.value_allowed(X)
        out = np.full(len(X), -np.inf)
        if inside.any():
            out[inside] = self.value_allowed(X[inside])
        return out

    def value_allowed(self, X: Array) -> Array:
        """Return the values ``(n,)`` of rows that lie in the region."""
        value = np.empty(len(X))
        for start in range(0, len(X), TUNING.chunk):  # bounds memory; the deadline is checked
            self.deadline.check()
            part = slice(start, start + TUNING.chunk)
            value[part] = self.acquisition.value(X[part])
        value = np.where(np.isnan(value), -np.inf, value)
        self._rows.append(X)
        self._values.append(value)
        return value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return values ``(n,)`` and gradients ``(n, d)`` of rows that need not lie on the grid.

        Derived columns are recomputed, and slopes through them added. Rows that break a rule other
        than a linear one have the value ``-inf``. Nothing is remembered.
        """
        region = self.region
        self.deadline.check()
        # Coordinates a hair beside the query's value are put back on it.
        hair = TUNING.hair * (1.0 + np.abs(region.query))
        tidy = np.where(np.abs(X - region.query) <= hair, region.query, X)
        if region.derived:
            columns, shifted = self._shifted(X)
            rows = region.complete(np.vstack([X, tidy, *shifted]))
            X, tidy, *parts = np.split(rows, len(shifted) + 2)
            moved = np.array(parts).reshape(shifted.shape)
        value, gradient = self.acquisition.gradient(X)
        if region.derived:
            gradient = gradient + self._through_derived(X, columns, moved, gradient)
        if region.curved:
            value = np.where(region.contains(tidy), value, -np.inf)
        return np.where(np.isnan(value), -np.inf, value), gradient

    def _shifted(self, X: Array) -> tuple[Indices, Array]:
        """Return the features with a slope, and rows with each moved a little, shape (c, n, d)."""
        region = self.region
        columns = self.free.sloped
        reach = TUNING.derivative_step * (region.high - region.low)[columns]
        shifted = np.repeat(X[None], len(columns), axis=0)
        inward = np.where(X[:, columns] + reach > region.high[columns], -reach, reach).T
        shifted[np.arange(len(columns)), :, columns] += inward
        return columns, shifted

    def _through_derived(self, X: Array, columns: Indices, moved: Array, partial: Array) -> Array:
        """Return slopes that reach the function through derived columns, by differences."""
        derived = np.flatnonzero(self.region.recomputed)
        out = np.zeros_like(X)
        width = moved[np.arange(len(columns)), :, columns] - X[:, columns].T
        slope = np.nan_to_num((moved[:, :, derived] - X[:, derived]) / width[:, :, None])
        out[:, columns] = (slope * partial[:, derived]).sum(axis=2).T
        return out

    def tried(self, most: int) -> tuple[Array, Array]:
        """Return the best allowed, new rows so far, at most `most`, each once; best first."""
        X = np.concatenate(self._rows)
        value = np.concatenate(self._values)
        order = np.argsort(-value, kind="stable")
        size = 32 + most  # rows that are looked at together
        found: dict[bytes, int] = {}
        for start in range(0, len(order), size):
            part = order[start : start + size]
            if self.avoided is not None:
                part = part[~self.avoided.holds(X[part])]
            keys = row_keys(X[part][:, self.region.free])
            for at, key in zip(part.tolist(), keys, strict=True):
                found.setdefault(key, at)
            if len(found) >= most:
                break
        index = np.fromiter(found.values(), dtype=np.intp, count=len(found))[:most]
        return X[index], value[index]
