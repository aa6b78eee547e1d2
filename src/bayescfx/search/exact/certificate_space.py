"""The question of a certificate: its rows, allowed codes, costs and rules.

Written for the check of certificates, which uses no part of the search: every box is a range of
codes for features on a line and a set of codes for the others, and costs are computed from the
numbers in the certificate alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data import Feature
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import Column, Layout, Rows, dtype_from_plain
from bayescfx.data.values import from_plain
from bayescfx.errors import BayesCFXError

#: Share by which a sum of costs may be rounded (numerical).
COST_ROUNDING = 1e-12
#: Share by which a linear rule must be broken to exclude a box (numerical).
RULE_ROUNDING = 5e-10
#: Levels of a feature that a message lists.
MOST_LEVELS = 5


class CertificateError(BayesCFXError, ValueError):
    """A certificate that does not prove what it states."""


@dataclass(frozen=True, eq=False)
class AllowedCodes:
    """The allowed codes of one feature.

    Parameters
    ----------
    feature : Feature
        Its kind, with the step of its grid.
    query : float
        The query's code, which is always allowed; nan if the cell is missing.
    low, high : float
        The limits of the other codes.
    codes : array of shape (c,) or None
        All allowed codes, sorted, if they are listed.
    narrow : type or None
        A narrower float type in which codes must be exact.
    is_line : bool
        Whether boxes hold a range of codes, not a set of them.
    """

    feature: Feature
    query: float
    low: float
    high: float
    codes: Array | None
    narrow: Any
    is_line: bool

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and highest allowed code."""
        if self.codes is not None:
            return float(self.codes[0]), float(self.codes[-1])
        return min(self.low, self.query), max(self.high, self.query)

    def last_up_to(self, x: float) -> float:
        """Return the largest allowed code that is at most `x`; -inf if there is none."""
        if self.codes is not None:
            place = int(np.searchsorted(self.codes, x, side="right")) - 1
            return float(self.codes[place]) if place >= 0 else -np.inf
        end = min(x, self.high)
        near = [code for code in self._grid_near(end) if self.low <= code <= end]
        if self.query <= x:
            near.append(self.query)
        return max(near, default=-np.inf)

    def first_from(self, x: float) -> float:
        """Return the smallest allowed code that is at least `x`; inf if there is none."""
        if self.codes is not None:
            place = int(np.searchsorted(self.codes, x, side="left"))
            return float(self.codes[place]) if place < len(self.codes) else np.inf
        start = max(x, self.low)
        near = [code for code in self._grid_near(start) if start <= code <= self.high]
        if self.query >= x:
            near.append(self.query)
        return min(near, default=np.inf)

    def first_above(self, x: float) -> float:
        """Return the smallest allowed code above `x`; inf if there is none."""
        return self.first_from(float(np.nextafter(x, np.inf)))

    def _grid_near(self, x: float) -> list[float]:
        """Return the codes on the grid around `x`, the limits included."""
        near = np.array([x])
        step = self.feature.code_step
        if step:
            anchor = self.query if self.feature.floating else self.feature.code_range[0]
            near = self.feature.grid(np.rint((x - anchor) / step) + np.arange(-1.0, 2.0), anchor)
        if self.narrow is not None:
            single = near.astype(self.narrow)
            below = np.nextafter(single, self.narrow(-np.inf))
            above = np.nextafter(single, self.narrow(np.inf))
            near = np.concatenate([below, single, above] if not step else [single])
            near = near.astype(np.float64)
        if step:
            near = np.append(near, [self.low, self.high])
        return [float(code) for code in near]


@dataclass(frozen=True, eq=False)
class CodeBox:
    """A box of codes.

    Parameters
    ----------
    low, high : array of shape (d,)
        The ends of the ranges of features on a line; not used for the others.
    sets : dict of int to mask
        For each other feature which of its listed codes belong to the box.
    """

    low: Array
    high: Array
    sets: Mapping[int, Mask]


@dataclass(frozen=True, eq=False)
class Prices:
    """What codes cost.

    Parameters
    ----------
    query, scale, weight, period : array of shape (d,)
        Per feature: the query's code, the unit of change, what a unit costs, and the length of
        the circle or 0.
    is_level : mask of shape (d,)
        Features with unordered levels.
    norm : float
        The norm of the distance; 0 counts changes.
    per_change : float
        The price of each changed feature.
    """

    query: Array
    scale: Array
    weight: Array
    period: Array
    is_level: Mask
    norm: float
    per_change: float

    def powers(self, codes: Array, at: Indices | int) -> Array:
        """Return what codes of features `at` add to the sum of powers of the distance."""
        delta = np.abs(codes - self.query[at])
        if self.norm == 0:
            return np.asarray(self.weight[at] * (delta != 0.0))
        period = self.period[at]
        delta = np.where(period > 0.0, np.minimum(delta, period - delta), delta)
        units = np.where(self.is_level[at], delta != 0.0, delta / self.scale[at])
        return np.asarray((self.weight[at] * units) ** self.norm)

    def changes(self, codes: Array, at: Indices | int) -> Array:
        """Return the price of codes of features `at`: that of a change, or 0."""
        is_changed = np.abs(codes - self.query[at]) > 0.0  # a missing cell never is
        return np.asarray(self.per_change * is_changed)

    def total(self, power: Any, price: Any) -> Any:
        """Return the cost of sums of powers and of prices of changes."""
        distance = power if self.norm in (0, 1) else power ** (1.0 / self.norm)
        return distance + price

    def reach(self, limit: float, power: Array, price: Array, at: Indices) -> Array:
        """Return how far features `at` may be from the query at a cost below a limit.

        `power` and `price` are the sums of the other features, shape (k,).
        """
        weight = self.weight[at]
        room = self._room(limit, price + self.per_change) - power
        if self.norm == 0:
            return np.where(room >= weight, np.inf, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_unit = self.scale[at] / weight
            reach = np.maximum(room, 0.0) ** (1.0 / self.norm) * per_unit
        return np.where(weight > 0.0, reach, np.inf)

    def _room(self, limit: float, price: Array) -> Array:
        """Return the sum of powers at which the cost comes to a limit, rounded up."""
        distance = limit * (1.0 + COST_ROUNDING) - price
        return distance if self.norm in (0, 1) else np.maximum(distance, 0.0) ** self.norm


@dataclass(frozen=True, eq=False)
class CertifiedQuestion:
    """The question of a certificate.

    Parameters
    ----------
    schema : Schema
        The columns of the rows.
    own : Own
        The query's cells.
    allowed : tuple of AllowedCodes
        One per feature.
    prices : Prices
        What codes cost.
    max_changes : int or None
        The most features that may change.
    counts : mask of shape (d,)
        Features that may count as a change.
    rules : list of pairs
        Coefficients ``(d,)`` and bound of each linear rule.
    blocks : list of lists of int
        Features that all rise, all fall, or all stay.
    accepted : list of pairs
        Scores that reach the target, on the scale of the sums.
    slack : float
        By how much scores may differ from the model's through rounding.
    limit : float
        The cost below which no row reaches the target.
    """

    schema: Schema
    own: Own
    allowed: tuple[AllowedCodes, ...]
    prices: Prices
    max_changes: int | None
    counts: Mask
    rules: list[tuple[Array, float]]
    blocks: list[list[int]]
    accepted: list[tuple[float, float]]
    slack: float
    limit: float

    @cached_property
    def lines(self) -> Indices:
        """The features whose boxes are ranges."""
        return np.flatnonzero([each.is_line for each in self.allowed])

    @cached_property
    def listed(self) -> list[int]:
        """The features whose boxes are sets."""
        return [j for j, each in enumerate(self.allowed) if not each.is_line]

    @cached_property
    def _listed_costs(self) -> dict[int, tuple[Array, Array]]:
        """Powers and prices of the listed codes, by feature."""
        prices = self.prices
        costs = {}
        for j in self.listed:
            codes = self.codes(j)
            if np.isnan(codes).any():
                costs[j] = (np.zeros(len(codes)), np.zeros(len(codes)))
            else:
                costs[j] = (prices.powers(codes, j), prices.changes(codes, j))
        return costs

    def codes(self, j: int) -> Array:
        """Return the listed codes of a feature whose boxes are sets."""
        codes = self.allowed[j].codes
        assert codes is not None
        return codes

    def is_own(self, j: int) -> Mask:
        """Return which of the listed codes of a feature is the query's."""
        codes = self.codes(j)
        return np.asarray((codes == self.prices.query[j]) | np.isnan(codes))

    def rows(self, X: Array) -> Rows:
        """Return rows of codes ``(n, d)`` as the model gets them."""
        return self.schema.rows(X, self.own)

    def start(self) -> CodeBox:
        """Return the box of all allowed codes."""
        ends = np.array([each.ends for each in self.allowed])
        sets = {j: np.ones(len(self.codes(j)), dtype=np.bool_) for j in self.listed}
        return CodeBox(ends[:, 0], ends[:, 1], sets)

    def split(self, box: CodeBox, j: int, code: float) -> tuple[CodeBox, CodeBox]:
        """Return the two parts of a box: codes up to the given one, or this one, and the others."""
        allowed = self.allowed[j]
        if allowed.is_line:
            after = allowed.first_above(code)
            last = allowed.last_up_to(code)
            if not (box.low[j] <= last and after <= box.high[j]):
                raise CertificateError(f"{code!r} does not split the range of feature {j}.")
            high = box.high.copy()
            high[j] = last
            low = box.low.copy()
            low[j] = after
            return replace(box, high=high), replace(box, low=low)
        is_first = (self.codes(j) == code) & box.sets[j]
        others = box.sets[j] & ~is_first
        if not is_first.any() or not others.any():
            raise CertificateError(f"{code!r} does not split the codes of feature {j}.")
        return (
            replace(box, sets={**box.sets, j: is_first}),
            replace(box, sets={**box.sets, j: others}),
        )

    # ── costs and changes ──

    def is_moved(self, box: CodeBox) -> Mask:
        """Return the features ``(d,)`` whose query code lies outside a box."""
        query = self.prices.query
        moved = (query < box.low) | (query > box.high)
        for j in self.listed:
            moved[j] = not (box.sets[j] & self.is_own(j)).any()
        return np.asarray(moved & self.counts)

    def corner_costs(self, box: CodeBox) -> tuple[Array, Array]:
        """Return the lowest powers and prices ``(d,)`` of each feature in a box."""
        prices = self.prices
        at = self.lines
        power = np.zeros(len(self.allowed))
        price = np.zeros(len(self.allowed))
        nearest = np.clip(prices.query[at], box.low[at], box.high[at])
        power[at] = prices.powers(nearest, at)
        price[at] = prices.changes(nearest, at)
        for j in self.listed:
            powers, changes = self._listed_costs[j]
            power[j] = powers[box.sets[j]].min()
            price[j] = changes[box.sets[j]].min()
        return power, price

    def pin(self, box: CodeBox) -> CodeBox:
        """Return a box that has used up the changes, its other features as in the query."""
        stays = ~self.is_moved(box) & self.counts
        query = self.prices.query
        low = np.where(stays, query, box.low)
        high = np.where(stays, query, box.high)
        sets = {j: codes & self.is_own(j) if stays[j] else codes for j, codes in box.sets.items()}
        return CodeBox(low, high, sets)

    def narrow(self, box: CodeBox, power: Array, price: Array) -> CodeBox:
        """Leave out codes that cost too much beside the lowest costs ``(d,)`` of the others."""
        if not np.isfinite(self.limit):
            return box
        prices = self.prices
        other_power = power.sum() - power
        other_price = price.sum() - price
        at = self.lines
        reach = prices.reach(self.limit, other_power[at], other_price[at], at)
        low = box.low.copy()
        high = box.high.copy()
        first = np.nextafter(prices.query[at] - reach, -np.inf)
        last = np.nextafter(prices.query[at] + reach, np.inf)
        for k in np.flatnonzero((first > low[at]) | (last < high[at])).tolist():
            j = int(at[k])
            # A box whose corner costs less than the limit is never empty.
            low[j] = min(max(low[j], self.allowed[j].first_from(float(first[k]))), high[j])
            high[j] = max(min(high[j], self.allowed[j].last_up_to(float(last[k]))), low[j])
        sets = dict(box.sets)
        for j, codes in sets.items():
            if codes.sum() > 1:
                powers, changes = self._listed_costs[j]
                cost = prices.total(other_power[j] + powers, other_price[j] + changes)
                sets[j] = codes & (cost < self.limit * (1.0 + COST_ROUNDING))
        return CodeBox(low, high, sets)

    def breaks_rule(self, box: CodeBox) -> bool:
        """Return whether every row of a box breaks the same rule."""
        low = box.low.copy()
        high = box.high.copy()
        for j, codes in box.sets.items():
            kept = self.codes(j)[codes]
            low[j] = kept.min()
            high[j] = kept.max()
        for coefficients, bound in self.rules:
            used = np.flatnonzero(coefficients)
            factor = coefficients[used]
            terms = factor * np.where(factor > 0.0, low[used], high[used])
            slack = RULE_ROUNDING * (abs(bound) + float(np.abs(terms).sum()))
            if terms.sum() > bound + slack:
                return True
        return any(self._parts_block(block, low, high) for block in self.blocks)

    def _parts_block(self, block: list[int], low: Array, high: Array) -> bool:
        """Return whether features between two ends ``(d,)`` can't all rise, all fall or stay."""
        query = self.prices.query[block]
        may_rise = high[block] > query
        may_fall = low[block] < query
        may_stay = (low[block] <= query) & (high[block] >= query)
        return not (may_rise.all() or may_fall.all() or may_stay.all())

    def describe(self, box: CodeBox) -> str:
        """Return in words what makes a box smaller than the space."""
        start = self.start()
        parts = []
        for j, name in enumerate(self.schema.names):
            feature = self.allowed[j].feature
            if self.allowed[j].is_line:
                if (box.low[j], box.high[j]) != (start.low[j], start.high[j]):
                    low, high = (feature.format(end) for end in (box.low[j], box.high[j]))
                    parts.append(f"{name} from {low} to {high}")
            elif not box.sets[j].all():
                levels = [feature.format(float(code)) for code in self.codes(j)[box.sets[j]]]
                more = ", …" if len(levels) > MOST_LEVELS else ""
                parts.append(f"{name} in {', '.join(levels[:MOST_LEVELS])}{more}")
        return "; ".join(parts) or "all allowed rows"


# ── reading ──


def read_question(certificate: Mapping[str, Any]) -> CertifiedQuestion:
    """Return the question of a certificate."""
    schema = _read_schema(certificate["table"])
    layout = Layout.from_plain(certificate["table"]["layout"])
    cells = [from_plain(cell) for cell in certificate["table"]["cells"]]
    plain = certificate["features"]
    query = np.array([from_plain(each["query"]) for each in plain], dtype=np.float64)
    own = Own(query[None], schema.cells(layout.table([cells])))
    kinds = list(schema.features.values())
    allowed = tuple(_read_allowed(kind, each) for kind, each in zip(kinds, plain, strict=True))
    cost = certificate["cost"]
    prices = Prices(
        query=query,
        scale=np.array([from_plain(each["scale"]) for each in plain], dtype=np.float64),
        weight=np.array([each["weight"] for each in plain], dtype=np.float64),
        period=np.array([kind.period for kind in kinds], dtype=np.float64),
        is_level=np.array([kind.categorical for kind in kinds], dtype=np.bool_),
        norm=float(cost["norm"]),
        per_change=float(cost["per_change"]),
    )
    limit = certificate["limit"]
    return CertifiedQuestion(
        schema=schema,
        own=own,
        allowed=allowed,
        prices=prices,
        max_changes=certificate["max_changes"],
        counts=np.array([each["counts"] for each in plain], dtype=np.bool_),
        rules=[_read_rule(rule, len(plain)) for rule in certificate["rules"]],
        blocks=[[int(j) for j in block] for block in certificate["together"]],
        accepted=[(from_plain(low), from_plain(high)) for low, high in certificate["accepted"]],
        slack=float(certificate["slack"]),
        limit=np.inf if limit is None else float(limit),
    )


def _read_schema(plain: Mapping[str, Any]) -> Schema:
    """Return the features and columns of a certificate."""
    features = {from_plain(name): Feature.from_plain(kind) for name, kind in plain["features"]}
    columns = tuple(Column(from_plain(name), dtype_from_plain(d)) for name, d in plain["columns"])
    array = None if plain["array"] is None else np.dtype(plain["array"])
    return Schema(features, columns, array, dict(from_plain(plain["groups"])))


def _read_allowed(feature: Feature, plain: Mapping[str, Any]) -> AllowedCodes:
    """Return the allowed codes of one feature."""
    query = from_plain(plain["query"])
    codes = None
    if plain["codes"] is not None:
        codes = np.unique(np.array(from_plain(plain["codes"]), dtype=np.float64))
    elif plain["grid"] is not None:
        codes = grid_codes(feature, query, *plain["grid"])
    return AllowedCodes(
        feature=feature,
        query=query,
        low=from_plain(plain["low"]),
        high=from_plain(plain["high"]),
        codes=codes,
        narrow=None if plain["narrow"] is None else np.dtype(plain["narrow"]).type,
        is_line=bool(plain["is_line"]),
    )


def grid_codes(feature: Feature, query: float, first: int, last: int) -> Array:
    """Return the query's code and those of a grid from one number of steps to another."""
    anchor = query if feature.floating else feature.code_range[0]
    codes = feature.grid(np.arange(first, last + 1, dtype=np.float64), anchor)
    return np.unique(np.append(codes, query))


def _read_rule(plain: Mapping[str, Any], n_features: int) -> tuple[Array, float]:
    """Return the coefficients ``(d,)`` and the bound of a linear rule."""
    coefficients = np.zeros(n_features)
    for j, factor in plain["coefficients"]:
        coefficients[j] = factor
    return coefficients, float(plain["bound"])
