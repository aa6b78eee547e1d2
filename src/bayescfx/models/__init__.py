"""Any model as rows -> numbers: callables, estimators, files and endpoints."""

from bayescfx.models.classifiers import probability
from bayescfx.models.model import Model, as_model

__all__ = ["Model", "as_model", "probability"]
