"""Pipelines as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from bayescfx.models import as_model, probability
from bayescfx.models.readers import LinearModel
from tests.conftest import mixed, pipeline
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    name_of,
    numbers,
    target,
)

NUMBERS = ["a", "b", "k", "c"]
LEVELS = ["job", "town"]
FOREST = RandomForestRegressor(5, max_depth=5, random_state=0)


def shift_and_scale(rows: Any) -> Any:
    return rows * 2.0 + 1.0


def add_columns(rows: Any) -> Any:
    return np.asarray(rows) + np.asarray(rows)[:, :1]


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler((-1, 2), clip=True),
        MaxAbsScaler(),
        RobustScaler(),
        QuantileTransformer(n_quantiles=50),
        QuantileTransformer(n_quantiles=50, output_distribution="normal"),
        PowerTransformer(),
        KBinsDiscretizer(
            5, encode="ordinal", strategy="quantile", quantile_method="averaged_inverted_cdf"
        ),
        Binarizer(threshold=0.5),
        FunctionTransformer(np.arcsinh),
        FunctionTransformer(),
        SimpleImputer(),
        "passthrough",
    ],
    ids=name_of,
)
def test_rising_steps(step: Any) -> None:
    table = numbers()
    for model in (FOREST, LinearRegression()):
        whole = make_pipeline(step, model).fit(table, target(table))
        form = check_reading(as_model(whole), table)
        assert form.inputs.columns == tuple(table.columns)
        assert (form.inputs.direction == 1).all()


def test_a_falling_function() -> None:
    table = numbers()
    model = make_pipeline(FunctionTransformer(np.negative), FOREST).fit(table, target(table))
    assert (check_reading(as_model(model), table).inputs.direction == -1).all()


@pytest.mark.parametrize(
    "step",
    [
        KBinsDiscretizer(
            4, encode="onehot", strategy="quantile", quantile_method="averaged_inverted_cdf"
        ),
        SplineTransformer(n_knots=4),
        FunctionTransformer(shift_and_scale),
        FunctionTransformer(np.clip, kw_args={"a_min": 0.0, "a_max": 3.0}),
    ],
    ids=name_of,
)
def test_other_functions_of_single_columns(step: Any) -> None:
    table = numbers()
    model = make_pipeline(step, Ridge()).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert set(form.inputs.columns) == set(table.columns)
    assert (form.inputs.direction == 0).all()


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("add_indicator", [False, True])
def test_imputers(strategy: str, add_indicator: bool) -> None:
    table = numbers(missing=True)
    imputer = SimpleImputer(strategy=strategy, add_indicator=add_indicator)
    model = make_pipeline(imputer, StandardScaler(), FOREST).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert form.inputs.columns[:5] == tuple(table.columns)
    assert form.inputs.columns[5:] == (("gaps",) if add_indicator else ())


def test_an_imputer_drops_an_empty_column() -> None:
    table = numbers(missing=True).assign(c=np.nan)
    model = Pipeline([("impute", SimpleImputer()), ("model", LinearRegression())])
    with pytest.warns(UserWarning, match="Skipping features"):
        model.fit(table, target(numbers(missing=True)))
    form = check_reading(as_model(model), table)
    assert form.inputs.columns == ("a", "b", "k", "gaps")


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(sparse_output=False, drop="first"),
        OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
        OneHotEncoder(min_frequency=0.25, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(max_categories=3, drop="first"),
        OrdinalEncoder(),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        TargetEncoder(),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("remainder", ["passthrough", "drop", StandardScaler()], ids=name_of)
def test_encoders(encoder: Any, remainder: Any) -> None:
    table = levels()
    encode = ColumnTransformer([("levels", encoder, LEVELS)], remainder=remainder)
    for model in (FOREST, LinearRegression()):
        whole = make_pipeline(encode, model).fit(table, target(table))
        form = check_reading(as_model(whole), table)
        for name, direction in zip(form.inputs.columns, form.inputs.direction, strict=True):
            assert direction == (0 if name in LEVELS else 1)


def test_unknown_levels() -> None:
    table = levels()
    encode = ColumnTransformer(
        [("levels", OneHotEncoder(handle_unknown="ignore"), LEVELS)], remainder="passthrough"
    )
    model = make_pipeline(encode, FOREST).fit(table, target(table))
    form = check_reading(as_model(model), table)
    other = table.assign(town="Linz")
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-12)


def test_target_encoder_with_several_classes() -> None:
    table = levels()
    encode = ColumnTransformer([("levels", TargetEncoder(), LEVELS)], remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(5, random_state=0))
    model.fit(table, label(table, 3))
    check_reading(probability(model, 1), table)


@pytest.mark.parametrize(
    "selection", ["names", "positions", "slice", "slice of names", "mask", "function"]
)
def test_selections_of_columns(selection: str) -> None:
    table = levels()
    named = {
        "names": ["a", "c"],
        "positions": [0, 3],
        "slice": slice(0, 2),
        "slice of names": slice("a", "k"),
        "mask": np.array([True, False, True, False, False, False]),
        "function": make_column_selector(dtype_include=np.float64),
    }
    encode = ColumnTransformer(
        [("numbers", StandardScaler(), named[selection]), ("levels", OrdinalEncoder(), LEVELS)]
    )
    model = make_pipeline(encode, FOREST).fit(table, target(table))
    check_reading(as_model(model), table)


def test_nested_steps() -> None:
    table = levels()
    table.loc[::6, "a"] = np.nan
    inner = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    union = FeatureUnion([("scaled", StandardScaler()), ("bins", Binarizer(threshold=20))])
    encode = ColumnTransformer(
        [
            ("numbers", inner, ["a", "b"]),
            ("union", union, ["b", "k"]),
            ("levels", make_pipeline(OneHotEncoder(sparse_output=False), MinMaxScaler()), LEVELS),
            ("nothing", StandardScaler(), []),
            ("gone", "drop", ["c"]),
        ]
    )
    model = make_pipeline(
        encode, VarianceThreshold(0.01), GradientBoostingRegressor(n_estimators=9)
    )
    form = check_reading(as_model(model.fit(table, target(levels()))), table)
    assert {"a", "b", "k", "job", "town"} == set(form.inputs.columns)


def test_selected_columns() -> None:
    table = numbers()
    model = make_pipeline(StandardScaler(), SelectKBest(f_regression, k=2), LinearRegression())
    form = check_reading(as_model(model.fit(table, target(table))), table)
    assert len(form.inputs) == 2


@pytest.mark.parametrize("name", ["lightgbm", "histograms"])
def test_pipelines_for_a_mixed_table(name: str) -> None:
    form = check_reading(as_model(pipeline(name)), mixed())
    assert set(form.inputs.columns) == set(mixed().columns)


def test_lightgbm_with_categories_behind_a_step() -> None:
    lightgbm: Any = pytest.importorskip("lightgbm")
    table = levels().astype({"town": "category"})
    scale = ColumnTransformer(
        [("scale", StandardScaler(), NUMBERS)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    model = lightgbm.LGBMRegressor(n_estimators=20, num_leaves=5, verbose=-1, n_jobs=1)
    whole = make_pipeline(scale.set_output(transform="pandas"), model)
    check_reading(as_model(whole.fit(table, target(levels()))), table)


def test_classifiers() -> None:
    table = levels()
    encode = ColumnTransformer([("levels", OneHotEncoder(), LEVELS)], remainder=StandardScaler())
    model = make_pipeline(encode, LogisticRegression()).fit(table, label(table))
    form = check_reading(probability(model, 0), table)
    assert isinstance(form, LinearModel)
    check_reading(as_model(model.decision_function), table)


def test_an_array() -> None:
    rows = numbers(missing=True).to_numpy()
    encode = ColumnTransformer([("scale", StandardScaler(), [1, 0])], remainder=SimpleImputer())
    model = make_pipeline(encode, FOREST).fit(rows, target(numbers(missing=True)))
    form = check_reading(as_model(model), rows)
    assert form.inputs.columns == (1, 0, 2, 3, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"func": np.log, "inverse_func": np.exp},
        {"func": np.log1p, "inverse_func": np.expm1},
        {"func": np.log2, "inverse_func": np.exp2},
        {"transformer": StandardScaler()},
        {"transformer": RobustScaler()},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [FOREST, LinearRegression()], ids=name_of)
def test_transformed_targets(model: Any, options: dict[str, Any]) -> None:
    table = numbers()
    whole = TransformedTargetRegressor(make_pipeline(StandardScaler(), model), **options)
    check_reading(as_model(whole.fit(table, target(table))), table)


def test_a_search() -> None:
    table = numbers()
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]})
    check_reading(as_model(search.fit(table, target(table))), table)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PolynomialFeatures(), "a PolynomialFeatures step mixes columns"),
        (PCA(), "a PCA step mixes columns"),
        (Normalizer(), "a Normalizer step mixes columns"),
        (KNNImputer(), "a KNNImputer step mixes columns"),
        (FunctionTransformer(add_columns), "a FunctionTransformer step mixes columns"),
    ],
    ids=name_of,
)
def test_steps_that_are_not_read(step: Any, words: str) -> None:
    table = numbers()
    model = make_pipeline(step, LinearRegression()).fit(table, target(table))
    check_refused(as_model(model), table, words)


def test_targets_that_are_not_read() -> None:
    table = numbers()
    y = target(table)
    square = TransformedTargetRegressor(FOREST, func=np.sqrt, inverse_func=np.square)
    check_refused(as_model(square.fit(table, y)), table, "square")
    twice = TransformedTargetRegressor(PoissonRegressor(), func=np.log1p, inverse_func=np.expm1)
    check_refused(as_model(twice.fit(table, y)), table, "link")


def test_a_step_of_ones_own() -> None:
    class Doubled(StandardScaler):  # type: ignore[misc]
        def transform(self, X: Any, copy: Any = None) -> Any:
            scaled = super().transform(X)
            return scaled + scaled[:, ::-1]

    table = numbers()
    model = make_pipeline(Doubled(), LinearRegression()).fit(table, target(table))
    check_refused(as_model(model), table, "changes with others too")
    falling = make_pipeline(StandardScaler(), FOREST).fit(table, target(table))
    falling[0].scale_ = -falling[0].scale_
    check_refused(as_model(falling), table, "does not only rise or fall")
