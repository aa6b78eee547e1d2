"""What is sent to a model behind HTTP and what comes back, apart from the sending.

MLflow's scoring protocol: ``POST /invocations`` with ``{"dataframe_split": …}``, answered by
``{"predictions": […]}``. Open Inference Protocol v2: ``POST /v2/models/NAME/infer`` with named
tensors, answered by named tensors; ``GET /v2/models/NAME`` tells which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import ModelError
from bayescfx.model.columns import is_text, numeric_matrix, same_name
from bayescfx.tables import Rows


def cells(column: pd.Series[Any]) -> list[Any]:
    """Return a column as JSON values: missing is null, times are ISO text.

    Examples
    --------
    >>> cells(pd.Series([1.5, float("nan")])), cells(pd.Series(["a"]))
    ([1.5, None], ['a'])
    """
    return [cell(value) for value in column.tolist()]


def cell(value: Any) -> Any:
    """Return a cell as a JSON value: missing is null, times are ISO text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | bool | int):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def numbers(raw: object, n: int, column: str | None) -> NDArray[np.float64]:
    """Return one number per row from what a server answered.

    Parameters
    ----------
    raw : object
        A list of numbers, of lists or of objects; or a matrix.
    n : int
        How many rows were sent.
    column : str, optional
        Which of several numbers per row to take, by position or name.

    Raises
    ------
    ModelError
        If there is not one number per row; the text continues "the model at … ".

    Examples
    --------
    >>> numbers([[0.2, 0.8], [0.5, 0.5]], 2, "1")
    array([0.8, 0.5])
    """
    if not isinstance(raw, list | np.ndarray) or len(raw) != n:
        got = f"{len(raw)} values" if isinstance(raw, list | np.ndarray) else repr(raw)[:80]
        raise ModelError(f"must answer with one number for each of {n} rows; got {got}.")
    found = [_pick(value, column) for value in raw]
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number | None):
            raise ModelError(
                f"must answer with numbers; got {value!r}. Choose another output, or serve "
                "probabilities."
            )
    return np.array([math.nan if value is None else value for value in found], dtype=np.float64)


def _pick(value: Any, column: str | None) -> Any:
    if isinstance(value, Mapping):
        named: Mapping[str, Any] = {str(key): item for key, item in value.items()}
    elif isinstance(value, list | np.ndarray):
        named = {str(k): item for k, item in enumerate(value)}
    else:
        return value
    if column is None and len(named) == 1:
        return next(iter(named.values()))
    if column is None or column not in named:
        raise ModelError(
            f"answers with several numbers per row: {', '.join(named)}; got output {column!r}. "
            "Choose one of them as the output."
        )
    return named[column]


@dataclass(frozen=True)
class Protocol:
    """How to talk to one model.

    Parameters
    ----------
    url : str
        Where rows are sent.
    about : str, optional
        Where the server tells about the model; None once it has, or if it does not.
    output : str, optional
        Which output to take.
    """

    url: str
    about: str | None
    output: str | None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the model takes, if known."""
        return None

    def told(self, content: Any) -> Protocol:
        """Return the protocol after what the server says about the model."""
        return replace(self, about=None)

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        raise NotImplementedError

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row from the body of an answer."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mlflow(Protocol):
    """MLflow's scoring protocol.

    Examples
    --------
    >>> mlflow = Mlflow.of("http://localhost:5000/invocations", None)
    >>> mlflow.request(pd.DataFrame({"age": [30], "job": ["cook"]}))
    {'dataframe_split': {'columns': ['age', 'job'], 'data': [[30, 'cook']]}}
    >>> mlflow.outputs({"predictions": [1.5]}, 1)
    array([1.5])
    """

    @classmethod
    def of(cls, url: str, output: str | None) -> Mlflow:
        """Return the protocol for an address; the path may be left out."""
        bare = url.rstrip("/")
        return cls(bare if bare.count("/") > 2 else f"{bare}/invocations", None, output)

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        if not isinstance(rows, pd.DataFrame):
            return {"inputs": [[cell(value) for value in row] for row in rows.tolist()]}
        columns = [cells(rows[name]) for name in rows.columns]
        data = [list(row) for row in zip(*columns, strict=True)]
        return {"dataframe_split": {"columns": list(rows.columns), "data": data}}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row from the body of an answer."""
        if not isinstance(content, dict) or "predictions" not in content:
            raise ModelError(
                "must answer with 'predictions', as MLflow does; got "
                f"{repr(content)[:80]}. Check the address."
            )
        raw = content["predictions"]
        if isinstance(raw, dict) and self.output in raw:
            return numbers(raw[self.output], n, None)
        return numbers(raw, n, self.output)


@dataclass(frozen=True)
class Tensor:
    """An input of a model as the server describes it."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OpenInference(Protocol):
    """The Open Inference Protocol, version 2.

    Parameters
    ----------
    inputs : tuple of Tensor
        What the server says that the model takes; empty if it does not say.

    Examples
    --------
    >>> v2 = OpenInference.of("http://localhost:8080/v2/models/risk", None)
    >>> v2.url
    'http://localhost:8080/v2/models/risk/infer'
    >>> v2.request(np.array([[1.0, 2.0]]))["inputs"][0]["shape"]
    [1, 2]
    """

    inputs: tuple[Tensor, ...] = ()

    _KINDS: ClassVar[Mapping[str, str]] = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}

    @classmethod
    def of(cls, url: str, output: str | None) -> OpenInference:
        """Return the protocol for the address of a model."""
        model = url.rstrip("/").removesuffix("/infer")
        return cls(f"{model}/infer", model, output)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the model takes, if it has one input for each."""
        return tuple(tensor.name for tensor in self.inputs) if len(self.inputs) > 1 else None

    def told(self, content: Any) -> OpenInference:
        """Return the protocol after what the server says about the model."""
        given = content.get("inputs") or [] if isinstance(content, dict) else []
        inputs = tuple(
            Tensor(str(t["name"]), str(t["datatype"]), tuple(t.get("shape") or ())) for t in given
        )
        return replace(self, about=None, inputs=inputs)

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request: one tensor per column, or one for all."""
        if isinstance(rows, pd.DataFrame):
            if len(self.inputs) > 1:
                return {"inputs": self._named(rows, self.inputs)}
            if not self.inputs and any(is_text(rows[name]) for name in rows.columns):
                tensors = [self._column(str(name), rows[name]) for name in rows.columns]
                return {"parameters": {"content_type": "pd"}, "inputs": tensors}
        elif len(self.inputs) > 1:
            raise ModelError(
                f"the model has {len(self.inputs)} inputs and must get named columns; got an "
                "array. Make the space from a DataFrame."
            )
        name = self.inputs[0].name if self.inputs else "input-0"
        datatype = self.inputs[0].datatype if self.inputs else "FP64"
        matrix = numeric_matrix(rows, "a model behind HTTP with one input")
        data = [cell(value) for value in matrix.ravel().tolist()]
        if datatype.startswith(("INT", "UINT")):
            data = [None if value is None else int(value) for value in data]
        shape = list(matrix.shape)
        return {"inputs": [{"name": name, "shape": shape, "datatype": datatype, "data": data}]}

    def _named(self, rows: pd.DataFrame, inputs: Sequence[Tensor]) -> list[dict[str, Any]]:
        columns = {same_name(name): rows[name] for name in rows.columns}
        missing = [t.name for t in inputs if same_name(t.name) not in columns]
        if missing:
            raise ModelError(
                f"the model at {self.url} must get the columns "
                f"{', '.join(t.name for t in inputs)}; missing: {', '.join(missing)}. Name the "
                "columns of the data like the model's inputs."
            )
        return [self._column(t.name, columns[same_name(t.name)], t) for t in inputs]

    def _column(
        self, name: str, column: pd.Series[Any], tensor: Tensor | None = None
    ) -> dict[str, Any]:
        kind = str(getattr(column.dtype, "kind", "O"))
        datatype = tensor.datatype if tensor else self._KINDS.get(kind, "BYTES")
        shape = [len(column)] if tensor and len(tensor.shape) == 1 else [len(column), 1]
        data = cells(column)
        whole = datatype.startswith(("INT", "UINT")) and kind == "f"
        if whole and all(v is not None and float(v).is_integer() for v in data):
            data = [int(value) for value in data]
        text = {"parameters": {"content_type": "str"}} if datatype == "BYTES" else {}
        return {"name": name, "shape": shape, "datatype": datatype, "data": data, **text}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row from the body of an answer."""
        tensors = content.get("outputs") if isinstance(content, dict) else None
        if not isinstance(tensors, list) or not tensors:
            raise ModelError(
                "must answer with 'outputs', as the Open Inference Protocol says; got "
                f"{repr(content)[:80]}. Check the address."
            )
        tensor, column = self._chosen({str(t.get("name")): t for t in tensors})
        data = np.array(tensor.get("data"), dtype=object)
        shape = [int(size) for size in tensor.get("shape") or data.shape]
        if math.prod(shape) != data.size or not shape or shape[0] != n:
            raise ModelError(
                f"must answer with one number for each of {n} rows; got shape {shape} with "
                f"{data.size} values."
            )
        table = data.reshape(shape)
        return numbers(table.tolist(), n, column)

    def _chosen(self, tensors: Mapping[str, Any]) -> tuple[Any, str | None]:
        """Return the tensor that `output` names, and which column of it."""
        if self.output is None:
            return next(iter(tensors.values())), None
        if self.output in tensors:
            return tensors[self.output], None
        name, _, column = self.output.rpartition(":")
        if name in tensors:
            return tensors[name], column
        if len(tensors) == 1 and not name:
            return next(iter(tensors.values())), column
        raise ModelError(
            f"has the outputs {', '.join(tensors)}; got output {self.output!r}. Choose one of them."
        )
