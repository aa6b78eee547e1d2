"""Readers for estimators around others: pipelines, searches, transformed targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from bayescfx.models.readers.forms import Form, LinkName, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.network_steps import rescaled_network
from bayescfx.models.readers.sources import Computation, Source, Task, UnreadableModelError
from bayescfx.models.readers.transformers import passes_through, trace_columns
from bayescfx.models.readers.tree_parts import rescaled_trees

#: The functions that may turn outputs back: the factor before the link, and the link.
_INVERSES: dict[Any, tuple[float, LinkName]] = {
    None: (1.0, "identity"),
    np.exp: (1.0, "exp"),
    np.exp2: (float(np.log(2.0)), "exp"),
    np.expm1: (1.0, "expm1"),
    expit: (1.0, "expit"),
}
_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


def read_pipeline(task: Task) -> Form:
    """Return the form of a pipeline: that of its last step, with inputs through the others."""
    *before, (_, last) = task.estimator.steps
    source = task.source
    for _, step in before:
        if passes_through(step):
            continue
        columns = trace_columns(step, source.columns, source.table(source.sample))
        source = Source(Computation(source.table, step.transform), columns, source.sample)
    if passes_through(last):
        raise UnreadableModelError("the pipeline has no estimator as its last step")
    return task.read_part(last, source=source)


def read_inner(task: Task) -> Form:
    """Return the form of the estimator that a search or another wrapper found."""
    for name in ("best_estimator_", "estimator_", "estimator"):
        inner = vars(task.estimator).get(name)  # FrozenEstimator forwards other names
        if inner is not None:
            return task.read_part(inner)
    raise UnreadableModelError(f"{task.class_name} has no fitted estimator")


def read_transformed_target(task: Task) -> Form:
    """Return the form of a regression whose outputs are transformed back."""
    form = task.read_part(task.estimator.regressor_)
    if form.link != "identity":
        raise UnreadableModelError("a regression with a link is transformed once more")
    back = task.estimator.transformer_
    name = type(back).__name__
    if name in _SCALERS:
        shift, shifted = back.inverse_transform(np.array([[0.0], [1.0]]))[:, 0]
        return rescaled(form, shifted - shift, shift)
    if name != "FunctionTransformer" or back.inverse_func not in _INVERSES or back.inv_kw_args:
        function = getattr(getattr(back, "inverse_func", None), "__name__", name)
        raise UnreadableModelError(f"the target is transformed back with {function}")
    factor, link = _INVERSES[back.inverse_func]
    return replace(rescaled(form, factor, 0.0), link=link)


def rescaled(form: Form, factor: float, shift: float) -> Form:
    """Return a form whose sums are multiplied by a factor, with a number added."""
    if isinstance(form, TreeEnsemble):
        return rescaled_trees(form, factor, shift)
    if isinstance(form, ReluNetwork):
        return rescaled_network(form, factor, shift)
    return replace(form, weights=form.weights * factor, base=form.base * factor + shift)
