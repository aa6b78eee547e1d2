"""The rows and runs of one model in a file.

A row is kept once, with its first output; a fault that was skipped gives way to a number. Ids only
grow; a run notes the highest when it begins. Which model rows belong to is decided by
:mod:`bayescfx.models.identity`.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.tables import Layout, Rows, cells_of
from bayescfx.data.values import from_plain, to_plain
from bayescfx.errors import EvaluationsError, suggest
from bayescfx.evaluations.store import File, digest
from bayescfx.models.identity import ModelIdentity, is_fingerprinted


class Kept(NamedTuple):
    """One row of a file."""

    output: float | None
    fault: str | None = None
    apart: bool = False  # whether its model call failed as a whole and it was sent alone


class Section:
    """The rows of one model in a file; before any model asks, those of the only one there is.

    Attributes
    ----------
    file : File
        The file.
    name : str or None
        The label of the model: "" for a function, None as long as no model has asked.
    is_named_by_user : bool
        Whether the user gave the name.
    has_drifted : bool
        Whether the model object has changed since it was labelled.
    """

    def __init__(self, file: File, name: str | None = None) -> None:
        self.file = file
        self.name = name
        self.is_named_by_user = name is not None
        self.has_drifted = False
        self._id: int | None = None  # its number in the file
        self._heir: str | None = None  # the label of the model that takes over unlabelled rows
        self._cache: tuple[int, Rows, Array] | None = None  # what the file held up to an id
        self._owners: list[tuple[object, str]] = []  # objects that have asked, and their labels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": None, "_owners": []}  # models stay in this process

    # ── the model ──

    def adopt(self, name: str, *unlabelled: str) -> None:
        """Become the section of a model; if it has no rows, take over rows without a label."""
        self.name = name
        self._id = None
        known = self.file.sections()
        if name in known:
            return
        for old in unlabelled:
            if old in known:
                self.name = old
                self._id = known[old]
                self._heir = name
                return

    def of(self, identity: ModelIdentity) -> Section:
        """Return the section of a model: this one, once it is the model's, or another."""
        if self.is_named_by_user:
            return self
        name = self._first_label(identity)
        if self.name == name:
            self._heir = None
        section = self._labelled(name, identity.name or "")
        section.has_drifted = name != identity.label
        return section

    def _first_label(self, identity: ModelIdentity) -> str:
        """Return the label that a model object had when it first asked, which may be now."""
        for known, name in self._owners:
            if known is identity.owner:
                return name
        if identity.fingerprint and identity.owner is not None:
            self._owners.append((identity.owner, identity.label))
        return identity.label

    def _labelled(self, name: str, class_name: str) -> Section:
        """Return the section of a label: this one if it has the label or none, else another."""
        section = self
        if self.name is not None:
            if name in (self.name, self._heir):
                return self
            section = Section(self.file)
            section._owners = self._owners
        section.adopt(name, class_name, "")
        return section

    @property
    def id(self) -> int | None:
        """The number in the file, if there is one; of several models one must be named."""
        if self.name is None:
            known = self.file.sections()
            if len(known) > 1:
                raise EvaluationsError(
                    f"{str(self.file.path)!r} holds rows of several models: {_listed(known)}. Name "
                    "one with Evaluations.open(path, model=...).",
                )
            return next(iter(known.values()), None)
        if self._id is None:
            self._id = self.file.one("SELECT id FROM models WHERE name = ?", self.name)
        return self._id

    @property
    def model(self) -> str | None:
        """The label of the model, if it has one."""
        name = self.name
        if name is None and self.id:
            name = next(iter(self.file.sections()))
        return name or None

    @property
    def is_identified(self) -> bool:
        """Whether a name or a fingerprint shows that the rows are this model's."""
        return self.is_named_by_user or (is_fingerprinted(self.name) and not self.has_drifted)

    def forget(self, model: str | None) -> bool:
        """Remove the rows and runs of a model, by default this one; return whether it was."""
        mine = model is None or model == self.name
        section = self.id if mine else self.file.sections().get(str(model))
        if section is not None:
            self._remove(section)
        elif not mine:
            raise no_model(str(model), self.file.sections())
        gone = self.name if mine else model
        self._owners[:] = [(owner, name) for owner, name in self._owners if name != gone]
        if mine:
            self._start_again()
        return mine

    def _remove(self, section: int) -> None:
        """Remove the rows and runs of a model, given by its number in the file."""
        with self.file.writing() as db:
            for table in ("evaluations", "runs"):
                db.execute(f"DELETE FROM {table} WHERE model = ?", (section,))
            db.execute("UPDATE models SET layout = NULL WHERE id = ?", (section,))

    def _start_again(self) -> None:
        """Start without rows, for any model unless the user gave its name."""
        self._cache = None
        if not self.is_named_by_user:
            self.name = None
            self._id = None
            self._heir = None

    # ── rows ──

    @property
    def layout(self) -> Layout | None:
        """The columns' names and dtypes; ``None`` before the first row."""
        return self._layout(self.id)

    def _layout(self, section: int | None) -> Layout | None:
        found = self.file.one("SELECT layout FROM models WHERE id = ?", section)
        with self.file.whole():
            return Layout.from_plain(json.loads(found)) if found else None

    def __len__(self) -> int:
        count = "SELECT count(*) FROM evaluations WHERE model = ?"
        return int(self.file.one(count, self.id))

    def _newest(self, section: int | None) -> int:
        """Return the highest id of the rows; 0 if there are none."""
        return self.file.one("SELECT max(id) FROM evaluations WHERE model = ?", section) or 0

    def read(self, last: int | None) -> list[tuple[Rows, Array]]:
        """Return rows and outputs up to an id; they are read again only if they have changed."""
        section = self.id
        newest = self._newest(section)
        last = newest if last is None else min(last, newest)
        if not last:
            return []
        if self._cache is None or self._cache[0] != last:
            self._cache = last, *self._select(section, last)
        return [self._cache[1:]]

    def _select(self, section: int | None, last: int) -> tuple[Rows, Array]:
        """Return rows and outputs ``(n,)`` up to an id, from the file."""
        line = "SELECT cells, output FROM evaluations WHERE model = ? AND id <= ? ORDER BY id"
        layout = self._layout(section)
        found = self.file.ask(line, section, last)
        with self.file.whole():
            cells = [from_plain(json.loads(text)) for text, _ in found]
            # SQLite keeps no nan: it writes NULL, which here means a skipped fault.
            outputs = np.array([np.nan if y is None else y for _, y in found], dtype=np.float64)
            if layout is None:
                raise ValueError("rows without columns")
            return layout.table(cells), outputs

    def find(self, rows: Rows) -> dict[int, Kept]:
        """Return the kept ones of some rows, by position."""
        line = "SELECT output, fault, apart FROM evaluations WHERE model = ? AND digest = ?"
        section = self.id
        found = (self.file.ask(line, section, digest(text)) for text in _texts(rows))
        return {i: Kept(*kept[0]) for i, kept in enumerate(found) if kept}

    def write(self, parts: Iterable[tuple[Any, ...]], layout: Layout) -> None:
        """Add rows that are new, and the layout if it has changed, in one transaction.

        A part is rows and their outputs ``(n,)``, nan for a fault; optionally the message of each
        fault, and whether the model call failed as a whole.
        """
        lines = [line for part in parts for line in _lines(*part)]
        gone = "DELETE FROM evaluations WHERE model = ? AND digest = ? AND output IS NULL"
        new = (
            "INSERT OR IGNORE INTO evaluations (model, digest, cells, output, fault, apart) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._cache = None
        with self.file.writing() as db:
            section = self._made(db)
            if self._heir is not None:  # the rows without a label were found to be this model's
                line = "UPDATE OR IGNORE models SET name = ? WHERE id = ?"
                db.execute(line, (self._heir, section))
            self._write_layout(db, section, layout)
            db.executemany(gone, [(section, key) for key, _, y, *_ in lines if y == y])
            db.executemany(new, [(section, *line) for line in lines])
        if self._heir is not None:
            self.name = self._heir
            self._heir = None

    def _write_layout(self, db: sqlite3.Connection, section: int, layout: Layout) -> None:
        """Merge a layout with that in the file, which another process may have written."""
        known = self._layout(section)
        if layout != known:
            layout = layout if known is None else merged(known, layout)
            text = json.dumps(layout.to_plain(), allow_nan=False)
            db.execute("UPDATE models SET layout = ? WHERE id = ?", (text, section))

    def _made(self, db: sqlite3.Connection) -> int:
        """Return the number in the file, and add the model if it is new."""
        section = self.id
        if section is None:
            db.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (self.name or "",))
            section = self.file.one("SELECT id FROM models WHERE name = ?", self.name or "")
        with self.file.whole():
            return int(section)

    # ── runs ──

    def begin(self, run: str | None, key: str) -> tuple[int, int, int, bool]:
        """Return the run of this name, or the unfinished one of this key, or a new one.

        Returns its id, the highest id of rows when it began, the seed that was drawn for it, and
        whether rows were scored since.
        """
        which = "key = ? AND name IS NULL" if run is None else "name = ?"
        line = f"SELECT id, mark, seed, key FROM runs WHERE model = ? AND {which}"
        with self.file.writing() as db:
            section = self._made(db)
            newest = self._newest(section)
            found = db.execute(line, (section, key if run is None else run)).fetchone()
            if found is None:
                line = "INSERT INTO runs (model, name, key, mark, seed) VALUES (?, ?, ?, ?, ?)"
                seed = uuid.uuid4().int >> 66
                made = db.execute(line, (section, run, key, newest, seed)).lastrowid
                found = made, newest, seed, key
        if found[3] != key:
            raise EvaluationsError(
                f"`run` {run!r} was begun with other questions, another space, other settings or "
                "another seed. Choose another name.",
                parameter="run",
            )
        return *found[:3], newest > found[1]


def no_model(model: str, known: Iterable[str]) -> EvaluationsError:
    """Return the error for a model that there are no rows of."""
    names = [*known]
    return EvaluationsError(
        f"`model` must be one of {_listed(names) or 'none'}; got {model!r}.{suggest(model, names)}",
        parameter="model",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) if name else "one without a name" for name in names)


def _lines(
    rows: Rows, y: Array, faults: Sequence[str | None] | None = None, apart: bool = False
) -> Iterator[tuple[bytes, str, float, str | None, bool]]:
    """Return rows as a file keeps them: digest, cells as JSON, output, fault, sent alone."""
    texts = _texts(rows)
    messages = faults or [None] * len(y)
    return zip(map(digest, texts), texts, y.tolist(), messages, repeat(apart))


def _texts(rows: Rows) -> list[str]:
    """Return the cells of each row as JSON."""
    return [json.dumps([to_plain(cell) for cell in row], allow_nan=False) for row in cells_of(rows)]


def merged(known: Layout, layout: Layout) -> Layout:
    """Return a layout that holds the rows of both; raise if there is none."""
    if layout.is_frame != known.is_frame:
        kinds = ("an array", "a DataFrame")
        raise EvaluationsError(
            f"`evaluations` holds rows of {kinds[known.is_frame]}; got "
            f"{kinds[layout.is_frame]}. Use one store for each."
        )
    check_columns(known.names, layout.names)
    return known.merge(layout)


def check_columns(known: tuple[Any, ...], asked: tuple[Any, ...]) -> None:
    """Raise if the columns of rows differ from those of the evaluations."""
    if known != asked:
        raise EvaluationsError(
            f"`evaluations` holds rows with the columns {_some(known)}; got {_some(asked)}. "
            "Use one store for each set of columns."
        )


def _some(names: tuple[Any, ...], most: int = 12) -> str:
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown
