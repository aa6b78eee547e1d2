"""Evaluations: scored rows of a model, the paper's D_n, in memory or in a file.

Evaluations belong to the model and not to a question: each is a whole row in the user's units with
the model's output, and serves every query and every target.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check
from bayescfx.data.tables import Layout, Row, Rows, as_frame, free_name, rows_of
from bayescfx.errors import EvaluationsError
from bayescfx.evaluations.known import Snapshot
from bayescfx.evaluations.memory import InMemory, Packed, joined
from bayescfx.evaluations.section import Kept, Section, check_columns, merged, no_model
from bayescfx.evaluations.store import File, Unwritten
from bayescfx.models.identity import ModelIdentity


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
        check(isinstance(model, str | None), "model", "a name", model, EvaluationsError)
        self._section: Section | None = None  # where a file keeps the rows
        self._memory = InMemory()  # rows without a file, or that the file could not take
        self._layout: Layout | None = None  # columns and dtypes, once there is a row
        self._name = model  # of the model
        self._is_named_by_user = model is not None
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

        Each model call is on disk before the search goes on, so that a crash loses nothing that was
        scored. A file holds the rows of several models, each row once, and several processes may
        use it at the same time. Use it as a context manager, or close it.

        Parameters
        ----------
        path : str or path
            An SQLite file.
        model : str, optional
            A name of your own for the model, such as a version. Without one, estimators are
            distinguished by their content, and functions are not distinguished.

        Returns
        -------
        Evaluations
            The rows of the model in the file; new rows are written to it.

        Raises
        ------
        EvaluationsError
            If the file is of another kind or format.
        """
        evaluations = cls(model=model)
        check(isinstance(path, str | os.PathLike), "path", "a path", path, EvaluationsError)
        file = File(Path(path))
        try:
            evaluations._section = section = Section(file, model)
            if model is not None and list(file.sections()) == [""]:
                section.adopt(model, "")  # unlabelled rows, if the file has no others
        except BaseException:
            file.close()
            raise
        return evaluations

    @property
    def file(self) -> File | None:
        """The file that keeps the rows, if there is one."""
        return None if self._section is None else self._section.file

    @property
    def _open(self) -> Section | None:
        """The section that rows are written to, while the file is open."""
        return None if self._section is None or self._section.file.closed else self._section

    def __getstate__(self) -> dict[str, Any]:
        memory = self._memory if self._section is None else InMemory()
        return {**self.__dict__, "scorer": None, "_memory": memory}  # the model is not sent

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._section is not None and not self._section.file.here:
            self._name = self._section.name
            self._section = None
            self._layout = None

    def __len__(self) -> int:
        return len(self._memory) + (0 if self._section is None else len(self._section))

    def __iter__(self) -> Iterator[tuple[Row, float]]:
        """Return each row, as a Series or an array, with its output."""
        rows, outputs = self._all()
        return zip([] if rows is None else rows_of(rows), outputs.tolist(), strict=True)

    def __repr__(self) -> str:
        if self._section is None:
            return f"Evaluations({len(self)} rows)"
        models = len(self._section.file.sections()) if self._section.name is None else 1
        held = f"{len(self)} rows" if models < 2 else f"{models} models"
        return f"Evaluations({held} in {str(self._section.file.path)!r})"

    @property
    def model(self) -> str | None:
        """Your name for the model, or its class and, in a file, its fingerprint."""
        return self._name or None if self._section is None else self._section.model

    @property
    def layout(self) -> Layout | None:
        """The columns' names and dtypes; ``None`` before the first row."""
        if self._section is not None:
            self._layout = self._section.layout or self._layout
        return self._layout

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """The columns' names (``x0``, ``x1``, … for an array); ``None`` before the first row."""
        return None if (layout := self.layout) is None else layout.names

    @property
    def rows(self) -> Rows | None:
        """All rows as one table in the user's units, or ``None`` before the first."""
        return self._all()[0]

    @property
    def outputs(self) -> Array:
        """The model's outputs, shape ``(n,)``; nan where the model failed and that was skipped."""
        return self._memory.outputs if self._section is None else self._all()[1].copy()

    def _all(self, last: int | None = None) -> tuple[Rows | None, Array]:
        """Return rows and outputs; those in a file up to an id, if one is given."""
        kept = [] if self._section is None else self._section.read(last)
        if parts := [*kept, *self._memory.parts(few=True)]:
            return joined(parts)
        return None if (layout := self.layout) is None else layout.table([]), np.empty(0)

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
        self.keep(rows, y, scorer)

    def keep(
        self,
        rows: Rows,
        y: Array,
        scorer: object = None,
        faults: Sequence[str | None] | None = None,
        apart: bool = False,
    ) -> None:
        """Add rows with outputs ``(n,)``; rows that a file can't take now are kept in memory.

        `faults` are the messages of outputs that are nan. `apart` marks rows whose model
        call failed as a whole.
        """
        layout = self._merged(Layout.of(rows), scorer)
        if self._open is None:
            self._memory.add(rows, y)
        else:
            try:
                self._open.write([*self._memory.parts(), (rows, y, faults, apart)], layout)
                self._memory.clear()
            except Unwritten:
                self._memory.add(rows, y)
                self._layout = layout
                raise
        self._layout = layout

    def absorb(self, packed: Packed, scorer: object) -> None:
        """Add rows that were scored in another process."""
        if self._open is not None:
            self.keep(packed.rows, packed.y, scorer)
        else:
            self._layout = self._merged(packed.layout, scorer)
            self._memory.take(packed)

    def _merged(self, new: Layout, scorer: object) -> Layout:
        """Return a layout for all rows; note the model that scored the new ones."""
        known = self._layout or self.layout
        if known is None:
            self.scorer = scorer
            return new
        if self.scorer is not scorer:
            self.scorer = None
        return known if known == new else merged(known, new)

    def find(self, rows: Rows) -> dict[int, Kept]:
        """Return what the file has of some rows, by position."""
        return {} if self._open is None else self._open.find(rows)

    def claim(self, columns: tuple[Any, ...] | None, identity: ModelIdentity) -> Evaluations:
        """Return the evaluations of a model: these, or others in the same file.

        Raises if they are of another model or have other columns. The fingerprint of the model is
        read only where a file tells models apart.
        """
        name = identity.name
        chosen = self
        if self._section is not None:
            chosen = self._claim_section(self._section.of(identity))
        elif name is not None and not self._is_named_by_user:
            self._name = self._name or name
            self._check_class(name)
        if columns is not None and (layout := chosen.layout) is not None:
            check_columns(layout.names, columns)
        return chosen

    def _check_class(self, name: str) -> None:
        """Raise if the outputs are of another class of models; fingerprints do not count."""
        if str(self._name).partition("#")[0] != name:
            raise EvaluationsError(
                f"`evaluations` holds outputs of {self._name}; got {name}.",
                parameter="evaluations",
                advice="Use one store for each model, or name it yourself with "
                "Evaluations.open(path, model=...).",
            )

    def _claim_section(self, section: Section) -> Evaluations:
        """Return the evaluations in a section of the file: these or others."""
        chosen = self
        if section is not self._section:
            chosen = Evaluations()
            chosen._section = section
        if section.has_drifted:  # its rows are checked as if another model had scored them
            chosen.scorer = None
        return chosen

    @property
    def is_identified(self) -> bool:
        """Whether a name or a fingerprint shows that rows in the file are this model's."""
        return self._is_named_by_user if self._section is None else self._section.is_identified

    def begin(self, run: str | None = None, key: Callable[[], str] | None = None) -> Snapshot:
        """Return the evaluations that a call starts from.

        With a file and a `key`, a digest of the questions: those known when the run of this name,
        or an unfinished run of this key, first began.
        """
        if self._open is None or key is None:
            return Snapshot(*self._all())
        number, mark, seed, resumed = self._open.begin(run, key())
        return Snapshot(*self._all(mark), number, seed, resumed)

    def finish(self, run: int) -> None:
        """Note that a run is complete, so that it is not continued."""
        if self._open is not None:
            with contextlib.suppress(Unwritten):
                self._open.file.finish(run)

    def packed(self) -> Packed | None:
        """Return the rows in memory, if there are any, for another process to `absorb`."""
        return Packed.of(*joined(parts)) if (parts := self._memory.parts(few=True)) else None

    def forget(self, model: str | None = None) -> None:
        """Remove all rows, also from the file, and the name of the model unless you gave it.

        Use it when the model has changed: its old outputs would be reused for the new model.

        Parameters
        ----------
        model : str, optional
            In a file of several models: the one to remove; by default the model of this object.

        Examples
        --------
        >>> known = Evaluations(pd.DataFrame({"age": [30, 40]}), [0.25, 0.5])
        >>> known.forget()
        >>> known
        Evaluations(0 rows)
        """
        if self._section is not None:
            if not self._section.forget(model):
                return
        elif model is not None and model != self._name:
            raise no_model(model, ())
        self._layout = None
        self._memory.clear()
        if not self._is_named_by_user:
            self._name = None

    def close(self) -> None:
        """Close the file, if there is one; it can still be read."""
        if self._open is None:
            return
        with contextlib.suppress(Unwritten):
            if len(self._memory) and self._layout is not None:
                self._open.write(self._memory.parts(), self._layout)
                self._memory.clear()
        self._open.file.close()

    def __enter__(self) -> Evaluations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
