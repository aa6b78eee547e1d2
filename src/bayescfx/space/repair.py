"""Rows that break rules, made allowed with as little change as possible.

Grid, directions and the l0 bound first, then linear rules by projection, then single coordinates
on the grid; what function rules still reject is pulled towards the query.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.linear import coordinate_corrections, project_linear, violation
from bayescfx.space.region import Region

CORRECTED_ROWS = 256  # rows whose coordinates are corrected one by one
HALVINGS = 0.5 ** np.arange(1, 11)


def moving_blocks(region: Region) -> list[tuple[int, ...]]:
    """Return the free features as blocks that move as one; most blocks are single features."""
    grouped = {j for block in region.blocks for j in block}
    free = {int(j) for j in region.free}
    together = [block for block in region.blocks if set(block) <= free]
    return [(j,) for j in sorted(free - grouped)] + together


def repair(region: Region, X: Array) -> tuple[Array, Mask]:
    """Return the nearest allowed rows found and which of them are allowed; order is kept.

    Parameters
    ----------
    X : ndarray of shape (n, d)

    Returns
    -------
    rows : ndarray of shape (n, d)
    allowed : ndarray of bool, shape (n,)
    """
    Y = region.complete(trim(region, region.on_grid(X)))
    good = region.contains(Y)
    if good.all() or not region.ruled:
        return Y, good
    if len(region.A):
        Y[~good] = _project(region, Y[~good])
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
    """Return rows that keep the l0 bound and in which features move together as they must.

    The largest changes are kept, whole blocks at a time; a block that is torn goes back.
    """
    if not region.blocks:
        return region.trimmed(X, region.max_changes)
    X = X.copy()
    for block in region.blocks:
        at = list(block)
        side = np.sign(X[:, at] - region.query[at])
        torn = ~(side == side[:, :1]).all(axis=1)
        X[np.ix_(torn, at)] = region.query[at]
    bound = region.max_changes
    if bound is None:
        return X
    changed, units = region.changes(X), region.units(X)
    blocks = [list(block) for block in moving_blocks(region)]
    size = np.array([len(block) for block in blocks])
    for i in np.flatnonzero(changed.sum(axis=1) > bound):
        value = [units[i, at].mean() for at in blocks]
        room = bound
        for b in np.argsort(np.negative(value), kind="stable"):
            if changed[i, blocks[b]].any() and size[b] <= room:
                room -= size[b]
            else:
                X[i, blocks[b]] = region.query[blocks[b]]
    return X


def pull(region: Region, X: Array, seeds: Array, rng: np.random.Generator) -> Array:
    """Return allowed rows on the way from rejected `X` to allowed `seeds`.

    The way is halved until a row is allowed; unordered levels come from one end or the other.
    """
    Z = seeds[rng.integers(len(seeds), size=len(X))]
    own = region.query[None, :]
    if region.max_changes is not None and region.contains(own)[0]:
        # a way between different supports changes too much; the query has none
        Z = np.repeat(own, len(X), axis=0)
    jumping = region.categorical | region.cyclic
    done = [np.empty((0, len(region.query)))]
    for t in HALVINGS:
        if not len(X):
            break
        Y = np.where(np.isnan(Z), Z, Z + t * (X - Z))
        Y = np.where(jumping, np.where(rng.random(X.shape) < t, X, Z), Y)
        Y = region.complete(region.on_grid(Y))
        good = region.contains(Y)
        done.append(Y[good])
        X, Z = X[~good], Z[~good]
    return np.concatenate(done)


def ordered(region: Region) -> Mask:
    """Return the free features along which rows can slide: neither levels nor circles."""
    found = np.zeros(len(region.query), dtype=np.bool_)
    found[region.free] = True
    return found & ~region.categorical & ~region.cyclic


def _supports(region: Region, X: Array) -> Mask:
    """Return which features of each row may still move without breaking the l0 bound."""
    if region.max_changes is None:
        return np.ones(X.shape, dtype=np.bool_)
    changed = region.changes(X)
    return np.asarray(changed | (changed.sum(axis=1) < region.max_changes)[:, None])


def _project(region: Region, X: Array) -> Array:
    mobility = np.where(ordered(region) & _supports(region, X), region.scale, 0.0)
    box = (np.nan_to_num(region.low), np.nan_to_num(region.high))
    Z = project_linear(np.nan_to_num(X), region.A, region.b, box, mobility)
    Z = trim(region, region.on_grid(np.where(np.isnan(X), X, Z)))
    return region.complete(Z)


def _correct(region: Region, Y: Array, good: Mask, rounds: int = 3) -> None:
    """Correct single coordinates of rejected rows, in place, until linear rules hold."""
    moving = ordered(region)
    for _ in range(rounds):
        bad = np.flatnonzero(~good)[:CORRECTED_ROWS]
        if not len(bad):
            return
        X = np.nan_to_num(Y[bad])
        V, origin = coordinate_corrections(
            X, region.A, region.b, region.step, moving & _supports(region, Y[bad])
        )
        if not len(V):
            return
        V = region.complete(region.on_grid(np.where(np.isnan(Y[bad[origin]]), np.nan, V)))
        fine = region.contains(V)
        # first allowed variants, nearest first; else the least violating one goes on
        worst = violation(np.nan_to_num(V), region.A, region.b).sum(axis=1)
        order = np.lexsort((region.distance(V), np.where(fine, 0.0, worst), ~fine))
        _, first = np.unique(origin[order], return_index=True)
        chosen = order[first]
        Y[bad[origin[chosen]]] = V[chosen]
        good[bad[origin[chosen]]] = fine[chosen]


def _pull_back(region: Region, Y: Array, good: Mask) -> None:
    """Pull rejected rows to the query, in place, by halving their numeric changes."""
    jumping = region.categorical | region.cyclic
    for t in HALVINGS[:7]:
        bad = np.flatnonzero(~good)
        if not len(bad):
            break
        own = np.repeat(region.query[None, :], len(bad), axis=0)
        Z = np.where(np.isnan(own), own, own + t * (Y[bad] - own))
        Z = region.complete(region.on_grid(np.where(jumping, Y[bad], Z)))
        fine = region.contains(Z) & region.changes(Z).any(axis=1)
        Y[bad[fine]] = Z[fine]
        good[bad[fine]] = True
