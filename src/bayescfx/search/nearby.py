"""What one question looks at of all that is known: its own rows, and of others what matters.

What is known may be a hundred thousand rows, from earlier calls and other questions. A step of a
search looks at a few hundred of them, chosen when the question begins and again when as many new
ones have come; so its cost does not grow with what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.evaluations.evaluator import Account
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates

#: At most so many of rows with codes (n, d) and outputs (n,).
Choice: TypeAlias = Callable[[Array, Array, int], Indices]


class Nearby:
    """Places of known rows that count for a question: its own, and at most `most` of others."""

    def __init__(self, account: Account, most: int = 400) -> None:
        self.account, self.most = account, most
        self._places: Indices = np.empty(0, dtype=np.intp)  # sorted
        self._requests = self._seen = 0  # so many requests, and known rows, were looked at

    def places(self, counts: Callable[[Array], Mask], choose: Choice) -> Indices:
        """Return the places, sorted, with what was evaluated since the last time.

        Rows with an output count where `counts` says so of their codes ``(n, d)``; which of others'
        matter, `choose` says.
        """
        known, asked = self.account.evaluator.known, self.account.asked
        if len(asked) > self._requests:
            new = np.concatenate(asked[self._requests :])
            self._requests = len(asked)
            # Rows asked for that were known long before, and not kept then.
            old = new[new < self._seen]
            if len(old) and len(old := np.setdiff1d(old, self._places)):
                self._add(counts, old, *known.take(old))
        if len(known) > self._seen:
            for start, X, y in known.parts(self._seen):
                self._add(counts, np.arange(start, start + len(y)), X, y)
            self._seen = len(known)
            if len(self._places) > 2 * self.most:
                own = self.own
                others = self._places[~own]
                if len(others) > 2 * self.most:
                    kept = others[choose(*known.take(others), self.most)]
                    self._places = np.union1d(self._places[own], kept)
        return self._places

    @property
    def own(self) -> Mask:
        """Which of the places are of rows that this question asked for."""
        return np.isin(self._places, np.concatenate([self._places[:0], *self.account.asked]))

    def _add(self, counts: Callable[[Array], Mask], places: Indices, X: Array, y: Array) -> None:
        """Add known rows, those that count."""
        counted = self.account.scored(places, X, y) & counts(X)
        new = places[counted]
        both = np.concatenate([self._places, new])
        later = not len(self._places) or not len(new) or new[0] > self._places[-1]
        self._places = both if later else np.unique(both)


def relevant(
    region: Region, X: Array, most: int, centres: Array, near: int | None = None
) -> Indices:
    """Return which of many known rows matter, at most `most`.

    The `near` ones, a quarter, are nearest to the query or a centre. The others are evenly from all
    farther ones: without these a surrogate knows nothing of the way between.
    """
    near = most // 4 if near is None else near
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
    order = np.argsort(distance, kind="stable")
    even = np.linspace(near, len(X) - 1, most - near).astype(np.intp)
    return np.sort(np.concatenate([order[:near], order[even]]))
