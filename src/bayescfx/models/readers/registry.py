"""The table of readers, by the class of the estimator.

Estimators are recognised by name, so that no library is imported for users who do not need it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bayescfx.models.readers.additive_tables import read_additive
from bayescfx.models.readers.catboost_trees import read_catboost
from bayescfx.models.readers.forms import Form
from bayescfx.models.readers.lightgbm_trees import read_lightgbm
from bayescfx.models.readers.onnx_trees import read_onnx
from bayescfx.models.readers.pipelines import (
    read_inner,
    read_pipeline,
    read_transformed_target,
)
from bayescfx.models.readers.scikit_ensembles import (
    read_ada_boost,
    read_bagging,
    read_calibrated,
    read_stacking,
    read_voting,
)
from bayescfx.models.readers.scikit_linear import read_linear, read_log_linear, read_logistic
from bayescfx.models.readers.scikit_networks import read_perceptron
from bayescfx.models.readers.scikit_trees import (
    read_forest,
    read_gradient_boosting,
    read_hist_gradient_boosting,
    read_tree,
)
from bayescfx.models.readers.sources import Task, UnreadableModelError
from bayescfx.models.readers.torch_networks import read_torch
from bayescfx.models.readers.xgboost_trees import read_xgboost

#: Returns the form of an estimator, or raises an UnreadableModelError with the reason.
Reader: TypeAlias = Callable[[Task], Form]

_SCIKIT_LEARN: dict[Reader, tuple[str, ...]] = {
    read_pipeline: ("Pipeline",),
    read_transformed_target: ("TransformedTargetRegressor",),
    read_inner: (
        "BaseSearchCV",
        "FrozenEstimator",
        "FixedThresholdClassifier",
        "TunedThresholdClassifierCV",
        "RANSACRegressor",
    ),
    read_voting: ("VotingRegressor", "VotingClassifier"),
    read_bagging: ("BaggingRegressor", "BaggingClassifier"),
    read_stacking: ("StackingRegressor", "StackingClassifier"),
    read_ada_boost: ("AdaBoostClassifier", "AdaBoostRegressor"),
    read_calibrated: ("CalibratedClassifierCV",),
    read_tree: (
        "DecisionTreeRegressor",
        "DecisionTreeClassifier",
    ),
    read_forest: (
        "RandomForestRegressor",
        "RandomForestClassifier",
        "ExtraTreesRegressor",
        "ExtraTreesClassifier",
    ),
    read_gradient_boosting: (
        "GradientBoostingRegressor",
        "GradientBoostingClassifier",
    ),
    read_hist_gradient_boosting: (
        "HistGradientBoostingRegressor",
        "HistGradientBoostingClassifier",
    ),
    read_log_linear: (
        "PoissonRegressor",
        "GammaRegressor",
        "TweedieRegressor",
    ),
    read_logistic: (
        "LogisticRegression",
        "LogisticRegressionCV",
        "SGDClassifier",
        "LinearDiscriminantAnalysis",
    ),
    read_perceptron: ("MLPRegressor", "MLPClassifier"),
    read_linear: (
        "LinearRegression",
        "Ridge",
        "RidgeCV",
        "Lasso",
        "LassoCV",
        "LassoLars",
        "LassoLarsCV",
        "LassoLarsIC",
        "Lars",
        "LarsCV",
        "ElasticNet",
        "ElasticNetCV",
        "BayesianRidge",
        "ARDRegression",
        "HuberRegressor",
        "QuantileRegressor",
        "TheilSenRegressor",
        "OrthogonalMatchingPursuit",
        "OrthogonalMatchingPursuitCV",
        "SGDRegressor",
        "PassiveAggressiveRegressor",
        "LinearSVR",
        "LinearSVC",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "Perceptron",
        "PassiveAggressiveClassifier",
    ),
}

#: By the package and the name of the class; subclasses are read like their base.
READERS: dict[str, Reader] = {
    f"sklearn.{name}": reader for reader, names in _SCIKIT_LEARN.items() for name in names
} | {
    "lightgbm.LGBMModel": read_lightgbm,
    "lightgbm.Booster": read_lightgbm,
    "xgboost.XGBModel": read_xgboost,
    "xgboost.Booster": read_xgboost,
    "catboost.CatBoost": read_catboost,
    "interpret.EBMModel": read_additive,
    "torch.Module": read_torch,
    "bayescfx.Onnx": read_onnx,
}


def read_estimator(task: Task) -> Form:
    """Return the form of an estimator by the reader of its class or of a base class."""
    for kind in type(task.estimator).__mro__:
        package = kind.__module__.partition(".")[0]
        reader = READERS.get(f"{package}.{kind.__name__}")
        if reader is not None:
            return reader(task)
    raise UnreadableModelError(f"there is no reader for {task.class_name}")
