"""Any model as a function of rows, and the errors if it is none."""

from __future__ import annotations

import functools
import pickle
import sys
import types
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from bayescfx.errors import ModelError
from bayescfx.models.classifiers import probability
from bayescfx.models.input_columns import match_columns
from bayescfx.models.model import TAKES_ARRAY_HINT, TAKES_TABLE_HINT, Model, as_model
from bayescfx.space.space import Space

TWO_COLUMNS = Space.from_data(np.array([[0.5, 1.5], [2.5, 3.5]])).schema
FRAME = pd.DataFrame({"hour": [3, 4], "distance": [0.0, 1.5]})


def constant(output: object) -> Model:
    return as_model(lambda rows: output)


@pytest.mark.parametrize(
    "output",
    [
        np.array([1.0, 2.0]),
        np.array([[1.0], [2.0]]),
        np.array([1, 2], dtype=np.int8),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([1, 2.0], dtype=object),
        [1, 2],
        (1.0, np.float32(2.0)),
        pd.Series([2.0, 1.0], index=[1, 0]),
        pd.DataFrame({"y": [2.0, 1.0]}, index=[1, 0]),
        pd.Series([1, 2], dtype="Int64"),
        pd.DataFrame({"y": [1, 2]}),
    ],
    ids=lambda output: f"{type(output).__name__}-{getattr(output, 'dtype', '')}",
)
def test_one_number_per_row_is_accepted_in_every_form(output: object) -> None:
    y = constant(output)(FRAME)
    assert y.dtype == np.float64
    assert y.tolist() == [1.0, 2.0]


def test_booleans_count_as_zero_and_one() -> None:
    assert constant(np.array([True, False]))(FRAME).tolist() == [1.0, 0.0]


def test_objects_with_predict_and_bare_callables_are_models() -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    fitted = LinearRegression().fit(X, y)
    assert np.array_equal(as_model(fitted)(X), fitted.predict(X))
    assert np.array_equal(as_model(fitted.predict)(X), fitted.predict(X))
    assert as_model(functools.partial(np.sum, axis=1))(X).tolist() == [1.0, 5.0, 9.0]


def test_predict_is_preferred_to_calling() -> None:
    class Both:
        def predict(self, rows: Any) -> list[float]:
            return [1.0] * len(rows)

        def __call__(self, rows: Any) -> list[float]:
            raise AssertionError

    assert as_model(Both())(FRAME).tolist() == [1.0, 1.0]


def test_a_model_stays_a_model_and_learns_the_column_names() -> None:
    model = probability(lambda rows: [0.5 for _ in rows])
    again = as_model(model, TWO_COLUMNS)
    assert again.link == "logit"
    assert again.names == ("x0", "x1")
    assert as_model(model) is model


def test_two_columns_are_refused_with_a_hint() -> None:
    with pytest.raises(ModelError) as caught:
        constant(np.zeros((10, 2)))(pd.DataFrame({"a": range(10)}))
    assert str(caught.value) == (
        "`model` returned shape (10, 2) for 10 rows; expected (10,). If these are "
        "several outputs, pass one of them, e.g. lambda X: model.predict(X)[:, 0]; for a "
        "classifier pass bayescfx.probability(model, label)."
    )


@pytest.mark.parametrize(
    "predict",
    [
        lambda X: X[:, 0],
        lambda X: X[0],
        lambda X: X.reshape(-1),
        lambda X: np.dot(X.ravel(), 1.0),
    ],
)
def test_a_model_of_arrays_that_gets_a_table_raises_its_error_with_a_hint(predict: Any) -> None:
    with pytest.raises((LookupError, AttributeError, pd.errors.InvalidIndexError)) as caught:
        as_model(predict)(pd.DataFrame({"a": [1.0, 2.0]}))
    assert TAKES_ARRAY_HINT in caught.value.__notes__


@pytest.mark.parametrize("predict", [lambda X: X["a"], lambda X: X.iloc[:, 0]])
def test_a_model_of_tables_that_gets_an_array_raises_its_error_with_a_hint(predict: Any) -> None:
    with pytest.raises((LookupError, AttributeError)) as caught:
        as_model(predict)(np.ones((2, 2)))
    assert TAKES_TABLE_HINT in caught.value.__notes__


@pytest.mark.parametrize("predict", [lambda X: X["b"], lambda X: X.a.nothing, lambda X: 1 / 0])
def test_other_errors_of_a_model_get_no_hint_about_tables(predict: Any) -> None:
    with pytest.raises((KeyError, AttributeError, ZeroDivisionError)) as caught:
        as_model(predict)(pd.DataFrame({"a": [1.0, 2.0]}))
    assert len(caught.value.__notes__) == 1  # the row


@pytest.mark.parametrize("output", [1.0, [1.0], [1.0, 2.0, 3.0], np.zeros((3, 1)), np.zeros(0)])
def test_another_number_of_outputs_is_refused(output: object) -> None:
    shape = np.shape(np.asarray(output))
    with pytest.raises(ModelError) as caught:
        constant(output)(FRAME)
    assert str(caught.value) == (
        f"`model` returned shape {shape} for 2 rows; expected (2,). It gets all rows at once and "
        "returns one number for each."
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_name_their_row(bad: float) -> None:
    with pytest.raises(ModelError) as caught:
        constant([1.0, bad])(FRAME)
    assert str(caught.value) == (
        f"`model` returned {bad!r} for {{'hour': 4, 'distance': 1.5}}. "
        "Exclude that region with space.require, or pass on_fault='skip'."
    )


def test_a_missing_output_of_a_nullable_series_is_nan() -> None:
    with pytest.raises(ModelError, match=r"`model` returned nan for {'hour': 4"):
        constant(pd.Series([1, None], dtype="Int64"))(FRAME)


@pytest.mark.parametrize("index", [[7, 3], ["a", "b"], [0, 0]])
def test_a_series_about_other_rows_is_refused(index: list[Any]) -> None:
    with pytest.raises(ModelError, match="by position or with the index of the rows; got a Series"):
        constant(pd.Series([1.0, 2.0], index=index))(FRAME)


def test_a_series_goes_by_the_index_of_the_rows() -> None:
    rows = FRAME.set_axis([7, 3])
    assert as_model(lambda X: X["hour"].sort_index())(rows).tolist() == [3.0, 4.0]
    assert constant(pd.Series([1.0, 2.0], index=[1, 0]))(rows.to_numpy()).tolist() == [2.0, 1.0]


@pytest.mark.parametrize("kind", [float, int])
def test_masked_cells_are_missing(kind: type) -> None:
    masked: Any = np.ma.masked_array(np.array([1, 2], dtype=kind), mask=[True, False])
    assert np.array_equal(constant(masked).scores(FRAME), [np.nan, 2.0], equal_nan=True)
    table = np.ma.masked_array([[0.5, 0.5], [0.2, 0.8]], mask=[[False, True], [False, False]])
    clf = types.SimpleNamespace(predict_proba=lambda rows: table, classes_=[0, 1])
    assert np.array_equal(probability(clf).scores(FRAME), [np.nan, 0.8], equal_nan=True)


@pytest.mark.parametrize("huge", [10**400, -(10**400), np.longdouble("1e400"), Fraction(10**400)])
def test_numbers_beyond_float64_are_faults(huge: Any) -> None:
    model = as_model(lambda rows: [1.5, huge])
    assert model.scores(FRAME)[0] == 1.5
    with pytest.raises(ModelError, match=r"`model` returned -?inf for"):
        model(FRAME)


def test_rows_of_an_array_are_named_by_the_schema_or_by_position() -> None:
    rows = np.array([[1.0, 2.0]])
    bad = constant([np.nan])
    with pytest.raises(ModelError, match=r"for {0: 1.0, 1: 2.0}"):
        bad(rows)
    with pytest.raises(ModelError, match=r"for {'x0': 1.0, 'x1': 2.0}"):
        as_model(bad, TWO_COLUMNS)(rows)


def test_wide_rows_are_shortened_in_messages() -> None:
    wide = pd.DataFrame(np.zeros((1, 90)), columns=[f"c{j}" for j in range(90)])
    with pytest.raises(ModelError) as caught:
        constant([np.nan])(wide)
    assert "'c19': 0.0, …}" in str(caught.value)
    assert "c20" not in str(caught.value)


@pytest.mark.parametrize(
    "output", [["yes", "no"], np.array(["1", "2"]), [1.0, None], [1.0, pd.NA], [1j, 2j]]
)
def test_labels_are_refused_with_a_pointer_to_probability(output: object) -> None:
    with pytest.raises(ModelError) as caught:
        constant(output)(FRAME)
    assert str(caught.value).startswith("`model` must return numbers; got ")
    assert str(caught.value).endswith("For a classifier pass bayescfx.probability(model, label).")


def test_decimals_are_refused_because_they_are_no_floats() -> None:
    with pytest.raises(ModelError, match="must return numbers; got Decimal"):
        constant([Decimal(1), Decimal(2)])(FRAME)


def test_durations_are_refused_because_their_unit_is_unknown() -> None:
    with pytest.raises(ModelError, match="must return numbers; got"):
        constant(np.array([1, 2], dtype="timedelta64[s]"))(FRAME)


def test_inputs_are_matched_by_their_own_name_first_and_never_by_two_columns() -> None:
    assert match_columns(["a b", "a_b", "c"], ["a_b", "a b", "c"]) == ["a b", "a_b", "c"]
    assert match_columns(["a_b", "d"], ["a b", "c"]) == ["a b", None]
    with pytest.raises(ModelError, match="'a_b' must be one column; got 'a b' and 'a-b'"):
        match_columns(["a_b"], ["a b", "a-b"])


def test_a_bare_classifier_is_refused_with_a_pointer_to_probability() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    clf = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    words = r"classifier of the labels 'no', 'yes', .* Pass bayescfx.probability\(model, label\)"
    with pytest.raises(ModelError, match=words):
        as_model(clf)(X)


def test_outputs_that_are_no_array_are_errors() -> None:
    with pytest.raises(ModelError, match="`model` must return an array of numbers; got list: "):
        constant([[1.0], [1.0, 2.0]])(FRAME)


def test_errors_of_the_model_pass_through_with_a_note() -> None:
    def broken(rows: Any) -> Any:
        raise KeyError("speed")

    with pytest.raises(KeyError) as caught:
        as_model(broken)(FRAME.iloc[:1])
    assert caught.value.args == ("speed",)
    assert caught.value.__notes__ == ["while evaluating row {'hour': 3, 'distance': 0.0}"]
    with pytest.raises(KeyError) as caught:
        as_model(broken)(pd.DataFrame({"a": [1, 2, 3, 4]}))
    assert caught.value.__notes__ == ["while evaluating 4 rows: {'a': 1}, {'a': 2}, {'a': 3}, …"]


def test_objects_that_are_no_models_are_errors() -> None:
    with pytest.raises(ModelError) as caught:
        as_model({"weights": 1})
    assert str(caught.value) == (
        "`model` must be callable or have `predict`; got dict. Pass the fitted model, or a "
        "function of rows."
    )
    with pytest.raises(ModelError) as caught:
        as_model(LinearRegression)
    assert str(caught.value) == (
        "`model` must be an object; got the class LinearRegression. Pass a fitted instance."
    )


def three_classes() -> tuple[Any, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array(["cat", "dog", "eel"])[(X[:, 0] > 0) + (X[:, 1] > 0).astype(int)]
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X


def test_probability_of_any_label_of_a_multiclass_pipeline() -> None:
    clf, X = three_classes()
    for column, label in enumerate(clf.classes_):
        model = probability(clf, label)
        assert model.link == "logit"
        assert np.array_equal(model(X), clf.predict_proba(X)[:, column])


def test_a_probability_can_be_sent_to_other_processes() -> None:
    clf, X = three_classes()
    again = pickle.loads(pickle.dumps(probability(clf, "dog")))
    assert np.array_equal(again(X), clf.predict_proba(X)[:, 1])


def test_probability_has_a_name_and_a_link() -> None:
    clf, _ = three_classes()
    assert probability(clf, "dog").name == "P('dog') by Pipeline"


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b"], [-1.0, 2.0]])
def test_without_a_label_a_binary_classifier_means_its_second_class(labels: list[Any]) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    clf = LogisticRegression().fit(X, np.array(labels)[[0, 0, 1, 1]])
    assert np.array_equal(probability(clf)(X), clf.predict_proba(X)[:, 1])
    assert np.array_equal(probability(clf, labels[0])(X), clf.predict_proba(X)[:, 0])


def test_a_label_must_be_a_class() -> None:
    clf, _ = three_classes()
    with pytest.raises(ModelError) as caught:
        probability(clf, "dgo")
    assert str(caught.value) == (
        "`label` must be one of 'cat', 'dog', 'eel'; got 'dgo'. Did you mean 'dog'?"
    )
    with pytest.raises(ModelError) as caught:
        probability(clf)
    assert str(caught.value) == (
        "`label` must be one of 'cat', 'dog', 'eel'; got None, which only a binary classifier "
        "allows."
    )


def test_a_classifier_needs_classes_and_probabilities() -> None:
    with pytest.raises(ModelError, match="`clf` must have `classes_`; got LogisticRegression with"):
        probability(LogisticRegression(), 1)
    with pytest.raises(ModelError, match=r"pass clf.decision_function as the model, and e.g. at_l"):
        probability(LinearSVC(), 1)
    with pytest.raises(ModelError, match="must have `predict_proba` or be a callable; got the cla"):
        probability(LinearRegression)
    with pytest.raises(ModelError, match="`label` must be None for a callable; got 'yes'"):
        probability(lambda rows: rows, "yes")
    several = types.SimpleNamespace(classes_=[[0, 1], [2, 3]], predict_proba=None)
    with pytest.raises(ModelError, match="`clf` must predict one label"):
        probability(several, 1)


def test_the_columns_of_predict_proba_must_be_the_classes() -> None:
    odd = types.SimpleNamespace(classes_=["a", "b"], predict_proba=lambda X: np.zeros((len(X), 3)))
    with pytest.raises(ModelError, match=r"returned shape \(2, 3\) for 2 rows; expected \(2, 2\)"):
        probability(odd)(FRAME)


def test_probabilities_must_lie_between_zero_and_one() -> None:
    with pytest.raises(ModelError) as caught:
        probability(lambda rows: [0.5, 1.5])(FRAME)
    assert str(caught.value) == (
        "`model` must return probabilities, between 0 and 1; got 1.5 for "
        "{'hour': 4, 'distance': 1.5}. Pass the model itself if it is no classifier."
    )


def test_models_are_named_only_if_a_name_identifies_them() -> None:
    fitted = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    assert as_model(fitted).name == "LinearRegression"
    assert as_model(fitted.predict).name == "LinearRegression"
    assert as_model(lambda rows: rows).name is None
    assert as_model(constant).name is None


def test_an_xgboost_booster_gets_its_own_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    class Booster:
        def predict(self, matrix: Any) -> Any:
            assert isinstance(matrix, types.SimpleNamespace)
            return matrix.rows["hour"].to_numpy() * 2.0

    Booster.__module__, Booster.__qualname__ = "xgboost.core", "Booster"
    fake: Any = types.ModuleType("xgboost")
    fake.DMatrix = lambda rows, enable_categorical: types.SimpleNamespace(rows=rows)
    monkeypatch.setitem(sys.modules, "xgboost", fake)
    assert as_model(Booster())(FRAME).tolist() == [6.0, 8.0]
