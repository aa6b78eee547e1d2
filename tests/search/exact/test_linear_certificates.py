"""Certificates of linear models, against enumeration and altered in many ways."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import bayescfx as cfx
from bayescfx.data.values import from_plain
from bayescfx.models.model import as_model
from bayescfx.models.readers import read_model
from bayescfx.search.exact import certificate_check, certificate_space
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.certificate_check import check_certificate, checksum
from bayescfx.search.exact.certificate_space import CertificateError
from bayescfx.search.exact.linear_certificates import SAME_COST, make_linear_certificate
from tests.search.exact.certificate_problems import is_within, small_data
from tests.search.exact.linear_problems import LinearProblem, fit_linear, make_linear_problem

OTHER_NORM = 10  # the seed of a problem whose distance has norm 2
SEEDS = [seed for seed in range(13) if seed != OTHER_NORM]


@cache
def certified(seed: int) -> tuple[LinearProblem, dict[str, Any]]:
    problem = make_linear_problem(seed)
    certificate = make_linear_certificate(
        problem.form,
        problem.region,
        problem.accepted_sums,
        limit=problem.best * (1.0 - SAME_COST),
        work=Work(1e8),
        answer=problem.answer,
    )
    return problem, json.loads(json.dumps(certificate))


def sealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "checksum": checksum(certificate)}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each model only once, since reading takes most of the time of a check."""
    readings: dict[int, Any] = {}

    def read(model: Any, rows: Any) -> Any:
        if id(model) not in readings:
            readings[id(model)] = (read_model(model, rows), model)
        return readings[id(model)][0]

    monkeypatch.setattr(certificate_check, "read_model", read)


@pytest.mark.parametrize("seed", SEEDS)
def test_proof_of_brute_force_optimum_passes(seed: int) -> None:
    problem, certificate = certified(seed)
    check = check_certificate(certificate, problem.model)
    assert check.n_boxes == sum(not isinstance(each, list) for each in certificate["boxes"])
    assert check.limit == problem.best * (1.0 - SAME_COST)
    assert ("below" in check.statement) == np.isfinite(problem.best)


@pytest.mark.parametrize("seed", SEEDS)
def test_limit_above_the_optimum_has_no_certificate(seed: int) -> None:
    problem, certificate = certified(seed)
    if not 0.0 < problem.best < np.inf:
        return
    with pytest.raises(NoProof):
        make_linear_certificate(
            problem.form,
            problem.region,
            problem.accepted_sums,
            limit=problem.best * 1.0001,
            work=Work(2e7),
        )
    raised = {**certificate, "limit": problem.best * 1.0001, "answer": None}
    with pytest.raises(CertificateError, match="box"):
        check_certificate(sealed(raised), problem.model)


def alter(certificate: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a certificate with one random alteration of its claim or its boxes."""
    altered = copy.deepcopy(certificate)
    boxes = altered["boxes"]
    at = int(rng.integers(len(boxes)))
    choices = ["remove", "double", "box", "box", "box", "limit", "accepted", "changes"]
    choice = rng.choice(choices)
    if choice == "remove":
        del boxes[at]
    elif choice == "double":
        boxes.insert(at, boxes[at])
    elif choice == "box" and isinstance(boxes[at], dict):
        key = str(rng.choice([key for key, value in boxes[at].items() if value != []]))
        value = boxes[at][key]
        factor = float(rng.choice([-1.0, 0.0, 0.5, 1.5, 3.0]))
        is_list = isinstance(value, list)
        boxes[at][key] = [each * factor for each in value] if is_list else value * factor
    elif choice == "box" and isinstance(boxes[at], str):
        boxes[at] = str(rng.choice(sorted({"cost", "score", "rule", "changes"} - {boxes[at]})))
    elif choice == "box":
        boxes[at] = [boxes[at][0], float(rng.choice([0.0, 1.0, 2.0, 0.3]))]
    elif choice == "limit" and altered["limit"] is not None:
        altered["limit"] *= float(rng.uniform(1.0, 1.5))
    elif choice == "changes" and altered["max_changes"] is not None:
        altered["max_changes"] += int(rng.choice([-1, 1]))
    else:
        low, high = (from_plain(end) for end in altered["accepted"][0])
        width = float(rng.uniform(-1.0, 1.0))
        plain = certificate["accepted"][0]
        altered["accepted"][0] = [
            low - width if np.isfinite(low) else plain[0],
            high + width if np.isfinite(high) else plain[1],
        ]
    return altered


@pytest.mark.parametrize("seed", SEEDS)
def test_no_alteration_with_a_new_checksum_proves_anything_false(seed: int) -> None:
    problem, certificate = certified(seed)
    rng = np.random.default_rng(seed)
    n_failed = 0
    sums = np.empty(0)
    if len(problem.rows):
        sums = problem.form.raw(problem.region.rows(problem.rows))[:, 0]
    costs = problem.region.cost(problem.rows)
    n_changes = problem.region.changes(problem.rows).sum(axis=1)
    for _ in range(12):
        altered = alter(certificate, rng)
        if altered != certificate:
            with pytest.raises(CertificateError, match="checksum"):
                check_certificate(altered, problem.model)
        try:
            check = check_certificate(sealed(altered), problem.model)
        except CertificateError:
            n_failed += 1
            continue
        accepted = certificate_space.read_question(altered).accepted
        is_hit = is_within(sums, tuple(accepted))
        if altered["max_changes"] is not None:
            is_hit &= n_changes <= altered["max_changes"]
        assert (costs[is_hit] >= check.limit).all()
    assert n_failed


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_refitted_or_altered_model_fails(kind: int) -> None:
    problem, certificate = certified(kind)
    data, y = small_data(kind)

    def as_same(estimator: Any) -> Any:
        model = cfx.probability(estimator, True) if kind == 1 else estimator
        return as_model(model, problem.region.schema)

    check_certificate(certificate, as_same(fit_linear(kind, data, y)))
    with pytest.raises(CertificateError, match="another model"):
        check_certificate(certificate, as_same(fit_linear(kind, data, y, alpha=0.2)))
    altered = fit_linear(kind, data, y)
    altered[0].named_transformers_["standardscaler"].scale_[0] *= 1.01
    with pytest.raises(CertificateError, match="another model"):
        check_certificate(certificate, as_same(altered))
    shifted = fit_linear(kind, data, y)
    shifted[-1].intercept_ += 0.001
    with pytest.raises(CertificateError, match="another model"):
        check_certificate(certificate, as_same(shifted))


def test_wrong_answer_fails() -> None:
    pairs = map(certified, SEEDS)
    problem, certificate = next(pair for pair in pairs if 0.0 < pair[0].best < np.inf)
    query = [float(code) for code in problem.region.query]
    with pytest.raises(CertificateError, match="does not reach"):
        check_certificate(sealed({**certificate, "answer": query}), problem.model)


def test_other_norms_have_no_certificate() -> None:
    problem = make_linear_problem(OTHER_NORM)
    assert problem.region.price.norm == 2.0
    with pytest.raises(NoProof, match=r"for norms 0 and 1; the distance of this space has norm 2$"):
        make_linear_certificate(problem.form, problem.region, problem.accepted_sums)
    problem, certificate = certified(0)
    altered = {**certificate, "cost": {**certificate["cost"], "norm": 1.5}}
    with pytest.raises(CertificateError, match=r"distance of this space has norm 1\.5\.$"):
        check_certificate(sealed(altered), problem.model)


def test_work_limit_ends_the_making() -> None:
    problem, _ = certified(0)
    with pytest.raises(NoProof, match="work"):
        make_linear_certificate(
            problem.form, problem.region, problem.accepted_sums, limit=1e9, work=Work(most=0.0)
        )


# ── continuous features, end to end ──


def mixed_table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    n = 120
    data = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    data["n"] = rng.integers(0, 12, n)
    return data, data.to_numpy() @ np.array([2.0, -1.0, 0.7, 0.3, 1.5, -0.4, 0.5])


@pytest.mark.parametrize("norm", [0, 1])
@pytest.mark.parametrize("rule", ["none", "changes", "linear", "together"])
def test_answers_about_continuous_features_have_certificates(norm: int, rule: str) -> None:
    data, y = mixed_table()
    model = LinearRegression().fit(data, y)
    space = cfx.Space.from_data(data).cost(norm=norm)
    if rule == "changes":
        space = space.max_changes(2)
    if rule == "linear":
        space = space.require("a + e <= 1.5")
    if rule == "together":
        space = space.together("a", "b")
    for i, by in ((0, 1.0), (1, 4.0)):
        answer = cfx.explain(model, data.iloc[i], space, cfx.increase(by=by), rng=0, prove=20)
        assert answer.proof in ("optimal", "optimal before rounding"), answer.proof_reason
        certificate = json.loads(json.dumps(cfx.certificate(model, answer)))
        check = cfx.check_certificate(certificate, model)
        assert check.limit == pytest.approx(answer.bound, rel=1e-5)
        assert check.cost == pytest.approx(answer.best.cost, rel=1e-12)
        # With "together", a change too small to notice is replaced, which costs more.
        assert answer.best.cost <= 1.0101 * check.limit or rule == "together"
        certificate["limit"] *= 1.0001
        certificate["answer"] = None
        with pytest.raises(CertificateError, match="box"):
            cfx.check_certificate(sealed(certificate), model)


def test_out_of_reach_has_a_certificate() -> None:
    data, y = mixed_table()
    model = LinearRegression().fit(data, y)
    space = cfx.Space.from_data(data).max_changes(2).require("a + e <= 1.5")
    top = cfx.reachable(model, data.iloc[0], space).highest
    answer = cfx.explain(model, data.iloc[0], space, cfx.at_least(top + 0.01), rng=0)
    assert answer.proof == "out of reach"
    certificate = json.loads(json.dumps(cfx.certificate(model, answer)))
    check = cfx.check_certificate(certificate, model)
    assert check.statement.startswith("No allowed row reaches the target")
    certificate["accepted"] = [[top - 0.01, certificate["accepted"][0][1]]]
    with pytest.raises(CertificateError, match="box"):
        cfx.check_certificate(sealed(certificate), model)


def test_answers_with_other_norms_have_no_certificate() -> None:
    data, y = mixed_table()
    model = LinearRegression().fit(data, y)
    space = cfx.Space.from_data(data).cost(norm=2)
    answer = cfx.explain(model, data.iloc[0], space, cfx.increase(by=1.0), rng=0, prove=20)
    assert answer.proof == "optimal"
    message = (
        "there is no certificate: certificates of linear models are made for norms 0 and 1; "
        "the distance of this space has norm 2."
    )
    with pytest.raises(cfx.SettingsError, match=f"^{message}$"):
        cfx.certificate(model, answer)


def test_networks_have_no_certificate() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    network = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", max_iter=300, random_state=0)
    network.fit(data, data.a)
    space = cfx.Space.from_data(data).steps({"a": 0.1, "b": 0.1})
    answer = cfx.explain(network, data.iloc[0], space, cfx.increase(by=0.5), rng=0)
    with pytest.raises(cfx.SettingsError, match="the model is a network"):
        cfx.certificate(network, answer)
