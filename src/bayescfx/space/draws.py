"""Random rows within limits, grid, l0 bound and directions; rules are not looked at."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.region import Region
from bayescfx.space.repair import moving_blocks


def draw(region: Region, n: int, rng: np.random.Generator, changes: int | None = None) -> Array:
    """Return `n` draws within limits, grid, l0 bound and directions; rules are not looked at.

    Uniform over the box without an l0 bound; with one, over random supports of random size.
    Derived columns are left as in the query.
    """
    X = np.repeat(region.query[None, :], n, axis=0)
    blocks = moving_blocks(region)
    if not blocks or not n:
        return X
    sparse = changes is not None or region.max_changes is not None
    chosen = random_supports(region, blocks, n, rng, changes) if sparse else None
    for at, block in enumerate(blocks):
        rows = np.arange(n) if chosen is None else np.flatnonzero(chosen[:, at])
        if len(rows):
            draw_block(region, X, rows, block, rng, moved=sparse)
    return X


def random_supports(
    region: Region,
    blocks: list[tuple[int, ...]],
    n: int,
    rng: np.random.Generator,
    changes: int | None,
) -> Mask:
    """Return random sets of blocks, shape (n, blocks), that change at most the wanted number."""
    most = len(region.free)
    if region.max_changes is not None:
        most = min(most, region.max_changes)
    wanted = rng.integers(1, most + 1, size=n) if changes is None else min(changes, most)
    room = np.broadcast_to(wanted, (n,)).copy()
    order = np.argsort(rng.random((n, len(blocks))), axis=1)
    sizes = np.array([len(block) for block in blocks])
    chosen = np.zeros((n, len(blocks)), dtype=np.bool_)
    rows = np.arange(n)
    for place in range(len(blocks)):
        if not room.any():
            break
        at = order[:, place]
        fits = sizes[at] <= room
        chosen[rows, at] = fits
        room -= np.where(fits, sizes[at], 0)
    return chosen


def draw_block(
    region: Region,
    X: Array,
    rows: Indices,
    block: tuple[int, ...],
    rng: np.random.Generator,
    *,
    moved: bool,
) -> None:
    """Redraw one block of the given rows in place; `moved` leaves the query's values out."""
    axes = region.axes
    if len(block) == 1:
        X[rows, block[0]] = axes[block[0]].draw(len(rows), rng, moved=moved)
        return
    sides = [side for side in (-1, 1) if all(axes[j].room(side) for j in block)]
    options = np.array(sides if moved else [0, *sides])
    side = options[rng.integers(len(options), size=len(rows))]
    for j in block:
        X[rows, j] = region.query[j]
        for s in sides:
            these = rows[side == s]
            X[these, j] = axes[j].draw(len(these), rng, s, moved=True)
