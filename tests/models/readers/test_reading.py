"""What is read from a model, and what is checked before a form is handed out."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import OutOfTime
from bayescfx.models import as_model, probability
from bayescfx.models.readers import TreeEnsemble, read_model
from bayescfx.models.readers.registry import READERS
from tests.conftest import mixed, pipeline
from tests.models.readers.reading_checks import check_reading, check_refused, numbers, target


class Shifted(DecisionTreeRegressor):  # type: ignore[misc]
    """A tree with other outputs than its nodes say."""

    def predict(self, X: Any, check_input: bool = True) -> Any:
        return super().predict(X, check_input) + 1e-5


class Curved(LinearRegression):  # type: ignore[misc]
    """A model that is linear on its data only."""

    def predict(self, X: Any) -> Any:
        y = super().predict(X)
        return np.where(np.asarray(X)[:, 0] > numbers()["a"][:60].max(), y + 1.0, y)


def test_an_output_that_differs_is_found() -> None:
    table = numbers()
    check_refused(as_model(Shifted().fit(table, target(table))), table, "differ by 1e-05")


def test_a_difference_beyond_the_data_is_found() -> None:
    table = numbers()
    model = Curved().fit(table, target(table))
    check_refused(as_model(model), table[:60], "differ by 1")


def test_a_comparison_at_a_threshold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbers()[["k"]] / 2.0  # thresholds are exact in float32
    model = as_model(DecisionTreeRegressor(max_depth=3).fit(table, target(numbers())))
    check_reading(model, table)
    read = READERS["sklearn.DecisionTreeRegressor"]

    def read_wrong(task: Any) -> Any:
        form: Any = read(task)
        return replace(form, tests=replace(form.tests, is_strict=~form.tests.is_strict))

    monkeypatch.setitem(READERS, "sklearn.DecisionTreeRegressor", read_wrong)
    check_refused(model, table, "differ by")


class Slow(DecisionTreeRegressor):  # type: ignore[misc]
    """A tree that takes a while, and counts the rows that it gets."""

    n_rows = 0

    def predict(self, X: Any, check_input: bool = True) -> Any:
        type(self).n_rows += len(X)
        time.sleep(0.05)
        return super().predict(X, check_input)


def test_a_comparison_ends_at_the_time_limit() -> None:
    table = numbers()
    model = as_model(Slow(max_depth=3).fit(table, target(table)))
    with limited_to(Deadline.after(0.04)), pytest.raises(OutOfTime):
        read_model(model, table)
    assert Slow.n_rows <= 64
    assert read_model(model, table).form is not None


def test_a_comparison_takes_few_rows_in_one_call() -> None:
    table = numbers()
    model = as_model(Slow(max_depth=3).fit(table, target(table)))
    Slow.n_rows = 0
    read_model(model, table)
    assert 400 < Slow.n_rows <= 512


def test_models_without_a_reader_are_named() -> None:
    table = numbers()
    model = SVR()
    model.fit(table / 100.0, target(table))
    check_refused(as_model(model), table, "no reader for SVR")
    check_refused(probability(lambda rows: np.full(len(rows), 0.5)), table, "function")


def test_reading_never_raises() -> None:
    table = numbers()
    model = DecisionTreeRegressor().fit(table, target(table))
    reading = read_model(as_model(model), table.rename(columns={"a": "z"}))
    assert reading.form is None
    assert "ValueError" in reading.reason
    assert read_model(as_model(model), table[:0]).form is None


def test_values_that_the_model_refuses_are_not_compared() -> None:
    table = numbers()[["k"]]
    model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(table, target(numbers()))
    reading = read_model(as_model(model), table)
    assert reading.form is not None


def test_one_row_is_enough() -> None:
    table = numbers()
    model = RandomForestRegressor(5, random_state=0).fit(table, target(table))
    reading = read_model(as_model(model), table[:1])
    assert reading.form is not None
    np.testing.assert_allclose(reading.form.predict(table), model.predict(table), rtol=1e-12)


def test_the_rows_are_not_changed() -> None:
    rows = mixed().copy()
    read_model(as_model(pipeline("lightgbm")), rows)
    pd.testing.assert_frame_equal(rows, mixed())


def test_forms_can_be_pickled() -> None:
    form = check_reading(as_model(pipeline("histograms")), mixed())
    again = pickle.loads(pickle.dumps(form))
    np.testing.assert_array_equal(again.predict(mixed()), form.predict(mixed()))


def test_the_rounding_error_is_small_and_not_zero() -> None:
    table = numbers()
    model = RandomForestRegressor(5, random_state=0).fit(table, target(table))
    reading = read_model(as_model(model), table)
    assert 0.0 < reading.rounding < 1e-12


def test_equal_tests_are_stored_once() -> None:
    table = numbers()
    model = RandomForestRegressor(30, max_depth=2, random_state=0).fit(table[["k"]], target(table))
    form = check_reading(as_model(model), table[["k"]])
    assert isinstance(form, TreeEnsemble)
    keys = np.stack([form.tests.threshold, form.tests.if_missing], axis=1)
    assert len(form.tests) == len(np.unique(keys, axis=0)) <= 10
