"""Models from files, from ``package.module:function`` and from web addresses.

What is loaded tells, where it can, which columns it takes and which of them are categories, so
that a table with more columns can be cut to fit.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayescfx.errors import MissingExtraError, ModelError, suggest
from bayescfx.io.endpoint import Endpoint, Patience
from bayescfx.io.loaded import Loaded
from bayescfx.model.adapters import lightgbm_categorical, xgboost_categorical
from bayescfx.model.classifiers import as_classifier
from bayescfx.model.onnx import Onnx, onnx_by_column


class LoadError(ModelError):
    """A model can't be loaded."""


@dataclass(frozen=True)
class Trust:
    """What a file may do when it is loaded.

    Parameters
    ----------
    pickle : bool, default False
        Whether ``.joblib`` and ``.pkl`` files, which can run any code, are loaded.
    types : tuple of str
        Full names of classes that a ``.skops`` file may hold beside those known as harmless.
    """

    pickle: bool = False
    types: tuple[str, ...] = ()


def load_model(
    source: str,
    *,
    trust: Trust | None = None,
    output: str | None = None,
    headers: Mapping[str, str] | None = None,
    patience: Patience | None = None,
    batch: int = 1000,
) -> Loaded:
    """Return a model from a file, a web address or ``package.module:function``.

    Parameters
    ----------
    source : str
        A path that ends in ``.onnx``, ``.txt`` (LightGBM), ``.json`` or ``.ubj`` (XGBoost),
        ``.cbm`` (CatBoost), ``.skops``, ``.joblib`` or ``.pkl``; ``http://…``; or
        ``package.module:function``.
    trust : Trust, optional
        What files may do when they are loaded; nothing that runs code, by default.
    output : str, optional
        Which output of an ONNX model or an endpoint to take, if there are several.
    headers : dict, optional
        Sent to an endpoint with each request.
    patience : Patience, optional
        Time-outs and retries of an endpoint.
    batch : int, default 1000
        The most rows sent to an endpoint at once.

    Returns
    -------
    Loaded
        The model and what it tells about itself.

    Raises
    ------
    LoadError
        If there is no such model, or the file is damaged or of another kind.

    Examples
    --------
    >>> load_model("math:hypot").model(3, 4)
    5.0
    """
    if source.startswith(("http://", "https://")):
        return _from_endpoint(
            Endpoint(source, output, batch, headers or {}, patience or Patience())
        )
    path = Path(source)
    if path.suffix.lower() not in LOADERS and ":" in source and not path.exists():
        return _described(import_name(source))
    if not path.is_file():
        raise LoadError(f"there is no model file {source!r}. {_kinds()}")
    load = LOADERS.get(path.suffix.lower())
    if load is None:
        raise LoadError(f"the model file {source!r} is of no known kind. {_kinds()}")
    loaded = load(path, trust or Trust())
    if output is not None and isinstance(loaded.model, Onnx):
        known = [o.name for o in loaded.model.session.get_outputs()]
        if output not in known:
            raise LoadError(
                f"the output must be one of {', '.join(known)}; got {output!r}."
                f"{suggest(output, known)}"
            )
        return replace(loaded, model=Onnx(loaded.model.session, output), labels=())
    return loaded


def _kinds() -> str:
    return (
        f"Give a file that ends in {', '.join(LOADERS)}, an address http://…, or "
        "package.module:function."
    )


# ── one function per kind ──


def _onnx(path: Path, _: Trust) -> Loaded:
    runtime = _library("onnxruntime", ".onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
    with _damaged(path, "an ONNX model"):
        session = runtime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    inputs = session.get_inputs()
    seen = as_classifier(session)
    labels = () if seen is session else tuple(seen.classes_)  # type: ignore[attr-defined]  # a classifier has them
    model = session if labels else Onnx(session)
    if onnx_by_column(session):
        return Loaded(model, tuple(i.name for i in inputs), len(inputs), labels=labels)
    shape = inputs[0].shape
    width = shape[1] if len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 0 else None
    return Loaded(model, width=width, labels=labels)


def _lightgbm(path: Path, _: Trust) -> Loaded:
    lightgbm = _library("lightgbm", "LightGBM's .txt")
    with _damaged(path, "a LightGBM model"):
        _check_lightgbm(path.read_bytes())
        booster = lightgbm.Booster(model_file=str(path))
    loaded = _described(booster)
    return replace(loaded, categorical=tuple(lightgbm_categorical(booster)))


def _check_lightgbm(content: bytes) -> None:
    """Raise unless the file is whole: LightGBM ends the process at a file that is cut off."""
    head = content[: content.find(b"\n\n")]
    lines = dict(line.partition(b"=")[::2] for line in head.splitlines())
    if not content.startswith(b"tree") or b"tree_sizes" not in lines:
        raise ValueError("it does not start as such a file does.")
    sizes = [int(size) for size in lines[b"tree_sizes"].split()]
    end = content.find(b"Tree=0") + sum(sizes)
    rest = content[end:] if sizes else content
    whole = b"\nend of parameters" in rest and (not sizes or rest.startswith(b"end of trees"))
    if not whole:
        raise ValueError("it is cut off or was changed.")


def _xgboost(path: Path, _: Trust) -> Loaded:
    xgboost = _library("xgboost", "XGBoost's .json and .ubj")
    with _damaged(path, "an XGBoost model"):
        booster = xgboost.Booster(model_file=str(path))
    loaded = _described(booster)
    return replace(loaded, categorical=tuple(xgboost_categorical(booster)))


def _catboost(path: Path, _: Trust) -> Loaded:
    catboost = _library("catboost", ".cbm")
    with _damaged(path, "a CatBoost model"):
        model = catboost.CatBoost().load_model(str(path))
        if len(model.classes_):
            model = catboost.CatBoostClassifier().load_model(str(path))
    names = model.feature_names_
    categorical = tuple(names[i] for i in model.get_cat_feature_indices())
    return replace(_described(model), categorical=categorical)


def _skops(path: Path, trust: Trust) -> Loaded:
    io = _library("skops.io", ".skops")
    with _damaged(path, "a skops file"):
        unknown = io.get_untrusted_types(file=path)
    refused = [name for name in unknown if name not in trust.types]
    if refused:
        raise LoadError(
            f"the model file {str(path)!r} holds types that are not known as harmless: "
            f"{', '.join(refused)}. If you trust who made it, add --trust {','.join(unknown)} to "
            "the command."
        )
    with _damaged(path, "a skops file"):
        return _described(io.load(path, trusted=unknown))


def _pickle(path: Path, trust: Trust) -> Loaded:
    if not trust.pickle:
        raise LoadError(
            f"the model file {str(path)!r} is a pickle, which can run any code when it is loaded. "
            "If you trust who made it, pass --trust-pickle; better save it as .skops or .onnx."
        )
    joblib = _library("joblib", f"{path.suffix}")
    with _damaged(path, "a pickle"), _on_path():
        return _described(joblib.load(path))


def _from_endpoint(endpoint: Endpoint) -> Loaded:
    return Loaded(endpoint, endpoint.columns())


#: How files are loaded, by how their names end.
LOADERS: dict[str, Callable[[Path, Trust], Loaded]] = {
    ".onnx": _onnx,
    ".txt": _lightgbm,
    ".json": _xgboost,
    ".ubj": _xgboost,
    ".cbm": _catboost,
    ".skops": _skops,
    ".joblib": _pickle,
    ".pkl": _pickle,
}


def _described(model: object) -> Loaded:
    """Return a model with what its attributes tell."""
    names = _names(model)
    width = getattr(model, "n_features_in_", None)
    if width is None and callable(getattr(model, "num_feature", None)):
        width = model.num_feature()  # type: ignore[attr-defined]  # a booster's, asked for above
    elif width is None and callable(getattr(model, "num_features", None)):
        width = model.num_features()  # type: ignore[attr-defined]  # a booster's, asked for above
    labels = getattr(as_classifier(model), "classes_", None)
    if labels is not None and np.ndim(labels) != 1:
        raise LoadError(
            "the model must predict one label; it predicts several. Pass package.module:function."
        )
    plain = () if labels is None else tuple(np.asarray(labels, dtype=object).tolist())
    return Loaded(
        model,
        columns=names,
        width=None if width is None else int(width),
        array=names is None and width is not None and not _is_booster(model),
        labels=plain,
    )


def _is_booster(model: object) -> bool:
    return type(model).__name__ in ("Booster", "CatBoost")


def _names(model: object) -> tuple[str, ...] | None:
    """Return the names of the columns a model was trained on, if it knows any."""
    found: Any = None
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        with contextlib.suppress(Exception):  # pipelines raise where they know nothing
            found = getattr(model, attribute, None)
            found = found() if callable(found) else found
        if found is not None:
            break
    if found is None or not len(found):
        return None
    names = tuple(str(name) for name in found)
    return None if any(_numbered(names, prefix) for prefix in ("Column_", "f", "x", "")) else names


def _numbered(names: tuple[str, ...], prefix: str) -> bool:
    """Tell whether names are only positions, as libraries make them up."""
    return names == tuple(f"{prefix}{k}" for k in range(len(names)))


def import_name(source: str) -> object:
    """Return what ``package.module:name`` stands for, with the current folder on the path.

    Raises
    ------
    LoadError
        If there is no such module or name.
    """
    module, _, name = source.partition(":")
    try:
        with _on_path():
            found: Any = importlib.import_module(module)
    except ImportError as error:
        raise LoadError(
            f"{source!r} can't be imported: {error}. Run from the folder that holds the "
            "module, or install it."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = [n for n in dir(found) if not n.startswith("_")]
            raise LoadError(f"the module {module!r} has no {part!r}.{suggest(part, known)}")
        found = getattr(found, part)
    return found


@contextlib.contextmanager
def _on_path() -> Iterator[None]:
    """Let modules of the current folder be imported, as ``python`` does."""
    here = os.getcwd()
    if here in sys.path:
        yield
        return
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


@contextlib.contextmanager
def _damaged(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises about a file into one line."""
    try:
        yield
    except LoadError:
        raise
    except Exception as error:  # each library has errors of its own, without a common base
        raise LoadError(
            f"the model file {str(path)!r} can't be read as {kind}: {_first_line(error)} "
            "Save it again, or check that it is the right file."
        ) from error


def _first_line(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):  # in the library's own message, as XGBoost's
        return "it is damaged or of another kind."
    lines: Iterable[str] = (line.strip() for line in str(error).splitlines())
    text = next((line for line in lines if line), type(error).__name__)
    # XGBoost puts time and place in its source before the reason, ONNX Runtime its codes.
    text = re.sub(r"^\[[\d:]+\] \S+: |^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    return text if text.endswith(".") else f"{text}."


def _library(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingExtraError(f"{what} files need {package}: pip install {package}.") from error
