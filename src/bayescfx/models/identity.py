"""Which model is it? A digest of what it has learnt, the same after saving and in any process."""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from bayescfx.models.adapters import adapter_of


def fingerprint(model: object) -> str | None:
    """Return a short digest of a model; None for functions of the user and what can't be read."""
    try:
        content = _content(model)
    except Exception:  # each library has errors of its own for what can't be written
        return None
    return None if content is None else hashlib.sha256(content).hexdigest()[:12]


def _content(model: Any) -> bytes | None:
    """Return what tells a model from another, by what it is or wraps."""
    adapter = adapter_of(model)
    if adapter is not None:
        return adapter.content(model)
    if isinstance(model, partial):
        return _all(model.func, *model.args, *sorted(model.keywords.items()))
    if inspect.ismethod(model):
        return _all(model.__self__, model.__name__)
    if isinstance(model, str | int | float | bytes | range | tuple | None):
        return repr(model).encode()
    if (getattr(model, "__module__", None) or "").startswith("bayescfx."):
        return _ours(model)
    return _estimator(model) if hasattr(model, "predict") else None


def _ours(model: Any) -> bytes | None:
    """Return the content of an adapter; what is behind an address can't be seen."""
    if inspect.isroutine(model):
        return str(model.__qualname__).encode()
    if hasattr(model, "url"):
        return _all(model.url, model.output)
    return _all(*(getattr(model, f.name) for f in fields(model))) if is_dataclass(model) else None


def _estimator(model: Any) -> bytes | None:
    """Return the content of an estimator in the manner of scikit-learn."""
    kind = type(model).__qualname__
    if hasattr(model, "booster_"):  # LightGBM
        return _all(kind, model.booster_, str(getattr(model, "classes_", "")))
    if hasattr(model, "get_booster"):  # XGBoost
        return _all(kind, model.get_booster())
    return _saved(model)


def _saved(part: object) -> bytes:
    buffer = io.BytesIO()
    saving = _Saving(buffer, protocol=4)
    saving.fast = True  # what its parts share is written each time: loading may have parted it
    saving.dump(part)
    return buffer.getvalue()


class _Saving(pickle.Pickler):
    """Save a model without what changes when it is used or loaded.

    Trees that find neighbours count how often; between the fields of other trees' nodes are bytes
    that mean nothing; texts in a set come in another order in each process.
    """

    def persistent_id(self, part: Any) -> Any:
        """Return what stands for a set: what it holds, in order."""
        return sorted(map(_saved, part)) if type(part) in (set, frozenset) else None

    def reducer_override(self, part: Any) -> Any:
        """Return what stands for such a tree: points, or nodes field by field."""
        home = type(part).__module__
        if home in ("sklearn.neighbors._kd_tree", "sklearn.neighbors._ball_tree"):
            return np.array, (np.asarray(part.data),)
        if home == "sklearn.tree._tree" and hasattr(part, "node_count"):
            state = part.__getstate__()
            nodes = [state["nodes"][name].copy() for name in state["nodes"].dtype.names]
            return list, ([*nodes, state["values"]],)
        return NotImplemented


def _all(*parts: object) -> bytes | None:
    found = [_content(part) for part in parts]
    return None if None in found else b"\n".join(part or b"" for part in found)
