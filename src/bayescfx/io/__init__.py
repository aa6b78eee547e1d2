"""Models from files and services.

>>> from bayescfx.io import load_model
>>> load_model("math:hypot").model(3, 4)
5.0
"""

from __future__ import annotations

from importlib import import_module

from bayescfx.io.loaders import LoadError, UntrustedError, load_model

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from bayescfx.io.endpoint import Endpoint, EndpointError, Patience
    from bayescfx.io.loaded import Trust

__all__ = [
    "Endpoint",
    "EndpointError",
    "LoadError",
    "Patience",
    "Trust",
    "UntrustedError",
    "load_model",
]


def __getattr__(name: str) -> object:
    if name in __all__:  # of a module that needs pandas
        home = "loaded" if name == "Trust" else "endpoint"
        return getattr(import_module(f"bayescfx.io.{home}"), name)
    raise AttributeError(f"module 'bayescfx.io' has no attribute {name!r}")
