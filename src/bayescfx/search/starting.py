"""Rows worth a look: where a search begins, and from where each proposal does."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import background_rows, sample

_STRIDE = 1.0  # how far a single feature is moved at the start, in its own scale
_CHANGES = (1, 2, 3, None)  # features copied from data rows; None: all
_HOPE = 0.4  # share of the budget after which whole data rows are looked at
_POOL = 256  # candidates of each sort
_SHRINK = (0.0, 0.5, 0.75, 0.9)  # how much of a change a walk back leaves


def first_rows(question: Question, n: int) -> Array:
    """Return the rows evaluated before the surrogate leads, at most `n`.

    Where nearness counts: the query with one feature moved by one scale unit, towards where the
    data are; or with groups of features, if there are more of them than rows. Otherwise, and if
    there are more rows than features, rows of the data, and random points of the region where
    there are none.
    """
    region, rng = question.region, question.rng
    rows = np.empty((0, len(region.query)))
    if question.weight > 0.0:
        rows = _one_at_a_time(region, rng, n)
        if len(rows) and n <= len(region.free):
            return rows
    rows = np.vstack([rows, background_rows(region, n - len(rows), rng)])
    if len(rows) < n:
        rows = np.vstack([rows, sample(region, n - len(rows), rng)])
    return rows[:n]


def _one_at_a_time(region: Region, rng: np.random.Generator, n: int) -> Array:
    groups = np.array_split(rng.permutation(region.free), min(n, len(region.free)))
    rows = np.repeat(region.query[None], len(groups), axis=0)
    for row, group in zip(rows, groups, strict=True):
        for j in group:
            row[j] = _moved(region, int(j), rng)
    rows = project(region, rows)
    return rows[region.changes(rows).any(axis=1)]


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
    step = max(_STRIDE * float(region.scale[j]), float(region.step[j]))
    return own + side * min(step, room)


def towards_target(question: Question, value: Array) -> Array:
    """Return candidates while nothing reaches the target; best first.

    The best known rows, data rows, points between and mixtures of known rows, and, where nearness
    counts, the query with a few features copied from data rows.

    Parameters
    ----------
    question : Question
        Under search.
    value : Array of shape (n,)
        How good the known rows are.
    """
    region, rng, X = question.region, question.rng, question.X
    i, j = rng.integers(len(X), size=(2, _POOL // 4))
    between = X[i] + rng.random((len(i), 1)) * (X[j] - X[i])
    mixed = np.where(rng.random((len(i), X.shape[1])) < rng.random((len(i), 1)), X[i], X[j])
    rows = [X[np.argsort(-value, kind="stable")[:8]], background_rows(region, _POOL // 2, rng)]
    if question.weight > 0.0:
        rows += [background_rows(region, _POOL // 4, rng, changes=k) for k in (1, 2, 3)]
    return project(region, np.vstack([*rows, between, mixed]))


def towards_query(question: Question, centres: Array, pool: int = _POOL) -> Array:
    """Return candidates nearer to the query than rows that reach the target.

    Those rows with some changes taken back or shortened, and the query with a few features
    copied from data rows, all of them shortened too.

    Parameters
    ----------
    question : Question
        Under search.
    centres : Array of shape (c, d)
        Rows that reach the target.
    pool : int
        How many candidates of each sort.
    """
    region, rng, q = question.region, question.rng, question.region.query
    rows = centres[rng.integers(len(centres), size=pool)]
    kept = rng.random(rows.shape) < rng.random((pool, 1))
    length = np.where(rng.random(rows.shape) < 0.5, 1.0, rng.random((pool, 1)))
    back = _blend(region, np.where(kept, rows, q), length)
    few = [background_rows(region, pool // 4, rng, changes=k) for k in (1, 2, 3)]
    rows = np.vstack([back, *few])
    return project(
        region, np.vstack([centres, rows, _blend(region, rows, rng.random((len(rows), 1)))])
    )


def _blend(region: Region, X: Array, length: Array) -> Array:
    """Return rows with their changes shortened; unordered levels have no length."""
    ordered = ~(region.categorical | region.cyclic)
    return np.where(ordered, region.query + length * (X - region.query), X)


def data_rows(question: Question, n: int) -> Array:
    """Return rows of the data; at first, where nearness counts, the query with few copied."""
    region, rng, account = question.region, question.rng, question.account
    if question.weight == 0.0 or account.spent > _HOPE * account.budget:
        return background_rows(region, n, rng)
    return np.vstack([background_rows(region, n // 4, rng, changes=k) for k in _CHANGES])


def few_rows(question: Question, centre: Array, most: int) -> Array:
    """Return candidates that differ from a row in few features, copied from other rows."""
    region, rng = question.region, question.rng
    others = np.vstack(
        [background_rows(region, _POOL, rng), sample(region, _POOL // 2, rng), question.X]
    )
    others = others[rng.integers(len(others), size=2 * _POOL)]
    moved = np.zeros(others.shape, dtype=bool)
    order = np.argsort(rng.random((len(others), len(region.free))), axis=1)
    moved[:, region.free] = order < rng.integers(1, most + 1, size=(len(others), 1))
    return project(region, np.where(moved, others, centre))


def walked_back(region: Region, x: Array) -> Array:
    """Return a row with each of its changes taken back or shortened, one at a time."""
    changed: Indices = np.flatnonzero(region.changes(x[None])[0])
    rows = np.repeat(x[None], len(changed) * len(_SHRINK), axis=0)
    for i, j in enumerate(np.repeat(changed, len(_SHRINK))):
        length = _SHRINK[i % len(_SHRINK)]
        if length == 0.0 or not (region.categorical[j] or region.cyclic[j]):
            rows[i, j] = region.query[j] + length * (x[j] - region.query[j])
    rows = project(region, rows)
    return np.unique(rows[region.changes(rows).any(axis=1)], axis=0)
