"""The answer as data: rows exactly as the model scored them."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.potentials import AEP, decrease
from bayescfx.result.explanation import Explanation
from bayescfx.result.wording import moves
from bayescfx.space.space import Space
from tests.result.answers import FRAME, ask, model, plain_answer, sums

#: The columns that `ask` lets change.
MOVABLE = [name for name in FRAME.columns if name not in ("since", "score", "ok")]


def test_the_best_comes_first_and_reached_follows_the_status() -> None:
    answer = plain_answer()
    assert answer.best is answer.counterfactuals[0]
    assert answer.reached
    assert not replace(answer, status="best_guess").reached
    with pytest.raises(ValueError, match="`counterfactuals` must hold at least one row; got none"):
        replace(answer, counterfactuals=())


@pytest.mark.parametrize("trace", [[], [0.5], [0.0, 0.0, 0.25, 0.25, 1.0], [0.1] * 1000])
def test_a_trace_is_restored_from_its_runs(trace: list[float]) -> None:
    answer = plain_answer(trace=np.array(trace))
    for again in (answer, replace(answer, seed=1), pickle.loads(pickle.dumps(answer))):
        assert again.trace.tolist() == trace
        assert again.trace.dtype == np.float64
    assert "trace" in {field.name for field in fields(answer)}
    with pytest.raises(FrozenInstanceError):
        answer.trace = np.ones(3)  # type: ignore[misc]  # frozen


def test_rows_are_exactly_what_the_model_scored() -> None:
    answer = ask()
    frame = answer.to_frame()
    rows = frame[list(FRAME.columns)]
    assert dict(rows.dtypes) == dict(FRAME.dtypes)
    assert model(rows).tolist() == frame["output"].tolist()
    assert frame["output"].tolist() == [c.output for c in answer.counterfactuals]
    assert list(frame.columns) == [
        "status",
        "query_output",
        *FRAME.columns,
        *(f"{name}_before" for name in MOVABLE),
        "output",
        "valid",
        "potential",
        "cost",
        "distance",
        "n_changes",
        "changes",
        "n_evaluations",
        "stopped",
    ]


def test_a_frame_has_the_querys_cells_the_status_and_the_changes() -> None:
    answer = ask()
    frame = answer.to_frame()
    for name in MOVABLE:
        before = frame[f"{name}_before"]
        assert before.dtype == FRAME[name].dtype
        assert before.tolist() == [answer.query[name]] * len(frame)
    assert frame["status"].tolist() == [answer.status] * len(frame)
    assert frame["query_output"].tolist() == [answer.output] * len(frame)
    assert frame["changes"].tolist() == [moves(c.changes) for c in answer.counterfactuals]
    assert frame["n_evaluations"].tolist() == [answer.n_evaluations] * len(frame)


def test_a_frame_has_no_second_column_for_fixed_features() -> None:
    frame = ask().to_frame()
    fixed = set(FRAME.columns) - set(MOVABLE)
    assert len(fixed) == 3
    assert not fixed & {str(name).removesuffix("_before") for name in frame if name not in FRAME}
    data = pd.DataFrame({"a": [0.5, 1.5, 2.5], "a_before": [1.0, 1.5, 2.0], "status": [1, 2, 3]})
    answer = ask(sums, Space.from_data(data), data.iloc[0], decrease(by=1))
    frame = answer.to_frame()
    assert frame.columns.is_unique
    assert frame["a_before_"].unique().tolist() == [0.5]
    assert frame["status_"].unique().tolist() == [answer.status]


def test_a_row_is_a_series_whose_cells_keep_their_types() -> None:
    row = ask().best.row
    assert isinstance(row, pd.Series)
    assert list(row.index) == list(FRAME.columns)
    assert [type(cell) for cell in row] == [int, float, str, str, pd.Timestamp, float, bool]
    for name in ("since", "score", "ok"):
        assert row[name] == FRAME[name].iloc[0]


def test_changes_name_the_moved_features_with_before_and_after() -> None:
    answer = ask()
    for found in answer.counterfactuals:
        assert found.n_changes == len(found.changes)
        for name in FRAME.columns:
            before, after = answer.query[name], found.row[name]
            assert (name in found.changes) == (before != after)
            if before != after:
                assert found.changes[name] == (before, after)


def test_changes_only_shows_the_columns_that_moved() -> None:
    answer = ask()
    frame = answer.to_frame(changes_only=True)
    moved = [n for n in FRAME.columns if any(n in c.changes for c in answer.counterfactuals)]
    assert list(frame.columns[:-6]) == moved
    for i, found in enumerate(answer.counterfactuals):
        for name in moved:
            assert frame.loc[i, name] == (found.changes[name][1] if name in found.changes else "-")


def test_columns_with_names_of_figures_are_kept() -> None:
    frame = pd.DataFrame({"cost": [1.5, 2.5, 3.5], "valid": [0.25, 0.5, 1.5]})
    answer = ask(sums, Space.from_data(frame), frame.iloc[0], decrease(by=1))
    added = ["output", "valid_", "potential", "cost_", "distance", "n_changes"]
    before = ["cost_before", "valid_before"]
    head = ["status", "query_output", "cost", "valid"]
    tail = ["changes", "n_evaluations", "stopped"]
    assert list(answer.to_frame().columns) == [*head, *before, *added, *tail]
    found = answer.counterfactuals
    changed = [name for name in frame.columns if any(name in c.changes for c in found)]
    assert list(answer.to_frame(changes_only=True).columns) == [*changed, *added]


def test_arrays_in_arrays_out() -> None:
    data = np.array([[1.5, 2.5], [3.5, 4.5], [9.5, 7.25]], dtype=np.float32)
    answer = ask(sums, Space.from_data(data), data[1], decrease(by=2))
    row = answer.best.row
    assert isinstance(row, np.ndarray)
    assert row.dtype == np.float32
    assert isinstance(answer.query, np.ndarray)
    assert list(answer.to_frame().columns[2:4]) == ["x0", "x1"]
    assert set(answer.best.changes) <= {"x0", "x1"}
    again = Explanation.from_json(answer.to_json())
    assert isinstance(again.best.row, np.ndarray)
    assert again.best.row.tolist() == row.tolist()
    assert again.verify(sums)


def test_a_one_hot_group_changes_as_one_feature() -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "red": [1, 0, 0], "blue": [0, 1, 1]})
    space = Space.from_data(frame).group("colour", ["red", "blue"])

    def f(rows: Any) -> Array:
        return np.asarray(rows["blue"] * 10.0 + rows["x"])

    answer = ask(f, space, frame.iloc[0], AEP(0.5, 10.0, 1))
    changed = [c for c in answer.counterfactuals if "colour" in c.changes]
    assert changed
    assert changed[0].changes["colour"] == ("red", "blue")
    assert changed[0].row[["red", "blue"]].tolist() == [0, 1]
    assert answer.verify(f)
    assert Explanation.from_json(answer.to_json()).verify(f)
