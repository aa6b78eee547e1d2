"""Models from files, modules and addresses: each kind, and each kind damaged."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

import bayescfx as cfx
from bayescfx import LoadError, MissingExtraError, ModelError, Trust, UntrustedError, load_model
from bayescfx.models.loaded import Loaded
from bayescfx.models.loaders import LOADERS
from bayescfx.models.model import as_model
from tests.people import categories, people
from tests.servers import Scoring, serving

lightgbm: Any = importlib.import_module("lightgbm")
joblib: Any = importlib.import_module("joblib")


def pipeline() -> Any:
    X, y = people()
    text = (OneHotEncoder(handle_unknown="ignore"), ["glucose", "sex"])
    return make_pipeline(make_column_transformer(text, remainder="passthrough"), Ridge()).fit(X, y)


def outputs(loaded: Loaded, rows: pd.DataFrame, label: str | None = None) -> Any:
    return as_model(loaded.scoring(label))(rows)


# ── each kind ──


def save_lightgbm(path: Path) -> Any:
    X, y = people()
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1).fit(categories(X), y)
    model.booster_.save_model(str(path))
    return model.predict(categories(X))


def save_xgboost(path: Path) -> Any:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    X, y = people()
    model = xgboost.XGBRegressor(n_estimators=20, enable_categorical=True).fit(categories(X), y)
    model.save_model(str(path))
    return model.predict(categories(X))


def save_catboost(path: Path) -> Any:
    catboost = pytest.importorskip("catboost", reason="needs catboost")
    X, y = people()
    model = catboost.CatBoostRegressor(iterations=20, verbose=0, allow_writing_files=False)
    model.fit(X, y, cat_features=["glucose", "sex"]).save_model(str(path))
    return model.predict(X)


def save_skops(path: Path) -> Any:
    skops = pytest.importorskip("skops.io", reason="needs skops")
    skops.dump(pipeline(), path)
    return pipeline().predict(people()[0])


def save_pickle(path: Path) -> Any:
    joblib.dump(pipeline(), path)
    return pipeline().predict(people()[0])


def save_onnx(path: Path) -> Any:
    convert = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    tensors = pytest.importorskip("skl2onnx.common.data_types", reason="needs skl2onnx")
    types = [
        ("age", tensors.Int64TensorType([None, 1])),
        ("bmi", tensors.FloatTensorType([None, 1])),
        ("glucose", tensors.StringTensorType([None, 1])),
        ("sex", tensors.StringTensorType([None, 1])),
    ]
    proto = convert.convert_sklearn(pipeline(), initial_types=types)
    path.write_bytes(proto.SerializeToString())
    return pipeline().predict(people()[0])


SAVERS: dict[str, Callable[[Path], Any]] = {
    ".txt": save_lightgbm,
    ".json": save_xgboost,
    ".ubj": save_xgboost,
    ".cbm": save_catboost,
    ".skops": save_skops,
    ".joblib": save_pickle,
    ".pkl": save_pickle,
    ".onnx": save_onnx,
}

HEAVY = (".json", ".ubj", ".cbm", ".onnx")
KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind in HEAVY else kind for kind in SAVERS]


def test_every_kind_of_file_is_tested() -> None:
    assert set(SAVERS) == set(LOADERS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_model_its_columns_and_its_outputs(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{kind}"
    expected = SAVERS[kind](path)
    loaded = load_model(str(path), trust=Trust(pickle=True))
    X, y = people()
    assert loaded.columns == tuple(X.columns)
    table = X.assign(progression=y)
    assert loaded.select(list(reversed(table.columns))) == list(X.columns)
    np.testing.assert_allclose(outputs(loaded, X), expected, rtol=1e-5)
    assert loaded.labels == ()
    if kind in (".txt", ".json", ".ubj", ".cbm"):
        assert loaded.categorical == ("glucose", "sex")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_damaged_file_is_an_error_that_names_it(kind: str, share: float, tmp_path: Path) -> None:
    path = tmp_path / f"model{kind}"
    SAVERS[kind](path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(LoadError) as caught:
        load_model(str(path), trust=Trust(pickle=True))
    message = str(caught.value)
    assert message.startswith(f"the model file {str(path)!r} can't be read as ")
    assert message.endswith("Save it again, or check that it is the right file.")
    assert "\n" not in message


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\n\ntoday")
    with pytest.raises(LoadError, match=r"as a LightGBM model: it does not start as such"):
        load_model(str(path))


def test_a_new_kind_of_file_is_a_function_and_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weights(path: Path, *_: Any) -> Any:
        """Load a line of weights, one per column."""
        table = dict(pair.split("=") for pair in path.read_text().split())
        series = pd.Series(table, dtype=float)
        return lambda rows: rows @ series, {"columns": tuple(table)}

    monkeypatch.setitem(LOADERS, ".weights", ("a line of weights", weights))
    (tmp_path / "m.weights").write_text("bmi=2 age=1")
    loaded = load_model(str(tmp_path / "m.weights"))
    X, _ = people()
    assert loaded.select([*X.columns, "y"]) == ["bmi", "age"]
    np.testing.assert_allclose(outputs(loaded, X[["bmi", "age"]]), 2 * X["bmi"] + X["age"])
    (tmp_path / "m.weights").write_text("bmi")
    with pytest.raises(LoadError, match=r"can't be read as a line of weights: "):
        load_model(str(tmp_path / "m.weights"))
    with pytest.raises(LoadError, match=r"Give a file that ends in .*, \.weights, an address"):
        load_model("nothing.weights")


# ── classifiers ──


def test_a_classifiers_score_is_the_probability_of_a_label(tmp_path: Path) -> None:
    X, y = people()
    numbers = X[["age", "bmi"]]
    labels = np.where(y > y.median(), "severe", "mild")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, labels)
    joblib.dump(model, tmp_path / "m.joblib")
    loaded = load_model(str(tmp_path / "m.joblib"), trust=Trust(pickle=True))
    assert loaded.labels == ("mild", "severe")
    expected = model.predict_proba(numbers)
    np.testing.assert_allclose(outputs(loaded, numbers), expected[:, 1])
    np.testing.assert_allclose(outputs(loaded, numbers, "mild"), expected[:, 0])
    with pytest.raises(
        cfx.ModelError, match=r"label must be one of mild, severe; got 'sever'\. Did you mean 'sev"
    ):
        loaded.scoring("sever")


def test_a_classifier_in_a_file_of_trees_runs_here(tmp_path: Path) -> None:
    X, y = people()
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(categories(X), y > y.median()).booster_.save_model(str(tmp_path / "m.txt"))
    asked = as_model(load_model(str(tmp_path / "m.txt")).scoring())
    assert asked.local  # so that it may be asked for thousands of rows
    assert asked.name == "P(1) by Booster"


def test_labels_that_are_numbers_are_given_as_text(tmp_path: Path) -> None:
    X, y = people()
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)
    model.fit(categories(X), y > y.median())
    model.booster_.save_model(str(tmp_path / "m.txt"))
    loaded = load_model(str(tmp_path / "m.txt"))
    assert loaded.labels == (0, 1)
    expected = model.predict_proba(categories(X))
    np.testing.assert_allclose(outputs(loaded, X), expected[:, 1])
    np.testing.assert_allclose(outputs(loaded, X, "0"), expected[:, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_without_probabilities_gives_its_decision_value(n_classes: int) -> None:
    X, y = people()
    numbers = X[["age", "bmi"]]
    labels = pd.qcut(y, n_classes, labels=["a", "b", "c"][:n_classes]).astype(str)
    model = SVC(kernel="linear").fit(numbers, labels) if n_classes == 2 else LinearSVC()
    if n_classes == 3:
        model = model.fit(StandardScaler().fit_transform(numbers), labels)
    loaded = Loaded(model, labels=tuple(model.classes_), array=n_classes == 3)
    values = outputs(loaded, numbers, "a")
    table = numbers.to_numpy() if n_classes == 3 else numbers
    decision = model.decision_function(table)
    np.testing.assert_allclose(values, -decision if n_classes == 2 else decision[:, 0])


def test_a_label_for_a_regression_is_an_error() -> None:
    with pytest.raises(cfx.ModelError, match=r"'x' must be one of a classifier's; this model is"):
        Loaded(pipeline()).scoring("x")


@pytest.mark.slow
def test_an_xgboost_file_that_was_stopped_early_has_no_tree_after_the_best(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    y = X["a"] + np.random.default_rng(1).normal(size=200)
    model = xgboost.XGBRegressor(n_estimators=200, early_stopping_rounds=5)
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    model.save_model(tmp_path / "m.json")
    found = cfx.load_model(str(tmp_path / "m.json"))
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    np.testing.assert_array_equal(as_model(found.model)(X), model.predict(X))


def test_catboost_and_xgboost_files_are_classifiers_if_they_were(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost", reason="needs catboost")
    xgboost = pytest.importorskip("xgboost", reason="needs xgboost")
    X, y = people()
    cat = catboost.CatBoostClassifier(iterations=10, verbose=0, allow_writing_files=False)
    cat.fit(X, np.where(y > y.median(), "severe", "mild"), cat_features=["glucose", "sex"])
    cat.save_model(str(tmp_path / "m.cbm"))
    loaded = load_model(str(tmp_path / "m.cbm"))
    assert loaded.labels == ("mild", "severe")
    np.testing.assert_allclose(outputs(loaded, X, "mild"), cat.predict_proba(X)[:, 0])
    boosted = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True)
    boosted.fit(categories(X), (y > y.median()).astype(int))
    boosted.save_model(str(tmp_path / "m.ubj"))
    loaded = load_model(str(tmp_path / "m.ubj"))
    assert loaded.labels == (0, 1)
    expected = boosted.predict_proba(categories(X))[:, 1]
    np.testing.assert_allclose(outputs(loaded, X), expected, rtol=1e-5)


@pytest.mark.slow
def test_an_output_of_an_onnx_file_can_be_chosen(tmp_path: Path) -> None:
    save_onnx(tmp_path / "m.onnx")
    loaded = load_model(str(tmp_path / "m.onnx"), output="variable")
    assert outputs(loaded, people()[0]).shape == (442,)
    with pytest.raises(LoadError, match=r"output must be one of variable; got 'varable'\. Did you"):
        load_model(str(tmp_path / "m.onnx"), output="varable")


# ── what the columns are ──


def test_a_model_trained_on_arrays_gets_arrays_and_checks_their_number(tmp_path: Path) -> None:
    X, y = people()
    numbers = X[["age", "bmi"]]
    model = Ridge().fit(numbers.to_numpy(), y)
    joblib.dump(model, tmp_path / "m.joblib")
    loaded = load_model(str(tmp_path / "m.joblib"), trust=Trust(pickle=True))
    assert (loaded.columns, loaded.width, loaded.array) == (None, 2, True)
    np.testing.assert_allclose(outputs(loaded, numbers), model.predict(numbers.to_numpy()))
    with pytest.raises(
        cfx.ModelError,
        match=r"must have the 2 columns that the model takes; got 3: age, bmi, y\. Leave out those",
    ):
        loaded.select(["age", "bmi", "y"])


def test_numbered_names_of_libraries_are_no_names(tmp_path: Path) -> None:
    X, y = people()
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1)
    model.fit(X[["age", "bmi"]].to_numpy(), y).booster_.save_model(str(tmp_path / "m.txt"))
    loaded = load_model(str(tmp_path / "m.txt"))
    assert (loaded.columns, loaded.width) == (None, 2)
    assert outputs(loaded, X[["age", "bmi"]]).shape == (442,)


def test_a_missing_column_is_an_error_that_names_it() -> None:
    loaded = Loaded(None, columns=("age", "bmi"))
    with pytest.raises(
        cfx.ModelError,
        match=r"every column that the model takes; missing: 'bmi'\. Did you mean 'bm1'\? Rename",
    ):
        loaded.select(["age", "bm1"])


def test_names_that_a_library_has_rewritten_are_found() -> None:
    loaded = Loaded(None, columns=("hours_per_week",))
    assert loaded.select(["age", "hours-per-week"]) == ["hours-per-week"]


# ── trust ──


def test_a_pickle_is_loaded_only_with_trust(tmp_path: Path) -> None:
    path = tmp_path / "m.pkl"
    joblib.dump(pipeline(), path)
    with pytest.raises(
        LoadError,
        match=r"is a pickle, which can run any code when it is loaded\. If you trust its author, "
        r"pass trust=Trust\(pickle=True\)",
    ):
        load_model(str(path))


def test_a_skops_file_with_unknown_types_is_loaded_only_with_trust(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io", reason="needs skops")
    X, y = people()
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(X[["age", "bmi"]], y)
    path = tmp_path / "m.skops"
    skops.dump(model, path)
    with pytest.raises(UntrustedError, match=r"pass trust=Trust\(types=\(.*\)\)\.$") as caught:
        load_model(str(path))
    assert "lightgbm.sklearn.LGBMRegressor" in caught.value.types
    assert all(repr(name) in str(caught.value) for name in caught.value.types)
    loaded = load_model(str(path), trust=Trust(types=caught.value.types))
    np.testing.assert_allclose(outputs(loaded, X[["age", "bmi"]]), model.predict(X[["age", "bmi"]]))


# ── functions and addresses ──


def test_a_function_is_found_in_a_module_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_own_model.py").write_text(
        "class Thing:\n    @staticmethod\n    def score(rows):\n        return rows['age'] * 2.0\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    loaded = load_model("my_own_model:Thing.score")
    assert sys.path == before
    assert loaded.columns is None
    assert outputs(loaded, people()[0].head(1)).tolist() == [118.0]
    with pytest.raises(LoadError, match=r"'my_own_model' has no 'Thng'\. Did you mean 'Thing'\?"):
        load_model("my_own_model:Thng")


def test_a_module_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LoadError, match=r"'nowhere:f' can't be imported: No module named 'nowhere"):
        load_model("nowhere:f")


@pytest.mark.parametrize("source", ["nothing.onnx", "folder", "model.docx"])
def test_a_file_that_is_not_there_or_of_no_known_kind_is_an_error(
    source: str, tmp_path: Path
) -> None:
    (tmp_path / "model.docx").write_text("")
    with pytest.raises(LoadError, match=r"Give a file that ends in \.onnx, .*, an address http"):
        load_model(str(tmp_path / source))


def test_an_address_is_an_endpoint() -> None:
    inputs = [
        {"name": "sex", "datatype": "BYTES", "shape": [-1, 1]},
        {"name": "age", "datatype": "INT64", "shape": [-1, 1]},
    ]
    with serving(Scoring(lambda rows: rows["age"], inputs=inputs)) as server:
        loaded = load_model(f"{server.url}/v2/models/m")
        assert loaded.select(list(people()[0].columns)) == ["sex", "age"]
        assert load_model(server.url).columns is None


def test_a_missing_library_is_an_error_that_names_the_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.cbm"
    path.write_text("")
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(
        MissingExtraError, match=r"\.cbm files need catboost, .*: pip install catboost"
    ):
        load_model(str(path))


def test_categorical_integers_of_lightgbm_are_categories(tmp_path: Path) -> None:
    X, y = people()
    table = X[["age", "bmi"]].assign(zone=np.arange(len(X)) % 7)
    options: dict[str, Any] = {"categorical_feature": ["zone"], "free_raw_data": False}
    data = lightgbm.Dataset(table, y + 40.0 * (table["zone"] == 3), **options)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, data, 5)
    booster.save_model(str(tmp_path / "m.txt"))
    loaded = load_model(str(tmp_path / "m.txt"))
    assert loaded.categorical == ("zone",)
    np.testing.assert_allclose(outputs(loaded, table), booster.predict(table))


def test_one_of_several_outputs_is_chosen_by_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "several_outputs.py").write_text(
        "import numpy as np\n"
        "def two(rows):\n    return np.stack([rows['age'], rows['bmi']], axis=1)\n"
        "def one(rows):\n    return rows['age']\n"
    )
    X, _ = people()
    loaded = load_model("several_outputs:two", output="1")
    np.testing.assert_allclose(outputs(loaded, X), X["bmi"])
    with pytest.raises(ModelError, match="`output` must be one of 0 to 1; got 2"):
        outputs(load_model("several_outputs:two", output="2"), X)
    with pytest.raises(ModelError, match="the model has one output; got `output` 1"):
        outputs(load_model("several_outputs:one", output="1"), X)
    with pytest.raises(LoadError, match="`output` must be a position, 0 for the first; got 'bmi'"):
        load_model("several_outputs:two", output="bmi")
    with pytest.raises(ModelError, match="If these are several outputs, pass one of them"):
        outputs(load_model("several_outputs:two"), X)
