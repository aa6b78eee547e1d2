"""Look after files of evaluations: are they whole, what do they hold, save it, put it together."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.data.tables import Layout, Rows, as_frame, free_name
from bayescfx.data.values import from_plain
from bayescfx.errors import BayesCFXError, SettingsError
from bayescfx.evaluations.section import Section
from bayescfx.evaluations.store import File
from bayescfx.requests.console import Console


def store(options: Namespace, console: Console) -> int:
    """Do what is asked for, and return 0 if nothing is wrong with the files."""
    actions = {"check": _check, "list": _list, "export": _export, "merge": _merge}
    if options.action not in actions:
        raise SettingsError(f"store must be {', '.join(actions)}; got {options.action!r}.")
    files = [Path(name) for name in options.files]
    least = 1 if options.action in ("check", "list") else 2
    if len(files) < least:
        raise SettingsError(f"store {options.action} must have {least} or more files; see --help.")
    for file in files[options.action == "merge" : 1 if options.action == "export" else None]:
        if not file.is_file():
            raise SettingsError(f"{str(file)!r} must be a file of evaluations; there is none.")
    return actions[options.action](files, console)


def _check(files: Sequence[Path], console: Console) -> int:
    """Say of each file whether every row can be read."""
    bad = False
    for path in files:
        try:
            with _tolerant(path) as db:
                (why,) = db.execute("PRAGMA integrity_check").fetchone()
        except sqlite3.DatabaseError as error:
            why = str(error)
        kept = lost = 0
        for _, _, outputs, n in _saved(path):
            kept, lost = kept + len(outputs), lost + n
        why = "rows can not be read" if why == "ok" and lost else str(why)
        more = "whole" if why == "ok" else f"damaged ({why}); {lost} rows lost"
        bad |= why != "ok"
        told = {"file": str(path), "rows": kept, "lost": lost}
        console.write(f"{path}: {kept} rows, {more}", told)
    return 2 * bad


def _list(files: Sequence[Path], console: Console) -> int:
    """Say which models there are rows and runs of."""
    for path in files:
        with contextlib.closing(File(path)) as file:
            for name, section in file.sections().items():
                found = file.ask("SELECT name, done FROM runs WHERE model = ?", section)
                runs = [f"{n or 'without a name'} ({'done' if d else 'open'})" for n, d in found]
                more, rows = f", runs: {', '.join(runs)}" if runs else "", len(Section(file, name))
                text = f"{path}: {name or 'model without a name'}: {rows} rows{more}"
                console.write(text, {"model": name, "rows": rows, "runs": runs})
    return 0


def _export(files: Sequence[Path], console: Console) -> int:
    """Write what can be read as one table, with the model's name in front."""
    source, target = files[:2]
    kind, lost, tables = target.suffix.lower(), 0, []
    plain: dict[str, dict[str, Any]] = {".csv": {"index": False}, ".parquet": {"index": False}}
    plain[".json"] = {"orient": "records", "date_format": "iso"}
    if kind not in plain:
        raise SettingsError(f"store export must write .csv, .parquet or .json; got {kind!r}.")
    for name, rows, outputs, n in _saved(source):
        lost += n
        if outputs:
            frame = as_frame(rows)
            frame[free_name("output", frame.columns)] = outputs
            frame.insert(0, free_name("model", frame.columns), name)
            tables.append(frame)
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    getattr(table, f"to_{kind[1:]}")(target, **plain[kind])
    console.write(f"{target}: {len(table)} rows, {lost} lost", {"rows": len(table), "lost": lost})
    return 2 * bool(lost)


def _merge(files: Sequence[Path], console: Console) -> int:
    """Put the rows of several files into the first, model by model, each row once."""
    target, *sources = files
    lost = 0
    with contextlib.closing(File(target)) as file:
        for name, rows, outputs, n in chain.from_iterable(map(_saved, sources)):
            lost += n
            if outputs:  # of the model of this very name: none is asked whose they are
                Section(file, name).write([(rows, np.array(outputs))], Layout.of(rows))
        kept = {name: len(Section(file, name)) for name in file.sections()}
    text = f"{target}: {sum(kept.values())} rows, {lost} lost"
    console.write(text, {"rows": kept, "lost": lost})
    return 2 * bool(lost)


@contextlib.contextmanager
def _tolerant(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that may be damaged; one of format 1 is upgraded if it can be."""
    with contextlib.suppress(BayesCFXError):
        File(path).close()
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
        db.text_factory = lambda raw: raw.decode(errors="replace")
        yield db


def _saved(path: Path) -> Iterator[tuple[str, Rows, list[float], int]]:
    """Yield of each model its name, what can be read of its rows, and how many can not."""
    with _tolerant(path) as db:
        for section, name, text in _each(db, "SELECT id, name, layout FROM models"):
            rows, outputs, lost = [], [], 0
            layout: Any = None  # without one no row can be read
            with contextlib.suppress(Exception):  # damage makes readers raise anything
                layout = Layout.from_plain(json.loads(text))
            line = f"SELECT cells, output FROM evaluations WHERE model = {section:d}"
            for cells, output in _each(db, line):
                try:
                    row = from_plain(json.loads(cells))
                    y = float("nan" if output is None else output)
                    layout.table([row])
                except Exception:
                    lost += 1
                else:
                    rows.append(row)
                    outputs.append(y)
            yield str(name), pd.DataFrame() if layout is None else layout.table(rows), outputs, lost


def _each(db: sqlite3.Connection, line: str) -> Iterator[Any]:
    """Yield rows as long as there are any that can be read."""
    with contextlib.suppress(sqlite3.DatabaseError):
        yield from db.execute(line)
