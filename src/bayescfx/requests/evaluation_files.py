"""Files of evaluations, read as far as they are readable: check, list, export and merge."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.data.tables import Layout, Rows, as_frame, free_name
from bayescfx.data.values import from_plain
from bayescfx.evaluations.section import Section
from bayescfx.evaluations.store import File


@dataclass(frozen=True)
class StoredRows:
    """The rows of one model that can be read from a file.

    Parameters
    ----------
    model : str
        The name of the model.
    rows : DataFrame or array
        The rows.
    outputs : list of float
        Their outputs.
    n_lost : int
        Rows that can't be read.
    """

    model: str
    rows: Rows
    outputs: list[float]
    n_lost: int


@dataclass(frozen=True)
class StoredModel:
    """A model of which a file has rows: its name, their number, and the runs by name."""

    name: str
    n_rows: int
    runs: tuple[str, ...]


def find_damage(path: Path) -> str:
    """Return what SQLite finds wrong with a file; empty if nothing."""
    try:
        with _open_read_only(path) as database:
            (problem,) = database.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if problem == "ok" else str(problem)


def read_rows(path: Path) -> Iterator[StoredRows]:
    """Yield what can be read of each model's rows, even from a damaged file."""
    with _open_read_only(path) as database:
        models = "SELECT id, name, layout FROM models"
        for section, name, layout_text in _readable(database, models):
            layout = _read_layout(layout_text)
            query = f"SELECT cells, output FROM evaluations WHERE model = {section:d}"
            found = [_read_row(layout, *line) for line in _readable(database, query)]
            kept = [row for row in found if row is not None]
            rows = [cells for cells, _ in kept]
            outputs = [output for _, output in kept]
            table = pd.DataFrame() if layout is None else layout.table(rows)
            yield StoredRows(str(name), table, outputs, len(found) - len(kept))


def _read_layout(text: str) -> Layout | None:
    """Return the columns of a model's rows; None if they can't be read."""
    with contextlib.suppress(Exception):  # damage makes readers raise anything
        return Layout.from_plain(json.loads(text))
    return None


def _read_row(layout: Layout | None, cells: Any, output: Any) -> tuple[Any, float] | None:
    """Return the cells of a row and its output; None if they can't be read."""
    if layout is None:
        return None
    try:
        row: Any = from_plain(json.loads(cells))
        layout.table([row])
        return row, float("nan" if output is None else output)
    except Exception:  # damage makes readers raise anything
        return None


def list_models(path: Path) -> list[StoredModel]:
    """Return the models of a file, with their rows and runs."""
    with contextlib.closing(File(path)) as file:
        sections = file.sections().items()
        return [
            StoredModel(name, len(Section(file, name)), _list_runs(file, section))
            for name, section in sections
        ]


def _list_runs(file: File, section: int) -> tuple[str, ...]:
    """Return the runs of a model, by name and state."""
    found = file.ask("SELECT name, done FROM runs WHERE model = ?", section)
    states = {True: "done", False: "open"}
    return tuple(f"{run or 'without a name'} ({states[bool(done)]})" for run, done in found)


def read_all(path: Path) -> tuple[pd.DataFrame, int]:
    """Return all readable rows with their model and output, and the number of lost rows."""
    n_lost = 0
    tables = []
    for stored in read_rows(path):
        n_lost += stored.n_lost
        if stored.outputs:
            tables.append(_as_table(stored))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(), n_lost


def _as_table(stored: StoredRows) -> pd.DataFrame:
    """Return the rows of a model with its name in the first column and outputs in the last."""
    table = as_frame(stored.rows)
    table[free_name("output", table.columns)] = stored.outputs
    table.insert(0, free_name("model", table.columns), stored.model)
    return table


def merge_files(target: Path, sources: Sequence[Path]) -> tuple[dict[str, int], int]:
    """Add the rows of files to the target, each row once.

    Returns the number of rows of each model, and the number of lost rows.
    """
    n_lost = 0
    with contextlib.closing(File(target)) as file:
        for source in sources:
            for stored in read_rows(source):
                n_lost += stored.n_lost
                if stored.outputs:  # models are identified by name alone
                    batch = (stored.rows, np.array(stored.outputs))
                    Section(file, stored.model).write([batch], Layout.of(stored.rows))
        n_rows = {name: len(Section(file, name)) for name in file.sections()}
    return n_rows, n_lost


@contextlib.contextmanager
def _open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that may be damaged."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
        database.text_factory = lambda raw: raw.decode(errors="replace")
        yield database


def _readable(database: sqlite3.Connection, query: str) -> Iterator[Any]:
    """Yield the rows of a query until one can't be read."""
    with contextlib.suppress(sqlite3.DatabaseError):
        yield from database.execute(query)
