"""What is said about one feature: fixed, a direction, absolute and relative limits.

Limits of one feature combine by intersection; seen from a query they become an `Axis`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import is_several, shown
from bayescfx.data import Feature
from bayescfx.errors import SpaceError
from bayescfx.space.axis import MOST_CHOICES, Axis
from bayescfx.space.rule import Rule, Words

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space

Pair: TypeAlias = tuple[float, float]
_ANYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Limits(Rule):
    """Everything said about one feature; all in codes."""

    name: Hashable
    fixed: bool = False
    side: int = 0  # -1: only down, 1: only up
    between: Pair = _ANYWHERE
    levels: tuple[float, ...] | None = None  # allowed codes of a feature with levels
    move: Pair = _ANYWHERE  # relative to the query

    rank = 0

    @property
    def words(self) -> Words:
        return Words(f"the limits of {self.name!r}", "", f"limit on {self.name!r}")

    def told(self, name: Hashable, feature: Feature) -> str:
        if name != self.name or self.fixed:
            return "fixed" if name == self.name else ""
        parts = ["only up" if self.side > 0 else "only down"] if self.side else []
        if self.between != _ANYWHERE:
            low, high = feature.say(*self.between)
            both = f"between {low} … {high}" if self.between[0] > -math.inf else f"at most {high}"
            parts.append(both if self.between[1] < math.inf else f"at least {low}")
        if self.levels is not None:
            more = ", …" if len(self.levels) > 5 else ""
            parts.append(f"only {', '.join(feature.say(*self.levels[:5]))}{more}")
        if self.move != _ANYWHERE:
            parts.append(f"moves {self.move[0]:+g} … {self.move[1]:+g}")
        return ", ".join(parts)

    def seen_from(self, region: Region) -> Rule | None:
        """Return the limits of a derived feature; those of others are in its axis."""
        return self if region.recomputed[region.schema.positions[self.name]] else None

    def holds(self, region: Region, X: Array) -> Mask:
        """Return where a derived feature keeps its limits, or is as in the query."""
        j = region.schema.positions[self.name]
        codes, query = X[:, j], region.query[j]
        allowed = self._allowed(codes, self._interval(query, _ANYWHERE))
        return np.asarray(allowed | (codes == query))

    def _allowed(self, codes: Array, interval: Pair) -> Mask:
        allowed = (codes >= interval[0]) & (codes <= interval[1])
        return allowed if self.levels is None else allowed & np.isin(codes, self.levels)

    def _interval(self, query: float, outer: Pair) -> Pair:
        """Return the lowest and highest code a move may lead to; empty if low > high."""
        floor, roof = query if self.side > 0 else -math.inf, query if self.side < 0 else math.inf
        low = max(outer[0], self.between[0], query + self.move[0], floor)
        return low, min(outer[1], self.between[1], query + self.move[1], roof)

    def axis(self, feature: Feature, query: float, dtype: Any, *, inferred: bool) -> Axis:
        """Return the allowed codes, seen from the query's; `dtype` is the column's."""
        dtype = getattr(dtype, "numpy_dtype", dtype)  # that of the numbers in a nullable column
        narrow = dtype.type if dtype.kind == "f" and dtype.itemsize < 8 else None
        axis = Axis(feature, query, query, query, np.array([query]), narrow)
        if self.fixed or np.isnan(query):
            return axis
        if feature.period:
            return replace(axis, choices=self._on_circle(feature, query))
        low, high = feature.code_range
        if inferred:  # the user's limits may exceed it; open ends are closed by the data's
            start, end = self.between
            low = start if math.isfinite(start) else min(low, end)
            high = end if math.isfinite(end) else max(high, start)
        if dtype.kind in "iu" and feature.numeric:
            info = np.iinfo(dtype)
            low, high = max(low, float(info.min)), min(high, float(info.max))
        low, high = self._interval(query, (low, high))
        if narrow is not None and np.isfinite([low, high]).all():
            low, high = _inwards(low, narrow), -_inwards(-high, narrow)
        if low > high:
            return axis
        if feature.code_step > 0:
            return self._on_grid(axis, low, high)
        choices = np.unique([query, low]) if low == high else None
        return replace(axis, low=low, high=high, choices=choices)

    def _on_grid(self, axis: Axis, low: float, high: float) -> Axis:
        feature, anchor, step = axis.feature, axis.anchor, axis.feature.code_step
        # keeps grid points that rounding moved past a limit, by more in single precision
        slack = 1e-9 if axis.narrow is None else 1e-2
        first = int(np.ceil((low - anchor) / step - slack))
        last = int(np.floor((high - anchor) / step + slack))
        if last < first:
            return axis
        narrow = axis.narrow or np.float64

        def grid_at(k: Array) -> Array:
            return np.asarray(feature.grid(k, anchor).astype(narrow).astype(np.float64))

        ends = np.clip(grid_at(np.array([first, last], np.float64)), low, high)
        axis = replace(axis, low=float(ends[0]), high=float(ends[1]))
        if last - first >= MOST_CHOICES and not feature.levelled:
            return replace(axis, choices=None)
        grid = grid_at(np.arange(first, last + 1, dtype=np.float64))
        grid = grid if axis.narrow is None else np.unique(grid)
        grid = grid[self._allowed(grid, (low, high))]
        at = int(np.searchsorted(grid, axis.query))
        if at == len(grid) or grid[at] != axis.query:
            grid = np.insert(grid, at, axis.query)
        return replace(axis, choices=grid)

    def _on_circle(self, feature: Feature, query: float) -> Array:
        """Return the allowed codes on a circle: relative limits wrap around."""
        low, high = feature.code_range
        codes = feature.grid(np.arange((high - low) // feature.code_step + 1), low)
        ahead, (below, above) = np.mod(codes - query, feature.period), self.move
        behind = ahead - feature.period
        near = ((ahead >= below) & (ahead <= above)) | ((behind >= below) & (behind <= above))
        return np.unique(np.append(codes[self._allowed(codes, self.between) & near], query))


def _inwards(low: float, narrow: Any) -> float:
    """Return the lowest number above `low` that the narrower float type holds."""
    inner = narrow(low)
    return float(np.nextafter(inner, narrow(np.inf)) if float(inner) < low else inner)


def limits_of(space: Space) -> dict[Hashable, Limits]:
    """Return what was said of single features, by name."""
    return {rule.name: rule for rule in space.rules if isinstance(rule, Limits)}


def _limited(
    space: Space, wishes: Mapping[Any, Any], change: Callable[[Limits, Feature, Any], Limits]
) -> Space:
    """Return the space with the limits of the features named changed, each by its wish."""
    said, new = limits_of(space), dict[Hashable, Limits]()
    for name, wish in space.wishes(wishes, "limits").items():
        old = new.get(name) or said.get(name) or Limits(name)
        new[name] = change(old, space.features[name], wish)
    return space.adding(*new.values(), instead_of=[said[name] for name in new if name in said])


def fix(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features never move."""
    found = dict.fromkeys(map(space.name, names))
    return _limited(space, found, lambda old, _feature, _wish: replace(old, fixed=True))


def allow(space: Space, *names: Hashable) -> Space:
    """Return the space in which only these features may move."""
    allowed = {space.name(name) for name in names}
    return fix(space, *(name for name in space.features if name not in allowed))


def only_up(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features may only rise."""
    return _directed(space, names, 1, "only_up")


def only_down(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features may only fall."""
    return _directed(space, names, -1, "only_down")


def _directed(space: Space, names: Iterable[Hashable], side: int, verb: str) -> Space:
    def directed(old: Limits, feature: Feature, _: None) -> Limits:
        check_ordered(old.name, feature, verb)
        # both directions together mean fixed
        return replace(old, side=side, fixed=old.fixed or old.side == -side)

    return _limited(space, dict.fromkeys(map(space.name, names)), directed)


def check_ordered(name: Hashable, feature: Feature, verb: str) -> None:
    """Raise unless up and down mean something for a feature; on a circle it may still `move`."""
    if feature.categorical if verb == "move" else not feature.ordered:
        kind = type(feature).__name__ if feature.categorical else "cyclic"
        advice = f"Use `between`{'' if verb == 'move' else ' or `move`, or make it Ordinal'}."
        told = f"`{verb}` needs an order, but {name!r} is {kind}."
        raise SpaceError(told, parameter="order", advice=advice)


def between(space: Space, limits: Mapping[Any, Any]) -> Space:
    """Return the space with absolute limits for the features named.

    Parameters
    ----------
    limits : dict of name to (low, high) or to a list of levels
        ``None`` leaves an end open. Limits may exceed the data. A query beyond the limits
        may stay where it is.
    """
    return _limited(space, limits, _cut)


def _cut(old: Limits, feature: Feature, wish: Any) -> Limits:
    name, verb = old.name, "between"
    if not feature.levelled:
        code = partial(feature.code, name=name, verb=verb)
        return replace(old, between=_met(old.between, wish, code, name, verb))
    if not is_several(wish):
        raise SpaceError(f"`between` for {name!r} must be a list of levels; got {shown(wish)}.")
    codes = {feature.code(level, name, verb) for level in wish}
    kept = codes if old.levels is None else codes & set(old.levels)
    if not kept:
        raise SpaceError(f"`between` leaves no level of {name!r}. Allow at least one.")
    return replace(old, levels=tuple(sorted(kept)))


def move(space: Space, limits: Mapping[Any, Any]) -> Space:
    """Return the space with limits relative to the query for the features named.

    Parameters
    ----------
    limits : dict of name to (low, high)
        Changes in the feature's units: levels of an `Ordinal`, time units of a `Moment`
        (or durations such as ``"2D"``). ``None`` leaves an end open.
    """
    return _limited(space, limits, _cut_relative)


def _cut_relative(old: Limits, feature: Feature, wish: Any) -> Limits:
    name = old.name
    check_ordered(name, feature, "move")
    return replace(old, move=_met(old.move, wish, partial(feature.shift, name=name), name, "move"))


def _met(old: Pair, wish: Any, code: Callable[[Any], float], name: Hashable, verb: str) -> Pair:
    """Return what a pair of limits that a user gave leaves of another."""
    ends = tuple(wish) if is_several(wish) and not isinstance(wish, Mapping | Set) else ()
    if len(ends) != 2:
        raise SpaceError(f"`{verb}` for {name!r} must be a pair (low, high); got {shown(wish)}.")
    new = tuple(far if end is None else code(end) for end, far in zip(ends, _ANYWHERE, strict=True))
    if new[0] > new[1]:
        raise SpaceError(f"`{verb}` for {name!r} must have low <= high; got {new}.")
    low, high = max(old[0], new[0]), min(old[1], new[1])
    if low > high:
        raise SpaceError(
            f"`{verb}` leaves nothing for {name!r}: {new} does not meet {old}. Widen one of them."
        )
    return low, high
