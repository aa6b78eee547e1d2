"""What a user says about one feature: fixed, a direction, absolute and relative limits.

Limits of one feature combine by intersection; seen from a query they become an `Axis`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError
from bayescfx.features import (
    Categorical,
    Feature,
    Integer,
    Moment,
    Ordinal,
    Real,
    code_range,
    code_step,
    grid_codes,
    is_cyclic,
)
from bayescfx.space.axis import MOST_CHOICES, Axis
from bayescfx.space.cells import Column

_EVERYWHERE = (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything said about one feature; all in codes.

    Parameters
    ----------
    fixed : bool
        It never moves.
    side : {-1, 0, 1}
        Only down, both ways, only up.
    between : pair of float, optional
        Absolute limits.
    levels : tuple of float, optional
        Allowed codes of a feature with levels.
    move : pair of float, optional
        Limits relative to the query.
    """

    fixed: bool = False
    side: int = 0
    between: tuple[float, float] | None = None
    levels: tuple[float, ...] | None = None
    move: tuple[float, float] | None = None

    def with_side(self, side: int) -> Limits:
        """Return the limits with a direction; both directions together mean fixed."""
        return replace(self, side=side, fixed=self.fixed or self.side == -side)

    def with_between(self, name: Hashable, feature: Feature, wish: Any) -> Limits:
        """Return the limits cut down to a pair ``(low, high)`` or to a list of levels."""
        if isinstance(feature, (Ordinal, Categorical)):
            codes = _level_codes(name, feature, wish)
            kept = codes if self.levels is None else tuple(c for c in codes if c in self.levels)
            if not kept:
                raise SpaceError(f"`between` leaves no level of {name!r}. Allow at least one.")
            return replace(self, levels=tuple(sorted(set(kept))))
        low, high = _pair("between", name, wish)
        pair = (
            -np.inf if low is None else _code("between", name, feature, low),
            np.inf if high is None else _code("between", name, feature, high),
        )
        return replace(self, between=_intersection(self.between, pair, name, "between"))

    def with_move(self, name: Hashable, feature: Feature, wish: Any) -> Limits:
        """Return the limits with the relative limits cut down to ``(low, high)``."""
        if isinstance(feature, Categorical):
            raise SpaceError(f"`move` needs an order, but {name!r} is Categorical. Use `between`.")
        low, high = _pair("move", name, wish)
        pair = (
            -np.inf if low is None else _shift(name, feature, low),
            np.inf if high is None else _shift(name, feature, high),
        )
        return replace(self, move=_intersection(self.move, pair, name, "move"))

    def interval(
        self, query: float, outer: tuple[float, float] = _EVERYWHERE
    ) -> tuple[float, float]:
        """Return the lowest and highest code a move may lead to; empty if low > high."""
        low, high = outer
        if self.between is not None:
            low, high = max(low, self.between[0]), min(high, self.between[1])
        if self.move is not None:
            low, high = max(low, query + self.move[0]), min(high, query + self.move[1])
        if self.side > 0:
            low = max(low, query)
        if self.side < 0:
            high = min(high, query)
        return low, high

    def allow(self, codes: Array, query: float) -> Mask:
        """Return which codes keep the limits, as a mask; for derived features."""
        low, high = self.interval(query)
        allowed = (codes >= low) & (codes <= high)
        if self.levels is not None:
            allowed &= np.isin(codes, self.levels)
        return np.asarray(allowed)


def make_axis(
    feature: Feature, limits: Limits, query: float, column: Column | None, *, inferred: bool
) -> Axis:
    """Return the allowed codes of a feature, seen from the query's code.

    Parameters
    ----------
    column : Column, optional
        The feature's column; None for one-hot groups.
    inferred : bool
        The feature's range came from data, so absolute limits of the user may exceed it.
    """
    axis = Axis(
        query,
        query,
        query,
        np.array([query]),
        step=code_step(feature),
        unordered=isinstance(feature, Categorical),
        period=float(feature.period) if isinstance(feature, Integer) and feature.cyclic else 0.0,
        narrow=None if column is None else _narrow(column),
    )
    if limits.fixed or np.isnan(query):
        return replace(axis, movable=False)
    outer = code_range(feature)
    if inferred and limits.between is not None:
        outer = _open_ends(limits.between, outer)
    if column is not None and column.kind in "iu" and isinstance(feature, (Integer, Real)):
        info = np.iinfo(column.numpy)
        outer = max(outer[0], float(info.min)), min(outer[1], float(info.max))
    low, high = limits.interval(query, outer)
    if isinstance(feature, Integer) and feature.cyclic:
        return replace(axis, choices=_cyclic_choices(feature, limits, query))
    if axis.narrow is not None:
        low, high = _narrow_limits(low, high, axis.narrow)
    if low > high:
        return axis
    if code_step(feature) > 0:
        return _grid_axis(axis, feature, limits, (low, high))
    choices = np.unique([query, low]) if low == high else None
    return replace(axis, low=low, high=high, choices=choices)


def _grid_axis(axis: Axis, feature: Feature, limits: Limits, ends: tuple[float, float]) -> Axis:
    step, query = axis.step, axis.query
    anchor = query if isinstance(feature, Moment) else code_range(feature)[0]
    # a slack of 1e-9 steps keeps grid points that rounding moved past a limit
    first = int(np.ceil((ends[0] - anchor) / step - 1e-9))
    last = int(np.floor((ends[1] - anchor) / step + 1e-9))
    axis = replace(
        axis,
        anchor=anchor,
        decimals=feature.grid_decimals if isinstance(feature, Real) else None,
        unit=float(feature.microseconds) if isinstance(feature, Moment) else 0.0,
    )
    if last < first:
        return axis
    low, high = np.clip(grid_codes(feature, np.array([first, last], np.float64), anchor), *ends)
    axis = replace(axis, low=float(low), high=float(high))
    if last - first >= MOST_CHOICES and not isinstance(feature, (Ordinal, Categorical)):
        return replace(axis, choices=None)
    grid = grid_codes(feature, np.arange(first, last + 1, dtype=np.float64), anchor)
    if axis.narrow is not None:
        grid = grid.astype(axis.narrow).astype(np.float64)
    if limits.levels is not None:
        grid = grid[np.isin(grid, limits.levels)]
    grid = grid[(grid >= ends[0]) & (grid <= ends[1])]
    return replace(axis, choices=np.unique(np.append(grid, query)))


def _cyclic_choices(feature: Integer, limits: Limits, query: float) -> Array:
    """Return the allowed codes on a circle: relative limits wrap around."""
    codes = np.arange(feature.low, feature.high + 1, feature.step, dtype=np.float64)
    if limits.move is not None:
        low, high = limits.move
        ahead = np.mod(codes - query, feature.period)
        behind = feature.period - ahead
        codes = codes[((ahead >= low) & (ahead <= high)) | ((-behind >= low) & (-behind <= high))]
    if limits.between is not None:
        codes = codes[(codes >= limits.between[0]) & (codes <= limits.between[1])]
    return np.unique(np.append(codes, query))


def _open_ends(pair: tuple[float, float], outer: tuple[float, float]) -> tuple[float, float]:
    """Return the user's limits, with open ends closed by the data's."""
    low = pair[0] if np.isfinite(pair[0]) else min(outer[0], pair[1])
    high = pair[1] if np.isfinite(pair[1]) else max(outer[1], pair[0])
    return low, high


def _intersection(
    old: tuple[float, float] | None, new: tuple[float, float], name: Hashable, verb: str
) -> tuple[float, float]:
    if new[0] > new[1]:
        raise SpaceError(f"`{verb}` for {name!r} must have low <= high; got {new}.")
    low, high = new if old is None else (max(old[0], new[0]), min(old[1], new[1]))
    if low > high:
        raise SpaceError(
            f"`{verb}` leaves nothing for {name!r}: {new} does not meet {old}. Widen one of them."
        )
    return low, high


def _pair(verb: str, name: Hashable, pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise SpaceError(f"`{verb}` for {name!r} must be a pair (low, high); got {pair!r}.")
    low, high = pair
    return low, high


def _code(verb: str, name: Hashable, feature: Feature, value: Any) -> float:
    if isinstance(feature, Moment):
        return feature.code(value)
    return _number(verb, name, value)


def _shift(name: Hashable, feature: Feature, value: Any) -> float:
    if isinstance(feature, Moment) and not isinstance(value, (int, float, np.number)):
        try:
            return float(pd.Timedelta(value) / pd.Timedelta(feature.microseconds, "us"))
        except (ValueError, TypeError) as error:
            raise SpaceError(
                f"`move` for {name!r} must be durations or numbers; got {value!r}."
            ) from error
    return _number("move", name, value)


def _number(verb: str, name: Hashable, value: Any) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)) or value != value:
        raise SpaceError(f"`{verb}` for {name!r} must be numbers; got {value!r}.")
    return float(value)


def _level_codes(name: Hashable, feature: Ordinal | Categorical, levels: Any) -> tuple[float, ...]:
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
        raise SpaceError(f"`between` for {name!r} must be a list of levels; got {levels!r}.")
    positions = {level: float(c) for c, level in enumerate(feature.levels)}
    codes = []
    for level in levels:
        if level not in positions:
            shown = ", ".join(repr(v) for v in feature.levels[:10])
            raise SpaceError(f"{name!r} has no level {level!r}. Levels: {shown}.")
        codes.append(positions[level])
    return tuple(codes)


def is_ordered(feature: Feature) -> bool:
    """Return whether up and down mean something for the feature."""
    return not isinstance(feature, Categorical) and not is_cyclic(feature)


def _narrow(column: Column) -> type[np.floating[Any]] | None:
    """Return the float type of a column that holds fewer digits than a code."""
    if column.kind != "f":
        return None
    found: type[np.floating[Any]] = column.numpy.type
    return found if column.numpy.itemsize < 8 else None


def _narrow_limits(low: float, high: float, narrow: Any) -> tuple[float, float]:
    """Return the limits moved inwards to numbers the narrower float type holds."""
    if not np.isfinite([low, high]).all():
        return low, high
    inner_low, inner_high = narrow(low), narrow(high)
    if float(inner_low) < low:
        inner_low = np.nextafter(inner_low, narrow(np.inf))
    if float(inner_high) > high:
        inner_high = np.nextafter(inner_high, narrow(-np.inf))
    return float(inner_low), float(inner_high)
