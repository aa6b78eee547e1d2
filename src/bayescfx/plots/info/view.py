"""An answer with its region, its evaluations as codes, and a surrogate fitted to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, row_keys, same_codes
from bayescfx.data import Feature
from bayescfx.deadline import NEVER
from bayescfx.errors import redirect_warnings
from bayescfx.evaluations.known import fitting_codes
from bayescfx.potentials import Logit
from bayescfx.result import wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation
from bayescfx.search.question import relevant
from bayescfx.search.turns import one_thread
from bayescfx.search.verdict import overconfidence
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate

LEAST_ROWS = 3  # that a surrogate is fitted to
_MOST_LEVELS = 12  # that a scale marks one by one
_MOST_EXACT = 10  # changes whose effects are computed from all subsets
_N_ORDERS = 32  # random orders for the effects of more changes
_BASES = 4  # counterfactuals whose neighbourhood the surrogate is fitted to
_MOST_ON_CURVES = 200  # rows on the response curves of one base


@dataclass(frozen=True, eq=False)
class Scale:
    """One feature's codes on a line from its lowest to its highest."""

    feature: Feature
    low: float  # codes of the ends
    high: float

    @classmethod
    def of(cls, region: Region, j: int, *codes: float) -> Scale:
        """Return the scale of feature `j`, wide enough for the allowed range and for `codes`."""
        feature = region.schema.features[region.names[j]]
        shown = [*feature.code_range, region.low[j], region.high[j], region.query[j], *codes]
        finite = [code for code in shown if math.isfinite(code)]
        return cls(feature, float(min(finite)), float(max(finite)))

    @property
    def ordered(self) -> bool:
        """Whether places on the scale have an order."""
        return not self.feature.categorical

    @property
    def levels(self) -> Array:
        """Codes of the levels, if they are few enough to be marked one by one; else none."""
        n_levels = len(self.feature.levels) if self.feature.has_levels else 0
        if n_levels > _MOST_LEVELS:
            n_levels = 0
        return np.arange(n_levels, dtype=np.float64)

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends as text."""
        return self.label(self.low), self.label(self.high)

    def place(self, code: float) -> float:
        """Return the place of a code, 0 to 1; the middle if the scale has one point."""
        if not self.high > self.low or math.isnan(code):
            return 0.5
        share = (code - self.low) / (self.high - self.low)
        return float(min(max(share, 0.0), 1.0))

    def label(self, code: float) -> str:
        """Return a code as text."""
        if math.isnan(code):
            return "missing"
        return wording.number(code) if self.feature.numeric else self.feature.label(code)

    def move(self, before: float, after: float) -> tuple[str, str]:
        """Return two codes as texts with enough digits to tell them apart."""
        if self.feature.numeric and not math.isnan(before):
            return wording.both(before, after)
        return self.label(before), self.label(after)

    def ticks(self, n: int = 4) -> list[tuple[float, str]]:
        """Return about `n` codes with their labels, for features that are not plain numbers."""
        codes = self.levels
        if not self.feature.has_levels:
            codes = np.linspace(self.low, self.high, n)
        elif not len(codes):
            codes = np.unique(np.rint(np.linspace(0, len(self.feature.levels) - 1, n)))
        return [(code, self.label(code)) for code in codes.tolist()]


@dataclass(frozen=True, eq=False)
class View:
    """An answer, its region, and its evaluations as codes."""

    answer: Explanation
    region: Region  # without the rules that a file could not hold
    X: Array  # codes (n, d) of scored rows with the same missing cells as the query
    y: Array  # their outputs (n,)

    @classmethod
    def of(cls, answer: Explanation, region: Region | None = None) -> View:
        """Return the view of an answer; rows of its evaluations that do not fit are left out.

        `region` is the one around the query, if there is one already.
        """
        if region is None:
            region = around(answer.space, answer.query_rows)
        evaluations = answer.evaluations
        if evaluations.rows is None or evaluations.columns != tuple(region.schema.places):
            return cls.bare(answer)
        X, fits = fitting_codes(region.schema, evaluations.rows)
        y = evaluations.outputs[fits]
        is_scored = ~np.isnan(y) & region.same_missing(X)
        return cls(answer, region, X[is_scored], y[is_scored])

    @classmethod
    def bare(cls, answer: Explanation) -> View:
        """Return the view of an answer without its evaluations: fast, and without effects."""
        region = around(answer.space, answer.query_rows)
        return cls(answer, region, np.empty((0, len(region.query))), np.empty(0))

    @cached_property
    def answers(self) -> Array:
        """Codes ``(k, d)`` of the counterfactuals."""
        return self.region.encode(self.answer.rows)

    def relevant(self, most: int) -> Indices:
        """Return the positions of the rows most relevant to the answer, at most `most`."""
        return relevant(self.region, self.X, most, self.answers[:_BASES])

    def reduced(self, most: int) -> View:
        """Return the view with only the rows that matter for the answer, so many at most."""
        kept = self.relevant(most)
        return View(self.answer, self.region, self.X[kept], self.y[kept])

    @cached_property
    def link(self) -> Logit | None:
        """The scale of the surrogate: log-odds if every output is a probability."""
        if not len(self.y) or self.y.min() < 0.0 or self.y.max() > 1.0:
            return None
        return Logit()

    @cached_property
    def surrogate(self) -> Surrogate | None:
        """The surrogate; None if there are too few different outputs."""
        if len(self.y) < LEAST_ROWS or np.ptp(self.y) == 0.0:
            return None
        settings = SurrogateSettings()
        chosen = self.relevant(settings.points)
        # Also the rows that response curves show: those that differ in one feature at most.
        counted = ~self.region.recomputed
        for base in (self.region.query, self.answers[0]):
            differs = ~same_codes(self.X, base)[:, counted]
            on_curves = np.flatnonzero(differs.sum(axis=1) <= 1)[:_MOST_ON_CURVES]
            chosen = np.union1d(chosen, on_curves)
        y = self.y[chosen] if self.link is None else self.link.forward(self.y[chosen])
        with redirect_warnings(lambda _: None), one_thread():
            return fit_surrogate(settings, self.region, self.X[chosen], y, None, NEVER)

    @cached_property
    def doubt(self) -> float:
        """The factor by which the surrogate's deviations are widened, at least 1."""
        return 1.0 if self.surrogate is None else overconfidence(self.surrogate)

    def predict(self, X: Array, deviations: Any = 0.0) -> Array:
        """Return the surrogate's outputs ``(n,)`` plus multiples ``(k, 1)`` of its deviation."""
        assert self.surrogate is not None
        with one_thread():
            mean, std = self.surrogate.predict(X)
        u = mean + deviations * self.doubt * std
        return np.asarray(u if self.link is None else self.link.inverse(u))

    def line(self, X: Array, j: int) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """Return the surrogate along feature `j`: mean, low and high end of its band.

        The last item are codes and outputs of the scored rows on the line.
        """
        mean, low, high = self.predict(X, np.array([[0.0], [-2.0], [2.0]]))
        others = ~self.region.recomputed & (np.arange(X.shape[1]) != j)
        on_line = same_codes(self.X, X[0])[:, others].all(axis=1)
        return mean, low, high, (self.X[on_line, j], self.y[on_line])

    def moved(self, which: int) -> Indices:
        """Return the positions of the features that a counterfactual changes, not derived ones."""
        follows = self.answer.counterfactuals[which].follows
        is_moved = self.region.changes(self.answers[[which]])[0]
        # A space from a file has lost the functions of derived features.
        is_moved[[self.region.names.index(name) for name in follows]] = False
        return np.flatnonzero(is_moved)

    def by_effect(self, which: int) -> list[tuple[int, float | None]]:
        """Return changed features and their effects, the largest first.

        Without a surrogate, effects are None and the longest move comes first.
        """
        moved = self.moved(which)
        effects = self.effects(which)
        if effects is None:
            region = self.region
            length = np.abs(self.answers[which] - region.query) / region.scale
            length = np.where(region.categorical, 1.0, length)[moved]
            return [(int(j), None) for j in moved[np.argsort(-length, kind="stable")]]
        order = np.argsort(-np.abs(effects), kind="stable")
        return [(int(moved[i]), float(effects[i])) for i in order]

    def effects(self, which: int) -> Array | None:
        """Return what each change contributes to the output; None without a surrogate.

        These are Shapley values: averages over the orders in which changes can be made. They sum up
        to the whole change. Outputs in between are the model's if scored, else the surrogate's.
        """
        moved = self.moved(which)
        if self.surrogate is None or not len(moved):
            return None
        if len(moved) <= _MOST_EXACT:
            return self._exact_effects(which, moved)
        return self._sampled_effects(which, moved)

    def _exact_effects(self, which: int, moved: Indices) -> Array:
        """Return Shapley values ``(k,)`` from all 2^k subsets of the changes."""
        k = len(moved)
        bits = np.arange(2**k)
        subsets = (bits[:, None] >> np.arange(k) & 1).astype(bool)
        outputs = self._outputs(which, moved, subsets)
        sizes = subsets.sum(axis=1)
        weights = np.array([1.0 / (k * math.comb(k - 1, size)) for size in range(k)])
        effects = np.zeros(k)
        for i in range(k):
            without = bits[~subsets[:, i]]
            gains = outputs[without | 1 << i] - outputs[without]
            effects[i] = weights[sizes[without]] @ gains
        return effects

    def _sampled_effects(self, which: int, moved: Indices) -> Array:
        """Return Shapley values ``(k,)`` from random orders and their reverse."""
        k = len(moved)
        rng = np.random.default_rng(0)
        orders = [rng.permutation(k) for _ in range(_N_ORDERS)]
        orders += [order[::-1] for order in orders]
        effects = np.zeros(k)
        for order in orders:
            subsets = np.tril(np.ones((k + 1, k), dtype=bool), -1)[:, np.argsort(order)]
            effects[order] += np.diff(self._outputs(which, moved, subsets))
        return effects / len(orders)

    def _outputs(self, which: int, moved: Indices, subsets: Mask) -> Array:
        """Return the outputs ``(n,)`` with subsets ``(n, k)`` of the changes made."""
        X = np.tile(self.region.query, (len(subsets), 1))
        X[:, moved] = np.where(subsets, self.answers[which, moved], self.region.query[moved])
        X = self.region.complete(X)
        pairs = zip(row_keys(X), self.predict(X), strict=True)
        outputs = np.array([self._scored.get(key, y) for key, y in pairs])
        outputs[~subsets.any(axis=1)] = self.answer.output
        outputs[subsets.all(axis=1)] = self.answer.counterfactuals[which].output
        return outputs

    @cached_property
    def _scored(self) -> dict[bytes, float]:
        """Outputs of the model by key of the row."""
        return dict(zip(row_keys(self.X), self.y.tolist(), strict=True))


def along(region: Region, j: int, codes: Array, base: Array) -> Array:
    """Return copies of a row ``(d,)`` with feature `j` at each code, derived features following."""
    X = np.tile(base, (len(codes), 1))
    X[:, j] = codes
    return region.complete(X)
