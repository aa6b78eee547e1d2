"""What models store about their columns, and rows with the categories of the training."""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import bayescfx as cfx
from bayescfx.models.categories import categories_of, column_knowledge
from bayescfx.models.input_columns import Category, TruncatedLevel, for_trees, with_categories
from bayescfx.models.loaded import Loaded
from bayescfx.models.model import as_model

lightgbm: Any = importlib.import_module("lightgbm")

HEATS = ["Öl", "NA", "Wärmepumpe", "gas fired"]  # in no order that pandas would make


def flats(n: int = 300) -> tuple[pd.DataFrame, Any]:
    """Return flats as a CSV file gives them, and what they cost."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "area": rng.uniform(20, 200, n).round(1),
            "heat by": rng.choice(HEATS, n),
            "grade": rng.integers(1, 4, n),
            "seen": ["yes"] * n,
            "lift": rng.choice([True, False], n),
        }
    )
    X.loc[::17, "heat by"] = None
    y = X["area"] + 40.0 * (X["heat by"] == "Öl") - 30.0 * (X["heat by"] == "NA")
    return X, y + 9.0 * (X["grade"] == 2) + 5.0 * X["lift"] + 20.0 * X["heat by"].isna()


def trained_on(X: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the categories that models are trained on."""
    kinds = {"heat by": pd.CategoricalDtype(HEATS), "grade": pd.CategoricalDtype([1, 2, 3])}
    return X.astype({**kinds, "seen": pd.CategoricalDtype(["yes"])})


def quick(kind: str, **settings: Any) -> Any:
    return getattr(lightgbm, kind)(n_estimators=30, verbose=-1, n_jobs=1, **settings)


def boosted(kind: str, **settings: Any) -> Any:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    common = {"n_estimators": 30, "n_jobs": 1, "enable_categorical": True}
    return getattr(xgboost, kind)(**common, **settings)


def piped(last: Any, *, verbose: bool = True) -> Any:
    """Return a pipeline that scales a number and passes on the rest."""
    scale = [("scale", StandardScaler(), ["area"])]
    columns = ColumnTransformer(scale, remainder="passthrough", verbose_feature_names_out=verbose)
    steps = [("columns", columns), ("nothing", "passthrough"), ("last", last)]
    return Pipeline(steps).set_output(transform="pandas")


MODELS: dict[str, Callable[[], Any]] = {
    "estimator": lambda: quick("LGBMRegressor"),
    "pipeline": lambda: piped(quick("LGBMRegressor")),
    "plain names": lambda: piped(quick("LGBMRegressor"), verbose=False),
    "search": lambda: GridSearchCV(quick("LGBMRegressor"), {"num_leaves": [7]}, cv=2),
    "log": lambda: TransformedTargetRegressor(quick("LGBMRegressor"), func=None),
    "vote": lambda: VotingRegressor([("a", quick("LGBMRegressor")), ("b", DummyRegressor())]),
    "scikit-learn": lambda: HistGradientBoostingRegressor(max_iter=30),
    "xgboost": lambda: boosted("XGBRegressor"),
    "xgboost in a pipeline": lambda: piped(boosted("XGBRegressor")),
}
KINDS = [
    pytest.param(name, marks=pytest.mark.slow) if name.startswith("xgboost") else name
    for name in MODELS
]


@pytest.mark.parametrize("name", KINDS)
def test_text_gets_the_categories_that_a_model_was_trained_on(name: str) -> None:
    X, y = flats()
    model = pickle.loads(pickle.dumps(MODELS[name]().fit(trained_on(X), y)))
    expected = model.predict(trained_on(X))
    ours = as_model(model)
    np.testing.assert_allclose(ours(X), expected, rtol=1e-6)
    for some in (X[:1], X[17:18], X[20:24]):  # one row of them misses the level
        np.testing.assert_allclose(ours(some), expected[some.index], rtol=1e-6)
    np.testing.assert_allclose(ours(trained_on(X)), expected, rtol=1e-6)
    other = X.assign(**{"heat by": X["heat by"].astype("category")})  # in another order
    np.testing.assert_allclose(ours(other), expected, rtol=1e-6)
    loaded = Loaded.of(model)
    assert {"NA", "Wärmepumpe"} <= set(next(v for k, v in loaded.levels.items() if "heat" in k))
    assert any("grade" in column for column in loaded.categorical)


@pytest.mark.parametrize("name", KINDS)
def test_a_space_of_text_is_searched_with_a_model_of_categories(name: str) -> None:
    X, y = flats()
    model = MODELS[name]().fit(trained_on(X), y)
    answer = cfx.explain(model, X.iloc[3], cfx.Space.from_data(X), cfx.increase(by=20.0), rng=0)
    assert answer.reached
    row = pd.DataFrame([answer.best.row])[X.columns].astype(X.dtypes.to_dict())
    np.testing.assert_allclose(answer.best.output, model.predict(trained_on(row)), rtol=1e-6)


@pytest.mark.parametrize(
    "make", [quick, pytest.param(boosted, marks=pytest.mark.slow)], ids=["lightgbm", "xgboost"]
)
@pytest.mark.parametrize("calibrated", [False, True])
def test_text_gets_the_categories_of_a_classifier(
    make: Callable[..., Any], calibrated: bool
) -> None:
    X, y = flats()
    kind = "LGBMClassifier" if make is quick else "XGBClassifier"
    model = make(kind)
    model = CalibratedClassifierCV(model, cv=2) if calibrated else model
    model.fit(trained_on(X), (y > y.median()).astype(int))
    expected = model.predict_proba(trained_on(X))[:, 1]
    np.testing.assert_allclose(cfx.probability(model, 1)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(cfx.probability(model, 1)(X[17:18]), expected[17:18], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".json", ".ubj"])
def test_an_xgboost_file_stores_its_levels_and_takes_missing_ones(
    ending: str, tmp_path: Path
) -> None:
    X, y = flats()
    model = boosted("XGBRegressor").fit(trained_on(X), y)
    model.save_model(tmp_path / f"m{ending}")
    loaded = cfx.load_model(str(tmp_path / f"m{ending}"))
    assert loaded.categorical == ("heat by", "grade", "seen")
    assert set(loaded.levels["heat by"]) >= {"NA", "Wärmepumpe"}
    assert loaded.levels["grade"] == (1, 2, 3)
    ours = as_model(loaded.scoring())
    np.testing.assert_allclose(ours(X), model.predict(trained_on(X)), rtol=1e-6)
    np.testing.assert_allclose(ours(X[17:18]), model.predict(trained_on(X))[17:18], rtol=1e-6)
    with pytest.raises(cfx.ModelError, match=r"not trained on 'Holz' in column 'heat by'\. Levels"):
        ours(X.assign(**{"heat by": "Holz"}))


@pytest.mark.slow
def test_an_xgboost_file_without_levels_takes_no_text(tmp_path: Path) -> None:
    X, y = flats()
    path = tmp_path / "m.json"
    boosted("XGBRegressor").fit(trained_on(X), y).save_model(path)
    content = json.loads(path.read_text())  # as before 3.1
    content["learner"]["gradient_booster"]["model"].pop("cats")
    path.write_text(json.dumps(content))
    loaded = cfx.load_model(str(path))
    with pytest.raises(cfx.ModelError, match=r"must store the levels of 'heat by' .* XGBoost 3\.1"):
        as_model(loaded.scoring())(X)


@pytest.mark.slow
def test_categorical_numbers_of_xgboost_stay_numbers() -> None:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"area": rng.uniform(20, 200, 300), "zone": rng.choice([0, 3, 7], 300)})
    kinds = {"feature_types": ["q", "c"], "enable_categorical": True}
    matrix = xgboost.DMatrix(X, X["area"] + 30.0 * (X["zone"] == 3), **kinds)
    booster = xgboost.train({}, matrix, 20)
    np.testing.assert_allclose(as_model(booster)(X), booster.predict(matrix))
    some = X[X["zone"] == 7].head(4)
    expected = booster.predict(matrix)[some.index]
    np.testing.assert_allclose(as_model(booster)(some), expected)


def test_a_model_of_arrays_stores_no_columns() -> None:
    X, y = flats()
    trees = HistGradientBoostingRegressor(max_iter=3, categorical_features=[1])
    knowledge = column_knowledge(trees.fit(X[["area", "grade"]].to_numpy(), y))
    assert knowledge == ((), {}, {})


def test_categories_changed_by_earlier_steps_are_ignored() -> None:
    """A column changed by an earlier step is not the column of the table."""
    X, y = flats()
    last = quick("LGBMRegressor").fit(trained_on(X), y)
    upper = ColumnTransformer([("heat by", StandardScaler(), ["area"])], remainder="drop")
    upper.fit(X)
    assert categories_of(Pipeline([("columns", upper), ("last", last)])) == ()
    assert categories_of(quick("LGBMRegressor")) == ()  # not fitted


def test_lightgbm_with_levels_in_order_takes_text() -> None:
    X, y = flats()
    table = trained_on(X)
    table["heat by"] = table["heat by"].cat.as_ordered()
    X["grade"] = X["grade"].map({1: "one", 2: "two", 3: "three"})
    table["grade"] = X["grade"].astype("category")
    model = quick("LGBMRegressor").fit(table, y)
    np.testing.assert_allclose(as_model(model)(X), model.predict(table))
    assert column_knowledge(model).categorical == ("grade", "seen")


def test_a_category_is_cast_to_the_levels_of_its_model() -> None:
    heat = Category(
        "heat", ("none", "Öl", TruncatedLevel(b"g", 3), TruncatedLevel("Ü".encode()[:1], 2)), "str"
    )
    assert heat.cast(pd.Series(["Üb", "gas"])).cat.codes.tolist() == [3, 2]
    heat = pickle.loads(pickle.dumps(heat))
    cells = pd.Series(["gas", None, "Öl", "none"], index=[3, 1, 4, 5])
    assert heat.cast(cells).cat.codes.tolist() == [2, -1, 1, 0]
    assert heat.cast(cells).index.equals(cells.index)
    for wrong in ("oil", "gases"):
        with pytest.raises(cfx.ModelError, match=f"not trained on '{wrong}' in column 'heat'. Lev"):
            heat.cast(pd.Series([wrong]))
    open_to_more = Category("heat", ("none", "gas"))
    assert open_to_more.cast(pd.Series(["gas", "oil"])).cat.codes.tolist() == [1, -1]
    with pytest.raises(
        cfx.ModelError, match="must get levels such as 'none' in column 'heat'; got 1"
    ):
        open_to_more.cast(pd.Series([1, 2]))
    grade = Category("grade", (1, 2), "int8")
    assert grade.cast(pd.Series([2.0, np.nan, 1.0])).cat.codes.tolist() == [1, -1, 0]
    assert str(grade.cast(pd.Series([2.0])).cat.categories.dtype) == "int8"


def test_text_becomes_categories_and_other_columns_stay() -> None:
    X, _ = flats()
    table = for_trees(X, [Category("heat_by", tuple(HEATS))], texts=True)
    kinds = ["float64", "category", "int64", "category", "bool"]
    assert [str(dtype) for dtype in table.dtypes] == kinds
    assert table["heat by"].cat.categories.tolist() == HEATS
    flag = pd.DataFrame({"flag": pd.Series([True, None, False], dtype=object)})
    assert for_trees(flag, ())["flag"].fillna(-1).tolist() == [1, -1, 0]
    assert for_trees(flag[1:2], ())["flag"].dtype == np.float64
    assert for_trees(flag[1:2], (), texts=True)["flag"].dtype == "category"
    assert X["heat by"].dtype != table["heat by"].dtype
    matrix = X.to_numpy()
    assert with_categories(matrix, ()) is matrix
    numbers = X[["area", "grade"]]
    assert for_trees(numbers, (), texts=True) is numbers
