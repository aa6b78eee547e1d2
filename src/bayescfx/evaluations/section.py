"""One model's share of a file: its rows, its runs, and whose they are.

A name that the user gives says whose. Else estimators are known by what they have learnt; so are
other objects when they first ask, and later by being the same object: some change by being used, as
one that counts its calls. Functions have no name at all.

A row is kept once, with the first output that it had; a fault that was skipped gives way to a
number. Ids only ever grow; a run notes the highest when it begins.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.tables import Layout, Rows, cells_of
from bayescfx.data.values import from_plain, to_plain
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import EvaluationsError, suggest
from bayescfx.evaluations.store import File, digest


class Kept(NamedTuple):
    """What a file has of a row."""

    output: float | None
    fault: str | None = None
    apart: bool = False  # whether its batch had to be taken apart


class Section:
    """The rows of one model in a file; before any model asks, those of the only one there is."""

    def __init__(self, file: File, name: str | None = None) -> None:
        self.file = file
        self.name = name  # "" if the model has none, None as long as nobody has asked
        self.given = name is not None  # by the user
        self.drifted = False  # whether the model is no longer what it was named after
        self._id: int | None = None  # its number in the file
        self._heir: str | None = None  # the name of the model that takes over rows without one
        self._read: tuple[int, Rows, Array] | None = None  # what the file held up to an id
        self._owners: list[tuple[object, str]] = []  # objects that have asked, and their names

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_read": None, "_owners": []}  # models stay where they are

    # ── whose ──

    def adopt(self, name: str, *nameless: str) -> None:
        """Be of this model; if the file does not know it, of one whose name is not known."""
        known = self.file.sections()
        old = next((n for n in nameless if n in known and n != name), None)
        self.name, self._id = name, None
        if name not in known and old is not None:
            self.name, self._id, self._heir = old, known[old], name

    def of(
        self, model: str | None, fingerprint: Callable[[], str | None] | None, owner: object
    ) -> Section:
        """Return the rows of a model: these, once they are its, or others beside them."""
        if self.given:
            return self
        told = None if fingerprint is None else fingerprint()
        content = f"{model or ''}#{told}" if told else model or ""
        name = next((name for known, name in self._owners if known is owner), None)
        if name is None:
            name = content
            if told and owner is not None:
                self._owners.append((owner, name))
        if self.name == name:
            self._heir = None
        chosen = self
        if self.name is None or name not in (self.name, self._heir):
            if self.name is not None:
                chosen = Section(self.file)
                chosen._owners = self._owners
            chosen.adopt(name, model or "", "")
        chosen.drifted = name != content
        return chosen

    @property
    def id(self) -> int | None:
        """Its number in the file, if it has one there; of several models one must be named."""
        if self.name is None:
            known = self.file.sections()
            if len(known) > 1:
                raise EvaluationsError(
                    f"{str(self.file.path)!r} holds rows of several models: {_listed(known)}. Say "
                    "which, with Evaluations.open(path, model=...).",
                )
            return next(iter(known.values()), None)
        if self._id is None:
            self._id = self.file.one("SELECT id FROM models WHERE name = ?", self.name)
        return self._id

    @property
    def model(self) -> str | None:
        """What the model is called, if it has a name."""
        if self.name is None:
            return next(iter(self.file.sections())) or None if self.id else None
        return self.name or None

    @property
    def is_identified(self) -> bool:
        """Whether a name or a fingerprint says that the rows are this model's."""
        return self.given or ("#" in (self.name or "") and not self.drifted)

    def forget(self, model: str | None) -> bool:
        """Remove the rows and runs of a model, by default of this; return whether it was this."""
        mine = model is None or model == self.name
        section = self.id if mine else self.file.sections().get(str(model))
        if section is not None:
            with self.file.writing() as db:
                for table in ("evaluations", "runs"):
                    db.execute(f"DELETE FROM {table} WHERE model = ?", (section,))
                db.execute("UPDATE models SET layout = NULL WHERE id = ?", (section,))
        elif not mine:
            raise no_model(str(model), self.file.sections())
        gone = self.name if mine else model
        self._owners[:] = [(owner, name) for owner, name in self._owners if name != gone]
        if mine:
            self._read = None
            if not self.given:
                self.name = self._id = self._heir = None
        return mine

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
        """Return rows and outputs up to an id; they are read again only if there are others."""
        section = self.id
        newest = self._newest(section)
        last = newest if last is None else min(last, newest)
        if not last:
            return []
        if self._read is None or self._read[0] != last:
            line = "SELECT cells, output FROM evaluations WHERE model = ? AND id <= ? ORDER BY id"
            layout, found = self._layout(section), self.file.ask(line, section, last)
            with self.file.whole():
                cells = [from_plain(json.loads(text)) for text, _ in found]
                # SQLite keeps no nan: it writes NULL, which here means a skipped fault.
                outputs = np.array([np.nan if y is None else y for _, y in found], dtype=np.float64)
                if layout is None:
                    raise ValueError("rows without columns")
                self._read = last, layout.table(cells), outputs
        return [self._read[1:]]

    def find(self, rows: Rows) -> dict[int, Kept]:
        """Return what there is of some rows, by position."""
        line = "SELECT output, fault, apart FROM evaluations WHERE model = ? AND digest = ?"
        section = self.id
        found = (self.file.ask(line, section, digest(text)) for text in _texts(rows))
        return {i: Kept(*told[0]) for i, told in enumerate(found) if told}

    def write(
        self, parts: Iterable[tuple[Any, ...]], layout: Layout, until: Deadline = NEVER
    ) -> None:
        """Add rows that are new, and the layout if it has changed, in one transaction.

        A part is rows and their outputs ``(n,)``, nan for a fault; then maybe why that is, of each,
        and whether their batch had to be taken apart.
        """
        lines = [line for part in parts for line in _lines(*part)]
        gone = "DELETE FROM evaluations WHERE model = ? AND digest = ? AND output IS NULL"
        new = (
            "INSERT OR IGNORE INTO evaluations (model, digest, cells, output, fault, apart) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._read = None
        with self.file.writing(until) as db:
            section = self._made(db)
            if self._heir is not None:  # its first rows: those before them were found to be its own
                line = "UPDATE OR IGNORE models SET name = ? WHERE id = ?"
                db.execute(line, (self._heir, section))
            # Another process may have been first: nothing of its layout is lost.
            known = self._layout(section)
            if layout != known:
                layout = layout if known is None else merged(known, layout)
                text = json.dumps(layout.to_plain(), allow_nan=False)
                db.execute("UPDATE models SET layout = ? WHERE id = ?", (text, section))
            db.executemany(gone, [(section, key) for key, _, y, *_ in lines if y == y])
            db.executemany(new, [(section, *line) for line in lines])
        if self._heir is not None:
            self.name, self._heir = self._heir, None

    def _made(self, db: sqlite3.Connection) -> int:
        """Return its number in the file, where it may be new; by hand it has no name."""
        section = self.id
        if section is None:
            db.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (self.name or "",))
            section = self.file.one("SELECT id FROM models WHERE name = ?", self.name or "")
        with self.file.whole():
            return int(section)

    # ── runs ──

    def begin(
        self, run: str | None, key: str, until: Deadline = NEVER
    ) -> tuple[int, int, int, bool]:
        """Return the run of this name, or the unfinished one of this key, or a new one.

        That is: its id, the highest id of rows when it began, the seed that was drawn for it, and
        whether rows were scored since.
        """
        which = "key = ? AND name IS NULL" if run is None else "name = ?"
        line = f"SELECT id, mark, seed, key FROM runs WHERE model = ? AND {which}"
        with self.file.writing(until) as db:
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
    """Return rows as a file keeps them: digest, cells as JSON, output, fault, taken apart."""
    texts, why = _texts(rows), faults or [None] * len(y)
    return zip(map(digest, texts), texts, y.tolist(), why, repeat(apart))


def _texts(rows: Rows) -> list[str]:
    """Return the cells of each row as JSON."""
    return [json.dumps([to_plain(cell) for cell in row], allow_nan=False) for row in cells_of(rows)]


def merged(known: Layout, layout: Layout) -> Layout:
    """Return a layout that holds the rows of both, or say why there is none."""
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
            f"`evaluations` holds rows with the columns {_some(known)}; got {_some(asked)}. "
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


def _some(names: tuple[Any, ...], most: int = 12) -> str:
    shown = ", ".join(map(str, names[:most]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown
