"""Runs: a call that was cut short goes on where it stopped if it is made again.

A run is recognised by a key, a digest of the questions, the space, the settings and the seed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from bayescfx.data.tables import cells_of
from bayescfx.data.values import Plain, to_plain
from bayescfx.deadline import limited_to
from bayescfx.errors import BayesCFXError, EvaluationsError
from bayescfx.explainer.block import Block
from bayescfx.explainer.call_settings import CallSettings
from bayescfx.space.space import Space

_KEY_SETTINGS = ("budget", "n", "tolerance", "on_fault")


def run_key(settings: CallSettings, space: Space, blocks: Sequence[Block], targets: Any) -> str:
    """Return the key of a call. Functions count by their names.

    If a function has changed, the search asks for other rows; the outputs of scored rows stay true.
    """
    cells = [_query_cells(block) for block in blocks]
    values = {name: getattr(settings, name) for name in _KEY_SETTINGS}
    values |= {} if settings.share == "block" else {"share": settings.share}
    values |= {"diverse": True} if settings.diverse else {}
    values |= {} if settings.short_decimals else {"short_decimals": False}
    values |= {} if settings.prove is True else {"prove": settings.prove}
    return _digest(
        [
            cells,
            _as_plain(list(targets)),
            space.to_dict(),
            _as_plain(settings.search),
            _as_plain(values),
            _as_plain(settings.rng),
        ]
    )


def check_same_queries(block: Block) -> None:
    """Raise if a named run that reads its queries in parts had others in the place of these."""
    name = block.settings.run
    file = block.evaluations.file
    if block.snapshot.run is None or name is None or file is None:
        return
    with limited_to(block.deadline):
        is_same = file.same_part(block.snapshot.run, block.first, _key_of_queries(block))
    if not is_same:
        raise EvaluationsError(
            f"`run` {name!r} was begun with other queries; those from position {block.first} on "
            "differ. Choose another name.",
            parameter="run",
        )


def _key_of_queries(block: Block) -> str:
    """Return a digest of a block's queries."""
    try:
        return _digest(_query_cells(block))
    except BayesCFXError:  # some can't be asked: their cells count as they are
        return _digest(_as_plain(cells_of(block.rows)))


def _query_cells(block: Block) -> list[Plain]:
    """Return the cells of a block's queries in JSON's own types, as the space has them."""
    if block.encoded is None:
        columns = block.space.schema.cells(block.rows, what="query")
    else:
        columns = block.encoded.own.cells
    return [to_plain(list(cells)) for cells in columns]


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@singledispatch
def _as_plain(value: Any) -> Any:
    """Return anything that can be part of a question in JSON's own types, or by its name."""
    if inspect.isroutine(value):
        return value.__qualname__
    try:
        return to_plain(value)
    except BayesCFXError:
        return [type(value).__qualname__, _as_plain(_attributes(value))]


@_as_plain.register
def _plain_generator(value: np.random.Generator) -> str:
    seeds = getattr(value.bit_generator, "seed_seq", None)
    return repr((value.bit_generator.state, seeds))


@_as_plain.register
def _plain_array(value: np.ndarray) -> list[Any]:
    return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]


@_as_plain.register
def _plain_dict(value: dict) -> list[Any]:  # type: ignore[type-arg]  # dispatched by class
    return [[str(key), _as_plain(item)] for key, item in value.items()]


@_as_plain.register
def _plain_list(value: list | tuple) -> list[Any]:  # type: ignore[type-arg]
    return [_as_plain(item) for item in value]


def _attributes(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, or the attributes of another object."""
    if is_dataclass(value) and fields(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return getattr(value, "__dict__", {})
