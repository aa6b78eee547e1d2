"""Repair: rows that break rules, made allowed with as little change as possible.

Grid, directions and the l0 bound come first, then linear rules by projection, then single
coordinates on the grid. Rows that function rules still reject are pulled towards the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.linear import coordinate_corrections, project_linear, violation
from bayescfx.space.region import Region


@dataclass(frozen=True)
class RepairTuning:
    """Numbers of the repair.

    Evidence: `python -m benchmarks.tuning --only repair` (200 draws in each of nine regions,
    2026-11-18), where half and double of each change nothing.
    """

    # Numerical, in scales: twice what counts as a move of features that go together.
    least_move: float = 2e-6
    halvings: int = 10  # of changes, on the way back to the query or to another allowed row
    # Rounds of corrections of single coordinates. On grids with three linear rules each, 76 % of
    # the draws are repaired without them, 94 % with one round, 98 % with two, 99 % with three.
    corrections: int = 3
    corrected_rows: int = 256  # per round: bounds the memory


TUNING = RepairTuning()


def repair(region: Region, X: Array) -> tuple[Array, Mask]:
    """Return the nearest allowed rows found, in order, and which of them are allowed."""
    Y = trim(region, X)
    allowed = region.contains(Y)
    if allowed.all() or not region.rules:
        return Y, allowed
    if len(region.A):
        Y[~allowed] = _project_rules(region, Y[~allowed])
        allowed = region.contains(Y)
        _correct(region, Y, allowed)
    if not allowed.all() and region.contains(region.query[None, :])[0]:
        _pull_back(region, Y, allowed)
    return Y, allowed


def project(region: Region, X: Array) -> Array:
    """Return the nearest allowed rows; rows that can't be repaired are dropped."""
    rows, allowed = repair(region, X)
    return rows[allowed]


def trim(region: Region, X: Array) -> Array:
    """Return rows on the grid that keep the l0 bound and move features together as they must."""
    X = region.on_grid(X)
    for block in region.blocks:
        X = _align(region, X, block)
    if region.max_changes is not None:
        _drop_smallest(region, X, region.max_changes)
    return region.complete(X)


def _align(region: Region, X: Array, block: list[int]) -> Array:
    """Return rows whose features in the block move to the same side, or else all go back.

    Features held back only by rounding make the smallest moves that count.
    """
    query = region.query[block]
    sides = region.sides(X, block)
    is_dust = np.isnan(sides)
    if is_dust.any():
        least = TUNING.least_move * np.sign(X[:, block] - query) * region.scale[block]
        X[:, block] = np.where(is_dust, query + least, X[:, block])
        X = region.on_grid(X)
        sides = region.sides(X, block)
    is_aligned = (sides == sides[:, :1]).all(axis=1, keepdims=True)
    X[:, block] = np.where(is_aligned, X[:, block], query)
    return X


def _drop_smallest(region: Region, X: Array, bound: int) -> None:
    """Take back the smallest changes beyond the l0 bound, in place, whole blocks at a time."""
    over = np.flatnonzero(region.changes(X).sum(axis=1) > bound)
    if not len(over):
        return
    changed = region.changes(X[over])
    members = region.members
    mean_change = region.units(X[over]) @ members.T / members.sum(axis=1)
    order = np.argsort(-mean_change, axis=1, kind="stable")
    kept = fill(region, np.full(len(over), bound), order, changed @ members.T > 0)
    X[over] = np.where(changed & ~kept, region.query, X[over])


def fill(region: Region, room: Indices, order: Indices, wanted: Mask | None = None) -> Mask:
    """Return masks of features ``(n, d)``: blocks in the given order, as long as they fit.

    Parameters
    ----------
    room : array of shape (n,)
        The most features of each row.
    order : array of shape (n, blocks)
        The order in which blocks are taken.
    wanted : mask of shape (n, blocks), optional
        The blocks that may be taken.
    """
    sizes = region.members.sum(axis=1)
    chosen = np.zeros(order.shape, dtype=np.bool_)
    rows = np.arange(len(order))
    left = room + 0.0
    for block in order.T:
        fits = sizes[block] <= left
        if wanted is not None:
            fits &= wanted[rows, block]
        chosen[rows, block] = fits
        left -= np.where(fits, sizes[block], 0.0)
        if not left.any():
            break
    return np.asarray(chosen @ region.members > 0)


def pull(region: Region, X: Array, seeds: Array, rng: np.random.Generator) -> Array:
    """Return allowed rows on the way from rejected `X` to allowed `seeds`, by halving the way."""
    Z = seeds[rng.integers(len(seeds), size=len(X))]
    query = region.query[None, :]
    if region.max_changes is not None and region.contains(query)[0]:
        # Between rows with different changes there are too many; the query has none.
        Z = np.repeat(query, len(X), axis=0)
    found = X[:0]
    for t in 0.5 ** np.arange(1, TUNING.halvings + 1):
        if not len(X):
            break
        levels = np.where(rng.random(X.shape) < t, X, Z)
        Y = region.snap(between(region, X, Z, t, levels))
        allowed = region.contains(Y)
        found = np.concatenate([found, Y[allowed]])
        X = X[~allowed]
        Z = Z[~allowed]
    return found


def between(region: Region, X: Array, Z: Array, t: float | Array, levels: Array) -> Array:
    """Return rows the share `t` of the way from `Z` to `X`, with the given unordered levels."""
    Y = np.where(np.isnan(Z), Z, Z + t * (X - Z))
    return np.where(region.categorical | region.cyclic, levels, Y)


def _project_rules(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` projected onto the linear rules."""
    movable = region.sliding & _movable(region, X)
    metric = np.where(movable, region.scale**2, 0.0)
    low = np.nan_to_num(region.low)
    high = np.nan_to_num(region.high)
    Z = project_linear(np.nan_to_num(X), region.A, region.b, metric, low, high).points
    return trim(region, np.where(np.isnan(X), X, Z))


def _pull_back(region: Region, Y: Array, allowed: Mask) -> None:
    """Pull rejected rows to the query, in place, by halving their numeric changes."""
    for t in 0.5 ** np.arange(1, TUNING.halvings + 1):
        rejected = np.flatnonzero(~allowed)
        if not len(rejected):
            break
        Z = region.snap(between(region, Y[rejected], region.query, t, Y[rejected]))
        is_good = region.contains(Z) & region.changes(Z).any(axis=1)
        Y[rejected[is_good]] = Z[is_good]
        allowed[rejected[is_good]] = True


def _movable(region: Region, X: Array) -> Mask:
    """Return which features of each row may still move without breaking the l0 bound."""
    if region.max_changes is None:
        return np.ones(X.shape, dtype=np.bool_)
    changed = region.changes(X)
    has_room = changed.sum(axis=1) < region.max_changes
    return np.asarray(changed | has_room[:, None])


def _correct(region: Region, Y: Array, allowed: Mask) -> None:
    """Correct single coordinates of rejected rows, in place, until linear rules hold."""
    for _ in range(TUNING.corrections):
        rejected = np.flatnonzero(~allowed)[: TUNING.corrected_rows]
        if not len(rejected):
            return
        movable = region.sliding & _movable(region, Y[rejected])
        filled = np.nan_to_num(Y[rejected])
        V, origin = coordinate_corrections(filled, region.A, region.b, region.step, movable)
        if not len(V):
            return
        V = region.snap(np.where(np.isnan(Y[rejected[origin]]), np.nan, V))
        is_good = region.contains(V)
        # Allowed variants first, the nearest of them; else the least violating one goes on.
        broken = violation(np.nan_to_num(V), region.A, region.b).sum(axis=1)
        order = np.lexsort((region.distance(V), np.where(is_good, 0.0, broken), ~is_good))
        _, first = np.unique(origin[order], return_index=True)
        chosen = order[first]
        Y[rejected[origin[chosen]]] = V[chosen]
        allowed[rejected[origin[chosen]]] = is_good[chosen]
