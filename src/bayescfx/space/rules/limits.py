"""Limits of single features: fixed, a direction, absolute and relative limits.

Limits of one feature combine by intersection; seen from a query they become an `Axis`. They bind
the values that a feature changes to: a query outside its limits may stay where it is. Strict limits
bind every returned row. If the query lies outside them, they are a rule beside the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, is_several, shown
from bayescfx.data import Feature
from bayescfx.data.tables import narrow_float
from bayescfx.errors import SpaceError
from bayescfx.space.axis import MOST_CHOICES, Axis
from bayescfx.space.rule import Rule, Words

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space

Pair: TypeAlias = tuple[float, float]
_ANYWHERE = (-math.inf, math.inf)

# Numerical: grid points that rounding moved past a limit by at most this share of a step are kept.
_SLACK = 1e-9
_SLACK_IN_SINGLE_PRECISION = 1e-2
# Levels that a description lists.
_MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Limits(Rule):
    """All limits of one feature, in codes.

    Parameters
    ----------
    name : hashable
        The feature.
    fixed : bool
        Whether it never changes.
    side : {-1, 0, 1}
        The only direction in which it may move, or 0 for both.
    between : tuple of two floats
        Absolute limits; infinite where they are open.
    levels : tuple of floats, optional
        Allowed codes of a feature with levels.
    strict : tuple of two floats
        The part of `between` that also binds a query outside it.
    strict_levels : tuple of floats, optional
        The levels that every row has one of, whatever the query has.
    move : tuple of two floats
        Limits relative to the query.
    identifies_rows : bool
        Whether it is fixed because each data row has a value of its own.
    """

    name: Hashable
    fixed: bool = False
    side: int = 0
    between: Pair = _ANYWHERE
    levels: tuple[float, ...] | None = None
    strict: Pair = _ANYWHERE
    strict_levels: tuple[float, ...] | None = None
    move: Pair = _ANYWHERE
    identifies_rows: bool = False

    rank = 0

    @property
    def is_absolute(self) -> bool:
        """Whether it limits values, not only changes of them."""
        return self.between != _ANYWHERE or self.levels is not None

    @property
    def is_strict(self) -> bool:
        """Whether it binds every returned row, one that keeps the query's value included."""
        return self.strict != _ANYWHERE or self.strict_levels is not None

    @property
    def words(self) -> Words:
        """The rule in words; each feature's line shows its limits."""
        return Words(f"the limits of {self.name!r}", "", f"limit on {self.name!r}")

    def describe_feature(self, name: Hashable, feature: Feature) -> str:
        """Return direction, limits, levels and relative limits in words."""
        if name != self.name:
            return ""
        if self.fixed:
            return "fixed (identifies the rows)" if self.identifies_rows else "fixed"
        parts = []
        if self.side:
            parts.append("only up" if self.side > 0 else "only down")
        if self.is_absolute:
            parts.append(self.describe_values(feature))
        is_all_strict = (self.strict, self.strict_levels) == (self.between, self.levels)
        if self.is_strict:
            strict = replace(self, between=self.strict, levels=self.strict_levels)
            parts.append("strict" if is_all_strict else f"strict {strict.describe_values(feature)}")
        if self.move != _ANYWHERE:
            parts.append(f"moves {self.move[0]:+g} … {self.move[1]:+g}")
        return ", ".join(parts)

    def describe_values(self, feature: Feature) -> str:
        """Return the absolute limits, or the allowed levels, in words."""
        if self.levels is not None:
            more = ", …" if len(self.levels) > _MOST_SHOWN else ""
            return f"only {', '.join(feature.display(*self.levels[:_MOST_SHOWN]))}{more}"
        low, high = feature.display(*self.between)
        if self.between[0] == -math.inf:
            return f"at most {high}"
        if self.between[1] == math.inf:
            return f"at least {low}"
        return f"between {low} and {high}"

    def for_query(self, region: Region) -> Rule | None:
        """Return the limits of a derived feature, and strict ones that the query breaks.

        All others are in the axis of the feature.
        """
        j = region.schema.positions[self.name]
        if region.recomputed[j]:
            return self
        return None if self._is_inside(region.query[[j]])[0] else self

    def holds(self, region: Region, X: Array) -> Mask:
        """Return where strict limits hold; a derived feature keeps all, or stays as it is."""
        j = region.schema.positions[self.name]
        codes = X[:, j]
        inside = self._is_inside(codes)
        if not region.recomputed[j]:
            return inside
        query = region.query[j]
        allowed = self._allows(codes, self._interval(query, _ANYWHERE))
        return np.asarray(inside & (allowed | (codes == query)))

    def halfspaces(self, region: Region) -> list[tuple[Array, float]]:
        """Return the strict limits that the axis of the feature does not imply."""
        j = region.schema.positions[self.name]
        interval = self._strict_interval(region.axes[j].feature)
        if region.recomputed[j] or interval is None:
            return []
        unit = np.zeros(len(region.query))
        unit[j] = 1.0
        ends = [(unit, interval[1], region.high[j]), (-unit, -interval[0], -region.low[j])]
        return [(a, bound) for a, bound, farthest in ends if farthest > bound]

    def curved(self, region: Region) -> bool:
        """Return whether it is no interval of codes of a feature that may change by itself."""
        j = region.schema.positions[self.name]
        is_interval = self._strict_interval(region.axes[j].feature) is not None
        return bool(region.recomputed[j]) or not is_interval

    def _is_inside(self, codes: Array) -> Mask:
        """Return which codes keep the strict limits; a missing cell keeps none."""
        if not self.is_strict:
            return np.ones(len(codes), dtype=np.bool_)
        inside = (codes >= self.strict[0]) & (codes <= self.strict[1])
        if self.strict_levels is not None:
            inside &= np.isin(codes, self.strict_levels)
        return np.asarray(inside)

    def _strict_interval(self, feature: Feature) -> Pair | None:
        """Return the strict limits as an interval of codes; None if levels form none."""
        if self.strict_levels is None:
            return self.strict
        low, high = self.strict_levels[0], self.strict_levels[-1]
        is_interval = high - low + 1.0 == len(self.strict_levels)
        return (low, high) if is_interval and not feature.categorical else None

    def is_outside(self, codes: Array) -> Mask:
        """Return which codes lie outside absolute limits that a query may stay outside of."""
        is_missing = np.isnan(codes)
        return np.asarray(~self._allows(codes, self.between) & ~is_missing & self._is_inside(codes))

    def _allows(self, codes: Array, interval: Pair) -> Mask:
        """Return which codes lie in an interval and are allowed levels."""
        allowed = (codes >= interval[0]) & (codes <= interval[1])
        return allowed if self.levels is None else allowed & np.isin(codes, self.levels)

    def _interval(self, query: float, outer: Pair) -> Pair:
        """Return the lowest and highest code a move may lead to; empty if low > high."""
        low = max(outer[0], self.between[0], query + self.move[0])
        high = min(outer[1], self.between[1], query + self.move[1])
        if self.side > 0:
            low = max(low, query)
        if self.side < 0:
            high = min(high, query)
        return low, high

    def axis(self, feature: Feature, query: float, dtype: Any, *, inferred: bool) -> Axis:
        """Return the allowed codes, seen from the query's; `dtype` is the column's."""
        narrow = narrow_float(dtype)
        dtype = getattr(dtype, "numpy_dtype", dtype)  # that of the numbers in a nullable column
        axis = Axis(feature, query, query, query, np.array([query]), narrow)
        if self.fixed or np.isnan(query):
            return axis
        if feature.period:
            return replace(axis, choices=self._on_circle(feature, query))
        low, high = self._interval(query, self._outer(feature, dtype, inferred))
        if narrow is not None and np.isfinite([low, high]).all():
            low = _round_up(low, narrow)
            high = -_round_up(-high, narrow)
        if low > high:
            return axis
        if feature.code_step > 0:
            return self._on_grid(axis, low, high)
        choices = np.unique([query, low]) if low == high else None
        return replace(axis, low=low, high=high, choices=choices)

    def _outer(self, feature: Feature, dtype: Any, inferred: bool) -> Pair:
        """Return the range of a feature; absolute limits replace one that was inferred."""
        low, high = feature.code_range
        if inferred:  # the user's limits may exceed it; open ends are closed by the data's
            start, end = self.between
            low = start if math.isfinite(start) else min(low, end)
            high = end if math.isfinite(end) else max(high, start)
        if dtype.kind in "iu" and feature.numeric:
            info = np.iinfo(dtype)
            low = max(low, float(info.min))
            high = min(high, float(info.max))
        return low, high

    def _on_grid(self, axis: Axis, low: float, high: float) -> Axis:
        """Return the axis of a feature with a step, between limits."""
        feature = axis.feature
        anchor = axis.anchor
        slack = _SLACK if axis.narrow is None else _SLACK_IN_SINGLE_PRECISION
        first = int(np.ceil((low - anchor) / feature.code_step - slack))
        last = int(np.floor((high - anchor) / feature.code_step + slack))
        if last < first:
            return axis
        is_listed = last - first < MOST_CHOICES or feature.has_levels
        steps = np.array([first, last], dtype=np.float64)
        if is_listed:
            steps = np.arange(first, last + 1, dtype=np.float64)
        grid = axis.round(feature.grid(steps, anchor))
        lowest, highest = np.clip(grid[[0, -1]], low, high).tolist()
        if not is_listed:
            return replace(axis, low=lowest, high=highest, choices=None)
        if axis.narrow is not None:
            grid = np.unique(grid)
        grid = grid[self._allows(grid, (low, high))]
        if not (grid == axis.query).any():
            grid = np.insert(grid, np.searchsorted(grid, axis.query), axis.query)
        return replace(axis, low=lowest, high=highest, choices=grid)

    def _on_circle(self, feature: Feature, query: float) -> Array:
        """Return the allowed codes on a circle: relative limits wrap around."""
        low, high = feature.code_range
        codes = feature.grid(np.arange((high - low) // feature.code_step + 1), low)
        ahead = np.mod(codes - query, feature.period)
        behind = ahead - feature.period
        below, above = self.move
        is_near = (ahead >= below) & (ahead <= above)
        is_near |= (behind >= below) & (behind <= above)
        allowed = codes[self._allows(codes, self.between) & is_near]
        return np.unique(np.append(allowed, query))


def _round_up(number: float, narrow: Any) -> float:
    """Return the lowest number that is not below `number` and that a narrower type holds."""
    nearest = narrow(number)
    if float(nearest) < number:
        nearest = np.nextafter(nearest, narrow(np.inf))
    return float(nearest)


def limits_of(space: Space) -> dict[Hashable, Limits]:
    """Return the limits of single features, by name."""
    return {rule.name: rule for rule in space.rules if isinstance(rule, Limits)}


def _with_limits(
    space: Space, values: Mapping[Any, Any], change: Callable[[Limits, Feature, Any], Limits]
) -> Space:
    """Return the space with the limits of the features named changed, each by its value."""
    old = limits_of(space)
    new: dict[Hashable, Limits] = {}
    for name, value in space.by_name(values, "limits").items():
        before = new.get(name) or old.get(name) or Limits(name)
        new[name] = change(before, space.features[name], value)
    return space.with_rules(*new.values(), instead_of=[old[name] for name in new if name in old])


def fix(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features never change."""
    values = {space.name(name): None for name in names}
    return _with_limits(space, values, lambda old, _feature, _value: replace(old, fixed=True))


def fix_identifiers(space: Space, names: Iterable[Hashable]) -> Space:
    """Return the space in which features that identify the rows never change."""
    found = [Limits(name, fixed=True, identifies_rows=True) for name in names]
    return space.with_rules(*found)


def allow(space: Space, *names: Hashable) -> Space:
    """Return the space in which only these features may change."""
    allowed = {space.name(name) for name in names}
    return fix(space, *(name for name in space.features if name not in allowed))


def only_up(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features may only rise."""
    return _directed(space, names, 1, "only_up")


def only_down(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features may only fall."""
    return _directed(space, names, -1, "only_down")


def _directed(space: Space, names: Iterable[Hashable], side: int, verb: str) -> Space:
    """Return the space in which features may only move to one side."""

    def change(old: Limits, feature: Feature, _: None) -> Limits:
        check_ordered(old.name, feature, verb)
        if old.side == -side:
            other = "only_down" if side > 0 else "only_up"
            raise SpaceError(
                f"`{verb}` for {old.name!r} contradicts `{other}`. Leave one of them out, or call "
                f"fix({old.name!r}) if it must not change."
            )
        return replace(old, side=side)

    return _with_limits(space, {space.name(name): None for name in names}, change)


def check_ordered(name: Hashable, feature: Feature, verb: str) -> None:
    """Raise unless up and down mean something for a feature; on a circle it may still `move`."""
    has_order = not feature.categorical if verb == "move" else feature.ordered
    if has_order:
        return
    kind = type(feature).__name__ if feature.categorical else "cyclic"
    advice = "Use `between`." if verb == "move" else "Use `between` or `move`, or make it Ordinal."
    message = f"`{verb}` needs an order, but {name!r} is {kind}."
    raise SpaceError(message, parameter="order", advice=advice)


def between(space: Space, limits: Mapping[Any, Any], *, strict: bool = False) -> Space:
    """Return the space with absolute limits for the features named.

    Limits bind the values that a feature changes to. A query outside its limits may stay where it
    is, with a warning, but does not move to another value outside.

    Parameters
    ----------
    limits : dict of name to (low, high) or to a list of levels
        ``None`` leaves an end open. Limits may exceed the data.
    strict : bool, default False
        Whether the value of every returned row lies inside, even if the query's does not: the
        feature then has to change. A missing value lies outside.

    Examples
    --------
    >>> from bayescfx.data import Real
    >>> from bayescfx.space import Space
    >>> space = Space({"bmi": Real(15, 45), "bp": Real(60, 130)})
    >>> print(space.between({"bmi": (18, 32)}, strict=True))
    Space of 2 features
      feature  kind  values                          unit of change  limits
      bmi      real  15 … 45 (smallest change 0.05)  7.5             between 18 and 32, strict
      bp       real  60 … 130 (smallest change 0.1)  17.5
    cost: l1 distance + 0.2 per change
    """
    check(isinstance(strict, bool), "strict", "True or False", strict, SpaceError)
    narrowed = _with_limits(space, limits, _narrow_absolute)
    return _with_limits(narrowed, limits, _narrow_strict) if strict else narrowed


def _narrow_absolute(old: Limits, feature: Feature, value: Any) -> Limits:
    """Return limits with a pair of values, or a list of levels, added."""
    if not feature.has_levels:
        code = partial(feature.code, name=old.name, verb="between")
        return replace(old, between=_intersect(old.between, value, code, old.name, "between"))
    if not is_several(value):
        message = f"`between` for {old.name!r} must be a list of levels; got {shown(value)}."
        raise SpaceError(message)
    codes = {feature.code(level, old.name, "between") for level in value}
    kept = codes if old.levels is None else codes & set(old.levels)
    if not kept:
        raise SpaceError(f"`between` leaves no level of {old.name!r}. Allow at least one.")
    return replace(old, levels=tuple(sorted(kept)))


def _narrow_strict(old: Limits, feature: Feature, value: Any) -> Limits:
    """Return limits whose strict part is narrowed to a pair of values, or a list of levels."""
    part = replace(old, between=old.strict, levels=old.strict_levels)
    part = _narrow_absolute(part, feature, value)
    return replace(old, strict=part.between, strict_levels=part.levels)


def move(space: Space, limits: Mapping[Any, Any]) -> Space:
    """Return the space with limits relative to the query for the features named.

    Parameters
    ----------
    limits : dict of name to (low, high)
        Changes in the feature's units: levels of an `Ordinal`, time units of a `Moment`
        (or durations such as ``"2D"``). ``None`` leaves an end open.
    """
    return _with_limits(space, limits, _narrow_relative)


def _narrow_relative(old: Limits, feature: Feature, value: Any) -> Limits:
    """Return limits with a pair of relative changes added."""
    check_ordered(old.name, feature, "move")
    code = partial(feature.shift, name=old.name)
    return replace(old, move=_intersect(old.move, value, code, old.name, "move"))


def _intersect(
    old: Pair, value: Any, code: Callable[[Any], float], name: Hashable, verb: str
) -> Pair:
    """Return the intersection of two intervals; the second is a pair that a user gave."""
    is_pair = is_several(value) and not isinstance(value, Mapping | Set)
    ends = tuple(value) if is_pair else ()
    if len(ends) != 2:
        raise SpaceError(f"`{verb}` for {name!r} must be a pair (low, high); got {shown(value)}.")
    new = (
        -math.inf if ends[0] is None else code(ends[0]),
        math.inf if ends[1] is None else code(ends[1]),
    )
    if new[0] > new[1]:
        raise SpaceError(f"`{verb}` for {name!r} must have low <= high; got {new}.")
    low = max(old[0], new[0])
    high = min(old[1], new[1])
    if low > high:
        raise SpaceError(
            f"`{verb}` leaves nothing for {name!r}: {new} does not meet {old}. Widen one of them."
        )
    return low, high
