"""What is sent to a model behind HTTP and what comes back, apart from the sending.

Errors continue a sentence that begins with "the model at … ".

MLflow's scoring protocol: ``POST /invocations`` with ``{"dataframe_split": …}``, answered by
``{"predictions": […]}``. Open Inference Protocol v2: ``POST /v2/models/NAME/infer`` with named
tensors, answered by named tensors; ``GET /v2/models/NAME`` tells which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.data.tables import Rows
from bayescfx.errors import ModelError
from bayescfx.models.input_columns import is_text, named_columns, numeric_matrix
from bayescfx.models.model import as_floats


def cell(value: Any) -> Any:
    """Return a cell as a JSON value: missing is null, times are ISO text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.integer | np.bool_) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, np.floating):
        return cell(float(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def numbers(raw: object, n: int, column: str | None) -> NDArray[np.float64]:
    """Return one number per row, shape (n,): of several, the one at a position or of a name.

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
    return as_floats(np.array([math.nan if v is None else v for v in found], dtype=object))


def _pick(value: Any, column: str | None) -> Any:
    """Return the number of a row, which may be a list or an object of several."""
    if not isinstance(value, dict | list):
        if column is None:
            return value
        raise ModelError(f"answers with one number per row; got output {column!r}. Leave it out.")
    named = value if isinstance(value, dict) else {str(k): v for k, v in enumerate(value)}
    if column is None and len(named) == 1:
        return next(iter(named.values()))
    if column not in named:
        raise ModelError(
            f"answers with several numbers per row: {', '.join(named)}; got output {column!r}. "
            "Choose one of them as the output."
        )
    return named[column]


def _under(key: str, kinds: tuple[type, ...], content: Any, manner: str) -> Any:
    """Return what stands under a key of an answer."""
    if isinstance(content, str):
        raise ModelError(f"must answer in JSON; got {content[:80]!r}. Check the address.")
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, kinds) or found == []:
        raise ModelError(
            f"must answer with {key!r}, as {manner}; got {repr(content)[:80]}. Check the address."
        )
    return found


class Mlflow:
    """MLflow's scoring protocol.

    >>> Mlflow("http://localhost:5000").request(pd.DataFrame({"age": [30], "job": ["cook"]}))
    {'dataframe_split': {'columns': ['age', 'job'], 'data': [[30, 'cook']]}}
    """

    about: str | None = None  # the server does not tell about the model
    inputs: Sequence[dict[str, Any]] = ()

    def __init__(self, url: str, output: str | None = None) -> None:
        bare = url.rstrip("/")  # the path may be left out
        self.url, self.output = bare if bare.count("/") > 2 else f"{bare}/invocations", output

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        table = rows.astype(object).to_numpy() if isinstance(rows, pd.DataFrame) else rows
        data = [[cell(value) for value in row] for row in table.tolist()]
        if isinstance(rows, pd.DataFrame):
            return {"dataframe_split": {"columns": list(rows.columns), "data": data}}
        return {"inputs": data}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from the body of an answer."""
        found = _under("predictions", (list, dict, int, float), content, "MLflow does")
        named = isinstance(found, dict) and self.output in found
        return numbers(found[self.output], n, None) if named else numbers(found, n, self.output)


class OpenInference:
    """The Open Inference Protocol, version 2."""

    inputs: Sequence[dict[str, Any]] = ()  # what the server tells: name, datatype, shape of each

    def __init__(self, url: str, output: str | None = None) -> None:
        model = url.rstrip("/").removesuffix("/infer")
        self.url, self.output = f"{model}/infer", output
        self.about: str | None = model  # where the server tells about the model; None once it has

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request: one tensor per column, or one for all."""
        if len(self.inputs) > 1:
            names = [str(told["name"]) for told in self.inputs]
            found = named_columns(rows, names, f"the model at {self.url}")
            return {"inputs": [_column(*pair) for pair in zip(found, self.inputs, strict=True)]}
        columns = dict(rows.items()) if isinstance(rows, pd.DataFrame) and not self.inputs else {}
        if any(map(is_text, columns.values())):
            tensors = [_column(column, {"name": str(name)}) for name, column in columns.items()]
            return {"parameters": {"content_type": "pd"}, "inputs": tensors}
        told = self.inputs[0] if self.inputs else {"name": "input-0", "datatype": "FP64"}
        matrix = numeric_matrix(rows, "a model behind HTTP with one input")
        tensor = {"name": told["name"], "shape": list(matrix.shape), "datatype": told["datatype"]}
        return {"inputs": [{**tensor, "data": _cells(matrix.ravel().tolist(), told["datatype"])}]}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), from the tensor and column `output` names."""
        found = _under("outputs", (list,), content, "the Open Inference Protocol says")
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
    data = _cells(column.tolist(), datatype)
    text = {"parameters": {"content_type": "str"}} if datatype == "BYTES" else {}
    return {"name": told["name"], "shape": shape, "datatype": datatype, "data": data, **text}


def _cells(values: list[Any], datatype: str) -> list[Any]:
    """Return cells as JSON values: whole numbers where the server wants such and all are."""
    data = [cell(value) for value in values]
    whole = all(value is None or (type(value) is float and value.is_integer()) for value in data)
    if whole and datatype.startswith(("INT", "UINT")):
        return [None if value is None else int(value) for value in data]
    return data
