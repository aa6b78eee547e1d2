"""A loaded model: which columns it takes, and what of it is explained."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_a
from bayescfx.errors import ModelError, suggest
from bayescfx.models.adapters import Predict
from bayescfx.models.categories import told
from bayescfx.models.classifiers import as_classifier, probability
from bayescfx.models.input_columns import matched
from bayescfx.models.model import as_model


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

    def __post_init__(self) -> None:
        check(isinstance(self.pickle, bool), "pickle", "True or False", self.pickle)
        good = is_a(self.types, tuple) and all(isinstance(name, str) for name in self.types)
        check(good, "types", "a tuple of names", self.types)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model and what it tells about the rows it takes.

    Parameters
    ----------
    model : object
        The model as its library loads it.
    columns : tuple of str, optional
        The columns it takes, in order.
    width : int, optional
        How many columns it takes.
    categorical : tuple of str
        Columns it takes as categories, whatever their dtype.
    array : bool
        Whether it was trained on an array and takes no column names.
    labels : tuple
        The classes of a classifier; empty for a regression.
    orders : dict of str to tuple
        Levels in the order that the model was told, by column.
    levels : dict of str to tuple
        Levels that its encoders were trained on, by column.
    output : int, optional
        Which of several outputs is meant.
    always : tuple of (columns, name, cell), optional
        A column that it takes beside others and gets with the same cell in every row.
    """

    model: object
    columns: tuple[str, ...] | None = None
    width: int | None = None
    categorical: tuple[str, ...] = ()
    array: bool = False
    labels: tuple[Any, ...] = ()
    orders: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    output: int | None = None
    always: tuple[list[str], str, Any] | None = None

    @classmethod
    def of(cls, model: Any, more: Mapping[str, Any] | None = None) -> Loaded:
        """Return a model with what its attributes tell, and what is known besides."""
        columns, width = _names(model), getattr(model, "n_features_in_", None)
        for ask in ("num_feature", "num_features"):  # of boosters
            if width is None and callable(getattr(model, ask, None)):
                width = int(getattr(model, ask)())
        labels = getattr(as_classifier(model), "classes_", ())
        if np.ndim(labels) != 1:
            raise ModelError(
                "the model must predict one label; it predicts several. Pass "
                "package.module:function."
            )
        booster = type(model).__name__ in ("Booster", "CatBoost")
        known = {
            "columns": columns,
            "width": width,
            "array": columns is None and width is not None and not booster,
            "labels": tuple(np.asarray(labels, dtype=object).tolist()),
            **told(model),
            **(more or {}),
        }
        return cls(model, **known)

    def select(self, columns: Sequence[Any]) -> list[Any]:
        """Return the columns of a table that the model takes, in its order, or a `ModelError`.

        >>> Loaded(None, columns=("bmi", "age")).select(["age", "bmi", "y"])
        ['bmi', 'age']
        """
        if self.columns is None:
            if self.width is not None and self.width != len(columns):
                raise ModelError(
                    f"the data must have the {self.width} columns that the model takes; got "
                    f"{len(columns)}: {', '.join(str(c) for c in columns[:12])}.",
                    parameter="columns",
                    advice="Leave out those it was not trained on." * (len(columns) > self.width),
                )
            return list(columns)
        found = matched(self.columns, columns)
        missing = [name for name, c in zip(self.columns, found, strict=True) if c is None]
        if missing:
            raise ModelError(
                "the data must have every column that the model takes; missing: "
                f"{', '.join(map(repr, missing[:12]))}.{suggest(missing[0], columns)} Rename or "
                "add the column."
            )
        return found

    def calling(self, columns: Sequence[Any]) -> Loaded:
        """Return the model with what it knows of columns by their names in a table."""
        known = [*self.categorical, *self.levels, *self.orders]
        found = dict(zip(known, matched(known, columns), strict=True))
        named = {name: str(column) for name, column in found.items() if column is not None}
        return replace(
            self,
            categorical=tuple(named.get(name, name) for name in self.categorical),
            levels={named.get(name, name): levels for name, levels in self.levels.items()},
            orders={named.get(name, name): levels for name, levels in self.orders.items()},
        )

    def without(self, name: str, cell: Any) -> Loaded:
        """Return the model without a column that it takes: it gets the same cell in every row."""
        columns = list(self.columns or ())
        kept = tuple(column for column in columns if column != name)
        return replace(self, columns=kept, always=(columns, name, cell))

    def scoring(self, label: str | None = None) -> object:
        """Return what to explain: the model, or a classifier's probability of one label.

        `label` is the text of one of `labels`; of more than two, it must be given.
        """
        by_text = {str(known): known for known in self.labels}
        if not by_text and label is not None:
            raise ModelError(
                f"the label {label!r} must be one of a classifier's; this model is none. Leave it "
                "out."
            )
        if len(by_text) > 2 if label is None else label not in by_text:
            raise ModelError(
                f"the label must be one of {', '.join(by_text)}; got "
                + ("none." if label is None else f"{label!r}.{suggest(label, by_text)}"),
                parameter="label",
                advice="Name one with `label`." if label is None else "Correct `label`.",
            )
        score, model = self.model, as_classifier(self.model)
        if by_text:
            chosen = self.labels[-1] if label is None else by_text[label]
            sure = hasattr(model, "predict_proba")
            score = probability(self.model, chosen) if sure else partial(_decision, model, chosen)
        if self.output is not None and by_text:
            told = "`output` must not be given for a classifier. Use `label`."
            raise ModelError(told, parameter="output")
        if not self.array and self.output is None and self.always is None:
            return score
        asked = as_model(score)
        predict = partial(_without_names, asked.predict) if self.array else asked.predict
        if self.always is not None:
            predict = partial(_with_column, predict, *self.always)
        if self.output is not None:
            predict = partial(_one_output, predict, self.output)
        return replace(asked, predict=predict)


def _names(model: object) -> tuple[str, ...] | None:
    """Return the names of the columns a model was trained on, if it knows any."""
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        with contextlib.suppress(Exception):  # pipelines raise where they know nothing
            found = getattr(model, attribute)
            names = [str(name) for name in (found() if callable(found) else found)]
            made_up = [[f"{p}{k}" for k in range(len(names))] for p in ("Column_", "f", "x", "")]
            return None if names in made_up else tuple(names)
    return None


def _without_names(predict: Predict, rows: Any) -> object:
    """Ask a model that was trained without column names, and warns if it gets them."""
    return predict(rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows)


def _with_column(
    predict: Predict, columns: list[str], name: str, cell: Any, rows: pd.DataFrame
) -> object:
    """Ask a model that takes one column more, in its order."""
    return predict(rows.assign(**{name: cell})[columns])


def _one_output(predict: Predict, k: int, rows: Any) -> object:
    """Return one of the several outputs of a model, (n,)."""
    raw = np.asarray(predict(rows))
    many = raw.shape[1] if raw.ndim == 2 else 1
    if many == 1:
        told = f"the model has one output; got `output` {k}. Leave it out."
        raise ModelError(told, parameter="output")
    if k >= many:
        told = f"`output` must be one of 0 to {many - 1}; got {k}."
        raise ModelError(told, parameter="output")
    return raw[:, k]


def _decision(model: Any, label: object, rows: Any) -> object:
    """Return the decision value for one label, (n,), of a classifier without probabilities."""
    values, place = np.asarray(model.decision_function(rows)), list(model.classes_).index(label)
    if values.ndim == 1:
        return values if place == 1 else -values
    return values[:, place]
