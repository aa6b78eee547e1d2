"""Adapters for libraries whose ``predict`` does not take rows of a table.

Models are recognised by the full name of their class, so that no library is imported for users who
do not need it. Adapted models can be pickled if the model can.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import ModelError, optional
from bayescfx.models.categories import categories_of
from bayescfx.models.input_columns import Category, as_fitted, named_columns, numeric_matrix

Predict: TypeAlias = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier with the interface of scikit-learn.

    `predict` returns probabilities: ``(n,)`` of the second of two classes, ``(n, k)``, or a list of
    dictionaries from label to probability.
    """

    predict: Predict
    classes_: Sequence[Any]

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return one probability per row and class, shape ``(n, k)``."""
        raw = self.predict(rows)
        if isinstance(raw, list):
            return np.array([[line[label] for label in self.classes_] for line in raw])
        scores = np.asarray(raw, dtype=np.float64)
        if scores.ndim == 1:
            return np.stack([1 - scores, scores], axis=1)
        return scores


def fitted(model: Any) -> Predict:
    """Return a model's ``predict`` as a function of rows that need not have its categories."""
    return partial(predict_fitted, model, categories_of(model))


def predict_fitted(model: Any, categories: tuple[Category, ...], rows: Any) -> object:
    """Return the outputs of a model for rows in the form it was fitted to."""
    return model.predict(as_fitted(model, rows, categories))


# ── XGBoost and LightGBM ──


def xgboost_model(booster: Any) -> Predict:
    """Return XGBoost's native model, which takes its own matrix, as a function of rows."""
    return partial(predict_xgboost, booster, categories_of(booster))


def predict_xgboost(booster: Any, categories: tuple[Category, ...], rows: Any) -> object:
    """Return the outputs of XGBoost's native model."""
    matrix = importlib.import_module("xgboost").DMatrix
    return booster.predict(matrix(as_fitted(booster, rows, categories), enable_categorical=True))


def xgboost_classifier(booster: Any) -> Classifier | None:
    """Return an XGBoost model as a classifier if its objective is one."""
    learner = json.loads(booster.save_config())["learner"]
    if learner["objective"]["name"] not in ("binary:logistic", "multi:softprob"):
        return None
    n_classes = max(2, int(learner["learner_model_param"]["num_class"]))  # 0 for a binary one
    return Classifier(xgboost_model(booster), range(n_classes))


def lightgbm_classifier(booster: Any) -> Classifier | None:
    """Return a LightGBM model as a classifier if its objective is one."""
    objective = str(booster.dump_model(num_iteration=1).get("objective", "")).split(" ")[0]
    if objective not in ("binary", "cross_entropy", "multiclass", "multiclassova"):
        return None
    return Classifier(fitted(booster), range(max(2, booster.num_model_per_iteration())))


# ── PyTorch ──


def predict_torch(module: Any, rows: Any) -> object:
    """Return the outputs of a PyTorch module in evaluation mode, without gradients."""
    torch = importlib.import_module("torch")
    weights = (p for p in module.parameters() if p.is_floating_point())
    like = next(weights, torch.empty(0, dtype=torch.float32))
    tensor = torch.as_tensor(numeric_matrix(rows, "a PyTorch module"))
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.inference_mode():
            return module(tensor.to(like)).cpu().numpy()
    finally:
        for part in training:
            part.training = True


def _torch_content(module: Any) -> bytes:
    """Return the structure and the weights of a module."""
    state = {name: tensor.cpu().numpy().tobytes() for name, tensor in module.state_dict().items()}
    return repr((str(module), sorted(state.items()))).encode()


# ── ONNX ──

_ONNX_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}
_SILENT = 4  # log severity: errors are raised, so they need not be printed too


@dataclass(frozen=True, eq=False)
class Onnx:
    """An ONNX Runtime session as a function of rows: one matrix, or one input per column."""

    session: Any  # an onnxruntime.InferenceSession
    output: str | None = None  # name of the output; the first by default

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        name = self.output or self.session.get_outputs()[0].name
        return self.session.run([name], self.feed(rows))[0]

    def __reduce__(self) -> tuple[Any, ...]:  # a session can't be pickled
        content = onnx_content(self.session)
        if content is None:
            raise TypeError("this ONNX session does not store what it was made from")
        return _unpickle_onnx, (content, self.session.get_providers(), self.output)

    def feed(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return the inputs of the session by name."""
        inputs = self.session.get_inputs()
        if onnx_by_column(self.session):
            names = [each.name for each in inputs]
            columns = named_columns(rows, names, "this ONNX model")
            pairs = zip(inputs, columns, strict=True)
            return {each.name: _onnx_column(each, column) for each, column in pairs}
        (matrix,) = inputs
        dtype = _onnx_dtype(matrix)
        if dtype is object:
            return {matrix.name: np.asarray(rows, dtype=object)}
        return {matrix.name: numeric_matrix(rows, "this ONNX model").astype(dtype)}


def onnx_content(session: Any) -> bytes | None:
    """Return the bytes that a session was made from, if it stores them."""
    path = getattr(session, "_model_path", None)
    if path:
        with open(path, "rb") as file:
            return file.read()
    return getattr(session, "_model_bytes", None)


def onnx_session(source: str | bytes, providers: list[str], threads: int = 1) -> Any:
    """Return a session from a path or from the bytes of a model."""
    runtime = optional("onnxruntime", ".onnx files need")
    options = runtime.SessionOptions()
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = threads
    return runtime.InferenceSession(source, options, providers)


def _unpickle_onnx(content: bytes, providers: list[str], output: str | None) -> Onnx:
    """Return a new session in another process, with one thread: other processes run beside it."""
    return Onnx(onnx_session(content, providers), output)


def onnx_by_column(session: Any) -> bool:
    """Return whether an ONNX model has one input per column."""
    inputs = session.get_inputs()
    return len(inputs) > 1 or len(inputs[0].shape) == 1


def _onnx_column(given: Any, column: pd.Series[Any]) -> NDArray[Any]:
    """Return a column with dtype and shape of an input, ``(n,)`` or ``(n, 1)``."""
    try:
        cells = column.to_numpy(dtype=_onnx_dtype(given), na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"this ONNX model must get {given.type} for {column.name!r}; got dtype "
            f"{column.dtype}: {error}. Convert the column."
        ) from error
    return cells if len(given.shape) == 1 else cells.reshape(-1, 1)


def _onnx_dtype(given: Any) -> Any:
    """Return the dtype of an input; raise a ModelError if it takes neither numbers nor text."""
    if given.type not in _ONNX_TYPES:
        raise ModelError(
            f"this ONNX model must take numbers or text; its input {given.name!r} takes "
            f"{given.type}. Pass a function that calls it."
        )
    return _ONNX_TYPES[given.type]


def onnx_classifier(session: Any) -> Classifier | None:
    """Return an ONNX session as a classifier if it returns labels and probabilities."""
    outputs = session.get_outputs()
    if len(outputs) != 2:
        return None
    probabilities = outputs[1]
    predict = Onnx(session, probabilities.name)
    if probabilities.type.startswith("seq(map("):
        return Classifier(predict, _map_labels(session))
    shape = probabilities.shape
    if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 1:
        return Classifier(predict, range(shape[1]))  # a matrix has no labels
    return None


def _map_labels(session: Any) -> tuple[Any, ...]:
    """Return the labels of an ONNX classifier from its output for a row of zeros."""
    feed = {given.name: _zeros(given) for given in session.get_inputs()}
    try:
        line = session.run([session.get_outputs()[1].name], feed)[0][0]
    except Exception as error:  # the runtime has no common base for its errors
        raise ModelError(
            "the labels of this ONNX classifier can't be found, because it refuses a row of zeros: "
            f"{error}. Export it without ZipMap."
        ) from error
    return tuple(line)


def _zeros(given: Any) -> NDArray[Any]:
    """Return one row of zeros, or of empty texts, for an input."""
    shape = [n if isinstance(n, int) and n > 0 else 1 for n in given.shape]
    dtype = _onnx_dtype(given)
    return np.full(shape, "", object) if dtype is object else np.zeros(shape, dtype)


# ── all libraries ──


class Adapter(NamedTuple):
    """How the models of one class are used: three functions of a model.

    Parameters
    ----------
    predict : callable
        Returns the model as a function of rows.
    classifier : callable
        Returns the model as a classifier; None if it is none.
    content : callable
        Returns the learned parameters as bytes, to identify the model.
    """

    predict: Callable[[Any], Predict]
    classifier: Callable[[Any], object]
    content: Callable[[Any], bytes | None]


#: By the full name of the class.
ADAPTERS = {
    "xgboost.core.Booster": Adapter(
        xgboost_model, xgboost_classifier, lambda booster: bytes(booster.save_raw())
    ),
    "lightgbm.basic.Booster": Adapter(
        fitted, lightgbm_classifier, lambda booster: booster.model_to_string().encode()
    ),
    "torch.nn.modules.module.Module": Adapter(
        lambda module: partial(predict_torch, module), lambda _: None, _torch_content
    ),
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": Adapter(
        Onnx, onnx_classifier, onnx_content
    ),
}


def adapter_of(model: object) -> Adapter | None:
    """Return the adapter for the model's class, or for one of its base classes."""
    for kind in type(model).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in ADAPTERS:
            return ADAPTERS[name]
    return None
