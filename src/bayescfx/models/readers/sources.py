"""The columns that an estimator gets from a row, and the form that they are read into."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
from bayescfx.data.tables import Rows
from bayescfx.models.readers.forms import Form, Inputs, LinkName

#: The method of an estimator whose output is the model's.
Method: TypeAlias = Literal["predict", "predict_proba", "decision_function"]


class UnreadableModelError(Exception):
    """A model that has no flat form; the message gives the reason."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table inside a model, each computed from a single column of the rows.

    Parameters
    ----------
    names : tuple of names or positions, of length m
        The column of the rows that each column is computed from.
    direction : array of int of shape (m,)
        1 where it rises with that column, -1 where it falls, 0 if neither is known.
    """

    names: tuple[Hashable, ...]
    direction: Indices

    def __len__(self) -> int:
        return len(self.names)

    def take(self, positions: Sequence[int] | Indices) -> Columns:
        """Return the columns at some positions."""
        names = tuple(self.names[position] for position in positions)
        return Columns(names, self.direction[np.asarray(positions, dtype=np.intp)])

    def turn(self, signs: Any) -> Columns:
        """Return the columns after functions with these directions: 1, -1 or 0 for each."""
        return replace(self, direction=np.asarray(self.direction * signs, dtype=np.intp))


def join_columns(parts: Sequence[Columns]) -> Columns:
    """Return the columns of several tables side by side."""
    names = tuple(name for part in parts for name in part.names)
    directions = [part.direction for part in parts]
    return Columns(names, np.concatenate([np.empty(0, dtype=np.intp), *directions]))


@dataclass(frozen=True)
class Computation:
    """A function of rows in two steps; equal to another one with the same steps."""

    table: Callable[[Rows], Any]
    numbers: Callable[[Any], Any]

    def __call__(self, rows: Rows) -> Any:
        """Return the numbers computed from the table of some rows."""
        return self.numbers(self.table(rows))


@dataclass(frozen=True, eq=False)
class Source:
    """The table that an estimator gets.

    Parameters
    ----------
    table : callable
        Takes rows as the model gets them, returns the estimator's table: a DataFrame, an array or
        a sparse matrix.
    columns : Columns
        The columns of that table.
    sample : DataFrame or array of shape (n, columns)
        The rows that the model is compared on.
    """

    table: Callable[[Rows], Any]
    columns: Columns
    sample: Rows

    def inputs(self, numbers: Callable[[Any], Array], columns: Columns | None = None) -> Inputs:
        """Return the inputs of a form: `numbers` takes the table, returns shape (n, m)."""
        columns = columns or self.columns
        compute = Computation(self.table, numbers)
        width = compute(self.sample[:1]).shape[1]
        if width != len(columns):
            raise UnreadableModelError(
                f"the model uses {width} numbers, but {len(columns)} were expected"
            )
        return Inputs(compute, columns.names, columns.direction)


@dataclass(frozen=True, eq=False)
class Task:
    """One estimator to be read.

    Parameters
    ----------
    estimator : object
        The fitted estimator.
    source : Source
        The table that it gets.
    method : str
        The method whose output is read.
    column : int
        The column of that output, for ``"predict_proba"``.
    read : callable
        Reads the task of any estimator, for those that contain others.
    """

    estimator: Any
    source: Source
    method: Method
    column: int
    read: Callable[[Task], Form]

    def read_part(self, estimator: Any, **changes: Any) -> Form:
        """Return the form of an estimator inside this one."""
        return self.read(replace(self, estimator=estimator, **changes))

    @property
    def label(self) -> int | None:
        """The class whose probability is read; none for a regression or a score."""
        return self.column if self.method == "predict_proba" else None

    @property
    def sign(self) -> float:
        """The factor of the log-odds of the second of two classes: 1 - expit(z) is expit(-z)."""
        return 1.0 if self.column == 1 else -1.0

    @property
    def class_name(self) -> str:
        """The name of the estimator's class."""
        return type(self.estimator).__name__


def refuse_labels(task: Task) -> None:
    """Raise if the output is the label that a classifier predicts."""
    if task.method == "predict" and hasattr(task.estimator, "classes_"):
        raise UnreadableModelError(
            f"{task.class_name}.predict returns labels; pass bayescfx.probability(model, label)"
        )


def check_probability(task: Task, link: LinkName, source: str) -> None:
    """Raise if a probability is read, but the link of `source` gives none."""
    if task.method == "predict_proba" and link not in ("expit", "softmax"):
        raise UnreadableModelError(f"{source} gives no probabilities")


def columns_of(rows: Rows) -> Columns:
    """Return the columns of rows: with direction 1 for numbers, and 0 for levels."""
    if isinstance(rows, pd.DataFrame):
        names = tuple(rows.columns)
        directions = [_direction(rows.iloc[:, place]) for place in range(rows.shape[1])]
        return Columns(names, np.array(directions, dtype=np.intp))
    width = rows.shape[1]
    directions = [_direction(pd.Series(rows[:, place])) for place in range(width)]
    return Columns(tuple(range(width)), np.array(directions, dtype=np.intp))


def _direction(cells: pd.Series[Any]) -> int:
    """Return 1 for a column of numbers or booleans, 0 for any other."""
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return 1
    if not pd.api.types.is_object_dtype(cells.dtype):
        return 0
    return int(all(isinstance(cell, int | float | np.number) for cell in cells.dropna()))


def matrix(table: Any) -> Array:
    """Return a table of numbers as a matrix of float64, with nan for missing cells."""
    if hasattr(table, "toarray"):
        table = table.toarray()
    if isinstance(table, pd.DataFrame):
        dtypes = set(table.dtypes)
        is_plain = all(isinstance(dtype, np.dtype) for dtype in dtypes)
        if not is_plain and all(map(pd.api.types.is_numeric_dtype, dtypes)):
            return table.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(table, dtype=np.float64)


def single_matrix(table: Any) -> Array:
    """Return a table of numbers rounded to float32, in float64."""
    with np.errstate(over="ignore"):
        return matrix(table).astype(np.float32).astype(np.float64)
