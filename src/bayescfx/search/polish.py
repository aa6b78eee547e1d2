"""A sweep's answers made nearer: changes taken back, shortened, exchanged, shared otherwise."""

from __future__ import annotations

from collections.abc import Generator
from itertools import combinations, islice

import numpy as np

from bayescfx.arrays import Array, firsts
from bayescfx.search.objectives import Record
from bayescfx.search.shorten import taken_back
from bayescfx.search.single import crossings, single_moves
from bayescfx.search.sweep_state import Swept
from bayescfx.space.effort import effort
from bayescfx.space.region import Region


def walk_back(swept: Swept) -> Generator[Array, Array, None]:
    """Take back or shorten each change of the answers, by eighths of what may do."""
    before, at_once = np.inf, swept.X[:0]
    while (record := swept.record()) is not None:
        cost = float(record.cost[record.leaders].sum())
        if cost > 0.998 * before or not len(X := shorter(swept, record)):
            return
        before, X = cost, np.vstack([at_once, X])
        # Of several answers each change is taken back at last.
        several = swept.question.n > 1
        y = yield from swept.ask(X, swept.unsettled if several else swept.question.account.left)
        at_once = _at_once(swept, record, X[swept.question.accepted(y)])


def exchange(swept: Swept) -> Generator[Array, Array, None]:
    """Try the answers with one change taken back, and another one or more of another.

    And with the cost of two changes shared otherwise.
    """
    record, region, below = swept.record(), swept.region, swept.below
    assert record is not None  # called with answers only
    bases = taken_back(region, record.answers)
    moves = [single_moves(region, base, swept.few, swept.values, below) for base in bases]
    moves = [part.take(effort(region, part.X) < 0.99 * below) for part in moves]
    y = yield from swept.ask(np.vstack([bases, *(part.X for part in moves)]), swept.unsettled)
    values, rows = swept.question.to_surrogate(y[: len(bases)]), [swept.X[:0]]
    for value, part in zip(values, swept.scored(moves, values, y[len(bases) :]), strict=True):
        rows.append(crossings(region, part, value, swept.question.surrogate_acceptance, 24))
    X = np.vstack(rows)
    record = swept.record()
    assert record is not None
    X = np.vstack([shorter(swept, record), _traded(swept, record), X])
    yield from swept.ask(X[effort(region, X) < swept.below], swept.unsettled)


def shorter(swept: Swept, record: Record) -> Array:
    """Return the answers with each of their changes taken back or shortened, each once.

    What saves most comes first, should rows not do for all.
    """
    rows, region = [swept.X[:0]], swept.region
    for x in record.answers:
        if x.tobytes() not in swept.shortened:
            swept.shortened.add(x.tobytes())
            rows += _shorter(swept, x)
    X = region.snap(np.vstack(rows))
    X = X[region.changes(X).any(axis=1)]
    return np.asarray(X[np.argsort(effort(region, X), kind="stable")])


def _shorter(swept: Swept, x: Array) -> list[Array]:
    """Return the row ``(d,)`` with the change of each block taken back or shortened."""
    region, query, found = swept.region, swept.region.query, list[Array]()
    apart = region.changes(swept.X, x)  # (n, d)
    elsewhere = apart.sum(axis=1)
    for block in region.moving:
        moved = [j for j in block if x[j] != query[j]]
        if not moved:
            continue
        shares = np.zeros(1)
        if not (region.categorical | region.cyclic)[moved].any():  # levels have no length
            line = np.flatnonzero(elsewhere == apart[:, block].sum(axis=1))
            known = (swept.X[line][:, moved] - query[moved]) / (x - query)[moved]
            along = np.ptp(known, axis=1) < 1e-6  # all features of the block by the same share
            missed = known[along & ~swept.question.accepted(swept.y[line]), 0]
            longest = missed[(missed >= 0.0) & (missed < 1.0)].max(initial=0.0)
            shares = longest + (1.0 - longest) * np.arange(8) / 8.0
            if region.rules:  # which say for nothing how short a change may be
                fine = longest + (1.0 - longest) * np.arange(64) / 64.0
                rows = region.snap(_shared(region, x, moved, fine))
                shares = fine[region.contains(rows)]
                n = len(shares)
                shares = shares[np.linspace(0, n - 1, min(n, 8)).astype(np.intp)]
        found.append(_shared(region, x, moved, shares))
    return found


def _shared(region: Region, x: Array, at: list[int], shares: Array) -> Array:
    """Return the row ``(d,)`` with only shares ``(k,)`` of the changes of some features."""
    rows = np.repeat(x[None], len(shares), axis=0)
    rows[:, at] = region.query[at] + shares[:, None] * (x[at] - region.query[at])
    return rows


def _at_once(swept: Swept, record: Record, X: Array) -> Array:
    """Return the answers with more and more of what hits ``(n, d)`` by itself, dear first."""
    X = X[np.argsort(effort(swept.region, X), kind="stable")]
    cost, rows = effort(swept.region, X), [swept.X[:0]]
    for x, own in zip(record.answers, record.cost[record.leaders], strict=True):
        rows.append(swept.piled(x, X[cost < own]))
    return np.vstack(rows)


def _traded(swept: Swept, record: Record) -> Array:
    """Return the answers with the cost of two changes shared otherwise, less in all."""
    region = swept.region
    low, high = np.stack(np.triu_indices(12, 1)) / 12.0  # what lies between is saved
    rows = [swept.X[:0]]
    for x, units in zip(record.answers, region.units(record.answers), strict=True):
        moved = np.flatnonzero((units > 0.0) & region.sliding)
        for i, j in islice(combinations(moved[np.argsort(-units[moved])], 2), 3):
            rows.append(np.repeat(x[None], len(low), axis=0))
            for k, share in ((i, low), (j, 1.0 - high)):
                way = (x[k] - region.query[k]) * (units[i] + units[j]) / units[k]
                rows[-1][:, k] = region.query[k] + way * share
    X = region.snap(np.vstack(rows))
    X = X[region.changes(X).any(axis=1)]
    return np.asarray(X[firsts(X)])
