"""Model identity: name, content and owner decide to which model scored rows belong.

A name that the user gives decides. Else an estimator is recognised by its content: a fingerprint of
what it has learnt, the same after saving and in any process. Other objects are recognised by their
content when they first ask, and later by being the same object: some change when they are used,
such as one that counts its calls. Functions have neither a name nor a fingerprint.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from bayescfx.models.adapters import adapter_of

#: Libraries whose models run in this process, so that a thousand rows cost little.
_LOCAL_LIBRARIES = ("sklearn", "lightgbm", "xgboost", "catboost", "interpret")


@dataclass(frozen=True, eq=False)
class ModelIdentity:
    """The identity of a model.

    Parameters
    ----------
    name : str, optional
        The class of an estimator; None for a function.
    read_fingerprint : callable, optional
        Returns a digest of the content, or None. It may take long, and is called once at most.
    owner : object, optional
        The object by which the model is recognised in this process.
    """

    name: str | None = None
    read_fingerprint: Callable[[], str | None] | None = None
    owner: object = None

    @cached_property
    def fingerprint(self) -> str | None:
        """A digest of the content, if it can be read."""
        return None if self.read_fingerprint is None else self.read_fingerprint()

    @property
    def label(self) -> str:
        """The name under which a file keeps the rows: ``class#fingerprint``; "" for a function."""
        name = self.name or ""
        return f"{name}#{self.fingerprint}" if self.fingerprint else name


def is_fingerprinted(label: str | None) -> bool:
    """Return whether a label identifies the content of a model."""
    return "#" in (label or "")


def class_of(model: object) -> tuple[str | None, bool]:
    """Return the class of an estimator, or of a method's owner, and whether it runs locally.

    Functions have no name that would tell two models apart.
    """
    owner = getattr(model, "__self__", model)
    library = type(owner).__module__.partition(".")[0]
    is_local = library in _LOCAL_LIBRARIES or adapter_of(owner) is not None
    name = type(owner).__qualname__ if hasattr(owner, "predict") else None
    return name, is_local


def fingerprint(model: object) -> str | None:
    """Return a short digest of a model; None for functions and for what can't be read."""
    try:
        content = _content(model)
    except Exception:  # each library has errors of its own for what can't be written
        return None
    return None if content is None else hashlib.sha256(content).hexdigest()[:12]


def _content(model: Any) -> bytes | None:
    """Return the bytes that identify a model; those of its parts if it wraps others."""
    adapter = adapter_of(model)
    if adapter is not None:
        return adapter.content(model)
    if isinstance(model, partial):
        return _join_contents(model.func, *model.args, *sorted(model.keywords.items()))
    if inspect.ismethod(model):
        return _join_contents(model.__self__, model.__name__)
    if isinstance(model, str | int | float | bytes | range | tuple | None):
        return repr(model).encode()
    if str(getattr(model, "__module__", "")).startswith("bayescfx."):
        return _adapter_content(model)
    return _estimator_content(model)


def _adapter_content(model: Any) -> bytes | None:
    """Return the content of an adapter; an endpoint is known by its address alone."""
    if inspect.isroutine(model):
        return str(model.__qualname__).encode()
    if hasattr(model, "url"):
        return _join_contents(model.url, model.output)
    if is_dataclass(model):
        return _join_contents(*(getattr(model, f.name) for f in fields(model)))
    return None


def _estimator_content(model: Any) -> bytes | None:
    """Return the content of an estimator in the manner of scikit-learn; None for others."""
    kind = type(model).__qualname__
    if not hasattr(model, "predict"):
        return None
    if hasattr(model, "booster_"):  # LightGBM
        return _join_contents(kind, model.booster_, str(getattr(model, "classes_", "")))
    if hasattr(model, "get_booster"):  # XGBoost
        return _join_contents(kind, model.get_booster())
    return _pickled(model)


def _pickled(part: object) -> bytes:
    buffer = io.BytesIO()
    pickler = _ModelPickler(buffer, protocol=4)
    pickler.fast = True  # shared parts are written each time: loading may have separated them
    pickler.dump(part)
    return buffer.getvalue()


class _ModelPickler(pickle.Pickler):
    """Pickle a model without what changes when it is used or loaded.

    Neighbour trees count their queries. The nodes of decision trees have padding bytes without a
    meaning. Texts in a set have another order in each process.
    """

    def persistent_id(self, part: Any) -> Any:
        """Return the elements of a set, sorted, in place of the set."""
        return sorted(map(_pickled, part)) if type(part) in (set, frozenset) else None

    def reducer_override(self, part: Any) -> Any:
        """Return the points of a neighbour tree, or the nodes of a decision tree by field."""
        home = type(part).__module__
        if home in ("sklearn.neighbors._kd_tree", "sklearn.neighbors._ball_tree"):
            return np.array, (np.asarray(part.data),)
        if home == "sklearn.tree._tree" and hasattr(part, "node_count"):
            return list, (_tree_arrays(part),)
        return NotImplemented


def _tree_arrays(tree: Any) -> list[Any]:
    """Return the nodes of a decision tree of scikit-learn by field, and their values."""
    state = tree.__getstate__()
    nodes = [state["nodes"][name].copy() for name in state["nodes"].dtype.names]
    return [*nodes, state["values"]]


def _join_contents(*parts: object) -> bytes | None:
    found = [_content(part) for part in parts]
    known = [content for content in found if content is not None]
    return b"\n".join(known) if len(known) == len(found) else None
