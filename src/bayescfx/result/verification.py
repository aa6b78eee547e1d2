"""The check of an answer, the certificate of CFX-Existence: in polynomial time, one model call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask, is_single
from bayescfx.data.tables import Rows, join, pick
from bayescfx.data.values import same_cell
from bayescfx.errors import QueryError
from bayescfx.models.model import Model
from bayescfx.potentials import Intervals, contains
from bayescfx.result.assessment import changes_of
from bayescfx.space.region import Region

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation


def violations(
    answer: Explanation, model: Model, region: Region, accepted: Intervals
) -> tuple[str, ...]:
    """Return what of an answer is not true, in words: one sentence each, none if all is true."""
    try:
        rows = answer.rows
        scored = join([answer.layout.table([list(answer.query)]), rows])
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        return (f"a row does not fit its columns: {error}",)
    counterfactuals = answer.counterfactuals
    claimed = np.array([answer.output, *(c.output for c in counterfactuals)])
    outputs, wrong, same = _scored_again(model, scored, claimed)
    found = ["the model has another output for the query"] if wrong[0] else []
    found += [f"the model has another output for answer {k}" for k in np.flatnonzero(wrong[1:])]
    found += [f"a row breaks {label}" for label in _broken_rules(region, rows)]
    # where a claim differs by rounding only, it may decide what lies on an edge
    for k, reaches in enumerate(contains(accepted, np.where(same, claimed, outputs)[1:])):
        if reaches != counterfactuals[k].valid:
            found.append(f"answer {k} {'reaches' if reaches else 'misses'} the target")
    if answer.reached != answer.best.valid:
        found.append(f"the target is {'not ' if answer.reached else ''}reached")
    if not found:
        X = region.encode(rows)
        each = zip(counterfactuals, changes_of(region, X, scored), region.distance(X), strict=True)
        for k, (c, changes, cost) in enumerate(each):
            told = (same_cell(c.changes.get(name), pair) for name, pair in changes.items())
            if len(c.changes) != len(changes) or not all(told):
                found.append(f"answer {k} has other changes")
            if not np.isclose(c.cost, cost, rtol=1e-6, atol=1e-12):
                found.append(f"answer {k} has another cost")
    return tuple(found)


def _scored_again(model: Model, rows: Rows, claimed: Array) -> tuple[Array, Mask, Mask]:
    """Return the model's outputs ``(n,)``, which are not as claimed, and which nearly are."""
    # Some models add up in another order when a row comes in another batch: if any output differs
    # by more than its last places, all are scored again, alone and four times over, and what these
    # disagree by, relative to the output, is rounding, too. So are a few units of single precision,
    # where all numbers are of that.
    outputs = model.scores(rows)
    with np.errstate(invalid="ignore"):  # infinite outputs differ from all
        size, apart = np.abs(outputs), np.abs(outputs - claimed)
        rounding = 16.0 * np.spacing(size)
    if not (same := apart <= rounding).all():  # nan is not
        alone = [model.scores(pick(rows, np.array([k])))[0] for k in range(len(size))]
        again = np.vstack([alone, model.scores(join([rows] * 4)).reshape(4, -1)])
        with np.errstate(invalid="ignore", divide="ignore"):
            rounding += 4.0 * size * np.nan_to_num(np.abs(again - outputs) / size, posinf=0.0).max()
        same = apart <= rounding
    few = np.zeros_like(size)
    if is_single(np.concatenate([outputs, claimed])):
        with np.errstate(invalid="ignore"):
            few = 4.0 * np.spacing(size.astype(np.float32)).astype(float)
    return outputs, ~(apart <= rounding + few), same


def _broken_rules(region: Region, rows: Rows) -> tuple[str, ...]:
    """Return what the rows break, each once: limits and rules by name, or cells that don't fit."""
    try:
        X = region.encode(rows)
    except QueryError as error:
        return (str(error),)
    named = [] if region.within(X).all() else ["the limits of the features"]
    return (*named, *(rule.words.label for rule in region.rules if not rule.holds(region, X).all()))
