"""Models of other libraries whose ``predict`` does not simply take rows.

They are found by the full name of their class, so that nothing is imported for those who do not
use them. Each is a small frozen class, which can go to other processes if the model can.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescfx.model.columns import numeric_matrix, with_categories
from bayescfx.model.onnx import Onnx, onnx_classifier

Predict: TypeAlias = Callable[[Any], object]


# ── gradient boosting ──


@dataclass(frozen=True, slots=True)
class XGBoost:
    """XGBoost's native model, which takes no rows but its own matrix."""

    booster: Any
    categorical: tuple[str, ...]

    @classmethod
    def of(cls, booster: Any) -> XGBoost:
        """Return the model as a function of rows."""
        return cls(booster, tuple(xgboost_categorical(booster)))

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        xgboost = importlib.import_module("xgboost")
        table = with_categories(rows, self.categorical)
        return self.booster.predict(xgboost.DMatrix(table, enable_categorical=True))


def xgboost_categorical(booster: Any) -> list[str]:
    """Return the columns that an XGBoost model was told are categorical."""
    names, kinds = (getattr(booster, f"feature_{what}", None) for what in ("names", "types"))
    if names is None or kinds is None:
        return []
    return [name for name, kind in zip(names, kinds, strict=True) if kind == "c"]


@dataclass(frozen=True, slots=True)
class LightGBM:
    """LightGBM's native model, which takes categories where it was trained on them."""

    booster: Any
    categorical: tuple[str, ...]

    @classmethod
    def of(cls, booster: Any) -> LightGBM:
        """Return the model as a function of rows."""
        return cls(booster, tuple(lightgbm_categorical(booster)))

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        if not self.booster.pandas_categorical:
            return self.booster.predict(rows)
        return self.booster.predict(with_categories(rows, self.categorical))


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
        return NumberedClasses(LightGBM.of(booster), 2)
    if objective in ("multiclass", "multiclassova"):
        return NumberedClasses(LightGBM.of(booster), booster.num_model_per_iteration())
    return None


def xgboost_classifier(booster: Any) -> NumberedClasses | None:
    """Return an XGBoost model as a classifier if its objective is one."""
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    if objective == "binary:logistic":
        return NumberedClasses(XGBoost.of(booster), 2)
    if objective == "multi:softprob":
        n_classes = int(learner["learner_model_param"]["num_class"])
        return NumberedClasses(XGBoost.of(booster), n_classes)
    return None


# ── PyTorch ──


@dataclass(frozen=True, slots=True)
class Torch:
    """A PyTorch module: rows as one tensor, without gradients and as in evaluation."""

    module: Any

    def __call__(self, rows: Any) -> object:
        """Return the outputs for the rows."""
        torch = importlib.import_module("torch")
        weights = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        dtype = torch.float32 if weights is None else weights.dtype
        device = None if weights is None else weights.device
        tensor = torch.as_tensor(numeric_matrix(rows, "a PyTorch module"))
        training = [part for part in self.module.modules() if part.training]
        self.module.eval()
        try:
            with torch.inference_mode():
                return self.module(tensor.to(dtype=dtype, device=device)).cpu().numpy()
        finally:
            for part in training:
                part.training = True


def _no_classifier(_: Any) -> None:
    return None


#: By the full name of a class: how rows get to a model that does not take them as they are, and
#: how it is seen as a classifier, None if it is none.
ADAPTERS: dict[str, tuple[Callable[[Any], Predict], Callable[[Any], object]]] = {
    "xgboost.core.Booster": (XGBoost.of, xgboost_classifier),
    "lightgbm.basic.Booster": (LightGBM.of, lightgbm_classifier),
    "torch.nn.modules.module.Module": (Torch, _no_classifier),
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": (Onnx, onnx_classifier),
}


def adapter_of(model: object) -> tuple[Callable[[Any], Predict], Callable[[Any], object]] | None:
    """Return what `ADAPTERS` has for the model's class or one it derives from."""
    for kind in type(model).__mro__:
        found = ADAPTERS.get(f"{kind.__module__}.{kind.__qualname__}")
        if found is not None:
            return found
    return None
