"""The best next point: maximise any function over a region.

Small finite regions are enumerated. Otherwise some hundred candidates are scored in one call, a
handful of different good ones is refined together: gradient ascent for continuous features
(:mod:`bayescfx.ascent`) alternates with moves for the others (:mod:`bayescfx.moves`). Every
candidate lies in the region before it is scored, so what is proposed is allowed by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import NEVER, Deadline
from bayescfx.ledger import Acquisition, Ledger
from bayescfx.moves import Axes
from bayescfx.refine import different, refine
from bayescfx.region import Region
from bayescfx.supports import screen

__all__ = ["Acquisition", "Proposal", "propose"]

_EXACT = 4096  # regions with at most this many points are enumerated


@dataclass(frozen=True)
class Proposal:
    """Points worth evaluating.

    Parameters
    ----------
    points : Array of shape (n, d)
        Codes, best first; at most as many as were asked for.
    values : Array of shape (n,)
        Their values; ``-inf`` where nothing better is known.
    exhausted : bool
        Every point of the region is to be avoided; there are no points then.
    """

    points: Array
    values: Array
    exhausted: bool = False


def propose(
    acquisition: Acquisition,
    region: Region,
    rng: np.random.Generator,
    starts: Array | None = None,
    *,
    k: int = 1,
    avoid: Array | None = None,
    deadline: Deadline = NEVER,
) -> Proposal:
    """Return the best points of `region` that have not been evaluated.

    Parameters
    ----------
    acquisition : Acquisition
        What is maximised, with its gradient by each code. It may be ``-inf`` in places and may
        have kinks where a feature equals the query's value.
    region : Region
        Where; every point proposed lies in it.
    rng : numpy.random.Generator
        Source of candidates; the same state gives the same proposal.
    starts : Array of shape (n, d), optional
        Promising rows, best first.
    k : int, default 1
        How many distinct points, different local maxima first.
    avoid : Array of shape (n, d), optional
        Rows that were evaluated before and are not proposed again.
    deadline : Deadline
        Checked before every call of the acquisition.

    Returns
    -------
    Proposal
        Fewer than `k` points where the region has no more.

    Raises
    ------
    OutOfTime
        If the deadline passes on the way.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}. Ask for one point or more.")
    ledger = Ledger(acquisition, region, avoid, deadline)
    if region.size <= _EXACT:
        ledger.value(region.enumerate(_EXACT), allowed=True)
        return _chosen(ledger, Axes.of(region), np.empty((0, len(region.query))), k)
    axes = Axes.of(region)
    given = np.empty((0, len(region.query))) if starts is None else starts
    screen(ledger, axes, given, rng)
    maxima = refine(ledger, axes, k, rng)
    return _chosen(ledger, axes, maxima, k)


def _chosen(ledger: Ledger, axes: Axes, maxima: Array, k: int) -> Proposal:
    """The best `k` rows tried: the best first, then different local maxima, then the rest."""
    X, value = ledger.tried(256 + 16 * k if k > 1 else 1)
    if not len(X):
        return Proposal(X, value, exhausted=True)
    index = different(axes, X, value, k)
    return Proposal(X[index], value[index])
