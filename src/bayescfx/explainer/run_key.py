"""Is it the same call again? What is asked is one key, so that what was cut short can go on."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bayescfx.data.tables import cells_of
from bayescfx.data.values import Plain, to_plain
from bayescfx.errors import BayesCFXError, EvaluationsError, SettingsError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Past
from bayescfx.explainer.blocks import Block, Job
from bayescfx.explainer.call import CallSettings
from bayescfx.models.model import Model


def opened(
    settings: CallSettings,
    model: Model,
    blocks: Sequence[Block],
    targets: Sequence[object],
    **more: Any,
) -> Job:
    """Return the job of a call, which goes on from what is known; `more` is as in `Job`.

    A run without a seed has the one that was drawn for it when it first began.
    """
    given = settings.evaluations
    store = Evaluations() if given is None else given
    # Known by itself only where the budget allows to see whether it has changed; estimators, which
    # may be refitted, never.
    steady = not model.local and settings.rows(model) > 2
    owner = getattr(model.origin, "__self__", model.origin) if steady else None
    columns = tuple(settings.space.schema.places)
    store = store.claim(columns, model.name, model.fingerprint, owner)
    if settings.run is not None and store.file is None:
        raise SettingsError(
            f"`run` must be None without a file of evaluations; got {settings.run!r}.",
            parameter="run",
            advice="Pass evaluations=Evaluations.open(path).",
        )
    again = settings.rng is not None or settings.run is not None  # else it is never the same
    key = partial(_key, settings, blocks, targets) if again else None
    past = Past() if given is None else store.begin(settings.run, key, settings.deadline)
    if settings.rng is None and past.seed is not None:
        settings = replace(settings, rng=past.seed)
    return Job(settings, model, past, store, **more)


def check_part(job: Job, block: Block) -> None:
    """Raise if a named run that takes its queries part by part had others in the place of these."""
    run, file = job.settings.run, job.store.file
    if job.past.run is None or run is None or file is None:
        return
    try:
        key = _digest(_queries(job.settings, block))
    except BayesCFXError:  # some can't be asked about: they count as they are
        key = _digest(_plain(cells_of(block.rows)))
    if not file.same_part(job.past.run, block.first, key, job.settings.deadline):
        raise EvaluationsError(
            f"`run` {run!r} was begun with other queries; those from position {block.first} on "
            "differ. Choose another name.",
            parameter="run",
        )


def _key(settings: CallSettings, blocks: Sequence[Block], targets: Sequence[object]) -> str:
    """Return a digest of questions, space, settings and seed; functions go by their names."""
    # If one has changed, the search asks for other rows; what is known of a row stays true.
    queries = [columns for block in blocks for columns in _queries(settings, block)]
    said = {name: getattr(settings, name) for name in ("budget", "n", "tolerance", "on_fault")}
    asked = _plain(list(targets)), settings.space.to_dict(), _plain(settings.search)
    return _digest([queries, *asked, _plain(said), _plain(settings.rng)])


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
        names = [each.name for each in fields(value)] if is_dataclass(value) else []
        held = {name: getattr(value, name) for name in names}
        return [type(value).__qualname__, _plain(held or getattr(value, "__dict__", {}))]
