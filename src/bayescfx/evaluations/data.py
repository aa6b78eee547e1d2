"""What is known of a model: the paper's D_n, in memory or in a file.

Evaluations belong to the model and not to a question: each is a whole row in the user's units with
the model's output, and serves every query and every target.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import EvaluationsError, suggest
from bayescfx.evaluations.store import File, Line, Unwritten, check_columns, digest, texts_of
from bayescfx.tables import Layout, Row, Rows, as_frame, free_name, join, pick, row_of


class _Recalled(dict[Any, Any]):
    """What was made of rows; other processes make it themselves."""

    def __reduce__(self) -> Any:
        return _Recalled, ()


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What was known when a call began; what others learn meanwhile does not change its answers."""

    rows: Rows | None
    outputs: Array  # (n,)
    run: int | None = None  # its id in the file
    seed: int | None = None  # drawn when it first began
    resumed: bool = False  # whether the file holds rows that were scored since it first began
    recalled: _Recalled = field(default_factory=_Recalled)  # see `Evaluator`


class Evaluations:
    """Rows and the model's outputs for them; rows are only ever added.

    Parameters
    ----------
    rows : DataFrame or ndarray of shape (n, k), optional
        Rows that the model has scored already.
    outputs : array-like of shape (n,), optional
        Its outputs for them.
    model : str, optional
        A name of your own for the model; rows of another are then refused.

    Examples
    --------
    >>> known = Evaluations(pd.DataFrame({"age": [30, 40]}), [0.25, 0.5])
    >>> len(known), known.outputs
    (2, array([0.25, 0.5 ]))
    >>> known.to_frame()
       age  output
    0   30    0.25
    1   40    0.50
    """

    def __init__(
        self, rows: Rows | None = None, outputs: object = None, *, model: str | None = None
    ) -> None:
        self.file: File | None = None  # where rows are kept, or else
        self._parts: list[tuple[Rows, Array]] = []  # in memory; of a file what it could not take
        self._layout: Layout | None = None  # columns and dtypes, once there is a row
        check(isinstance(model, str | None), "model", "a name", model, EvaluationsError)
        self._name = model  # what the model is, if known; "" in a file if it has no name
        self._named = model is not None
        self._section: int | None = None  # the model's number in the file
        self._becomes: str | None = None  # the name of the model that takes over rows without one
        self._read: tuple[int, Rows, Array] | None = None  # what the file held up to an id
        self._owners: list[tuple[object, str]] = []  # models that change by use, and their names
        self._sent = 0  # rows that came with this object from another process
        self.scorer: object = None  # the model that scored all rows in this process, if one did
        if (rows is None) != (outputs is None):
            raise EvaluationsError(
                "`rows` and `outputs` must be given together; got only one. Pass both, or neither."
            )
        if rows is not None:
            self.append(rows, outputs)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, model: str | None = None) -> Evaluations:
        """Return the evaluations kept in a file, which is made if there is none.

        Each batch is on disk before the search goes on, so that a crash loses nothing that was
        scored. A file holds the rows of several models, each row once, and several processes may
        use it at the same time. Use it as a context manager, or close it.

        Parameters
        ----------
        path : str or path
            An SQLite file.
        model : str, optional
            A name of your own for the model, such as a version. Without one, estimators are told
            apart by their content, and functions not at all.

        Returns
        -------
        Evaluations
            What the file holds of the model; what is added is written to it.

        Raises
        ------
        EvaluationsError
            If the file is of another kind or format.
        """
        evaluations = cls(model=model)
        check(isinstance(path, str | os.PathLike), "path", "a path", path, EvaluationsError)
        evaluations.file = file = File(Path(path))
        try:
            if model is not None:
                known = file.sections()
                # What has no name is taken over if nothing else is there.
                evaluations._adopt(model, [""] if list(known) == [""] else [])
        except BaseException:
            file.close()
            raise
        return evaluations

    def _chosen(self) -> int | None:
        """Return the model's number in the file, if it has one there; of several one is named."""
        assert self.file is not None
        if self._name is None:
            known = self.file.sections()
            if len(known) > 1:
                raise EvaluationsError(
                    f"{str(self.file.path)!r} holds rows of several models: {_named(known)}. Say "
                    "which, with Evaluations.open(path, model=...).",
                )
            return next(iter(known.values()), None)
        if self._section is None:
            self._section = self.file.section(self._name)
        return self._section

    def _adopt(self, name: str, nameless: Sequence[str]) -> None:
        """Be of this model; if the file does not know it, of one whose name is not known."""
        assert self.file is not None
        known = self.file.sections()
        old = next((n for n in nameless if n in known and n != name), None)
        if name not in known and old is not None:
            self._name, self._section, self._becomes = old, known[old], name
        else:
            self._name, self._section = name, self.file.section(name)

    def __getstate__(self) -> dict[str, Any]:
        # The model stays where it is.
        return vars(self) | {"scorer": None, "_read": None, "_owners": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.file is not None:
            self._parts = []
            if not self.file.here:
                self.file, self._layout = None, None
        self._sent = sum(len(y) for _, y in self._parts)

    def __len__(self) -> int:
        kept = 0 if self.file is None else self.file.count(self._chosen())
        return kept + sum(len(y) for _, y in list(self._parts))

    def __iter__(self) -> Iterator[tuple[Row, float]]:
        """Yield each row, as a Series or an array, with its output."""
        rows = self.rows
        for i, output in enumerate(self.outputs):
            assert rows is not None
            yield row_of(rows, i), float(output)

    def __repr__(self) -> str:
        if self.file is None:
            return f"Evaluations({len(self)} rows)"
        models = 1 if self._name is not None else len(self.file.sections())
        held = f"{len(self)} rows" if models < 2 else f"{models} models"
        return f"Evaluations({held} in {str(self.file.path)!r})"

    @property
    def model(self) -> str | None:
        """What the model is: your name for it, or its class and, in a file, its fingerprint."""
        if self.file is not None and self._name is None:
            return next(iter(self.file.sections())) or None if self._chosen() else None
        return self._name or None

    @property
    def layout(self) -> Layout | None:
        """The columns' names and dtypes; ``None`` before the first row."""
        if self.file is not None and (section := self._chosen()) is not None:
            self._layout = self.file.layout(section) or self._layout
        return self._layout

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """The columns' names (``x0``, ``x1``, … for an array); ``None`` before the first row."""
        layout = self.layout
        return None if layout is None else layout.names

    @property
    def rows(self) -> Rows | None:
        """All rows as one table in the user's units, or ``None`` before the first."""
        return self._all()[0]

    @property
    def outputs(self) -> Array:
        """The model's outputs, shape ``(n,)``; nan where the model failed and that was skipped."""
        return self._all()[1].copy()

    def _all(self, last: int | None = None) -> tuple[Rows | None, Array]:
        """Return rows and outputs; those in a file up to an id, if one is given."""
        if self.file is None:
            if len(self._parts) > 1:  # so that asking again costs nothing
                self._parts[:] = [_joined(self._parts)]
            parts = self._parts
        else:
            parts = [*self._filed(self.file, last), *self._parts]
        if parts:
            return parts[0] if len(parts) == 1 else _joined(parts)
        layout = self._layout if self.file is None else self.layout
        return None if layout is None else layout.table([]), np.empty(0)

    def _filed(self, file: File, last: int | None) -> list[tuple[Rows, Array]]:
        """Return what the file holds of the model; the whole is read again if it has changed."""
        section = self._chosen()
        newest = 0 if section is None else file.last(section)
        if not newest or last == 0:
            return []
        assert section is not None
        if last is not None and last < newest:
            return [file.read(section, last)]
        if self._read is None or self._read[0] != newest:
            self._read = newest, *file.read(section, newest)
        return [self._read[1:]]

    def to_frame(self) -> pd.DataFrame:
        """Return the rows with their outputs in a last column ``output``.

        If the table has a column of that name, the last one is ``output_``, and so on.
        """
        rows, outputs = self._all()
        frame = pd.DataFrame() if rows is None else as_frame(rows)
        frame[free_name("output", frame.columns)] = outputs
        return frame

    def append(self, rows: Rows, outputs: object, *, scorer: object = None) -> None:
        """Add rows and their outputs: all of them or, on an error, none.

        In a file, rows that it holds already keep the output they have there.

        Parameters
        ----------
        rows : DataFrame or ndarray of shape (n, k)
            Rows with the columns of those before.
        outputs : array-like of shape (n,)
            The model's outputs for them.
        scorer : object, optional
            The model itself, if it has just scored them.
        """
        good = isinstance(rows, pd.DataFrame) or getattr(rows, "ndim", 0) == 2
        check(good, "rows", "a DataFrame or an array of shape (n, k)", rows, EvaluationsError)
        y = np.array(as_numbers("outputs", outputs, EvaluationsError))
        if y.shape != (len(rows),):
            raise EvaluationsError(
                f"`outputs` must be one number for each of the {len(rows)} rows; got shape "
                f"{y.shape}. Pass what the model returned for them."
            )
        self.keep(rows, y, scorer=scorer)

    def keep(
        self,
        rows: Rows,
        y: Array,
        *,
        scorer: object = None,
        faults: Sequence[str | None] | None = None,
        apart: bool = False,
        until: Deadline = NEVER,
    ) -> None:
        """Add rows with outputs ``(n,)``; if a file can't take them, they stay here until it can.

        `faults` says of outputs that are nan why, `apart` that their batch had to be taken apart;
        for the lock of another process one waits `until` then.
        """
        known = self._layout
        if known is None and self.file is not None:
            known = self.layout
        layout = Layout.of(rows)
        if known is not None:
            layout = known if known == layout else merged(known, layout)
        self.scorer = scorer if known is None or self.scorer is scorer else None
        if self.file is None or self.file.closed:
            self._parts.append((rows, y))
        else:
            lines = _lines(rows, y, faults, apart)
            try:
                for waiting in self._parts:
                    lines = _lines(*waiting) + lines
                self._write(self.file, lines, None if layout is known else layout, until)
            except Unwritten:
                self._parts.append((rows, y))
                self._layout = layout
                raise
            self._parts.clear()
        self._layout = layout

    def _write(self, file: File, lines: list[Line], layout: Layout | None, until: Deadline) -> None:
        section = self._chosen()
        if section is None:  # by hand, before any search, it has no name
            section = file.make_section(self._name or "", until)
            self._section = section if self._name is not None else None
            layout = layout or self._layout
        if self._becomes is not None:  # its first rows: those before them were found to be its own
            file.rename(section, self._becomes)
            self._name, self._becomes = self._becomes, None
        self._read = None
        file.append(section, lines, layout, until)

    def told(self, rows: Rows) -> dict[int, tuple[float | None, str | None, bool]]:
        """Return what the file has of some rows, by position: output, fault, was it taken apart."""
        if self.file is None or self.file.closed or (section := self._chosen()) is None:
            return {}
        return self.file.find(section, rows)

    def claim(
        self,
        columns: tuple[Any, ...],
        model: str | None,
        fingerprint: Callable[[], str | None] | None = None,
        origin: object = None,
    ) -> Evaluations:
        """Return the evaluations of a model, these or others in the same file.

        Raises if they are of another model or have other columns. `fingerprint`, which may take its
        time, is asked only where a file tells models apart.
        """
        if self.file is not None:
            chosen = self.of(model, fingerprint, origin)
            layout = chosen.layout
        else:
            chosen, layout = self, self._layout
            if model is not None and not self._named:
                self._name = model if self._name is None else self._name
                if self._name.partition("#")[0] != model.partition("#")[0]:
                    raise EvaluationsError(
                        f"`evaluations` holds outputs of {self._name}; got {model}.",
                        parameter="evaluations",
                        advice="Use one store for each model, or name it yourself with "
                        "Evaluations.open(path, model=...).",
                    )
        if layout is not None:
            check_columns(layout.names, columns)
        return chosen

    def of(
        self,
        model: str | None,
        fingerprint: Callable[[], str | None] | None = None,
        origin: object = None,
    ) -> Evaluations:
        """Return what a file holds of a model: these, once they are its, or others beside them."""
        if self._named:
            return self
        told = None if fingerprint is None else fingerprint()
        name = f"{model or ''}#{told}" if told else model or ""
        name = self._owner(origin) or name
        if self._name == name:
            self._becomes = None
        if self._name is not None and name in (self._name, self._becomes):
            return self
        chosen = self
        if self._name is not None:
            chosen = copy.copy(self)
            vars(chosen).update(_parts=[], _layout=None, _read=None, _becomes=None, scorer=None)
            chosen._owners = self._owners
        chosen._adopt(name, [model or "", ""])
        return chosen

    def used(
        self, model: str | None, fingerprint: Callable[[], str | None], origin: object
    ) -> None:
        """Note whether a model is another after a search: one that counts its rows, say.

        What it holds does not tell it apart then. As long as this very object is there its rows are
        known by it, and looked at before they are used again.
        """
        if self.file is None or self._named or not self.sure or self._owner(origin):
            return
        if self._name != f"{model or ''}#{fingerprint()}":
            self._owners.append((_holder(origin), str(self._name)))
            self.scorer = None

    def _owner(self, origin: object) -> str | None:
        """Return what a model that changes by use was known by at first."""
        found = (name for owner, name in self._owners if owner is _holder(origin))
        return None if origin is None else next(found, None)

    @property
    def sure(self) -> bool:
        """Whether a name or a fingerprint says that rows in the file are this model's."""
        return self._named or "#" in (self._name or "")

    def begin(
        self, run: str | None = None, key: str | None = None, until: Deadline = NEVER
    ) -> Past:
        """Return what a call that begins now goes on from.

        With a `key`, which says what is asked, and a file: from what was known when the run of this
        name, or an unfinished one of this key, first began.
        """
        if self.file is None or self.file.closed or key is None:
            return Past(*self._all())
        section = self._chosen()
        if section is None:
            self._section = section = self.file.make_section(self._name or "", until)
        begun = self.file.begin(section, run, key, until)
        rows, outputs = self._all(begun.mark)
        return Past(rows, outputs, begun.id, begun.seed, self.file.last(section) > begun.mark)

    def finish(self, past: Past) -> None:
        """Note that a call has ended by itself: it is not to be gone on with."""
        if past.run is not None and self.file is not None and not self.file.closed:
            with contextlib.suppress(Unwritten):
                self.file.finish(past.run)

    def learnt(self) -> tuple[Rows, Array] | None:
        """Return what was added since this object came from another process and is in no file."""
        if sum(len(y) for _, y in self._parts) <= self._sent:
            return None
        rows, y = _joined(self._parts)
        new = np.arange(self._sent, len(y))
        return pick(rows, new), y[new]

    def forget(self, model: str | None = None) -> None:
        """Remove all rows, also from the file, and what model they are of unless you named it.

        For a model that has changed: its rows would answer for the new one.

        Parameters
        ----------
        model : str, optional
            In a file of several: whose rows to remove; by default those of this object's model.

        Examples
        --------
        >>> known = Evaluations(pd.DataFrame({"age": [30, 40]}), [0.25, 0.5])
        >>> known.forget()
        >>> known
        Evaluations(0 rows)
        """
        if model is not None and model != self._name:
            known = {} if self.file is None else self.file.sections()
            if self.file is None or model not in known:
                raise EvaluationsError(
                    f"`model` must be one of {_named(known) or 'none'}; got {model!r}."
                    f"{suggest(model, known)}",
                    parameter="model",
                )
            self.file.clear(known[model])
            return
        if self.file is not None and (section := self._chosen()) is not None:
            self.file.clear(section)
        self._layout, self._read = None, None
        self._parts.clear()
        if not self._named:
            self._name = self._section = self._becomes = None

    def close(self) -> None:
        """Close the file, if there is one; what it holds can still be read."""
        if self.file is None or self.file.closed:
            return
        with contextlib.suppress(Unwritten):
            if self._parts:
                lines = [line for part in self._parts for line in _lines(*part)]
                self._write(self.file, lines, self._layout, NEVER)
                self._parts.clear()
        self.file.close()

    def __enter__(self) -> Evaluations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _holder(model: object) -> object:
    """Return whose method a model is, or the model."""
    return getattr(model, "__self__", model)


def _joined(parts: Sequence[tuple[Rows, Array]]) -> tuple[Rows, Array]:
    rows, outputs = zip(*parts, strict=True)
    return join(rows), np.concatenate(outputs)


def _named(names: Iterable[str]) -> str:
    return ", ".join(repr(name) if name else "one without a name" for name in names)


def _lines(
    rows: Rows, y: Array, faults: Sequence[str | None] | None = None, apart: bool = False
) -> list[Line]:
    """Return rows and outputs as a file keeps them."""
    texts, why = texts_of(rows), faults or [None] * len(y)
    return [(digest(t), t, o, w, apart) for t, o, w in zip(texts, y.tolist(), why, strict=True)]


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
