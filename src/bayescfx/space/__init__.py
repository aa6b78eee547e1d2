"""What may change: a space of features and rules, and the region around one query.

`Space` and `Region` are imported when they are first used: help on the verbs needs no NumPy.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from bayescfx.space.region import Region as Region
    from bayescfx.space.space import Space as Space

__all__ = ["Region", "Space"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"bayescfx.space.{name.lower()}"), name)
