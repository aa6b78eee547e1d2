"""Boxes of cells, and the pool of those that are open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.leaves import Words

Singles = NDArray[np.float32]
#: How many boxes are kept in order: at least so many, and one in so many of those that are open.
#: They change the speed only; set by judgement. In profiles of 20 questions (diabetes, XGBoost,
#: busy machine, 2026-11-18) adding and taking boxes took 1.5 s, with a heap of all boxes about 4 s.
_LEAST_SORTED = 1024
_ONE_SORTED_IN = 8


@dataclass(eq=False)
class Boxes:
    """Some boxes, as arrays that grow and shrink together.

    Parameters
    ----------
    low, high : array of int of shape (n, k)
        The lowest and highest cell of each feature.
    mask : array of shape (n, words)
        The leaves that may hold an accepted row.
    cost : array of shape (n,)
        The cost of the corner.
    spread : array of shape (n, t)
        How far apart the smallest and largest summand of each tree were, in 32 bits.
    key : array of shape (n,)
        The order in which boxes are split, lowest first.
    is_new : mask of shape (n,)
        The corner is not that of the box from which this one was split off.
    is_candidate : mask of shape (n,)
        The corner may be an answer, but the model has not scored it.
    """

    low: Indices
    high: Indices
    mask: Words
    cost: Array
    spread: Singles
    key: Array
    is_new: Mask
    is_candidate: Mask

    def __len__(self) -> int:
        return len(self.cost)

    def parts(self) -> tuple[Array | Singles | Indices | Mask | Words, ...]:
        """Return the arrays in the order of the parameters."""
        ranges = (self.low, self.high, self.mask)
        return *ranges, self.cost, self.spread, self.key, self.is_new, self.is_candidate

    def take(self, chosen: Indices | Mask) -> Boxes:
        """Return some of the boxes."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = np.flatnonzero(chosen)
        return Boxes(*(part[chosen] for part in self.parts()))  # type: ignore[arg-type]  # in order


class Pool:
    """The open boxes, those with the lowest key first.

    Boxes are kept in arrays that grow. Those with the lowest keys are in order, the others wait in
    no order until the first ones are used up.
    """

    def __init__(self, boxes: Boxes) -> None:
        self._stored = boxes.take(np.empty(0, dtype=np.intp))
        self._free = np.empty(0, dtype=np.intp)
        self._sorted = np.empty(0, dtype=np.intp)  # places of boxes, by their keys
        self._waiting: list[Indices] = []  # places of boxes whose keys are not below the ceiling
        self._ceiling = np.inf
        self.push(boxes)

    def __len__(self) -> int:
        return len(self._sorted) + sum(map(len, self._waiting))

    @property
    def size(self) -> int:
        """The bytes that the boxes take, free places included."""
        return sum(part.nbytes for part in self._stored.parts())

    @property
    def least_key(self) -> float:
        """The lowest key of an open box; infinite without any."""
        self._sort_more(1)
        return float(self._stored.key[self._sorted[0]]) if len(self._sorted) else np.inf

    @property
    def costs(self) -> Array:
        """The costs ``(n,)`` of the open boxes."""
        return self._stored.cost[self._places()]

    def push(self, boxes: Boxes) -> None:
        """Add boxes."""
        n = len(boxes)
        if not n:
            return
        if n > len(self._free):
            self._grow(n - len(self._free))
        places = self._free[-n:]
        self._free = self._free[:-n]
        for stored, part in zip(self._stored.parts(), boxes.parts(), strict=True):
            stored[places] = part
        is_early = boxes.key < self._ceiling
        if not is_early.all():
            self._waiting.append(places[~is_early])
        self._sorted = self._in_order(np.concatenate([self._sorted, places[is_early]]))
        if len(self._sorted) > 2 * self._n_to_sort(len(self)):
            self._keep_order(self._sorted)

    def pop(self, most: int) -> Boxes:
        """Remove and return the boxes with the lowest keys."""
        self._sort_more(most)
        places = self._sorted[:most]
        self._sorted = self._sorted[most:]
        self._free = np.concatenate([self._free, places])
        return self._stored.take(places)

    def sort_by_cost(self) -> None:
        """Order the boxes by their cost from now on."""
        self._stored.key = self._stored.cost.copy()
        self._sorted = self._in_order(self._places())
        self._waiting = []
        self._ceiling = np.inf

    def _places(self) -> Indices:
        """Return the places of all open boxes."""
        return np.concatenate([self._sorted, *self._waiting])

    def _in_order(self, places: Indices) -> Indices:
        """Return places by the keys of their boxes."""
        return places[np.argsort(self._stored.key[places], kind="stable")]

    def _n_to_sort(self, n_open: int) -> int:
        """Return how many of the open boxes are kept in order."""
        return max(_LEAST_SORTED, n_open // _ONE_SORTED_IN)

    def _sort_more(self, least: int) -> None:
        """Bring waiting boxes in order if fewer than `least` boxes are."""
        if len(self._sorted) < least and self._waiting:
            ordered = self._in_order(self._places())
            self._waiting = []
            self._ceiling = np.inf
            self._keep_order(ordered)

    def _keep_order(self, ordered: Indices) -> None:
        """Keep the first of some places in order, and let the others wait."""
        n_sorted = self._n_to_sort(len(ordered) + sum(map(len, self._waiting)))
        self._sorted = ordered[:n_sorted]
        if len(ordered) > n_sorted:
            self._waiting.append(ordered[n_sorted:])
            self._ceiling = float(self._stored.key[ordered[n_sorted]])

    def _grow(self, least: int) -> None:
        """Make room for more boxes."""
        old = len(self._stored)
        new = max(least, old)
        grown = []
        for part in self._stored.parts():
            larger = np.empty((old + new, *part.shape[1:]), dtype=part.dtype)
            larger[:old] = part
            grown.append(larger)
        self._stored = Boxes(*grown)
        self._free = np.concatenate([self._free, np.arange(old, old + new)])
