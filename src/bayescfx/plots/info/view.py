"""An answer seen through a surrogate of all that was evaluated, on scales of its features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys, same_codes
from bayescfx.data import Feature
from bayescfx.deadline import NEVER
from bayescfx.errors import hearing
from bayescfx.evaluations.known import fitting_codes
from bayescfx.potentials import Logit
from bayescfx.result import wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation
from bayescfx.search.learning import relevant
from bayescfx.search.threads import one_thread
from bayescfx.search.verdict import overconfidence
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate


@dataclass(frozen=True, eq=False)
class Scale:
    """One feature's codes on a line from its lowest to its highest."""

    feature: Feature
    low: float  # codes of the ends
    high: float

    @classmethod
    def of(cls, region: Region, j: int, *codes: float) -> Scale:
        """Return the scale of feature `j`, wide enough for what is allowed and for `codes`."""
        feature = region.schema.features[region.names[j]]
        known = [*feature.code_range, region.low[j], region.high[j], region.query[j], *codes]
        finite = [code for code in known if math.isfinite(code)]
        return cls(feature, float(min(finite)), float(max(finite)))

    @property
    def ordered(self) -> bool:
        """Whether a place on the scale means more or less."""
        return not self.feature.categorical

    @property
    def levels(self) -> Array:
        """Codes of the levels, if they are few enough to be marked one by one; else none."""
        n = len(self.feature.levels) if self.feature.levelled else 0
        return np.arange(n if n <= 12 else 0, dtype=np.float64)

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends as a person writes them."""
        return self.label(self.low), self.label(self.high)

    def place(self, code: float) -> float:
        """Return where a code stands, 0 to 1; the middle if there is only one."""
        if not self.high > self.low or math.isnan(code):
            return 0.5
        return float(min(max((code - self.low) / (self.high - self.low), 0.0), 1.0))

    def label(self, code: float) -> str:
        """Return a code as a person writes it."""
        if math.isnan(code):
            return "missing"
        return wording.number(code) if self.feature.numeric else self.feature.label(code)

    def move(self, before: float, after: float) -> tuple[str, str]:
        """Return two codes with as many digits as tell them apart."""
        if self.feature.numeric and not math.isnan(before):
            return wording.both(before, after)
        return self.label(before), self.label(after)

    def ticks(self, n: int = 4) -> list[tuple[float, str]]:
        """Return about `n` codes with their labels, for features that are not plain numbers."""
        codes = self.levels
        if not self.feature.levelled:
            codes = np.linspace(self.low, self.high, n)
        elif not len(codes):
            codes = np.unique(np.rint(np.linspace(0, len(self.feature.levels) - 1, n)))
        return [(code, self.label(code)) for code in codes.tolist()]


@dataclass(frozen=True, eq=False)
class View:
    """An answer, its region, and what was evaluated, as codes."""

    answer: Explanation
    region: Region  # what was allowed; without the rules that a file could not hold
    X: Array  # codes (n, d) of the rows that were evaluated, fit and miss what the query misses
    y: Array  # their outputs (n,)

    @classmethod
    def of(cls, answer: Explanation) -> View:
        """Return the view of an answer; its evaluations may be of any age and from elsewhere."""
        bare, known = cls.bare(answer), answer.evaluations
        region = bare.region
        if known.rows is None or known.columns != tuple(region.schema.places):
            return bare
        X, fits = fitting_codes(region.schema, known.rows)
        y = known.outputs[fits]
        scored = ~np.isnan(y) & region.same_missing(X)
        return cls(answer, region, X[scored], y[scored])

    @classmethod
    def bare(cls, answer: Explanation) -> View:
        """Return the view of an answer without what was evaluated: quick, and without effects."""
        region = around(answer.space, answer.layout.table([list(answer.query)]))
        return cls(answer, region, np.empty((0, len(region.query))), np.empty(0))

    @cached_property
    def answers(self) -> Array:
        """Codes ``(k, d)`` of the counterfactuals."""
        return self.region.encode(self.answer.rows)

    def relevant(self, most: int) -> Indices:
        """Return the positions of the rows that matter for the answer, so many at most."""
        return relevant(self.region, self.X, most, self.answers[:4])

    @cached_property
    def link(self) -> Logit | None:
        """Log-odds where every output is a probability; the scale of the surrogate."""
        inside = len(self.y) and self.y.min() >= 0.0 and self.y.max() <= 1.0
        return Logit() if inside else None

    @cached_property
    def surrogate(self) -> Surrogate | None:
        """The surrogate, or nothing where too little is known."""
        if len(self.y) < 3 or np.ptp(self.y) == 0.0:
            return None
        settings = SurrogateSettings()
        chosen = self.relevant(settings.points)
        # And what is shown: rows that differ from query or answer in one feature.
        counted = ~self.region.recomputed
        for base in (self.region.query, self.answers[0]):
            other = ~same_codes(self.X, base)[:, counted]
            chosen = np.union1d(chosen, np.flatnonzero(other.sum(axis=1) <= 1)[:200])
        y = self.y[chosen] if self.link is None else self.link.forward(self.y[chosen])
        with hearing(lambda _: None), one_thread():
            return fit_surrogate(settings, self.region, self.X[chosen], y, None, NEVER)

    @cached_property
    def doubt(self) -> float:
        """By what factor the surrogate's deviations are widened, at least 1."""
        return 1.0 if self.surrogate is None else overconfidence(self.surrogate)

    def predict(self, X: Array, deviations: Any = 0.0) -> Array:
        """Return the surrogate's outputs ``(n,)``, raised by some of its deviations ``(k, 1)``."""
        assert self.surrogate is not None
        with one_thread():
            mean, std = self.surrogate.predict(X)
        u = mean + deviations * self.doubt * std
        return np.asarray(u if self.link is None else self.link.inverse(u))

    def line(self, X: Array, j: int) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """Return the surrogate along feature `j`: mean, both ends of its band, and what was seen.

        These are codes and outputs of the rows on the line that the model scored.
        """
        mean, low, high = self.predict(X, np.array([[0.0], [-2.0], [2.0]]))
        others = ~self.region.recomputed & (np.arange(X.shape[1]) != j)
        on = same_codes(self.X, X[0])[:, others].all(axis=1)
        return mean, low, high, (self.X[on, j], self.y[on])

    def moved(self, which: int) -> Indices:
        """Return the positions of the features in which an answer differs from the query."""
        return np.flatnonzero(self.region.changes(self.answers[[which]])[0])

    def by_effect(self, which: int) -> list[tuple[int, float | None]]:
        """Return changed features and effects, the largest first; without any, the longest move."""
        moved, effects = self.moved(which), self.effects(which)
        if effects is None:
            region = self.region
            length = np.abs(self.answers[which] - region.query) / region.scale
            length = np.where(region.categorical, 1.0, length)[moved]
            return [(int(j), None) for j in moved[np.argsort(-length, kind="stable")]]
        order = np.argsort(-np.abs(effects), kind="stable")
        return [(int(moved[i]), float(effects[i])) for i in order]

    def effects(self, which: int) -> Array | None:
        """Return what each change of an answer contributes to the output, None without a surrogate.

        Shapley values: averages over the orders in which changes can be made, all of up to 10. They
        sum up to the whole change; outputs in between are the surrogate's where not known.
        """
        moved = self.moved(which)
        k = len(moved)
        if self.surrogate is None or not k:
            return None
        found = np.zeros(k)
        if k <= 10:
            bits = np.arange(2**k)
            subsets = (bits[:, None] >> np.arange(k) & 1).astype(bool)
            worth, size = self._worth(which, moved, subsets), subsets.sum(axis=1)
            share = np.array([1.0 / (k * math.comb(k - 1, made)) for made in range(k)])
            for i in range(k):
                without = bits[~subsets[:, i]]
                found[i] = share[size[without]] @ (worth[without | 1 << i] - worth[without])
            return found
        rng = np.random.default_rng(0)
        orders = [rng.permutation(k) for _ in range(32)]
        for order in [*orders, *(order[::-1] for order in orders)]:
            subsets = np.tril(np.ones((k + 1, k), dtype=bool), -1)[:, np.argsort(order)]
            found[order] += np.diff(self._worth(which, moved, subsets))
        return found / (2 * len(orders))

    def _worth(self, which: int, moved: Indices, subsets: Mask) -> Array:
        """Return the outputs with only some of the changes made: the model's where known."""
        X = np.tile(self.region.query, (len(subsets), 1))
        X[:, moved] = np.where(subsets, self.answers[which, moved], self.region.query[moved])
        X = self.region.complete(X)
        pairs = zip(row_keys(X), self.predict(X), strict=True)
        worth = np.array([self._known.get(key, y) for key, y in pairs])
        worth[~subsets.any(axis=1)] = self.answer.output
        worth[subsets.all(axis=1)] = self.answer.counterfactuals[which].output
        return worth

    @cached_property
    def _known(self) -> dict[bytes, float]:
        return dict(zip(row_keys(self.X), self.y.tolist(), strict=True))


def along(region: Region, j: int, codes: Array, base: Array) -> Array:
    """Return a row ``(d,)`` with feature `j` at each of the codes, derived features following."""
    X = np.tile(base, (len(codes), 1))
    X[:, j] = codes
    return region.complete(X)
