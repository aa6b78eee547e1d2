from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor

import bayescfx as cfx
from bayescfx.data.values import from_plain
from bayescfx.models.model import as_model
from bayescfx.models.readers import TreeEnsemble, read_model
from bayescfx.potentials import Intervals
from bayescfx.search.exact import certificate_check, certificate_space
from bayescfx.search.exact.branching import Branching, Work, find_nearest
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.certificate_check import check_certificate, checksum
from bayescfx.search.exact.certificate_space import CertificateError
from bayescfx.search.exact.certificates import make_certificate
from bayescfx.search.exact.leaves import make_leaf_table
from bayescfx.search.exact.problem import BoxProblem
from tests.search.exact.certificate_problems import (
    SLACK,
    SmallProblem,
    fit_model,
    is_within,
    make_problem,
    small_data,
)

SAME_COST = 1e-9
SEEDS = range(7)


@cache
def certified(seed: int) -> tuple[SmallProblem, dict[str, Any]]:
    problem = make_problem(seed)
    certificate = make_certificate(
        problem.table,
        problem.region,
        problem.accepted,
        SLACK,
        problem.best * (1.0 - SAME_COST),
        answer=problem.answer,
    )
    return problem, json.loads(json.dumps(certificate))


def sealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "checksum": checksum(certificate)}


@pytest.mark.parametrize("seed", SEEDS)
def test_proof_of_brute_force_optimum_passes(seed: int) -> None:
    problem, certificate = certified(seed)
    check = check_certificate(certificate, problem.model)
    assert check.n_boxes == sum(isinstance(each, str) for each in certificate["boxes"])
    assert check.limit == problem.best * (1.0 - SAME_COST)
    assert ("below" in check.statement) == np.isfinite(problem.best)


@pytest.mark.parametrize("seed", SEEDS)
def test_limit_above_the_optimum_has_no_certificate(seed: int) -> None:
    problem, certificate = certified(seed)
    if not 0.0 < problem.best < np.inf:
        return
    with pytest.raises(NoProof):
        make_certificate(
            problem.table, problem.region, problem.accepted, SLACK, problem.best * 1.001
        )
    raised = {**certificate, "limit": problem.best * 1.001, "answer": None}
    with pytest.raises(CertificateError, match="box"):
        check_certificate(sealed(raised), problem.model)


def alter(certificate: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a certificate with one random alteration of its claim or its boxes."""
    altered = copy.deepcopy(certificate)
    boxes = altered["boxes"]
    at = int(rng.integers(len(boxes)))
    choice = rng.choice(["remove", "double", "reason", "code", "feature", "limit", "accepted"])
    if choice == "remove":
        del boxes[at]
    elif choice == "double":
        boxes.insert(at, boxes[at])
    elif choice == "reason" or isinstance(boxes[at], str):
        reasons = [i for i, each in enumerate(boxes) if isinstance(each, str)]
        at = int(rng.choice(reasons))
        others = {"cost", "score", "rule", "changes"} - {boxes[at]}
        boxes[at] = str(rng.choice(sorted(others)))
    elif choice == "code":
        codes = [each[1] for each in boxes if isinstance(each, list)]
        boxes[at][1] = float(rng.choice([c for c in codes if c != boxes[at][1]] or [99.0]))
    elif choice == "feature":
        boxes[at][0] = int((boxes[at][0] + rng.integers(1, 5)) % 5)
    elif choice == "limit" and altered["limit"] is not None:
        altered["limit"] *= float(rng.uniform(1.0, 1.5))
    else:
        low, high = (from_plain(end) for end in altered["accepted"][0])
        width = float(rng.uniform(-1.0, 1.0))
        altered["accepted"][0] = [low - width, high] if np.isfinite(low) else [low, high + width]
        if np.isinf(high):
            altered["accepted"][0][1] = certificate["accepted"][0][1]
        if np.isinf(low):
            altered["accepted"][0][0] = certificate["accepted"][0][0]
    return altered


@pytest.mark.parametrize("seed", SEEDS)
def test_alterations_fail(seed: int) -> None:
    problem, certificate = certified(seed)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        altered = alter(certificate, rng)
        if altered == certificate:
            continue
        with pytest.raises(CertificateError, match="checksum"):
            check_certificate(altered, problem.model)


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each model only once, since reading takes most of the time of a check."""
    readings: dict[int, Any] = {}

    def read(model: Any, rows: Any) -> Any:
        if id(model) not in readings:
            readings[id(model)] = read_model(model, rows)
        return readings[id(model)]

    monkeypatch.setattr(certificate_check, "read_model", read)


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize(
    "seed", [*SEEDS[:3], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[3:])]
)
def test_no_alteration_with_a_new_checksum_proves_anything_false(seed: int) -> None:
    problem, certificate = certified(seed)
    rng = np.random.default_rng(seed)
    n_failed = 0
    for _ in range(12):
        altered = alter(certificate, rng)
        try:
            check = check_certificate(sealed(altered), problem.model)
        except CertificateError:
            n_failed += 1
            continue
        accepted = certificate_space.read_question(altered).accepted
        is_hit = is_within(problem.scores, tuple(accepted))
        assert (problem.region.cost(problem.rows)[is_hit] >= check.limit).all()
    assert n_failed


@pytest.mark.usefixtures("read_once")
def test_alterations_of_boxes_fail_with_a_new_checksum() -> None:
    problem, certificate = certified(4)
    boxes = certificate["boxes"]
    reasons = [i for i, each in enumerate(boxes) if isinstance(each, str)]
    for at in reasons[:20]:
        for reason in {"cost", "score", "rule", "changes", "nothing"} - {boxes[at]}:
            wrong = {**certificate, "boxes": [*boxes[:at], reason, *boxes[at + 1 :]]}
            with pytest.raises(CertificateError, match=f"box {reasons.index(at) + 1} is not"):
                check_certificate(sealed(wrong), problem.model)
        removed = {**certificate, "boxes": [*boxes[:at], *boxes[at + 1 :]]}
        with pytest.raises(CertificateError):
            check_certificate(sealed(removed), problem.model)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_refitted_model_fails(kind: int) -> None:
    problem, certificate = certified(kind)
    data, y = small_data(kind)
    if kind == 2:
        data["g"] = data.g.astype("category")
    same = as_model(fit_model(kind, data, y), problem.region.schema)
    check_certificate(certificate, same)
    other = as_model(fit_model(kind, data, y, seed=1), problem.region.schema)
    with pytest.raises(CertificateError, match="another model"):
        check_certificate(certificate, other)


def test_altered_scaler_of_a_pipeline_fails() -> None:
    problem, certificate = certified(0)
    data, y = small_data(0)
    altered = fit_model(0, data, y)
    altered[0].named_transformers_["standardscaler"].scale_[0] *= 1.01
    with pytest.raises(CertificateError, match="another model"):
        check_certificate(certificate, as_model(altered, problem.region.schema))


def test_wrong_answer_fails() -> None:
    problem, certificate = next(
        pair for pair in map(certified, SEEDS) if 0.0 < pair[0].best < np.inf
    )
    query = [float(code) for code in problem.region.query]
    with pytest.raises(CertificateError, match="does not reach"):
        check_certificate(sealed({**certificate, "answer": query}), problem.model)


def test_wrong_answer_has_no_certificate() -> None:
    problem = next(p for p in map(make_problem, SEEDS) if 0.0 < p.best < np.inf)
    question = (problem.table, problem.region, problem.accepted, SLACK, problem.best)
    with pytest.raises(NoProof, match="does not reach"):
        make_certificate(*question, answer=problem.region.query)


def test_other_format_and_missing_parts_fail() -> None:
    problem, certificate = certified(0)
    with pytest.raises(CertificateError, match="format"):
        check_certificate({**certificate, "format": 0}, problem.model)
    without = {key: value for key, value in certificate.items() if key != "features"}
    with pytest.raises(CertificateError, match="can't be read"):
        check_certificate(sealed(without), problem.model)


def test_function_as_model_fails() -> None:
    _, certificate = certified(0)
    with pytest.raises(CertificateError, match="no tree ensemble or linear model"):
        check_certificate(certificate, as_model(lambda rows: np.zeros(len(rows))))


def test_work_limit_ends_the_making() -> None:
    problem, _ = certified(0)
    with pytest.raises(NoProof, match="work"):
        make_certificate(
            problem.table, problem.region, problem.accepted, SLACK, problem.best, Work(most=1.0)
        )


def find_best(model: Any, problem: BoxProblem, accepted: Intervals) -> float:
    """Return the cost of the nearest row by the exact search."""
    search = find_nearest(Branching(problem))
    best = np.inf
    try:
        X = next(search)
        while True:
            is_hit = is_within(model.scores(problem.region.rows(X)), accepted)
            best = min(best, problem.region.cost(X[is_hit]).min(initial=np.inf))
            X = search.send(is_hit)
    except StopIteration:
        return float(best)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_continuous_features(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd")).astype(dtype)
    y = data.a * data.b + data.c
    fitted = RandomForestRegressor(n_estimators=10, max_depth=5, random_state=0).fit(data, y)
    space = cfx.Space.from_data(data).require("a + b <= 2.5")
    model = as_model(fitted, space.schema)
    form = read_model(model, data.iloc[:60]).form
    assert isinstance(form, TreeEnsemble)
    for i in range(3):
        region = space.around(data.iloc[[i]])
        table = make_leaf_table(form, region)
        accepted = ((model.scores(data.iloc[[i]])[0] + 0.7, np.inf),)
        best = find_best(model, BoxProblem(table, region, accepted, SLACK), accepted)
        assert np.isfinite(best)
        certificate = make_certificate(table, region, accepted, SLACK, best * (1 - SAME_COST))
        certificate = json.loads(json.dumps(certificate))
        assert check_certificate(certificate, model).limit < best
        certificate["limit"] = best * 1.001
        with pytest.raises(CertificateError, match="box"):
            check_certificate(sealed(certificate), model)


def test_several_classes_in_an_array() -> None:
    X, y = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    fitted = GradientBoostingClassifier(n_estimators=6, random_state=0).fit(X, y)
    space = cfx.Space.from_data(X)
    model = cfx.probability(fitted, 2)
    form = read_model(model, X[:60]).form
    assert isinstance(form, TreeEnsemble)
    i = int(np.argmin(np.abs(model.scores(X) - 0.2)))
    region = space.around(X[i])
    table = make_leaf_table(form, region)
    goal = 0.5
    accepted = ((float(np.log(goal / (1 - goal))), np.inf),)
    best = find_best(model, BoxProblem(table, region, accepted, SLACK), ((goal, 1.0),))
    assert np.isfinite(best)
    certificate = make_certificate(table, region, accepted, SLACK, best * (1 - SAME_COST))
    assert check_certificate(json.loads(json.dumps(certificate)), model).limit < best
