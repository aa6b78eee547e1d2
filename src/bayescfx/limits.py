"""What a user says about one feature: fixed, a direction, absolute and relative limits.

Limits of one feature combine by intersection; seen from a query they become an `Axis`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from bayescfx.arrays import Array
from bayescfx.cells import Dtype
from bayescfx.errors import SpaceError
from bayescfx.features import (
    Categorical,
    Feature,
    Integer,
    Moment,
    Real,
    code_range,
    code_step,
    grid_codes,
    is_cyclic,
)
from bayescfx.grid import MOST_CHOICES, Axis

_INFINITE = (-np.inf, np.inf)


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

    @property
    def said(self) -> bool:
        """Whether anything was said."""
        return self != Limits()

    def with_side(self, side: int) -> Limits:
        """Return the limits with a direction; both directions together mean fixed."""
        return replace(self, side=side, fixed=self.fixed or self.side == -side)

    def with_between(self, low: float, high: float, name: Hashable) -> Limits:
        """Return the limits cut down to ``low .. high``."""
        pair = _intersection(self.between, (low, high), name, "between")
        return replace(self, between=pair)

    def with_move(self, low: float, high: float, name: Hashable) -> Limits:
        """Return the limits with the relative limits cut down to ``low .. high``."""
        return replace(self, move=_intersection(self.move, (low, high), name, "move"))

    def with_levels(self, codes: tuple[float, ...], name: Hashable) -> Limits:
        """Return the limits cut down to the given levels."""
        kept = codes if self.levels is None else tuple(c for c in codes if c in self.levels)
        if not kept:
            raise SpaceError(f"`between` leaves no level of {name!r}. Allow at least one.")
        return replace(self, levels=tuple(sorted(kept)))

    def interval(self, query: float, outer: tuple[float, float] = _INFINITE) -> tuple[float, float]:
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


def axis(feature: Feature, limits: Limits, query: float, dtype: Dtype, *, inferred: bool) -> Axis:
    """Return the allowed codes of a feature, seen from the query's code.

    Parameters
    ----------
    inferred : bool
        The feature's range came from data, so absolute limits of the user may exceed it.
    """
    movable = not limits.fixed and not np.isnan(query)
    narrow = _narrow(dtype) if isinstance(feature, (Real, Integer)) else None
    traits = {
        "unordered": isinstance(feature, Categorical),
        "period": float(feature.period) if isinstance(feature, Integer) and feature.cyclic else 0.0,
        "movable": movable,
        "narrow": narrow,
    }
    if not movable:
        return Axis(query, query, query, np.array([query]), step=code_step(feature), **traits)  # type: ignore[arg-type]  # fields of Axis
    outer = code_range(feature)
    if inferred and limits.between is not None and isinstance(feature, (Real, Moment, Integer)):
        outer = limits.between
    low, high = limits.interval(query, outer)
    if is_cyclic(feature):
        choices = _cyclic_choices(feature, limits, query)
        return Axis(query, low, high, choices, step=code_step(feature), **traits)  # type: ignore[arg-type]  # fields of Axis
    if narrow is not None:
        low, high = _narrow_limits(low, high, narrow)
    if code_step(feature) == 0:
        choices = np.unique([query, low]) if low >= high else None
        if low > high:
            choices = np.array([query])
        return Axis(query, low, high, choices, **traits)  # type: ignore[arg-type]  # fields of Axis
    return _grid_axis(feature, limits, query, (low, high), traits)


def _grid_axis(
    feature: Feature,
    limits: Limits,
    query: float,
    ends: tuple[float, float],
    traits: dict[str, object],
) -> Axis:
    step = code_step(feature)
    anchor = query if isinstance(feature, Moment) else code_range(feature)[0]
    # a relative slack of 1e-9 steps keeps grid points that rounding moved past a limit
    first = int(np.ceil((ends[0] - anchor) / step - 1e-9))
    last = int(np.floor((ends[1] - anchor) / step + 1e-9))
    shape = {
        "step": step,
        "anchor": anchor,
        "decimals": feature.grid_decimals if isinstance(feature, Real) else None,
        "unit": float(feature.microseconds) if isinstance(feature, Moment) else 0.0,
    }
    if isinstance(feature, Integer) and feature.step != int(feature.step):
        raise AssertionError("Integer steps are whole")
    if limits.levels is not None:
        allowed = [c for c in limits.levels if first <= c <= last]
        choices = np.unique([*allowed, query])
        return Axis(query, ends[0], ends[1], choices, **shape, **traits)  # type: ignore[arg-type]  # fields of Axis
    if last < first:
        return Axis(query, ends[0], ends[1], np.array([query]), **shape, **traits)  # type: ignore[arg-type]  # fields of Axis
    low, high = grid_codes(feature, np.array([first, last], dtype=np.float64), anchor)
    low, high = max(float(low), ends[0]), min(float(high), ends[1])
    if last - first >= MOST_CHOICES and not hasattr(feature, "levels"):
        return Axis(query, low, high, None, **shape, **traits)  # type: ignore[arg-type]  # fields of Axis
    grid = grid_codes(feature, np.arange(first, last + 1, dtype=np.float64), anchor)
    if traits["narrow"] is not None:
        grid = grid.astype(traits["narrow"]).astype(np.float64)  # type: ignore[call-overload]  # a float type
    grid = grid[(grid >= ends[0]) & (grid <= ends[1])]
    return Axis(query, low, high, np.unique(np.append(grid, query)), **shape, **traits)  # type: ignore[arg-type]  # fields of Axis


def _cyclic_choices(feature: Feature, limits: Limits, query: float) -> Array:
    """Return the allowed codes on a circle: relative limits wrap around."""
    assert isinstance(feature, Integer)
    codes = np.arange(feature.low, feature.high + 1, feature.step, dtype=np.float64)
    if limits.move is not None:
        low, high = limits.move
        ahead = np.mod(codes - query, feature.period)
        codes = codes[(ahead <= high) | (feature.period - ahead <= -low) | (ahead == 0)]
    if limits.between is not None:
        low, high = limits.between
        codes = codes[(codes >= low) & (codes <= high)]
    return np.unique(np.append(codes, query))


def _intersection(
    old: tuple[float, float] | None, new: tuple[float, float], name: Hashable, verb: str
) -> tuple[float, float]:
    low, high = new if old is None else (max(old[0], new[0]), min(old[1], new[1]))
    if low > high:
        raise SpaceError(
            f"`{verb}` leaves nothing for {name!r}: {new} does not meet {old}. Widen one of them."
        )
    return low, high


def _narrow(dtype: Dtype) -> type | None:
    kind = np.dtype(getattr(dtype, "numpy_dtype", dtype)) if _is_float(dtype) else None
    return None if kind is None or kind.itemsize >= 8 else kind.type


def _is_float(dtype: Dtype) -> bool:
    return getattr(dtype, "kind", "O") == "f"


def _narrow_limits(low: float, high: float, narrow: type) -> tuple[float, float]:
    """Return the limits moved inwards to numbers the narrower float type holds."""
    if not np.isfinite(low + high):
        return low, high
    inner_low, inner_high = narrow(low), narrow(high)
    if float(inner_low) < low:
        inner_low = np.nextafter(inner_low, narrow(np.inf))
    if float(inner_high) > high:
        inner_high = np.nextafter(inner_high, narrow(-np.inf))
    return float(inner_low), float(inner_high)
