"""Is it the same call again? What is asked is one key, so that what was cut short can go on."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from bayescfx.errors import BayesCFXError, EvaluationsError, SettingsError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Past
from bayescfx.explainer.blocks import Block
from bayescfx.explainer.settings import CallSettings
from bayescfx.tables import cells_of
from bayescfx.values import Plain, to_plain


def begun(
    settings: CallSettings, store: Evaluations, blocks: Sequence[Block], targets: Sequence[object]
) -> tuple[CallSettings, Past]:
    """Return what a call goes on from and, for a run without a seed, settings with the one kept."""
    if store.file is None and settings.run is not None:
        raise SettingsError(
            f"`run` must be None without a file of evaluations; got {settings.run!r}.",
            parameter="run",
            advice="Pass evaluations=Evaluations.open(path).",
        )
    unique = settings.rng is None and settings.run is None  # never the same again
    if store.file is None or unique:
        return settings, store.begin()
    key = call_key(settings, blocks, targets)
    past = store.begin(settings.run, key, settings.deadline)
    return replace(settings, rng=past.seed) if settings.rng is None else settings, past


def call_key(settings: CallSettings, blocks: Sequence[Block], targets: Sequence[object]) -> str:
    """Return a digest of questions, space, settings and seed.

    Functions go by their names. If one has changed, the search asks for other rows; what is known
    of a row stays true.
    """
    queries = [columns for block in blocks for columns in _queries(settings, block)]
    said = {name: getattr(settings, name) for name in ("budget", "n", "tolerance", "on_fault")}
    asked = _plain(list(targets)), settings.space.to_dict(), _plain(settings.search)
    return _digest([queries, *asked, _plain(said), _plain(settings.rng)])


def check_part(settings: CallSettings, store: Evaluations, past: Past, block: Block) -> None:
    """Raise if a named run that takes its queries part by part had others in the place of these."""
    if past.run is None or settings.run is None or store.file is None:
        return
    try:
        key = _digest(_queries(settings, block))
    except BayesCFXError:  # some can't be asked about: they count as they are
        key = _digest(_plain(cells_of(block.rows)))
    if not store.file.same_part(past.run, block.first, key, settings.deadline):
        raise EvaluationsError(
            f"`run` {settings.run!r} was begun with other queries; those from position "
            f"{block.first} on differ. Choose another name.",
            parameter="run",
        )


def _queries(settings: CallSettings, block: Block) -> list[Plain]:
    """Return the cells of a block's queries in JSON's own types, as the space has them."""
    if block.regions is None:
        queries = [settings.space.schema.cells(block.rows, what="query")]
    else:
        queries = [region.own.cells for region in block.regions.values()]
    return [[to_plain(list(cells)) for cells in columns] for columns in queries]


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return anything that can be part of a question in JSON's own types, or by its name."""
    if isinstance(value, np.random.Generator):
        seeds = getattr(value.bit_generator, "seed_seq", None)
        return repr((value.bit_generator.state, seeds))
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, dict):
        return [[str(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if inspect.isroutine(value):
        return value.__qualname__
    try:
        return to_plain(value)
    except BayesCFXError:
        held = (
            {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
        )
        return [type(value).__qualname__, _plain(held or getattr(value, "__dict__", {}))]
