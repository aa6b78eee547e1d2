"""An auditor: looks for something nearer than an answer, with means of its own.

It tries what a sceptical reader would: take changes back, shorten them, put another feature in the
place of one, move single features over a dense grid, and promising pairs of features over a coarser
one. It knows the space (limits, grid, rules), the model and what is accepted, but no search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.effort import effort
from bayescfx.space.region import Region

SINGLES, LINES, PAIRS, MOST_PAIRS = 400, 100, 40, 45  # values per sweep, and pairs looked at
TRADES, ROUNDS, HALVINGS, CHUNK = 21, 6, 20, 20_000
MEASURES = ("effort", "distance")  # what the search minimises, and the distance alone


@dataclass(eq=False)
class Auditor:
    """One question under audit: by each measure the nearest hit so far, its price, who found it."""

    region: Region
    model: Callable[[Array], Array]  # outputs (n,) of codes (n, d)
    hits: Callable[[Array], Mask]  # which outputs (n,) are accepted
    best: dict[str, Array | None] = field(default_factory=lambda: dict.fromkeys(MEASURES))
    price: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEASURES, np.inf))
    by: dict[str, list[str]] = field(default_factory=lambda: {m: [] for m in MEASURES})
    stage: str = "answer"
    rows: int = 0  # evaluated

    def audit(self, answer: Array | None) -> None:
        """Look for a nearer hit than an answer's codes ``(d,)``; without one, for any hit."""
        if answer is not None:
            self.consider(answer[None], allowed=True)
            self.stage = "reverting"
            self.consider(self.reverted(answer))
            self.stage = "exchanging"
            self.exchange(answer)
        self.stage = "single features"
        gains = self.singles()
        self.stage = "pairs"
        self.pairs(gains)
        self.stage = "shortening"
        for measure in MEASURES:
            self.polish(measure)

    def consider(self, X: Array, *, allowed: bool = False) -> Mask:
        """Evaluate rows ``(n, d)`` that are allowed and cheaper than the best; return which hit."""
        X = self.region.complete(X)
        found = np.zeros(len(X), dtype=np.bool_)
        prices = {"effort": effort(self.region, X), "distance": self.region.distance(X)}
        cheaper = [prices[m] < self.price[m] for m in MEASURES]
        left = np.flatnonzero(np.logical_or(*cheaper))
        if not allowed:
            left = left[self.region.contains(X[left])]
        for begin in range(0, len(left), CHUNK):
            some = left[begin : begin + CHUNK]
            found[some] = self.hits(self.model(X[some]))
        self.rows += len(left)
        for measure in MEASURES:
            hit = np.flatnonzero(found & (prices[measure] < self.price[measure]))
            if len(hit):
                first = hit[np.argmin(prices[measure][hit])]
                self.best[measure] = X[first].copy()
                self.price[measure] = float(prices[measure][first])
                if self.stage not in self.by[measure]:
                    self.by[measure].append(self.stage)
        return found

    # ── around a row ──

    def changed(self, row: Array) -> list[int]:
        """Return the features that a row changes."""
        return [int(j) for j in np.flatnonzero(self.region.changes(row[None])[0])]

    def reverted(self, row: Array) -> Array:
        """Return the row with one or several of its changes taken back."""
        moved = self.changed(row)
        sizes = range(1, len(moved)) if len(moved) <= 6 else (1, 2)
        back = chain.from_iterable(combinations(moved, n) for n in sizes)
        return self._each(row, [{j: self.region.query[j] for j in some} for some in back])

    def exchange(self, row: Array) -> None:
        """Move each feature of a row over what is affordable, another change taken back or none."""
        bases = np.vstack([row[None], self.reverted(row)[: len(self.changed(row))]])
        for base in bases:
            for j in self.region.free:
                self.consider(self._line(base, j, self.values(j, LINES)))

    def polish(self, measure: str) -> None:
        """Shorten the best row by a measure until nothing is gained."""
        for _ in range(ROUNDS):
            row, before = self.best[measure], self.price[measure]
            if row is None:
                return
            self.consider(self.reverted(row))
            for j in self.changed(row):
                self._shorten(measure, j)
            for i, j in combinations(self.changed(row), 2):
                self._trade(measure, i, j)
            if self.price[measure] >= before - 1e-9:
                return

    def _shorten(self, measure: str, j: int) -> None:
        """Bring one feature of the best row nearer to the query: a line, then halving."""
        row = self.best[measure]
        assert row is not None
        far, near = row[j], self.region.query[j]
        if self.region.categorical[j] or far == near:
            return
        line = self._line(row, j, np.linspace(near, far, LINES + 1)[:-1])
        hit = np.flatnonzero(self.consider(line))
        if len(hit):
            far, near = line[hit[0], j], line[max(hit[0] - 1, 0), j]
        for _ in range(HALVINGS):
            middle = self._line(row, j, np.array([(far + near) / 2]))
            if middle[0, j] in (far, near):
                return
            if self.consider(middle)[0]:
                far = middle[0, j]
            else:
                near = middle[0, j]

    def _trade(self, measure: str, i: int, j: int) -> None:
        """Move two features of the best row a little, one perhaps for the other."""
        for share in (0.5, 0.1, 0.02):
            row = self.best[measure]
            assert row is not None
            around = [
                row[k] + share * (row[k] - self.region.query[k]) * np.linspace(-1, 1, TRADES)
                for k in (i, j)
            ]
            self.consider(self._grid(row, i, j, around))

    # ── from the query ──

    def values(self, j: int, most: int) -> Array:
        """Return allowed values of a feature that cost less than the best hit, at most so many."""
        region = self.region
        choices = region.choices[j]
        if choices is None or len(choices) > most:
            reach = self.price["effort"] * region.scale[j] / region.weight[j]
            low = max(region.low[j], region.query[j] - reach)
            high = min(region.high[j], region.query[j] + reach)
            choices = self._line(region.query, j, np.linspace(low, high, most))[:, j]
        return np.unique(choices[choices != region.query[j]])

    def singles(self) -> dict[int, float]:
        """Move every feature alone; return how far each one moves the output."""
        gains = {}
        for j in self.region.free:
            X = self._line(self.region.query, j, self.values(j, SINGLES))
            X = X[self.region.contains(self.region.complete(X))]
            self.consider(X, allowed=True)
            gains[int(j)] = float(np.ptp(self.model(X))) if len(X) else 0.0
            self.rows += len(X)
        return gains

    def pairs(self, gains: dict[int, float]) -> None:
        """Move pairs of features, those that move the output most."""
        ranked = sorted(combinations(gains, 2), key=lambda p: -(gains[p[0]] + gains[p[1]]))
        values = {j: self.values(j, PAIRS) for j in gains}
        for i, j in ranked[:MOST_PAIRS]:
            self.consider(self._grid(self.region.query, i, j, [values[i], values[j]]))

    def _line(self, base: Array, j: int, values: Array) -> Array:
        """Return a row with one feature at each of several values, on its grid."""
        X = np.repeat(base[None], len(values), axis=0)
        X[:, j] = values
        X[:, j] = self.region.on_grid(X)[:, j]
        return X

    def _grid(self, base: Array, i: int, j: int, values: list[Array]) -> Array:
        """Return a row with two features at each pair of values, on their grids."""
        pairs = np.array(np.meshgrid(*values)).reshape(2, -1)
        X = np.repeat(base[None], pairs.shape[1], axis=0)
        X[:, [i, j]] = pairs.T
        X[:, [i, j]] = self.region.on_grid(X)[:, [i, j]]
        return X

    def _each(self, base: Array, cells: Sequence[dict[int, float]]) -> Array:
        """Return a copy of a row per set of other values."""
        X = np.repeat(base[None], len(cells), axis=0)
        for row, some in zip(X, cells, strict=True):
            row[list(some)] = list(some.values())
        return X
