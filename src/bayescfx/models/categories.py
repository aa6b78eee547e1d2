"""Column knowledge of fitted models: categories, their levels, their orders."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.checks import is_several
from bayescfx.models.input_columns import (
    TREE_LIBRARIES,
    Category,
    TruncatedLevel,
    library_of,
    plain_name,
)

#: Attributes of models that hold another model.
_INNER_MODELS = ("best_estimator_", "regressor_", "estimator_")


class ColumnKnowledge(NamedTuple):
    """Facts about its columns that a model stores.

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

    def joined(self, other: ColumnKnowledge) -> ColumnKnowledge:
        """Return the knowledge of both; the other's levels and orders count."""
        names = dict.fromkeys((*self.categorical, *other.categorical))
        return ColumnKnowledge(tuple(names), self.levels | other.levels, self.orders | other.orders)


def column_knowledge(model: Any) -> ColumnKnowledge:
    """Return the facts about columns that a model and its encoders store."""
    found = ColumnKnowledge(tuple(_categorical_columns(model)), {}, {})
    for encoder, names in _encoders(model):
        found = found.joined(_encoder_knowledge(encoder, names))
    for category in categories_of(model):
        levels = {category.name: category.levels} if category.levels else {}
        found = found.joined(ColumnKnowledge((category.name,), levels, {}))
    return found


def _encoder_knowledge(encoder: Any, names: Sequence[str]) -> ColumnKnowledge:
    """Return the facts about columns that an encoder stores."""
    levels = {}
    for name, known in zip(names, encoder.categories_, strict=False):
        values = np.asarray(known, dtype=object)
        levels[name] = tuple(values[pd.notna(values)].tolist())
    if type(encoder).__name__ != "OrdinalEncoder":
        return ColumnKnowledge(tuple(names), levels, {})
    has_order = not isinstance(encoder.categories, str)  # not "auto": an order of the user's
    return ColumnKnowledge((), levels, levels if has_order else {})


def categories_of(model: Any) -> tuple[Category, ...]:
    """Return the columns that a model needs as pandas' categories, as in training."""
    inner: dict[Category, None] = {}
    for part in _inner_models(model):
        inner.update(dict.fromkeys(categories_of(part)))
    if inner:
        return tuple(inner)
    if hasattr(model, "steps"):
        return tuple(_pipeline_categories(model.steps))
    library, booster = _booster(model)
    return tuple(_BOOSTER_CATEGORIES[library](booster))


def _inner_models(model: Any) -> list[Any]:
    """Return the models inside a search, a calibration or a vote, which get the same rows."""
    found = [getattr(model, name, None) for name in _INNER_MODELS]
    found += [part.estimator for part in getattr(model, "calibrated_classifiers_", ())]
    found += getattr(model, "named_estimators_", {}).values()
    return [part for part in found if part is not None]


def _booster(model: Any) -> tuple[str, Any]:
    """Return the library and the booster of a model; ``("", None)`` if it has none."""
    library = library_of(model)
    if library not in TREE_LIBRARIES:
        return "", None
    with contextlib.suppress(ValueError, AttributeError):  # not fitted
        if hasattr(type(model), "booster_"):  # an estimator of LightGBM
            return library, model.booster_
        return library, model.get_booster() if hasattr(model, "get_booster") else model
    return "", None


# ── pipelines ──


def _pipeline_categories(steps: list[tuple[str, Any]]) -> Iterator[Category]:
    """Yield the categories of a pipeline's last step that earlier steps pass on unchanged."""
    *before, (_, last) = steps
    for category in categories_of(last):
        name: str | None = category.name
        for _, step in reversed(before):
            name = _source_column(step, name)
        if name is not None:
            yield Category(name, category.levels, category.dtype)


def _source_column(step: Any, name: str | None) -> str | None:
    """Return the column that a step passes on unchanged under this name, if there is one."""
    if name is None or _is_identity(step):
        return name
    plain = plain_name(name)  # LightGBM rewrites names
    passed = _passed_columns(step)
    return next((column for new_name, column in passed if plain_name(new_name) == plain), None)


def _passed_columns(step: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns that a column transformer passes on unchanged: new name and old name."""
    for label, part, selection in getattr(step, "transformers_", ()):
        prefix = f"{label}__" if step.verbose_feature_names_out else ""
        columns = _selected_names(selection, step.feature_names_in_) if _is_identity(part) else []
        for column in columns:
            yield prefix + column, column


def _is_identity(step: Any) -> bool:
    """Return whether a step of a pipeline, ``"passthrough"`` or None too, returns what it gets."""
    return isinstance(step, str | None) or getattr(step, "func", step) is None


def _encoders(model: Any, columns: Any = None) -> Iterator[tuple[Any, list[str]]]:
    """Yield the level encoders inside a model, each with the names of its columns."""
    for step in _inner_steps(model):
        yield from _encoders(step, columns)
    names = getattr(model, "feature_names_in_", columns)
    if names is None:
        return
    for _, step, selection in getattr(model, "transformers_", ()):
        yield from _encoders(step, _selected_names(selection, names))
    if hasattr(model, "categories_"):
        yield model, list(map(str, names))


def _inner_steps(model: Any) -> list[Any]:
    """Return the parts of a model that get all of its columns."""
    steps = [step for _, step in getattr(model, "steps", ())]
    steps += _inner_models(model)
    preprocessor = getattr(model, "_preprocessor", None)
    return steps if preprocessor is None else [*steps, preprocessor]


def _selected_names(selection: Any, names: Any) -> list[str]:
    """Return the selected columns among names; `selection` is by name, position or mask."""
    selected = selection
    if not _is_by_name(selection):
        selected = np.asarray(names, dtype=object)[selection]
    return list(map(str, np.atleast_1d(selected)))


def _is_by_name(selection: Any) -> bool:
    """Return whether columns are selected by their names."""
    first = selection
    if is_several(selection) and len(selection):
        first = selection[0]
    return isinstance(first, str)


def _categorical_columns(model: Any) -> list[str]:
    """Return the columns that a model itself takes as categories, whatever their dtype."""
    library, booster = _booster(model)
    if library == "lightgbm":
        return lightgbm_categorical(booster)
    if hasattr(model, "get_cat_feature_indices"):  # CatBoost
        return [model.feature_names_[place] for place in model.get_cat_feature_indices()]
    if getattr(model, "is_categorical_", None) is not None:
        return _masked_columns(model)
    return [*itertools.chain.from_iterable(map(_categorical_columns, _inner_models(model)))]


def _masked_columns(model: Any) -> list[str]:
    """Return the categories of scikit-learn's boosted trees, which store a mask of them."""
    names = getattr(model, "feature_names_in_", ())
    return _selected_names(model.is_categorical_, names) if len(names) else []


# ── LightGBM ──


def lightgbm_categorical(booster: Any) -> list[str]:
    """Return the columns that a LightGBM model was trained on as categories."""
    text = booster.model_to_string(num_iteration=1)
    places = re.search(r"^\[categorical_feature: ([\d,]+)\]", text, re.MULTILINE)
    if places is None:
        return []
    names = booster.feature_name()
    return [names[int(place)] for place in places[1].split(",")]


def _lightgbm_categories(booster: Any) -> list[Category]:
    """Return the categories of a LightGBM model; none if its levels can't be assigned."""
    names = lightgbm_categorical(booster)
    levels = list(map(tuple, booster.pandas_categorical or []))
    if len(names) != len(levels):  # some were whole numbers, or ordered
        return []
    return list(map(Category, names, levels))


# ── XGBoost ──


def _xgboost_categories(booster: Any) -> Iterator[Category]:
    """Yield the categories of an XGBoost model; version 3.1 and newer store the levels."""
    arrays = _xgboost_arrays(booster)
    names = getattr(booster, "feature_names", None)
    kinds = getattr(booster, "feature_types", None)
    if names is None or kinds is None:
        return
    for name in itertools.compress(names, [kind == "c" for kind in kinds]):
        yield _xgboost_category(name, arrays.get(name))


def _xgboost_arrays(booster: Any) -> dict[str, Any]:
    """Return the levels of an XGBoost model as Arrow arrays, by column."""
    # an older version, no pyarrow, or a linear booster, which has no categories
    with contextlib.suppress(AttributeError, ImportError, ValueError):
        return dict(booster.get_categories(export_to_arrow=True).to_arrow())
    return {}


def _xgboost_category(name: str, array: Any) -> Category:
    """Return the category of a column from the Arrow array of its levels, which may be None."""
    if array is None:
        return Category(name)
    if str(array.type) == "string":
        return Category(name, _xgboost_texts(array), "str")
    return Category(name, tuple(array.to_pylist()), str(array.type))


def _xgboost_texts(array: Any) -> tuple[str, ...] | None:
    """Return the levels in an Arrow array of XGBoost; None if they are ambiguous.

    Up to version 3.2, XGBoost counts letters but cuts bytes: where letters take several bytes, the
    last letters are lost.
    """
    _, offsets, letters = array.buffers()
    cuts = np.frombuffer(offsets, dtype=np.int32)[: len(array) + 1]
    content = letters.to_pybytes()[: cuts[-1]]
    if content.isascii() or _counts_bytes():
        return tuple(array.to_pylist())
    levels = _split_levels(content, np.diff(cuts).tolist())
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


#: The readers of a booster's categories by its library.
_BOOSTER_CATEGORIES: dict[str, Callable[[Any], Iterable[Category]]] = {
    "": lambda _: (),
    "lightgbm": _lightgbm_categories,
    "xgboost": _xgboost_categories,
}
