"""An answer as one JSON text and back, exactly.

The text has a format number and carries everything an answer holds: the query, the wish, what was
allowed, the counterfactuals, and all evaluations, so that a later question can go on from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from bayescfx.errors import ArchiveError, TargetError
from bayescfx.evaluations.data import Evaluations
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.targets import target_from_dict
from bayescfx.potentials.wishes import Target
from bayescfx.tables import Layout, Row, cells_of, row_of
from bayescfx.values import Plain, from_plain, to_plain

FORMAT = 1
_ARTICLE = {"explanation": "an explanation", "explanations": "explanations"}


def dumps(kind: str, content: Mapping[str, Plain]) -> str:
    """Return `content` as a JSON text that says what it is."""
    head = {"format": FORMAT, "kind": kind, "version": version("bayescfx")}
    return json.dumps({**head, **content}, allow_nan=False, ensure_ascii=False)


def loads(kind: str, text: str) -> dict[str, Any]:
    """Return the content that :func:`dumps` wrote.

    Raises
    ------
    ArchiveError
        If the text is no JSON, or of another kind or format.

    Examples
    --------
    >>> loads("explanation", dumps("explanation", {"output": 1.5}))["output"]
    1.5
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ArchiveError(
            f"`text` must be JSON; got {error}. Pass what to_json returned."
        ) from error
    if not isinstance(content, dict) or content.get("kind") != kind:
        found = content.get("kind") if isinstance(content, dict) else type(content).__name__
        raise ArchiveError(
            f"`text` must hold {_ARTICLE[kind]}; got {found!r}. Pass what to_json returned."
        )
    if content.get("format") != FORMAT:
        raise ArchiveError(
            f"`text` must have format {FORMAT}; got {content.get('format')!r}, written by bayescfx "
            f"{content.get('version')}. Read it with that version."
        )
    return content


@dataclass(frozen=True, repr=False)
class Told:
    """A target that only its text is left of: a potential of the user's own, after JSON."""

    text: str

    def __repr__(self) -> str:
        return self.text


def write_target(target: Target | Told) -> Plain:
    """Return a target in JSON's own types; of a user's own potential, its text.

    Examples
    --------
    >>> from bayescfx.potentials.targets import reach
    >>> read_target(write_target(reach(150)))
    Reach(value=150.0)
    """
    if not isinstance(target, Told):
        try:
            return target.to_dict()
        except TargetError:
            pass
    return {"kind": "told", "text": repr(target)}


def read_target(plain: Any) -> Target | Told:
    """Return the target that :func:`write_target` wrote."""
    return Told(plain["text"]) if plain["kind"] == "told" else target_from_dict(plain)


def write_row(row: Row, layout: Layout) -> Plain:
    """Return a row as a list of plain cells."""
    return [to_plain(cell) for cell in cells_of(layout.table([list(row)]))[0]]


def read_row(plain: Any, layout: Layout) -> Row:
    """Return the row that :func:`write_row` wrote."""
    return row_of(layout.table([[from_plain(cell) for cell in plain]]), 0)


def write_evaluations(evaluations: Evaluations) -> Plain:
    """Return rows and outputs as plain values."""
    if evaluations.layout is None or evaluations.rows is None:
        return None
    return {
        "layout": evaluations.layout.to_plain(),
        "model": evaluations.model,
        "rows": [[to_plain(cell) for cell in row] for row in cells_of(evaluations.rows)],
        "outputs": [None if math.isnan(y) else float(y) for y in evaluations.outputs],
    }


def read_evaluations(plain: Any) -> Evaluations:
    """Return the evaluations that :func:`write_evaluations` wrote, in memory."""
    if plain is None:
        return Evaluations()
    layout = Layout.from_plain(plain["layout"])
    rows = layout.table([[from_plain(cell) for cell in row] for row in plain["rows"]])
    outputs = np.array([np.nan if y is None else y for y in plain["outputs"]], dtype=np.float64)
    evaluations = Evaluations(rows, outputs)
    evaluations.claim(layout.names, plain["model"])
    return evaluations


def write_intervals(intervals: Intervals) -> Plain:
    """Return intervals as plain values, infinite ends included."""
    return [[to_plain(float(low)), to_plain(float(high))] for low, high in intervals]


def read_intervals(plain: Any) -> Intervals:
    """Return the intervals that :func:`write_intervals` wrote.

    Examples
    --------
    >>> read_intervals(write_intervals(((0.5, math.inf),)))
    ((0.5, inf),)
    """
    return tuple((from_plain(low), from_plain(high)) for low, high in plain)
