"""Request and response formats of models behind HTTP.

Error messages continue a sentence that begins with "the model at … ".

MLflow's scoring protocol: ``POST /invocations`` with ``{"dataframe_split": …}``, answered by
``{"predictions": […]}``. Open Inference Protocol v2: ``POST /v2/models/NAME/infer`` with named
tensors, answered by named tensors; ``GET /v2/models/NAME`` describes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.data.tables import Rows
from bayescfx.errors import ModelError
from bayescfx.models.input_columns import is_text, named_columns, numeric_matrix
from bayescfx.models.model import as_floats

#: Types of tensors by the kind of a dtype; others are text.
_DATATYPES = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}


def cell(value: Any) -> Any:
    """Return a cell as a JSON value: missing is null, times are ISO text."""
    if isinstance(value, float):  # np.float64, too
        return value if math.isfinite(value) else None
    if isinstance(value, str | bool | int | None):
        return value
    return _other_cell(value)


def _other_cell(value: Any) -> Any:
    """Return a cell of pandas, NumPy or ``datetime`` as a JSON value."""
    if isinstance(value, np.generic):
        return _numpy_cell(value)
    if isinstance(value, type(pd.NA) | type(pd.NaT)):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _numpy_cell(value: np.generic) -> Any:
    """Return a cell of NumPy as a JSON value."""
    kind = value.dtype.kind
    if kind == "f":
        return cell(float(value))
    return value.item() if kind in "iub" else str(value)


def numbers(raw: object, n: int, column: str | None) -> NDArray[np.float64]:
    """Return one number per row, shape ``(n,)``.

    If rows have several numbers, `column` is the name or the position of one of them.

    >>> numbers([[0.2, 0.8], [0.5, 0.5]], 2, "1")
    array([0.8, 0.5])
    """
    rows = _checked_rows(raw, n)
    values = [_number(_pick(value, column)) for value in rows]
    return as_floats(np.array(values, dtype=object))


def _checked_rows(raw: object, n: int) -> list[Any]:
    """Return a list of `n` values; raise a ModelError for anything else."""
    expected = f"must answer with one number for each of {n} rows; got"
    if not isinstance(raw, list):
        raise ModelError(f"{expected} {repr(raw)[:80]}.")
    if len(raw) != n:
        raise ModelError(f"{expected} {len(raw)} values.")
    return raw


def _number(value: Any) -> int | float:
    """Return a JSON value as a number, nan for null."""
    if value is None:
        return math.nan
    if type(value) not in (int, float):  # true and false are no numbers
        raise ModelError(
            f"must answer with numbers; got {value!r}. Choose another output, or serve "
            "probabilities."
        )
    return cast(float, value)


def _pick(value: Any, column: str | None) -> Any:
    """Return the number of one row, which may be a list or an object of several."""
    if isinstance(value, dict | list):
        return _pick_named(_by_name(value), column)
    if column is not None:
        raise ModelError(f"answers with one number per row; got output {column!r}. Leave it out.")
    return value


def _pick_named(by_name: dict[str, Any], column: str | None) -> Any:
    """Return one of several numbers by its name; the only one without a name."""
    if column is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    if column not in by_name:
        raise ModelError(
            f"answers with several numbers per row: {', '.join(by_name)}; got output {column!r}. "
            "Choose one of them as the output."
        )
    return by_name[column]


def _by_name(values: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Return several numbers by name; those of a list by their position."""
    if isinstance(values, dict):
        return values
    return {str(k): value for k, value in enumerate(values)}


def _content_of(key: str, kinds: tuple[type, ...], content: Any, protocol: str) -> Any:
    """Return the value of a key of an answer; raise a ModelError if it has another type."""
    value = _checked_object(content).get(key)
    if not isinstance(value, kinds) or value == []:
        raise ModelError(
            f"must answer with {key!r}, as {protocol}; got {repr(content)[:80]}. Check the address."
        )
    return value


def _checked_object(content: Any) -> dict[str, Any]:
    """Return an answer that is a JSON object, an empty one for other JSON; raise for text."""
    if isinstance(content, str):
        raise ModelError(f"must answer in JSON; got {content[:80]!r}. Check the address.")
    return content if isinstance(content, dict) else {}


def _json_rows(table: NDArray[Any]) -> list[list[Any]]:
    """Return the cells of a table as JSON values, row by row."""
    return [[cell(value) for value in row] for row in table.tolist()]


class Mlflow:
    """MLflow's scoring protocol.

    >>> Mlflow("http://localhost:5000").request(pd.DataFrame({"age": [30], "job": ["cook"]}))
    {'dataframe_split': {'columns': ['age', 'job'], 'data': [[30, 'cook']]}}
    """

    description_url: str | None = None  # the server does not describe the model
    inputs: Sequence[dict[str, Any]] = ()

    def __init__(self, url: str, output: str | None = None) -> None:
        bare = url.rstrip("/")
        has_path = bare.count("/") > 2
        self.url = bare if has_path else f"{bare}/invocations"
        self.output = output

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request."""
        if isinstance(rows, pd.DataFrame):
            data = _json_rows(rows.astype(object).to_numpy())
            return {"dataframe_split": {"columns": list(rows.columns), "data": data}}
        return {"inputs": _json_rows(rows)}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape ``(n,)``, from the body of an answer."""
        found = _content_of("predictions", (list, dict, int, float), content, "MLflow does")
        if isinstance(found, dict) and self.output in found:
            return numbers(found[self.output], n, None)
        return numbers(found, n, self.output)


class OpenInference:
    """The Open Inference Protocol, version 2."""

    inputs: Sequence[dict[str, Any]] = ()  # the server's description: name, datatype, shape

    def __init__(self, url: str, output: str | None = None) -> None:
        model = url.rstrip("/").removesuffix("/infer")
        self.url = f"{model}/infer"
        self.output = output
        self.description_url: str | None = model  # None once the description has been read

    def request(self, rows: Rows) -> dict[str, Any]:
        """Return the body of a request: one tensor per column, or one for all."""
        if len(self.inputs) > 1:
            return self._request_by_input(rows)
        if isinstance(rows, pd.DataFrame) and self._needs_columns(rows):
            tensors = [_tensor(column, {"name": str(name)}) for name, column in rows.items()]
            return {"parameters": {"content_type": "pd"}, "inputs": tensors}
        return self._request_matrix(rows)

    def _needs_columns(self, rows: pd.DataFrame) -> bool:
        """Return whether a table holds text, which one tensor can't, and no input is described."""
        return not self.inputs and any(is_text(column) for _, column in rows.items())

    def _request_by_input(self, rows: Rows) -> dict[str, Any]:
        """Return a request with one tensor for each input that the server describes."""
        names = [str(described["name"]) for described in self.inputs]
        columns = named_columns(rows, names, f"the model at {self.url}")
        pairs = zip(columns, self.inputs, strict=True)
        return {"inputs": [_tensor(column, described) for column, described in pairs]}

    def _request_matrix(self, rows: Rows) -> dict[str, Any]:
        """Return a request with all columns in one tensor."""
        described = self.inputs[0] if self.inputs else {"name": "input-0", "datatype": "FP64"}
        matrix = numeric_matrix(rows, "a model behind HTTP with one input")
        tensor = {
            "name": described["name"],
            "shape": list(matrix.shape),
            "datatype": described["datatype"],
            "data": _json_cells(matrix.ravel().tolist(), described["datatype"]),
        }
        return {"inputs": [tensor]}

    def outputs(self, content: Any, n: int) -> NDArray[np.float64]:
        """Return one number per row, shape ``(n,)``, from the tensor and column of `output`."""
        found = _content_of("outputs", (list,), content, "the Open Inference Protocol says")
        tensor, column = self._chosen_tensor(found)
        return numbers(_tensor_rows(tensor, n), n, column)

    def _chosen_tensor(self, found: list[Any]) -> tuple[Any, str | None]:
        """Return the tensor that `output` names, and the column of it, if `output` names one."""
        if self.output is None:
            return found[0], None
        tensors = {str(tensor.get("name")): tensor for tensor in found}
        listed = ", ".join(tensors)
        if self.output in tensors:
            return tensors[self.output], None
        name, _, column = self.output.rpartition(":")
        if len(tensors) == 1:
            tensors[""] = found[0]  # the name of the only tensor may be left out
        if name not in tensors:
            raise ModelError(
                f"has the outputs {listed}; got output {self.output!r}. Choose one of them."
            )
        return tensors[name], column


def _tensor_rows(tensor: Any, n: int) -> Any:
    """Return the values of a tensor, one item for each of `n` rows."""
    data = np.array(tensor.get("data"), dtype=object)
    shape = list(map(int, tensor.get("shape") or data.shape))
    if math.prod(shape) != data.size or shape[:1] != [n]:
        raise ModelError(
            f"must answer with one number for each of {n} rows; got shape {shape} with "
            f"{data.size} values."
        )
    return data.reshape(shape).tolist()


def _tensor(column: pd.Series[Any], described: dict[str, Any]) -> dict[str, Any]:
    """Return a column as a tensor, with the server's type and shape if it describes them."""
    kind = str(getattr(column.dtype, "kind", "O"))
    datatype = str(described.get("datatype", _DATATYPES.get(kind, "BYTES")))
    tensor = {
        "name": described["name"],
        "shape": _column_shape(len(column), described.get("shape")),
        "datatype": datatype,
        "data": _json_cells(column.tolist(), datatype),
    }
    if datatype == "BYTES":
        tensor["parameters"] = {"content_type": "str"}
    return tensor


def _column_shape(n: int, described: Any) -> list[int]:
    """Return the shape of a column of `n` cells: a vector if the server describes one."""
    is_vector = described is not None and len(described) == 1
    return [n] if is_vector else [n, 1]


def _json_cells(values: list[Any], datatype: str) -> list[Any]:
    """Return cells as JSON values: as whole numbers if the server takes these and all are."""
    data = list(map(cell, values))
    if datatype.startswith(("INT", "UINT")) and all(map(_is_whole, data)):
        return [value if value is None else int(value) for value in data]
    return data


def _is_whole(value: Any) -> bool:
    """Return whether a value is null or a float without decimals."""
    return value.is_integer() if type(value) is float else value is None
