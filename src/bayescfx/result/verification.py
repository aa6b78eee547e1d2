"""Check the claims of an answer: the certificate of CFX-Existence, in polynomial time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.arrays import Array, Mask, is_single
from bayescfx.data.tables import Rows, join, pick
from bayescfx.data.values import same_cell
from bayescfx.errors import QueryError
from bayescfx.models.class_scores import has_label
from bayescfx.models.model import Model
from bayescfx.potentials import ClassTarget, Intervals, contains
from bayescfx.result.assessment import changes_of, derived_part
from bayescfx.space.region import Region

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation

#: Errors of rows that do not fit their columns.
UNFIT = (TypeError, ValueError, LookupError, OverflowError)


def violations(
    answer: Explanation,
    model: Model,
    region: Region,
    accepted: Intervals,
    outputs: Array | None = None,
) -> tuple[str, ...]:
    """Return the claims of an answer that are false, one sentence each.

    `outputs` ``(1 + k,)`` are the model's, of the query and of each counterfactual, if known.
    """
    try:
        rows = answer.rows
        scored = claimed_rows(answer)
    except UNFIT as error:
        return (f"a row does not fit its columns: {error}",)
    claimed = np.array([answer.output, *(c.output for c in answer.counterfactuals)])
    outputs, is_wrong, is_same = _score_again(model, scored, claimed, outputs)
    # Where a claim differs by rounding only, the claim decides on which side of an edge it lies.
    decisive = np.where(is_same, claimed, outputs)
    found = [
        *_false_outputs(is_wrong),
        *(f"a row breaks {label}" for label in _broken_rules(region, rows)),
        *_false_validity(answer, contains(accepted, decisive[1:])),
        *_false_labels(answer, model, scored),
    ]
    found = found or _false_changes(answer, region, rows, scored)
    return tuple(found or _false_ranges(answer, model, region, accepted))


def claimed_rows(answer: Explanation) -> Rows:
    """Return the query and the counterfactuals as one table; raise `UNFIT` if they are none."""
    return join([answer.layout.table([list(answer.query)]), answer.rows])


def _false_outputs(is_wrong: Mask) -> list[str]:
    """Return which outputs are wrong; the first of ``(1 + n,)`` is that of the query."""
    found = []
    if is_wrong[0]:
        found.append("the model has another output for the query")
    for k in np.flatnonzero(is_wrong[1:]).tolist():
        found.append(f"the model has another output for answer {k}")
    return found


def _false_validity(answer: Explanation, is_hit: Mask) -> list[str]:
    """Return which counterfactuals, and the answer, are wrongly called valid or not."""
    found = []
    for k, (hit, counterfactual) in enumerate(zip(is_hit, answer.counterfactuals, strict=True)):
        if hit != counterfactual.valid:
            found.append(f"answer {k} {'reaches' if hit else 'misses'} the target")
    if answer.reached != answer.best.valid:
        found.append(f"the target is {'not ' if answer.reached else ''}reached")
    return found


def _false_labels(answer: Explanation, model: Model, scored: Rows) -> list[str]:
    """Return which valid counterfactuals have another predicted label than the target asks for."""
    if not isinstance(answer.target, ClassTarget) or model.labels is None:
        return []
    _, *predicted = model.labels.predict(scored)
    pairs = zip(answer.counterfactuals, predicted, strict=True)
    return [
        f"answer {k} has the predicted label {label!r}"
        for k, (found, label) in enumerate(pairs)
        if found.valid and not has_label(answer.target, label, answer.output)
    ]


def _false_changes(answer: Explanation, region: Region, rows: Rows, scored: Rows) -> list[str]:
    """Return which counterfactuals have other changes or another cost than claimed."""
    X = region.encode(rows)
    changes = changes_of(region, X, scored)
    costs = region.cost(X)
    distances = region.distance(X)
    found = []
    for k, counterfactual in enumerate(answer.counterfactuals):
        follows = derived_part(region, changes[k])
        is_same = _same_changes(counterfactual.changes, changes[k])
        if not is_same or not _same_changes(counterfactual.follows, follows):
            found.append(f"answer {k} has other changes")
        if not np.isclose(counterfactual.cost, costs[k], rtol=1e-6, atol=1e-12):
            found.append(f"answer {k} has another cost")
        if not np.isclose(counterfactual.distance, distances[k], rtol=1e-6, atol=1e-12):
            found.append(f"answer {k} has another distance")
    return found


def _false_ranges(
    answer: Explanation, model: Model, region: Region, accepted: Intervals
) -> list[str]:
    """Return the valid ranges whose ends miss the target or break a rule; one call at most."""
    ends = list(_range_ends(answer, region))
    if not ends:
        return []
    X = region.complete(np.array([row for _, row in ends]))
    is_kept = region.contains(X) & contains(accepted, model.scores(region.rows(X)))
    return list(dict.fromkeys(compress((claim for claim, _ in ends), ~is_kept)))


def _range_ends(answer: Explanation, region: Region) -> Iterator[tuple[str, Array]]:
    """Yield the codes ``(d,)`` of rows at the ends of valid ranges, each with what is false."""
    for k, row in enumerate(region.encode(answer.rows)):
        ranges = answer.counterfactuals[k].valid_ranges or {}
        for name, each in ranges.items():
            j = region.names.index(name)
            values = np.array(each.values or (each.low, each.high), dtype=object)
            for code in region.axes[j].feature.encode(values):
                end = row.copy()
                end[j] = code
                yield f"answer {k} is not valid everywhere in the range of {name!r}", end


def _same_changes(claimed: Mapping[Any, Any], actual: Mapping[Any, Any]) -> bool:
    """Return whether both have the same features, each with the same cells."""
    if len(claimed) != len(actual):
        return False
    return all(same_cell(claimed.get(name), pair) for name, pair in actual.items())


def _score_again(
    model: Model, rows: Rows, claimed: Array, outputs: Array | None
) -> tuple[Array, Mask, Mask]:
    """Return outputs ``(n,)``, whether each contradicts its claim, and whether it equals it.

    Some models add up in another order when a row comes in another batch. If any output differs by
    more than its last places, all rows are scored again, alone and four times over; the relative
    differences between these scores count as rounding. A few units of single precision count as
    rounding, too, if all numbers are single precision.
    """
    if outputs is None:
        outputs = model.scores(rows)
    with np.errstate(invalid="ignore"):  # infinite outputs differ from all
        size = np.abs(outputs)
        difference = np.abs(outputs - claimed)
        rounding = 16.0 * np.spacing(size)
    is_same = difference <= rounding  # False for nan
    if not is_same.all():
        rounding += _batch_rounding(model, rows, outputs)
        is_same = difference <= rounding
    single = np.zeros_like(size)
    if is_single(np.concatenate([outputs, claimed])):
        with np.errstate(invalid="ignore"):
            single = 4.0 * np.spacing(size.astype(np.float32)).astype(float)
    is_wrong = ~(difference <= rounding + single)
    return outputs, is_wrong, is_same


def _batch_rounding(model: Model, rows: Rows, outputs: Array) -> Array:
    """Return how much each output ``(n,)`` may differ because rows come in another batch."""
    size = np.abs(outputs)
    alone = [model.scores(pick(rows, np.array([k])))[0] for k in range(len(size))]
    repeated = model.scores(join([rows] * 4)).reshape(4, -1)
    again = np.vstack([alone, repeated])
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.nan_to_num(np.abs(again - outputs) / size, posinf=0.0).max()
        return np.asarray(4.0 * size * relative)


def _broken_rules(region: Region, rows: Rows) -> list[str]:
    """Return the limits and rules that the rows break, or why the rows do not fit."""
    try:
        X = region.encode(rows)
    except QueryError as error:
        return [str(error)]
    broken = []
    if not region.within(X).all():
        broken.append("the limits of the features")
    for rule in region.rules:
        if not rule.holds(region, X).all():
            broken.append(rule.words.label)
    return broken
