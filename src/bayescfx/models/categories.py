"""What a fitted model tells of the columns it takes: categories, their levels, their orders."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.checks import is_several
from bayescfx.models.input_columns import Category, Cut, same_name


def categories_of(model: Any) -> tuple[Category, ...]:
    """Return the columns that a model must get as pandas' categories: it was trained on such."""
    inner = [category for part in _inner(model) for category in categories_of(part)]
    if inner:
        return tuple(dict.fromkeys(inner))
    if hasattr(model, "steps"):
        return tuple(_passed(model.steps))
    library, booster = _booster(model)
    if library == "xgboost":
        return tuple(_xgboost_categories(booster))
    if library != "lightgbm":
        return ()
    named, levels = lightgbm_categorical(booster), booster.pandas_categorical or []
    # Where there are more or fewer, some are whole numbers of its own or in an order.
    fits = len(named) == len(levels)
    return tuple(map(Category, named, map(tuple, levels))) if fits else ()


def _inner(model: Any) -> list[Any]:
    """Return the models that one asks with the rows it gets: of searches, calibrations, votes."""
    names = ("best_estimator_", "regressor_", "estimator_")
    found = [getattr(model, name, None) for name in names]
    found += [part.estimator for part in getattr(model, "calibrated_classifiers_", ())]
    found += getattr(model, "named_estimators_", {}).values()
    return [part for part in found if part is not None]


def _booster(model: Any) -> tuple[str, Any]:
    """Return the library of a booster, or of an estimator that has one, and the booster."""
    for kind in type(model).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in ("lightgbm", "xgboost"):
            with contextlib.suppress(ValueError, AttributeError):  # it is not fitted
                if kind.__name__ == "Booster":
                    return library, model
                return library, model.booster_ if library == "lightgbm" else model.get_booster()
    return "", None


def _passed(steps: list[tuple[str, Any]]) -> Iterator[Category]:
    """Yield the categories of a pipeline's last step that get there as they are in the table."""
    *before, (_, last) = steps
    for category in categories_of(last):
        name: str | None = category.name
        for _, step in reversed(before):
            name = None if name is None else _came_from(step, name)
        if name is not None:
            yield Category(name, category.levels, category.dtype)


def _came_from(step: Any, name: str) -> str | None:
    """Return which column a step passes on under this name as it is, if there is one."""
    if step is None or _passes(step):
        return name
    for label, part, chosen in getattr(step, "transformers_", ()):
        prefix = f"{label}__" if step.verbose_feature_names_out else ""
        for column in _named(chosen, step.feature_names_in_) if _passes(part) else ():
            if same_name(prefix + column) == same_name(name):  # which LightGBM has rewritten
                return column
    return None


def _passes(step: Any) -> bool:
    """Return whether a step of a pipeline leaves what it gets as it is."""
    return isinstance(step, str) or (hasattr(step, "func") and step.func is None)


def _xgboost_categories(booster: Any) -> Iterator[Category]:
    """Yield what an XGBoost model was told is categorical; from 3.1 on it keeps the levels."""
    names, kinds = (getattr(booster, f"feature_{what}", None) for what in ("names", "types"))
    found: dict[str, Any] = {}
    with contextlib.suppress(AttributeError, ImportError):  # an older version, or no pyarrow
        found = dict(booster.get_categories(export_to_arrow=True).to_arrow())
    for name, kind in zip(names or (), kinds or (), strict=False):
        if kind == "c" and found.get(name) is None:
            yield Category(name)
        elif kind == "c":
            levels, text = _xgboost_levels(found[name]), str(found[name].type) == "string"
            yield Category(name, levels, "str" if text else str(found[name].type))


def _xgboost_levels(kept: Any) -> tuple[Any, ...] | None:
    """Return the levels that XGBoost keeps of a category, as an Arrow array; None if it can't be.

    Up to 3.2 it counts letters and cuts bytes: where some take several, the last letters are lost.
    """
    if str(kept.type) != "string":
        return tuple(kept.to_pylist())
    _, starts, letters = kept.buffers()
    cuts = np.frombuffer(starts, dtype=np.int32)[: len(kept) + 1].tolist()
    content = letters.to_pybytes()[: cuts[-1]]
    if content.isascii() or _counts_bytes():
        return tuple(kept.to_pylist())
    levels, rest = list[str](), content
    for start, end in pairwise(cuts):
        level = rest.decode(errors="ignore")[: end - start]
        whole = len(level) == end - start
        levels.append(level if whole else Cut(rest, end - start))
        rest = rest[len(level.encode()) :] if whole else b""
    return tuple(levels) if len(set(levels)) == len(levels) else None


def _counts_bytes() -> bool:
    """Return whether this XGBoost keeps letters beyond ASCII as they are."""
    xgboost = importlib.import_module("xgboost")
    table = pd.DataFrame({"a": pd.Categorical(["é"])})
    kept = xgboost.DMatrix(table, enable_categorical=True).get_categories(export_to_arrow=True)
    return bool(kept.to_arrow()[0][1].buffers()[2].size > 1)


def lightgbm_categorical(booster: Any) -> list[str]:
    """Return the columns that a LightGBM model was trained on as categories."""
    text = booster.model_to_string(num_iteration=1)
    places = re.search(r"^\[categorical_feature: ([\d,]+)\]", text, re.MULTILINE)
    names = booster.feature_name()
    return [names[int(place)] for place in places[1].split(",")] if places else []


def told(model: Any) -> dict[str, Any]:
    """Return what a model knows of columns: levels, orders, and which are categories."""
    named, levels, orders = _own(model), dict[str, tuple[Any, ...]](), dict[str, tuple[Any, ...]]()
    for encoder, names in _encoders(model):
        found = [np.asarray(known, dtype=object).tolist() for known in encoder.categories_]
        here = {
            name: tuple(v for v in known if pd.notna(v))
            for name, known in zip(names, found, strict=False)
        }
        levels |= here
        if type(encoder).__name__ != "OrdinalEncoder":
            named += names
        elif not isinstance(encoder.categories, str):  # the user's own order
            orders |= here
    for category in categories_of(model):
        named.append(category.name)
        levels |= {category.name: category.levels} if category.levels else {}
    return {"levels": levels, "orders": orders, "categorical": tuple(dict.fromkeys(named))}


def _own(model: Any) -> list[str]:
    """Return the columns that a model itself takes as categories, whatever their dtype."""
    library, booster = _booster(model)
    if library == "lightgbm":
        return lightgbm_categorical(booster)
    if hasattr(model, "get_cat_feature_indices"):  # CatBoost
        return [model.feature_names_[place] for place in model.get_cat_feature_indices()]
    marked, names = getattr(model, "is_categorical_", None), getattr(model, "feature_names_in_", ())
    if marked is not None and len(names):  # scikit-learn's boosted trees
        return _named(marked, names)
    return [name for part in _inner(model) for name in _own(part)]


def _encoders(model: Any, columns: Any = None) -> Iterator[tuple[Any, list[str]]]:
    """Yield the encoders of levels inside a model, each with the names of its columns."""
    steps = [step for _, step in getattr(model, "steps", ())]
    for step in [*steps, *_inner(model), getattr(model, "_preprocessor", None)]:
        yield from () if step is None else _encoders(step, columns)
    names = getattr(model, "feature_names_in_", columns)
    for _, step, chosen in getattr(model, "transformers_", ()) if names is not None else ():
        yield from _encoders(step, _named(chosen, names))
    if names is not None and hasattr(model, "categories_"):
        yield model, [str(name) for name in names]


def _named(chosen: Any, names: Any) -> list[str]:
    """Return the columns that are chosen among names: by name, position or mask."""
    one = isinstance(chosen, str)
    text = one or (len(chosen) and isinstance(chosen[0], str)) if is_several(chosen) else one
    own = chosen if text else np.asarray(names, dtype=object)[chosen]
    return [str(name) for name in np.atleast_1d(own)]
