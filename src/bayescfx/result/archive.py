"""An answer as JSON and back, without loss: rows, rules, evaluations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.checks import check, is_number
from bayescfx.data.tables import Layout, Row, cells_of, row_of
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import ArchiveError, TargetError
from bayescfx.evaluations.data import Evaluations
from bayescfx.models.identity import ModelIdentity
from bayescfx.potentials import Intervals, Target
from bayescfx.potentials.targets import target_from_dict
from bayescfx.result.binding_constraint import BindingConstraint
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.menu import Menu
from bayescfx.result.valid_range import ValidRange
from bayescfx.result.wording import PREDICTION
from bayescfx.space.space import Space
from bayescfx.version import VERSION

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation

FORMAT = 1

# Fields of an answer by how they are written.
_NUMBERS = ("output", "tolerance", "n_evaluations", "n_wanted")
_SCALARS = (*_NUMBERS, "probability_reachable", "method", "seed", "status", "stopped", "jump")
_PROOF = ("proof", "bound", "proof_reason", "no_single_constraint")
_ARRAYS = ("wanted", "accepted", "reachable", "trace")
# Fields of a counterfactual.
_CELL_NUMBERS = ("output", "potential", "cost", "distance")
_CELL_SCALARS = (*_CELL_NUMBERS, "valid", "plausibility")
# Fields of a valid range.
_RANGE = ("low", "high", "values", "is_lowest", "is_highest", "text")


@dataclass(frozen=True, repr=False)
class TextTarget:
    """The text of a target that JSON cannot hold, such as a user's own potential."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Plain]:
        """Return the text as plain JSON types."""
        return {"kind": "text", "text": self.text}


def dumps(kind: str, content: Mapping[str, Plain]) -> str:
    """Return `content` as JSON with its kind, the format and the version."""
    head = {"format": FORMAT, "kind": kind, "version": VERSION}
    return json.dumps({**head, **content}, allow_nan=False, ensure_ascii=False)


def loads(kind: str, text: str) -> dict[str, Any]:
    """Return the content that :func:`dumps` wrote, or raise an ArchiveError."""
    check(isinstance(text, str), "text", "what to_json returned", text, ArchiveError)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(
            f"`text` must be JSON; got {error}. Pass what to_json returned."
        ) from error
    _check_kind(content, kind)
    if content.get("format") != FORMAT:
        raise ArchiveError(
            f"`text` must have format {FORMAT}; got {content.get('format')!r}, written by bayescfx "
            f"{content.get('version')}. Read it with that version."
        )
    return dict(content)


def _check_kind(content: Any, kind: str) -> None:
    """Raise unless the content of a text is a dictionary of this kind."""
    is_table = isinstance(content, dict)
    found = content.get("kind") if is_table else type(content).__name__
    if found != kind or not is_table:
        article = "an " if kind == "explanation" else ""
        raise ArchiveError(
            f"`text` must hold {article}{kind}; got {found!r}. Pass what to_json returned."
        )


def write(answer: Explanation, evaluations: Plain) -> dict[str, Plain]:
    """Return an answer as plain JSON types; `evaluations` is written in place of its own."""
    layout = answer.layout
    scalars = {name: to_plain(getattr(answer, name)) for name in (*_SCALARS, *_PROOF)}
    arrays = {name: np.array(getattr(answer, name), float).tolist() for name in _ARRAYS}
    return {
        **scalars,
        **{name: to_plain(values) for name, values in arrays.items()},
        "layout": layout.to_plain(),
        "query": _write_row(answer.query, layout),
        "target": _write_target(answer.target),
        "counterfactuals": [_write_counterfactual(c, layout) for c in answer.counterfactuals],
        "binding": [each.to_dict() for each in answer.binding],
        "menu": None if answer.menu is None else answer.menu.to_dict(),
        "labels": to_plain(list(answer.labels)),
        "about": {str(name): str(text) for name, text in answer.about.items()},
        "space": answer.space.to_dict(),
        "evaluations": evaluations,
    }


def _write_counterfactual(counterfactual: Counterfactual, layout: Layout) -> Plain:
    """Return a counterfactual as plain JSON types."""
    changes = [[name, *pair] for name, pair in counterfactual.changes.items()]
    return {
        **{name: to_plain(getattr(counterfactual, name)) for name in _CELL_SCALARS},
        "row": _write_row(counterfactual.row, layout),
        "changes": to_plain(changes),
        "follows": to_plain(list(counterfactual.follows)),
        "valid_ranges": _write_ranges(counterfactual.valid_ranges),
        "proof": counterfactual.proof,
        "output_name": counterfactual.output_name,
    }


def _write_ranges(ranges: Mapping[Any, ValidRange] | None) -> Plain:
    """Return valid ranges as plain JSON types: the name, then the fields."""
    if ranges is None:
        return None
    return [
        [to_plain(name), {field: to_plain(getattr(each, field)) for field in _RANGE}]
        for name, each in ranges.items()
    ]


def _write_target(target: Target | TextTarget) -> Plain:
    """Return a target as plain JSON types; of a user's own potential only the text."""
    try:
        return target.to_dict()
    except TargetError:  # a potential of the user's own
        return TextTarget(repr(target)).to_dict()


def _write_row(row: Row, layout: Layout) -> Plain:
    return to_plain(cells_of(layout.table([list(row)]))[0])


def read(content: Mapping[str, Any], evaluations: Evaluations) -> dict[str, Any]:
    """Return the fields of the answer that :func:`write` wrote."""
    _check_types(content)
    layout = Layout.from_plain(content["layout"])
    arrays = {name: from_plain(content[name]) for name in _ARRAYS}
    return {
        **{name: from_plain(content[name]) for name in (*_SCALARS, *_PROOF)},
        "n_wanted": int(content["n_wanted"]),
        "layout": layout,
        "query": _read_row(content["query"], layout),
        "target": _read_target(content["target"]),
        "wanted": _read_intervals(arrays["wanted"]),
        "accepted": _read_intervals(arrays["accepted"]),
        "counterfactuals": tuple(
            _read_counterfactual(plain, layout) for plain in content["counterfactuals"]
        ),
        "reachable": tuple(arrays["reachable"]),
        "binding": tuple(map(BindingConstraint.from_dict, content["binding"])),
        "menu": _read_menu(content.get("menu")),
        "labels": tuple(from_plain(content.get("labels", []))),
        "about": content["about"],
        "trace": np.array(arrays["trace"], dtype=np.float64),
        "space": Space.from_dict(content["space"]),
        "evaluations": evaluations,
    }


def _check_types(content: Mapping[str, Any]) -> None:
    """Raise an ArchiveError if a field has another type than :func:`write` gives it."""
    _check_numbers(content, _NUMBERS)
    for plain in content["counterfactuals"]:
        _check_numbers(plain, _CELL_NUMBERS)
        valid = plain["valid"]
        check(isinstance(valid, bool), "valid", "a boolean", valid, ArchiveError)
    about = content["about"]
    has_texts = isinstance(about, dict) and all(isinstance(text, str) for text in about.values())
    check(has_texts, "about", "texts by name", about, ArchiveError)
    labels = content.get("labels", [])
    n_labels = 1 + len(content["counterfactuals"])
    has_labels = isinstance(labels, list) and len(labels) in (0, n_labels)
    check(has_labels, "labels", f"a list of {n_labels} labels, or empty", labels, ArchiveError)


def _check_numbers(content: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Raise an ArchiveError if one of these fields is not a number."""
    for name in names:
        check(is_number(content[name]), name, "a number", content[name], ArchiveError)


def _read_counterfactual(plain: Mapping[str, Any], layout: Layout) -> Counterfactual:
    """Return the counterfactual that :func:`_write_counterfactual` wrote."""
    changes = {name: (before, after) for name, before, after in from_plain(plain["changes"])}
    return Counterfactual(
        **{name: from_plain(plain[name]) for name in _CELL_SCALARS},
        row=_read_row(plain["row"], layout),
        changes=changes,
        follows={name: changes[name] for name in from_plain(plain.get("follows", []))},
        valid_ranges=_read_ranges(plain.get("valid_ranges")),
        proof=plain.get("proof"),
        output_name=str(plain.get("output_name", PREDICTION.name)),
    )


def _read_ranges(plain: Any) -> dict[Any, ValidRange] | None:
    """Return the valid ranges that :func:`_write_ranges` wrote."""
    if plain is None:
        return None
    found = {}
    for name, fields in plain:
        text = fields["text"]
        check(isinstance(text, str), "text", "a text", text, ArchiveError)
        cells = {field: from_plain(fields[field]) for field in _RANGE}
        found[from_plain(name)] = ValidRange(**{**cells, "values": tuple(cells["values"])})
    return found


def _read_menu(plain: Any) -> Menu | None:
    return None if plain is None else Menu.from_dict(plain)


def _read_target(plain: Mapping[str, Any]) -> Target | TextTarget:
    return TextTarget(plain["text"]) if plain["kind"] == "text" else target_from_dict(plain)


def _read_intervals(pairs: Any) -> Intervals:
    return tuple((low, high) for low, high in pairs)


def _read_row(plain: Any, layout: Layout) -> Row:
    return row_of(layout.table([from_plain(plain)]), 0)


def write_evaluations(evaluations: Evaluations) -> Plain:
    """Return rows and outputs as plain JSON types."""
    if evaluations.layout is None or evaluations.rows is None:
        return None
    return {
        "layout": evaluations.layout.to_plain(),
        "model": evaluations.model,
        "rows": to_plain(cells_of(evaluations.rows)),
        "outputs": [None if math.isnan(y) else to_plain(y) for y in evaluations.outputs.tolist()],
    }


def read_evaluations(plain: Any) -> Evaluations:
    """Return the evaluations that :func:`write_evaluations` wrote, in memory."""
    if plain is None:
        return Evaluations()
    layout = Layout.from_plain(plain["layout"])
    outputs = [np.nan if y is None else from_plain(y) for y in plain["outputs"]]
    evaluations = Evaluations(layout.table(from_plain(plain["rows"])), outputs)
    evaluations.claim(layout.names, ModelIdentity(plain["model"]))
    return evaluations
