"""A known output is reused for the identical row, and for no other row with the same codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.evaluations.data import Evaluations
from tests.conftest import Recorder

NANO = pd.to_datetime(["2020-01-01", "2020-03-01"]).astype("datetime64[ns]")
# Cells that have one code and are not the same, in a column of each kind.
TWINS: dict[str, tuple[Any, Any, Any]] = {
    "nanoseconds": (NANO, NANO[0] + pd.Timedelta(1, "ns"), NANO[0] + pd.Timedelta(2, "ns")),
    "one and true": (np.array([1, 2], dtype=object), 1, True),
    "one and 1.0": (np.array([1, 2], dtype=object), 1.0, 1),
    "zeros": (np.array([0.0, 1.0]), 0.0, -0.0),
    "narrow zeros": (np.array([0.0, 1.0], dtype=np.float32), -0.0, 0.0),
    "none and nan": (np.array(["a", 1], dtype=object), None, float("nan")),
}


def distinguish(rows: pd.DataFrame) -> Any:
    """Return x plus a different multiple of 100 for each distinct cell of column t."""
    marks = [sum(map(ord, f"{type(cell).__name__} {cell!r}")) % 97 for cell in rows["t"].tolist()]
    return 100.0 * np.array(marks) + rows["x"].to_numpy()


def twins(kind: str) -> tuple[cfx.Space, pd.DataFrame]:
    column, first, second = TWINS[kind]
    table = pd.DataFrame({"t": pd.Series(column), "x": [0.5, 1.5]})
    space = cfx.Space.from_data(table).fix("t")
    cells = pd.Series([first, second], dtype=table["t"].dtype)
    return space, pd.DataFrame({"t": cells, "x": [1.0, 1.0]})


@pytest.mark.parametrize("kind", TWINS)
def test_known_outputs_are_reused_for_identical_rows_only(kind: str) -> None:
    space, rows = twins(kind)
    truth = distinguish(rows)
    assert truth[0] != truth[1]
    for known, asked in ((0, 1), (1, 0), (0, 0), (1, 1)):
        store = Evaluations(rows.iloc[[known]], truth[[known]])
        model = Recorder(distinguish)
        query = rows.iloc[[asked]]
        answer = cfx.explain(
            model, query, space, cfx.increase(by=0.3), budget=8, evaluations=store, rng=0
        )
        assert answer.output == truth[asked]
        assert (answer.best.output == distinguish(pd.DataFrame([answer.best.row]))).all()
        calls = model.calls
        if known == asked:  # scored again, to check that the model is the same
            check, *calls = calls
            assert check["x"].tolist() == [1.0]
        again = any((rows["x"] == 1.0).any() for rows in calls)
        assert again == (known != asked)  # a known row is not scored again


@pytest.mark.parametrize("kind", TWINS)
def test_queries_with_the_same_codes_share_nothing(kind: str) -> None:
    space, rows = twins(kind)
    answers = cfx.explain_many(distinguish, rows, space, cfx.increase(by=0.3), budget=8, rng=0)
    assert [answer.output for answer in answers] == distinguish(rows).tolist()
    for answer in answers:
        assert answer.reached
        assert answer.best.output == distinguish(pd.DataFrame([answer.best.row]))[0]


def test_rounded_rows_are_other_rows() -> None:
    table = pd.DataFrame({"x": np.linspace(0, 1, 11, dtype=np.float32)})
    exact = pd.DataFrame({"x": [0.1, 0.5]})  # 0.5 is the same in single precision, 0.1 is not
    store = Evaluations(exact, [70.0, 80.0])
    space = cfx.Space.from_data(table)

    def f(rows: Any) -> Any:
        x = rows["x"].to_numpy(np.float64)
        return np.where(x == 0.1, 70.0, np.where(x == 0.5, 80.0, 1.0))

    for value, output in ((0.5, 80.0), (0.1, 1.0)):
        answer = cfx.explain(
            f,
            {"x": value},
            space,
            1000.0,
            evaluations=store,
            budget=4,
            rng=0,
        )
        assert answer.output == output


def test_zeros_of_a_search_have_no_sign() -> None:
    seen = Recorder(lambda rows: np.copysign(1.0, rows[:, 0]) + rows[:, 1])
    X = np.array([[-1.0, 0.0], [1.0, 1.0]])
    space = cfx.Space.from_data(X)
    rows: Any = space.around(np.array([1.0, 0.5])).rows(np.array([[-0.0, 0.5]]))
    assert not np.signbit(rows[0, 0])
    answer = cfx.explain(seen, np.array([-0.0, 0.5]), space, cfx.increase(by=0.3), budget=8, rng=0)
    assert answer.output == -0.5
    assert np.signbit(answer.query[0])
