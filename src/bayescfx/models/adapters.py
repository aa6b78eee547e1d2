"""Models of other libraries whose ``predict`` does not simply take rows.

They are found by the full name of their class, so that nothing is imported for those who do not
use them. What they become can go to other processes if the model can.
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
    """A model that gives probabilities, (n,) of the second of two classes or (n, k), or as maps."""

    predict: Predict
    classes_: Sequence[Any]

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return one probability per row and class, (n, k)."""
        raw = self.predict(rows)
        if isinstance(raw, list):  # of maps
            return np.array([[line[label] for label in self.classes_] for line in raw])
        scores = np.asarray(raw, dtype=np.float64)
        return np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores


def fitted(model: Any) -> Predict:
    """Return a model as a function of rows, which need not have its categories."""
    return partial(_ask_fitted, model, categories_of(model))


def _ask_fitted(model: Any, categories: tuple[Category, ...], rows: Any) -> object:
    return model.predict(as_fitted(model, rows, categories))


def xgboost_model(booster: Any) -> Predict:
    """Return XGBoost's native model, which takes no rows but its own matrix, on rows."""
    return partial(_ask_xgboost, booster, categories_of(booster))


def _ask_xgboost(booster: Any, categories: tuple[Category, ...], rows: Any) -> object:
    matrix = importlib.import_module("xgboost").DMatrix
    return booster.predict(matrix(as_fitted(booster, rows, categories), enable_categorical=True))


def lightgbm_classifier(booster: Any) -> Classifier | None:
    """Return a LightGBM model as a classifier if its objective is one."""
    objective = str(booster.dump_model(num_iteration=1).get("objective", "")).split(" ")[0]
    if objective not in ("binary", "cross_entropy", "multiclass", "multiclassova"):
        return None
    return Classifier(fitted(booster), range(max(2, booster.num_model_per_iteration())))


def xgboost_classifier(booster: Any) -> Classifier | None:
    """Return an XGBoost model as a classifier if its objective is one."""
    learner = json.loads(booster.save_config())["learner"]
    if learner["objective"]["name"] not in ("binary:logistic", "multi:softprob"):
        return None
    n_classes = max(2, int(learner["learner_model_param"]["num_class"]))  # 0 of a binary one
    return Classifier(xgboost_model(booster), range(n_classes))


def _ask_torch(module: Any, rows: Any) -> object:
    """Return what a PyTorch module says to rows: one tensor, no gradients, as in evaluation."""
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
    state = {name: tensor.cpu().numpy().tobytes() for name, tensor in module.state_dict().items()}
    return repr((str(module), sorted(state.items()))).encode()


_ONNX_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


@dataclass(frozen=True, eq=False)
class Onnx:
    """An ONNX Runtime session: one matrix as input, or one input per column."""

    session: Any  # an onnxruntime.InferenceSession
    output: str | None = None  # which output to take; the first by default

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        name = self.output or self.session.get_outputs()[0].name
        return self.session.run([name], self.feed(rows))[0]

    def __reduce__(self) -> tuple[Any, ...]:  # a session itself does not travel
        content, session = onnx_content(self.session), self.session
        if content is None:
            raise TypeError("this ONNX session does not tell what it was made from")
        return _onnx_again, (content, session.get_providers(), self.output)

    def feed(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return what the session takes."""
        inputs = self.session.get_inputs()
        if not onnx_by_column(self.session):
            (matrix,) = inputs
            if _dtype(matrix) is object:
                return {matrix.name: np.asarray(rows, dtype=object)}
            numbers = numeric_matrix(rows, "this ONNX model")
            return {matrix.name: numbers.astype(_dtype(matrix))}
        columns = named_columns(rows, [given.name for given in inputs], "this ONNX model")
        return {i.name: _column(i, column) for i, column in zip(inputs, columns, strict=True)}


def onnx_content(session: Any) -> bytes | None:
    """Return the bytes that a session was made from."""
    path = getattr(session, "_model_path", None)
    if path:
        with open(path, "rb") as file:
            return file.read()
    return getattr(session, "_model_bytes", None)


def onnx_session(source: str | bytes, providers: list[str], threads: int = 1) -> Any:
    """Return a session of a file or what is in one."""
    runtime = optional("onnxruntime", ".onnx files need")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    options.intra_op_num_threads = threads
    return runtime.InferenceSession(source, options, providers)


def _onnx_again(content: bytes, providers: list[str], output: str | None) -> Onnx:
    """Return a session anew, in another process: one thread, since there are others beside it."""
    return Onnx(onnx_session(content, providers), output)


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


def onnx_classifier(session: Any) -> Classifier | None:
    """Return an ONNX session as a classifier if it gives labels and probabilities."""
    outputs = session.get_outputs()
    if len(outputs) != 2:
        return None
    ask, shape = Onnx(session, outputs[1].name), outputs[1].shape
    if outputs[1].type.startswith("seq(map("):
        return Classifier(ask, _map_labels(session))
    if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 1:
        return Classifier(ask, range(shape[1]))  # a matrix does not tell the labels
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


class Adapter(NamedTuple):
    """What is done with the models of one class."""

    predict: Callable[[Any], Predict]  # how rows get to one that does not take them as they are
    classifier: Callable[[Any], object]  # how it is seen as a classifier; None if it is none
    content: Callable[[Any], bytes | None]  # what tells it from another


#: By the full name of the class.
ADAPTERS = {
    "xgboost.core.Booster": Adapter(
        xgboost_model, xgboost_classifier, lambda booster: bytes(booster.save_raw())
    ),
    "lightgbm.basic.Booster": Adapter(
        fitted, lightgbm_classifier, lambda booster: booster.model_to_string().encode()
    ),
    "torch.nn.modules.module.Module": Adapter(
        lambda module: partial(_ask_torch, module), lambda _: None, _torch_content
    ),
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": Adapter(
        Onnx, onnx_classifier, onnx_content
    ),
}


def adapter_of(model: object) -> Adapter | None:
    """Return what `ADAPTERS` has for the model's class or one it derives from."""
    for kind in type(model).__mro__:
        if (name := f"{kind.__module__}.{kind.__qualname__}") in ADAPTERS:
            return ADAPTERS[name]
    return None
