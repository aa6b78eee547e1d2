"""Random walks through the allowed rows of a region."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array
from bayescfx.space.draws import draw_block
from bayescfx.space.region import Region
from bayescfx.space.repair import moving_blocks, ordered

ROUNDS = 100  # of a walk, per batch of rows
WALKERS = 256


def walk(
    region: Region, seeds: Array, n: int, rng: np.random.Generator, changes: int | None = None
) -> Array:
    """Return at most `n` allowed rows reached from allowed `seeds` by random allowed moves.

    Parameters
    ----------
    changes : int, optional
        Number of changed features; the walk may pass through others on its way.
    """
    walkers = min(max(n, 16), WALKERS)
    X = seeds[rng.integers(len(seeds), size=walkers)]
    found = [np.empty((0, len(region.query)))]
    total = 0
    for _ in range(ROUNDS * -(-n // walkers)):
        Y = step(region, X, rng)
        good = region.contains(Y)
        if changes is not None:
            before = np.abs(region.changes(X).sum(axis=1) - changes)
            after = np.abs(region.changes(Y).sum(axis=1) - changes)
            good &= after <= before
        moved = good & (Y != X).any(axis=1)
        X = np.where(good[:, None], Y, X)
        wanted = moved & (region.changes(Y).sum(axis=1) > 0)
        found.append(Y[wanted])
        total += int(wanted.sum())
        if total >= 4 * n:
            break
    rows = distinct(np.concatenate(found))
    return rows[rng.permutation(len(rows))[:n]]


def step(region: Region, X: Array, rng: np.random.Generator) -> Array:
    """Return one random move per row: a block redrawn, or a move of random reach.

    Half of the moves redraw one block, a quarter shift few features, a quarter shift all; shifts
    slide along linear rules instead of crossing them.
    """
    blocks = moving_blocks(region)
    Y = X.copy()
    kind = rng.random(len(X))
    picked = rng.integers(len(blocks), size=len(X))
    for at, block in enumerate(blocks):
        rows = np.flatnonzero((picked == at) & (kind < 0.5))
        if len(rows):
            draw_block(region, Y, rows, block, rng, moved=True)
    sliding = ordered(region)
    reach = 10.0 ** rng.uniform(-3, 0.5, size=(len(X), 1))
    shift = rng.standard_normal(X.shape) * reach * region.scale * sliding
    if region.max_changes is not None:
        shift *= region.changes(X)
    few = rng.random(X.shape) < 2.0 / len(region.free)
    shift = np.where((kind < 0.75)[:, None], shift * few, shift)
    shifted = (kind >= 0.5)[:, None] & sliding
    Y = np.where(shifted, X + shift, Y)
    if len(region.A):
        Y = np.where(shifted, _slide(region, X, Y), Y)
    return region.complete(_swap(region, region.on_grid(Y), X, rng))


def _slide(region: Region, X: Array, Y: Array) -> Array:
    """Return `Y` pulled back along each move to where the linear rules still hold."""
    direction = np.nan_to_num(Y - X)
    speed = direction @ region.A.T
    slack = np.maximum(region.b - np.nan_to_num(X) @ region.A.T, 0.0)
    reach = np.where(speed > 0, slack / np.where(speed > 0, speed, 1.0), np.inf)
    t = np.minimum(1.0, 0.999 * reach.min(axis=1))
    # a rule that holds with equality can only be followed by projecting onto it, in repair
    return np.where(np.isnan(X), X, X + t[:, None] * direction)


def _swap(region: Region, Y: Array, X: Array, rng: np.random.Generator) -> Array:
    """Return rows over the l0 bound with randomly chosen older changes taken back."""
    bound = region.max_changes
    if bound is None:
        return Y
    changed = region.changes(Y)
    excess = changed.sum(axis=1) - bound
    if (excess <= 0).all():
        return Y
    # the smallest random keys among old changes go back to the query
    keys = np.where(changed & (Y == X), rng.random(Y.shape), np.inf)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    back = (rank < excess[:, None]) & np.isfinite(keys)
    return np.where(back, region.query, Y)


def distinct(X: Array) -> Array:
    """Return the rows without repetitions, in order."""
    _, first = np.unique(np.nan_to_num(X), axis=0, return_index=True)
    return X[np.sort(first)]
