"""Rows worth a look: where a search begins, and from where each proposal does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayescfx.arrays import Array, row_keys
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import background_rows, sample

POOL = 256  # candidates of each sort


def fresh_rows(question: Question) -> Iterator[Array]:
    """Yield codes ``(d,)`` of allowed rows that are not known, each once, in random order.

    Ends when there are no more: for certain where rows can be listed, else after eight vain pools.
    """
    region, known = question.region, question.account.evaluator.known
    seen: set[bytes] = set()

    def new(rows: Array) -> Iterator[Array]:
        for row, key in zip(rows, row_keys(rows), strict=True):
            if key not in seen and key not in known.index:
                seen.add(key)
                yield row

    vain = 0
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
    """Return the rows evaluated before the surrogate leads, at most `n`.

    Where nearness counts: the query with one feature, or a group of them if there are more features
    than rows, moved by one scale unit towards where the data are. Then rows of the data.
    """
    region, rng = question.region, question.rng
    rows = np.empty((0, len(region.query)))
    if question.weight > 0.0:
        groups = np.array_split(rng.permutation(region.free), min(n, len(region.free)))
        rows = np.repeat(region.query[None], len(groups), axis=0)
        for row, group in zip(rows, groups, strict=True):
            for j in group.tolist():
                row[j] = _moved(region, j, rng)
        rows = project(region, rows)
        rows = rows[region.changes(rows).any(axis=1)]
        if len(rows) and n <= len(region.free):
            return rows
    return np.vstack([rows, usual_rows(region, n - len(rows), rng)])[:n]


def _moved(region: Region, j: int, rng: np.random.Generator) -> float:
    """Return another value of feature `j`: the most frequent level, or one scale unit away."""
    data = region.data[:, j]
    own, choices = float(region.query[j]), region.choices[j]
    if choices is not None and (region.categorical[j] or region.cyclic[j]):
        others = choices[choices != own]
        count = (data[:, None] == others).sum(axis=0)
        return float(others[np.argmax(count)] if count.any() else rng.choice(others))
    up, down = float(region.high[j]) - own, own - float(region.low[j])
    upwards = np.mean(data > own) >= np.mean(data < own) if len(data) else up > down
    side = 1.0 if (upwards and up > 0.0) or down <= 0.0 else -1.0
    room = up if side > 0.0 else down
    return own + side * min(max(float(region.scale[j]), float(region.step[j])), room)


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
    """Return candidates while nothing reaches the target, the best by `value` ``(n,)`` first.

    Then data rows, also copied into the query where nearness counts, and mixtures of known rows.
    """
    region, rng, X = question.region, question.rng, question.X
    i, j = rng.integers(len(X), size=(2, POOL // 4))
    between = X[i] + rng.random((len(i), 1)) * (X[j] - X[i])
    mixed = np.where(rng.random((len(i), X.shape[1])) < rng.random((len(i), 1)), X[i], X[j])
    best, data = X[np.argsort(-value, kind="stable")[:8]], _copied(question, POOL // 2, None)
    few = _copied(question, POOL // 4, *((1, 2, 3) if question.weight > 0.0 else ()))
    return project(region, np.vstack([best, data, few, between, mixed]))


def towards_query(question: Question, centres: Array) -> Array:
    """Return candidates nearer to the query than the `centres` ``(c, d)``, which hit the target.

    Centres with changes taken back or shortened, and the query with a few cells of data rows.
    """
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
    others = np.vstack(
        [background_rows(region, POOL, rng), sample(region, POOL // 2, rng), question.X]
    )
    others = others[rng.integers(len(others), size=2 * POOL)]
    moved = np.zeros(others.shape, dtype=bool)
    order = np.argsort(rng.random((len(others), len(region.free))), axis=1)
    moved[:, region.free] = order < rng.integers(1, most + 1, size=(len(others), 1))
    return project(region, np.where(moved, others, centre))


def walked_back(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` with each of their changes taken back or shortened, one at a time."""
    lengths = (0.0, 0.5, 0.75, 0.9)
    at, j = np.nonzero(region.changes(X))
    at, j, length = np.repeat(at, 4), np.repeat(j, 4), np.tile(lengths, len(at))
    possible = (length == 0.0) | ~(region.categorical | region.cyclic)[j]
    at, j, length = at[possible], j[possible], length[possible]
    rows = X[at]
    rows[np.arange(len(at)), j] = region.query[j] + length * (X[at, j] - region.query[j])
    rows = project(region, rows)
    return rows[region.changes(rows).any(axis=1)]
