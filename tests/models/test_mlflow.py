"""Models of MLflow: by their address, and only if they are trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import bayescfx as cfx
from bayescfx.models.loaders import LoadError, is_code, load_model

X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
TRUST = cfx.Trust(pickle=True)


class Packed:
    """A model as MLflow wraps it."""

    def __init__(self, model: Any, library: str, names: list[str] | None) -> None:
        schema = None
        if names is not None:
            schema = SimpleNamespace(has_input_names=lambda: True, input_names=lambda: names)
        flavours = {"python_function": {"loader_module": library}}
        self.metadata = SimpleNamespace(flavors=flavours, get_input_schema=lambda: schema)
        self.get_raw_model = lambda: model

    def predict(self, rows: Any) -> Any:
        return np.asarray(rows["a"]) * 2.0


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Packed]:
    """Return models by address, with a module in the place of MLflow's."""
    known: dict[str, Packed] = {}

    def load(uri: str) -> Packed:
        if uri not in known:
            raise KeyError(f"no such model {uri}")
        return known[uri]

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", SimpleNamespace(load_model=load))
    return known


def test_a_model_of_a_known_library_is_unwrapped(registry: dict[str, Packed]) -> None:
    model = LogisticRegression().fit(X, X["a"] > 0)
    registry["models:/credit/3"] = Packed(model, "mlflow.sklearn", None)
    loaded = load_model("models:/credit/3", trust=TRUST)
    assert loaded.model is model
    assert loaded.labels == (False, True)
    assert loaded.columns == ("a", "b")


def test_any_other_model_is_called_through_mlflow(registry: dict[str, Packed]) -> None:
    registry["folder/own"] = packed = Packed(None, "mlflow.pyfunc.model", ["a"])
    loaded = load_model("mlflow:folder/own", trust=TRUST)
    assert loaded.model is packed
    assert loaded.select(["b", "a"]) == ["a"]
    space = cfx.Space.from_data(X[["a"]])
    answer = cfx.explain(loaded.scoring(), X[["a"]].iloc[0], space, 1.5, budget=20, rng=0)
    assert answer.reached


def test_one_of_several_outputs_is_chosen_by_its_position(registry: dict[str, Packed]) -> None:
    model = Ridge().fit(X, np.stack([X["a"], X["b"]], axis=1))
    registry["models:/two/1"] = Packed(model, "mlflow.sklearn", None)
    score: Any = load_model("models:/two/1", trust=TRUST, output="1").scoring()
    np.testing.assert_array_equal(score(X), model.predict(X)[:, 1])
    with pytest.raises(LoadError, match="`output` must be a position, 0 for the first; got 'b'"):
        load_model("models:/two/1", trust=TRUST, output="b")


def test_mlflow_runs_code_so_it_must_be_trusted(registry: dict[str, Packed]) -> None:
    with pytest.raises(LoadError, match=r"can run any code. If you trust .*Trust\(pickle=True"):
        load_model("runs:/abc/model")
    with pytest.raises(LoadError, match=r"MLflow can't load the model 'runs:/abc/model'.*no such"):
        load_model("runs:/abc/model", trust=TRUST)
    assert not is_code("models:/credit/3")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # MLflow's own
def test_a_real_model_of_mlflow_is_explained(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow.sklearn", reason="needs mlflow-skinny")
    model = Ridge().fit(X, 3 * X["a"])
    mlflow.save_model(model, str(tmp_path / "m"), input_example=X.head(2))
    loaded = load_model(f"mlflow:{tmp_path / 'm'}", trust=TRUST)
    answer = cfx.explain(
        loaded.scoring(), X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=2), budget=30, rng=0
    )
    assert answer.reached
    assert answer.verify(model)
