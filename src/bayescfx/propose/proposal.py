"""The best next point: maximise any function over a region.

Small finite regions are enumerated. Otherwise some hundred candidates are scored in one call, and a
handful of different good ones is refined together: gradient ascent for continuous features
alternates with moves for the others. Every candidate lies in the region before it is scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.deadline import NEVER, Deadline
from bayescfx.propose.ledger import Acquisition, Evaluated, Ledger
from bayescfx.propose.refine import different, refine
from bayescfx.propose.screening import sampled, screen
from bayescfx.propose.tuning import TUNING, Effort
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class Proposal:
    """Points worth evaluating."""

    points: Array  # (n, d) codes, best first; at most as many as were asked for
    values: Array  # (n,); -inf where nothing better is known
    exhausted: bool = False  # whether every point of the region is to be avoided


def propose(
    acquisition: Acquisition,
    region: Region,
    rng: np.random.Generator,
    starts: Array | None = None,
    *,
    k: int = 1,
    avoid: Array | Evaluated | None = None,
    effort: Effort = "thorough",
    deadline: Deadline = NEVER,
) -> Proposal:
    """Return the best `k` points of `region`, different maxima first; fewer if it has no more.

    The acquisition may be ``-inf`` in places and may have kinks where a feature equals the query's
    value. `starts` ``(n, d)`` are promising rows, best first; rows to `avoid`, ``(m, d)`` or
    a set of them, are never proposed. A *thorough* effort looks for the maximum; a *brief* one, in
    a third of the time, for a good point, and a *swift* one, in half of that, where the starts are
    good; a *glance* returns good rows that lie apart. Raises `OutOfTime` after the deadline.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}. Ask for one point or more.")
    is_glance = effort == "glance"
    ledger = Ledger(acquisition, region, avoid, deadline)
    # Small regions are listed: faster than a search for a few hundred rows, surer for more.
    everything = region.enumerate(TUNING.listed_at_a_glance if is_glance else TUNING.listed_points)
    if everything is not None:
        ledger.value_allowed(everything)
    else:
        given = region.query[None] if starts is None else np.vstack([starts, region.query])
        _search(ledger, given, rng, effort, TUNING.glances if is_glance else k)
    chosen, X, value = _choose(ledger, k, is_glance=is_glance)
    return Proposal(X[chosen], value[chosen], exhausted=not len(X))


def _search(
    ledger: Ledger, starts: Array, rng: np.random.Generator, effort: Effort, k: int
) -> None:
    """Screen candidates and refine the best; where all are to be avoided, look at many more."""
    screen(ledger, starts, rng, effort)
    if refine(ledger, k, rng, effort):
        return
    region = ledger.region
    n_avoided = 0 if ledger.avoided is None else len(ledger.avoided)
    more = region.enumerate(TUNING.listed_points + TUNING.per_avoided_row * n_avoided)
    if more is None:
        more = sampled(region, TUNING.last_samples, rng)
    ledger.value_allowed(more)
    refine(ledger, k, rng, effort)


def _choose(ledger: Ledger, k: int, *, is_glance: bool) -> tuple[Indices, Array, Array]:
    """Return positions of the `k` best rows that lie apart, best first; all rows, and values.

    First those far apart, in units of the ranges; then closer ones, or at a glance none.
    """
    pool = 1
    if is_glance:
        pool = TUNING.glances * k
    elif k > 1:
        pool = TUNING.pool + TUNING.pool_per_point * k
    X, value = ledger.tried(pool)
    chosen = np.empty(0, dtype=np.intp)
    for gap in (TUNING.gap_at_a_glance,) if is_glance else TUNING.gaps:
        best = different(ledger.free, X, value, k, gap)
        chosen = np.append(chosen, best[~np.isin(best, chosen)])[:k]
        if len(chosen) == k:
            break
    return chosen[np.argsort(-value[chosen], kind="stable")], X, value
