"""An SQLite file of evaluations, for several processes, and complete after a crash.

One transaction per model call. Errors of SQLite become errors of this library.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bayescfx.checks import reading
from bayescfx.deadline import NEVER, Deadline, machine, time_limit
from bayescfx.errors import EvaluationsError

_FORMAT = 2
_APPLICATION = 0x62636678  # "bcfx", in the SQLite header of our files
_TABLES = (
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # the name of a function is ''
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
# Made when a run first has parts.
_PARTS = (
    "CREATE TABLE IF NOT EXISTS parts (run INTEGER NOT NULL, first INTEGER NOT NULL, "
    "key TEXT NOT NULL, PRIMARY KEY (run, first))",
    "CREATE TRIGGER IF NOT EXISTS with_its_parts AFTER DELETE ON runs "
    "BEGIN DELETE FROM parts WHERE run = OLD.id; END",
)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


class Unwritten(EvaluationsError):
    """Scored rows can't be written now."""


class File:
    """An SQLite file. It can be sent to other processes on this host, which open it themselves."""

    _db: sqlite3.Connection | None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._absolute = path.absolute()
        self._start()
        self.closed = False
        self.here = True
        self._db = self._make_or_open()
        try:
            # The tables first: another process may be making the file just now.
            tables = self.one("SELECT count(*) FROM sqlite_master")
            mark = self.one("PRAGMA application_id")
            version = self.one("PRAGMA user_version")
            if not _is_current(str(path), mark, version, tables):
                # Write-ahead logging: readers are never locked out, a crash leaves whole calls.
                self.ask("PRAGMA journal_mode = WAL")
                with self.writing() as db:
                    _make(db)
            self.uuid = str(self.one("SELECT value FROM meta WHERE key = 'uuid'") or "")
        except BaseException:
            self.close()
            raise

    def _make_or_open(self) -> sqlite3.Connection:
        """Return a connection to the file, which is made if there is none."""
        try:
            return self._connected("rwc")
        except (sqlite3.OperationalError, ValueError) as error:  # ValueError: not a path
            raise EvaluationsError(
                f"{str(self.path)!r} must be a file that can be written; got {error}. "
                "Make its folder, or choose another path."
            ) from error

    def _start(self) -> None:
        """Start without a connection, as in a new process."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._db = None

    def __getstate__(self) -> dict[str, Any]:
        names = ("path", "_absolute", "uuid", "closed")
        return {name: getattr(self, name) for name in names} | {"host": machine()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        host = state.pop("host")
        self.__dict__.update(state)
        self._start()
        self.here = host == machine() and self._is_here()

    def _is_here(self) -> bool:
        """Return whether the file at this path is the one of the process that sent this object."""
        try:
            return bool(self.ask("SELECT 1 FROM meta WHERE value = ?", self.uuid))
        except EvaluationsError:
            return False

    def _connected(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._absolute.as_uri()}?mode={mode}",
            uri=True,
            timeout=0.05,  # `_retry` goes on
            isolation_level=None,
            check_same_thread=False,
        )

    # ── asking ──

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; for a closed file a temporary one."""
        if self._pid != os.getpid():  # connections don't survive a fork
            self._start()
        with self._lock:
            if self._db is None and not self.closed:
                self._db = self._connected("rw")
            if self._db is not None:
                yield self._db
                return
            with contextlib.closing(self._connected("rw")) as db:
                yield db

    def ask(self, line: str, *values: object) -> list[Any]:
        """Return the rows that a query in SQL selects."""
        with self._translated(), self._using() as db:
            found: list[Any] = _retry(lambda: db.execute(line, values).fetchall())
            return found

    def one(self, line: str, *values: object) -> Any:
        """Return the first cell that a query selects, or None if there is none."""
        found = self.ask(line, *values)
        return found[0][0] if found else None

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, once other processes have finished theirs."""
        with self._translated(), self._using() as db:
            if not self._absolute.exists():  # SQLite would go on writing to a file without a name
                raise Unwritten(
                    f"{str(self.path)!r} was removed while it was in use. Use another file."
                )
            db.execute("PRAGMA synchronous = FULL")  # a power cut loses nothing
            _retry(lambda: db.execute("BEGIN IMMEDIATE"), time_limit.get())
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of SQLite into errors of this library."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> EvaluationsError:
        """Return the error of this library for one of SQLite."""
        path = str(self.path)
        code = _code(error)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, 0):
            return EvaluationsError(
                f"{path!r} must be a file of evaluations; got {error}. If it was one, "
                "`bayescfx store check` and `bayescfx store export` save readable rows."
            )
        if code in _BUSY:
            return Unwritten(
                f"{path!r} is held by another program ({error}). Wait until it has finished, "
                "or use another file."
            )
        if code == sqlite3.SQLITE_ERROR:  # no such table or column
            return EvaluationsError(
                f"{path!r} is damaged or was changed: {error}. `bayescfx store export` saves "
                "the rows that can be read."
            )
        gone = code == sqlite3.SQLITE_CANTOPEN and not self._absolute.exists()
        advice = "Put it back where it was" if gone else "Make room"
        return Unwritten(
            f"{path!r} must be a file that can be written; got {error}. {advice}, or use "
            "another file."
        )

    def whole(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which data that can't be parsed mean that the file is damaged."""
        advice = "`bayescfx store export` saves the rows that can be read."
        return reading(f"{str(self.path)!r}", EvaluationsError, advice)

    # ── models and runs ──

    def sections(self) -> dict[str, int]:
        """Return the ids of all models with rows, by name."""
        return dict(self.ask("SELECT name, id FROM models WHERE layout IS NOT NULL ORDER BY id"))

    def same_part(self, run: int, first: int, key: str) -> bool:
        """Record the queries of a run from a position on; return whether they are the same."""
        with self.writing() as db:
            for line in _PARTS:
                db.execute(line)
            db.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", (run, first, key))
            line = "SELECT key FROM parts WHERE run = ? AND first = ?"
            return bool(db.execute(line, (run, first)).fetchone()[0] == key)

    def finish(self, run: int) -> None:
        """Mark a run as complete; one without a name is removed."""
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE id = ? AND name IS NULL", (run,))
            db.execute("UPDATE runs SET done = 1 WHERE id = ?", (run,))

    def release(self, prefix: str) -> None:
        """Remove the runs whose names begin with a prefix."""
        with self.writing() as db:
            db.execute("DELETE FROM runs WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))

    def close(self) -> None:
        """Close the connection; the file can still be read."""
        self.closed = True
        if self._db is not None and self._pid == os.getpid():
            with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):  # of a damaged file
                # A copy of the file is complete, also while workers have it open.
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()
        self._db = None


def _retry(action: Callable[[], Any], until: Deadline = NEVER) -> Any:
    """Return what `action` returns, retried while another process holds a lock.

    It is retried for 10 s or the time left, and for one second at least.
    """
    now = time.monotonic()
    end = max(now + 1, min(now + 10, until.at))
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() > end:
                raise
        time.sleep(0.005)


def _code(error: Exception) -> int:
    """Return SQLite's primary error code; 0 if there is none, as for text that is not UTF-8."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


# ── the format ──


def digest(text: object) -> bytes:
    """Return the key of a row."""
    raw = text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape")
    return blake2b(raw, digest_size=16).digest()


def _is_current(path: str, mark: int, version: int, tables: int) -> bool:
    """Return whether a file has tables of this format; raise if it has another."""
    if not tables:
        return False
    if mark != _APPLICATION:
        raise EvaluationsError(
            f"{path!r} must be a file of evaluations; got a database of another program. Choose "
            "another path."
        )
    if version != _FORMAT:
        raise EvaluationsError(
            f"{path!r} must have format {_FORMAT}; got format {version}. Use the version of "
            "bayescfx that wrote it, or another path."
        )
    return True


def _make(db: sqlite3.Connection) -> None:
    """Make the tables of a new file."""
    for line in _TABLES:
        db.execute(line)
    db.execute("INSERT OR IGNORE INTO meta VALUES ('uuid', ?)", (str(uuid.uuid4()),))
