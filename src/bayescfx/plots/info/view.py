"""An answer seen through a surrogate of everything that was evaluated for it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.deadline import NEVER
from bayescfx.errors import BayesCFXError, BayesCFXWarning
from bayescfx.potentials.family import contains
from bayescfx.potentials.links import Logit
from bayescfx.result.explanation import Explanation
from bayescfx.search.surrogate import Surrogate, SurrogateSettings, learn, relevant
from bayescfx.search.threads import one_thread
from bayescfx.search.verdict import overconfidence
from bayescfx.space.cells import UNKNOWN
from bayescfx.space.region import Region
from bayescfx.tables import Row

_LEAST = 3  # rows below which a surrogate says nothing
_EXACT = 10  # changes up to which every subset is looked at
_ORDERS = 64  # random orders beyond that


@dataclass(frozen=True, eq=False)
class View:
    """An answer, its region, and what was evaluated, as codes.

    Parameters
    ----------
    answer : Explanation
        The answer.
    region : Region
        What was allowed; without the rules that a file could not hold.
    X : ndarray of shape (n, d)
        Codes of the rows that were evaluated, faults left out.
    y : ndarray of shape (n,)
        Their outputs.
    """

    answer: Explanation
    region: Region
    X: Array
    y: Array

    @classmethod
    def of(cls, answer: Explanation) -> View:
        """Return the view of an answer; its evaluations may be of any age and from elsewhere."""
        with warnings.catch_warnings():
            # What there is to say about this query was said when the question was asked.
            warnings.simplefilter("ignore", BayesCFXWarning)
            region = answer.space.around(answer.layout.table([list(answer.query)]))
        X, y = _evaluated(answer, region)
        return cls(answer, region, X, y)

    def codes(self, row: Row) -> Array:
        """Return the codes ``(d,)`` of one row of the answer."""
        return np.asarray(self.region.encode(self.answer.layout.table([list(row)]))[0])

    @cached_property
    def answers(self) -> Array:
        """Codes ``(k, d)`` of the counterfactuals."""
        return np.array([self.codes(c.row) for c in self.answer.counterfactuals])

    @cached_property
    def link(self) -> Logit | None:
        """Log-odds where every output is a probability; the scale of the surrogate."""
        inside = len(self.y) and self.y.min() >= 0.0 and self.y.max() <= 1.0
        return Logit() if inside else None

    @cached_property
    def surrogate(self) -> Surrogate | None:
        """The surrogate, or nothing where too little is known."""
        if len(self.y) < _LEAST or np.ptp(self.y) == 0.0:
            return None
        settings = SurrogateSettings()
        chosen = relevant(self.region, self.X, settings.points, self.answers[:4])
        y = self.y[chosen] if self.link is None else self.link.forward(self.y[chosen])
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", BayesCFXWarning)
            return learn(settings, self.region, self.X[chosen], y, None, NEVER)

    @cached_property
    def doubt(self) -> float:
        """By what factor the surrogate's deviations are widened, at least 1."""
        return 1.0 if self.surrogate is None else overconfidence(self.surrogate)

    def predict(self, X: Array, deviations: float = 0.0) -> Array:
        """Return the surrogate's outputs ``(n,)``, raised by some of its deviations."""
        assert self.surrogate is not None
        with one_thread():
            mean, std = self.surrogate.predict(X)
        u = mean + deviations * self.doubt * std
        return np.asarray(u if self.link is None else self.link.inverse(u))

    def moved(self, which: int) -> Indices:
        """Return the positions of the features in which an answer differs from the query."""
        return np.flatnonzero(self.region.changes(self.answers[[which]])[0])

    def followed(self, which: int) -> Indices:
        """Return the positions of derived features that followed."""
        codes = self.answers[which]
        same = (codes == self.region.query) | (np.isnan(codes) & np.isnan(self.region.query))
        return np.setdiff1d(np.flatnonzero(~same), self.moved(which))

    def effects(self, which: int) -> Array | None:
        """Return what each change of an answer contributes to the output.

        Shapley values of the changes: averages over the orders in which they can be made. Where
        only some of them are made, the output is the model's if it is known, else the
        surrogate's. They sum up to the whole change of the model's output.

        Returns
        -------
        ndarray of shape (changes,), or None without a surrogate
        """
        moved = self.moved(which)
        if self.surrogate is None or not len(moved):
            return None
        if len(moved) <= _EXACT:
            return self._exact(which, moved)
        rng = np.random.default_rng(0)
        orders = [rng.permutation(len(moved)) for _ in range(_ORDERS // 2)]
        found = np.zeros(len(moved))
        for order in [*orders, *(order[::-1] for order in orders)]:
            made = np.tril(np.ones((len(moved) + 1, len(moved)), dtype=bool), -1)
            subsets = np.zeros_like(made)
            subsets[:, order] = made
            found[order] += np.diff(self._worth(which, moved, subsets))
        return found / (2 * len(orders))

    def _exact(self, which: int, moved: Indices) -> Array:
        k = len(moved)
        subsets = np.array([[bits >> i & 1 for i in range(k)] for bits in range(2**k)], dtype=bool)
        worth = self._worth(which, moved, subsets)
        found = np.zeros(k)
        for bits, made in enumerate(subsets):
            size = int(made.sum())
            for i in np.flatnonzero(~made):
                weight = math.factorial(size) * math.factorial(k - size - 1) / math.factorial(k)
                found[i] += weight * (worth[bits | 1 << i] - worth[bits])
        return found

    def _worth(self, which: int, moved: Indices, subsets: Mask) -> Array:
        """Return the outputs with only some of the changes made: the model's where known."""
        X = np.tile(self.region.query, (len(subsets), 1))
        X[:, moved] = np.where(subsets, self.answers[which, moved], self.region.query[moved])
        X = self.region.complete(X)
        worth = self.predict(X)
        for i, key in enumerate(row_keys(X)):
            worth[i] = self._known.get(key, worth[i])
        worth[~subsets.any(axis=1)] = self.answer.output
        worth[subsets.all(axis=1)] = self.answer.counterfactuals[which].output
        return worth

    @cached_property
    def _known(self) -> dict[bytes, float]:
        """The model's outputs by the exact codes of a row."""
        return dict(zip(row_keys(self.X), self.y.tolist(), strict=True))

    def by_effect(self, which: int) -> Indices:
        """Return the changed features, the most effective first; without a surrogate by length."""
        moved = self.moved(which)
        effects = self.effects(which)
        if effects is None:
            length = np.abs(self.answers[which, moved] - self.region.query[moved])
            unordered = self.region.categorical[moved]
            effects = np.where(unordered, 1.0, length / self.region.scale[moved])
        return moved[np.argsort(-np.abs(effects), kind="stable")]

    def accepted(self, y: Array) -> Mask:
        """Return which outputs count as reached."""
        return contains(self.answer.accepted, y)


def _evaluated(answer: Explanation, region: Region) -> tuple[Array, Array]:
    """Return codes and outputs of the rows that fit the space."""
    rows, schema = answer.evaluations.rows, region.schema
    none = np.empty((0, len(region.query))), np.empty(0)
    if rows is None:
        return none
    try:
        X = schema.encode_cells(schema.cells(rows))
    except BayesCFXError:  # kept for another space of the same model
        return none
    y = np.asarray(answer.evaluations.outputs, dtype=np.float64)
    known = ~np.isnan(y) & (X[:, schema.levelled] != UNKNOWN).all(axis=1)
    return X[known], y[known]
