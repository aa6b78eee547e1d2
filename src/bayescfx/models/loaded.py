"""A loaded model: the columns it takes, and the function that is explained."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_a
from bayescfx.errors import ModelError, suggest
from bayescfx.models.adapters import Predict
from bayescfx.models.categories import column_knowledge
from bayescfx.models.classifiers import probability
from bayescfx.models.input_columns import match_columns, unmatched
from bayescfx.models.labels import as_classifier, read_labels
from bayescfx.models.model import Model, as_model, bare_classifier

_LISTED_COLUMNS = 12  # in an error message


@dataclass(frozen=True)
class Trust:
    """Which files may be loaded.

    Parameters
    ----------
    pickle : bool, default False
        Whether to load ``.joblib`` and ``.pkl`` files, which can run any code.
    types : tuple of str
        Full names of classes that a ``.skops`` file may contain beside those known as harmless.
    """

    pickle: bool = False
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(isinstance(self.pickle, bool), "pickle", "True or False", self.pickle)
        good = is_a(self.types, tuple) and all(isinstance(name, str) for name in self.types)
        check(good, "types", "a tuple of names", self.types)


class ConstantColumn(NamedTuple):
    """A column that a model takes and that has the same cell in every row.

    Parameters
    ----------
    columns : list of str
        All columns of the model, in its order.
    name : str
        The column.
    cell : object
        Its cell.
    """

    columns: list[str]
    name: str
    cell: Any


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model and what it stores about the rows it takes.

    Parameters
    ----------
    model : object
        The model as its library loads it.
    columns : tuple of str, optional
        The columns it takes, in order.
    width : int, optional
        The number of columns it takes.
    categorical : tuple of str
        Columns it takes as categories, whatever their dtype.
    array : bool
        Whether it was trained on an array and takes no column names.
    labels : tuple
        The classes of a classifier; empty for a regression.
    orders : dict of str to tuple
        Levels in the order that the user gave the model, by column.
    levels : dict of str to tuple
        Levels that its encoders were trained on, by column.
    output : int, optional
        The output to explain, if it has several.
    always : ConstantColumn, optional
        A column that it gets with the same cell in every row.
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
    always: ConstantColumn | None = None

    @classmethod
    def of(cls, model: Any, more: Mapping[str, Any] | None = None) -> Loaded:
        """Return a model with what its attributes store; `more` are further fields."""
        columns = _column_names(model)
        width = _width(model)
        fields = {
            "columns": columns,
            "width": width,
            "array": columns is None and _takes_arrays(model, width),
            "labels": _labels(model),
            **column_knowledge(model)._asdict(),
            **(more or {}),
        }
        return cls(model, **fields)

    def select(self, columns: Sequence[Any]) -> list[Any]:
        """Return the columns of a table that the model takes, in its order, or a `ModelError`.

        >>> Loaded(None, columns=("bmi", "age")).select(["age", "bmi", "y"])
        ['bmi', 'age']
        """
        if self.columns is None:
            self._check_width(columns)
            return list(columns)
        found = match_columns(self.columns, columns)
        if None in found:
            missing = unmatched(self.columns, found)
            listed = ", ".join(map(repr, missing[:_LISTED_COLUMNS]))
            raise ModelError(
                f"the data must have every column that the model takes; missing: {listed}."
                f"{suggest(missing[0], columns)} Rename or add the column."
            )
        return found

    def _check_width(self, columns: Sequence[Any]) -> None:
        """Raise unless a table has as many columns as the model takes."""
        if self.width in (None, len(columns)):
            return
        listed = ", ".join(map(str, columns[:_LISTED_COLUMNS]))
        has_more = len(columns) > (self.width or 0)
        raise ModelError(
            f"the data must have the {self.width} columns that the model takes; got "
            f"{len(columns)}: {listed}.",
            parameter="columns",
            advice="Leave out those it was not trained on." if has_more else "",
        )

    def renamed(self, columns: Sequence[Any]) -> Loaded:
        """Return the model with its column knowledge under the names of a table's columns."""
        stored = [*self.categorical, *self.levels, *self.orders]
        names: dict[str, str] = {}
        for name, column in zip(stored, match_columns(stored, columns), strict=True):
            names[name] = name if column is None else str(column)
        return replace(
            self,
            categorical=tuple(map(names.__getitem__, self.categorical)),
            levels={names[name]: levels for name, levels in self.levels.items()},
            orders={names[name]: levels for name, levels in self.orders.items()},
        )

    def without(self, name: str, cell: Any) -> Loaded:
        """Return the model without one of its columns, which gets the same cell in every row."""
        columns = list(self.columns or ())
        kept = tuple(column for column in columns if column != name)
        return replace(self, columns=kept, always=ConstantColumn(columns, name, cell))

    def scoring(self, label: str | None = None) -> object:
        """Return the model to explain: itself, or a classifier's probability of one label.

        Parameters
        ----------
        label : str, optional
            The text of one of `labels`; required if there are more than two.
        """
        score = self.model
        if self.labels:
            score = self._class_score(label)
        elif label is not None:
            raise ModelError(
                f"the label {label!r} must be one of a classifier's; this model is none. Leave it "
                "out."
            )
        for wrap, *arguments in self._wrappers():
            wrapped = as_model(score)
            labels = wrapped.labels
            if labels is not None:
                labels = replace(labels, wrappers=(*labels.wrappers, (wrap, *arguments)))
            predict = partial(wrap, wrapped.predict, *arguments)
            score = replace(wrapped, predict=predict, labels=labels)
        return score

    def classifier(self) -> Model:
        """Return the classifier as a model whose output is chosen by a target."""
        labels = read_labels(self.model)
        if labels is None:
            return as_model(self.scoring())
        wrappers = tuple(self._wrappers())
        return bare_classifier(replace(labels, wrappers=wrappers), self.model)

    def usual_label(self, label: str | None) -> str | None:
        """Return a label, or the last one of a classifier if none is given."""
        return str(self.labels[-1]) if label is None and self.labels else label

    def _wrappers(self) -> Iterator[tuple[Any, ...]]:
        """Yield the functions that call the model as it needs it, each with its arguments."""
        if self.array:
            yield (_predict_array,)
        if self.always is not None:
            yield (_predict_with_column, *self.always)
        if self.output is not None:
            yield (_predict_one_output, self.output)

    def _class_score(self, label: str | None) -> object:
        """Return a classifier's probability of a label, or its decision value."""
        by_text = {str(known): known for known in self.labels}
        self._check_label(label, by_text)
        if self.output is not None:
            raise ModelError(
                "`output` must not be given for a classifier. Use `label`.", parameter="output"
            )
        chosen = self.labels[-1] if label is None else by_text[label]
        classifier = as_classifier(self.model)
        if hasattr(classifier, "predict_proba"):
            return probability(self.model, chosen)
        decision = partial(_decision_value, classifier, chosen)
        return replace(as_model(decision), output=f"decision value of {chosen}")

    def _check_label(self, label: str | None, by_text: Mapping[str, Any]) -> None:
        """Raise if the label is unknown, or missing for more than two classes."""
        listed = ", ".join(by_text)
        if label is None:
            problem = "none."
            advice = "Name one with `label`."
            is_good = len(by_text) <= 2
        else:
            problem = f"{label!r}.{suggest(label, by_text)}"
            advice = "Correct `label`."
            is_good = label in by_text
        if not is_good:
            text = f"the label must be one of {listed}; got {problem}"
            raise ModelError(text, parameter="label", advice=advice)


def _labels(model: Any) -> tuple[Any, ...]:
    """Return the classes of a classifier; none for a regression."""
    labels = getattr(as_classifier(model), "classes_", ())
    if np.ndim(labels) != 1:
        raise ModelError(
            "the model must predict one label; it predicts several. Pass package.module:function."
        )
    return tuple(np.asarray(labels, dtype=object).tolist())


def _takes_arrays(model: Any, width: int | None) -> bool:
    """Return whether a model without column names was trained on an array of some width."""
    return width is not None and type(model).__name__ not in ("Booster", "CatBoost")


def _column_names(model: object) -> tuple[str, ...] | None:
    """Return the names of the columns a model was trained on, if it stores any."""
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        with contextlib.suppress(Exception):  # pipelines raise if they store none
            found = getattr(model, attribute)
            names = list(map(str, found() if callable(found) else found))
            return None if _are_numbered(names) else tuple(names)
    return None


def _are_numbered(names: list[str]) -> bool:
    """Return whether names are those that libraries give to the columns of an array."""
    prefixes = ("Column_", "f", "x", "")
    return any(names == [f"{prefix}{k}" for k in range(len(names))] for prefix in prefixes)


def _width(model: Any) -> int | None:
    """Return the number of columns that a model takes, if it stores it."""
    width: int | None = getattr(model, "n_features_in_", None)
    for name in ("num_feature", "num_features"):  # of boosters
        method = getattr(model, name, None)
        if width is None and callable(method):
            width = int(method())
    return width


def _predict_array(predict: Predict, rows: Any) -> object:
    """Call a model that was trained without column names, and warns if it gets them."""
    return predict(rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows)


def _predict_with_column(
    predict: Predict, columns: list[str], name: str, cell: Any, rows: pd.DataFrame
) -> object:
    """Call a model with a constant column added, in the order of its columns."""
    return predict(rows.assign(**{name: cell})[columns])


def _predict_one_output(predict: Predict, k: int, rows: Any) -> object:
    """Return one of the several outputs of a model, shape ``(n,)``."""
    raw = np.asarray(predict(rows))
    n_outputs = raw.shape[1] if raw.ndim == 2 else 1
    if n_outputs == 1:
        raise ModelError(
            f"the model has one output; got `output` {k}. Leave it out.", parameter="output"
        )
    if k >= n_outputs:
        raise ModelError(
            f"`output` must be one of 0 to {n_outputs - 1}; got {k}.", parameter="output"
        )
    return raw[:, k]


def _decision_value(model: Any, label: object, rows: Any) -> object:
    """Return the decision value for one label, ``(n,)``, of a classifier without probabilities."""
    values = np.asarray(model.decision_function(rows))
    column = list(model.classes_).index(label)
    if values.ndim == 1:
        return values if column == 1 else -values
    return values[:, column]
