"""Look after files of evaluations: are they whole, what do they hold, save it, put it together."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.cli.console import Console
from bayescfx.errors import BayesCFXError, SettingsError
from bayescfx.evaluations.section import Section
from bayescfx.evaluations.store import File
from bayescfx.tables import Layout, Rows, as_frame, free_name
from bayescfx.values import from_plain


def store(options: Namespace, console: Console) -> int:
    """Do what is asked for, and return 0 if nothing is wrong with the files."""
    actions = {
        "check": (_check, 1),
        "list": (_list, 1),
        "export": (_export, 2),
        "merge": (_merge, 2),
    }
    if options.action not in actions:
        raise SettingsError(f"store must be {', '.join(actions)}; got {options.action!r}.")
    act, least = actions[options.action]
    files = [Path(name) for name in options.files]
    if len(files) < least:
        raise SettingsError(f"store {options.action} must have {least} or more files; see --help.")
    for file in files[options.action == "merge" : 1 if options.action == "export" else None]:
        if not file.is_file():
            raise SettingsError(f"{str(file)!r} must be a file of evaluations; there is none.")
    return act(files, console)


def _check(files: Sequence[Path], console: Console) -> int:
    """Say of each file whether every row can be read."""
    bad = 0
    for path in files:
        kept = lost = 0
        why = ""
        with _tolerant(path) as db:
            try:
                told = [str(line) for (line,) in db.execute("PRAGMA integrity_check").fetchall()]
                why = "" if told == ["ok"] else told[0]
            except sqlite3.DatabaseError as error:
                why = str(error)
            for _, rows, n in _saved(db):
                kept, lost = kept + len(rows), lost + n
        whole = not (why or lost)
        bad += not whole
        more = "whole" if whole else f"damaged ({why or 'rows can not be read'}); {lost} rows lost"
        console.answer(
            f"{path}: {kept} rows, {more}", {"file": str(path), "rows": kept, "lost": lost}
        )
    return 2 if bad else 0


def _list(files: Sequence[Path], console: Console) -> int:
    """Say which models there are rows and runs of."""
    for path in files:
        file = File(path)
        try:
            for name, section in file.sections().items():
                runs = file.ask("SELECT name, done FROM runs WHERE model = ?", section)
                shown = [
                    f"{run or 'without a name'} ({'done' if d else 'open'})" for run, d in runs
                ]
                more = f", runs: {', '.join(shown)}" if shown else ""
                n = len(Section(file, name))
                text = f"{path}: {name or 'model without a name'}: {n} rows{more}"
                console.answer(text, {"model": name, "rows": n, "runs": shown})
        finally:
            file.close()
    return 0


def _export(files: Sequence[Path], console: Console) -> int:
    """Write what can be read as one table, with the model's name in front."""
    source, target = files[:2]
    lost, tables = 0, []
    with _tolerant(source) as db:
        for name, frame, n in _saved(db):
            lost += n
            if len(frame):
                frame.insert(0, free_name("model", frame.columns), name)
                tables.append(frame)
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    match target.suffix.lower():
        case ".csv":
            table.to_csv(target, index=False)
        case ".parquet":
            table.to_parquet(target, index=False)
        case ".json":
            table.to_json(target, orient="records", date_format="iso")
        case other:
            raise SettingsError(f"store export must write .csv, .parquet or .json; got {other!r}.")
    console.answer(f"{target}: {len(table)} rows, {lost} lost", {"rows": len(table), "lost": lost})
    return 2 if lost else 0


def _merge(files: Sequence[Path], console: Console) -> int:
    """Put the rows of several files into the first, model by model, each row once."""
    target, *sources = files
    lost = 0
    for source in sources:
        with _tolerant(source) as db:
            for name, frame, n in _saved(db, frames=False):
                lost += n
                with contextlib.closing(File(target)) as file:
                    if len(frame):
                        _add(file, name, *frame)
    with contextlib.closing(File(target)) as file:
        rows = {name: len(Section(file, name)) for name in file.sections()}
    console.answer(
        f"{target}: {sum(rows.values())} rows, {lost} lost", {"rows": rows, "lost": lost}
    )
    return 2 if lost else 0


def _add(file: File, name: str, rows: Rows, outputs: Sequence[float]) -> None:
    """Add rows to those of the model of this very name: no model is asked whose they are."""
    Section(file, name).write([(rows, np.array(outputs))], Layout.of(rows))


@contextlib.contextmanager
def _tolerant(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that may be damaged; one of format 1 is upgraded if it can be."""
    with contextlib.suppress(BayesCFXError):
        File(path).close()
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    db.text_factory = lambda raw: raw.decode(errors="replace")
    try:
        yield db
    finally:
        db.close()


def _saved(db: sqlite3.Connection, *, frames: bool = True) -> Iterator[tuple[str, Any, int]]:
    """Yield of each model its name, what can be read of its rows, and how many can not."""
    for section, name, text in _each(db, "SELECT id, name, layout FROM models"):
        if text is None:
            continue
        rows, outputs, lost = [], [], 0
        try:
            layout = Layout.from_plain(json.loads(text))
        except Exception:  # damage makes readers raise anything
            layout = None
        for row in _each(db, f"SELECT cells, output FROM evaluations WHERE model = {section:d}"):
            try:
                if layout is None:
                    raise ValueError
                cells, y = (
                    from_plain(json.loads(row[0])),
                    float("nan" if row[1] is None else row[1]),
                )
                layout.table([cells])
            except Exception:
                lost += 1
                continue
            rows.append(cells)
            outputs.append(y)
        if layout is None:
            yield str(name), pd.DataFrame(), lost
            continue
        table = layout.table(rows)
        if frames:
            frame = as_frame(table)
            frame[free_name("output", frame.columns)] = outputs
            yield str(name), frame, lost
        else:
            yield str(name), (table, outputs) if rows else (), lost


def _each(db: sqlite3.Connection, line: str) -> Iterator[Any]:
    """Yield rows as long as there are any that can be read."""
    try:
        yield from db.execute(line)
    except sqlite3.DatabaseError:
        return
