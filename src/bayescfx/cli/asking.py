"""Ask a model about some rows, and keep what was learnt if the model fails half-way."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.cli.progress_lines import show_progress
from bayescfx.errors import SettingsError, SpaceWarning
from bayescfx.explainer.explainer import BLOCK
from bayescfx.models.model import Model
from bayescfx.potentials import Target
from bayescfx.requests.answer_files import Answers
from bayescfx.requests.console import Console
from bayescfx.requests.report_facts import naming_facts, report_facts
from bayescfx.requests.settings import Settings
from bayescfx.requests.subject import Subject, identify_model
from bayescfx.result.wording import Output, label
from bayescfx.version import VERSION

SAID = ("method", "budget", "n", "tolerance", "on_fault")  # what a search takes as it is said


def who(i: int, names: pd.Index[Any] | None) -> str:
    """Return which query that is: by the column that names them, or its row."""
    return f"row {i}" if names is None else f"{names.name} {label(names[i])}"


def ask(
    subject: Subject,
    queries: Mapping[int, dict[str, Any]],
    target: Target,
    settings: Settings,
    console: Console,
    asked: Answers,
    on_block: Callable[[Answers], object] = lambda _: None,
) -> Answers:
    """Answer the question for each query, by its position, block by block.

    Each starts from what the ones before it have learnt; `on_block` hears what there is after each.
    If the model fails half-way, or on Ctrl-C, that block has the best so far, and the rest is not
    answered.
    """
    model = identify_model(subject, settings, console)
    store = stored(model, settings, console)
    places, names = list(queries), asked.names
    end = None if settings.timeout is None else time.monotonic() + settings.timeout
    run = settings.run or None
    if run is None and settings.evaluations is not None:
        run = f"command {command_key(settings, queries)[:12]}"
    said: dict[str, Any] = {name: getattr(settings, name) for name in SAID}
    said |= {"evaluations": store, "rng": np.random.default_rng(settings.seed)}
    bar = show_progress(console, len(places), Output.of(naming_facts(settings)))
    with bar, contextlib.closing(store), warnings.catch_warnings():
        # What there is to say about a query was said when it was read.
        warnings.simplefilter("ignore", SpaceWarning)
        for start in range(0, len(places), BLOCK):
            block, bar.first, fault = places[start : start + BLOCK], start, None
            rows: list[Any] = [queries[i] for i in block]
            if len(places) > 1 or names is not None:  # messages can name them
                named = zip(rows, block if names is None else names[block], strict=True)
                rows = [pd.Series(row, dtype=object, name=name) for row, name in named]
            said["timeout"] = None if end is None else max(end - time.monotonic(), 0.0)
            said["run"] = None if run is None else f"{run}/{start}"
            try:
                many = cfx.explain_many(model, rows, subject.space, target, on_step=bar, **said)
                found = [*many]
            except Exception as error:
                best, fault = getattr(error, "explanations", ()), error
                # Not the model's, or it has answered nothing.
                if not hasattr(error, "evaluations") or not (asked.explanations or best):
                    raise
                # The best so far; what counts is what the model has answered.
                spent = [bar.spent.get(start + i, 0) for i in range(len(best))]
                found = [replace(b, n_evaluations=n) for b, n in zip(best, spent, strict=True)]
            new = {
                i: replace(a, seed=settings.seed, about=_about(settings, i, names))
                for i, a in zip(block, found, strict=False)
            }
            asked = replace(asked, explanations={**asked.explanations, **new}, fault=fault)
            on_block(asked)
            if fault is not None or any(a.stopped == "interrupted" for a in found):
                break
        cut = [a for a in asked.explanations.values() if a.stopped in ("timeout", "interrupted")]
        if store.file is not None and not settings.run and not (asked.fault or cut):
            store.file.release(f"{run}/")  # ended by itself: the same command begins a new run
    return asked


def _about(settings: Settings, i: int, names: pd.Index[Any] | None) -> dict[str, str]:
    """Return what a reader of a report should know of query `i`."""
    if names is not None:
        return report_facts(settings, str(names[i]), is_identified=True)
    row = str(i) if not settings.query else settings.query
    unsaid = row.strip().startswith(("{", "[", "-"))
    return report_facts(settings, "" if unsaid else row, is_identified=False)


def stored(model: Model, settings: Settings, console: Console) -> cfx.Evaluations:
    """Return what a file holds of the model; say so if there is nothing but rows of others."""
    file: str | None = settings.evaluations
    if file is None:
        for flag, what in (("--forget", "to empty"), ("--run", "to be kept in")):
            if getattr(settings, flag[2:]):
                told = f"{flag} must have a file {what}; got none."
                raise SettingsError(f"{told} Add --evaluations FILE.")
        return cfx.Evaluations()
    store = cfx.Evaluations.open(file)
    try:
        mine = store.claim(None, model.identity())
        if settings.forget:
            mine.forget()
        others = [] if mine.file is None or len(mine) else [*mine.file.sections()]
    except BaseException:
        store.close()
        raise
    if others:
        console.note(f"{file} holds rows of other models ({len(others)}): not used.")
    return store


def command_key(settings: Settings, *more: object) -> str:
    """Return what a command is known by, so that the same one can go on where it was cut short."""
    unasked = ("timeout", "jobs", "forget", "title", "output_name", "unit", "about")
    named = [each.name for each in fields(settings) if each.name not in unasked]
    known = {name: getattr(settings, name) for name in named}
    key = hashlib.sha256(repr((VERSION, sorted(known.items(), key=str), more)).encode())
    for path in (settings.queries, settings.data):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                key.update(hashlib.file_digest(file, "sha256").digest())
    return key.hexdigest()
