"""Models of other libraries whose ``predict`` does not simply take rows.

They are found by the full name of their class, so that nothing is imported for those who do not
use them. What they become can go to other processes if the model can.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescfx.model.columns import numeric_matrix, with_categories
from bayescfx.model.onnx import Onnx, onnx_classifier

Predict: TypeAlias = Callable[[Any], object]


# ── gradient boosting ──


def xgboost_model(booster: Any) -> Predict:
    """Return XGBoost's native model, which takes no rows but its own matrix, on rows."""
    return partial(_ask_xgboost, booster, tuple(xgboost_categorical(booster)))


def _ask_xgboost(booster: Any, categorical: tuple[str, ...], rows: Any) -> object:
    xgboost = importlib.import_module("xgboost")
    return booster.predict(
        xgboost.DMatrix(with_categories(rows, categorical), enable_categorical=True)
    )


def xgboost_categorical(booster: Any) -> list[str]:
    """Return the columns that an XGBoost model was told are categorical."""
    names, kinds = (getattr(booster, f"feature_{what}", None) for what in ("names", "types"))
    if names is None or kinds is None:
        return []
    return [name for name, kind in zip(names, kinds, strict=True) if kind == "c"]


def lightgbm_model(booster: Any) -> Predict:
    """Return LightGBM's native model, which takes categories where it was trained on them."""
    return partial(_ask_lightgbm, booster, tuple(lightgbm_categorical(booster)))


def _ask_lightgbm(booster: Any, categorical: tuple[str, ...], rows: Any) -> object:
    known = booster.pandas_categorical
    return booster.predict(with_categories(rows, categorical) if known else rows)


def lightgbm_categorical(booster: Any) -> list[str]:
    """Return the columns that a LightGBM model was trained on as categories, as far as it tells."""
    if not booster.pandas_categorical:
        return []
    infos = booster.dump_model(num_iteration=1)["feature_infos"]
    return [name for name, info in infos.items() if info.get("values")]


@dataclass(frozen=True, slots=True)
class NumberedClasses:
    """A model whose outputs are probabilities, as a classifier with numbered classes."""

    predict: Predict
    n_classes: int

    @property
    def classes_(self) -> list[int]:
        """The classes by their numbers."""
        return list(range(self.n_classes))

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return one probability per row and class."""
        scores = np.asarray(self.predict(rows), dtype=np.float64)
        return np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores


def lightgbm_classifier(booster: Any) -> NumberedClasses | None:
    """Return a LightGBM model as a classifier if its objective is one."""
    objective = str(booster.dump_model(num_iteration=1).get("objective", "")).split(" ")[0]
    if objective in ("binary", "cross_entropy"):
        return NumberedClasses(lightgbm_model(booster), 2)
    if objective in ("multiclass", "multiclassova"):
        return NumberedClasses(lightgbm_model(booster), booster.num_model_per_iteration())
    return None


def xgboost_classifier(booster: Any) -> NumberedClasses | None:
    """Return an XGBoost model as a classifier if its objective is one."""
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    if objective == "binary:logistic":
        return NumberedClasses(xgboost_model(booster), 2)
    if objective == "multi:softprob":
        n_classes = int(learner["learner_model_param"]["num_class"])
        return NumberedClasses(xgboost_model(booster), n_classes)
    return None


# ── PyTorch ──


def torch_model(module: Any) -> Predict:
    """Return a PyTorch module on rows: as one tensor, without gradients and as in evaluation."""
    return partial(_ask_torch, module)


def _ask_torch(module: Any, rows: Any) -> object:
    torch = importlib.import_module("torch")
    weights = next((p for p in module.parameters() if p.is_floating_point()), None)
    dtype = torch.float32 if weights is None else weights.dtype
    device = None if weights is None else weights.device
    tensor = torch.as_tensor(numeric_matrix(rows, "a PyTorch module"))
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.inference_mode():
            return module(tensor.to(dtype=dtype, device=device)).cpu().numpy()
    finally:
        for part in training:
            part.training = True


#: By the full name of a class: how rows get to a model that does not take them as they are, and
#: how it is seen as a classifier, None if it is none.
ADAPTERS: dict[str, tuple[Callable[[Any], Predict], Callable[[Any], object]]] = {
    "xgboost.core.Booster": (xgboost_model, xgboost_classifier),
    "lightgbm.basic.Booster": (lightgbm_model, lightgbm_classifier),
    "torch.nn.modules.module.Module": (torch_model, lambda _: None),
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": (Onnx, onnx_classifier),
}


def adapter_of(model: object) -> tuple[Callable[[Any], Predict], Callable[[Any], object]] | None:
    """Return what `ADAPTERS` has for the model's class or one it derives from."""
    for kind in type(model).__mro__:
        found = ADAPTERS.get(f"{kind.__module__}.{kind.__qualname__}")
        if found is not None:
            return found
    return None
