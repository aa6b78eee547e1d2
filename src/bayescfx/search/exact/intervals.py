"""Where an answer stays valid: for each changed feature the codes that reach the target too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.certificate_space import AllowedCodes
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class ValidRange:
    """The codes of one feature for which a row reaches the target, its other cells unchanged.

    Parameters
    ----------
    feature : int
        Position of the feature.
    low, high : float
        The ends of the range of allowed codes around the row's own, for a feature on a line. All
        allowed codes between them reach the target. For other features the row's own code.
    codes : array of shape (c,) or None
        All codes that reach the target, sorted, for a feature with levels or on a circle.
    is_exact : bool
        Whether allowed codes just outside do not reach the target. False if a rule that is not
        linear restricts a continuous feature: then the range is only as large as could be checked.
    """

    feature: int
    low: float
    high: float
    codes: Array | None = None
    is_exact: bool = True


def find_valid_ranges(problem: BoxProblem, row: Array) -> list[ValidRange]:
    """Return the valid range of each changed feature of a row that reaches the target.

    Parameters
    ----------
    problem : BoxProblem
        The question, without a limit on the cost.
    row : array of shape (d,)
        The codes of the row. It is allowed and reaches the target.
    """
    region = problem.region
    places = {int(j): k for k, j in enumerate(problem.features)}
    own = np.array([_cell_of(problem, k, row[j]) for j, k in places.items()], dtype=np.intp)
    found = []
    for j in np.flatnonzero(region.changes(row[None])[0]).tolist():
        if j not in places:  # neither the model nor a rule reads it
            found.append(_whole_range(region, j, row))
        elif problem.is_line[places[j]]:
            found.append(_range_on_line(problem, own, places[j], row))
        else:
            found.append(_listed_codes(problem, own, places[j], row))
    return found


def _cell_of(problem: BoxProblem, k: int, code: float) -> int:
    """Return the cell of a code among those of feature `k` of the problem."""
    cells = slice(problem.offset[k], problem.offset[k] + problem.sizes[k])
    is_inside = (problem.lowest[cells] <= code) & (code <= problem.highest[cells])
    return int(np.flatnonzero(is_inside)[0])


def _reaches(problem: BoxProblem, own: Indices, k: int) -> Mask:
    """Return which cells of feature `k` reach the target beside the cells `own` of the others."""
    corner = np.repeat(own[None], problem.sizes[k], axis=0)
    corner[:, k] = np.arange(problem.sizes[k])
    score = problem.corner_scores(corner)
    reached = problem.is_possible(score, score)
    reached[own[k]] = True  # the model has scored the row itself
    return reached


def _is_allowed(region: Region, row: Array, j: int, codes: Array) -> Mask:
    """Return which codes ``(n,)`` of a feature are allowed in a row."""
    X = np.repeat(row[None], len(codes), axis=0)
    X[:, j] = codes
    return region.contains(region.complete(X))


def _whole_range(region: Region, j: int, row: Array) -> ValidRange:
    """Return all allowed codes of a feature."""
    if region.sliding[j]:
        return ValidRange(j, float(region.low[j]), float(region.high[j]))
    return ValidRange(j, float(row[j]), float(row[j]), region.axes[j].choices)


def _listed_codes(problem: BoxProblem, own: Indices, k: int, row: Array) -> ValidRange:
    """Return the valid codes of a feature with levels or on a circle."""
    j = int(problem.features[k])
    cells = slice(problem.offset[k], problem.offset[k] + problem.sizes[k])
    codes = problem.code[cells][_reaches(problem, own, k)]
    codes = codes[_is_allowed(problem.region, row, j, codes)]
    return ValidRange(j, float(row[j]), float(row[j]), np.sort(codes))


def _range_on_line(problem: BoxProblem, own: Indices, k: int, row: Array) -> ValidRange:
    """Return the valid range of a feature on a line."""
    region = problem.region
    j = int(problem.features[k])
    cells = slice(problem.offset[k], problem.offset[k] + problem.sizes[k])
    # In the order of the codes, which may fall from cell to cell.
    order = np.argsort(problem.lowest[cells], kind="stable")
    lowest = problem.lowest[cells][order]
    highest = problem.highest[cells][order]
    reached = _reaches(problem, own, k)[order]
    place = int(np.flatnonzero(order == own[k])[0])
    least, most = _linear_ends(region, row, j)
    allowed = allowed_codes(region, j)
    first = place
    while first > 0 and reached[first - 1]:
        first -= 1
    last = place
    while last < len(order) - 1 and reached[last + 1]:
        last += 1
    low = min(allowed.first_from(max(float(lowest[first]), least)), float(row[j]))
    high = max(allowed.last_up_to(min(float(highest[last]), most)), float(row[j]))
    if not region.rules:
        return ValidRange(j, low, high)
    if allowed.codes is not None:
        return _checked_codes(region, row, j, allowed.codes, (low, high))
    points = np.unique(np.concatenate([[low, high], lowest, highest, [row[j], region.query[j]]]))
    return _checked_codes(region, row, j, points, (low, high), is_exact=not region.curved)


def _checked_codes(
    region: Region,
    row: Array,
    j: int,
    points: Array,
    ends: tuple[float, float],
    *,
    is_exact: bool = True,
) -> ValidRange:
    """Return the range around a row's code in which all points ``(n,)`` keep the rules."""
    low, high = ends
    points = points[(points >= low) & (points <= high)]
    axis_codes = allowed_codes(region, j)
    points = points[[axis_codes.last_up_to(float(code)) == code for code in points]]
    is_kept = _is_allowed(region, row, j, points)
    below = points[~is_kept & (points < row[j])]
    above = points[~is_kept & (points > row[j])]
    kept = points[is_kept]
    if len(below):
        low = float(kept[(kept > below[-1]) & (kept <= row[j])].min(initial=row[j]))
    if len(above):
        high = float(kept[(kept < above[0]) & (kept >= row[j])].max(initial=row[j]))
    return ValidRange(j, low, high, is_exact=is_exact)


def _linear_ends(region: Region, row: Array, j: int) -> tuple[float, float]:
    """Return the codes between which a feature keeps the linear rules, in a row."""
    low = -np.inf
    high = np.inf
    if not region.rules:
        return low, high
    for coefficients, bound in zip(region.A, region.b, strict=True):
        factor = coefficients[j]
        used = np.flatnonzero(coefficients)
        if factor == 0.0 or region.recomputed[used].any():
            continue
        rest = float(coefficients[used] @ row[used] - factor * row[j])
        if factor > 0.0:
            high = min(high, (bound - rest) / factor)
        else:
            low = max(low, (bound - rest) / factor)
    return low, high


def allowed_codes(region: Region, j: int) -> AllowedCodes:
    """Return the allowed codes of one feature."""
    axis = region.axes[j]
    return AllowedCodes(
        feature=axis.feature,
        query=axis.query,
        low=axis.low,
        high=axis.high,
        codes=axis.choices,
        narrow=axis.narrow,
        is_line=bool(region.sliding[j]),
    )
