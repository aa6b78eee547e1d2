"""Evaluations of another model are never reused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import bayescfx as cfx
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import other_model_error
from bayescfx.models.identity import ModelIdentity
from tests.conftest import Recorder

X = pd.DataFrame({"a": np.linspace(0, 1, 40), "b": np.linspace(1, 0, 40) ** 2})
SPACE = cfx.Space.from_data(X)
QUERY = X.iloc[0]


def old(rows: Any) -> Any:
    return 100.0 * rows["a"].to_numpy() + rows["b"].to_numpy()


def new(rows: Any) -> Any:
    return old(rows) + 40.0


def ask(model: Any, known: Evaluations, budget: int = 20, **more: Any) -> cfx.Explanation:
    return cfx.explain(
        model, QUERY, SPACE, cfx.increase(by=30), budget=budget, rng=0, evaluations=known, **more
    )


def test_a_file_of_an_earlier_model_is_refused_and_can_be_cleared(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "known.db") as known:
        ask(old, known)
    with Evaluations.open(tmp_path / "known.db") as known:
        model, before = Recorder(new), known.to_frame()
        with pytest.raises(cfx.EvaluationsError, match=r"it gives 41\.0 where they have 1\.0, for"):
            ask(model, known)
        assert len(model.rows) == 6  # three rows twice, to rule out noise
        pd.testing.assert_frame_equal(known.to_frame(), before)
        known.forget()
        answer = ask(new, known)
        assert answer.output == 41.0
        assert answer.verify(new)
    with Evaluations.open(tmp_path / "known.db") as known:
        assert known.outputs.tolist() == new(known.rows).tolist()


def test_a_refitted_model_is_another_model() -> None:
    model = LinearRegression().fit(X, old(X))
    known = Evaluations()
    ask(model, known)
    again = ask(model, known)
    model.fit(X, new(X))
    with pytest.raises(cfx.EvaluationsError, match="If the model has changed, use another store"):
        ask(model, known)
    assert again.output == pytest.approx(1.0)


def test_the_check_counts_in_the_budget_and_is_short_if_little_can_have_changed() -> None:
    model, known = Recorder(old), Evaluations(X.iloc[:10], old(X.iloc[:10]))
    answer = ask(model, known, budget=9)
    assert len(model.rows) == answer.n_evaluations <= 9
    assert model.calls[0]["a"].tolist() == X["a"].iloc[[0, 4, 9]].tolist()
    mixed = len(model.rows)
    ask(model, known, budget=9)  # rows of two sources are checked again
    assert len(model.calls[len(model.calls) - 1]) > 0
    assert len(model.rows) > mixed
    own, fresh = Recorder(old), Evaluations()
    ask(own, fresh)
    ask(own, fresh)
    assert own.rows.duplicated().sum() == 1


def test_the_model_does_not_travel_with_its_outputs() -> None:
    known = Evaluations()
    answer = ask(lambda rows: old(rows), known)
    copy = pickle.loads(pickle.dumps(answer))
    assert copy.evaluations.outputs.tolist() == known.outputs.tolist()


@pytest.mark.parametrize("budget", [1, 2])
def test_a_small_budget_keeps_a_row_for_the_query(budget: int) -> None:
    model = Recorder(old)
    answer = ask(model, Evaluations(X.iloc[5:9], old(X.iloc[5:9])), budget=budget)
    assert len(model.rows) == budget
    assert answer.output == 1.0


def test_a_model_that_is_not_deterministic_causes_a_warning() -> None:
    rng = np.random.default_rng(0)

    def noisy(rows: Any) -> Any:
        return old(rows) + rng.normal(0.0, 1.0, len(rows))

    for budget in (3, 4, 6, 20):
        with pytest.warns(cfx.BayesCFXWarning, match="is not deterministic"):
            ask(noisy, Evaluations(X, noisy(X)), budget=budget)


def test_last_digits_may_differ() -> None:
    rounded = old(X).astype(np.float32).astype(float)
    assert ask(old, Evaluations(X, rounded)).reached


def test_a_model_that_fails_on_known_rows_fails() -> None:
    def broken(rows: Any) -> Any:
        raise RuntimeError("gone")

    known = Evaluations(X, old(X))
    with pytest.raises(RuntimeError, match="gone") as caught:
        ask(broken, known)
    assert caught.value.evaluations is known  # type: ignore[attr-defined]  # attached to any error
    with pytest.raises(cfx.EvaluationsError, match="it gives nan where they have"):
        ask(broken, known, on_fault="skip")
    assert ask(lambda rows: old(rows), known, on_fault="skip").reached


def test_known_rows_are_sent_in_the_usual_form() -> None:
    table = X.assign(
        k=pd.Categorical(["u", "v"] * 20),
        t=pd.date_range("2020-01-01", periods=40),
        i=np.arange(40),
        c=[True, False] * 20,
    )

    def typed(rows: Any) -> Any:
        assert rows.dtypes.tolist() == table.dtypes.tolist()
        return old(rows) + rows["k"].cat.codes + rows["t"].dt.day + np.where(~rows["c"], 5, 0)

    text = table.astype({"k": str, "t": str, "i": float, "c": int})
    answer = cfx.explain(
        typed,
        table.iloc[0],
        cfx.Space.from_data(table),
        cfx.increase(by=30),
        evaluations=Evaluations(text, typed(table)),
        budget=30,
        rng=0,
    )
    assert answer.reached


@pytest.mark.parametrize("offset", [0.0, 1e7, 1.7e9])
@pytest.mark.parametrize("outlier", [False, True])
def test_a_small_difference_on_large_outputs_is_a_difference(offset: float, outlier: bool) -> None:
    y = offset + old(X)
    if outlier:
        y[20] = 1e12
    with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
        ask(lambda rows: old(rows) + offset + 3.0, Evaluations(X, y))


def test_rounding_is_no_difference() -> None:
    known = Evaluations(X.iloc[[0]], [-5.7e-14])
    assert ask(lambda rows: old(rows) - 1.0, known).output == -5.7e-14
    assert ask(old, Evaluations(X, old(X).round(3))).reached


def test_a_refitted_model_inside_a_function_is_detected() -> None:
    model = LinearRegression().fit(X, old(X))

    def f(rows: Any) -> Any:
        return model.predict(rows)

    known = Evaluations()
    ask(f, known)
    model.fit(X, new(X))
    with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
        ask(f, known)


def test_local_models_are_checked_with_more_rows() -> None:
    model = LinearRegression().fit(X, old(X))
    y = model.predict(X)
    y[1::2] += 5.0  # three rows, 0, 19 and 39, might be 0, 18 and 38
    with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
        ask(model, Evaluations(X, y), budget=2000)


def test_clearing_keeps_a_given_name(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "known.db", model="v1") as known:
        known.append(X, old(X))
        known.forget()
        assert len(known) == 0
        assert known.columns is None
        assert known.model == "v1"
        known.append(X[["b"]], old(X))  # other columns may follow
    with Evaluations.open(tmp_path / "known.db", model="v2") as other:
        assert len(other) == 0
    unnamed = Evaluations(X, old(X))
    unnamed.claim(("a", "b"), ModelIdentity("SVR"))
    unnamed.forget()
    unnamed.claim(("c",), ModelIdentity("LinearRegression"))


def test_a_model_that_changes_during_a_search_causes_a_warning() -> None:
    calls = [0]

    def drifting(rows: Any) -> Any:
        calls[0] += 1
        return old(rows) + 0.01 * calls[0]

    message = r"is not deterministic: it returned \S+ and \S+ for the same row, \{'a': "
    with pytest.warns(cfx.BayesCFXWarning, match=message) as caught:
        answer = cfx.explain(drifting, QUERY, SPACE, 2.0, method="sweep", budget=600, rng=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert answer.reached


def test_two_rows_are_scored_again_after_a_search() -> None:
    model = Recorder(old)
    answer = cfx.explain(model, QUERY, SPACE, 2.0, method="sweep", budget=600, rng=0)
    assert model.n == answer.n_evaluations < 600
    again = pd.DataFrame(model.calls[-1])
    assert again.to_numpy().tolist() == [list(answer.best.row), list(QUERY)]
    assert len(answer.evaluations) == model.n - 2  # nothing else changes
    few = Recorder(old)
    cfx.explain(few, QUERY, SPACE, 2.0, method="bayes-cfx", budget=49, rng=0)
    assert not few.rows.duplicated().any()


def test_a_model_that_fails_after_the_search_does_not_lose_the_answer() -> None:
    asked: list[Any] = []

    def gone(rows: Any) -> Any:
        known = any(rows.iloc[0].equals(row) for row in asked)
        asked.extend(rows.iloc[i] for i in range(len(rows)))
        if known:
            raise RuntimeError("gone")
        return old(rows)

    with pytest.warns(cfx.BayesCFXWarning, match="it returned nan and"):
        answer = cfx.explain(gone, QUERY, SPACE, 2.0, method="sweep", budget=600, rng=0)
    assert answer.reached


def test_outputs_of_another_model_are_told_apart() -> None:
    text = str(other_model_error(0.1 + 0.2, 0.3, "{'a': 1.0}"))
    assert "it gives 0.30000000000000004 where they have 0.3, for {'a': 1.0}" in text
