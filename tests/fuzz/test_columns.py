"""Columns of every dtype of pandas: explained, or refused with the library's own error."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data.values import same_cell
from bayescfx.errors import BayesCFXError

N = 24
pa: Any = pytest.importorskip("pyarrow", reason="needs pyarrow")


def arrow(values: Any, kind: Any) -> Any:
    return pd.array(values, dtype=pd.ArrowDtype(kind))


def objects(*values: Any) -> Any:
    column = np.empty(N, dtype=object)
    column[:] = [values[i % len(values)] for i in range(N)]
    return column


DAYS = pd.date_range("2020-01-01", periods=N)
COLUMNS: dict[str, Any] = {
    "bool": np.arange(N) % 2 == 0,
    "nullable bool": pd.array([True, None, False] * 8, dtype="boolean"),
    "int8": np.arange(N, dtype=np.int8),
    "uint64": np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    "huge int": np.arange(N) + 2**60,
    "Int64": pd.array([1, None, 3] * 8, dtype="Int64"),
    "float16": np.linspace(0, 1, N).astype(np.float16),
    "Float32": pd.array([0.5, None, 1.5] * 8, dtype="Float32"),
    "longdouble": np.linspace(0, 1, N).astype(np.longdouble),
    "complex": np.linspace(0, 1, N) + 1j,
    "all nan": np.full(N, np.nan),
    "infinite": np.array([np.inf, 1.0, -np.inf] * 8),
    "extreme": np.linspace(-1, 1, N) * 1.7e308,
    "tiny": np.linspace(0, 1, N) * 5e-324,
    "constant": np.ones(N),
    "str": pd.array(["x", None, "y"] * 8, dtype="string"),
    "category": pd.Categorical(["x", "y", None] * 8),
    "ordered": pd.Categorical([1, 2, 3] * 8, ordered=True),
    "interval": pd.cut(np.arange(N), 3),
    "period": pd.period_range("2020-01", periods=N, freq="M"),
    "timedelta": pd.to_timedelta(np.arange(N), unit="h"),
    "zoned": DAYS.tz_localize("Europe/Berlin"),
    "seconds": DAYS.astype("datetime64[s]"),
    "earliest": pd.Series([pd.Timestamp.min, pd.Timestamp.max] * 12),
    "year 1": np.array(["0001-01-01", "9999-12-31"] * 12, dtype="datetime64[s]"),
    "long ago": np.array([-(2**60), 2**60] * 12, dtype="datetime64[s]"),
    "mixed": objects(1, "x", 2.5, None, True),
    "lists": objects([1], [2]),
    "dicts": objects({"a": 1}),
    "tuples": objects((1, 2), (3, 4)),
    "decimals": objects(Decimal("1.10"), Decimal("2.5")),
    "fractions": objects(Fraction(1, 3), Fraction(2, 3)),
    "bytes": objects(b"x", b"y"),
    "huge objects": objects(10**400, 1),
    "arrow int": arrow(list(range(N)), pa.int32()),
    "arrow float": arrow([0.5, None, 1.5] * 8, pa.float64()),
    "arrow string": arrow(["x", "y", None] * 8, pa.string()),
    "arrow bool": arrow([True, False, None] * 8, pa.bool_()),
    "arrow decimal": arrow([Decimal("1.10"), Decimal("2.50"), None] * 8, pa.decimal128(5, 2)),
    "arrow list": arrow([[1], [2], None] * 8, pa.list_(pa.int64())),
    "arrow struct": arrow([{"a": 1}, {"a": 2}, None] * 8, pa.struct([("a", pa.int64())])),
    "arrow dictionary": pd.array(
        pa.array(["x", "y", "x"] * 8).dictionary_encode().to_pylist(),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ),
    "arrow timestamp": arrow(list(DAYS), pa.timestamp("ns")),
    "arrow date": arrow(list(DAYS.date), pa.date32()),
    "arrow duration": arrow(list(pd.to_timedelta(np.arange(N), unit="h")), pa.duration("us")),
}


SLOW = pytest.mark.slow
FORMS = ("fixed", "declared")


def model(rows: Any) -> Any:
    return rows["x"].to_numpy(dtype=float) * 2


def table(kind: str) -> pd.DataFrame:
    return pd.DataFrame({"odd": pd.Series(COLUMNS[kind]), "x": np.linspace(0, 1, N)})


@pytest.mark.parametrize("form", ["free", *(pytest.param(f, marks=SLOW) for f in FORMS)])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_any_dtype_is_explained_or_refused(kind: str, form: str) -> None:
    frame = table(kind)
    kinds: Any = {"odd": "categorical"} if form == "declared" else None
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cfx.SpaceWarning)
        try:
            space = cfx.Space.from_data(frame, kinds)
            space = space.fix("odd") if form == "fixed" else space
            query = frame.iloc[[3]]
            answer = cfx.explain(model, query, space, cfx.increase(by=0.3), budget=12, rng=0)
            text = answer.to_json()
        except BayesCFXError as error:
            message = str(error)
        else:
            message = ""
    if message:
        assert "odd" in message or "cell" in message, message
        assert "\n" not in message
        return
    again = cfx.Explanation.from_json(text)
    assert again.to_json() == text
    for one, other in zip(answer.counterfactuals, again.counterfactuals, strict=True):
        assert same_cell(one.row.tolist()[0], other.row.tolist()[0])
        assert one.output == other.output
    assert again.layout.dtypes[0] == frame["odd"].dtype
    assert str(space)
    for found in answer.counterfactuals:
        if "odd" not in found.changes:
            assert same_cell(found.row.tolist()[0], frame["odd"].iloc[[3]].tolist()[0])


@pytest.mark.parametrize(
    "scale", [1e-300, 1e300, *(pytest.param(s, marks=SLOW) for s in (1e-150, 1.0, 1e150))]
)
@pytest.mark.parametrize("method", ["auto", "sweep", "bayes-cfx", "bayes", "lbfgsb", "random"])
def test_no_scale_of_inputs_or_outputs_makes_numbers_overflow(method: str, scale: float) -> None:
    X = np.random.default_rng(0).uniform(0, 1, size=(40, 2)) * [scale, 1.0]
    space = cfx.Space.from_data(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        answer = cfx.explain(
            lambda rows: (rows[:, 0] / scale + rows[:, 1]) * scale,
            X[0], space, cfx.increase(percent=20), budget=30, method=method, rng=0,
        )  # fmt: skip
        assert np.isfinite([answer.output, answer.best.output, answer.best.cost]).all()
        assert cfx.Explanation.from_json(answer.to_json()).to_json() == answer.to_json()
