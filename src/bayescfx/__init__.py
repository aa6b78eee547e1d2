"""Counterfactual explanations for any regression model, by Bayesian optimisation of a potential.

>>> import bayescfx as cfx
>>> import numpy as np
>>> X = np.random.default_rng(0).normal(size=(100, 3))
>>> model = lambda X: 3 * X[:, 0] + X[:, 1] ** 2
>>> answer = cfx.explain(model, X[0], cfx.Space.from_data(X), cfx.increase(by=2), budget=40, rng=0)
>>> answer.reached
True
"""

from importlib import import_module

from bayescfx.version import VERSION

__version__ = VERSION

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than this
if TYPE_CHECKING:  # what type checkers and editors see; the same names as in `_HOMES`
    from bayescfx import plots as plots
    from bayescfx.acquisition import ei_cfx as ei_cfx
    from bayescfx.acquisition import ei_cfx_gradient as ei_cfx_gradient
    from bayescfx.acquisition import log_ei_cfx as log_ei_cfx
    from bayescfx.acquisition import log_ei_cfx_gradient as log_ei_cfx_gradient
    from bayescfx.data import Categorical as Categorical
    from bayescfx.data import Integer as Integer
    from bayescfx.data import Moment as Moment
    from bayescfx.data import Ordinal as Ordinal
    from bayescfx.data import Real as Real
    from bayescfx.errors import ArchiveError as ArchiveError
    from bayescfx.errors import BayesCFXError as BayesCFXError
    from bayescfx.errors import BayesCFXWarning as BayesCFXWarning
    from bayescfx.errors import CellError as CellError
    from bayescfx.errors import EvaluationsError as EvaluationsError
    from bayescfx.errors import InfeasibleError as InfeasibleError
    from bayescfx.errors import MissingExtraError as MissingExtraError
    from bayescfx.errors import ModelError as ModelError
    from bayescfx.errors import QueryError as QueryError
    from bayescfx.errors import SettingsError as SettingsError
    from bayescfx.errors import SpaceError as SpaceError
    from bayescfx.errors import SpaceWarning as SpaceWarning
    from bayescfx.errors import SurrogateWarning as SurrogateWarning
    from bayescfx.errors import TargetError as TargetError
    from bayescfx.errors import WorkerError as WorkerError
    from bayescfx.evaluations import Evaluations as Evaluations
    from bayescfx.explainer import Batch as Batch
    from bayescfx.explainer import Explainer as Explainer
    from bayescfx.explainer import explain as explain
    from bayescfx.explainer import explain_many as explain_many
    from bayescfx.explainer import explain_partition as explain_partition
    from bayescfx.explainer import explain_stream as explain_stream
    from bayescfx.explainer.feature_menu import menu as menu
    from bayescfx.explainer.proofs import ReachableRange as ReachableRange
    from bayescfx.explainer.proofs import certificate as certificate
    from bayescfx.explainer.proofs import check_certificate as check_certificate
    from bayescfx.explainer.proofs import reachable as reachable
    from bayescfx.models import probability as probability
    from bayescfx.models.endpoint import Endpoint as Endpoint
    from bayescfx.models.endpoint import EndpointError as EndpointError
    from bayescfx.models.endpoint import Patience as Patience
    from bayescfx.models.isolated import isolated as isolated
    from bayescfx.models.loaded import Trust as Trust
    from bayescfx.models.loaders import LoadError as LoadError
    from bayescfx.models.loaders import UntrustedError as UntrustedError
    from bayescfx.models.loaders import load_model as load_model
    from bayescfx.potentials import AEP as AEP
    from bayescfx.potentials import SEP as SEP
    from bayescfx.potentials import Plateau as Plateau
    from bayescfx.potentials import Valley as Valley
    from bayescfx.potentials import at_least as at_least
    from bayescfx.potentials import at_most as at_most
    from bayescfx.potentials import becomes as becomes
    from bayescfx.potentials import between as between
    from bayescfx.potentials import change as change
    from bayescfx.potentials import decrease as decrease
    from bayescfx.potentials import flips as flips
    from bayescfx.potentials import increase as increase
    from bayescfx.potentials import reach as reach
    from bayescfx.progress import progress_bar as progress_bar
    from bayescfx.result import Counterfactual as Counterfactual
    from bayescfx.result import Explanation as Explanation
    from bayescfx.result import Explanations as Explanations
    from bayescfx.result.assessment import WhatIf as WhatIf
    from bayescfx.result.assessment import assess as assess
    from bayescfx.result.assessment import what_if as what_if
    from bayescfx.result.binding_constraint import BindingConstraint as BindingConstraint
    from bayescfx.result.menu import Menu as Menu
    from bayescfx.result.menu import MenuItem as MenuItem
    from bayescfx.result.valid_range import ValidRange as ValidRange
    from bayescfx.search.baselines import LBFGSB as LBFGSB
    from bayescfx.search.baselines import NaiveBayes as NaiveBayes
    from bayescfx.search.baselines import RandomSearch as RandomSearch
    from bayescfx.search.bayes import BayesCFX as BayesCFX
    from bayescfx.search.exact.certificate_check import CertificateCheck as CertificateCheck
    from bayescfx.search.exact.certificate_space import CertificateError as CertificateError
    from bayescfx.search.exact.exact_search import Exact as Exact
    from bayescfx.search.gradient import ProjectedGradient as ProjectedGradient
    from bayescfx.search.sweep import Sweep as Sweep
    from bayescfx.search.turns import Step as Step
    from bayescfx.space.space import Space as Space
    from bayescfx.surrogate.fit import SurrogateSettings as SurrogateSettings
    from bayescfx.surrogate.process import GaussianProcess as GaussianProcess


# Modules are loaded when one of their names is first asked for: importing the package costs
# nothing, and a command that needs neither NumPy nor pandas loads neither.
_HOMES = {
    name: module
    for module, names in {
        "acquisition": "ei_cfx ei_cfx_gradient log_ei_cfx log_ei_cfx_gradient",
        "errors": (
            "ArchiveError BayesCFXError BayesCFXWarning CellError EvaluationsError "
            "InfeasibleError MissingExtraError ModelError QueryError SettingsError SpaceError "
            "SpaceWarning SurrogateWarning TargetError WorkerError"
        ),
        "evaluations": "Evaluations",
        "explainer": "Batch Explainer explain explain_many explain_partition explain_stream",
        "explainer.feature_menu": "menu",
        "explainer.proofs": "ReachableRange certificate check_certificate reachable",
        "data": "Categorical Integer Moment Ordinal Real",
        "models.endpoint": "Endpoint EndpointError Patience",
        "models.loaded": "Trust",
        "models.loaders": "LoadError UntrustedError load_model",
        "models": "probability",
        "models.isolated": "isolated",
        "potentials": (
            "AEP SEP Plateau Valley at_least at_most becomes between change decrease flips "
            "increase reach"
        ),
        "progress": "progress_bar",
        "result": "Counterfactual Explanation Explanations",
        "result.assessment": "WhatIf assess what_if",
        "result.binding_constraint": "BindingConstraint",
        "result.menu": "Menu MenuItem",
        "result.valid_range": "ValidRange",
        "search.baselines": "LBFGSB NaiveBayes RandomSearch",
        "search.bayes": "BayesCFX",
        "search.exact.certificate_check": "CertificateCheck",
        "search.exact.certificate_space": "CertificateError",
        "search.exact.exact_search": "Exact",
        "search.gradient": "ProjectedGradient",
        "search.sweep": "Sweep",
        "search.turns": "Step",
        "space.space": "Space",
        "surrogate.fit": "SurrogateSettings",
        "surrogate.process": "GaussianProcess",
    }.items()
    for name in names.split()
}

__all__ = sorted([*_HOMES, "plots"])

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "plots":
            return import_module("bayescfx.plots")
        if name not in _HOMES:
            raise AttributeError(f"module 'bayescfx' has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"bayescfx.{_HOMES[name]}"), name)
        return globals()[name]


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
