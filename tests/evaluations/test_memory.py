"""Packed rows: little memory, identical rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Snapshot
from bayescfx.evaluations.memory import Packed
from tests.evaluations.rows import MIXED, same_tables


def odd() -> pd.DataFrame:
    """Return many rows with cells that are easily confused."""
    cells: dict[Any, Any] = {
        "zeros": np.array([0.0, -0.0, np.nan, 1.0]),
        "narrow": np.array([0.0, -0.0, 1e-45, np.inf], dtype=np.float32),
        "objects": np.array([1, True, 1.0, None], dtype=object),
        "texts": np.array(["a", "b", "a", ""], dtype=object),
        "some": pd.array(["a", None, "b", "a"], dtype="str" if pd.__version__ > "3" else "string"),
        7: np.array([True, False, True, True]),
        "whole": np.array([2**63 - 1, -(2**63), 0, 1]),
        "times": pd.to_datetime(["2020-01-01", "NaT", "2020-01-02", "2020-01-01"]),
        "lengths": pd.to_timedelta([1, 2, 1, 1]),
    }
    frame = pd.DataFrame({name: pd.Series(c, dtype=c.dtype) for name, c in cells.items()})
    frame.columns.name = "columns"
    return pd.concat([frame] * 50, ignore_index=True)


def mixed() -> pd.DataFrame:
    return pd.concat([MIXED] * 60, ignore_index=True)


@pytest.mark.parametrize("table", [odd(), mixed(), odd()[:0]])
def test_packed_rows_are_the_same_rows(table: pd.DataFrame) -> None:
    outputs = np.where(np.arange(len(table)) % 3, -0.0, np.nan)
    packed = pickle.loads(pickle.dumps(Packed.of(table, outputs)))
    same_tables(packed.rows, table)
    assert packed.rows.columns.equals(table.columns)
    assert packed.y.tobytes() == outputs.tobytes()
    for name in table.columns:
        before = table[name].tolist()
        after = packed.rows[name].tolist()
        assert list(map(repr, after)) == list(map(repr, before))


@pytest.mark.parametrize("kind", [np.float64, np.int8, np.float32, np.bool_, object])
def test_packed_arrays_are_the_same_arrays(kind: Any) -> None:
    rows = np.tile(np.array([[0, 1, -0.0], [1, 0, 2.5]]), (90, 1)).astype(kind)
    packed = Packed.of(rows, np.arange(180.0))
    found = packed.rows
    assert isinstance(found, np.ndarray)
    assert found.dtype == rows.dtype
    assert repr(found.tolist()) == repr(rows.tolist())
    assert packed.y.tolist() == [*range(180)]


@pytest.mark.parametrize("n", [7, 1000])
def test_evaluations_are_the_same_however_many_are_packed(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr("bayescfx.evaluations.memory._MANY", n)
    table = odd()
    outputs = np.arange(200.0)
    known = Evaluations()
    for i in range(0, 200, 5):
        known.append(table[i : i + 5].reset_index(drop=True), outputs[i : i + 5])
        assert len(known) == i + 5
    rows: Any = known.rows
    same_tables(rows, table)
    assert known.outputs.tolist() == outputs.tolist()
    away = pickle.loads(pickle.dumps(known))
    away.append(table[:3], outputs[:3])
    same_tables(away.packed().rows[-3:].reset_index(drop=True), table[:3])
    known.absorb(Packed.of(table[:9], outputs[:9]), None)
    assert known.outputs.tolist() == [*outputs, *outputs[:9]]
    with pytest.raises(cfx.EvaluationsError, match="holds rows with the columns"):
        known.absorb(Packed.of(table[["zeros"]], outputs), None)
    known.forget()
    assert len(known) == 0


def test_rows_that_differ_in_a_cell_take_few_bytes() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 12))).loc[np.repeat(np.arange(20), 500)]
    for i in range(len(table)):
        table.iat[i, i % 12] = float(i % 40)
    packed = Packed.of(table, rng.normal(size=len(table)))
    assert len(pickle.dumps(packed)) < 24 * len(table)  # of 104


def test_packing_distinct_rows_takes_no_more_memory() -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 4))
    packed = Packed.of(rows, rows[:, 0])
    assert len(pickle.dumps(packed)) < 1.05 * (rows.nbytes + rows[:, 0].nbytes)


class Cleared(dict[Any, Any]):
    """A container that another thread empties at once."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.clear()


def test_known_rows_survive_a_concurrent_change() -> None:
    rows = pd.DataFrame({"a": [0.0, 0.5, 1.0]})
    past = Snapshot(rows, np.array([1.0, 2.0, 3.0]), _known=Cleared())
    known = past.known(cfx.Space.from_data(rows).schema, faults=False)
    assert known is not None
    assert known.outputs.tolist() == [1.0, 2.0, 3.0]
