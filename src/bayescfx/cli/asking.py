"""Ask a model about some rows, and keep what was learnt if the model fails half-way."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import re
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype

import bayescfx as cfx
from bayescfx.cli import reading as tables
from bayescfx.cli.console import Console, about, progress
from bayescfx.cli.options import Settings, assignment
from bayescfx.cli.spaces import make_space
from bayescfx.errors import SettingsError, SpaceWarning, suggest
from bayescfx.explainer.run import BLOCK
from bayescfx.models.input_columns import knows
from bayescfx.models.loaded import Loaded
from bayescfx.models.model import Model, as_model
from bayescfx.potentials import Target
from bayescfx.result.wording import ID, Output, label
from bayescfx.version import VERSION

SAID = ("method", "budget", "n", "tolerance", "on_fault")  # what a search takes as it is said


@dataclass(frozen=True)
class Subject:
    """A model, the data it is asked about and what may change."""

    loaded: Loaded
    data: pd.DataFrame  # the columns that the model takes, in its order
    ignored: list[str]  # the others
    dropped: list[str]  # those that were to be ignored
    space: cfx.Space
    reading: tables.Reading  # how the data were read, and queries are

    def fit(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a query, which may have columns that are ignored; raise if it can't be one."""
        gone = (*self.ignored, *self.dropped, self.reading.id)
        cells = {n: v for n, v in row.items() if n not in gone}
        tables.check_levels(cells, self.space.features)
        with about("query"):
            self.space.around(cells)
        return cells

    def look(self, row: pd.DataFrame) -> None:
        """Raise if the only row of a table has a level that the data does not have."""
        tables.check_levels(tables.cells_of(row, 0), self.space.features)

    def numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return queries in which a text among numbers makes no text of the others."""
        for name, feature in self.space.features.items():
            listed = feature.levelled and not any(isinstance(v, str) for v in feature.levels)
            if (feature.numeric or listed) and name in table and is_string_dtype(table[name].dtype):
                table[name] = table[name].astype(object).map(tables.as_number)
        return table


def make_subject(settings: Settings, console: Console) -> Subject:
    """Return what a question is about; without a model, all columns of the data."""
    loaded = Loaded(None) if settings.model is None else _load(settings)
    levels = {name: frozenset(known) for name, known in loaded.levels.items()}
    reading = tables.Reading(tuple(map(str, settings.na)), settings.id, levels)
    data = tables.read_table(settings.data, how=reading)
    if settings.id is not None and settings.queries is None and data.index.name != settings.id:
        told = f"--id must be a column of the data; got {settings.id!r}."
        raise SettingsError(told + suggest(settings.id, data.columns))
    unknown = [name for name in settings.drop if name not in data.columns]
    if unknown:
        told = f"--drop must name columns of the data; got {unknown[0]!r}."
        raise SettingsError(f"{told} Columns: {', '.join(data.columns[:20])}.")
    data = data.drop(columns=list(settings.drop))
    loaded = loaded.calling([*data.columns])
    listed = {*settings.features, *loaded.categorical, *loaded.levels}
    tables.check_numbers(data, listed, settings.data)
    for name, wish in settings.features.items():  # whole numbers that may be fractions
        kind = wish.get("kind") if isinstance(wish, dict) else wish
        if kind == "real" and name in data and data[name].dtype.kind in "iu":
            data[name] = data[name].astype(np.float64)
    if settings.id in (loaded.columns or ()) and settings.id == data.index.name:
        loaded = _nameless(loaded, data, settings, console)
    columns = [str(name) for name in loaded.select(list(data.columns))]
    ignored = [name for name in data.columns if name not in columns]
    if ignored:
        console.say("note", f"columns that the model does not take: {', '.join(ignored)}.")
    data = data[columns]
    known = {**_told(loaded, data, console), **settings.features}
    space = make_space(data, known, settings.space)
    forms = {str(name): form for name, f in space.features.items() if (form := f.form)}
    if forms and not _takes(loaded, data, settings, console):
        dated = replace(reading, forms=forms)
        if _takes(loaded, dated.timed(data), settings, console):
            # it was trained on points in time, not on text
            data, reading = dated.timed(data), dated
            space = make_space(data, known, settings.space)
    texts = [name for name in columns if is_string_dtype(data[name].dtype)]
    reading = replace(reading, texts=frozenset(texts))
    return Subject(loaded, data, ignored, settings.drop, space, reading)


def _told(loaded: Loaded, data: pd.DataFrame, console: Console) -> dict[str, Any]:
    """Return the kinds of columns that the model knows; say what it should know and does not."""
    told: dict[str, Any] = {name: "categorical" for name in loaded.categorical if name in data}
    for name, levels in [(name, known) for name, known in loaded.levels.items() if name in data]:
        cells = data[name]
        if is_string_dtype(cells.dtype) or cells.dtype.kind in "iu":  # codes: there are no others
            told[name] = "categorical"
        texts = cells.dropna().drop_duplicates() if is_string_dtype(cells.dtype) else cells[:0]
        lost = [text for text in texts[tables.mean_missing(texts)] if not knows(levels, text)]
        if lost:
            text = f"column {name!r} has {lost[0]!r}, which the model was not trained on."
            console.say("warning", f"{text} If it means missing, pass --na {lost[0]!r}.")
    for name, levels in loaded.orders.items():
        if name in data and set(data[name].dropna()) <= set(levels):
            told[name] = cfx.Ordinal(levels)
    return told


def _nameless(loaded: Loaded, data: pd.DataFrame, settings: Settings, console: Console) -> Loaded:
    """Return a model that was trained with the names of rows, without them: it must not care."""
    bare = loaded.without(settings.id, data.index[0])
    some = data.iloc[np.linspace(0, len(data) - 1, min(5, len(data))).astype(int)]
    rows = some.reset_index()
    told = f"show whether the model predicts from {settings.id!r}"
    console.say("note", f"{2 * len(rows)} rows of the model, beside the budget, {told}.")
    with_names = as_model(loaded.scoring(settings.label))(rows[loaded.select([*rows.columns])])
    without = as_model(bare.scoring(settings.label))(some[bare.select([*some.columns])])
    if not np.array_equal(with_names, without):
        told = "--id must not be what the model predicts from; its outputs depend on"
        raise SettingsError(f"{told} {settings.id!r}. Leave --id out.")
    return bare


def _takes(loaded: Loaded, data: pd.DataFrame, settings: Settings, console: Console) -> bool:
    """Return whether a model that runs here answers for a row such as these; others take text."""
    if loaded.model is None or isinstance(loaded.model, cfx.Endpoint):
        return True
    console.say("note", "one row of the model, or two, beside the budget, show how it takes dates.")
    try:
        as_model(loaded.scoring(settings.label))(data.iloc[:1])
    except Exception:  # whatever the model raises
        return False
    return True


def _load(settings: Settings) -> Loaded:
    form: Any = {"empty": True, "sign": ":", "like": "'Name: value'"}
    headers = dict(assignment("--header", line, **form) for line in settings.header)
    return cfx.load_model(
        settings.model,
        trust=cfx.Trust(bool(settings.trust_pickle), tuple(settings.trust)),
        output=settings.output,
        headers=headers,
        patience=cfx.Patience(settings.http_timeout, settings.retries),
        batch=settings.batch,
    )


@dataclass(frozen=True)
class Asked:
    """What came of asking: answers and failures by the position of the query, the model's error."""

    answers: dict[int, cfx.Explanation]  # in the order of the queries
    failures: dict[int, str] = field(default_factory=dict)
    fault: BaseException | None = None
    names: pd.Index[Any] | None = None  # of all queries, if a column names them
    single: bool = False  # whether only one query was asked about

    @property
    def found(self) -> cfx.Explanation | cfx.Explanations:
        """The answer, or the answers with the names of their queries if they have some."""
        if self.single:
            return self.answers[0]
        index = None if self.names is None else self.names[[*self.answers]]
        return cfx.Explanations([*self.answers.values()], index)


def who(i: int, names: pd.Index[Any] | None) -> str:
    """Return which query that is: by the column that names them, or its row."""
    return f"row {i}" if names is None else f"{names.name} {label(names[i])}"


def ask(
    subject: Subject,
    queries: Mapping[int, dict[str, Any]],
    target: Target,
    settings: Settings,
    console: Console,
    asked: Asked,
    on_block: Callable[[Asked], object] = lambda _: None,
) -> Asked:
    """Answer the question for each query, by its position, block by block.

    Each starts from what the ones before it have learnt; `on_block` hears what there is after each.
    If the model fails half-way, or on Ctrl-C, that block has the best so far, and the rest is not
    answered.
    """
    model = scoring(subject, settings, console)
    store = stored(model, settings, console)
    places, names = list(queries), asked.names
    end = None if settings.timeout is None else time.monotonic() + settings.timeout
    run = settings.run or None
    if run is None and settings.evaluations is not None:
        run = f"command {command_key(settings, queries)[:12]}"
    said: dict[str, Any] = {name: getattr(settings, name) for name in SAID}
    said |= {"evaluations": store, "rng": np.random.default_rng(settings.seed)}
    bar = progress(console, len(places), Output.of(naming(settings)))
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
                if not hasattr(error, "evaluations") or not (asked.answers or best):
                    raise
                # The best so far; what counts is what the model has answered.
                spent = [bar.spent.get(start + i, 0) for i in range(len(best))]
                found = [replace(b, n_evaluations=n) for b, n in zip(best, spent, strict=True)]
            new = {
                i: replace(a, seed=settings.seed, about=_about(settings, i, names))
                for i, a in zip(block, found, strict=False)
            }
            asked = replace(asked, answers={**asked.answers, **new}, fault=fault)
            on_block(asked)
            if fault is not None or any(a.stopped == "interrupted" for a in found):
                break
        cut = [a for a in asked.answers.values() if a.stopped in ("timeout", "interrupted")]
        if store.file is not None and not settings.run and not (asked.fault or cut):
            store.file.release(f"{run}/")  # ended by itself: the same command begins a new run
    return asked


def _about(settings: Settings, i: int, names: pd.Index[Any] | None) -> dict[str, str]:
    """Return what a reader of a report should know of query `i`."""
    if names is not None:
        return facts(settings, str(names[i]), named=True)
    row = str(i) if settings.query is None else settings.query
    unsaid = row.strip().startswith(("{", "[", "-"))
    return facts(settings, "" if unsaid else row, named=False)


def facts(settings: Settings, row: str, *, named: bool) -> dict[str, str]:
    """Return what a reader should know of a row, maybe `named` by --id; no password of a model."""
    model = re.sub(r"(?<=//)[^/@]*@|[?#].*", "", settings.model)
    known = {
        "row": row,
        ID: settings.id if named else "",
        "model": Path(model).name if os.path.isfile(model) else model,
        "data": Path(settings.data).name,
        "date": dt.date.today().isoformat(),
    }
    told = {name: text for name, text in known.items() if text}
    return {**told, **naming(settings), **settings.about}


def naming(settings: Namespace) -> dict[str, str]:
    """Return what a report and the output are called, as far as somebody says so."""
    named = {"title": settings.title, "output": settings.output_name, "unit": settings.unit}
    return {name: text for name, text in named.items() if text is not None}


def scoring(subject: Subject, settings: Settings, console: Console) -> Model:
    """Return what is asked, known by the content of its file."""
    model, labels = as_model(subject.loaded.scoring(settings.label)), subject.loaded.labels
    if labels and settings.label is None:
        told = f"the model is a classifier; predictions are its score of {labels[-1]!r}."
        console.say("note", f"{told} Choose another label with --label.")
    path, which = Path(settings.model), repr((settings.label, settings.output)).encode()
    if os.path.isfile(path):
        digest = hashlib.sha256(path.read_bytes() + which).hexdigest()
        model = replace(model, content=digest[:12])
    return model


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
        mine = store.claim(None, model.name, model.fingerprint)
        if settings.forget:
            mine.forget()
        others = [] if mine.file is None or len(mine) else [*mine.file.sections()]
    except BaseException:
        store.close()
        raise
    if others:
        console.say("note", f"{file} holds rows of other models ({len(others)}): not used.")
    return store


def command_key(settings: Settings, *more: object) -> str:
    """Return what a command is known by, so that the same one can go on where it was cut short."""
    unasked = ("timeout", "jobs", "forget", "title", "output_name", "unit", "about")
    known = {k: v for k, v in vars(settings).items() if k not in unasked}
    key = hashlib.sha256(repr((VERSION, sorted(known.items(), key=str), more)).encode())
    for path in [path for path in (settings.queries, settings.data) if os.path.isfile(path or "")]:
        with open(path, "rb") as file:
            key.update(hashlib.file_digest(file, "sha256").digest())
    return key.hexdigest()
