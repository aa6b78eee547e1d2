"""Rows that break rules, made allowed with as little change as possible.

Grid, directions and the l0 bound first, then linear rules by projection, then single coordinates
on the grid; what function rules still reject is pulled towards the query.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.linear import coordinate_corrections, project_linear, violation
from bayescfx.space.region import Region


def repair(region: Region, X: Array) -> tuple[Array, Mask]:
    """Return the nearest allowed rows found, in order, and which of them are allowed."""
    Y = trim(region, X)
    good = region.contains(Y)
    if good.all() or not region.rules:
        return Y, good
    if len(region.A):
        X = Y[~good]
        metric = np.where(region.sliding & _supports(region, X), region.scale**2, 0.0)
        low, high = np.nan_to_num(region.low), np.nan_to_num(region.high)
        Z = project_linear(np.nan_to_num(X), region.A, region.b, metric, low, high).points
        Y[~good] = trim(region, np.where(np.isnan(X), X, Z))
        good = region.contains(Y)
        _correct(region, Y, good)
    if not good.all() and region.contains(region.query[None, :])[0]:
        _pull_back(region, Y, good)
    return Y, good


def project(region: Region, X: Array) -> Array:
    """Return the nearest allowed rows; rows that can't be repaired are dropped."""
    rows, kept = repair(region, X)
    return rows[kept]


def trim(region: Region, X: Array) -> Array:
    """Return rows on the grid that keep the l0 bound and move features together as they must.

    The largest changes are kept, whole blocks at a time; a block that is torn goes back, but one
    that is only held back by rounding dust makes the smallest moves that count.
    """
    X, query, bound = region.on_grid(X), region.query, region.max_changes
    for at in region.blocks:
        side = region.sides(X, at)
        if (dust := np.isnan(side)).any():
            least = 2e-6 * np.sign(X[:, at] - query[at]) * region.scale[at]
            X[:, at] = np.where(dust, query[at] + least, X[:, at])
            X = region.on_grid(X)
            side = region.sides(X, at)
        X[:, at] = np.where((side == side[:, :1]).all(axis=1, keepdims=True), X[:, at], query[at])
    if bound is not None:
        over = np.flatnonzero(region.changes(X).sum(axis=1) > bound)
        if len(over):
            changed, members = region.changes(X[over]), region.members
            mean = region.units(X[over]) @ members.T / members.sum(axis=1)
            order = np.argsort(-mean, axis=1, kind="stable")
            kept = fill(region, np.full(len(over), bound), order, changed @ members.T > 0)
            X[over] = np.where(changed & ~kept, query, X[over])
    return region.complete(X)


def fill(region: Region, room: Indices, order: Indices, wanted: Mask | None = None) -> Mask:
    """Return features ``(n, d)``: blocks in an order ``(n, blocks)``, while they fit in `room`."""
    sizes = region.members.sum(axis=1)
    chosen, rows, left = np.zeros(order.shape, dtype=np.bool_), np.arange(len(order)), room + 0.0
    for at in order.T:
        fits = sizes[at] <= left
        if wanted is not None:
            fits &= wanted[rows, at]
        chosen[rows, at] = fits
        left -= np.where(fits, sizes[at], 0.0)
        if not left.any():
            break
    return np.asarray(chosen @ region.members > 0)


def pull(region: Region, X: Array, seeds: Array, rng: np.random.Generator) -> Array:
    """Return allowed rows on the way from rejected `X` to allowed `seeds`, which is halved."""
    Z = seeds[rng.integers(len(seeds), size=len(X))]
    own = region.query[None, :]
    if region.max_changes is not None and region.contains(own)[0]:
        # a way between different supports changes too much; the query has none
        Z = np.repeat(own, len(X), axis=0)
    done = X[:0]
    for t in 0.5 ** np.arange(1, 11):
        if not len(X):
            break
        Y = region.snap(between(region, X, Z, t, np.where(rng.random(X.shape) < t, X, Z)))
        good = region.contains(Y)
        X, Z, done = X[~good], Z[~good], np.concatenate([done, Y[good]])
    return done


def between(region: Region, X: Array, Z: Array, t: float | Array, levels: Array) -> Array:
    """Return rows the share `t` of the way from `Z` to `X`, with the given unordered levels."""
    Y = np.where(np.isnan(Z), Z, Z + t * (X - Z))
    return np.where(region.categorical | region.cyclic, levels, Y)


def _pull_back(region: Region, Y: Array, good: Mask) -> None:
    """Pull rejected rows to the query, in place, by halving their numeric changes."""
    for t in 0.5 ** np.arange(1, 8):
        bad = np.flatnonzero(~good)
        if not len(bad):
            break
        Z = region.snap(between(region, Y[bad], region.query, t, Y[bad]))
        fine = region.contains(Z) & region.changes(Z).any(axis=1)
        Y[bad[fine]] = Z[fine]
        good[bad[fine]] = True


def _supports(region: Region, X: Array) -> Mask:
    """Return which features of each row may still move without breaking the l0 bound."""
    if region.max_changes is None:
        return np.ones(X.shape, dtype=np.bool_)
    changed = region.changes(X)
    return np.asarray(changed | (changed.sum(axis=1) < region.max_changes)[:, None])


def _correct(region: Region, Y: Array, good: Mask, rounds: int = 3, most: int = 256) -> None:
    """Correct single coordinates of rejected rows, in place, until linear rules hold."""
    for _ in range(rounds):
        bad = np.flatnonzero(~good)[:most]
        if not len(bad):
            return
        moving = region.sliding & _supports(region, Y[bad])
        filled = np.nan_to_num(Y[bad])
        V, origin = coordinate_corrections(filled, region.A, region.b, region.step, moving)
        if not len(V):
            return
        V = region.snap(np.where(np.isnan(Y[bad[origin]]), np.nan, V))
        fine = region.contains(V)
        # first allowed variants, nearest first; else the least violating one goes on
        worst = violation(np.nan_to_num(V), region.A, region.b).sum(axis=1)
        order = np.lexsort((region.distance(V), np.where(fine, 0.0, worst), ~fine))
        _, first = np.unique(origin[order], return_index=True)
        chosen = order[first]
        Y[bad[origin[chosen]]] = V[chosen]
        good[bad[origin[chosen]]] = fine[chosen]
