"""Allowed rows of a region: draws, repair, walks.

Draws within limits, grid and the l0 bound are allowed by construction; rules then reject. Where
they reject nearly everything, rejected draws are repaired: projected onto linear rules, pulled
towards a known allowed row by bisection, and a walk spreads what was found.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import InfeasibleError
from bayescfx.grid import Grid
from bayescfx.linear import coordinate_corrections, project_linear, violation

TRIES = 2048  # draws that are counted before a region is called infeasible
WALK_ROUNDS = 60


class Landscape(Protocol):
    """What sampling needs to know of a region."""

    @property
    def grid(self) -> Grid: ...
    @property
    def query(self) -> Array: ...
    @property
    def free(self) -> Indices: ...
    @property
    def A(self) -> Array: ...
    @property
    def b(self) -> Array: ...
    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def data(self) -> Array | None: ...
    @property
    def ruled(self) -> bool: ...
    @property
    def named_tests(self) -> tuple[tuple[str, Any], ...]: ...
    def contains(self, X: Array) -> Mask: ...
    def complete(self, X: Array) -> Array: ...


def moving_blocks(region: Landscape) -> list[tuple[int, ...]]:
    """Return the free features as blocks that move as one; most blocks are single features."""
    grouped = {j for block in region.blocks for j in block}
    free = {int(j) for j in region.free}
    together = [block for block in region.blocks if set(block) <= free]
    return [(j,) for j in sorted(free - grouped)] + together


def draw(region: Landscape, n: int, rng: np.random.Generator, changes: int | None = None) -> Array:
    """Return `n` draws within limits, grid, l0 bound and directions; rules are not looked at.

    Uniform over the box without an l0 bound; with one, over random supports of random size.
    Derived columns are left as in the query.
    """
    X = np.repeat(region.query[None, :], n, axis=0)
    blocks = moving_blocks(region)
    if not blocks or not n:
        return X
    if changes is None and region.grid.max_changes is None:
        chosen = np.ones((n, len(blocks)), dtype=np.bool_)
    else:
        chosen = _supports(region, blocks, n, rng, changes)
    exact = changes is not None or region.grid.max_changes is not None
    for at, block in enumerate(blocks):
        rows = np.flatnonzero(chosen[:, at])
        if len(rows):
            _draw_block(region, X, rows, block, rng, exact)
    return X


def _supports(
    region: Landscape,
    blocks: list[tuple[int, ...]],
    n: int,
    rng: np.random.Generator,
    changes: int | None,
) -> Mask:
    """Return random sets of blocks, shape (n, blocks), that change at most the wanted number."""
    bound = region.grid.max_changes
    most = len(region.free) if bound is None else min(bound, len(region.free))
    if changes is None:
        room = rng.integers(1, most + 1, size=n)
    else:
        room = np.full(n, min(changes, most))
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
        room = room - np.where(fits, sizes[at], 0)
    return chosen


def _draw_block(
    region: Landscape,
    X: Array,
    rows: Indices,
    block: tuple[int, ...],
    rng: np.random.Generator,
    exact: bool,
) -> None:
    axes = region.grid.axes
    if len(block) == 1:
        X[rows, block[0]] = axes[block[0]].draw(len(rows), rng, moved=exact)
        return
    sides = [s for s in (-1, 1) if all(axes[j].room(s) for j in block)]
    options = np.array(sides if exact else [0, *sides])
    side = options[rng.integers(len(options), size=len(rows))]
    for s in sides:
        these = rows[side == s]
        for j in block:
            X[these, j] = axes[j].draw(len(these), rng, s, moved=True)


def sample(
    region: Landscape, n: int, rng: np.random.Generator, changes: int | None = None
) -> Array:
    """Return at most `n` allowed rows other than the query; see `Region.sample`."""
    if changes is not None and changes < 1:
        return np.empty((0, len(region.query)))
    found = _accepted(region, draw(region, n, rng, changes), changes)
    if len(found) < n and (region.ruled or not len(found)):
        found = _persist(region, n, rng, changes, found)
    if len(found) == 0 and changes is None and n > 0:
        raise InfeasibleError(_nothing_found(region, rng))
    return found[:n]


def _accepted(region: Landscape, X: Array, changes: int | None) -> Array:
    X = region.complete(X)
    return X[_wanted(region, X, changes)]


def _wanted(region: Landscape, X: Array, changes: int | None) -> Mask:
    count = region.grid.changes(X).sum(axis=1)
    wanted = count > 0 if changes is None else count == changes
    wanted[wanted] = region.contains(X[wanted])
    return np.asarray(wanted)


def _persist(
    region: Landscape, n: int, rng: np.random.Generator, changes: int | None, found: Array
) -> Array:
    """Return more rows: further draws while they pay, then repair, bisection and a walk."""
    tried = max(n, 1)
    while len(found) < n and tried < TRIES:
        if len(found) * 4 < tried and tried >= 256:
            break
        batch = max(64, min(TRIES - tried, 2 * (n - len(found))))
        found = np.concatenate(
            [found, _accepted(region, draw(region, batch, rng, changes), changes)]
        )
        tried += batch
    if len(found) >= n:
        return found
    batch = max(128, min(TRIES, 2 * n))
    X = draw(region, batch, rng, changes)
    extra, kept = repair(region, X)
    kept &= _wanted(region, extra, changes)
    data = background_rows(region, batch, rng, changes)
    data = data[_wanted(region, data, changes)]
    found = np.concatenate([found, extra[kept], data])
    seeds = _seeds(region, found, changes)
    if len(seeds):
        rejected = region.complete(X)[~kept]
        pulled = pull(region, rejected, seeds, rng)
        found = np.concatenate([found, pulled[_wanted(region, pulled, changes)]])
        seeds = _seeds(region, found, changes)
    elif changes is None:
        seeds = _descend(region, rng)
        found = np.concatenate([found, seeds])
    if len(found) < n and len(seeds):
        found = np.concatenate([found, walk(region, seeds, n - len(found), rng, changes)])
    return _distinct(found)[rng.permutation(len(_distinct(found)))]


def _seeds(region: Landscape, found: Array, changes: int | None) -> Array:
    if len(found):
        return found
    own = region.query[None, :]
    return own[region.contains(own)]


def _distinct(X: Array) -> Array:
    _, first = np.unique(np.nan_to_num(X), axis=0, return_index=True)
    return X[np.sort(first)]


def pull(region: Landscape, X: Array, seeds: Array, rng: np.random.Generator) -> Array:
    """Return rows on the way from rejected `X` to allowed `seeds`: the first halving allowed.

    Unordered levels come from one end or the other, at random.
    """
    grid = region.grid
    Z = seeds[rng.integers(len(seeds), size=len(X))]
    if grid.max_changes is not None:
        # a segment between different supports changes too much; go back to the query instead
        own = region.query[None, :]
        if region.contains(own)[0]:
            Z = np.repeat(own, len(X), axis=0)
    done: list[Array] = []
    for t in 0.5 ** np.arange(1, 11):
        if not len(X):
            break
        Y = np.where(np.isnan(Z), Z, Z + t * (X - Z))
        jump = rng.random(X.shape) < t
        Y = np.where(grid.categorical | grid.cyclic, np.where(jump, X, Z), Y)
        Y = region.complete(grid.snap(Y))
        good = _wanted(region, Y, None)
        done.append(Y[good])
        X, Z = X[~good], Z[~good]
    return np.concatenate(done) if done else np.empty((0, len(region.query)))


def walk(
    region: Landscape, seeds: Array, n: int, rng: np.random.Generator, changes: int | None = None
) -> Array:
    """Return at most `n` allowed rows reached from allowed `seeds` by random allowed moves."""
    m = min(max(n, 16), 256)
    X = seeds[rng.integers(len(seeds), size=m)]
    found: list[Array] = []
    total, idle = 0, 0
    for _ in range(WALK_ROUNDS * max(1, -(-n // m))):
        Y = _step(region, X, rng)
        good = _wanted(region, Y, changes)
        moved = good & (Y != X).any(axis=1)
        X = np.where(good[:, None] | _stays(region, X, Y, changes), Y, X)
        if moved.any():
            found.append(Y[moved])
            total += int(moved.sum())
        idle = 0 if moved.any() else idle + 1
        if total >= 4 * n or idle >= WALK_ROUNDS:
            break
    rows = np.concatenate(found) if found else np.empty((0, len(region.query)))
    rows = _distinct(rows)
    return rows[rng.permutation(len(rows))[:n]]


def _stays(region: Landscape, X: Array, Y: Array, changes: int | None) -> Any:
    """Return where a walk may pass through rows with another number of changes."""
    if changes is None:
        return np.zeros((len(X), 1), dtype=np.bool_)
    count = region.grid.changes(Y).sum(axis=1)
    before = region.grid.changes(X).sum(axis=1)
    nearer = np.abs(count - changes) <= np.abs(before - changes)
    nearer[nearer] = region.contains(Y[nearer])
    return nearer[:, None]


def _step(region: Landscape, X: Array, rng: np.random.Generator) -> Array:
    """Return one random move per row: a block redrawn, a local move, or a random direction."""
    grid = region.grid
    blocks = moving_blocks(region)
    Y = X.copy()
    size = 10.0 ** rng.uniform(-3, 0.5, size=(len(X), 1))
    kind = rng.random(len(X))
    picked = rng.integers(len(blocks), size=len(X))
    for at in range(len(blocks)):
        rows = np.flatnonzero((picked == at) & (kind < 0.5))
        if len(rows):
            _draw_block(region, Y, rows, blocks[at], rng, exact=True)
    ordered = np.zeros(len(region.query), dtype=np.bool_)
    ordered[region.free] = True
    ordered &= ~grid.categorical
    jump = rng.standard_normal(X.shape) * size * grid.scale * ordered
    if grid.max_changes is not None:
        jump *= grid.changes(X)
    few = rng.random(X.shape) < 2.0 / max(1, len(region.free))
    jump = np.where((kind < 0.75)[:, None], jump * few, jump)
    local = (kind >= 0.5)[:, None]
    Y = np.where(local, Y + jump, Y)
    if len(region.A):
        Y = np.where(local & ordered, _slide(region, X, Y), Y)
    Y = _swap_out(region, grid.snap(Y), X, rng)
    return region.complete(Y)


def _slide(region: Landscape, X: Array, Y: Array) -> Array:
    """Return `Y` pulled back along each move to where the linear rules still hold."""
    direction = np.nan_to_num(Y - X)
    speed = direction @ region.A.T
    slack = np.maximum(region.b - np.nan_to_num(X) @ region.A.T, 0.0)
    reach = np.where(speed > 0, slack / np.where(speed > 0, speed, 1.0), np.inf)
    t = np.minimum(1.0, 0.999 * reach.min(axis=1))
    return X + t[:, None] * direction


def _swap_out(region: Landscape, Y: Array, X: Array, rng: np.random.Generator) -> Array:
    """Return rows over the l0 bound with random older changes taken back."""
    bound = region.grid.max_changes
    if bound is None:
        return Y
    changed = region.grid.changes(Y)
    over = np.flatnonzero(changed.sum(axis=1) > bound)
    Y = Y.copy()
    for i in over:
        old = np.flatnonzero(changed[i] & (Y[i] == X[i]))
        excess = int(changed[i].sum()) - bound
        back = rng.permutation(old)[:excess]
        Y[i, back] = region.query[back]
    return Y


def repair(region: Landscape, X: Array) -> tuple[Array, Mask]:
    """Return the nearest allowed rows and which of them are allowed.

    Grid, directions and the l0 bound first, then linear rules; rows that function rules reject
    are pulled half-way to the query until they are allowed, if the query is.
    """
    grid = region.grid
    Y = _trim_blocks(region, grid.snap(X))
    Y = region.complete(grid.trim(Y, grid.max_changes))
    if not region.ruled:
        return Y, grid.contains(Y)
    good = region.contains(Y)
    if len(region.A) and not good.all():
        Y[~good] = _repair_linear(region, Y[~good])
        good = region.contains(Y)
    for i in np.flatnonzero(~good) if len(region.A) else ():
        Y[i], good[i] = _repair_row(region, Y[i])
    own = region.query[None, :]
    if not good.all() and region.contains(own)[0]:
        Y, good = _back_to_query(region, Y, good)
    return Y, good


def _trim_blocks(region: Landscape, X: Array) -> Array:
    """Return rows in which features that must move together do, or don't move at all."""
    if not region.blocks:
        return X
    X = X.copy()
    bound = region.grid.max_changes
    for block in region.blocks:
        at = list(block)
        side = np.sign(X[:, at] - region.query[at])
        apart = ~(side == side[:, :1]).all(axis=1)
        X[np.ix_(apart, at)] = region.query[at]
    if bound is None:
        return X
    changed = region.grid.changes(X)
    units = region.grid.units(X)
    blocks = moving_blocks(region)
    for i in np.flatnonzero(changed.sum(axis=1) > bound):
        room = bound
        # the largest change per feature first, whole blocks at a time
        for block in sorted(blocks, key=lambda b, i=i: -float(units[i, list(b)].mean())):  # type: ignore[misc]  # mypy can't type default arguments of lambdas
            at = list(block)
            if not changed[i, at].any():
                continue
            if len(at) <= room:
                room -= len(at)
            else:
                X[i, at] = region.query[at]
    return X


def _repair_linear(region: Landscape, X: Array) -> Array:
    grid = region.grid
    mobility = np.zeros_like(X)
    mobility[:, region.free] = grid.scale[region.free]
    mobility[:, grid.categorical | grid.cyclic] = 0.0
    if grid.max_changes is not None:
        full = grid.changes(X).sum(axis=1) >= grid.max_changes
        mobility[full] *= grid.changes(X[full])
    box = (np.nan_to_num(grid.low), np.nan_to_num(grid.high))
    Z = project_linear(np.nan_to_num(X), region.A, region.b, box, mobility)
    Z = np.where(np.isnan(X), X, Z)
    Z = grid.trim(grid.snap(Z), grid.max_changes)
    return region.complete(Z)


def _repair_row(region: Landscape, x: Array, rounds: int = 3) -> tuple[Array, bool]:
    """Return the row with single coordinates corrected until linear rules hold, if possible."""
    grid = region.grid
    moving = np.zeros(len(x), dtype=np.bool_)
    moving[region.free] = True
    moving &= ~grid.categorical & ~grid.cyclic
    for _ in range(rounds):
        now = moving
        if grid.max_changes is not None and grid.changes(x[None, :]).sum() >= grid.max_changes:
            now = moving & grid.changes(x[None, :])[0]
        V = coordinate_corrections(np.nan_to_num(x), region.A, region.b, grid.step, now)
        if not len(V):
            break
        V = region.complete(grid.snap(np.where(np.isnan(x), x, V)))
        good = region.contains(V)
        if good.any():
            best = np.flatnonzero(good)[np.argmin(grid.distance(V[good]))]
            return V[best], True
        worst = violation(np.nan_to_num(V), region.A, region.b).sum(axis=1)
        x = V[int(np.argmin(worst))]
    return x, False


def _back_to_query(region: Landscape, Y: Array, good: Mask) -> tuple[Array, Mask]:
    good = good.copy()
    for t in 0.5 ** np.arange(1, 8):
        bad = np.flatnonzero(~good)
        if not len(bad):
            break
        own = np.repeat(region.query[None, :], len(bad), axis=0)
        Z = np.where(np.isnan(own), own, own + t * (Y[bad] - own))
        keep = region.grid.categorical | region.grid.cyclic
        Z = region.complete(region.grid.snap(np.where(keep, Y[bad], Z)))
        fine = _wanted(region, Z, None)
        Y[bad[fine]] = Z[fine]
        good[bad[fine]] = True
    return Y, good


def background(region: Landscape) -> Array:
    """Return the allowed rows made of the query's fixed and the data's free features."""
    if region.data is None or not len(region.data):
        return np.empty((0, len(region.query)))
    return _transplanted(region, region.data)


def background_rows(
    region: Landscape, n: int, rng: np.random.Generator, changes: int | None = None
) -> Array:
    """Return at most `n` allowed rows with features copied from random data rows."""
    if region.data is None or not len(region.data) or not len(region.free) or n < 1:
        return np.empty((0, len(region.query)))
    X = region.data[rng.integers(len(region.data), size=n)]
    if changes is not None:
        blocks = moving_blocks(region)
        chosen = _supports(region, blocks, n, rng, changes)
        kept = np.zeros(X.shape, dtype=np.bool_)
        for at, block in enumerate(blocks):
            kept[:, list(block)] = chosen[:, [at]]
        X = np.where(kept, X, region.query)
    return _transplanted(region, X)


def _transplanted(region: Landscape, data: Array) -> Array:
    X = np.repeat(region.query[None, :], len(data), axis=0)
    copied = data[:, region.free]
    X[:, region.free] = np.where(np.isnan(copied), region.query[region.free], copied)
    X = _trim_blocks(region, region.grid.snap(X))
    X = region.complete(region.grid.trim(X, region.grid.max_changes))
    return X[_wanted(region, X, None)]


def _descend(region: Landscape, rng: np.random.Generator) -> Array:
    """Return allowed rows found by lowering the number of broken rules, if any."""
    X = region.complete(draw(region, 256, rng))
    if region.data is not None and len(region.data):
        take = region.data[rng.integers(len(region.data), size=128)]
        copied = np.where(np.isnan(take), region.query, take)
        X[:128, region.free] = region.grid.snap(copied)[:, region.free]
        X = region.complete(region.grid.trim(_trim_blocks(region, X), region.grid.max_changes))
    score = _broken(region, X)
    for _ in range(WALK_ROUNDS):
        done = score <= 0
        if done.any():
            found = X[done]
            return found[_wanted(region, found, None)]
        Y = _step(region, X, rng)
        new = _broken(region, Y)
        better = new <= score
        X, score = np.where(better[:, None], Y, X), np.where(better, new, score)
    return np.empty((0, len(region.query)))


def _broken(region: Landscape, X: Array) -> Array:
    """Return the number of broken rules, linear ones by degree; 0 if the row is allowed."""
    broken = np.zeros(len(X))
    for _, test in region.named_tests:
        broken += ~test(X)
    broken += ~region.grid.contains(X)
    if len(region.A):
        size = np.abs(region.A) @ region.grid.scale + 1e-300
        far = violation(np.nan_to_num(X), region.A, region.b) / size
        broken += (far / (1 + far)).sum(axis=1)
    return broken


def _nothing_found(region: Landscape, rng: np.random.Generator) -> str:
    if not len(region.free):
        return (
            "no feature may move for this query: every one is fixed, missing or at its limits. "
            "Free a feature or widen its limits."
        )
    X = region.complete(draw(region, TRIES, rng))
    passed = {label: int(test(X).sum()) for label, test in region.named_tests}
    own = region.contains(region.query[None, :])[0]
    first = (
        "no point but the query itself satisfies every rule"
        if own
        else "no point satisfies every rule for this query"
    )
    if not passed:
        return f"{first} (0 of {TRIES} tried). Widen the limits."
    tightest = min(passed, key=lambda label: passed[label])
    return (
        f"{first} (0 of {TRIES} tried). Tightest rule: {tightest!r} "
        f"({passed[tightest]} of {TRIES}). Relax it or free more features."
    )
