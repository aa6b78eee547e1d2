"""Any model as the paper's f: rows in, one finite number per row out.

The library calls a user's model only through :class:`Model`, which checks the outputs. Errors
name the row.
"""

from __future__ import annotations

import inspect
import math
import numbers
import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.arrays import Array
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Rows, in_form_of, returned
from bayescfx.data.values import as_python
from bayescfx.errors import ModelError
from bayescfx.models.adapters import Predict, adapter_of, fitted
from bayescfx.models.identity import ModelIdentity, class_of, fingerprint
from bayescfx.models.labels import Labels, read_labels, returns_labels

Link: TypeAlias = Literal["logit"]

TAKES_ARRAY_HINT = (
    "The model gets a DataFrame with the columns of the space. If it takes arrays, pass "
    "lambda X: model(X.to_numpy())."
)
TAKES_TABLE_HINT = (
    "The model gets an array, because the space was made from one. If it takes a DataFrame, make "
    "the space from a DataFrame."
)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The model f as a checked function of rows; made by :func:`as_model`."""

    predict: Predict  # rows to numbers: (n,), (n, 1), a list or a Series
    link: Link | None = None  # the scale on which a surrogate sees the outputs; None: their own
    name: str | None = None  # what the model is, so that evaluations in a file are not mixed up
    local: bool = False  # whether it is an estimator in this process: a thousand rows cost little
    names: tuple[Hashable, ...] | None = None  # of columns, for messages about rows of an array
    origin: object = None  # what the user passed
    content: str | None = None  # a digest of what it was read from, if known
    like: Any = None  # an empty table of polars or Arrow, if it takes such tables
    inner: Predict | None = None  # what `predict` wraps, if it only guards it; it can be read
    output: str | None = None  # what the output is called in texts; None: prediction
    note: str | None = None  # what readers of its outputs must know
    labels: Labels | None = None  # of a classifier
    label: int | None = None  # the position of the label whose probability it returns
    is_bare: bool = False  # a classifier whose target says which number is its output

    def __call__(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; raise a ModelError if any is not finite."""
        y = self.scores(rows)
        bad = np.flatnonzero(~np.isfinite(y))
        if bad.size:
            raise self.fault(rows, int(bad[0]), y[bad[0]])
        return y

    @property
    def about(self) -> dict[str, str]:
        """What readers of the outputs should know, as in `Explanation.about`."""
        facts = {"output": self.output, "note": self.note}
        return {name: text for name, text in facts.items() if text is not None}

    def predicted_labels(self, rows: Rows) -> tuple[Any, ...]:
        """Return the label predicted for each row; none unless it is a classifier that runs here.

        Rows that are scored for their labels do not count, which no other model allows.
        """
        if self.labels is None or not self.local:
            return ()
        return tuple(self.labels.predict(rows))

    def fingerprint(self) -> str | None:
        """Return a digest of the model's content; None for functions."""
        return self.content or fingerprint(self.predict)

    def identity(self, *, is_steady: bool = False) -> ModelIdentity:
        """Return the identity of this model.

        `is_steady` says that the model object itself may serve to recognise it.
        """
        owner = getattr(self.origin, "__self__", self.origin) if is_steady else None
        return ModelIdentity(self.name, self.fingerprint, owner)

    def scores(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; outputs may be nan or infinite."""
        try:
            # a copy, since a model may write to what it gets
            given = rows.copy() if self.like is None else in_form_of(self.like, rows)
            raw = self.predict(given)
        except Exception as error:
            error.add_note(self._failed_rows(rows))
            for hint in _form_hint(error, rows):
                error.add_note(hint)
            raise
        y = answered(raw, rows)
        if y.shape == (len(rows), 1):
            y = y[:, 0]
        if y.shape != (len(rows),):
            raise _shape_error(y.shape, len(rows))
        if y.dtype.kind not in "biuf":
            y = self._numbers(y, rows)
        with np.errstate(over="ignore"):  # what is beyond the range of float64 is infinite
            scores = y.astype(np.float64)
        if self.link == "logit":
            self._check_probabilities(scores, rows)
        return scores

    def _failed_rows(self, rows: Rows) -> str:
        """Return a note on the rows for which the model raised an error."""
        shown = ", ".join(self.describe(rows, i) for i in range(min(len(rows), 3)))
        which = "row" if len(rows) == 1 else f"{len(rows)} rows:"
        return f"while evaluating {which} {shown}{', …' if len(rows) > 3 else ''}"

    def _check_probabilities(self, scores: Array, rows: Rows) -> None:
        """Raise if an output is no probability."""
        outside = (scores < 0) | (scores > 1)
        if outside.any():
            i = int(outside.argmax())
            raise ModelError(
                f"`model` must return probabilities, between 0 and 1; got {float(scores[i])!r} for "
                f"{self.describe(rows, i)}. Pass the model itself if it is no classifier."
            )

    def _numbers(self, y: NDArray[Any], rows: Rows) -> Array:
        """Return outputs of any type as floats, or raise if one is no number."""
        for i, value in enumerate(y):
            if not _is_real(value):
                raise ModelError(
                    f"`model` must return numbers; got {as_python(value)!r} for "
                    f"{self.describe(rows, i)}.",
                    parameter="model",
                    advice="For a classifier pass bayescfx.probability(model, label).",
                )
        return as_floats(y)

    def fault(self, rows: Rows, i: int, output: float) -> ModelError:
        """Return the error for an output that is not a finite number."""
        return ModelError(
            f"`model` returned {float(output)!r} for {self.describe(rows, i)}.",
            parameter="on_fault",
            advice="Exclude that region with space.require, or pass on_fault='skip'.",
        )

    def describe(self, rows: Rows, i: int) -> str:
        """Return row `i` as the text of a dictionary of its values, 20 of them."""
        cells = self._named_cells(rows, i)
        shown = [f"{name!r}: {as_python(cell)!r}" for name, cell in cells.items()]
        if len(shown) > 20:
            shown[20:] = ["…"]
        return "{" + ", ".join(shown) + "}"

    def _named_cells(self, rows: Rows, i: int) -> dict[Any, Any]:
        """Return the first cells of row `i` by column."""
        if isinstance(rows, pd.DataFrame):
            return {name: rows[name].iloc[i] for name in rows.columns[:21]}
        names: Any = range(rows.shape[1]) if self.names is None else self.names
        return dict(zip(names, rows[i], strict=True))


def as_model(model: object, schema: Schema | None = None) -> Model:
    """Return an object with ``predict``, or a callable on rows, as a `Model`.

    `schema` gives names to the columns of an array in messages.
    """
    made = model
    if not isinstance(made, Model):
        predict = _predict_function(model)
        labels = read_labels(model) if returns_labels(model) else None
        if labels is not None:
            return bare_classifier(labels, model, schema)
        if predict is None:
            raise _not_callable(model)
        made = Model(predict, None, *class_of(model), origin=model)
    if schema is None:
        return made
    like = schema.like if adapter_of(model) is None else None
    return replace(made, names=tuple(schema.places), like=like)


def bare_classifier(labels: Labels, model: object, schema: Schema | None = None) -> Model:
    """Return a classifier as a model whose output is chosen by the target."""
    names = None if schema is None else tuple(schema.places)
    predict = partial(refuse_rows, labels.estimator, labels.listed)
    return Model(
        predict, None, labels.name, labels.local, names, model, labels=labels, is_bare=True
    )


def refuse_rows(_: object, listed: str, rows: Rows) -> object:
    """Raise the error for a classifier that is used as if it returned numbers."""
    raise ModelError(
        f"`model` must return numbers; it is a classifier of the labels {listed}, asked for "
        f"{len(rows)} rows without a target.",
        parameter="model",
        advice="Pass bayescfx.probability(model, label).",
    )


def _not_callable(model: object) -> ModelError:
    """Return the error for an object that can't be called on rows."""
    if inspect.isclass(model):
        return ModelError(
            f"`model` must be an object; got the class {model.__name__}. Pass a fitted instance."
        )
    return ModelError(
        f"`model` must be callable or have `predict`; got {kind_of(model)}. Pass the fitted "
        "model, or a function of rows."
    )


def _predict_function(model: object) -> Predict | None:
    """Return the function that calls a model on rows; None if there is none."""
    if inspect.isclass(model):
        return None
    adapter = adapter_of(model)
    if adapter is not None:
        return adapter.predict(model)
    predict: Predict | None = getattr(model, "predict", None)
    if not callable(predict):
        return model if callable(model) else None
    return fitted(model) if hasattr(model, "n_features_in_") else predict


def _shape_error(shape: tuple[int, ...], n: int) -> ModelError:
    """Return the error for outputs of another shape than ``(n,)``."""
    text = f"`model` returned shape {shape} for {n} rows; expected ({n},)."
    if len(shape) == 2 and shape[0] == n:
        advice = (
            "If these are several outputs, pass one of them, e.g. "
            "lambda X: model.predict(X)[:, 0]; for a classifier pass "
            "bayescfx.probability(model, label)."
        )
        return ModelError(text, parameter="output", advice=advice)
    return ModelError(text, advice="It gets all rows at once and returns one number for each.")


def _form_hint(error: Exception, rows: Rows) -> list[str]:
    """Return a hint for a model that fails because it takes arrays, or tables, and gets the other.

    The error decides: a model is not called again to find out.
    """
    if isinstance(rows, pd.DataFrame):
        return [TAKES_ARRAY_HINT] if _takes_array(error, rows) else []
    return [TAKES_TABLE_HINT] if _takes_table(error) else []


def _takes_array(error: Exception, rows: pd.DataFrame) -> bool:
    """Return whether an error shows that a model uses a table as an array."""
    if isinstance(error, KeyError):  # of X[0]
        return isinstance(error.args[0], int) and error.args[0] not in rows.columns
    if isinstance(error, AttributeError):  # of X.reshape
        return "'DataFrame' object" in str(error)
    return isinstance(error, pd.errors.InvalidIndexError)  # of X[:, 0]


def _takes_table(error: Exception) -> bool:
    """Return whether an error shows that a model uses an array as a table."""
    if isinstance(error, AttributeError):  # of X.iloc
        return "'numpy.ndarray' object" in str(error)
    return isinstance(error, IndexError) and "only integers, slices" in str(error)  # of X["bmi"]


def _is_real(value: Any) -> bool:
    """Return whether an output is a number.

    Text is none, although NumPy would parse "1.0": it is a label.
    """
    if isinstance(value, np.timedelta64):
        return False
    return isinstance(value, numbers.Real | np.bool_)


def answered(raw: object, rows: Rows) -> NDArray[Any]:
    """Return the outputs of a model for rows as an array of any type and shape."""
    raw = returned(raw, rows, "`model`", ModelError)
    if isinstance(raw, pd.Series | pd.DataFrame):
        dtypes = [raw.dtype] if isinstance(raw, pd.Series) else raw.dtypes
        if all(map(pd.api.types.is_numeric_dtype, dtypes)):
            return raw.to_numpy(dtype=np.float64, na_value=np.nan)
        return raw.to_numpy(dtype=object)
    try:
        return np.asarray(raw)
    except Exception as error:
        raise ModelError(
            f"`model` must return an array of numbers; got {kind_of(raw)}: {error}. "
            "Convert what it returns, e.g. with numpy.asarray."
        ) from error


def as_floats(y: NDArray[Any]) -> Array:
    """Return numbers of any type as float64; those beyond its range are infinite."""
    try:
        with np.errstate(over="ignore"):
            return y.astype(np.float64)
    except OverflowError:
        return np.array([_clipped(value) for value in y])


def _clipped(value: Any) -> float:
    """Return a number, infinite if it is beyond the range of float64."""
    if abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return float(value)


def kind_of(value: object) -> str:
    """Return the type of a value, for messages."""
    return f"the class {value.__name__}" if inspect.isclass(value) else type(value).__name__
