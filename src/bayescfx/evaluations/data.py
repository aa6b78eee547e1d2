"""What is known of a model: the paper's D_n, in memory or in a file.

Evaluations belong to the model and not to a question: each is a whole row in the user's units with
the model's output, and serves every query and every target.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, reading
from bayescfx.errors import EvaluationsError
from bayescfx.evaluations.store import File, check_columns
from bayescfx.tables import Layout, Row, Rows, as_frame, free_name, join, row_of


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What was known when a call began; what others learn meanwhile does not change its answers."""

    rows: Rows | None
    outputs: Array  # (n,)


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
        self.layout: Layout | None = None  # columns and dtypes, once there is a row
        self._parts: list[tuple[Rows, Array]] = []
        self._file: File | None = None
        check(isinstance(model, str | None), "model", "a name", model, EvaluationsError)
        self.model = model  # what the model is, if known
        self._named = model is not None
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
        scored. Others may read the file meanwhile. Use it as a context manager, or close it.

        Parameters
        ----------
        path : str or path
            An SQLite file.
        model : str, optional
            A name of your own for the model, such as a version. A file under another name is
            refused.

        Returns
        -------
        Evaluations
            What the file holds; what is added is written to it.

        Raises
        ------
        EvaluationsError
            If the file is of another kind, format or model.
        """
        evaluations = cls(model=model)
        check(isinstance(path, str | os.PathLike), "path", "a path", path, EvaluationsError)
        evaluations._file = File(Path(path))
        try:
            with reading(f"{str(path)!r}", EvaluationsError, "Use another file."):
                evaluations._read(evaluations._file)
        except BaseException:
            evaluations.close()
            raise
        return evaluations

    def _read(self, file: File) -> None:
        named, known = self.model, file.meta("model")
        if None not in (named, known) and known != named:
            raise EvaluationsError(
                f"{str(file.path)!r} holds evaluations of model {known!r}; got model={named!r}. "
                "Open another file."
            )
        self.model = named if known is None else known
        self.layout = file.layout()
        if self.layout is not None:
            cells, outputs = file.read()
            self._parts = [(self.layout.table(cells), outputs)] if cells else []
        if named is not None and known is None:
            file.write_model(named)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"scorer": None}  # the model stays where it is

    def __len__(self) -> int:
        return sum(len(y) for _, y in list(self._parts))

    def __iter__(self) -> Iterator[tuple[Row, float]]:
        """Yield each row, as a Series or an array, with its output."""
        for rows, y in list(self._parts):
            for i, output in enumerate(y):
                yield row_of(rows, i), float(output)

    def __repr__(self) -> str:
        where = "" if self._file is None else f" in {str(self._file.path)!r}"
        return f"Evaluations({len(self)} rows{where})"

    @property
    def columns(self) -> tuple[Any, ...] | None:
        """The columns' names (``x0``, ``x1``, … for an array); ``None`` before the first row."""
        return None if self.layout is None else self.layout.names

    @property
    def rows(self) -> Rows | None:
        """All rows as one table in the user's units, or ``None`` before the first."""
        if self.layout is None:
            return None
        self._compact()
        return self._parts[0][0] if self._parts else self.layout.table([])

    @property
    def outputs(self) -> Array:
        """The model's outputs, shape ``(n,)``; nan where the model failed and that was skipped."""
        self._compact()
        return self._parts[0][1].copy() if self._parts else np.empty(0)

    def to_frame(self) -> pd.DataFrame:
        """Return the rows with their outputs in a last column ``output``.

        If the table has a column of that name, the last one is ``output_``, and so on.
        """
        rows = self.rows
        frame = pd.DataFrame() if rows is None else as_frame(rows)
        frame[free_name("output", frame.columns)] = self.outputs
        return frame

    def append(self, rows: Rows, outputs: object, *, scorer: object = None) -> None:
        """Add rows and their outputs: all of them or, on an error, none.

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
        exact = isinstance(outputs, np.ndarray) and outputs.dtype == np.float64
        y = np.array(outputs if exact else as_numbers("outputs", outputs, EvaluationsError))
        if y.shape != (len(rows),):
            raise EvaluationsError(
                f"`outputs` must be one number for each of the {len(rows)} rows; got shape "
                f"{y.shape}. Pass what the model returned for them."
            )
        layout, known = Layout.of(rows), self.layout
        if known is not None:
            layout = known if known == layout else _merged(known, layout)
        if self._file is not None:
            self._file.append(rows, y, None if layout is known else layout)
        self.scorer = scorer if not self._parts or self.scorer is scorer else None
        self.layout = layout
        self._parts.append((rows, y))

    def claim(self, columns: tuple[Any, ...], model: str | None) -> None:
        """Say for which columns and model these are used now; raise if for others before."""
        if self.layout is not None:
            check_columns(self.layout.names, columns)
        if model is None or self._named:
            return
        if self.model is None:
            self.model = model
            if self._file is not None:
                self._file.write_model(model)
        elif self.model != model:
            raise EvaluationsError(
                f"`evaluations` holds outputs of {self.model}; got {model}.",
                parameter="evaluations",
                advice="Use one store for each model, or name it yourself with "
                "Evaluations.open(path, model=...).",
            )

    def begin(self) -> Past:
        """Return what a call that begins now goes on from."""
        return Past(self.rows, self.outputs)

    def forget(self) -> None:
        """Remove all rows, also from the file, and what model they are of unless you named it.

        For a model that has changed: its rows would answer for the new one.

        Examples
        --------
        >>> known = Evaluations(pd.DataFrame({"age": [30, 40]}), [0.25, 0.5])
        >>> known.forget()
        >>> known
        Evaluations(0 rows)
        """
        if self._file is not None:
            self._file.clear(keep_model=self._named)
        self.layout = None
        self._parts.clear()
        self.model = self.model if self._named else None

    def close(self) -> None:
        """Close the file, if there is one; what was read stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Evaluations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compact(self) -> None:
        """Put the parts together, so that asking again costs nothing."""
        if len(self._parts) > 1:
            rows, outputs = zip(*self._parts, strict=True)
            self._parts[:] = [(join(rows), np.concatenate(outputs))]


def _merged(known: Layout, layout: Layout) -> Layout:
    """Return a layout that holds the rows of both, or say why there is none."""
    if layout.is_frame != known.is_frame:
        kinds = ("an array", "a DataFrame")
        raise EvaluationsError(
            f"`evaluations` holds rows of {kinds[known.is_frame]}; got "
            f"{kinds[layout.is_frame]}. Use one store for each."
        )
    check_columns(known.names, layout.names)
    return known.merge(layout)
