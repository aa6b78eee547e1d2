"""A model that fails: an error that carries the best so far, or rows that are skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.search.methods import METHODS
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


@pytest.mark.parametrize("method", METHODS)
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
    # and it is of use: nothing is asked again
    model = Recorder(plane)
    before = known.to_frame()[list("abc")]
    cfx.explain(model, ZERO, cube(), 1.5, budget=len(known) + 6, rng=0, evaluations=known)
    assert not pd.concat([before, model.rows]).duplicated().any()


@pytest.mark.parametrize("method", METHODS)
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


@pytest.mark.parametrize("method", METHODS)
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
    assert answer.n_evaluations == 36
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
    with pytest.raises(cfx.ModelError, match="an output for the query at position 1; it fails"):
        cfx.explain_many(
            lambda X: np.where(np.asarray(X)[:, 0] == 0.5, np.nan, 0.0),
            second,
            cfx.Space.from_data(cloud()),
            1,
            on_fault="skip",
        )
