"""The form of a file of evaluations: its tables, rows as lines of them, and older forms."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from bayescfx.arrays import Array
from bayescfx.errors import EvaluationsError
from bayescfx.tables import Layout, Rows, cells_of
from bayescfx.values import to_plain

_FORMAT = 2
_APPLICATION = 0x62636678  # "bcfx": marks the file as ours in its SQLite header
_TABLES = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # a model without a name is ''
    "CREATE TABLE IF NOT EXISTS models "
    "(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, layout TEXT)",
    "CREATE TABLE IF NOT EXISTS evaluations (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "model INTEGER NOT NULL, digest BLOB NOT NULL, cells TEXT NOT NULL, output REAL, "
    "fault TEXT, apart INTEGER NOT NULL DEFAULT 0, UNIQUE (model, digest))",
    "CREATE INDEX IF NOT EXISTS by_model ON evaluations (model)",
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, model INTEGER NOT NULL, "
    "name TEXT, key TEXT NOT NULL, mark INTEGER NOT NULL, seed INTEGER NOT NULL, "
    "done INTEGER NOT NULL DEFAULT 0)",
)
#: Made when a run has parts for the first time.
PARTS = (
    "CREATE TABLE IF NOT EXISTS parts (run INTEGER NOT NULL, first INTEGER NOT NULL, "
    "key TEXT NOT NULL, PRIMARY KEY (run, first))",
    "CREATE TRIGGER IF NOT EXISTS with_its_parts AFTER DELETE ON runs "
    "BEGIN DELETE FROM parts WHERE run = OLD.id; END",
)


class Told(NamedTuple):
    """What a file has of a row."""

    output: float | None
    fault: str | None = None
    apart: bool = False  # whether its batch had to be taken apart


#: Of a row: its digest, its cells as JSON, its output, why it has none, was its batch taken apart?
Line: TypeAlias = tuple[bytes, str, float, str | None, bool]


def lines_of(
    rows: Rows, y: Array, faults: Sequence[str | None] | None = None, apart: bool = False
) -> list[Line]:
    """Return rows and outputs ``(n,)`` as a file keeps them; see `Line`."""
    texts, why = texts_of(rows), faults or [None] * len(y)
    return [(digest(t), t, o, w, apart) for t, o, w in zip(texts, y.tolist(), why, strict=True)]


def texts_of(rows: Rows) -> list[str]:
    """Return the cells of each row as JSON."""
    return [json.dumps([to_plain(cell) for cell in row], allow_nan=False) for row in cells_of(rows)]


def digest(text: object) -> bytes:
    """Return what a row is found by."""
    raw = text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape")
    return blake2b(raw, digest_size=16).digest()


def merged(known: Layout | None, layout: Layout) -> Layout:
    """Return a layout that holds the rows of both, or say why there is none."""
    if known is None or layout == known:
        return known or layout
    if layout.is_frame != known.is_frame:
        kinds = ("an array", "a DataFrame")
        raise EvaluationsError(
            f"`evaluations` holds rows of {kinds[known.is_frame]}; got "
            f"{kinds[layout.is_frame]}. Use one store for each."
        )
    check_columns(known.names, layout.names)
    return known.merge(layout)


def check_columns(known: tuple[Any, ...], asked: tuple[Any, ...]) -> None:
    """Raise if rows of one set of columns are put with those of another."""
    if known != asked:
        raise EvaluationsError(
            f"`evaluations` holds rows with the columns {_listed(known)}; got {_listed(asked)}. "
            "Use one store for each set of columns."
        )


def check_model(known: str, asked: str) -> None:
    """Raise if outputs of one model are put with those of another."""
    if known.partition("#")[0] != asked.partition("#")[0]:
        raise EvaluationsError(
            f"`evaluations` holds outputs of {known}; got {asked}.",
            parameter="evaluations",
            advice="Use one store for each model, or name it yourself with "
            "Evaluations.open(path, model=...).",
        )


def _listed(names: tuple[Any, ...], most: int = 12) -> str:
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown


def is_current(path: str, mark: int, version: int, tables: int) -> bool:
    """Return whether a file has this form, by its header; raise if it is none of ours."""
    if tables and mark != _APPLICATION:
        raise EvaluationsError(
            f"{path!r} must be a file of evaluations; got a database of another program. Choose "
            "another path."
        )
    if tables and version not in (1, _FORMAT):
        raise EvaluationsError(
            f"{path!r} must have format {_FORMAT}; got format {version}. Use the version of "
            "bayescfx that wrote it, or another path."
        )
    return bool(tables) and version == _FORMAT


def make(db: sqlite3.Connection) -> None:
    """Make the tables of a new file, or those that an older one lacks."""
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    if version == 1:  # and no other process was first
        db.execute("ALTER TABLE evaluations RENAME TO old")
    for line in _TABLES:
        db.execute(line)
    db.execute("INSERT OR IGNORE INTO meta VALUES ('uuid', ?)", (str(uuid.uuid4()),))
    if version == 1:
        _upgrade(db)


def _upgrade(db: sqlite3.Connection) -> None:
    """Take over the rows of format 1, which knew one model by its class or a name."""
    meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
    values = (str(meta.get("model", "")), meta.get("layout"))
    db.execute("INSERT INTO models (id, name, layout) VALUES (1, ?, ?)", values)
    db.create_function("digest", 1, digest, deterministic=True)
    db.execute(
        "INSERT OR IGNORE INTO evaluations (id, model, digest, cells, output) "
        "SELECT id, 1, digest(cells), cells, output FROM old ORDER BY output IS NULL, id"
    )
    db.execute("DROP TABLE old")
    db.execute("DELETE FROM meta WHERE key IN ('layout', 'model')")
