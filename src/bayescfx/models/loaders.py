"""Load models from files, from ``package.module:function`` and from web addresses.

Large modules are imported inside functions: the help of the command line only needs `LOADERS`.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import os
import re
import sys

from bayescfx.errors import BayesCFXError, ModelError, optional, suggest

TYPE_CHECKING = False  # importing `typing` is slow
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from bayescfx.models.endpoint import Patience
    from bayescfx.models.loaded import Loaded, Trust

    Content = tuple[object, dict[str, Any]]  # a model, and fields of `Loaded` from its file


REGISTERED = ("mlflow:", "models:/", "runs:/")  # prefixes of addresses of MLflow
_WEB = ("http://", "https://")
#: Loaders of MLflow whose models are used directly.
_MLFLOW_LIBRARIES = ("mlflow.sklearn", "mlflow.lightgbm", "mlflow.xgboost", "mlflow.catboost")


class LoadError(ModelError):
    """A model can't be loaded."""


class UntrustedError(LoadError):
    """A file contains types that are not known as harmless: `types`, by their full names."""

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
        Which files may be loaded; by default none that can run code.
    output : str, optional
        The output to take, if there are several: its name in an ONNX model or at an endpoint, else
        its position, ``"0"`` for the first.
    headers, patience, batch : optional
        Settings of an :class:`Endpoint`.

    Raises
    ------
    LoadError
        If there is no such model, or the file is damaged or of another kind.

    Examples
    --------
    >>> load_model("math:hypot").model(3, 4)
    5.0
    """
    from bayescfx.checks import check, is_a
    from bayescfx.models.loaded import Trust

    good = is_a(source, str) and "\x00" not in source
    check(good, "source", "a path, an address or a name", source, LoadError)
    check(is_a(output, str, type(None)), "output", "a name or a position", output, LoadError)
    if source.startswith(_WEB):
        return _load_endpoint(source, output, batch, headers=headers, patience=patience)
    return _load_local(source, Trust() if trust is None else trust, output)


def _load_local(source: str, trust: Trust, output: str | None) -> Loaded:
    """Return a model from MLflow, a module or a file."""
    from bayescfx.models.loaded import Loaded

    if is_code(source):
        position = _position(source, output)
        return Loaded.of(import_name(source), position)
    if source.startswith(REGISTERED):
        position = _position(source, output)
        model, fields = _mlflow(source, trust)
        return Loaded.of(model, fields | position)
    _check_file(source)
    position = _position(source, output)
    return _load_file(source, trust, None if position else output, position)


def _load_endpoint(source: str, output: str | None, batch: int, **settings: Any) -> Loaded:
    """Return a model behind HTTP; settings that are None have their defaults."""
    from bayescfx.models.endpoint import Endpoint
    from bayescfx.models.loaded import Loaded

    given = {name: value for name, value in settings.items() if value is not None}
    endpoint = Endpoint(source, output, batch, **given)
    return Loaded(endpoint, endpoint.columns())


def _position(source: str, output: str | None) -> dict[str, Any]:
    """Return the field of an output that is given by its position; only ONNX has names."""
    if output is None:
        return {}
    if output.isdecimal():
        return {"output": int(output)}
    if _ending(source) == ".onnx":
        return {}
    raise LoadError(
        f"`output` must be a position, 0 for the first; got {output!r}.", parameter="output"
    )


def _check_file(source: str) -> None:
    """Raise unless there is a file with a known ending."""
    exists = os.path.isfile(source)
    if exists and _ending(source) in LOADERS:
        return
    problem = f"there is no model file {source!r}"
    if exists:
        problem = f"the model file {source!r} is of no known kind"
    raise LoadError(
        f"{problem}. Give a file that ends in "
        f"{', '.join(LOADERS)}, an address http://…, models:/… of MLflow, or "
        "package.module:function."
    )


def _load_file(source: str, trust: Trust, output: str | None, position: dict[str, Any]) -> Loaded:
    """Return a model from a file; `output` is a name, `position` the field of a position."""
    from pathlib import Path

    from bayescfx.models.loaded import Loaded

    kind, load = LOADERS[_ending(source)]
    try:
        model, fields = load(Path(source), trust, output)
        return Loaded.of(model, fields | position)
    except BayesCFXError:
        raise
    except Exception as error:  # libraries raise many types without a common base
        raise LoadError(
            f"the model file {source!r} can't be read as {kind}: {_first_line(error)} Save it "
            "again, or check that it is the right file."
        ) from error


def _ending(source: str) -> str:
    """Return the ending of a file name in lower case."""
    return os.path.splitext(source)[1].lower()


def _onnx(path: Path, _: Trust, output: str | None) -> Content:
    """Return an ONNX model, as a classifier if it is one and no output is named."""
    from bayescfx.models.adapters import Onnx, onnx_classifier, onnx_session

    threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
    session = onnx_session(str(path), ["CPUExecutionProvider"], threads)
    if output is not None:
        _check_onnx_output(session, output)
    elif onnx_classifier(session) is not None:
        return session, _onnx_fields(session)
    return Onnx(session, output), _onnx_fields(session)


def _check_onnx_output(session: Any, output: str) -> None:
    """Raise if an ONNX model has no output of this name."""
    names = [each.name for each in session.get_outputs()]
    if output not in names:
        raise LoadError(
            f"the output must be one of {', '.join(names)}; got {output!r}.{suggest(output, names)}"
        )


def _onnx_fields(session: Any) -> dict[str, Any]:
    """Return the columns of an ONNX model, or their number, if it stores them."""
    from bayescfx.models.adapters import onnx_by_column

    inputs = session.get_inputs()
    if onnx_by_column(session):
        return {"columns": tuple(each.name for each in inputs), "width": len(inputs)}
    match inputs[0].shape:
        case [_, int(width)] if width > 0:
            return {"width": width}
    return {}


def _lightgbm(path: Path, _: Trust, __: str | None) -> Content:
    """Return a LightGBM model of a text file."""
    lightgbm = optional("lightgbm", "LightGBM's .txt files need")
    _check_lightgbm(path.read_bytes())
    return lightgbm.Booster(model_file=str(path)), {}


def _check_lightgbm(content: bytes) -> None:
    """Raise unless the file is complete: LightGBM ends the process at a truncated file."""
    sizes = _tree_sizes(content)
    rest = content
    if sizes:
        rest = content[content.find(b"Tree=0") + sum(sizes) :]
        _check_complete(rest.startswith(b"end of trees"))
    _check_complete(b"\nend of parameters" in rest)


def _check_complete(is_complete: bool) -> None:
    """Raise if a file is incomplete."""
    if not is_complete:
        raise ValueError("it is truncated or was changed.")


def _tree_sizes(content: bytes) -> list[int]:
    """Return the lengths of the trees of a LightGBM file, from its head."""
    head = content[: content.find(b"\n\n")]
    fields = dict(line.partition(b"=")[::2] for line in head.splitlines())
    if not content.startswith(b"tree") or b"tree_sizes" not in fields:
        raise ValueError("it does not start as such a file does.")
    return list(map(int, fields[b"tree_sizes"].split()))


def _xgboost(path: Path, _: Trust, __: str | None) -> Content:
    """Return an XGBoost model of a JSON or UBJSON file."""
    xgboost = optional("xgboost", "XGBoost's .json and .ubj files need")
    _check_complete(path.read_bytes().rstrip().endswith(b"}"))  # XGBoost may read beyond the end
    booster = xgboost.Booster(model_file=str(path))
    best = booster.attr("best_iteration")  # of early stopping: later trees are not used
    return booster if best is None else booster[: int(best) + 1], {}


def _catboost(path: Path, _: Trust, __: str | None) -> Content:
    """Return a CatBoost model, with its classes if it is a classifier."""
    catboost = optional("catboost", ".cbm files need")
    model = catboost.CatBoost().load_model(str(path))
    if len(model.classes_):
        model = catboost.CatBoostClassifier().load_model(str(path))
    return model, {}


def _skops(path: Path, trust: Trust, _: str | None) -> Content:
    """Return a model of a skops file that contains only trusted types."""
    io = optional("skops.io", ".skops files need")
    unknown = tuple(io.get_untrusted_types(file=path))
    refused = [name for name in unknown if name not in trust.types]
    if refused:
        raise _untrusted(path, refused, unknown)
    return io.load(path, trusted=list(unknown)), {}


def _untrusted(path: Path, refused: list[str], unknown: tuple[str, ...]) -> UntrustedError:
    """Return the error for a file with types that are not trusted."""
    error = UntrustedError(
        f"the model file {str(path)!r} contains types that are not known as harmless: "
        f"{', '.join(refused)}.",
        parameter="types",
        advice=f"If you trust its author, pass trust=Trust(types={unknown}).",
    )
    error.types = unknown
    return error


def _pickle(path: Path, trust: Trust, _: str | None) -> Content:
    """Return a model of a pickle, if pickles are trusted."""
    risk = f"the model file {str(path)!r} is a pickle, which can run any code when it is loaded."
    _check_trusted(trust, risk, "; better save it as .skops or .onnx")
    joblib = optional("joblib", f"{path.suffix} files need")
    with _on_path():
        return joblib.load(path), {}


def _check_trusted(trust: Trust, risk: str, alternative: str = "") -> None:
    """Raise unless code of a pickle may run; the message states the risk."""
    if not trust.pickle:
        advice = f"If you trust its author, pass trust=Trust(pickle=True){alternative}."
        raise LoadError(risk, parameter="pickle", advice=advice)


def _mlflow(source: str, trust: Trust) -> Content:
    """Return the model of its own library if that is known, else MLflow's wrapper."""
    _check_trusted(trust, f"the model {source!r} is loaded by MLflow, which can run any code.")
    pyfunc = optional("mlflow.pyfunc", "models of MLflow need", "mlflow")
    try:
        model = pyfunc.load_model(source.removeprefix("mlflow:"))
    except Exception as error:  # stores and libraries raise many types
        raise LoadError(f"MLflow can't load the model {source!r}: {_first_line(error)}") from error
    library = model.metadata.flavors["python_function"].get("loader_module")
    if library in _MLFLOW_LIBRARIES:
        return model.get_raw_model(), {}
    return model, _mlflow_fields(model.metadata.get_input_schema())


def _mlflow_fields(schema: Any) -> dict[str, Any]:
    """Return the columns of an MLflow model, if its schema names them."""
    if schema is None or not schema.has_input_names():
        return {}
    return {"columns": tuple(schema.input_names())}


#: By the ending of a file: its name in messages, and the function that loads it.
LOADERS: dict[str, tuple[str, Callable[[Path, Trust, str | None], Content]]] = {
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
    """Return whether a source is of the form ``package.module:function``."""
    if ":" not in source or source.startswith((*_WEB, *REGISTERED)):
        return False
    return _ending(source) not in LOADERS and not os.path.exists(source)


def import_name(source: str) -> object:
    """Return the object ``package.module:name``, with the current folder on the path."""
    module, _, name = source.partition(":")
    found = _import_module(module, source)
    try:
        return operator.attrgetter(name)(found)
    except AttributeError as error:
        names = [n for n in dir(error.obj) if not n.startswith("_")]
        raise LoadError(
            f"the module {module!r} has no {error.name!r}.{suggest(error.name, names)}"
        ) from error


def _import_module(module: str, source: str) -> object:
    """Return a module; an error names the `source`."""
    try:
        with _on_path():
            return importlib.import_module(module)
    except Exception as error:  # a module may raise anything
        cause = str(error) if isinstance(error, ImportError) else f"{type(error).__name__} {error}"
        raise LoadError(
            f"{source!r} can't be imported: {cause}. Run from the folder that contains the "
            "module, or install it."
        ) from error


@contextlib.contextmanager
def _on_path() -> Iterator[None]:
    """Put the current folder on the import path, as ``python`` does."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without log prefixes of the libraries."""
    if isinstance(error, UnicodeDecodeError):  # in the library's own message, as XGBoost's
        return "it is damaged or of another kind."
    line, *_ = [*str(error).strip().splitlines(), type(error).__name__]
    # XGBoost puts the time and a line of its source before the reason, ONNX Runtime its codes.
    noise = r"^\[[\d:]+\] \S+: |^\[ONNXRuntimeError\] : \d+ : \w+ : "
    return re.sub(noise, "", line.strip()).removesuffix(".") + "."
