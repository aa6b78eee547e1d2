"""Models of real libraries on real data, in Python: each is explained and verified."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.models import as_model
from bayescfx.models.adapters import ADAPTERS, adapter_of
from bayescfx.models.input_columns import numeric_matrix
from tests.people import categories, people

QUERY = 5


def ask(
    model: Any, X: Any, target: Any, *, fix: tuple[str, ...] = (), budget: int = 40
) -> cfx.Explanation:
    """Return an answer about one row of the data, checked against the model."""
    space = cfx.Space.from_data(X).fix(*fix)
    query = X.iloc[QUERY] if isinstance(X, pd.DataFrame) else X[QUERY]
    answer = cfx.explain(model, query, space, target, budget=budget, rng=0)
    assert answer.reached
    assert answer.best.changes
    assert answer.verify(model)
    return answer


@functools.cache
def diabetes() -> tuple[pd.DataFrame, Any]:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y


# ── scikit-learn ──


def test_a_regressor_on_arrays_gets_arrays() -> None:
    X, y = diabetes()
    model = RandomForestRegressor(20, random_state=0).fit(X.to_numpy(), y)
    ask(model, X.to_numpy(), cfx.increase(percent=20))


def test_a_pipeline_with_encoders_gets_raw_columns() -> None:
    X, y = people()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["glucose", "sex"]),
        remainder=StandardScaler(),
    )
    model = make_pipeline(encoder, HistGradientBoostingRegressor(random_state=0)).fit(X, y)
    answer = ask(model, X, cfx.increase(percent=15), fix=("age",))
    assert answer.best.row["age"] == X["age"].iloc[QUERY]


def test_a_model_gets_rows_in_the_form_it_was_fitted_on() -> None:
    # Each of these warns at every call, or fails, if it gets the other form.
    X, y = diabetes()
    by_name = make_column_transformer((StandardScaler(), ["bmi", "bp", "s5"]))
    lightgbm = importlib.import_module("lightgbm")
    boosted = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, n_jobs=1)
    cases = (
        (RandomForestRegressor(10, random_state=0), X.to_numpy(), X),
        (make_pipeline(by_name, Ridge()), X, X.to_numpy()),
        (boosted, X, X.to_numpy()),
        (boosted, X.to_numpy(), X),
    )
    for model, fitted, asked in cases:
        model.fit(fitted, y)
        np.testing.assert_allclose(as_model(model)(asked), model.predict(fitted), rtol=1e-12)
    labels = np.where(y > 150, "high", "low")
    for fitted, asked in ((X, X.to_numpy()), (X.to_numpy(), X)):
        clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(fitted, labels)
        outputs = cfx.probability(clf, "high")(asked)
        np.testing.assert_allclose(outputs, clf.predict_proba(fitted)[:, 0], rtol=1e-12)


def test_an_estimator_that_reads_columns_by_name_keeps_its_frame() -> None:
    class Ratio(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
        n_features_in_ = 2

        def predict(self, rows: Any) -> Any:
            return rows["bmi"] / rows["bp"]

    X, _ = diabetes()
    np.testing.assert_array_equal(as_model(Ratio())(X), X["bmi"] / X["bp"])


def test_a_classifier_is_its_probability() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    before = model.predict_proba(X.iloc[[QUERY]])[0, 1]
    target = cfx.at_least(0.5) if before < 0.5 else cfx.at_most(0.5)
    answer = ask(cfx.probability(model, 1), X, target)
    assert answer.output == before


# ── LightGBM ──


def test_lightgbm_takes_categories_in_both_forms() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = people()
    X = categories(X)
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1).fit(X, y)
    first = ask(model, X, cfx.increase(percent=25))
    second = ask(model.booster_, X, cfx.increase(percent=25))
    assert first.best.changes == second.best.changes


def test_a_lightgbm_booster_takes_text_for_the_categories_it_knows() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = people()
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1).fit(categories(X), y)
    answer = ask(model.booster_, X, cfx.increase(percent=25))
    row = pd.DataFrame([answer.best.row])[X.columns].astype(X.dtypes.to_dict())
    expected = model.predict(categories(X, row))
    np.testing.assert_allclose(answer.best.output, expected)


def test_a_lightgbm_booster_knows_integer_categories() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = people()
    codes = X.assign(glucose=X["glucose"].astype("category").cat.codes.astype(int)).drop(
        columns="sex"
    )
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1)
    model.fit(codes.astype({"glucose": "category"}), y)
    booster = as_model(model.booster_)
    np.testing.assert_allclose(
        booster(codes.head(20)), model.predict(codes.astype({"glucose": "category"}).head(20))
    )


def test_a_lightgbm_booster_for_two_classes_is_a_classifier() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = people()
    model = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1).fit(
        categories(X), y > y.median()
    )
    wrapped = cfx.probability(model.booster_, 1)
    np.testing.assert_allclose(wrapped(X), model.predict_proba(categories(X))[:, 1])
    np.testing.assert_allclose(cfx.probability(model.booster_, 0)(X), 1 - wrapped(X))
    assert wrapped.name == "P(1) by Booster"
    assert wrapped.link == "logit"


def test_a_lightgbm_booster_for_several_classes_is_a_classifier() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = people()
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(categories(X), pd.qcut(y, 3, labels=False))
    wrapped = cfx.probability(model.booster_, 2)
    np.testing.assert_allclose(wrapped(X), model.predict_proba(categories(X))[:, 2])
    with pytest.raises(cfx.ModelError, match=r"`label` must be one of 0, 1, 2; got None"):
        cfx.probability(model.booster_)


def test_a_booster_for_regression_is_no_classifier() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    X, y = diabetes()
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y)
    with pytest.raises(cfx.ModelError, match=r"`clf` must have `predict_proba` or be a callable"):
        cfx.probability(model.booster_, 1)


# ── XGBoost ──


@pytest.mark.slow
def test_xgboost_takes_categories_in_both_forms() -> None:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    X, y = people()
    table = categories(X)
    model = xgboost.XGBRegressor(n_estimators=40, enable_categorical=True).fit(table, y)
    first = ask(model, table, cfx.increase(percent=25))
    second = ask(model.get_booster(), table, cfx.increase(percent=25))
    assert first.best.changes == second.best.changes
    text = as_model(model.get_booster())
    np.testing.assert_allclose(text(X.head(30)), model.predict(table.head(30)), rtol=1e-6)


@pytest.mark.slow
def test_xgboost_boosters_for_classes_are_classifiers() -> None:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    X, y = people()
    table = categories(X)
    two = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True)
    two.fit(table, (y > y.median()).astype(int))
    wrapped = cfx.probability(two.get_booster(), 1)
    np.testing.assert_allclose(wrapped(X), two.predict_proba(table)[:, 1], rtol=1e-5)
    three = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True)
    three.fit(table, pd.qcut(y, 3, labels=False))
    wrapped = cfx.probability(three.get_booster(), 2)
    np.testing.assert_allclose(wrapped(X), three.predict_proba(table)[:, 2], rtol=1e-5)


# ── CatBoost ──


@pytest.mark.slow
def test_catboost_takes_text_unchanged() -> None:
    catboost = pytest.importorskip("catboost", reason="needs catboost")
    X, y = people()
    model = catboost.CatBoostRegressor(iterations=60, verbose=0, allow_writing_files=False)
    model.fit(X, y, cat_features=["glucose", "sex"])
    ask(model, X, cfx.increase(percent=25))


@pytest.mark.slow
def test_a_catboost_classifier_is_its_probability() -> None:
    catboost = pytest.importorskip("catboost", reason="needs catboost")
    X, y = people()
    model = catboost.CatBoostClassifier(iterations=60, verbose=0, allow_writing_files=False)
    model.fit(X, np.where(y > y.median(), "severe", "mild"), cat_features=["glucose", "sex"])
    before = float(model.predict_proba(X.iloc[[QUERY]])[0, list(model.classes_).index("severe")])
    target = cfx.at_least(0.6) if before < 0.6 else cfx.at_most(0.4)
    ask(cfx.probability(model, "severe"), X, target)


# ── PyTorch ──


def fitted_module(torch: Any, X: np.ndarray[Any, Any], y: Any) -> Any:
    """Return a small network with dropout, fitted for a moment."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(X.shape[1]),
        torch.nn.Linear(X.shape[1], 32),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(32, 1),
    )
    rows = torch.as_tensor(np.array(X), dtype=torch.float32)
    wanted = torch.as_tensor(np.array(y), dtype=torch.float32)[:, None]
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(module(rows), wanted).backward()
        optimiser.step()
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # PyTorch's own, while it is imported
def test_a_torch_module_is_evaluated_without_dropout_and_left_as_it_was() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    X, y = diabetes()
    module = fitted_module(torch, X.to_numpy(), y)
    module[3].eval()
    modes = [part.training for part in module.modules()]
    ask(module, X, cfx.increase(percent=20), fix=("age", "sex"))
    assert [part.training for part in module.modules()] == modes
    assert all(p.grad is None or p.requires_grad for p in module.parameters())
    ask(module.double(), X.to_numpy(), cfx.increase(percent=20))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # PyTorch's own, while it is imported
def test_a_torch_module_takes_categories_as_one_hot_groups() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    X, y = people()
    table = pd.get_dummies(X, columns=["glucose", "sex"], dtype=float).astype(float)
    module = fitted_module(torch, table.to_numpy(), y / 100)
    bands = [name for name in table.columns if name.startswith("glucose_")]
    sexes = [name for name in table.columns if name.startswith("sex_")]
    space = cfx.Space.from_data(table).group("glucose", bands).group("sex", sexes).fix("age")
    answer = cfx.explain(
        module, table.iloc[QUERY], space, cfx.increase(percent=15), budget=60, rng=0
    )
    assert answer.reached
    assert answer.verify(module)
    assert answer.best.row[bands].sum() == 1
    assert answer.best.row[sexes].sum() == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # PyTorch's own, while it is imported
def test_an_error_of_a_torch_module_names_the_column() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    model = as_model(torch.nn.Linear(3, 1))
    with pytest.raises(cfx.ModelError, match=r"a PyTorch module must get numbers; got column"):
        model(people()[0].head(2))


# ── ONNX Runtime ──


@pytest.mark.slow
def test_an_onnx_session_takes_one_matrix() -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    convert = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    X, y = diabetes()
    forest = RandomForestRegressor(20, random_state=0).fit(X.to_numpy(np.float32), y)
    proto = convert.to_onnx(forest, X.to_numpy(np.float32)[:1])
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    ask(session, X, cfx.increase(percent=20), fix=("age",))
    ask(session, X.to_numpy(), cfx.increase(percent=20))


def onnx_pipeline(model: Any, X: pd.DataFrame, **options: Any) -> Any:
    """Return a session with one input per column."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    convert = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    tensors = pytest.importorskip("skl2onnx.common.data_types", reason="needs skl2onnx")
    kinds = {"i": tensors.Int64TensorType, "f": tensors.FloatTensorType}
    types = [
        (name, kinds.get(getattr(X[name].dtype, "kind", "O"), tensors.StringTensorType)([None, 1]))
        for name in X.columns
    ]
    proto = convert.convert_sklearn(model, initial_types=types, **options)
    return onnxruntime.InferenceSession(proto.SerializeToString())


@pytest.mark.slow
def test_an_onnx_session_takes_one_input_per_column_text_included() -> None:
    X, y = people()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["glucose", "sex"]), remainder="passthrough"
    )
    model = make_pipeline(encoder, RandomForestRegressor(20, random_state=0)).fit(X, y)
    session = onnx_pipeline(model, X)
    ask(session, X, cfx.at_least(140.0))
    run = as_model(session)
    with pytest.raises(cfx.ModelError, match=r"must get the columns .*; missing: sex\."):
        run(X.drop(columns="sex"))
    with pytest.raises(cfx.ModelError, match=r"must get a table with the columns .*; got an array"):
        run(X.to_numpy())
    with pytest.raises(cfx.ModelError, match=r"must get tensor\(int64\) for 'age'; got dtype"):
        run(X.assign(age="old"))


@pytest.mark.slow
@pytest.mark.parametrize("zipmap", [True, False])
def test_an_onnx_classifier_is_its_probability(zipmap: bool) -> None:
    X, y = people()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["glucose", "sex"]), remainder=StandardScaler()
    )
    labels = np.where(y > y.median(), "severe", "mild")
    model = make_pipeline(encoder, LogisticRegression()).fit(X, labels)
    session = onnx_pipeline(model, X, options={"zipmap": zipmap})
    wrapped = cfx.probability(session, "severe" if zipmap else 1)
    np.testing.assert_allclose(wrapped(X), model.predict_proba(X)[:, 1], atol=1e-5)


# ── bare callables, and the table of adapters ──


def test_a_bare_callable_gets_frames_with_the_datas_dtypes() -> None:
    X, _ = people()
    seen: set[str] = set()

    def model(rows: pd.DataFrame) -> Any:
        seen.update(str(dtype) for dtype in rows.dtypes)
        return rows["age"] * 2 + rows["glucose"].map({"low": 0, "middle": 5, "high": 9}).astype(
            float
        )

    ask(model, X, cfx.increase(by=6))
    assert seen == {str(dtype) for dtype in X.dtypes}


def test_adapters_are_found_for_classes_that_derive_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    name = f"{Base.__module__}.{Base.__qualname__}"
    monkeypatch.setitem(ADAPTERS, name, ADAPTERS["xgboost.core.Booster"])
    assert adapter_of(Derived()) == ADAPTERS["xgboost.core.Booster"]
    assert adapter_of(object()) is None


def test_a_derived_class_gets_rows_like_its_base() -> None:
    lightgbm: Any = importlib.import_module("lightgbm")
    own = type("Own", (lightgbm.LGBMRegressor,), {"__module__": __name__})
    a = np.linspace(0, 1, 60)
    frame = pd.DataFrame({"a": a, "flag": a > 0.5})
    model = own(n_estimators=5, verbose=-1, n_jobs=1).fit(frame, a)
    rows = frame.astype({"flag": object})  # as beside missing cells
    np.testing.assert_array_equal(as_model(model)(rows), model.predict(frame))


def test_a_matrix_of_numbers_keeps_missing_cells_and_booleans() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [True, False]})
    matrix = numeric_matrix(frame, "it")
    assert matrix[0].tolist() == [1.0, 1.0]
    assert np.isnan(matrix[1, 0])
