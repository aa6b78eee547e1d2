"""Any model as the paper's f: rows in, one finite number per row out.

The library calls a user's model only through :class:`Model`, which checks what comes back and says
what is wrong with the row it happened on.
"""

from __future__ import annotations

import inspect
import math
import numbers
import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
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

Link: TypeAlias = Literal["logit"]


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

    def __call__(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; raise a ModelError if any is not finite."""
        y = self.scores(rows)
        bad = np.flatnonzero(~np.isfinite(y))
        if bad.size:
            raise self.fault(rows, int(bad[0]), y[bad[0]])
        return y

    def fingerprint(self) -> str | None:
        """Return a digest of the model's content; None for functions."""
        return self.content or fingerprint(self.predict)

    def identity(self, *, is_steady: bool = False) -> ModelIdentity:
        """Return what tells this model from others.

        `is_steady` says that the model object itself may serve to recognise it.
        """
        owner = getattr(self.origin, "__self__", self.origin) if is_steady else None
        return ModelIdentity(self.name, self.fingerprint, owner)

    def scores(self, rows: Rows) -> Array:
        """Return f of each row, shape ``(n,)``; outputs may be nan or infinite."""
        try:
            # a copy, since a model may write to what it gets
            raw = self.predict(rows.copy() if self.like is None else in_form_of(self.like, rows))
        except Exception as error:
            shown = ", ".join(self.describe(rows, i) for i in range(min(len(rows), 3)))
            which = "row" if len(rows) == 1 else f"{len(rows)} rows:"
            error.add_note(f"while evaluating {which} {shown}{', …' if len(rows) > 3 else ''}")
            raise
        y = answered(raw, rows)
        if y.shape == (len(rows), 1):
            y = y[:, 0]
        if y.shape != (len(rows),):
            several = y.ndim == 2 and len(y) == len(rows)
            raise ModelError(
                f"`model` returned shape {y.shape} for {len(rows)} rows; expected ({len(rows)},).",
                parameter="output" if several else None,
                advice="For a classifier pass one column, e.g. "
                "lambda X: clf.predict_proba(X)[:, 1]."
                if several
                else "It gets all rows at once and returns one number for each.",
            )
        if y.dtype.kind not in "biuf":
            y = self._numbers(y, rows)
        with np.errstate(over="ignore"):  # what is beyond the range of float64 is infinite
            scores = y.astype(np.float64)
        outside = (scores < 0) | (scores > 1)
        if self.link == "logit" and outside.any():
            i = int(outside.argmax())
            raise ModelError(
                f"`model` must return probabilities, between 0 and 1; got {float(y[i])!r} for "
                f"{self.describe(rows, i)}. Pass the model itself if it is no classifier."
            )
        return scores

    def _numbers(self, y: NDArray[Any], rows: Rows) -> Array:
        """Return outputs of whatever types as floats, or raise if one is no number."""
        for i, value in enumerate(y):
            # Text is refused although NumPy would parse "1.0": it is a label, not an output.
            if isinstance(value, np.timedelta64) or not isinstance(value, numbers.Real | np.bool_):
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
        if isinstance(rows, pd.DataFrame):
            cells = {name: rows[name].iloc[i] for name in rows.columns[:21]}
        else:
            names: Any = range(rows.shape[1]) if self.names is None else self.names
            cells = dict(zip(names, rows[i], strict=True))
        shown = [f"{name!r}: {as_python(cell)!r}" for name, cell in cells.items()]
        return "{" + ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "") + "}"


def as_model(model: object, schema: Schema | None = None) -> Model:
    """Return an object with ``predict``, or a callable on rows, as a `Model`.

    `schema` gives names to the columns of an array in messages.
    """
    names, adapter = None if schema is None else tuple(schema.places), adapter_of(model)
    like = None if schema is None or adapter is not None else schema.like
    if isinstance(model, Model):
        return model if names is None else replace(model, names=names, like=like)
    if inspect.isclass(model):
        raise ModelError(
            f"`model` must be an object; got the class {model.__name__}. Pass a fitted instance."
        )
    predict: Predict | None = getattr(model, "predict", None)
    if adapter is not None:
        predict = adapter.predict(model)
    elif not callable(predict):
        predict = model if callable(model) else None
    elif hasattr(model, "n_features_in_"):
        predict = fitted(model)
    if predict is None:
        raise ModelError(
            f"`model` must be callable or have `predict`; got {kind_of(model)}. Pass the fitted "
            "model, or a function of rows."
        )
    return Model(predict, None, *class_of(model), names, origin=model, like=like)


def answered(raw: object, rows: Rows) -> NDArray[Any]:
    """Return what a model returned for rows as an array of whatever type and shape it has."""
    raw = returned(raw, rows, "`model`", ModelError)
    if isinstance(raw, pd.Series | pd.DataFrame):
        kinds = [raw.dtype] if isinstance(raw, pd.Series) else list(raw.dtypes)
        if all(map(pd.api.types.is_numeric_dtype, kinds)):
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
    """Return numbers of whatever types as float64; those beyond its range are infinite."""
    try:
        with np.errstate(over="ignore"):
            return y.astype(np.float64)
    except OverflowError:
        most = sys.float_info.max
        return np.array([v if not abs(v) > most else math.inf if v > 0 else -math.inf for v in y])


def kind_of(value: object) -> str:
    """Return what a value is, for messages."""
    return f"the class {value.__name__}" if inspect.isclass(value) else type(value).__name__
