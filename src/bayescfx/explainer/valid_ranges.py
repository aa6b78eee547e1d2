"""Valid ranges of the answers to a question, for models that were read for a proof."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.values import as_python
from bayescfx.models.readers import Form, TreeEnsemble
from bayescfx.result.valid_range import ValidRange, listed_text, range_text
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.intervals import ScoredRow, ValidCodes, find_valid_codes
from bayescfx.search.exact.prover import Prover, sure_intervals
from bayescfx.search.exact.scored_sums import ScoredSum
from bayescfx.search.question import Question
from bayescfx.space.region import Region

Ranges = dict[Hashable, ValidRange]


def valid_ranges(question: Question, prover: Prover, X: Array, y: Array) -> list[Ranges | None]:
    """Return the valid ranges of answers; None for rows of which they are not known.

    Parameters
    ----------
    question : Question
        The question, after its proof, complete or not.
    prover : Prover
        The model as it was read.
    X : array of shape (n, d)
        The codes of the answers.
    y : array of shape (n,)
        Their outputs.
    """
    region = question.region
    form = _read_form(question, prover, X, y)
    if form is None:
        return [None] * len(X)
    accepted = sure_intervals(form, question.acceptance, prover.reading(region).rounding)
    found: list[Ranges | None] = []
    for row, is_reached in zip(X, question.accepted(y).tolist(), strict=True):
        codes: list[ValidCodes] = []
        if is_reached and isinstance(form, TreeEnsemble):
            codes = find_valid_codes(ScoredRow(prover.table(region, form), region, accepted, row))
        elif is_reached and not isinstance(form, TreeEnsemble):
            codes = find_valid_codes(ScoredSum(form, region, accepted, row))
        ranges = {region.names[each.feature]: _as_range(region, row, each) for each in codes}
        found.append(ranges or None)
    return found


def _read_form(question: Question, prover: Prover, X: Array, y: Array) -> Form | None:
    """Return the model in a flat form; None if it can't be read."""
    region = question.region
    if question.proof.conclusion is not None:  # the proof has compared it with the model
        return prover.reading(region).form
    with suppress(NoProof):
        return prover.form(region, X, y)
    return None


def _as_range(region: Region, row: Array, valid: ValidCodes) -> ValidRange:
    """Return valid codes around a row ``(d,)`` in the user's values."""
    j = valid.feature
    feature = region.axes[j].feature
    if valid.codes is not None:
        choices = region.axes[j].choices
        allowed = valid.codes if choices is None else choices
        text = listed_text(feature, valid.codes.tolist(), allowed.tolist())
        return ValidRange(values=tuple(_values(region, j, valid.codes)), text=text)
    lowest, highest, _ = region.axes[j].allowed
    is_lowest = bool(valid.low <= lowest)
    is_highest = bool(valid.high >= highest)
    low, high = _values(region, j, np.array([valid.low, valid.high]))
    text = range_text(
        feature,
        (valid.low, valid.high),
        float(row[j]),
        is_lowest=is_lowest,
        is_highest=is_highest,
    )
    return ValidRange(low, high, (), is_lowest, is_highest, text)


def _values(region: Region, j: int, codes: Array) -> list[Any]:
    """Return the user's values of codes ``(n,)`` of one feature."""
    name = region.names[j]
    schema = region.schema
    feature = region.axes[j].feature
    dtype = feature.dtype
    if name in schema.places:
        dtype = schema.columns[schema.places[name]].dtype
    return [as_python(value) for value in feature.decode(codes, dtype)]
