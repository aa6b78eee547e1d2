"""Networks as flat forms: scikit-learn, PyTorch and ONNX."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from bayescfx.models import as_model, probability
from bayescfx.models.readers import LinearModel, ReluNetwork
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    numbers,
    target,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SINGLE = 1e-5  # outputs are computed in float32


def rows() -> pd.DataFrame:
    """Return a table of float64."""
    return numbers().astype(np.float64)


def perceptron(*widths: int, **options: Any) -> Any:
    """Return a small network that is fitted for a few rounds only."""
    return MLPRegressor(hidden_layer_sizes=widths, max_iter=60, random_state=0, **options)


@pytest.mark.parametrize("widths", [(8,), (7, 5), (6, 4, 3)])
def test_regressors(widths: tuple[int, ...]) -> None:
    model = make_pipeline(StandardScaler(), perceptron(*widths)).fit(rows(), target(numbers()))
    form = check_reading(as_model(model), rows())
    assert isinstance(form, ReluNetwork)
    assert [len(bias) for bias in form.biases] == [*widths, 1]
    assert form.weights[0].shape == (widths[0], 4)


def test_classifiers() -> None:
    model = make_pipeline(MinMaxScaler(), MLPClassifier((6,), max_iter=60, random_state=0))
    model.fit(rows(), label(numbers()))
    for column in (0, 1):
        form = check_reading(probability(model, column), rows())
        assert form.link == "expit"


def test_identity_activations_make_a_linear_model() -> None:
    model = perceptron(5, 3, activation="identity").fit(rows(), target(numbers()))
    form = check_reading(as_model(model), rows())
    assert isinstance(form, LinearModel)


def test_one_hot_columns_and_a_scaler() -> None:
    table = levels()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job", "town"]), remainder=StandardScaler()
    )
    model = make_pipeline(encoder, perceptron(9)).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert isinstance(form, ReluNetwork)
    assert set(form.inputs.columns) == set(table.columns)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_links_and_transformed_targets(loss: str) -> None:
    inner = make_pipeline(StandardScaler(), perceptron(6, loss=loss))
    if loss == "squared_error":
        inner = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp)
    form = check_reading(as_model(inner.fit(rows(), target(numbers()))), rows())
    assert isinstance(form, ReluNetwork)
    assert form.link == "exp"
    scaled = TransformedTargetRegressor(perceptron(4), transformer=StandardScaler())
    check_reading(as_model(scaled.fit(rows(), 100 * target(numbers()))), rows())


def test_networks_that_are_not_read() -> None:
    y = target(numbers())
    bent = perceptron(4, activation="tanh").fit(rows(), y)
    check_refused(as_model(bent), rows(), "MLPRegressor has the activation 'tanh'")
    several = perceptron(4).fit(rows(), np.stack([y, y], axis=1))
    check_refused(as_model(several), rows(), "MLPRegressor has several outputs")
    classes = MLPClassifier((4,), max_iter=20).fit(rows(), label(numbers(), 3))
    check_refused(probability(classes, 1), rows(), "MLPClassifier has several classes")
    bag = BaggingRegressor(perceptron(3), n_estimators=2).fit(rows(), y)
    check_refused(as_model(bag), rows(), "BaggingRegressor adds up networks")
    inner = MLPClassifier((4,), max_iter=20)
    calibrated = CalibratedClassifierCV(inner, ensemble=False).fit(rows(), label(numbers()))
    check_refused(probability(calibrated, 1), rows(), "calibrates probabilities with a link")


# ── PyTorch ──


def torch_network(*last: Any, width: int = 4) -> Any:
    """Return a network with random weights for inputs of about the same scale."""
    torch: Any = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(7, 5, bias=False), nn.ReLU(), nn.Dropout(0.4))
    parts = [nn.Flatten(), nn.Linear(width, 7), nn.ReLU(), inner, nn.Identity(), nn.Linear(5, 1)]
    return nn.Sequential(*parts, *last)


def scaled_rows() -> Any:
    """Return an array whose columns have about the same scale."""
    return StandardScaler().fit_transform(rows())


def test_torch_networks() -> None:
    torch: Any = pytest.importorskip("torch")
    form = check_reading(as_model(torch_network()), scaled_rows(), SINGLE)
    assert isinstance(form, ReluNetwork)
    assert [len(bias) for bias in form.biases] == [7, 5, 1]
    ended = check_reading(as_model(torch_network(torch.nn.Sigmoid())), scaled_rows(), SINGLE)
    assert ended.link == "expit"
    form = check_reading(as_model(torch_network().double()), rows())
    line = torch.nn.Linear(4, 1)
    assert isinstance(check_reading(as_model(line), scaled_rows(), SINGLE), LinearModel)


def test_a_torch_network_with_normalised_batches() -> None:
    torch: Any = pytest.importorskip("torch")
    nn = torch.nn
    module = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    module.append(nn.Linear(6, 1))
    for _ in range(5):
        module(torch.as_tensor(rows().to_numpy(), dtype=torch.float32))
    check_reading(as_model(module), rows(), SINGLE)


def test_torch_networks_that_are_not_read() -> None:
    torch: Any = pytest.importorskip("torch")
    nn = torch.nn

    def check(reason: str, *parts: Any) -> None:
        check_refused(as_model(nn.Sequential(*parts)), scaled_rows(), reason)

    check("the network has the module Tanh", nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    pictures = [nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.Flatten(), nn.Linear(4, 1)]
    check("the network has the module Unflatten", *pictures)
    check("Sigmoid before the end", nn.Linear(4, 3), nn.Sigmoid(), nn.Linear(3, 1))
    check("ends with an activation", nn.Linear(4, 1), nn.ReLU())

    class Own(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.sum(dim=1)

    check_refused(as_model(Own()), scaled_rows(), "Own is a PyTorch module of its own")
    hooked = torch_network()
    hooked[1].register_forward_hook(lambda module, given, result: 2 * result)
    check_refused(as_model(hooked), scaled_rows(), "the PyTorch module has hooks")


# ── ONNX ──


def session_of(content: bytes) -> Any:
    """Return a session of ONNX Runtime."""
    runtime: Any = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(content, providers=["CPUExecutionProvider"])


def converted(model: Any) -> Any:
    """Return a fitted estimator as a session."""
    skl2onnx: Any = pytest.importorskip("skl2onnx")
    options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
    example = np.zeros((1, 4), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = skl2onnx.to_onnx(model, example, options=options).SerializeToString()
    return session_of(content)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_networks_of_scikit_learn() -> None:
    table = rows()
    model = make_pipeline(StandardScaler(), perceptron(6, 4)).fit(table, target(numbers()))
    form = check_reading(as_model(converted(model)), table.to_numpy(), SINGLE)
    assert isinstance(form, ReluNetwork)
    classes = MLPClassifier((5,), max_iter=60, random_state=0).fit(scaled_rows(), label(numbers()))
    for column in (0, 1):
        form = check_reading(probability(converted(classes), column), scaled_rows(), SINGLE)
        assert form.link == "expit"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_networks_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    for last in ([], [torch.nn.Sigmoid()], [torch.nn.Tanh()]):
        buffer = io.BytesIO()
        axes = {"x": {0: "n"}}
        options: Any = {"dynamo": False, "input_names": ["x"], "dynamic_axes": axes}
        torch.onnx.export(torch_network(*last).eval(), (torch.zeros(1, 4),), buffer, **options)
        model = as_model(session_of(buffer.getvalue()))
        if last and type(last[0]).__name__ == "Tanh":
            check_refused(model, scaled_rows(), "the ONNX network has the operator Tanh")
        else:
            form = check_reading(model, scaled_rows(), SINGLE)
            assert isinstance(form, ReluNetwork)
