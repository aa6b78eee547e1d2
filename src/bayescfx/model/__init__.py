"""Any model as rows -> numbers: callables, estimators, files and endpoints."""

from bayescfx.model.classifiers import probability
from bayescfx.model.model import Model, as_model

__all__ = ["Model", "as_model", "probability"]
