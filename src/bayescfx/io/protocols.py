"""What is sent to a model behind HTTP and what comes back, apart from the sending.

MLflow's scoring protocol: ``POST /invocations`` with ``{"dataframe_split": …}``, answered by
``{"predictions": […]}``. Open Inference Protocol v2: ``POST /v2/models/NAME/infer`` with named
tensors, answered by named tensors; ``GET /v2/models/NAME`` tells which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import ModelError
from bayescfx.model.columns import is_text, numeric_matrix, same_name
from bayescfx.tables import Rows


def cell(value: Any) -> Any:
    """Return a cell as a JSON value: missing is null, times are ISO text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if value is pd.NA or value is pd.NaT:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def numbers(raw: object, n: int, column: str | None) -> NDArray[np.float64]:
    """Return one number per row, shape (n,), from a list of numbers, of lists or of objects.

    `column` says which of several numbers per row to take, by position or name. What is raised
    continues "the model at … ".

    >>> numbers([[0.2, 0.8], [0.5, 0.5]], 2, "1")
    array([0.8, 0.5])
    """
    if not isinstance(raw, list) or len(raw) != n:
        got = f"{len(raw)} values" if isinstance(raw, list) else repr(raw)[:80]
        raise ModelError(f"must answer with one number for each of {n} rows; got {got}.")
    found = [_pick(value, column) for value in raw]
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise ModelError(
                f"must answer with numbers; got {value!r}. Choose another output, or serve "
                "probabilities."
            )
    return np.array([math.nan if value is None else value for value in found], dtype=np.float64)


def _pick(value: Any, column: str | None) -> Any:
    """Return the number of a row, which may be a list or an object of several."""
    if not isinstance(value, dict | list):
        return value
    named = value if isinstance(value, dict) else {str(k): v for k, v in enumerate(value)}
    if column is None and len(named) == 1:
        return next(iter(named.values()))
    if column not in named:
        raise ModelError(
            f"answers with several numbers per row: {', '.join(named)}; got output {column!r}. "
            "Choose one of them as the output."
        )
    return named[column]


@dataclass(frozen=True)
class Protocol:
    """How to talk to one model."""

    url: str  # where rows are sent
    about: str | None  # where the server tells about the model; None once it has, or never
    output: str | None  # which output to take
    inputs: Sequence[dict[str, Any]] = ()  # what the server says: name, datatype, shape of each

    key: ClassVar[str]  # under which the numbers stand in an answer
    holds: ClassVar[tuple[type, ...]]  # as what
    manner: ClassVar[str]  # who does it so

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the model takes, if it has one input for each."""
        return tuple(str(t["name"]) for t in self.inputs) if len(self.inputs) > 1 else None

    def told(self, content: Any) -> Protocol:
        """Return the protocol after what the server says about the model."""
        inputs = content.get("inputs") if isinstance(content, dict) else None
        return replace(self, about=None, inputs=inputs or ())

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        raise NotImplementedError

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from the body of an answer."""
        found = content.get(self.key) if isinstance(content, dict) else None
        if not isinstance(found, self.holds) or found == []:
            raise ModelError(
                f"must answer with {self.key!r}, as {self.manner}; got {repr(content)[:80]}. "
                "Check the address."
            )
        return self.chosen(found, n)

    def chosen(self, found: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from what stands under `key`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mlflow(Protocol):
    """MLflow's scoring protocol.

    >>> mlflow = Mlflow.of("http://localhost:5000/invocations", None)
    >>> mlflow.request(pd.DataFrame({"age": [30], "job": ["cook"]}))
    {'dataframe_split': {'columns': ['age', 'job'], 'data': [[30, 'cook']]}}
    """

    key, holds, manner = "predictions", (list, dict, int, float), "MLflow does"

    @classmethod
    def of(cls, url: str, output: str | None) -> Mlflow:
        """Return the protocol for an address; the path may be left out."""
        bare = url.rstrip("/")
        return cls(bare if bare.count("/") > 2 else f"{bare}/invocations", None, output)

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        table = rows.astype(object).to_numpy() if isinstance(rows, pd.DataFrame) else rows
        data = [[cell(value) for value in row] for row in table.tolist()]
        if isinstance(rows, pd.DataFrame):
            return {"dataframe_split": {"columns": list(rows.columns), "data": data}}
        return {"inputs": data}

    def chosen(self, found: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from the predictions."""
        named = isinstance(found, dict) and self.output in found
        return numbers(found[self.output], n, None) if named else numbers(found, n, self.output)


@dataclass(frozen=True)
class OpenInference(Protocol):
    """The Open Inference Protocol, version 2.

    >>> OpenInference.of("http://localhost:8080/v2/models/risk", None).url
    'http://localhost:8080/v2/models/risk/infer'
    """

    key, holds, manner = "outputs", (list,), "the Open Inference Protocol says"

    @classmethod
    def of(cls, url: str, output: str | None) -> OpenInference:
        """Return the protocol for the address of a model."""
        model = url.rstrip("/").removesuffix("/infer")
        return cls(f"{model}/infer", model, output)

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request: one tensor per column, or one for all."""
        if len(self.inputs) > 1:
            return {"inputs": self._named(rows)}
        columns = dict(rows.items()) if isinstance(rows, pd.DataFrame) and not self.inputs else {}
        if any(map(is_text, columns.values())):
            tensors = [_column(column, {"name": str(name)}) for name, column in columns.items()]
            return {"parameters": {"content_type": "pd"}, "inputs": tensors}
        told = self.inputs[0] if self.inputs else {"name": "input-0", "datatype": "FP64"}
        matrix = numeric_matrix(rows, "a model behind HTTP with one input")
        data = [cell(value) for value in matrix.ravel().tolist()]
        if told["datatype"].startswith(("INT", "UINT")):
            data = [None if value is None else int(value) for value in data]
        tensor = {"name": told["name"], "shape": list(matrix.shape), "datatype": told["datatype"]}
        return {"inputs": [{**tensor, "data": data}]}

    def _named(self, rows: Rows) -> list[dict[str, Any]]:
        """Return one tensor for each input that the server has told of."""
        if not isinstance(rows, pd.DataFrame):
            raise ModelError(
                f"the model has {len(self.inputs)} inputs and must get named columns; got an "
                "array. Make the space from a DataFrame."
            )
        columns = {same_name(name): rows[name] for name in rows.columns}
        names = [str(told["name"]) for told in self.inputs]
        missing = [name for name in names if same_name(name) not in columns]
        if missing:
            raise ModelError(
                f"the model at {self.url} must get the columns {', '.join(names)}; missing: "
                f"{', '.join(missing)}. Name the columns of the data like the model's inputs."
            )
        return [_column(columns[same_name(told["name"])], told) for told in self.inputs]

    def chosen(self, found: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from the tensor and column `output` names."""
        tensors = {str(tensor.get("name")): tensor for tensor in found}
        name, _, column = (self.output or "").rpartition(":")
        if self.output is None or self.output in tensors:
            tensor, picked = tensors.get(str(self.output), found[0]), None
        elif name in tensors or (len(tensors) == 1 and not name):
            tensor, picked = tensors.get(name, found[0]), column
        else:
            raise ModelError(
                f"has the outputs {', '.join(tensors)}; got output {self.output!r}. Choose one of "
                "them."
            )
        data = np.array(tensor.get("data"), dtype=object)
        shape = [int(size) for size in tensor.get("shape") or data.shape]
        if math.prod(shape) != data.size or not shape or shape[0] != n:
            raise ModelError(
                f"must answer with one number for each of {n} rows; got shape {shape} with "
                f"{data.size} values."
            )
        return numbers(data.reshape(shape).tolist(), n, picked)


def _column(column: pd.Series[Any], told: dict[str, Any]) -> dict[str, Any]:
    """Return a column as a tensor, of the type and shape that the server has told, if it has."""
    kind = str(getattr(column.dtype, "kind", "O"))
    own = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}.get(kind, "BYTES")
    datatype = str(told.get("datatype", own))
    shape = [len(column)] if len(told.get("shape") or ()) == 1 else [len(column), 1]
    data = [cell(value) for value in column.tolist()]
    whole = datatype.startswith(("INT", "UINT")) and kind == "f"
    if whole and all(v is not None and float(v).is_integer() for v in data):
        data = [int(value) for value in data]
    text = {"parameters": {"content_type": "str"}} if datatype == "BYTES" else {}
    return {"name": told["name"], "shape": shape, "datatype": datatype, "data": data, **text}
