"""A loaded model: which columns it takes, and what of it is explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.errors import ModelError, suggest
from bayescfx.model.classifiers import as_classifier, probability
from bayescfx.model.columns import same_name

_SHOWN = 12


@dataclass(frozen=True)
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
    """

    model: object
    columns: tuple[str, ...] | None = None
    width: int | None = None
    categorical: tuple[str, ...] = ()
    array: bool = False
    labels: tuple[Any, ...] = ()

    def select(self, columns: Sequence[Any]) -> list[Any]:
        """Return the columns of a table that the model takes, in its order.

        Parameters
        ----------
        columns : sequence
            The table's columns.

        Raises
        ------
        ModelError
            If the table lacks some, or has another number of columns than a model takes that
            does not know their names.

        Examples
        --------
        >>> Loaded(None, columns=("bmi", "age")).select(["age", "bmi", "y"])
        ['bmi', 'age']
        """
        if self.columns is not None:
            return self._named(self.columns, columns)
        if self.width is not None and self.width != len(columns):
            listed = ", ".join(str(c) for c in columns[:_SHOWN])
            advice = (
                "Leave out those it was not trained on, with --drop."
                if len(columns) > self.width
                else ""
            )
            raise ModelError(
                f"the data must have the {self.width} columns that the model takes; got "
                f"{len(columns)}: {listed}. {advice}".rstrip()
            )
        return list(columns)

    @staticmethod
    def _named(wanted: Sequence[str], columns: Sequence[Any]) -> list[Any]:
        exact = {str(c): c for c in columns}
        loose = {same_name(c): c for c in columns}
        found = [exact.get(name, loose.get(same_name(name))) for name in wanted]
        missing = [name for name, column in zip(wanted, found, strict=True) if column is None]
        if missing:
            shown = ", ".join(map(repr, missing[:_SHOWN]))
            raise ModelError(
                f"the data must have every column that the model takes; missing: {shown}."
                f"{suggest(missing[0], columns)} Rename or add the column."
            )
        return found

    def scoring(self, label: str | None = None) -> object:
        """Return what to explain: the model, or a classifier's probability of one label.

        Parameters
        ----------
        label : str, optional
            The text of one of `labels`; the second one of two by default.

        Raises
        ------
        ModelError
            If there is no such label, or there are more than two and none is named.
        """
        if not self.labels:
            if label is not None:
                raise ModelError(
                    f"the label {label!r} must be one of a classifier's; this model is none. "
                    "Leave it out."
                )
            return _Matrix(self.model) if self.array else self.model
        by_text = {str(known): known for known in self.labels}
        if label is None and len(by_text) > 2:
            raise ModelError(
                f"the label must be one of {', '.join(by_text)}; got none. Name one with --label."
            )
        if label is not None and label not in by_text:
            raise ModelError(
                f"the label must be one of {', '.join(by_text)}; got {label!r}."
                f"{suggest(label, by_text)} Correct --label."
            )
        model = as_classifier(self.model)
        if not hasattr(model, "predict_proba"):
            return _Decision(model, by_text[label] if label else None, self.array)
        chosen = probability(model, None if label is None else by_text[label])
        return replace(chosen, predict=_Matrix(chosen.predict)) if self.array else chosen


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A model that was trained without column names, and warns if it gets them."""

    model: Any

    def __call__(self, rows: Any) -> object:
        predict = getattr(self.model, "predict", self.model)
        return predict(rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A classifier without probabilities: its decision value for one label."""

    model: Any
    label: object
    array: bool

    def __call__(self, rows: Any) -> object:
        values = np.asarray(self.model.decision_function(rows.to_numpy() if self.array else rows))
        classes = list(self.model.classes_)
        place = len(classes) - 1 if self.label is None else classes.index(self.label)
        if values.ndim == 1:
            return values if place == 1 else -values
        return values[:, place]
