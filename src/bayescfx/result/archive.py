"""An answer as one JSON text and back, exactly, with all evaluations to go on from."""

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
from bayescfx.potentials import Target
from bayescfx.potentials.targets import target_from_dict
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.space.space import Space
from bayescfx.version import VERSION

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation

FORMAT = 1


@dataclass(frozen=True, repr=False)
class Told:
    """A target that only its text is left of: a potential of the user's own, after JSON."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Plain]:
        """Return the text in JSON's own types."""
        return {"kind": "told", "text": self.text}


def dumps(kind: str, content: Mapping[str, Plain]) -> str:
    """Return `content` as a JSON text that says what it is."""
    head = {"format": FORMAT, "kind": kind, "version": VERSION}
    return json.dumps({**head, **content}, allow_nan=False, ensure_ascii=False)


def loads(kind: str, text: str) -> dict[str, Any]:
    """Return the content that :func:`dumps` wrote; an ArchiveError if it is something else."""
    check(isinstance(text, str), "text", "what to_json returned", text, ArchiveError)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(
            f"`text` must be JSON; got {error}. Pass what to_json returned."
        ) from error
    found = content.get("kind") if isinstance(content, dict) else type(content).__name__
    if not isinstance(content, dict) or found != kind:
        article = "an " if kind == "explanation" else ""
        raise ArchiveError(
            f"`text` must hold {article}{kind}; got {found!r}. Pass what to_json returned."
        )
    if content.get("format") != FORMAT:
        raise ArchiveError(
            f"`text` must have format {FORMAT}; got {content.get('format')!r}, written by bayescfx "
            f"{content.get('version')}. Read it with that version."
        )
    return content


# Fields of an answer that are single values, or numbers in a row; and of its counterfactuals.
_NUMBERS = ("output", "tolerance", "n_evaluations")
_PLAIN = (*_NUMBERS, "probability_reachable", "method", "seed", "status", "stopped")
_LATER = {"jump": None, "n_wanted": 1}  # what files of version 0.1 don't have
_ARRAYS = ("wanted", "accepted", "reachable", "trace")
_EACH = ("output", "potential", "cost", "valid")


def write(answer: Explanation, evaluations: Plain) -> dict[str, Plain]:
    """Return an answer in JSON's own types, with whatever stands for its evaluations."""
    layout = answer.layout
    return {
        **{name: to_plain(getattr(answer, name)) for name in (*_PLAIN, *_LATER)},
        "layout": layout.to_plain(),
        "query": _write_row(answer.query, layout),
        "target": _write_target(answer.target),
        **{name: to_plain(np.array(getattr(answer, name), float).tolist()) for name in _ARRAYS},
        "counterfactuals": [
            {
                **{name: to_plain(getattr(found, name)) for name in (*_EACH, "plausibility")},
                "row": _write_row(found.row, layout),
                "changes": to_plain([[name, *pair] for name, pair in found.changes.items()]),
            }
            for found in answer.counterfactuals
        ],
        "binding": list(answer.binding),
        "about": {str(name): str(text) for name, text in answer.about.items()},
        "space": answer.space.to_dict(),
        "evaluations": evaluations,
    }


def read(content: Mapping[str, Any], evaluations: Evaluations) -> dict[str, Any]:
    """Return the fields of the answer that :func:`write` wrote."""
    layout, wish = Layout.from_plain(content["layout"]), content["target"]
    each, about = content["counterfactuals"], content.get("about", {})
    for part, names in ((content, _NUMBERS), *((found, _EACH[:3]) for found in each)):
        for name in names:
            check(is_number(part[name]), name, "a number", part[name], ArchiveError)
    for found in each:
        check(isinstance(found["valid"], bool), "valid", "a boolean", found["valid"], ArchiveError)
    good = isinstance(about, dict) and all(isinstance(text, str) for text in about.values())
    check(good, "about", "texts by name", about, ArchiveError)
    arrays = {name: from_plain(content[name]) for name in _ARRAYS}
    return {
        **{name: from_plain(content[name]) for name in _PLAIN},
        **{name: from_plain(content.get(name, default)) for name, default in _LATER.items()},
        "n_wanted": int(content.get("n_wanted", 1)),
        "layout": layout,
        "query": _read_row(content["query"], layout),
        "target": Told(wish["text"]) if wish["kind"] == "told" else target_from_dict(wish),
        "wanted": tuple((low, high) for low, high in arrays["wanted"]),
        "accepted": tuple((low, high) for low, high in arrays["accepted"]),
        "counterfactuals": tuple(
            Counterfactual(
                **{name: from_plain(found[name]) for name in _EACH},
                plausibility=from_plain(found.get("plausibility")),  # nor this
                row=_read_row(found["row"], layout),
                changes={name: (a, b) for name, a, b in from_plain(found["changes"])},
            )
            for found in each
        ),
        "reachable": tuple(arrays["reachable"]),
        "binding": tuple(content["binding"]),
        "about": about,
        "trace": np.array(arrays["trace"], dtype=np.float64),
        "space": Space.from_dict(content["space"]),
        "evaluations": evaluations,
    }


def write_evaluations(evaluations: Evaluations) -> Plain:
    """Return rows and outputs as plain values."""
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
    evaluations.claim(layout.names, plain["model"])
    return evaluations


def _write_target(target: Target | Told) -> Plain:
    try:
        return target.to_dict()
    except TargetError:
        return Told(repr(target)).to_dict()


def _write_row(row: Row, layout: Layout) -> Plain:
    return to_plain(cells_of(layout.table([list(row)]))[0])


def _read_row(plain: Any, layout: Layout) -> Row:
    return row_of(layout.table([from_plain(plain)]), 0)
