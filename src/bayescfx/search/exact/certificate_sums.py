r"""The check of certificates of linear models: bounds by Lagrange multipliers.

A box of a linear model is closed by a word, as those of trees are, or by multipliers. For fixed
multipliers the cost and all constraints become one sum over features, so that its minimum over a
box is the sum of the minima over the codes of single features. If it exceeds the limit, no row of
the box is wanted. Any multipliers give a valid bound; the search only finds good ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.models.readers.forms import LinearModel
from bayescfx.search.exact.certificate_reasons import (
    SUM_ROUNDING,
    BoxReasons,
    features_of_columns,
)
from bayescfx.search.exact.certificate_space import (
    RULE_ROUNDING,
    CertificateError,
    CertifiedQuestion,
    CodeBox,
)

#: Codes of a continuous feature at which its gain is compared with a line.
N_SAMPLED = 257
#: Share of its range by which a gain may differ from a line.
STRAIGHT = 2e-6
#: Share by which terms of a bound may be rounded (numerical).
BOUND_ROUNDING = 1e-12
#: Norms whose distance is a sum over features.
NORMS = (0, 1)
#: The key of splits between accepted intervals.
TARGET = "target"


@dataclass(frozen=True, eq=False)
class SumBox:
    """A box of codes, and some of the accepted intervals.

    Parameters
    ----------
    codes : CodeBox
        The codes.
    targets : tuple of int
        The accepted intervals, by their places.
    """

    codes: CodeBox
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of one box.

    Parameters
    ----------
    cost : {0, 1}
        Whether the cost counts; 0 where the constraints exclude each other.
    target : float
        Of the accepted sums: positive for the low end, negative for the high end.
    changes : float
        Of the bound on changes; not negative.
    rules : tuple of float
        Of the linear rules; not negative.
    """

    cost: float
    target: float
    changes: float
    rules: tuple[float, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return them in JSON's own types."""
        fields = vars(self).items()
        return {key: list(v) if isinstance(v, tuple) else float(v) for key, v in fields}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], question: CertifiedQuestion) -> Multipliers:
        """Return multipliers that were read; raise if they give no valid bound."""
        numbers = {key: float(value) for key, value in plain.items() if not isinstance(value, list)}
        lists = {key: tuple(map(float, v)) for key, v in plain.items() if isinstance(v, list)}
        found = cls(**numbers, **lists)  # type: ignore[arg-type]  # by name
        everything = [*numbers.values(), *found.rules]
        is_valid = [
            bool(np.isfinite(everything).all()),
            found.cost in (0.0, 1.0),
            min([found.changes, *found.rules]) >= 0.0,
            len(found.rules) == len(question.rules),
        ]
        if not all(is_valid):
            raise CertificateError("the multipliers of a box are not valid.")
        return found


def fault_of_norm(norm: float) -> str | None:
    """Return why there is no certificate for a norm of the distance; None if there is one."""
    if norm in NORMS:
        return None
    return (
        "certificates of linear models are made for norms 0 and 1; the distance of this space "
        f"has norm {norm:g}"
    )


@dataclass(frozen=True, eq=False)
class CodeTerms:
    """What some codes of one feature add; arrays over codes.

    Parameters
    ----------
    code : array
        The codes.
    cost : array
        Distance and price of each.
    changed : array
        1 for codes other than the query's.
    gain : array
        What each adds to the sum of the query.
    """

    code: Array
    cost: Array
    changed: Array
    gain: Array

    def take(self, chosen: Mask) -> CodeTerms:
        """Return some of the codes."""
        return CodeTerms(
            self.code[chosen],
            self.cost[chosen],
            self.changed[chosen],
            self.gain[chosen],
        )


class LinearBounds(BoxReasons[SumBox]):
    """The gains of a linear model over codes, and the reasons to close boxes.

    Parameters
    ----------
    form : LinearModel
        The model.
    question : CertifiedQuestion
        The question.
    """

    same_cost = 1e-5

    def __init__(self, form: LinearModel, question: CertifiedQuestion) -> None:
        fault = fault_of_norm(question.prices.norm)
        if fault is not None:
            raise CertificateError(f"{fault}.")
        self.form = form
        self._source = features_of_columns(form, question)
        query = question.prices.query
        numbers = form.inputs.compute(question.rows(query[None]))[0]
        is_used = form.weights != 0.0
        terms = numbers[is_used] * form.weights[is_used]
        self._numbers = numbers
        self.total = float(terms.sum() + form.base)
        if not np.isfinite(self.total):
            raise CertificateError("the model has no finite output for the query.")
        self._check_sources(question)
        self._slopes: dict[int, tuple[float, float]] = {}
        self._listed: dict[int, CodeTerms] = {}
        for j in np.flatnonzero(question.counts).tolist():
            self._measure(question, j)
        largest = sum(float(np.abs(each.gain).max()) for each in self._listed.values())
        ends = [max(abs(low), abs(high)) for low, high in self._gain_ends(question)]
        size = float(np.abs(terms).sum()) + abs(form.base) + largest + sum(ends)
        errors = sum(error for _, error in self._slopes.values())
        super().__init__(question, question.slack + SUM_ROUNDING * size + errors)

    # ── gains ──

    def _check_sources(self, question: CertifiedQuestion) -> None:
        """Raise if the model reads a column that is computed from others."""
        for j in np.unique(self._source[self.form.weights != 0.0]).tolist():
            if not question.counts[j] and not np.isnan(question.prices.query[j]):
                raise CertificateError("the model reads a derived column.")

    def _gains(self, question: CertifiedQuestion, j: int, codes: Array) -> Array:
        """Return what codes of a feature add to the sum of the query."""
        own = np.flatnonzero((self._source == j) & (self.form.weights != 0.0))
        if not len(own):
            return np.zeros(len(codes))
        X = np.repeat(question.prices.query[None], len(codes), axis=0)
        X[:, j] = codes
        numbers = self.form.inputs.compute(question.rows(X))
        gain = (numbers[:, own] - self._numbers[own]) @ self.form.weights[own]
        if not np.isfinite(gain).all():
            raise CertificateError(f"no finite output for values of {question.schema.names[j]!r}.")
        return np.asarray(gain)

    def _measure(self, question: CertifiedQuestion, j: int) -> None:
        """Compute the gains of all codes of a feature, or the slope of a continuous one."""
        allowed = question.allowed[j]
        if allowed.codes is not None:
            gain = self._gains(question, j, allowed.codes)
            self._listed[j] = self._terms(question, j, allowed.codes, gain)
            return
        if not allowed.is_line:
            raise CertificateError(f"the codes of {question.schema.names[j]!r} are not listed.")
        query = float(question.prices.query[j])
        spread = [allowed.last_up_to(x) for x in np.linspace(*allowed.ends, N_SAMPLED).tolist()]
        codes = np.unique([code for code in [*spread, *allowed.ends, query] if np.isfinite(code)])
        gain = self._gains(question, j, codes)
        slope = float((gain[-1] - gain[0]) / (codes[-1] - codes[0]))
        error = float(np.abs(gain - slope * (codes - query)).max())
        if error > STRAIGHT * float(np.ptp(gain)):
            raise CertificateError(f"the gain of {question.schema.names[j]!r} is not linear.")
        self._slopes[j] = (slope, 2.0 * error)

    def _terms(self, question: CertifiedQuestion, j: int, codes: Array, gain: Array) -> CodeTerms:
        """Return what codes of a feature add."""
        prices = question.prices
        changed = (codes != prices.query[j]).astype(np.float64)
        cost = prices.powers(codes, j) + prices.changes(codes, j)
        return CodeTerms(codes, cost, changed, gain)

    def _gain_ends(self, question: CertifiedQuestion) -> list[tuple[float, float]]:
        """Return the gains at both ends of the continuous features."""
        found = []
        for j, (slope, _) in self._slopes.items():
            low, high = question.allowed[j].ends
            query = float(question.prices.query[j])
            found.append((slope * (low - query), slope * (high - query)))
        return found

    @cached_property
    def features(self) -> list[int]:
        """The features that may count as a change."""
        return sorted([*self._slopes, *self._listed])

    def terms(self, box: CodeBox, j: int) -> CodeTerms:
        """Return what the codes of a feature in a box add.

        Of a continuous feature these are the ends of the box, and the query with and without what a
        change costs; any combination of terms has its minimum at one of them.
        """
        if j in self._listed:
            every = self._listed[j]
            if j in box.sets:
                return every.take(box.sets[j])
            return every.take((every.code >= box.low[j]) & (every.code <= box.high[j]))
        query = float(self.question.prices.query[j])
        low = float(box.low[j])
        high = float(box.high[j])
        has_query = low <= query <= high
        codes = np.array([low, high, *([query, query] if has_query and low < high else [])])
        found = self._terms(self.question, j, codes, self._slopes[j][0] * (codes - query))
        if len(codes) > 2:  # next to the query, but changed
            prices = self.question.prices
            found.changed[-1] = 1.0
            found.cost[-1] = prices.per_change
            if prices.norm == 0:
                found.cost[-1] += float(prices.weight[j])
        return found

    def score(self, codes: Array) -> float:
        """Return the score of codes ``(d,)``."""
        return float(self.form.raw(self.question.rows(codes[None]))[0, 0])

    def misses_target(self, box: CodeBox) -> bool:
        """Return whether no sum of a box can be accepted."""
        gains = [self.terms(box, j).gain for j in self.features]
        low = self.total + sum(float(gain.min(initial=np.inf)) for gain in gains)
        high = self.total + sum(float(gain.max(initial=-np.inf)) for gain in gains)
        return not any(low <= end and high >= start for start, end in self.accepted)

    # ── boxes ──

    def start(self) -> SumBox:
        """Return the box of all allowed rows."""
        places = tuple(range(len(self.accepted)))
        return SumBox(self.question.start(), places)

    def split(self, box: SumBox, key: Any, value: Any) -> tuple[SumBox, SumBox]:
        """Return the two parts of a box: up to a value, and from there on or all others."""
        if isinstance(key, int):
            first, second = self.question.split(box.codes, key, value)
            return replace(box, codes=first), replace(box, codes=second)
        if key == TARGET:
            own = tuple(k for k in box.targets if k == value)
            others = tuple(k for k in box.targets if k != value)
            return replace(box, targets=own), replace(box, targets=others)
        raise CertificateError(f"{key!r} can't be split.")

    def describe(self, box: SumBox) -> str:
        """Return in words what makes a box smaller than the space."""
        return self.question.describe(box.codes)

    def fault(self, box: SumBox, reason: Any) -> str | None:
        """Return what is wrong with the reason for which a box is closed; None if nothing is."""
        if isinstance(reason, str):
            return self.fault_of_word(box.codes, reason)
        multipliers = Multipliers.from_plain(reason, self.question)
        small = self.shrink(box)
        if small is None or self.is_excluded(small, multipliers):
            return None
        return "its multipliers: it may hold an answer"

    def shrink(self, box: SumBox) -> SumBox | None:
        """Return a box without codes that its rows can't have; None if nothing is left."""
        question = self.question
        codes = box.codes
        if not box.targets:
            return None
        unit, price = question.corner_costs(codes)
        n_moved = int(question.is_moved(codes).sum())
        if question.max_changes is not None and n_moved >= question.max_changes:
            codes = question.pin(codes)
        if question.prices.total(unit.sum(), price.sum()) < question.limit:
            codes = question.narrow(codes, unit, price)
        return replace(box, codes=codes)

    # ── the bound ──

    def is_excluded(self, box: SumBox, multipliers: Multipliers) -> bool:
        """Return whether the bound by multipliers excludes every row of a shrunken box."""
        goal = self.question.limit if multipliers.cost else 0.0
        for place in box.targets:
            bound, size = self.bound(box, self.accepted[place], multipliers)
            margin = BOUND_ROUNDING * (size + (goal if multipliers.cost else 0.0))
            if not bound - margin > goal * (1.0 if multipliers.cost else 0.0):
                return False
        return True

    def bound(
        self, box: SumBox, target: tuple[float, float], multipliers: Multipliers
    ) -> tuple[float, float]:
        """Return the lower bound for rows whose sum lies in a target, and the size of its terms."""
        if target[0] == np.inf or target[1] == -np.inf:  # no sum lies in it
            return np.inf, 0.0
        parts = self._constants(target, multipliers)
        for j in self.features:
            terms = self.terms(box.codes, j)
            value = self._combine(terms, j, multipliers)
            if not len(value):
                return np.inf, 0.0
            parts.append(float(value.min()))
        if not np.isfinite(parts).all():
            return -np.inf, 0.0
        largest = abs(multipliers.target) * (abs(self.total) + 1.0)
        return float(np.sum(parts)), float(np.abs(parts).sum()) + largest

    def _combine(self, terms: CodeTerms, j: int, multipliers: Multipliers) -> Array:
        """Return the sum of all terms of a feature's codes, each times its multiplier."""
        value = multipliers.cost * terms.cost + multipliers.changes * terms.changed
        value -= multipliers.target * terms.gain
        for weight, (coefficients, _) in zip(multipliers.rules, self.question.rules, strict=True):
            if weight and coefficients[j]:
                value = value + weight * coefficients[j] * terms.code
        return np.asarray(value)

    def _constants(self, target: tuple[float, float], multipliers: Multipliers) -> list[float]:
        """Return the parts of the bound that no feature changes."""
        question = self.question
        parts = []
        if multipliers.target:
            end = target[0] if multipliers.target > 0.0 else target[1]
            parts.append(multipliers.target * (end - self.total))
        if multipliers.changes:
            if question.max_changes is None:
                return [-np.inf]
            parts.append(-multipliers.changes * question.max_changes)
        fixed = np.ones(len(question.counts), dtype=np.bool_)
        fixed[self.features] = False
        for weight, (coefficients, bound) in zip(multipliers.rules, question.rules, strict=True):
            if weight:
                own = coefficients[fixed] != 0.0
                rest = float(coefficients[fixed][own] @ question.prices.query[fixed][own])
                room = RULE_ROUNDING * (abs(bound) + abs(rest))
                room += RULE_ROUNDING * self._rule_size(coefficients)
                parts.append(weight * (rest - bound - room))
        return parts

    def _rule_size(self, coefficients: Array) -> float:
        """Return the size of the terms of a linear rule."""
        box = self.question.start()
        size = 0.0
        for j in np.flatnonzero(coefficients[self.features]).tolist():
            code = self.terms(box, self.features[j]).code
            size += abs(coefficients[self.features[j]]) * float(np.abs(code).max())
        return size
