"""Facts about models that can be read: the reachable outputs of a query, and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.checks import check
from bayescfx.data.tables import Row, rows_of
from bayescfx.errors import ModelError, SettingsError, SpaceError
from bayescfx.explainer.call_settings import PROOF_WORK
from bayescfx.models.model import Model, as_model
from bayescfx.models.readers import Form, LinearModel, ReluNetwork
from bayescfx.models.readers.forms import apply_link
from bayescfx.result.assessment import around
from bayescfx.result.counterfactual import OPTIMAL_BEFORE_ROUNDING
from bayescfx.result.explanation import Explanation
from bayescfx.search.exact.branching import TUNING, Work, find_extreme
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.certificate_check import CertificateCheck
from bayescfx.search.exact.certificate_check import check_certificate as check_boxes
from bayescfx.search.exact.certificate_space import CertificateError
from bayescfx.search.exact.certificates import make_certificate
from bayescfx.search.exact.linear_certificates import SAME_COST, make_linear_certificate
from bayescfx.search.exact.linear_form import extreme_outputs
from bayescfx.search.exact.network_search import TUNING as NETWORKS
from bayescfx.search.exact.network_search import find_network_extreme
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Prover, raw_intervals
from bayescfx.space.region import Region
from bayescfx.space.space import Space

#: Work for the certificate of a linear model: about half a minute.
CERTIFICATE_WORK = 3e8


@dataclass(frozen=True, eq=False)
class ReachableRange:
    """The lowest and the highest output that a query can reach under the constraints.

    Parameters
    ----------
    lowest, highest : float
        The model's outputs for the two rows.
    lowest_row, highest_row : Series or ndarray
        The rows, in the user's columns.
    bounds : tuple of two floats
        No allowed row has a lower or a higher output: proven.
    is_exact : bool
        Whether the outputs are the bounds, to rounding. Otherwise the work was cut short.
    """

    lowest: float
    highest: float
    lowest_row: Row
    highest_row: Row
    bounds: tuple[float, float]
    is_exact: bool


def reachable(model: Any, query: object, space: Space) -> ReachableRange:
    """Return the lowest and the highest output that a query can reach, for a readable model.

    Parameters
    ----------
    model : object
        A fitted tree ensemble, linear model or ReLU network, also in a pipeline.
    query : Series, one-row DataFrame, dict or array of shape (columns,)
        The row to start from.
    space : Space
        The features and what may change.

    Returns
    -------
    ReachableRange

    Raises
    ------
    ModelError
        If the model can't be read.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 5.0, 2.0, 2.0])
    >>> found = reachable(model, X.iloc[0], Space.from_data(X))
    >>> found.lowest, found.highest, found.is_exact
    (1.0, 5.0, True)
    """
    check(isinstance(space, Space), "space", "a Space", space, SpaceError)
    checked = as_model(model, space.schema)
    region = space.around(query)
    form, rounding, prover = _read(checked, region)
    try:
        X, bounds, tolerance = _find_extremes(form, region, prover)
    except NoProof as error:
        raise ModelError(f"the reachable outputs can't be computed: {error}.") from None
    rows = region.rows(X)
    outputs = checked(rows)
    slack = rounding + tolerance
    low, high = rows_of(rows)
    return ReachableRange(
        lowest=float(outputs[0]),
        highest=float(outputs[1]),
        lowest_row=low,
        highest_row=high,
        bounds=(float(min(bounds[0], outputs[0])), float(max(bounds[1], outputs[1]))),
        is_exact=bool((np.abs(outputs - bounds) <= slack).all()),
    )


def _read(model: Model, region: Region) -> tuple[Form, float, Prover]:
    """Return the model in a flat form, its rounding error, and the prover that read it."""
    prover = Prover(model)
    query = region.query[None]
    try:
        form = prover.form(region, query, model.scores(region.rows(query)))
    except NoProof as error:
        raise ModelError(
            f"`model` must be one that can be read; {error}. Use explain, whose answers say which "
            "outputs were seen."
        ) from None
    return form, prover.reading(region).rounding, prover


def _find_extremes(form: Form, region: Region, prover: Prover) -> tuple[Array, Array, Array]:
    """Return the rows ``(2, d)`` with the lowest and highest output, bounds, and tolerances.

    An output is exact if it differs from its bound by no more than its tolerance and rounding.
    """
    if isinstance(form, LinearModel):
        low, high, _ = extreme_outputs(form, region)
        X = np.stack([low, high])
        bounds = form.predict(region.rows(X))
        query = region.complete(region.query[None])
        is_allowed = region.contains(X)
        if not is_allowed.all() and not region.contains(query)[0]:
            raise NoProof("a rule that is not linear excludes the rows that were found")
        X = np.where(is_allowed[:, None], X, query)
        return X, bounds, TUNING.same_cost * (1.0 + np.abs(bounds))
    extremes = []
    for side in (-1, 1):
        if isinstance(form, ReluNetwork):
            extremes.append(find_network_extreme(form, region, side, Work(PROOF_WORK)))
        else:
            problem = BoxProblem(prover.table(region, form), region, ())
            extremes.append(find_extreme(problem, side, Work(PROOF_WORK)))
    link = "expit" if form.link == "softmax" else form.link
    bounds = apply_link(link, np.array([[each.bound] for each in extremes]))
    share = NETWORKS.same_cost if isinstance(form, ReluNetwork) else TUNING.same_cost
    return np.array([each.row for each in extremes]), bounds, share * (1.0 + np.abs(bounds))


def certificate(model: Any, answer: Explanation) -> dict[str, Any]:
    """Return a certificate of the proof of an answer, as plain JSON types.

    It lists boxes that cover all allowed rows, each with the reason why it holds no nearer answer.
    :func:`check_certificate` checks it with code of its own, without any search.

    Parameters
    ----------
    model : object
        The model of the answer, a tree ensemble or linear model that can be read.
    answer : Explanation
        An answer whose `proof` is ``"optimal"``, ``"optimal before rounding"`` or ``"out of
        reach"``.

    Raises
    ------
    ModelError
        If the model can't be read.
    SettingsError
        If the answer is not proven, or a rule or the size of the proof prevents a certificate.
    """
    check(isinstance(answer, Explanation), "answer", "an Explanation", answer)
    if answer.proof not in ("optimal", OPTIMAL_BEFORE_ROUNDING, "out of reach"):
        raise SettingsError(
            f"`answer` must be proven optimal or out of reach; got {answer.proof!r}. "
            "Ask with a larger `prove`."
        )
    checked = as_model(model, answer.space.schema)
    region = around(answer.space, answer.query_rows)
    form, rounding, prover = _read(checked, region)
    if isinstance(form, ReluNetwork):
        raise SettingsError(
            "certificates are made for tree ensembles and linear models; the model is a network."
        )
    accepted = raw_intervals(form, answer.accepted, rounding)
    is_linear = isinstance(form, LinearModel)
    row, limit = _proven_row(answer, region, SAME_COST if is_linear else TUNING.same_cost)
    try:
        if isinstance(form, LinearModel):
            work = Work(CERTIFICATE_WORK)
            return make_linear_certificate(
                form, region, accepted, limit=limit, work=work, answer=row
            )
        return make_certificate(
            prover.table(region, form), region, accepted, limit=limit, answer=row
        )
    except NoProof as error:
        raise SettingsError(f"there is no certificate: {error}.") from None


def _proven_row(
    answer: Explanation, region: Region, same_cost: float
) -> tuple[Array | None, float]:
    """Return the codes ``(d,)`` of the answer, if any, and the cost that no other undercuts."""
    if answer.proof == "out of reach":
        return None, np.inf
    row = region.encode(answer.rows)[0]
    cost = float(region.cost(row[None])[0])
    if answer.proof == OPTIMAL_BEFORE_ROUNDING and answer.bound is not None:
        cost = min(cost, answer.bound)
    return row, cost * (1.0 - same_cost)


def check_certificate(certificate: Mapping[str, Any], model: Any) -> CertificateCheck:
    """Check a certificate against a model; raise a `CertificateError` if anything is wrong.

    The check has no search and shares no code with it: it walks the trees for every box,
    or adds up the gains of a linear model's features.

    Parameters
    ----------
    certificate : dict
        What :func:`certificate` returned, also after a round trip through JSON.
    model : object
        The model.

    Returns
    -------
    CertificateCheck
        What was proven, in words, and the number of boxes.
    """
    is_plain = isinstance(certificate, Mapping)
    check(is_plain, "certificate", "what cfx.certificate returned", certificate, CertificateError)
    return check_boxes(certificate, as_model(model))
