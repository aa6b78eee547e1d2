"""Evaluations in an SQLite file: of several models, for several processes, whole after a crash.

One transaction per batch. A row of a model is kept once, with the first output that it had; a fault
that was skipped gives way to a number. Ids only ever grow; a run notes the highest when it begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.checks import reading
from bayescfx.deadline import NEVER, Deadline, machine
from bayescfx.errors import EvaluationsError
from bayescfx.evaluations.form import PARTS, Line, check_columns, digest, is_current, make, texts_of
from bayescfx.tables import Layout, Rows
from bayescfx.values import from_plain


class Unwritten(EvaluationsError):
    """What was scored can't be written now."""


@dataclass(frozen=True, slots=True)
class Run:
    """One call as the file knows it."""

    id: int
    mark: int  # the highest id of the model's rows when it began
    seed: int  # drawn for it


class File:
    """An SQLite file. It can go to other processes on this host, which open it themselves."""

    def __init__(self, path: Path) -> None:
        self.path, self._place = path, path.absolute()
        self._start()
        self.closed, self.here = False, True
        self._db: sqlite3.Connection | None = None
        try:
            self._db = self._connected("rwc")
        except sqlite3.OperationalError as error:
            raise EvaluationsError(
                f"{str(path)!r} must be a file that can be written; got {error}. "
                "Make its folder, or choose another path."
            ) from error
        try:
            # The tables first: somebody else may be making the file just now.
            tables = self.ask("SELECT count(*) FROM sqlite_master")[0][0]
            mark = self.ask("PRAGMA application_id")[0][0]
            version = self.ask("PRAGMA user_version")[0][0]
            if not is_current(str(path), mark, version, tables):
                # Write-ahead logging: readers are never locked out, a crash leaves whole batches.
                self.ask("PRAGMA journal_mode = WAL")
                with self.writing() as db:
                    make(db)
            found = self.ask("SELECT value FROM meta WHERE key = 'uuid'")
            self.uuid = str(found[0][0]) if found else ""
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Be of this process."""
        self._pid, self._lock = os.getpid(), threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: vars(self)[name] for name in ("path", "_place", "uuid", "closed")}
        return kept | {"host": machine()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        host = state.pop("host")
        vars(self).update(state)
        self._start()
        self._db = None
        self.here = host == machine() and self._is_here()

    def _is_here(self) -> bool:
        """Return whether the file that this object was sent from is the one found here."""
        try:
            return bool(self.ask("SELECT 1 FROM meta WHERE value = ?", self.uuid))
        except EvaluationsError:
            return False

    def _connected(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._place.as_uri()}?mode={mode}",
            uri=True,
            timeout=0.05,  # `_patiently` goes on
            isolation_level=None,
            check_same_thread=False,
        )

    # ── asking ──

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; of a closed file a short one."""
        if self._pid != os.getpid():  # connections don't live through a fork
            self._start()
            self._db = None
        with self._lock:
            if self._db is None and not self.closed:
                self._db = self._connected("rw")
            if self._db is not None:
                yield self._db
                return
            with contextlib.closing(self._connected("rw")) as db:
                yield db

    def ask(self, line: str, *values: object) -> list[Any]:
        """Return what the file answers to a question in SQL."""
        with self._told(), self._using() as db:
            found: list[Any] = _patiently(lambda: db.execute(line, values).fetchall())
            return found

    @contextlib.contextmanager
    def writing(self, until: Deadline = NEVER) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, alone, once others have finished."""
        with self._told(), self._using() as db:
            if not self._place.exists():  # SQLite would write on to what nobody finds any more
                raise Unwritten(
                    f"{str(self.path)!r} was removed while it was in use. Use another file."
                )
            db.execute("PRAGMA synchronous = FULL")  # a power cut loses nothing, either
            _patiently(lambda: db.execute("BEGIN IMMEDIATE"), until)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our words what SQLite says."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            path, code = str(self.path), getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, 0):
                raise EvaluationsError(
                    f"{path!r} must be a file of evaluations; got {error}. If it was one, "
                    f"`bayescfx store check` and `bayescfx store export` save what can be saved."
                ) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
                raise Unwritten(
                    f"{path!r} is held by another program ({error}). Wait until it has finished, "
                    "or use another file."
                ) from error
            if code == sqlite3.SQLITE_ERROR:  # no such table or column
                raise EvaluationsError(
                    f"{path!r} is damaged or was changed: {error}. `bayescfx store export` saves "
                    "what can be saved."
                ) from error
            gone = code == sqlite3.SQLITE_CANTOPEN and not self._place.exists()
            advice = "Put it back where it was" if gone else "Make room"
            raise Unwritten(
                f"{path!r} must be a file that can be written; got {error}. {advice}, or use "
                "another file."
            ) from error

    # ── models and their rows ──

    def sections(self) -> dict[str, int]:
        """Return the ids of all models that rows were kept of, by name."""
        return dict(self.ask("SELECT name, id FROM models WHERE layout IS NOT NULL ORDER BY id"))

    def section(self, name: str) -> int | None:
        """Return the id of a model, if it has one."""
        found = self.ask("SELECT id FROM models WHERE name = ?", name)
        return int(found[0][0]) if found else None

    def make_section(self, name: str, until: Deadline = NEVER) -> int:
        """Return the id of a model, which is made if there is none."""
        with self.writing(until) as db:
            db.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (name,))
            ((found,),) = db.execute("SELECT id FROM models WHERE name = ?", (name,)).fetchall()
        return int(found)

    def rename(self, section: int, name: str) -> None:
        """Say of which model rows are, if nobody else has its name."""
        with self.writing() as db:
            db.execute("UPDATE OR IGNORE models SET name = ? WHERE id = ?", (name, section))

    def layout(self, section: int) -> Layout | None:
        """Return columns and dtypes of a model's rows, if there were any."""
        found = self.ask("SELECT layout FROM models WHERE id = ?", section)
        with self._whole():
            return Layout.from_plain(json.loads(found[0][0])) if found and found[0][0] else None

    def last(self, section: int | None) -> int:
        """Return the highest id of a model's rows; 0 if there are none."""
        return int(self.ask("SELECT max(id) FROM evaluations WHERE model = ?", section)[0][0] or 0)

    def count(self, section: int | None) -> int:
        """Return how many rows of a model there are."""
        return int(self.ask("SELECT count(*) FROM evaluations WHERE model = ?", section)[0][0])

    def read(self, section: int, last: int) -> tuple[Rows, Array]:
        """Return a model's rows up to an id, and their outputs ``(n,)``."""
        line = "SELECT cells, output FROM evaluations WHERE model = ? AND id <= ? ORDER BY id"
        layout, found = self.layout(section), self.ask(line, section, last)
        with self._whole():
            cells = [from_plain(json.loads(text)) for text, _ in found]
            # SQLite keeps no nan: it writes NULL, which here means a skipped fault.
            outputs = np.array([np.nan if y is None else y for _, y in found], dtype=np.float64)
            if layout is None:
                raise ValueError("rows without columns")
            return layout.table(cells), outputs

    def _whole(self) -> contextlib.AbstractContextManager[None]:
        """Say of what can't be read that the file is damaged."""
        advice = "`bayescfx store export` saves what can be saved."
        return reading(f"{str(self.path)!r}", EvaluationsError, advice)

    def find(self, section: int, rows: Rows) -> dict[int, tuple[float | None, str | None, bool]]:
        """Return output, fault, and whether its batch was taken apart, of rows that are kept."""
        line = "SELECT output, fault, apart FROM evaluations WHERE model = ? AND digest = ?"
        found = (self.ask(line, section, digest(text)) for text in texts_of(rows))
        return {i: rows[0] for i, rows in enumerate(found) if rows}

    def append(
        self, section: int, lines: Sequence[Line], layout: Layout | None, until: Deadline = NEVER
    ) -> None:
        """Add rows that are new, and the layout if it has changed, in one transaction."""
        gone = "DELETE FROM evaluations WHERE model = ? AND digest = ? AND output IS NULL"
        new = (
            "INSERT OR IGNORE INTO evaluations (model, digest, cells, output, fault, apart) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        with self.writing(until) as db:
            if layout is not None:
                # Another process may have been first: nothing of its layout is lost.
                known = self.layout(section)
                if known is not None:
                    check_columns(known.names, layout.names)
                    layout = known.merge(layout)
                text = json.dumps(layout.to_plain(), allow_nan=False)
                db.execute("UPDATE models SET layout = ? WHERE id = ?", (text, section))
            db.executemany(gone, [(section, key) for key, _, y, *_ in lines if y == y])
            db.executemany(new, [(section, *line) for line in lines])

    def clear(self, section: int) -> None:
        """Remove all rows of a model, and its runs."""
        with self.writing() as db:
            db.execute("DELETE FROM evaluations WHERE model = ?", (section,))
            db.execute("DELETE FROM runs WHERE model = ?", (section,))
            db.execute("UPDATE models SET layout = NULL WHERE id = ?", (section,))

    # ── runs ──

    def begin(self, section: int, name: str | None, key: str, until: Deadline = NEVER) -> Run:
        """Return the run of this name, or the unfinished one of this key, or a new one.

        A seed is drawn for it, whoever wants one.
        """
        with self.writing(until) as db:
            which, value = ("key", key) if name is None else ("name", name)
            line = f"SELECT id, mark, seed, key FROM runs WHERE model = ? AND {which} = ?"
            more = " AND name IS NULL" if name is None else ""
            found = db.execute(line + more, (section, value)).fetchone()
            if found is None:
                line = "INSERT INTO runs (model, name, key, mark, seed) VALUES (?, ?, ?, ?, ?)"
                mark, seed = self.last(section), uuid.uuid4().int >> 66
                made = db.execute(line, (section, name, key, mark, seed)).lastrowid
                return Run(int(made or 0), mark, seed)
        if found[3] != key:
            raise EvaluationsError(
                f"`run` {name!r} was begun with other questions, another space, other settings or "
                "another seed. Choose another name.",
                parameter="run",
            )
        return Run(*found[:3])

    def same_part(self, run: int, first: int, key: str, until: Deadline = NEVER) -> bool:
        """Note what a run asks from a position on; return whether it asked the same before."""
        with self.writing(until) as db:
            for line in PARTS:
                db.execute(line)
            db.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", (run, first, key))
            line = "SELECT key FROM parts WHERE run = ? AND first = ?"
            return bool(db.execute(line, (run, first)).fetchone()[0] == key)

    def finish(self, run: int) -> None:
        """Note that a run has ended by itself; one without a name is never gone back to."""
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE id = ? AND name IS NULL", (run,))
            db.execute("UPDATE runs SET done = 1 WHERE id = ?", (run,))

    def release(self, prefix: str) -> None:
        """Forget the runs whose names begin so: they are never gone back to."""
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))

    def close(self) -> None:
        """Close the connection; the file can still be read."""
        self.closed = True
        if self._db is not None and self._pid == os.getpid():
            with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):  # of a damaged file
                # Whoever copies the file has all of it, also while workers still have it open.
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()
        self._db = None


def _patiently(action: Callable[[], Any], until: Deadline = NEVER) -> Any:
    """Return what `action` does once no other process is in its way: 10 s, or the time left."""
    now = time.monotonic()
    end = max(now + 1, min(now + 10, until.at))  # a second is there for what is scored already
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
            code = getattr(error, "sqlite_errorcode", 0)  # none if a text is no text
            if code & 0xFF not in busy or time.monotonic() > end:
                raise
        time.sleep(0.005)
