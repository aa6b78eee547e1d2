"""Any model as rows -> numbers: callables, estimators, files and endpoints.

The names are imported when they are first used: help on the kinds of files needs no NumPy.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from bayescfx.models.classifiers import probability as probability
    from bayescfx.models.model import Model as Model
    from bayescfx.models.model import as_model as as_model

_HOMES = {"Model": "model", "as_model": "model", "probability": "classifiers"}
__all__ = ["Model", "as_model", "probability"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"bayescfx.models.{_HOMES[name]}"), name)
