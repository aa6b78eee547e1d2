"""Answers without needless changes: what is changed in vain goes back, the rest is shortened.

Every search can end with it, ``yield from shorten(question, rows)``. A row is tried only if there
are rows left to show, should it reach the target, that each of its changes is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from bayescfx.arrays import Array, Indices, firsts
from bayescfx.search.question import Question
from bayescfx.search.selection import distinct
from bayescfx.space.effort import effort
from bayescfx.space.region import Region
from bayescfx.space.repair import repair


def shorten(
    question: Question, rows: int, *, batch: int = 1, worth: Callable[[Array], Array] | None = None
) -> Generator[Array, Array, None]:
    """Yield at most `rows` rows that show which changes of the answers are needed, and how much.

    First each change is taken back alone, until no answer has one that is not needed. Then, at most
    `batch` rows at a time: changes shortened by halves, and one dropped while another becomes
    longer or shorter. `worth` ranks rows ``(k, d)``, minus infinity for those not worth a call; by
    default the nearest come first.
    """
    account, region = question.account, question.region
    end = account.spent + rows
    while (room := min(account.left, end - account.spent)) > 0:
        X = question.X[distinct(question, question.n)]
        X = X[region.changes(X).any(axis=1)] if question.reached else X[:0]
        back, others = _new(question, taken_back(region, X)), np.empty((0, X.shape[1]))
        if not len(back):
            others = _new(question, np.vstack([halved(question, X), exchanged(region, X)]))
            others = others[1 + to_settle(region, others) <= room]
        found = back if len(back) else others
        value = -effort(region, found) if worth is None else worth(found)
        order = np.argsort(-value, kind="stable")[:batch]
        chosen = found[order] if len(back) else found[order][value[order] > -np.inf]
        if not len(chosen):
            return
        if not len(back):  # as many of a batch as may hit are settled afterwards
            last = np.sort(to_settle(region, chosen))[-question.n :].sum()
            chosen = chosen[: max(1, room - last)]
        yield chosen[:room]


def to_settle(region: Region, X: Array) -> Indices:
    """Return how many rows it may take to show that rows ``(n, d)`` change nothing in vain."""
    k = region.changes(X).sum(axis=1)
    return np.asarray(np.minimum(k * (k + 1) // 2 - 1, 2 * k))


def taken_back(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` with each change taken back alone, where that is allowed."""
    changed = region.changes(X)
    at, j = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    rows = X[at]
    rows[np.arange(len(at)), j] = region.query[j]
    rows = region.complete(rows)
    return np.asarray(rows[region.contains(rows)])


def halved(question: Question, X: Array) -> Array:
    """Return rows ``(n, d)`` with a change cut to halfway between it and the last known miss."""
    region, known = question.region, question.X
    found = [X[:0]]
    for x, cost in zip(X, effort(region, X), strict=True):
        other = region.changes(known, x)
        for j in np.flatnonzero(region.changes(x[None])[0] & region.sliding):
            line = known[other[:, j] & (other.sum(axis=1) == 1), j]
            # shares of the change that miss, as far as known; without any change too
            share = (line - region.query[j]) / (x[j] - region.query[j])
            least = share[(share > 0.0) & (share < 1.0)].max(initial=0.0)
            row = x.copy()
            row[j] = region.query[j] + 0.5 * (least + 1.0) * (x[j] - region.query[j])
            row = region.snap(row[None])
            if effort(region, row)[0] < 0.99 * cost:
                found.append(row)
    rows = np.vstack(found)
    return np.asarray(rows[region.contains(rows)])


def exchanged(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` with one change dropped and another longer or shorter, if nearer.

    Of rows with many changes, only the twelve dearest are exchanged.
    """
    changed, lengths = region.changes(X), np.array([0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0])
    dearest = np.argsort(np.argsort(-np.where(changed, region.units(X), 0.0), axis=1), axis=1)
    changed &= dearest < 12
    pairs = changed[:, :, None] & (changed & region.sliding)[:, None, :]
    found = np.stack(np.nonzero(pairs & ~np.eye(X.shape[1], dtype=bool)))
    at, dropped, j = found.repeat(len(lengths), axis=1)
    rows, each = X[at], np.arange(len(at))
    rows[each, dropped] = region.query[dropped]
    length = np.resize(lengths, len(at))
    rows[each, j] = region.query[j] + length * (rows[each, j] - region.query[j])
    rows, kept = repair(region, rows)
    return np.asarray(rows[kept & (effort(region, rows) < 0.99 * effort(region, X)[at])])


def _new(question: Question, X: Array) -> Array:
    """Return the rows that change something and are not known, each once."""
    X = X[question.region.changes(X).any(axis=1)]
    X = X[firsts(X)]
    return np.asarray(X[~question.known.holds(X)])
