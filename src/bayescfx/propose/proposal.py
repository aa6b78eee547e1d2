"""The best next point: maximise any function over a region.

Small finite regions are enumerated. Otherwise some hundred candidates are scored in one call, and a
handful of different good ones is refined together: gradient ascent for continuous features
alternates with moves for the others. Every candidate lies in the region before it is scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import NEVER, Deadline
from bayescfx.propose.ledger import Acquisition, Evaluated, Ledger
from bayescfx.propose.refine import Effort, different, refine
from bayescfx.propose.screening import sampled, screen
from bayescfx.space.region import Region

EXACT = 8192  # regions with at most this many points are enumerated


@dataclass(frozen=True, eq=False)
class Proposal:
    """Points worth evaluating."""

    points: Array  # (n, d) codes, best first; at most as many as were asked for
    values: Array  # (n,); -inf where nothing better is known
    exhausted: bool = False  # every point of the region is to be avoided; there are none then


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
    good; a *glance* tells good rows that lie apart. Raises `OutOfTime` after the deadline.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}. Ask for one point or more.")
    ledger, glance = Ledger(acquisition, region, avoid, deadline), effort == "glance"
    # A few hundred rows are listed faster than they are searched, more only more surely.
    everything = region.enumerate(1024 if glance else EXACT)
    if everything is not None:
        ledger.value(everything, allowed=True)
    else:
        given = region.query[None] if starts is None else np.vstack([starts, region.query])
        screen(ledger, given, rng, effort)
        if not refine(ledger, 4 if glance else k, rng, effort):
            # Nothing new: every point if they can be listed, else many.
            everything = region.enumerate(EXACT + 4 * len(ledger.avoided or ()))
            more = sampled(region, 4096, rng) if everything is None else everything
            ledger.value(more, allowed=True)
            refine(ledger, 4 if glance else k, rng, effort)
    # Of the best rows tried, first those that lie far apart, in units of the ranges; then closer
    # ones, or at a glance none.
    X, value = ledger.tried(4 * k if glance else 512 + 16 * k if k > 1 else 1)
    chosen = np.empty(0, dtype=np.intp)
    for apart in (0.1,) if glance else (0.2, 0.05, 0.01, 0.0):
        best = different(ledger.free, X, value, k, apart)
        chosen = np.append(chosen, best[~np.isin(best, chosen)])[:k]
        if len(chosen) == k:
            break
    chosen = chosen[np.argsort(-value[chosen], kind="stable")]
    return Proposal(X[chosen], value[chosen], exhausted=not len(X))
