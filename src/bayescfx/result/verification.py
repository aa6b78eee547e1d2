"""The check of an answer from the answer alone: score again, then test limits, rules and wish.

This is the certificate check of CFX-Existence: polynomial in the size of the answer, and one call
of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import QueryError
from bayescfx.model.model import Model
from bayescfx.potentials.family import contains
from bayescfx.potentials.levels import Intervals
from bayescfx.space.region import Region
from bayescfx.tables import Rows, join

_RELATIVE = 1e-9  # what another order of summation may do in double precision
_RELATIVE_SINGLE = 1e-5  # and in single precision, for models that return float32 numbers


@dataclass(frozen=True)
class Claim:
    """What an answer says about its rows.

    Parameters
    ----------
    query : DataFrame or ndarray of shape (1, k)
        The query.
    output : float
        f(query).
    rows : DataFrame or ndarray of shape (n, k)
        The counterfactuals.
    outputs : ndarray of shape (n,)
        The model's outputs for them.
    valid : ndarray of bool, shape (n,)
        Which of them reach the target.
    changes : tuple of tuple
        The names of the features each has changed.
    reached : bool
        Whether the first, the best, reaches the target.
    """

    query: Rows
    output: float
    rows: Rows
    outputs: Array
    valid: Mask
    changes: tuple[tuple[Any, ...], ...]
    reached: bool


def violations(model: Model, region: Region, accepted: Intervals, claim: Claim) -> tuple[str, ...]:
    """Return what of a claim is not true, in words.

    Parameters
    ----------
    model : Model
        The model.
    region : Region
        What is allowed.
    accepted : tuple of (low, high)
        The outputs that reach the target.
    claim : Claim
        What is claimed.

    Returns
    -------
    tuple of str
        One sentence each; none if all is true.
    """
    outputs = np.array([claim.output, *claim.outputs])
    wrong = wrong_outputs(model, join([claim.query, claim.rows]), outputs)
    found = ["the model has another output for the query"] if wrong[0] else []
    found += [f"the model has another output for answer {k}" for k in np.flatnonzero(wrong[1:])]
    found += [f"a row breaks {label}" for label in broken_rules(region, claim.rows)]
    reaches = contains(accepted, claim.outputs)
    for k in np.flatnonzero(reaches != claim.valid):
        found.append(f"answer {k} {'reaches' if reaches[k] else 'misses'} the target")
    if claim.reached != bool(claim.valid[0]):
        found.append(f"the target is {'not ' if claim.reached else ''}reached")
    if not found:
        other = wrong_changes(region, claim.rows, claim.changes)
        found += [f"answer {k} has other changes" for k in other]
    return tuple(found)


def wrong_outputs(model: Model, rows: Rows, outputs: Array) -> Mask:
    """Return which outputs are not what the model gives for the rows.

    Models may add up in another order when a row comes in another batch, so that outputs may
    differ by rounding, measured against the largest of them.

    Parameters
    ----------
    model : Model
        The model.
    rows : DataFrame or ndarray of shape (n, k)
        The rows.
    outputs : ndarray of shape (n,)
        What is claimed for them.

    Examples
    --------
    >>> wrong_outputs(Model(lambda X: X[:, 0]), np.array([[1.0], [2.0]]), np.array([1.0, 2.5]))
    array([False,  True])
    """
    found = model.scores(rows)
    both = np.concatenate([found, outputs])
    single = bool(np.all(both.astype(np.float32) == both))
    relative = _RELATIVE_SINGLE if single else _RELATIVE
    finite = np.isfinite(both)
    allowed = relative * np.max(np.abs(both[finite]), initial=0.0)
    right: Mask = np.abs(found - outputs) <= allowed
    return ~right


def broken_rules(region: Region, rows: Rows) -> tuple[str, ...]:
    """Return what the rows break: limits and rules by name, or cells that do not fit.

    Parameters
    ----------
    region : Region
        What is allowed.
    rows : DataFrame or ndarray of shape (n, k)
        The rows.

    Returns
    -------
    tuple of str
        Names, each once; none if all rows are allowed.
    """
    try:
        X = region.encode(rows)
    except QueryError as error:
        return (str(error),)
    named = [] if region.within(X).all() else ["the limits of the features"]
    return (*named, *(rule.words.label for rule in region.rules if not rule.holds(region, X).all()))


def wrong_changes(region: Region, rows: Rows, claimed: Sequence[Iterable[Any]]) -> Indices:
    """Return the positions of rows whose claimed changes are not the features that differ."""
    moved = region.changes(region.encode(rows))
    found = [{name for name, m in zip(region.names, line, strict=True) if m} for line in moved]
    differ = [set(names) != real for names, real in zip(claimed, found, strict=True)]
    return np.flatnonzero(differ)
