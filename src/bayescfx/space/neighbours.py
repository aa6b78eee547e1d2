"""The allowed rows one move away from a row."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.axis import Axis
from bayescfx.space.repair import Landscape


def neighbours(region: Landscape, x: Array) -> Array:
    """Return the allowed rows one move away from `x`; see `Region.neighbours`."""
    grouped = {j for block in region.blocks for j in block}
    moves = [np.empty((0, len(x)))]
    for j in region.free:
        if int(j) not in grouped:
            moves.append(_with_codes(x, int(j), one_move(region.grid.axes[j], float(x[j]))))
    for block in region.blocks:
        moves.append(_block_moves(region, x, list(block)))
    X = region.complete(np.concatenate(moves))
    return X[region.contains(X)]


def one_move(axis: Axis, code: float) -> list[float]:
    """Return the codes one move from `code`: next steps, all other levels, the query's.

    Examples
    --------
    >>> one_move(Axis(2.0, 0.0, 4.0, np.arange(5.0), step=1.0), 4.0)
    [2.0, 3.0]
    """
    if axis.choices is None:
        found = {axis.query}
        if axis.step:
            found |= set(axis.snap(np.array([code - axis.step, code + axis.step])).tolist())
    elif axis.unordered:
        found = set(axis.choices.tolist())
    else:
        place = int(np.searchsorted(axis.choices, code))
        around = {place - 1, place, place + 1}
        if axis.period:
            around = {p % len(axis.choices) for p in around}
        kept = [p for p in around if 0 <= p < len(axis.choices)]
        found = {axis.query, *axis.choices[kept].tolist()}
    return sorted(found - {code})


def _with_codes(x: Array, j: int, codes: list[float]) -> Array:
    rows = np.repeat(x[None, :], len(codes), axis=0)
    rows[:, j] = codes
    return rows


def _block_moves(region: Landscape, x: Array, block: list[int]) -> Array:
    """Return moves of features that move together: all back, one member, all one step."""
    axes = region.grid.axes
    back = x.copy()
    back[block] = region.query[block]
    rows = [back[None, :]]
    rows += [_with_codes(x, j, one_move(axes[j], float(x[j]))) for j in block]
    for side in (-1, 1):
        row = x.copy()
        row[block] = [_next(axes[j], float(x[j]), side, region.grid.scale[j]) for j in block]
        rows.append(row[None, :])
    X = np.concatenate(rows)
    moved: Mask = (x != X).any(axis=1)
    return X[moved]


def _next(axis: Axis, code: float, side: int, scale: float) -> float:
    """Return the next code above or below; a unit of change away where continuous."""
    if axis.choices is None:
        return float(axis.snap(np.array([code + side * (axis.step or scale)]))[0])
    beyond = axis.choices[(axis.choices - code) * side > 0]
    if not len(beyond):
        return code
    return float(beyond[0] if side > 0 else beyond[-1])
