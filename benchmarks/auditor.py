"""An independent audit of an answer: a search for a cheaper counterfactual.

The auditor reverts changes, shortens them, exchanges one feature for another, moves single features
over a dense grid and promising pairs of features over a coarser grid. It uses the space (limits,
grid, rules), the model and the accepted outputs, but no search of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.region import Region

SINGLES = 400  # values of a feature that moves alone
LINES = 100  # values of a feature that is exchanged or shortened
PAIRS = 40  # values of each feature of a pair
MOST_PAIRS = 45  # pairs of features
TRADES = 21  # values of each feature when two are traded
ROUNDS = 6  # of shortening
HALVINGS = 20  # of the interval in which a shortened value lies
CHUNK = 20_000  # rows per model call
MEASURES = ("cost", "distance")  # the objective of the search, and the distance alone


@dataclass(eq=False)
class Auditor:
    """The audit of one question.

    For each measure it keeps the best hit, its price, and the stages that improved it.
    """

    region: Region
    model: Callable[[Array], Array]  # outputs (n,) of codes (n, d)
    hits: Callable[[Array], Mask]  # which outputs (n,) are accepted
    best: dict[str, Array | None] = field(default_factory=lambda: dict.fromkeys(MEASURES))
    price: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEASURES, np.inf))
    by: dict[str, list[str]] = field(default_factory=lambda: {m: [] for m in MEASURES})
    stage: str = "answer"
    rows: int = 0  # scored by the model

    def audit(self, answer: Array | None) -> None:
        """Search for a cheaper hit than the codes ``(d,)`` of an answer, or for any hit."""
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
        """Score the rows ``(n, d)`` that are allowed and cheaper than the best; return the hits."""
        X = self.region.complete(X)
        is_hit = np.zeros(len(X), dtype=np.bool_)
        prices = {"cost": self.region.cost(X), "distance": self.region.distance(X)}
        cheaper = [prices[m] < self.price[m] for m in MEASURES]
        left = np.flatnonzero(np.logical_or(*cheaper))
        if not allowed:
            left = left[self.region.contains(X[left])]
        for begin in range(0, len(left), CHUNK):
            chunk = left[begin : begin + CHUNK]
            is_hit[chunk] = self.hits(self.model(X[chunk]))
        self.rows += len(left)
        for measure in MEASURES:
            hit = np.flatnonzero(is_hit & (prices[measure] < self.price[measure]))
            if len(hit):
                first = hit[np.argmin(prices[measure][hit])]
                self.best[measure] = X[first].copy()
                self.price[measure] = float(prices[measure][first])
                if self.stage not in self.by[measure]:
                    self.by[measure].append(self.stage)
        return is_hit

    # -- Around a row --

    def changed(self, row: Array) -> list[int]:
        """Return the features that a row changes."""
        return [int(j) for j in np.flatnonzero(self.region.changes(row[None])[0])]

    def reverted(self, row: Array) -> Array:
        """Return copies of the row with one or several changes reverted."""
        moved = self.changed(row)
        sizes = range(1, len(moved)) if len(moved) <= 6 else (1, 2)
        subsets = chain.from_iterable(combinations(moved, n) for n in sizes)
        cells = [{j: self.region.query[j] for j in subset} for subset in subsets]
        return self._each(row, cells)

    def exchange(self, row: Array) -> None:
        """Move each feature over its affordable values, with one other change reverted or none."""
        bases = np.vstack([row[None], self.reverted(row)[: len(self.changed(row))]])
        for base in bases:
            for j in self.region.free:
                self.consider(self._line(base, j, self.values(j, LINES)))

    def polish(self, measure: str) -> None:
        """Shorten the best row of a measure until it no longer improves."""
        for _ in range(ROUNDS):
            row = self.best[measure]
            before = self.price[measure]
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
        """Move one feature of the best row towards the query: along a line, then by bisection."""
        row = self.best[measure]
        assert row is not None
        far = row[j]
        near = self.region.query[j]
        if self.region.categorical[j] or far == near:
            return
        line = self._line(row, j, np.linspace(near, far, LINES + 1)[:-1])
        hit = np.flatnonzero(self.consider(line))
        if len(hit):
            far = line[hit[0], j]
            near = line[max(hit[0] - 1, 0), j]
        for _ in range(HALVINGS):
            middle = self._line(row, j, np.array([(far + near) / 2]))
            if middle[0, j] in (far, near):
                return
            if self.consider(middle)[0]:
                far = middle[0, j]
            else:
                near = middle[0, j]

    def _trade(self, measure: str, i: int, j: int) -> None:
        """Move two features of the best row over a small grid around their values."""
        for share in (0.5, 0.1, 0.02):
            row = self.best[measure]
            assert row is not None
            around = [
                row[k] + share * (row[k] - self.region.query[k]) * np.linspace(-1, 1, TRADES)
                for k in (i, j)
            ]
            self.consider(self._grid(row, i, j, around))

    # -- From the query --

    def values(self, j: int, most: int) -> Array:
        """Return at most `most` allowed values of a feature that cost less than the best hit."""
        region = self.region
        choices = region.choices[j]
        if choices is None or len(choices) > most:
            reach = self.price["cost"] * region.scale[j] / region.weight[j]
            low = max(region.low[j], region.query[j] - reach)
            high = min(region.high[j], region.query[j] + reach)
            choices = self._line(region.query, j, np.linspace(low, high, most))[:, j]
        return np.unique(choices[choices != region.query[j]])

    def singles(self) -> dict[int, float]:
        """Move every feature alone; return the range of outputs of each."""
        gains = {}
        for j in self.region.free:
            X = self._line(self.region.query, j, self.values(j, SINGLES))
            X = X[self.region.contains(self.region.complete(X))]
            self.consider(X, allowed=True)
            gains[int(j)] = float(np.ptp(self.model(X))) if len(X) else 0.0
            self.rows += len(X)
        return gains

    def pairs(self, gains: dict[int, float]) -> None:
        """Move the pairs of features that change the output most."""
        ranked = sorted(combinations(gains, 2), key=lambda p: -(gains[p[0]] + gains[p[1]]))
        values = {j: self.values(j, PAIRS) for j in gains}
        for i, j in ranked[:MOST_PAIRS]:
            self.consider(self._grid(self.region.query, i, j, [values[i], values[j]]))

    def _line(self, base: Array, j: int, values: Array) -> Array:
        """Return copies of a row with one feature set to each value, on its grid."""
        X = np.repeat(base[None], len(values), axis=0)
        X[:, j] = values
        X[:, j] = self.region.on_grid(X)[:, j]
        return X

    def _grid(self, base: Array, i: int, j: int, values: list[Array]) -> Array:
        """Return copies of a row with two features set to each pair of values, on their grids."""
        pairs = np.array(np.meshgrid(*values)).reshape(2, -1)
        X = np.repeat(base[None], pairs.shape[1], axis=0)
        X[:, [i, j]] = pairs.T
        X[:, [i, j]] = self.region.on_grid(X)[:, [i, j]]
        return X

    def _each(self, base: Array, cells: Sequence[dict[int, float]]) -> Array:
        """Return a copy of a row for each dict of values."""
        X = np.repeat(base[None], len(cells), axis=0)
        for row, values in zip(X, cells, strict=True):
            row[list(values)] = list(values.values())
        return X
