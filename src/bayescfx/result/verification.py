"""The check of an answer, the certificate of CFX-Existence: in polynomial time, one model call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import QueryError
from bayescfx.model.model import Model
from bayescfx.potentials import Intervals, contains
from bayescfx.space.region import Region
from bayescfx.tables import Rows, join

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation


def violations(
    answer: Explanation, model: Model, region: Region, accepted: Intervals
) -> tuple[str, ...]:
    """Return what of an answer is not true, in words: one sentence each, none if all is true."""
    query = answer.layout.table([list(answer.query)])
    rows, counterfactuals = answer.rows, answer.counterfactuals
    outputs = np.array([c.output for c in counterfactuals])
    wrong = _wrong_outputs(model, join([query, rows]), np.array([answer.output, *outputs]))
    found = ["the model has another output for the query"] if wrong[0] else []
    found += [f"the model has another output for answer {k}" for k in np.flatnonzero(wrong[1:])]
    found += [f"a row breaks {label}" for label in _broken_rules(region, rows)]
    for k, reaches in enumerate(contains(accepted, outputs)):
        if reaches != counterfactuals[k].valid:
            found.append(f"answer {k} {'reaches' if reaches else 'misses'} the target")
    if answer.reached != answer.best.valid:
        found.append(f"the target is {'not ' if answer.reached else ''}reached")
    if not found:
        moved = region.changes(region.encode(rows))
        for k, c in enumerate(counterfactuals):
            real = {name for name, m in zip(region.names, moved[k], strict=True) if m}
            if set(c.changes) != real:
                found.append(f"answer {k} has other changes")
    return tuple(found)


def _wrong_outputs(model: Model, rows: Rows, outputs: Array) -> Mask:
    """Return which outputs ``(n,)`` are not what the model gives for the rows."""
    found = model.scores(rows)
    both = np.concatenate([found, outputs])
    # another batch may be added up in another order: roundings of double or single precision
    relative = 1e-5 if np.all(both.astype(np.float32) == both) else 1e-9
    allowed = relative * np.max(np.abs(both[np.isfinite(both)]), initial=0.0)
    return np.asarray(~(np.abs(found - outputs) <= allowed))  # nan is wrong


def _broken_rules(region: Region, rows: Rows) -> tuple[str, ...]:
    """Return what the rows break, each once: limits and rules by name, or cells that don't fit."""
    try:
        X = region.encode(rows)
    except QueryError as error:
        return (str(error),)
    named = [] if region.within(X).all() else ["the limits of the features"]
    return (*named, *(rule.words.label for rule in region.rules if not rule.holds(region, X).all()))
