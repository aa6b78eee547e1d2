"""Evaluations in an SQLite file: written batch by batch, and whole after a crash."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import EvaluationsError
from bayescfx.tables import Layout, Rows, cells_of
from bayescfx.values import from_plain, to_plain

_FORMAT = 1
_APPLICATION = 0x62636678  # "bcfx": marks the file as ours in its SQLite header


def check_columns(known: tuple[Any, ...], asked: tuple[Any, ...]) -> None:
    """Raise if rows of one set of columns are put with those of another."""
    if known != asked:
        raise EvaluationsError(
            f"`evaluations` holds rows with the columns {_listed(known)}; got {_listed(asked)}. "
            "Use one store for each set of columns."
        )


def _listed(names: tuple[Any, ...], most: int = 12) -> str:
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown


class File:
    """An SQLite file: one row per evaluation, one transaction per batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, timeout=60, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise EvaluationsError(
                f"{str(path)!r} must be a file that can be written; got {error}. "
                "Make its folder, or choose another path."
            ) from error
        try:
            self._prepare()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self._db.close()
            raise EvaluationsError(
                f"{str(path)!r} must be a file of evaluations; got {error}. Choose another path."
            ) from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        """Check that the file is ours or new, and make what is missing."""
        (mark,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and mark != _APPLICATION:
            raise EvaluationsError(
                f"{str(self.path)!r} must be a file of evaluations; got a database of another "
                "program. Choose another path."
            )
        if tables and version != _FORMAT:
            raise EvaluationsError(
                f"{str(self.path)!r} must have format {_FORMAT}; got format {version}. "
                "Use the version of bayescfx that wrote it, or another path."
            )
        # Write-ahead logging: readers are never locked out, and a crash leaves whole batches.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a power cut loses nothing, either
        with self._db:
            for line in (
                f"PRAGMA application_id = {_APPLICATION}",
                f"PRAGMA user_version = {_FORMAT}",
                "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
                "CREATE TABLE IF NOT EXISTS evaluations "
                "(id INTEGER PRIMARY KEY, cells TEXT NOT NULL, output REAL)",
            ):
                self._db.execute(line)

    def layout(self) -> Layout | None:
        """Return columns and dtypes of the rows, if there were any."""
        text = self.meta("layout")
        return Layout.from_plain(json.loads(text)) if text else None

    def meta(self, key: str) -> str | None:
        """Return what is noted about the rows: their "layout" or their "model"."""
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def read(self) -> tuple[list[list[Any]], Array]:
        """Return all cells, ``n`` lists, and outputs ``(n,)``."""
        found = self._db.execute("SELECT cells, output FROM evaluations ORDER BY id").fetchall()
        cells = [[from_plain(cell) for cell in json.loads(text)] for text, _ in found]
        # SQLite keeps no nan: it writes NULL, which here means a skipped fault.
        outputs = [np.nan if output is None else output for _, output in found]
        return cells, np.array(outputs, dtype=np.float64)

    def write_model(self, model: str) -> None:
        """Note what the model is."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('model', ?)", (model,))

    def append(self, rows: Rows, y: Array, layout: Layout | None) -> None:
        """Add a batch, and the layout if it has changed, in one transaction."""
        lines = [
            (json.dumps([to_plain(cell) for cell in row], allow_nan=False), float(output))
            for row, output in zip(cells_of(rows), y, strict=True)
        ]
        with self._writing():
            if layout is not None:
                # Another process may have been first: nothing of its layout is lost.
                self._db.execute("INSERT OR IGNORE INTO meta VALUES ('layout', '')")
                known = self.layout()
                if known is not None:
                    check_columns(known.names, layout.names)
                    layout = known.merge(layout)
                text = json.dumps(layout.to_plain(), allow_nan=False)
                self._db.execute("UPDATE meta SET value = ? WHERE key = 'layout'", (text,))
            self._db.executemany("INSERT INTO evaluations (cells, output) VALUES (?, ?)", lines)

    def clear(self, *, keep_model: bool) -> None:
        """Remove all rows and what is noted about them."""
        with self._writing():
            self._db.execute("DELETE FROM evaluations")
            self._db.execute("DELETE FROM meta WHERE key <> 'model' OR ?", (not keep_model,))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Write in one transaction, alone."""
        try:
            with self._lock, self._db:
                yield
        except sqlite3.Error as error:
            raise EvaluationsError(
                f"{str(self.path)!r} must be a whole file that can be written; got {error}. Make "
                "room, or choose another path."
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
