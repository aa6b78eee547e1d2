"""A model that fails: an error that carries the best so far, or rows that are skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.any_model import METHODS_FOR_ANY_MODEL
from tests.conftest import (
    ZERO,
    Recorder,
    cloud,
    cube,
    plane,
)


def faulty(kind: str, after: int) -> Callable[[Any], Any]:
    """Return a model that fails once it has been called some times."""
    calls = [0]

    def model(rows: Any) -> Any:
        calls[0] += 1
        y = plane(rows)
        if calls[0] <= after:
            return y
        if kind == "shape":
            return np.stack([y, y], axis=1)
        if kind == "error":
            raise RuntimeError("boom")
        y[-1] = {"nan": np.nan, "inf": np.inf}[kind]
        return y

    return model


FAULTS = {
    "shape": (cfx.ModelError, r"`model` returned shape \(\d+, 2\) for \d+ rows?; expected \(\d+,"),
    "nan": (cfx.ModelError, r"`model` returned nan for \{'a': .*\}\. Exclude that region with"),
    "inf": (cfx.ModelError, r"`model` returned inf for \{'a': .*\}\. Exclude that region with"),
    "error": (RuntimeError, "boom"),
}


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_the_model_is_an_error_that_carries_what_is_known(
    method: str, kind: str
) -> None:
    error, message = FAULTS[kind]
    with pytest.raises(error, match=message) as caught:
        cfx.explain(faulty(kind, 2), ZERO, cube(), 40.0, method=method, budget=90, rng=0)
    known = caught.value.evaluations  # type: ignore[attr-defined]  # attached to any error
    assert isinstance(known, cfx.Evaluations)
    assert len(known) >= 2
    assert known.outputs.tolist() == plane(known.rows).tolist()
    if kind == "error":
        (note,) = caught.value.__notes__
        assert note.startswith("while evaluating ")
        assert "{'a': " in note
    if method != "random":
        return
    # and it is of use: nothing is asked again, but for a few rows first, to see whose they are, and
    # last, to see whether the model is deterministic
    model = Recorder(plane)
    before = known.to_frame()[list("abc")]
    how: dict[str, Any] = {"method": "sweep", "budget": len(known) + 6, "evaluations": known}
    cfx.explain(model, ZERO, cube(), 1.5, rng=0, **how)
    assert not pd.concat([before, *model.calls[1:-1]]).duplicated().any()


def best_so_far(error: BaseException) -> cfx.Explanations:
    found = error.explanations  # type: ignore[attr-defined]  # attached to the model's error
    assert isinstance(found, cfx.Explanations)
    return found


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_during_the_search_carries_the_best_so_far(method: str, kind: str) -> None:
    model = Recorder(faulty(kind, 2))
    with pytest.raises(FAULTS[kind][0]) as caught:
        cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=90, rng=0)
    (answer,) = best_so_far(caught.value)
    assert answer.stopped == "fault"
    assert answer.status == "best_guess"
    assert answer.n_evaluations == model.n
    assert len(answer.trace) == len(answer.evaluations)
    assert answer.best.output == answer.evaluations.outputs.max()
    assert answer.probability_reachable is None
    assert answer.verify(plane)
    assert "this best guess misses it by" in answer.verdict
    assert "the model failed" in answer.verdict
    again = cfx.Explanation.from_json(answer.to_json())
    assert repr(again) == repr(answer)


def test_a_target_reached_before_the_fault_is_reached() -> None:
    with pytest.raises(RuntimeError) as caught:
        cfx.explain(faulty("error", 4), ZERO, cube(), cfx.at_least(0.51), budget=90, rng=0)
    (answer,) = best_so_far(caught.value)
    assert answer.reached
    assert answer.verdict == "Target reached. The search stopped because the model failed."


def test_a_fault_at_the_query_carries_no_answer() -> None:
    with pytest.raises(RuntimeError) as caught:
        cfx.explain(faulty("error", 0), ZERO, cube(), 1.0, budget=9, rng=0)
    assert not hasattr(caught.value, "explanations")
    assert len(caught.value.evaluations) == 0  # type: ignore[attr-defined]  # attached


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fault_among_many_questions_carries_an_answer_to_each(
    n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 2)
    queries = cloud()[cloud()[:, 2] > 0.3][:6]
    last = queries[2:4, 2]  # the second block fails

    def model(rows: Any) -> Any:
        mine = np.isin(np.asarray(rows)[:, 2], last) & (np.asarray(rows)[:, 0] > 0.9)
        return np.where(mine, np.nan, plane(rows))

    space = cfx.Space.from_data(cloud()).fix("x2")
    with pytest.raises(cfx.ModelError, match="returned nan") as caught:
        cfx.explain_many(
            model, queries, space, 40.0, method="random", budget=60, rng=0, n_jobs=n_jobs
        )
    many = best_so_far(caught.value)
    # in this process no block begins after the fault; workers end those that were begun
    count = 4 if n_jobs == 1 else 6
    assert many.index.tolist() == list(range(count))
    assert [answer.query.tolist() for answer in many] == queries[:count].tolist()
    assert [answer.stopped for answer in many[:2]] == ["budget"] * 2
    assert [answer.stopped for answer in many[2:4]] == ["fault"] * 2
    assert {answer.stopped for answer in many[4:]} <= {"budget"}
    known = caught.value.evaluations  # type: ignore[attr-defined]  # attached to any error
    assert all(answer.evaluations is known for answer in many)
    assert all(answer.verify(plane) for answer in many)


def test_an_error_of_another_function_is_no_fault_of_the_model() -> None:
    calls = [0]

    def rule(rows: Any) -> Any:
        calls[0] += 1
        if calls[0] > 6:
            raise ZeroDivisionError("oh")
        return np.ones(len(rows), dtype=bool)

    with pytest.raises(cfx.SpaceError, match="raised ZeroDivisionError: oh") as caught:
        cfx.explain(plane, ZERO, cube().require(rule), 40.0, budget=90, rng=0)
    assert not hasattr(caught.value, "explanations")
    assert isinstance(caught.value.evaluations, cfx.Evaluations)  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
@pytest.mark.parametrize("kind", ["nan", "inf", "error"])
def test_faults_can_be_skipped(method: str, kind: str) -> None:
    def model(rows: Any) -> Any:
        y, bad = plane(rows), np.asarray(rows)[:, 1] > 0.6
        if kind == "error" and bad.any():
            raise RuntimeError("boom")
        return np.where(bad, float("nan" if kind == "error" else kind), y)

    counter = Recorder(model)
    answer = cfx.explain(
        counter,
        ZERO,
        cube(),
        cfx.increase(by=1),
        method=method,
        budget=20,
        rng=0,
        on_fault="skip",
    )
    assert counter.n == answer.n_evaluations <= 20
    assert all(c.row["b"] <= 0.6 for c in answer.counterfactuals)
    assert np.isfinite(answer.reachable).all()
    assert answer.verify(plane)


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
@pytest.mark.parametrize("rule", [None, "a >= 0.5"], ids=["free", "ruled"])
def test_a_model_that_fails_everywhere_else_ends_at_the_budget(
    method: str, rule: str | None
) -> None:
    def model(rows: Any) -> Any:
        return np.where((np.asarray(rows) == 0.25).all(axis=1), plane(rows), np.nan)

    counter = Recorder(model)
    space = cube() if rule is None else cube().require(rule)
    answer = cfx.explain(
        counter, ZERO, space, 2.0, method=method, budget=20, rng=0, on_fault="skip"
    )
    assert counter.n == answer.n_evaluations <= 20
    assert answer.status == "best_guess"
    assert answer.best.changes == {}
    assert answer.probability_reachable is None


@pytest.mark.parametrize("method", ["bayes-cfx", "bayes", "random", "lbfgsb"])
def test_a_finite_region_of_faults_is_exhausted(method: str) -> None:
    space = cfx.Space({"a": cfx.Integer(0, 5), "b": cfx.Integer(0, 5)})
    answer = cfx.explain(
        lambda r: np.where(r["a"] > 2, np.nan, r["a"]),
        {"a": 0, "b": 0},
        space,
        5,
        method=method,
        budget=500,
        rng=0,
        on_fault="skip",
    )
    assert answer.stopped == "exhausted"
    assert answer.n_evaluations == 36 + 2  # and two of them once more
    assert answer.best.output == 2.0


def test_a_query_without_an_output_is_an_error_even_if_faults_are_skipped() -> None:
    message = (
        r"`model` must have an output for the query; it fails for \{'a': 0.25, 'b': 0.25, "
        r"'c': 0.25\}\. Correct the query or the model\."
    )
    with pytest.raises(cfx.ModelError, match=message) as caught:
        cfx.explain(lambda X: np.full(len(X), np.nan), ZERO, cube(), 1, on_fault="skip")
    assert len(caught.value.evaluations) == 1  # type: ignore[attr-defined]  # attached
    assert "returned nan" in caught.value.__notes__[0]
    second = np.array([[0.25, 0.25, 0.25], [0.5, 0.5, 0.5]])
    table = pd.DataFrame(np.vstack([np.full(3, 0.25), np.full(3, 0.5)]), index=["P3", "P7"])
    with pytest.raises(cfx.ModelError, match="an output for the query 'P7'; it fails"):
        cfx.explain_many(
            lambda X: np.where(np.asarray(X)[:, 0] == 0.5, np.nan, 0.0),
            table.set_axis(list("abc"), axis=1),
            cube(),
            1,
            on_fault="skip",
        )
    with pytest.raises(cfx.ModelError, match="an output for the query at position 1; it fails"):
        cfx.explain_many(
            lambda X: np.where(np.asarray(X)[:, 0] == 0.5, np.nan, 0.0),
            second,
            cfx.Space.from_data(cloud()),
            1,
            on_fault="skip",
        )


@pytest.mark.parametrize("huge", [np.inf, -np.inf])
def test_a_known_output_that_is_infinite_is_a_fault(huge: float) -> None:
    rows = pd.DataFrame([ZERO, {**ZERO, "a": 0.5}])
    known = cfx.Evaluations(rows, [0.5, huge])
    for on_fault in ("skip", "raise"):
        answer = cfx.explain(
            plane, ZERO, cube(), np.copysign(1.0, huge), budget=8, rng=0,
            evaluations=known, on_fault=on_fault, method="random",
        )  # fmt: skip
        assert np.isfinite([answer.best.output, *answer.reachable]).all()
