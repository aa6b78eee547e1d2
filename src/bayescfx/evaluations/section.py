"""Whose rows are they? One model's share of a file, found by name, by content or by itself.

A name that the user gives says it. Else estimators are known by what they have learnt; so are other
objects when they first ask, and later by being the same object: some change by being used, as one
that counts its calls. Functions have no name at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline
from bayescfx.errors import EvaluationsError, suggest
from bayescfx.evaluations.form import Line
from bayescfx.evaluations.store import File, Run
from bayescfx.tables import Layout, Rows


class Section:
    """The rows of one model in a file; before any model asks, those of the only one there is."""

    def __init__(self, file: File, name: str | None) -> None:
        self.file = file
        self.name = name  # "" if the model has none, None as long as nobody has asked
        self.given = name is not None  # by the user
        self.drifted = False  # whether the model is no longer what it was named after
        self._id: int | None = None  # its number in the file
        self._heir: str | None = None  # the name of the model that takes over rows without one
        self._read: tuple[int, Rows, Array] | None = None  # what the file held up to an id
        self._owners: list[tuple[object, str]] = []  # objects that have asked, and their names
        if name is not None:
            known = file.sections()
            # What has no name is taken over if nothing else is there.
            self._adopt(name, [""] if list(known) == [""] else [])

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_read": None, "_owners": []}  # models stay where they are

    def _adopt(self, name: str, nameless: Sequence[str]) -> None:
        """Be of this model; if the file does not know it, of one whose name is not known."""
        known = self.file.sections()
        old = next((n for n in nameless if n in known and n != name), None)
        if name not in known and old is not None:
            self.name, self._id, self._heir = old, known[old], name
        else:
            self.name, self._id = name, self.file.section(name)

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
                chosen = Section(self.file, None)
                chosen._owners = self._owners
            chosen._adopt(name, [model or "", ""])
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
            self._id = self.file.section(self.name)
        return self._id

    @property
    def model(self) -> str | None:
        """What the model is called, if it has a name."""
        if self.name is None:
            return next(iter(self.file.sections())) or None if self.id else None
        return self.name or None

    @property
    def models(self) -> int:
        """How many models these may be the rows of."""
        return 1 if self.name is not None else len(self.file.sections())

    @property
    def sure(self) -> bool:
        """Whether a name or a fingerprint says that the rows are this model's."""
        return self.given or ("#" in (self.name or "") and not self.drifted)

    @property
    def layout(self) -> Layout | None:
        """The columns' names and dtypes; ``None`` before the first row."""
        return None if (section := self.id) is None else self.file.layout(section)

    def __len__(self) -> int:
        return self.file.count(self.id)

    def read(self, last: int | None) -> list[tuple[Rows, Array]]:
        """Return rows and outputs up to an id; all are read again only if there are others."""
        section = self.id
        newest = 0 if section is None else self.file.last(section)
        if section is None or not newest or last == 0:
            return []
        if last is not None and last < newest:
            return [self.file.read(section, last)]
        if self._read is None or self._read[0] != newest:
            self._read = newest, *self.file.read(section, newest)
        return [self._read[1:]]

    def find(self, rows: Rows) -> dict[int, tuple[float | None, str | None, bool]]:
        """Return what there is of some rows, by position: output, fault, was it taken apart."""
        section = self.id
        return {} if section is None else self.file.find(section, rows)

    def write(self, lines: list[Line], layout: Layout, new: bool, until: Deadline) -> None:
        """Add rows and, if it is new, their layout."""
        new, section = new or self.id is None, self._made(until)
        if self._heir is not None:  # its first rows: those before them were found to be its own
            self.file.rename(section, self._heir)
            self.name, self._heir = self._heir, None
        self._read = None
        self.file.append(section, lines, layout if new else None, until)

    def _made(self, until: Deadline) -> int:
        """Return its number in the file, where it may be new; by hand it has no name."""
        section = self.id
        if section is None:
            section = self.file.make_section(self.name or "", until)
            self._id = section if self.name is not None else None
        return section

    def begin(self, run: str | None, key: str, until: Deadline) -> tuple[Run, bool]:
        """Return a run, new or gone on with, and whether rows were scored since it first began."""
        section = self._made(until)
        begun = self.file.begin(section, run, key, until)
        return begun, self.file.last(section) > begun.mark

    def forget(self, model: str | None) -> bool:
        """Remove the rows of a model, by default these; return whether it was these."""
        mine = model is None or model == self.name
        section = self.id if mine else self.file.sections().get(str(model))
        if section is not None:
            self.file.clear(section)
        elif not mine:
            raise no_model(str(model), self.file.sections())
        gone = self.name if mine else model
        self._owners[:] = [(owner, name) for owner, name in self._owners if name != gone]
        if mine:
            self._read = None
            if not self.given:
                self.name = self._id = self._heir = None
        return mine


def no_model(model: str, known: Iterable[str]) -> EvaluationsError:
    """Return the error for a model that there are no rows of."""
    names = [*known]
    return EvaluationsError(
        f"`model` must be one of {_listed(names) or 'none'}; got {model!r}.{suggest(model, names)}",
        parameter="model",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) if name else "one without a name" for name in names)
