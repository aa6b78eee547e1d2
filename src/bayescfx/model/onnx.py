"""ONNX Runtime sessions as functions of rows and as classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import ModelError
from bayescfx.model.columns import numeric_matrix, same_name

_ONNX_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


@dataclass(frozen=True, slots=True)
class Onnx:
    """An ONNX Runtime session: one matrix as input, or one input per column."""

    session: Any  # an onnxruntime.InferenceSession
    output: str | None = None  # which output to take; the first by default

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        name = self.output or self.session.get_outputs()[0].name
        return self.session.run([name], self.feed(rows))[0]

    def feed(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return what the session takes."""
        inputs = self.session.get_inputs()
        if not onnx_by_column(self.session):
            (matrix,) = inputs
            if _dtype(matrix) is object:
                return {matrix.name: np.asarray(rows, dtype=object)}
            numbers = numeric_matrix(rows, "this ONNX model")
            return {matrix.name: numbers.astype(_dtype(matrix))}
        wanted = ", ".join(given.name for given in inputs)
        if not isinstance(rows, pd.DataFrame):
            raise ModelError(
                f"this ONNX model must get a table with the columns {wanted}; got an "
                "array. Make the space from a DataFrame."
            )
        columns = {same_name(name): rows[name] for name in rows.columns}
        missing = [given.name for given in inputs if same_name(given.name) not in columns]
        if missing:
            raise ModelError(
                f"this ONNX model must get the columns {wanted}; missing: "
                f"{', '.join(missing)}. Name the columns of the data like the model's inputs."
            )
        return {given.name: _column(given, columns[same_name(given.name)]) for given in inputs}


def onnx_by_column(session: Any) -> bool:
    """Tell whether an ONNX model has one input per column."""
    inputs = session.get_inputs()
    return len(inputs) > 1 or len(inputs[0].shape) == 1


def _column(given: Any, column: pd.Series[Any]) -> NDArray[Any]:
    try:
        cells = column.to_numpy(dtype=_dtype(given), na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"this ONNX model must get {given.type} for {column.name!r}; got dtype "
            f"{column.dtype}: {error}. Convert the column."
        ) from error
    return cells if len(given.shape) == 1 else cells.reshape(-1, 1)


def _dtype(given: Any) -> Any:
    if given.type not in _ONNX_TYPES:
        raise ModelError(
            f"this ONNX model must take numbers or text; its input {given.name!r} takes "
            f"{given.type}. Pass a function that calls it."
        )
    return _ONNX_TYPES[given.type]


@dataclass(frozen=True, slots=True)
class OnnxClassifier:
    """An ONNX classifier: its second output holds probabilities, as a matrix or as maps."""

    session: Any
    classes_: tuple[Any, ...]

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return one probability per row and class."""
        name = self.session.get_outputs()[1].name
        raw = self.session.run([name], Onnx(self.session).feed(rows))[0]
        if isinstance(raw, list):
            return np.array([[line[label] for label in self.classes_] for line in raw])
        return np.asarray(raw)


def onnx_classifier(session: Any) -> OnnxClassifier | None:
    """Return an ONNX session as a classifier if it gives labels and probabilities.

    A session does not tell the labels of a matrix of probabilities: here they are numbered.
    """
    outputs = session.get_outputs()
    if len(outputs) != 2:
        return None
    if outputs[1].type.startswith("seq(map("):
        return OnnxClassifier(session, _map_labels(session))
    shape = outputs[1].shape
    if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 1:
        return OnnxClassifier(session, tuple(range(shape[1])))
    return None


def _map_labels(session: Any) -> tuple[Any, ...]:
    """Return the labels of an ONNX classifier from the answer to a row of zeros."""
    feed = {}
    for given in session.get_inputs():
        shape = [n if isinstance(n, int) and n > 0 else 1 for n in given.shape]
        kind = _dtype(given)
        feed[given.name] = np.full(shape, "", object) if kind is object else np.zeros(shape, kind)
    try:
        line = session.run([session.get_outputs()[1].name], feed)[0][0]
    except Exception as error:  # the runtime has no common base for its errors
        raise ModelError(
            "the labels of this ONNX classifier can't be told, because it refuses a row of zeros: "
            f"{error}. Export it without ZipMap."
        ) from error
    return tuple(line)
