"""Models from files and services.

>>> from bayescfx.io import load_model
>>> load_model("math:hypot").model(3, 4)
5.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayescfx.io.loaders import LoadError, Trust, UntrustedError, load_model

if TYPE_CHECKING:
    from bayescfx.io.endpoint import Endpoint, EndpointError, Patience

__all__ = [
    "Endpoint",
    "EndpointError",
    "LoadError",
    "Patience",
    "Trust",
    "UntrustedError",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # of the module that needs pandas
        return getattr(import_module("bayescfx.io.endpoint"), name)
    raise AttributeError(f"module 'bayescfx.io' has no attribute {name!r}")
