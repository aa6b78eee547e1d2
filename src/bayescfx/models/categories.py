"""What a fitted model stores about its columns: categories, their levels, their orders."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.checks import is_several
from bayescfx.models.input_columns import Category, TruncatedLevel, plain_name


class ColumnKnowledge(NamedTuple):
    """What a model stores about its columns.

    Parameters
    ----------
    categorical : tuple of str
        Columns that it takes as categories, whatever their dtype.
    levels : dict of str to tuple
        Levels that it was trained on, by column.
    orders : dict of str to tuple
        Levels in the order that the user gave, by column.
    """

    categorical: tuple[str, ...]
    levels: dict[str, tuple[Any, ...]]
    orders: dict[str, tuple[Any, ...]]


def column_knowledge(model: Any) -> ColumnKnowledge:
    """Return what a model and its encoders store about columns."""
    categorical = _categorical_columns(model)
    levels: dict[str, tuple[Any, ...]] = {}
    orders: dict[str, tuple[Any, ...]] = {}
    for encoder, names in _encoders(model):
        encoded = _encoder_levels(encoder, names)
        levels |= encoded
        if type(encoder).__name__ != "OrdinalEncoder":
            categorical += names
        elif not isinstance(encoder.categories, str):  # not "auto": an order of the user's
            orders |= encoded
    for category in categories_of(model):
        categorical.append(category.name)
        if category.levels:
            levels[category.name] = category.levels
    return ColumnKnowledge(tuple(dict.fromkeys(categorical)), levels, orders)


def _encoder_levels(encoder: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the levels of an encoder by column, without missing ones."""
    levels = {}
    for name, known in zip(names, encoder.categories_, strict=False):
        values = np.asarray(known, dtype=object).tolist()
        levels[name] = tuple(value for value in values if pd.notna(value))
    return levels


def categories_of(model: Any) -> tuple[Category, ...]:
    """Return the columns that a model needs as pandas' categories, as in training."""
    inner = [category for part in _inner_models(model) for category in categories_of(part)]
    if inner:
        return tuple(dict.fromkeys(inner))
    if hasattr(model, "steps"):
        return tuple(_pipeline_categories(model.steps))
    library, booster = _booster(model)
    if library == "xgboost":
        return tuple(_xgboost_categories(booster))
    if library == "lightgbm":
        return _lightgbm_categories(booster)
    return ()


def _inner_models(model: Any) -> list[Any]:
    """Return the models inside a search, a calibration or a vote, which get the same rows."""
    names = ("best_estimator_", "regressor_", "estimator_")
    found = [getattr(model, name, None) for name in names]
    found += [part.estimator for part in getattr(model, "calibrated_classifiers_", ())]
    found += getattr(model, "named_estimators_", {}).values()
    return [part for part in found if part is not None]


def _booster(model: Any) -> tuple[str, Any]:
    """Return the library and the booster of a model; ``("", None)`` if it has none."""
    for kind in type(model).__mro__:
        library = kind.__module__.partition(".")[0]
        if library not in ("lightgbm", "xgboost"):
            continue
        with contextlib.suppress(ValueError, AttributeError):  # not fitted
            if kind.__name__ == "Booster":
                return library, model
            return library, model.booster_ if library == "lightgbm" else model.get_booster()
    return "", None


# ── pipelines ──


def _pipeline_categories(steps: list[tuple[str, Any]]) -> Iterator[Category]:
    """Yield the categories of a pipeline's last step that earlier steps pass on unchanged."""
    *before, (_, last) = steps
    for category in categories_of(last):
        name: str | None = category.name
        for _, step in reversed(before):
            name = None if name is None else _source_column(step, name)
        if name is not None:
            yield Category(name, category.levels, category.dtype)


def _source_column(step: Any, name: str) -> str | None:
    """Return the column that a step passes on unchanged under this name, if there is one."""
    if step is None or _is_identity(step):
        return name
    for passed_name, column in _passed_columns(step):
        if plain_name(passed_name) == plain_name(name):  # LightGBM rewrites names
            return column
    return None


def _passed_columns(step: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns that a column transformer passes on unchanged: new name and old name."""
    for label, part, selection in getattr(step, "transformers_", ()):
        if _is_identity(part):
            prefix = f"{label}__" if step.verbose_feature_names_out else ""
            for column in _selected_names(selection, step.feature_names_in_):
                yield prefix + column, column


def _is_identity(step: Any) -> bool:
    """Return whether a step of a pipeline returns what it gets."""
    return isinstance(step, str) or (hasattr(step, "func") and step.func is None)


def _encoders(model: Any, columns: Any = None) -> Iterator[tuple[Any, list[str]]]:
    """Yield the level encoders inside a model, each with the names of its columns."""
    steps = [step for _, step in getattr(model, "steps", ())]
    for step in [*steps, *_inner_models(model), getattr(model, "_preprocessor", None)]:
        if step is not None:
            yield from _encoders(step, columns)
    names = getattr(model, "feature_names_in_", columns)
    if names is None:
        return
    for _, step, selection in getattr(model, "transformers_", ()):
        yield from _encoders(step, _selected_names(selection, names))
    if hasattr(model, "categories_"):
        yield model, [str(name) for name in names]


def _selected_names(selection: Any, names: Any) -> list[str]:
    """Return the selected columns among names; `selection` is by name, position or mask."""
    by_name = isinstance(selection, str)
    if not by_name and is_several(selection) and len(selection):
        by_name = isinstance(selection[0], str)
    selected = selection if by_name else np.asarray(names, dtype=object)[selection]
    return [str(name) for name in np.atleast_1d(selected)]


def _categorical_columns(model: Any) -> list[str]:
    """Return the columns that a model itself takes as categories, whatever their dtype."""
    library, booster = _booster(model)
    if library == "lightgbm":
        return lightgbm_categorical(booster)
    if hasattr(model, "get_cat_feature_indices"):  # CatBoost
        return [model.feature_names_[place] for place in model.get_cat_feature_indices()]
    mask = getattr(model, "is_categorical_", None)  # scikit-learn's boosted trees
    names = getattr(model, "feature_names_in_", ())
    if mask is not None and len(names):
        return _selected_names(mask, names)
    return [name for part in _inner_models(model) for name in _categorical_columns(part)]


# ── LightGBM ──


def lightgbm_categorical(booster: Any) -> list[str]:
    """Return the columns that a LightGBM model was trained on as categories."""
    text = booster.model_to_string(num_iteration=1)
    places = re.search(r"^\[categorical_feature: ([\d,]+)\]", text, re.MULTILINE)
    if places is None:
        return []
    names = booster.feature_name()
    return [names[int(place)] for place in places[1].split(",")]


def _lightgbm_categories(booster: Any) -> tuple[Category, ...]:
    """Return the categories of a LightGBM model; none if its levels can't be assigned."""
    names = lightgbm_categorical(booster)
    levels = booster.pandas_categorical or []
    if len(names) != len(levels):  # some were whole numbers, or ordered
        return ()
    return tuple(Category(name, tuple(known)) for name, known in zip(names, levels, strict=True))


# ── XGBoost ──


def _xgboost_categories(booster: Any) -> Iterator[Category]:
    """Yield the categories of an XGBoost model; version 3.1 and newer store the levels."""
    names = getattr(booster, "feature_names", None) or ()
    kinds = getattr(booster, "feature_types", None) or ()
    arrays: dict[str, Any] = {}
    # an older version, no pyarrow, or a linear booster, which has no categories
    with contextlib.suppress(AttributeError, ImportError, ValueError):
        arrays = dict(booster.get_categories(export_to_arrow=True).to_arrow())
    for name, kind in zip(names, kinds, strict=False):
        if kind == "c":
            yield _xgboost_category(name, arrays.get(name))


def _xgboost_category(name: str, array: Any) -> Category:
    """Return the category of a column from the Arrow array of its levels, which may be None."""
    if array is None:
        return Category(name)
    dtype = "str" if str(array.type) == "string" else str(array.type)
    return Category(name, _xgboost_levels(array), dtype)


def _xgboost_levels(array: Any) -> tuple[Any, ...] | None:
    """Return the levels in an Arrow array of XGBoost; None if they can't be told apart.

    Up to version 3.2, XGBoost counts letters but cuts bytes: where letters take several bytes, the
    last letters are lost.
    """
    if str(array.type) != "string":
        return tuple(array.to_pylist())
    _, offsets, letters = array.buffers()
    cuts = np.frombuffer(offsets, dtype=np.int32)[: len(array) + 1].tolist()
    content = letters.to_pybytes()[: cuts[-1]]
    if content.isascii() or _counts_bytes():
        return tuple(array.to_pylist())
    levels = _split_levels(content, [end - start for start, end in pairwise(cuts)])
    return tuple(levels) if len(set(levels)) == len(levels) else None


def _split_levels(content: bytes, lengths: Sequence[int]) -> list[str]:
    """Return levels of these numbers of letters; where bytes are missing, truncated levels."""
    levels: list[str] = []
    rest = content
    for length in lengths:
        level = rest.decode(errors="ignore")[:length]
        if len(level) == length:
            levels.append(level)
            rest = rest[len(level.encode()) :]
        else:
            levels.append(TruncatedLevel(rest, length))
            rest = b""
    return levels


def _counts_bytes() -> bool:
    """Return whether the installed XGBoost stores letters beyond ASCII completely."""
    xgboost = importlib.import_module("xgboost")
    table = pd.DataFrame({"a": pd.Categorical(["é"])})
    stored = xgboost.DMatrix(table, enable_categorical=True).get_categories(export_to_arrow=True)
    return bool(stored.to_arrow()[0][1].buffers()[2].size > 1)
