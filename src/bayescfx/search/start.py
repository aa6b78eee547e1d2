"""Candidate rows: where a search begins, and where each of its proposals starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, row_keys
from bayescfx.deadline import time_limit
from bayescfx.search.question import Question
from bayescfx.space.neighbourhood import block_values
from bayescfx.space.region import Region
from bayescfx.space.repair import project, repair
from bayescfx.space.sampling import background_rows, sample


@dataclass(frozen=True)
class StartTuning:
    """Numbers of start rows and candidates.

    Set by judgement; benchmark `make quality` and `benchmarks/efficiency.py` (2026-11-18). *Limit*:
    bounds work where hardly a new row is left.
    """

    pool: int = 256  # candidates of each kind
    few_values: int = 16  # features with at most so many values are tried value by value
    # Limit: pools without a new row before random rows count as exhausted.
    fruitless_pools: int = 8
    listed: int = 100_000  # limit: regions with at most so many points are then listed
    data_rows: int = 1000  # candidates made of data rows
    copied: tuple[int, ...] = (1, 2, 3)  # how many features are copied from a data row
    # Share of changes that are not shortened. With 0, one query of `make quality` (diabetes with
    # LightGBM, row 174, 40 rows, six seeds) costs 36 ± 9 % more.
    whole_changes: float = 0.5


TUNING = StartTuning()


def fresh_rows(question: Question) -> Iterator[Array]:
    """Yield codes ``(d,)`` of allowed rows that are not scored, each once, in random order."""
    region = question.region
    seen: set[bytes] = set()
    n_fruitless = 0
    while n_fruitless < TUNING.fruitless_pools:
        time_limit.get().check()
        before = len(seen)
        yield from _unseen(question, sample(region, TUNING.pool, question.rng), seen)
        if len(seen) > before:
            n_fruitless = 0
            continue
        n_fruitless += 1
        everything = region.enumerate(TUNING.listed)
        if everything is not None:
            order = question.rng.permutation(len(everything))
            yield from _unseen(question, everything[order], seen)
            return


def _unseen(question: Question, rows: Array, seen: set[bytes]) -> Iterator[Array]:
    """Yield the rows ``(n, d)`` that are neither scored nor `seen`, and add them to `seen`."""
    rows = rows[~question.known.holds(rows)]
    for row, key in zip(rows, row_keys(rows), strict=True):
        if key not in seen:
            seen.add(key)
            yield row


def typical_rows(region: Region, n: int, rng: np.random.Generator) -> Array:
    """Return `n` rows of the data that fit the region, or random ones where there are too few."""
    rows = background_rows(region, n, rng)
    if len(rows) == n:
        return rows
    return np.vstack([rows, sample(region, n - len(rows), rng)])


def first_rows(question: Question, n: int) -> Array:
    """Return at most `n` rows to begin with: features moved alone or in groups, data rows."""
    region = question.region
    rows = np.empty((0, len(region.query)))
    if question.region.price.weight > 0.0:
        rows = single_changes(region)
        if n < len(region.moving):
            grouped = _grouped_changes(region, n, question.rng)
            if len(grouped):
                return grouped
            rows = grouped
    n_typical = n - min(n, len(rows))
    return np.vstack([rows[:n], typical_rows(region, n_typical, question.rng)])


def _grouped_changes(region: Region, n: int, rng: np.random.Generator) -> Array:
    """Return `n` rows in which random groups of blocks are moved, each block in one row."""
    steps = [block_values(region, block, TUNING.few_values, 1.0)[:1] for block in region.moving]
    groups = np.array_split(rng.permutation(len(steps)), n)
    rows = np.repeat(region.query[None], n, axis=0)
    for row, group in zip(rows, groups, strict=True):
        for at in group.tolist():
            row[region.moving[at]] = steps[at]
    rows = project(region, rows)
    return np.asarray(rows[region.changes(rows).any(axis=1)])


def single_changes(region: Region, reach: float = 1.0) -> Array:
    """Return the query with one feature moved, or features that move together.

    Features with few values take each, others a step of `reach` units either way, or none. First
    one row of each, towards the data; then the second of each; then the others by distance.
    """
    rows = [region.query[None][:0]]
    turns = [np.empty(0)]
    for block in region.moving:
        values = block_values(region, block, TUNING.few_values, reach)
        moved = np.repeat(region.query[None], len(values), axis=0)
        moved[:, block] = values
        rows.append(moved)
        turns.append(np.minimum(np.arange(len(values)), 2.0))
    X, allowed = repair(region, np.vstack(rows))
    allowed &= region.changes(X).any(axis=1)
    order = np.lexsort((region.distance(X), np.concatenate(turns)))
    return np.asarray(X[order][allowed[order]])


def _copies(question: Question, n: int, *n_copied: int | None) -> Array:
    """Return the query with features copied from data rows, at most `n` rows of each number.

    None copies all features.
    """
    rows = [np.empty((0, len(question.region.query)))]
    for k in n_copied:
        rows.append(background_rows(question.region, n, question.rng, changes=k))
    return np.vstack(rows)


def data_rows(question: Question) -> Array:
    """Return rows of the data and, where nearness counts, the query with few features copied."""
    if question.region.price.weight == 0.0:
        return _copies(question, TUNING.data_rows, None)
    kinds = (*TUNING.copied, None)
    return _copies(question, TUNING.data_rows // len(kinds), *kinds)


def towards_target(question: Question) -> Array:
    """Return candidates while nothing hits.

    Rows of the data, the query with few features copied from data, and rows between two scored ones
    or mixed of them.
    """
    rng = question.rng
    X = question.X
    few = TUNING.pool // 4
    i, j = rng.integers(len(X), size=(2, few))
    between = X[i] + rng.random((few, 1)) * (X[j] - X[i])
    is_first = rng.random((few, X.shape[1])) < rng.random((few, 1))
    mixed = np.where(is_first, X[i], X[j])
    data = _copies(question, TUNING.pool // 2, None)
    copied = TUNING.copied if question.region.price.weight > 0.0 else ()
    sparse = _copies(question, few, *copied)
    return project(question.region, np.vstack([data, sparse, between, mixed]))


def towards_query(question: Question, centres: Array) -> Array:
    """Return candidates nearer to the query than the `centres` ``(c, d)``, which hit the target.

    The centres with random changes taken back or shortened, and the query with few features copied
    from data, in full length and shortened.
    """
    region = question.region
    rng = question.rng
    query = region.query
    n = TUNING.pool
    has_length = ~(region.categorical | region.cyclic)
    rows = centres[rng.integers(len(centres), size=n)]
    is_kept = rng.random(rows.shape) < rng.random((n, 1))
    rows = np.where(is_kept, rows, query)
    is_whole = rng.random(rows.shape) < TUNING.whole_changes
    length = np.where(is_whole, 1.0, rng.random((n, 1)))
    rows = np.where(has_length, query + length * (rows - query), rows)
    rows = np.vstack([rows, _copies(question, n // 4, *TUNING.copied)])
    shrunk = query + rng.random((len(rows), 1)) * (rows - query)
    shorter = np.where(has_length, shrunk, rows)
    return project(region, np.vstack([centres, rows, shorter]))


def few_rows(question: Question, centre: Array, most: int) -> Array:
    """Return candidates that differ from a row ``(d,)`` in at most `most` features.

    These are copied from data rows, random rows and scored rows.
    """
    region = question.region
    rng = question.rng
    data = background_rows(region, TUNING.pool, rng)
    drawn = sample(region, TUNING.pool // 2, rng)
    others = np.vstack([data, drawn, question.X])
    others = others[rng.integers(len(others), size=2 * TUNING.pool)]
    order = np.argsort(rng.random((len(others), len(region.free))), axis=1)
    is_moved = np.zeros(others.shape, dtype=bool)
    is_moved[:, region.free] = order < rng.integers(1, most + 1, size=(len(others), 1))
    return project(region, np.where(is_moved, others, centre))
