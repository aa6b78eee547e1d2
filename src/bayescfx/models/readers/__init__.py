"""Readers that turn fitted models into flat forms, which can be searched exactly."""

from bayescfx.models.readers.forms import (
    Form,
    Inputs,
    LinearModel,
    ReluNetwork,
    Tests,
    TreeEnsemble,
)
from bayescfx.models.readers.reading import Reading, read_model

__all__ = [
    "Form",
    "Inputs",
    "LinearModel",
    "Reading",
    "ReluNetwork",
    "Tests",
    "TreeEnsemble",
    "read_model",
]
