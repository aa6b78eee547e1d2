"""Allowed rows of a region: draws, data rows, walks.

Draws within limits, grid and the l0 bound are allowed by construction; rules then reject. Where
they reject nearly everything, rejected draws are repaired, pulled towards a known allowed row,
and a walk spreads what was found. Where nothing was found, a walk lowers the number of broken
rules first.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import InfeasibleError
from bayescfx.space.draws import draw, random_supports
from bayescfx.space.linear import violation
from bayescfx.space.region import Region
from bayescfx.space.repair import moving_blocks, pull, repair, trim
from bayescfx.space.walking import ROUNDS, WALKERS, distinct, step, walk

TRIES = 2048  # draws that are counted before a region is called infeasible
LAST_DRAWS = 50 * TRIES  # a rule that 1 in 10,000 satisfies is missed once in 28,000 times
WORTHWHILE = 0.05  # share of allowed draws above which plain rejection goes on


def sample(region: Region, n: int, rng: np.random.Generator, changes: int | None = None) -> Array:
    """Return at most `n` allowed rows other than the query; see `Region.sample`."""
    nothing = np.empty((0, len(region.query)))
    if n < 1 or (changes is not None and changes < 1):
        return nothing
    if not len(region.free):
        found = nothing
    elif not region.ruled:
        X = draw(region, n, rng, changes)
        found = X[_wanted(region, X, changes)]
    else:
        found = _ruled_sample(region, n, rng, changes)
    if not len(found) and changes is None:
        found = _small_region(region)
        if not len(found):
            raise InfeasibleError(nothing_found(region, rng))
    return found[:n]


def _wanted(region: Region, X: Array, changes: int | None) -> Mask:
    """Return which rows are allowed and changed, in as many features as wanted."""
    count = region.changes(X).sum(axis=1)
    wanted: Mask = count > 0 if changes is None else count == changes
    wanted[wanted] = region.contains(X[wanted])
    return wanted


def _small_region(region: Region) -> Array:
    """Return all allowed rows of a region so small that draws may have missed them."""
    if region.size > TRIES:
        return np.empty((0, len(region.query)))
    X = region.complete(region.listing())
    return X[_wanted(region, X, None)]


def _ruled_sample(region: Region, n: int, rng: np.random.Generator, changes: int | None) -> Array:
    found, tried = [np.empty((0, len(region.query)))], 0
    count = 0
    while count < n and (tried < 256 or count >= WORTHWHILE * tried):
        X = region.complete(draw(region, max(64, min(TRIES, 2 * (n - count))), rng, changes))
        found.append(X[_wanted(region, X, changes)])
        tried, count = tried + len(X), count + len(found[-1])
    rows = np.concatenate(found)
    return rows if count >= n else _persist(region, n, rng, changes, rows)


def _persist(
    region: Region, n: int, rng: np.random.Generator, changes: int | None, found: Array
) -> Array:
    """Return more rows where draws rarely pass: repair, data rows, bisection and a walk."""
    batch = max(128, min(TRIES, 2 * n))
    X = draw(region, batch, rng, changes)
    fixed, good = repair(region, X)
    data = background_rows(region, batch, rng, changes)
    seeds = np.concatenate([found, fixed[good], data])
    if not len(seeds):
        own = region.query[None, :]
        seeds = own if region.contains(own)[0] else _descend(region, rng)
    rejected = region.complete(X)[~good]
    more = _spread_out(region, seeds, rejected, n - len(found), rng, changes)
    if not len(found) and not len(more):
        seeds = _insist(region, rng, changes)
        more = _spread_out(region, seeds, rejected, n, rng, changes)
    return np.concatenate([found, more])


def _spread_out(
    region: Region,
    seeds: Array,
    rejected: Array,
    n: int,
    rng: np.random.Generator,
    changes: int | None,
) -> Array:
    """Return distinct wanted rows around allowed `seeds`, in random order."""
    if not len(seeds):
        return seeds
    pulled = pull(region, rejected, seeds, rng)
    walked = walk(region, np.concatenate([seeds, pulled]), n, rng, changes)
    X = distinct(np.concatenate([seeds, pulled, walked]))
    X = X[_wanted(region, X, changes)]
    return X[rng.permutation(len(X))]


def background(region: Region) -> Array:
    """Return the allowed rows made of the query's fixed and the data's free features."""
    return _transplanted(region, region.data)


def background_rows(
    region: Region, n: int, rng: np.random.Generator, changes: int | None = None
) -> Array:
    """Return at most `n` allowed rows with features copied from random data rows."""
    if not len(region.data) or not len(region.free) or n < 1:
        return np.empty((0, len(region.query)))
    X = region.data[rng.integers(len(region.data), size=n)]
    if changes is not None:
        blocks = moving_blocks(region)
        chosen = random_supports(region, blocks, n, rng, changes)
        copied = np.zeros(X.shape, dtype=np.bool_)
        for at, block in enumerate(blocks):
            copied[:, list(block)] = chosen[:, [at]]
        X = np.where(copied, X, region.query)
    return _transplanted(region, X)


def _transplanted(region: Region, data: Array) -> Array:
    X = np.repeat(region.query[None, :], len(data), axis=0)
    copied = data[:, region.free]
    X[:, region.free] = np.where(np.isnan(copied), region.query[region.free], copied)
    X = region.complete(trim(region, region.on_grid(X)))
    return X[_wanted(region, X, None)]


def _descend(region: Region, rng: np.random.Generator) -> Array:
    """Return allowed rows found by a walk that lowers the number of broken rules, if any."""
    X = draw(region, WALKERS, rng)
    if len(region.data):
        half = WALKERS // 2
        copied = region.data[rng.integers(len(region.data), size=half)][:, region.free]
        X[:half, region.free] = np.where(np.isnan(copied), X[:half, region.free], copied)
        X = trim(region, region.on_grid(X))
    X = region.complete(X)
    score = _broken(region, X)
    for _ in range(ROUNDS):
        done: Mask = score == 0
        if done.any():
            return X[done]
        Y = step(region, X, rng)
        new = _broken(region, Y)
        better = new <= score
        X, score = np.where(better[:, None], Y, X), np.where(better, new, score)
    return np.empty((0, len(region.query)))


def _insist(region: Region, rng: np.random.Generator, changes: int | None) -> Array:
    """Return the first allowed rows of many plain draws: the last resort against blind rules."""
    for _ in range(LAST_DRAWS // TRIES):
        X = region.complete(draw(region, TRIES, rng, changes))
        good = region.contains(X)
        if good.any():
            return X[good]
    return np.empty((0, len(region.query)))


def _broken(region: Region, X: Array) -> Array:
    """Return the number of broken rules, linear ones by degree; 0 if the row is allowed."""
    broken = np.zeros(len(X))
    for _, test in region.tests:
        broken += ~test(X)
    broken += ~region.within(X)
    if len(region.A):
        size = np.abs(region.A) @ region.scale + np.finfo(float).tiny
        far = violation(np.nan_to_num(X), region.A, region.b) / size
        broken += (broken > 0) * (far / (1 + far)).sum(axis=1)
    return broken


def nothing_found(region: Region, rng: np.random.Generator) -> str:
    """Return the message of a region without allowed rows: the tightest rule and its count."""
    if not len(region.free):
        return (
            "no feature may move for this query: every one is fixed, missing or at its limits. "
            "Free a feature or widen its limits."
        )
    X = region.complete(draw(region, TRIES, rng))
    passed = {label: int(test(X).sum()) for label, test in region.tests}
    alone = region.contains(region.query[None, :])[0]
    first = (
        "no point but the query itself satisfies every rule"
        if alone
        else "no point satisfies every rule for this query"
    )
    if not passed:
        return f"{first} (0 of {TRIES} tried). Widen the limits."
    ranked = sorted(passed, key=lambda label: passed[label])
    rest = ", ".join(f"{label!r} ({passed[label]} of {TRIES})" for label in ranked[1:6])
    return (
        f"{first} (0 of {TRIES} tried). Tightest rule: {ranked[0]!r} "
        f"({passed[ranked[0]]} of {TRIES})." + (f" Others: {rest}." if rest else "")
    )
