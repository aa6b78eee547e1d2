"""Rows worth a look: where a search begins, and from where each proposal does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayescfx.arrays import Array, row_keys
from bayescfx.search.question import Question
from bayescfx.space.neighbourhood import block_values
from bayescfx.space.region import Region
from bayescfx.space.repair import project, repair
from bayescfx.space.sampling import background_rows, sample

POOL = 256  # candidates of each sort
FEW = 16  # features with at most so many values are tried value by value


def fresh_rows(question: Question) -> Iterator[Array]:
    """Yield codes ``(d,)`` of allowed rows that are not known, each once, in random order."""
    region, known = question.region, question.known
    seen: set[bytes] = set()

    def new(rows: Array) -> Iterator[Array]:
        rows = rows[~known.holds(rows)]
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in seen:
                seen.add(key)
                yield row

    vain = 0  # pools without a new row
    while vain < 8:
        question.deadline.check()
        before = len(seen)
        yield from new(sample(region, 256, question.rng))
        vain = 0 if len(seen) > before else vain + 1
        if vain and (everything := region.enumerate(100_000)) is not None:
            yield from new(everything[question.rng.permutation(len(everything))])
            return


def usual_rows(region: Region, n: int, rng: np.random.Generator) -> Array:
    """Return `n` rows of the data that fit the region, or random ones where there are too few."""
    rows = background_rows(region, n, rng)
    return rows if len(rows) == n else np.vstack([rows, sample(region, n - len(rows), rng)])


def first_rows(question: Question, n: int) -> Array:
    """Return at most `n` rows to begin with: features moved alone or in groups, data rows."""
    region, rng = question.region, question.rng
    rows = np.empty((0, len(region.query)))
    if question.weight > 0.0:
        rows = alone(region)
        if n < len(region.moving):
            steps = [block_values(region, block, FEW, 1.0)[:1] for block in region.moving]
            groups = np.array_split(rng.permutation(len(steps)), n)
            rows = np.repeat(region.query[None], n, axis=0)
            for row, group in zip(rows, groups, strict=True):
                for at in group.tolist():
                    row[region.moving[at]] = steps[at]
            rows = project(region, rows)
            rows = rows[region.changes(rows).any(axis=1)]
            if len(rows):
                return rows
    return np.vstack([rows[:n], usual_rows(region, n - min(n, len(rows)), rng)])


def alone(region: Region, reach: float = 1.0) -> Array:
    """Return the query with one feature moved, or features that move together.

    Features with few values take each, others a step of `reach` units either way, or none. First
    one row of each, towards where the data are; then the second of each; then others by distance.
    """
    rows, turn = [region.query[None][:0]], [np.empty(0)]
    for block in region.moving:
        steps = block_values(region, block, FEW, reach)
        moved = np.repeat(region.query[None], len(steps), axis=0)
        moved[:, block] = steps
        rows.append(moved)
        turn.append(np.minimum(np.arange(len(steps)), 2.0))
    X, allowed = repair(region, np.vstack(rows))
    allowed &= region.changes(X).any(axis=1)
    order = np.lexsort((region.distance(X), np.concatenate(turn)))
    return np.asarray(X[order][allowed[order]])


def _copied(question: Question, n: int, *changes: int | None) -> Array:
    """Return the query with so many features copied from data rows, at most `n` rows of each."""
    rows = [np.empty((0, len(question.region.query)))]
    for k in changes:
        rows.append(background_rows(question.region, n, question.rng, changes=k))
    return np.vstack(rows)


def data_rows(question: Question, n: int = 1000) -> Array:
    """Return rows of the data; at first, where nearness counts, the query with few copied."""
    account = question.account
    if question.weight == 0.0 or account.spent > 0.4 * account.budget:
        return _copied(question, n, None)
    return _copied(question, n // 4, 1, 2, 3, None)


def towards_target(question: Question, value: Array) -> Array:
    """Return candidates while nothing hits: the best by `value` ``(n,)``, data rows, mixtures."""
    region, rng, X = question.region, question.rng, question.X
    i, j = rng.integers(len(X), size=(2, POOL // 4))
    between = X[i] + rng.random((len(i), 1)) * (X[j] - X[i])
    mixed = np.where(rng.random((len(i), X.shape[1])) < rng.random((len(i), 1)), X[i], X[j])
    best, data = X[np.argsort(-value, kind="stable")[:8]], _copied(question, POOL // 2, None)
    few = _copied(question, POOL // 4, *((1, 2, 3) if question.weight > 0.0 else ()))
    return project(region, np.vstack([best, data, few, between, mixed]))


def towards_query(question: Question, centres: Array) -> Array:
    """Return candidates nearer to the query than the `centres` ``(c, d)``, which hit the target."""
    region, rng, q = question.region, question.rng, question.region.query
    ordered = ~(region.categorical | region.cyclic)  # unordered levels have no length
    rows = centres[rng.integers(len(centres), size=POOL)]
    rows = np.where(rng.random(rows.shape) < rng.random((POOL, 1)), rows, q)
    length = np.where(rng.random(rows.shape) < 0.5, 1.0, rng.random((POOL, 1)))
    rows = np.where(ordered, q + length * (rows - q), rows)
    rows = np.vstack([rows, _copied(question, POOL // 4, 1, 2, 3)])
    shorter = np.where(ordered, q + rng.random((len(rows), 1)) * (rows - q), rows)
    return project(region, np.vstack([centres, rows, shorter]))


def few_rows(question: Question, centre: Array, most: int) -> Array:
    """Return candidates that differ from a row in few features, copied from other rows."""
    region, rng = question.region, question.rng
    data, drawn = background_rows(region, POOL, rng), sample(region, POOL // 2, rng)
    others = np.vstack([data, drawn, question.X])
    others = others[rng.integers(len(others), size=2 * POOL)]
    moved = np.zeros(others.shape, dtype=bool)
    order = np.argsort(rng.random((len(others), len(region.free))), axis=1)
    moved[:, region.free] = order < rng.integers(1, most + 1, size=(len(others), 1))
    return project(region, np.where(moved, others, centre))
