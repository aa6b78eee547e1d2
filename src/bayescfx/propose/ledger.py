"""What a proposal has tried so far: allowed points and their values."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from bayescfx.arrays import Array, Mask, row_keys
from bayescfx.deadline import NEVER, Deadline
from bayescfx.space.region import Region

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
        Rows that were evaluated before: they are scored, but not remembered.
    deadline : Deadline
        Checked before every call of the function.

    Examples
    --------
    >>> from bayescfx.features import Integer, Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 0.5, "b": 2})
    >>> class Plane:
    ...     def value(self, X):
    ...         return X.sum(axis=1)
    ...
    ...     def gradient(self, X):
    ...         return self.value(X), np.ones_like(X)
    >>> ledger = Ledger(Plane(), region, avoid=region.query[None])
    >>> ledger.value(np.array([[0.5, 2.0], [0.1, 4.0]]))
    array([2.5, 4.1])
    >>> ledger.tried()
    (array([[0.1, 4. ]]), array([4.1]))
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

    @property
    def empty(self) -> bool:
        """Whether no allowed, new row has been scored yet."""
        return not self._rows

    @property
    def n_avoided(self) -> int:
        """How many different rows are to be avoided."""
        return len(self._known)

    @cached_property
    def spread(self) -> float:
        """How far the best of the first rows lies above their median: the unit of tolerances."""
        first = np.concatenate(self._values)
        first = first[np.isfinite(first)]
        above = float(first.max() - np.median(first)) if first.size else 0.0
        return above if above > 0 else 1.0

    def keys(self, X: Array) -> list[bytes]:
        """Return one hashable key per row; rows with equal free codes have equal keys."""
        return row_keys(X[:, self.region.free])

    def new(self, X: Array) -> Mask:
        """Mask of the rows that are not to be avoided."""
        if not self._known:
            return np.ones(len(X), dtype=bool)
        return np.array([key not in self._known for key in self.keys(X)], dtype=bool)

    def allowed(self, X: Array) -> Mask:
        """Mask of the snapped rows that lie in the region."""
        if self.region.ruled:
            return self.region.contains(X)
        bound = self.region.max_changes
        if bound is None or bound >= len(self.region.free):
            return np.ones(len(X), dtype=bool)
        return np.asarray(self.region.changes(X).sum(axis=1) <= bound)

    def value(self, X: Array, *, allowed: bool = False) -> Array:
        """Return the values of snapped rows ``(n, d)``; ``-inf`` where not allowed.

        Rows to avoid have their value too, since the way to the best new row may lead over them;
        they are not remembered. `allowed` says that all rows are known to lie in the region.
        """
        if not allowed:
            inside = self.allowed(X)
            if not inside.all():
                out = np.full(len(X), -np.inf)
                if inside.any():
                    out[inside] = self.value(X[inside], allowed=True)
                return out
        value = self._score(X)
        new = self.new(X)
        if new.any():
            self._rows.append(X if new.all() else X[new])
            self._values.append(value if new.all() else value[new])
        return value

    def peek(self, X: Array) -> Array:
        """Values of rows that need not lie in the region; they are not remembered."""
        return self._score(X)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Values and gradients of rows that need not lie on the grid; they are not remembered.

        Derived columns are recomputed, and their part of the slope counted by differences.
        """
        region = self.region
        self.deadline.check()
        if not region.derived:
            value, gradient = self.acquisition.gradient(X)
        else:
            X = region.complete(X)
            value, partial = self.acquisition.gradient(X)
            gradient = partial + self._through_derived(X, partial)
        if region.curved:
            value = np.where(region.contains(_at_query(X, region.query)), value, -np.inf)
        return np.where(np.isnan(value), -np.inf, value), gradient

    def _through_derived(self, X: Array, partial: Array) -> Array:
        """Slopes that reach the function through derived columns, by forward differences."""
        region = self.region
        columns = [j for j in region.free.tolist() if region.step[j] == 0]
        derived = np.flatnonzero(region.recomputed)
        out = np.zeros_like(X)
        if not columns:
            return out
        reach = region.high - region.low
        shifted = np.repeat(X[None], len(columns), axis=0)
        for at, j in enumerate(columns):
            inward = np.where(X[:, j] + 1e-6 * reach[j] > region.high[j], -1.0, 1.0)
            shifted[at, :, j] += inward * 1e-6 * reach[j]
        flat = region.complete(shifted.reshape(-1, X.shape[1])).reshape(shifted.shape)
        for at, j in enumerate(columns):
            width = shifted[at, :, j] - X[:, j]
            slope = (flat[at][:, derived] - X[:, derived]) / width[:, None]
            out[:, j] = (np.nan_to_num(slope) * partial[:, derived]).sum(axis=1)
        return out

    def tried(self, most: int | None = None) -> tuple[Array, Array]:
        """Return the best allowed, new rows so far, each once, with their values; best first.

        `most` limits how many.
        """
        if not self._rows:
            return np.empty((0, len(self.region.query))), np.empty(0)
        X, value = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(-value, kind="stable")
        if most is not None:
            order = order[: 2 * most]
        seen: dict[bytes, int] = {}
        for at, key in zip(order.tolist(), self.keys(X[order]), strict=True):
            seen.setdefault(key, at)
        index = np.fromiter(seen.values(), dtype=np.intp, count=len(seen))[:most]
        return X[index], value[index]

    def _score(self, X: Array) -> Array:
        parts = []
        for start in range(0, len(X), _CHUNK):
            self.deadline.check()
            parts.append(self.acquisition.value(X[start : start + _CHUNK]))
        value = np.concatenate(parts) if parts else np.empty(0)
        return np.where(np.isnan(value), -np.inf, value)


def _at_query(X: Array, query: Array) -> Array:
    """Rows whose coordinates a hair beside the query's value are put back on it."""
    return np.where(np.abs(X - query) <= 1e-8 * (1.0 + np.abs(query)), query, X)
