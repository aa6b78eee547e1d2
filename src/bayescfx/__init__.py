"""Counterfactual explanations for any regression model, by Bayesian optimisation of a potential.

>>> import bayescfx as cfx
>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(100, 3))
>>> model = lambda X: 3 * X[:, 0] + X[:, 1] ** 2
>>> answer = cfx.explain(model, X[0], cfx.Space.from_data(X), cfx.increase(by=2), budget=40, rng=0)
>>> answer.reached
True
"""

from bayescfx.acquisition.ei import (
    ei_cfx,
    ei_cfx_gradient,
    log_ei_cfx,
    log_ei_cfx_gradient,
)
from bayescfx.errors import (
    BayesCFXError,
    BayesCFXWarning,
    BudgetWarning,
    InfeasibleError,
    ModelError,
    QueryError,
    SpaceError,
    SpaceWarning,
    SurrogateWarning,
    TargetError,
)
from bayescfx.evaluations.data import Evaluations
from bayescfx.explainer.front import explain, explain_many
from bayescfx.features import Categorical, Integer, Moment, Ordinal, Real
from bayescfx.model.classifiers import probability
from bayescfx.potentials.family import AEP, SEP
from bayescfx.potentials.targets import (
    at_least,
    at_most,
    between,
    change,
    decrease,
    increase,
    reach,
)
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.baselines import LBFGSB, RandomSearch
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.naive import NaiveBayes
from bayescfx.search.turns import Step
from bayescfx.space.space import Space
from bayescfx.surrogate.process import GaussianProcess

__version__ = "0.1.0"

__all__ = [
    "AEP",
    "LBFGSB",
    "SEP",
    "BayesCFX",
    "BayesCFXError",
    "BayesCFXWarning",
    "BudgetWarning",
    "Categorical",
    "Counterfactual",
    "Evaluations",
    "Explanation",
    "Explanations",
    "GaussianProcess",
    "InfeasibleError",
    "Integer",
    "ModelError",
    "Moment",
    "NaiveBayes",
    "Ordinal",
    "ProjectedGradient",
    "QueryError",
    "RandomSearch",
    "Real",
    "Space",
    "SpaceError",
    "SpaceWarning",
    "Step",
    "SurrogateWarning",
    "TargetError",
    "at_least",
    "at_most",
    "between",
    "change",
    "decrease",
    "ei_cfx",
    "ei_cfx_gradient",
    "explain",
    "explain_many",
    "increase",
    "log_ei_cfx",
    "log_ei_cfx_gradient",
    "probability",
    "reach",
]
