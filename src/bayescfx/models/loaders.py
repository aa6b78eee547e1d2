"""Models from files, from ``package.module:function`` and from web addresses.

Nothing big is imported before a model is loaded: the help of the command line shows `LOADERS`.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import os
import re
import sys

from bayescfx.errors import BayesCFXError, ModelError, optional, suggest

TYPE_CHECKING = False  # `typing` takes its time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from bayescfx.models.endpoint import Patience
    from bayescfx.models.loaded import Loaded, Trust

    Found = tuple[object, dict[str, Any]]  # a model, and what its file tells about it


REGISTERED = ("mlflow:", "models:/", "runs:/")  # how addresses of MLflow begin


class LoadError(ModelError):
    """A model can't be loaded."""


class UntrustedError(LoadError):
    """A file holds types that are not known as harmless: `types`, by their full names."""

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
        ``.cbm`` (CatBoost), ``.skops``, ``.joblib`` or ``.pkl``; ``http://…``; ``models:/name/1``,
        ``runs:/id/model`` or ``mlflow:folder`` (MLflow); or ``package.module:function``.
    trust : Trust, optional
        What files may do when they are loaded; nothing that runs code, by default.
    output : str, optional
        Which output to take, if there are several: its name in an ONNX model or at an endpoint,
        else its position, ``"0"`` for the first.
    headers, patience, batch : optional
        Of an :class:`Endpoint`.

    Raises
    ------
    LoadError
        If there is no such model, or the file is damaged or of another kind.

    Examples
    --------
    >>> load_model("math:hypot").model(3, 4)
    5.0
    """
    from pathlib import Path

    from bayescfx.checks import check, is_a
    from bayescfx.models.endpoint import Endpoint, Patience
    from bayescfx.models.loaded import Loaded, Trust

    good = is_a(source, str) and "\x00" not in source
    check(good, "source", "a path, an address or a name", source, LoadError)
    check(is_a(output, str, type(None)), "output", "a name or a position", output, LoadError)
    if source.startswith(("http://", "https://")):
        headers = {} if headers is None else headers
        patience = Patience() if patience is None else patience
        asked = Endpoint(source, output, batch, headers, patience)
        return Loaded(asked, asked.columns())
    path, trust = Path(source), Trust() if trust is None else trust
    ending, there = path.suffix.lower(), os.path.isfile(path)
    registered, code = source.startswith(REGISTERED), is_code(source)
    if not registered and not code and (ending not in LOADERS or not there):
        what = f"the model file {source!r} is of no known kind"
        raise LoadError(
            f"{what if there else f'there is no model file {source!r}'}. Give a file that ends in "
            f"{', '.join(LOADERS)}, an address http://…, models:/… of MLflow, or "
            "package.module:function."
        )
    place = {"output": int(output)} if output is not None and output.isdecimal() else {}
    if output is not None and not place and ending != ".onnx":
        told = f"`output` must be a position, 0 for the first; got {output!r}."
        raise LoadError(told, parameter="output")
    if code:
        return Loaded.of(import_name(source), place)
    if registered:
        model, known = _mlflow(source, trust)
        return Loaded.of(model, known | place)
    kind, load = LOADERS[ending]
    try:
        model, known = load(path, trust, None if place else output)
        return Loaded.of(model, known | place)
    except BayesCFXError:
        raise
    except Exception as error:  # each library has errors of its own, without a common base
        raise LoadError(
            f"the model file {source!r} can't be read as {kind}: {_first_line(error)} Save it "
            "again, or check that it is the right file."
        ) from error


def _onnx(path: Path, _: Trust, output: str | None) -> Found:
    from bayescfx.models.adapters import Onnx, onnx_by_column, onnx_classifier, onnx_session

    threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
    session = onnx_session(str(path), ["CPUExecutionProvider"], threads)
    known = [o.name for o in session.get_outputs()]
    if output is not None and output not in known:
        raise LoadError(
            f"the output must be one of {', '.join(known)}; got {output!r}.{suggest(output, known)}"
        )
    classifier = output is None and onnx_classifier(session) is not None
    model = session if classifier else Onnx(session, output)
    inputs = session.get_inputs()
    if onnx_by_column(session):
        return model, {"columns": tuple(i.name for i in inputs), "width": len(inputs)}
    width = inputs[0].shape[1] if len(inputs[0].shape) == 2 else None
    return model, {"width": width} if isinstance(width, int) and width > 0 else {}


def _lightgbm(path: Path, _: Trust, __: str | None) -> Found:
    lightgbm = optional("lightgbm", "LightGBM's .txt files need")
    _check_lightgbm(path.read_bytes())
    return lightgbm.Booster(model_file=str(path)), {}


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


def _xgboost(path: Path, _: Trust, __: str | None) -> Found:
    xgboost = optional("xgboost", "XGBoost's .json and .ubj files need")
    if not path.read_bytes().rstrip().endswith(b"}"):  # XGBoost may read on behind the end
        raise ValueError("it is cut off or was changed.")
    booster = xgboost.Booster(model_file=str(path))
    best = booster.attr("best_iteration")  # of early stopping: its own estimators use no tree after
    return booster if best is None else booster[: int(best) + 1], {}


def _catboost(path: Path, _: Trust, __: str | None) -> Found:
    catboost = optional("catboost", ".cbm files need")
    model = catboost.CatBoost().load_model(str(path))
    if len(model.classes_):
        model = catboost.CatBoostClassifier().load_model(str(path))
    return model, {}


def _skops(path: Path, trust: Trust, _: str | None) -> Found:
    io = optional("skops.io", ".skops files need")
    unknown = tuple(io.get_untrusted_types(file=path))
    refused = [name for name in unknown if name not in trust.types]
    if refused:
        error = UntrustedError(
            f"the model file {str(path)!r} holds types that are not known as harmless: "
            f"{', '.join(refused)}.",
            parameter="types",
            advice=f"If you trust who made it, pass trust=Trust(types={unknown}).",
        )
        error.types = unknown
        raise error
    return io.load(path, trusted=list(unknown)), {}


def _pickle(path: Path, trust: Trust, _: str | None) -> Found:
    told = f"the model file {str(path)!r} is a pickle, which can run any code when it is loaded."
    _check_trusted(trust, told, "; better save it as .skops or .onnx")
    joblib = optional("joblib", f"{path.suffix} files need")
    with _on_path():
        return joblib.load(path), {}


def _check_trusted(trust: Trust, told: str, better: str = "") -> None:
    if not trust.pickle:
        advice = f"If you trust who made it, pass trust=Trust(pickle=True){better}."
        raise LoadError(told, parameter="pickle", advice=advice)


def _mlflow(source: str, trust: Trust) -> Found:
    """Return the model itself where its library is known, else what MLflow makes of it."""
    _check_trusted(trust, f"the model {source!r} is loaded by MLflow, which can run any code.")
    pyfunc = optional("mlflow.pyfunc", "models of MLflow need", "mlflow")
    try:
        model = pyfunc.load_model(source.removeprefix("mlflow:"))
    except Exception as error:  # each store and library has errors of its own
        raise LoadError(f"MLflow can't load the model {source!r}: {_first_line(error)}") from error
    library = model.metadata.flavors["python_function"].get("loader_module")
    if library in ("mlflow.sklearn", "mlflow.lightgbm", "mlflow.xgboost", "mlflow.catboost"):
        return model.get_raw_model(), {}
    schema = model.metadata.get_input_schema()
    named = schema is not None and schema.has_input_names()
    return model, {"columns": tuple(schema.input_names())} if named else {}


#: By how a file's name ends: what it is called in messages, and how it is loaded.
LOADERS: dict[str, tuple[str, Callable[[Path, Trust, str | None], Found]]] = {
    ".onnx": ("an ONNX model", _onnx),
    ".txt": ("a LightGBM model", _lightgbm),
    ".json": ("an XGBoost model", _xgboost),
    ".ubj": ("an XGBoost model", _xgboost),
    ".cbm": ("a CatBoost model", _catboost),
    ".skops": ("a skops file", _skops),
    ".joblib": ("a pickle", _pickle),
    ".pkl": ("a pickle", _pickle),
}


def is_code(source: str) -> bool:
    """Return whether a model is named as ``package.module:function``."""
    if ":" not in source or source.startswith(("http://", "https://", *REGISTERED)):
        return False
    return os.path.splitext(source)[1].lower() not in LOADERS and not os.path.exists(source)


def import_name(source: str) -> object:
    """Return what ``package.module:name`` stands for, with the current folder on the path."""
    module, _, name = source.partition(":")
    try:
        with _on_path():
            found = importlib.import_module(module)
    except Exception as error:  # whatever the module does when it is imported
        told = str(error) if isinstance(error, ImportError) else f"{type(error).__name__} {error}"
        raise LoadError(
            f"{source!r} can't be imported: {told}. Run from the folder that holds the "
            "module, or install it."
        ) from error
    try:
        return operator.attrgetter(name)(found)
    except AttributeError as error:
        known = [n for n in dir(error.obj) if not n.startswith("_")]
        told = f"the module {module!r} has no {error.name!r}.{suggest(error.name, known)}"
        raise LoadError(told) from error


@contextlib.contextmanager
def _on_path() -> Iterator[None]:
    """Let modules of the current folder be imported, as ``python`` does."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _first_line(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):  # in the library's own message, as XGBoost's
        return "it is damaged or of another kind."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # XGBoost puts time and place in its source before the reason, ONNX Runtime its codes.
    noise = r"^\[[\d:]+\] \S+: |^\[ONNXRuntimeError\] : \d+ : \w+ : "
    text = re.sub(noise, "", lines[0] if lines else type(error).__name__)
    return text if text.endswith(".") else f"{text}."
