"""Tables of polars and Arrow: names, types and rows as the model takes them."""

from __future__ import annotations

import datetime as dt
import importlib
from typing import Any

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.errors import MissingExtraError

pa: Any = pytest.importorskip("pyarrow", reason="needs pyarrow")


def columns(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "age": rng.integers(18, 80, n),
        "bmi": rng.normal(25, 4, n).round(1),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "day": [dt.date(2020, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(0, 300, n)],
    }


def arrow() -> Any:
    colour = pa.array(["red", "blue", "red"] * 20).dictionary_encode()
    return pa.table(
        {
            **columns(),
            "colour": colour,
            "kids": pa.array([None, *range(59)]),
            "ill": [None] + [True] * 59,
        }
    )


def polars() -> Any:
    pl: Any = pytest.importorskip("polars", reason="needs polars")
    enum = pl.Enum(["low", "mid", "high"])
    return pl.DataFrame(
        {
            **columns(),
            "grade": pl.Series(["low", "high"] * 30, dtype=enum),
            "colour": pl.Series(["red", "blue"] * 30, dtype=pl.Categorical),
            "kids": pl.Series([None, *range(59)]),
            "ill": pl.Series([None] + [True] * 59),
            "fee": pl.Series(["1.50", "2.25"] * 30).cast(pl.Decimal(10, 2)),
        }
    )


class Asked:
    """A model that takes the tables it was made for, and nothing else."""

    def __init__(self, like: Any) -> None:
        self.like, self.calls = like, 0

    def __call__(self, rows: Any) -> Any:
        assert type(rows) is type(self.like)
        assert rows.schema == self.like.schema
        self.calls += 1
        return np.asarray(rows["age"]) * 2.0 + np.asarray(rows["bmi"])


TABLES = [pytest.param(arrow, id="arrow"), pytest.param(polars, id="polars")]


@pytest.mark.parametrize("made", TABLES)
def test_names_and_types_are_kept(made: Any) -> None:
    features = cfx.Space.from_data(made()).features
    kinds = {str(name): feature.kind for name, feature in features.items()}
    assert kinds.pop("grade", "ordinal") == "ordinal"
    assert kinds.pop("fee", "real") == "real"
    assert kinds == {
        **{"age": "integer", "bmi": "real", "sex": "categorical", "day": "moment"},
        **{"colour": "categorical", "kids": "integer", "ill": "categorical"},
    }


@pytest.mark.parametrize("made", TABLES)
def test_rows_are_asked_about_and_scored_as_such_tables(made: Any) -> None:
    table = made()
    space, model, target = cfx.Space.from_data(table), Asked(table), cfx.increase(by=8)
    query = table[3:4]
    answer = cfx.explain(model, query, space, target, budget=30, rng=0)
    assert answer.reached
    assert answer.verify(model)
    names = [str(name) for name in space.features]
    plain = (
        dict(zip(names, (query[name].to_pylist()[0] for name in names), strict=True))
        if (made is arrow)
        else query.row(0, named=True)
    )
    again = cfx.explain(model, plain, space, target, budget=30, rng=0)
    assert again.best.changes == answer.best.changes
    many = cfx.explain_many(model, table[3:6], space, target, budget=20, rng=0)
    assert len(many) == 3
    assert cfx.what_if(model, query, {"age": 60}, space).row["age"] == 60
    assert (
        cfx.what_if(model, query, {"age": 60}).output
        == cfx.what_if(model, query, {"age": 60}, space).output
    )
    assert len(cfx.assess(model, query, table[4:7], space, target)) == 3
    lines = cfx.explain_partition(table[3:6], model, space, target, budget=9, rng=0)
    assert len(lines) == 3
    assert model.calls > 5


def test_a_model_gets_what_it_was_fitted_on() -> None:
    table = polars().select("age", "bmi", "sex")
    compose: Any = importlib.import_module("sklearn.compose")
    encoding: Any = importlib.import_module("sklearn.preprocessing")
    linear: Any = importlib.import_module("sklearn.linear_model")
    pipeline: Any = importlib.import_module("sklearn.pipeline")
    lightgbm: Any = importlib.import_module("lightgbm")
    y = np.asarray(table["age"]) * 2.0
    coded = compose.make_column_transformer(
        (encoding.OneHotEncoder(), ["sex"]), remainder="passthrough"
    )
    fitted = pipeline.make_pipeline(coded, linear.Ridge())
    numbers = table.select("age", "bmi")
    trees = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
    for model, rows in (
        (fitted.fit(table, y), table),
        (fitted.fit(table.to_pandas(), y), table),
        (linear.Ridge().fit(numbers, y), numbers),
        (linear.Ridge().fit(numbers.to_numpy(), y), numbers),
        (trees.fit(numbers.to_pandas(), y), numbers),
        (trees.fit(numbers.to_pandas(), y).booster_, numbers),
    ):
        space = cfx.Space.from_data(rows)
        answer = cfx.explain(model, rows[3:4], space, cfx.increase(by=3), budget=15, rng=0)
        frame = rows.to_pandas() if hasattr(model, "feature_names_in_") else rows.to_numpy()
        expected = model.predict(frame[3:4])[0]
        assert answer.output == pytest.approx(expected)


def test_a_lazy_frame_is_collected() -> None:
    assert list(cfx.Space.from_data(polars().lazy()).features)[:2] == ["age", "bmi"]


def test_what_converts_and_is_not_there_is_named() -> None:
    class Foreign:
        def to_pandas(self) -> None:
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    with pytest.raises(MissingExtraError, match="needs pyarrow: pip install pyarrow"):
        cfx.Space.from_data(Foreign())
