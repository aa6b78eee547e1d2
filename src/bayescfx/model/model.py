"""Any model as the paper's f: rows in, one finite number per row out.

The library calls a user's model only through :class:`Model`, which checks what comes back: the
shape, that it is numbers, and that they are finite. Whatever is wrong is said with the row it
happened on.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.arrays import Array
from bayescfx.errors import ModelError
from bayescfx.model.adapters import ADAPTERS, Predict, adapted
from bayescfx.model.columns import as_fitted
from bayescfx.space.schema import Schema
from bayescfx.tables import Rows

Link: TypeAlias = Literal["logit"]

_SHOWN_CELLS = 20
_SHOWN_ROWS = 3


@dataclass(frozen=True, slots=True)
class Model:
    """The model f as a checked function of rows; made by :func:`as_model`.

    Parameters
    ----------
    predict : callable
        Rows to numbers: ``(n,)``, ``(n, 1)``, a list or a Series.
    link : {"logit"}, optional
        The scale on which a surrogate sees the outputs; ``None`` is their own.
    name : str, optional
        What the model is, if it can be told: evaluations in a file are not mixed up by mistake.
    names : tuple, optional
        Column names for messages about rows of an array.

    Examples
    --------
    >>> Model(lambda X: X[:, 0] * 2)(np.array([[1.0], [3.0]]))
    array([2., 6.])
    """

    predict: Predict
    link: Link | None = None
    name: str | None = None
    names: tuple[Hashable, ...] | None = None

    def __call__(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; raise if any output is not finite.

        Raises
        ------
        ModelError
            If the model returns something else than one finite number per row. What the model
            itself raises passes through, with a note that names the rows.
        """
        y = self.scores(rows)
        bad = np.flatnonzero(~np.isfinite(y))
        if bad.size:
            raise self.fault(rows, int(bad[0]), y[bad[0]])
        return y

    def scores(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; outputs may be nan or infinite."""
        try:
            # A copy, since a model may write to what it gets.
            raw = self.predict(rows.copy())
        except Exception as error:
            error.add_note(self._note(rows))
            raise
        y = self._one_per_row(_array(raw), len(rows))
        numeric = y if y.dtype.kind in "biuf" else self._numbers(y, rows)
        scores = numeric.astype(np.float64)
        if self.link == "logit":
            self._check_probabilities(scores, rows)
        return scores

    def fault(self, rows: Rows, i: int, output: float) -> ModelError:
        """Return the error for an output that is not a finite number."""
        return ModelError(
            f"`model` returned {float(output)!r} for {self.describe(rows, i)}. "
            "Exclude that region with space.require, or pass on_fault='skip'."
        )

    def describe(self, rows: Rows, i: int) -> str:
        """Return row `i` as the text of a dictionary of its values."""
        cells: Mapping[Any, Any]
        if isinstance(rows, pd.DataFrame):
            cells = {name: rows[name].iloc[i] for name in rows.columns[: _SHOWN_CELLS + 1]}
        else:
            names = self.names if self.names is not None else range(rows.shape[1])
            cells = dict(zip(names, rows[i], strict=True))
        shown = [f"{name!r}: {plain(cell)!r}" for name, cell in cells.items()]
        rest = ", …" if len(shown) > _SHOWN_CELLS else ""
        return "{" + ", ".join(shown[:_SHOWN_CELLS]) + rest + "}"

    def _note(self, rows: Rows) -> str:
        n = len(rows)
        shown = ", ".join(self.describe(rows, i) for i in range(min(n, _SHOWN_ROWS)))
        if n == 1:
            return f"while evaluating row {shown}"
        return f"while evaluating {n} rows: {shown}{', …' if n > _SHOWN_ROWS else ''}"

    def _one_per_row(self, raw: NDArray[Any], n: int) -> NDArray[Any]:
        if raw.shape == (n,):
            return raw
        if raw.shape == (n, 1):
            return raw[:, 0]
        advice = (
            "For a classifier pass one column, e.g. lambda X: clf.predict_proba(X)[:, 1]."
            if raw.ndim == 2 and raw.shape[0] == n
            else "It gets all rows at once and returns one number for each."
        )
        raise ModelError(
            f"`model` returned shape {raw.shape} for {n} rows; expected ({n},). {advice}"
        )

    def _numbers(self, raw: NDArray[Any], rows: Rows) -> Array:
        """Return an object array as numbers, or say which row has none."""
        for i, value in enumerate(raw):
            # Text is refused although NumPy would parse "1.0": it is a label, not an output.
            if not isinstance(value, numbers.Real | np.bool_):
                raise ModelError(
                    f"`model` must return numbers; got {plain(value)!r} for "
                    f"{self.describe(rows, i)}. For a classifier pass "
                    f"bayescfx.probability(model, label)."
                )
        return raw.astype(np.float64)

    def _check_probabilities(self, y: Array, rows: Rows) -> None:
        outside = np.flatnonzero((y < 0) | (y > 1))
        if outside.size:
            i = int(outside[0])
            raise ModelError(
                f"`model` must return probabilities, between 0 and 1; got {float(y[i])!r} for "
                f"{self.describe(rows, i)}. Pass the model itself if it is no classifier."
            )


@dataclass(frozen=True, slots=True)
class Estimator:
    """A fitted estimator, which gets rows as it was fitted on them."""

    estimator: Any

    def __call__(self, rows: Rows) -> object:
        """Return the outputs for the rows."""
        return self.estimator.predict(as_fitted(self.estimator, rows))


def as_model(model: object, schema: Schema | None = None) -> Model:
    """Return a user's model as a checked :class:`Model`.

    Parameters
    ----------
    model : object
        A callable on rows, or an object with ``predict`` (which is preferred if it is both). What
        it gets is what the space was made from: a frame or an array.
    schema : Schema, optional
        Gives names to the columns of an array in messages.

    Returns
    -------
    Model
        A function of rows.

    Raises
    ------
    ModelError
        If `model` is neither.

    Examples
    --------
    >>> as_model(lambda X: [sum(row) for row in X])(np.array([[1.0, 2.0]]))
    array([3.])
    """
    names = None if schema is None else tuple(column.name for column in schema.columns)
    if isinstance(model, Model):
        return replace(model, names=names) if names is not None else model
    if inspect.isclass(model):
        raise ModelError(
            f"`model` must be an object; got the class {model.__name__}. Pass a fitted instance."
        )
    return Model(predict_of(model), name=name_of(model), names=names)


def predict_of(model: object) -> Predict:
    """Return the function that a user's model is."""
    adapt: Callable[[object], Predict] | None = adapted(model, ADAPTERS)
    if adapt is not None:
        return adapt(model)
    predict: Predict | None = getattr(model, "predict", None)
    if callable(predict):
        return Estimator(model) if hasattr(model, "n_features_in_") else predict
    if callable(model):
        return model
    raise ModelError(
        f"`model` must be callable or have `predict`; got {kind_of(model)}. Pass the fitted "
        "model, or a function of rows."
    )


def _array(raw: object) -> NDArray[Any]:
    """Return what a model returned as an array of whatever type and shape it has."""
    if isinstance(raw, pd.Series | pd.DataFrame):
        kinds = [raw.dtype] if isinstance(raw, pd.Series) else list(raw.dtypes)
        if all(pd.api.types.is_numeric_dtype(kind) for kind in kinds):
            return raw.to_numpy(dtype=np.float64, na_value=np.nan)
        return raw.to_numpy(dtype=object)
    try:
        table = np.asarray(raw)
    except Exception as error:
        raise ModelError(
            f"`model` must return an array of numbers; got {kind_of(raw)}: {error}. "
            "Convert what it returns, e.g. with numpy.asarray."
        ) from error
    return table


def name_of(model: object) -> str | None:
    """Return the class of an estimator; functions have no name that would tell two models apart."""
    owner = getattr(model, "__self__", model)
    return type(owner).__qualname__ if hasattr(owner, "predict") else None


def kind_of(value: object) -> str:
    """Return what a value is, for messages."""
    return f"the class {value.__name__}" if inspect.isclass(value) else type(value).__name__


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's own; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
