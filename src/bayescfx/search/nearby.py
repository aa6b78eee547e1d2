"""What one question looks at of all that is known: its own rows, and of others what matters.

What is known may be a hundred thousand rows, from earlier calls and other questions. A step of a
search looks at a few hundred of them, chosen when the question begins and again when as many new
ones have come; so its cost does not grow with what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.evaluations.evaluator import Account
from bayescfx.search.coordinates import Coordinates
from bayescfx.space.region import Region

#: At most so many of rows with codes (n, d) and outputs (n,).
Choice: TypeAlias = Callable[[Array, Array, int], Indices]

_NONE: Indices = np.empty(0, dtype=np.intp)


@dataclass(eq=False)
class Nearby:
    """Places of known rows that count for a question: its own, and of others at most so many."""

    account: Account
    counts: Callable[[Array], Mask]  # which rows of codes (n, d) do, if they have an output
    choose: Choice  # which of them matter most
    most: int = 400  # rows of others that are kept
    _places: Indices = field(default_factory=_NONE.copy)  # sorted
    _own: Indices = field(default_factory=_NONE.copy)  # of all rows this question asked for
    _requests: int = 0  # so many were looked at
    _seen: int = 0  # so many known rows were looked at

    def places(self) -> Indices:
        """Return the places, sorted, with what was evaluated since the last time."""
        known, asked = self.account.evaluator.known, self.account.asked
        if len(asked) > self._requests:
            new = np.unique(np.concatenate(asked[self._requests :]))
            self._requests = len(asked)
            self._own = np.union1d(self._own, new)
            # Rows asked for that were known long before, and not kept then.
            if len(old := np.setdiff1d(new[new < self._seen], self._places, assume_unique=True)):
                self._add(old, *known.take(old))
        if len(known) > self._seen:
            for start, X, y in known.parts(self._seen):
                self._add(np.arange(start, start + len(y)), X, y)
            self._seen = len(known)
            others = np.setdiff1d(self._places, self._own, assume_unique=True)
            if len(others) > 2 * self.most:
                own = np.setdiff1d(self._places, others, assume_unique=True)
                kept = others[self.choose(*known.take(others), self.most)]
                self._places = np.union1d(own, kept)
        return self._places

    def _add(self, places: Indices, X: Array, y: Array) -> None:
        """Add known rows, those that count."""
        counted = self.account.scored(places, X, y) & self.counts(X)
        self._places = np.union1d(self._places, places[counted])


def relevant(region: Region, X: Array, most: int, centres: Array) -> Indices:
    """Return which of many known rows matter: at most `most`, nearest to the query or a centre."""
    if len(X) <= most:
        return np.arange(len(X))
    coordinates = Coordinates(region, X)
    Z = coordinates(X)
    unordered = list(coordinates.categorical_columns)
    distance = np.full(len(X), np.inf)
    for hub in coordinates(np.vstack([region.query, centres])):
        gap = np.abs(Z - hub)
        gap[:, unordered] = gap[:, unordered] > 0
        np.minimum(distance, gap.sum(axis=1), out=distance)
    return np.sort(np.argsort(distance, kind="stable")[:most])
