"""Evaluations in memory: complete, of one model and one set of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import EvaluationsError
from bayescfx.evaluations.data import Evaluations
from bayescfx.models.identity import ModelIdentity
from tests.evaluations.rows import MIXED, same_tables


def test_evaluations_start_empty() -> None:
    empty = Evaluations()
    assert len(empty) == 0
    assert empty.columns is None
    assert empty.rows is None
    assert empty.outputs.shape == (0,)
    assert list(empty) == []
    assert empty.to_frame().columns.tolist() == ["output"]
    assert repr(empty) == "Evaluations(0 rows)"


def test_rows_are_returned_unchanged() -> None:
    known = Evaluations(MIXED, [1.0, 2.0])
    known.append(MIXED.iloc[::-1].reset_index(drop=True), np.array([3.0, np.nan]))
    frame = known.to_frame()
    assert frame["output"].tolist()[:3] == [1.0, 2.0, 3.0]
    assert np.isnan(known.outputs[3])
    same_tables(frame.drop(columns="output").iloc[:2], MIXED)
    assert known.columns == tuple(MIXED.columns)
    row, output = list(known)[2]
    assert isinstance(row, pd.Series)
    assert row["s"] == "ü\n漢"
    assert output == 3.0


def test_rows_of_arrays_stay_arrays() -> None:
    known = Evaluations(np.array([[1, 2]]), [0.5])
    assert isinstance(known.rows, np.ndarray)
    assert known.rows.dtype.kind == "i"
    assert known.to_frame().columns.tolist() == ["x0", "x1", "output"]
    row, _ = next(iter(known))
    assert isinstance(row, np.ndarray)


def test_a_column_named_output_is_kept() -> None:
    frame = Evaluations(pd.DataFrame({"output": [1]}), [2.0]).to_frame()
    assert frame.columns.tolist() == ["output", "output_"]
    assert frame.iloc[0].tolist() == [1, 2.0]


def test_returned_tables_are_copies() -> None:
    known = Evaluations(pd.DataFrame({"a": [1]}), [2.0])
    known.outputs[0] = 9.0
    frame = known.to_frame()
    frame.loc[0, "a"] = 9
    assert known.outputs.tolist() == [2.0]
    assert known.to_frame()["a"].tolist() == [1]


def test_rows_need_outputs() -> None:
    with pytest.raises(EvaluationsError, match="`rows` and `outputs` must be given together; got"):
        Evaluations(MIXED)
    with pytest.raises(EvaluationsError) as caught:
        Evaluations(MIXED, [1.0])
    assert str(caught.value) == (
        "`outputs` must be one number for each of the 2 rows; got shape (1,). Pass what the model "
        "returned for them."
    )


def test_rows_of_other_columns_are_refused_and_nothing_is_added() -> None:
    known = Evaluations(pd.DataFrame({"a": [1], "b": [2]}), [0.0])
    with pytest.raises(EvaluationsError) as caught:
        known.append(pd.DataFrame({"a": [1], "c": [2]}), [0.0])
    assert str(caught.value) == (
        "`evaluations` holds rows with the columns a, b; got a, c. Use one store for each set of "
        "columns."
    )
    with pytest.raises(EvaluationsError, match="holds rows of a DataFrame; got an array"):
        known.append(np.zeros((1, 2)), [0.0])
    assert len(known) == 1


def test_rows_of_another_model_are_refused() -> None:
    known = Evaluations(pd.DataFrame({"a": [1]}), [0.0])
    known.claim(("a",), ModelIdentity("LinearRegression"))
    known.claim(("a",), ModelIdentity())
    with pytest.raises(EvaluationsError) as caught:
        known.claim(("a",), ModelIdentity("SVR"))
    assert str(caught.value) == (
        "`evaluations` holds outputs of LinearRegression; got SVR. Use one store for each model, "
        "or name it yourself with Evaluations.open(path, model=...)."
    )
    Evaluations(pd.DataFrame({"a": [1]}), [0.0], model="mine").claim(("a",), ModelIdentity("SVR"))
