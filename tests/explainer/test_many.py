"""Many questions that share every model call."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression

import bayescfx as cfx
from bayescfx.explainer import explainer
from tests.any_model import METHODS_FOR_ANY_MODEL
from tests.conftest import (
    LEVELS,
    ZERO,
    Recorder,
    cloud,
    codes,
    cube,
    plane,
    stubborn,
)

SHARES: tuple[Literal["block", "none"], ...] = ("block", "none")


def test_many_questions_share_every_round() -> None:
    model = Recorder(plane)
    many = cfx.explain_many(model, cloud()[:5], cfx.Space.from_data(cloud()), 1.4, budget=15, rng=0)
    assert [answer.reached for answer in many] == [True] * 5
    assert model.sizes[0] == 5  # every f(query) in one call
    assert model.n == sum(answer.n_evaluations for answer in many)
    assert len(model.sizes) <= 15
    assert not model.rows.duplicated().any()
    assert all(answer.evaluations is many[0].evaluations for answer in many)


def test_an_answer_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescfx.evaluations.memory._MANY", 1300)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 12)).round(2))
    model = LinearRegression().fit(X, X.sum(axis=1))
    target = cfx.at_least(float(np.quantile(model.predict(X), 0.95)))
    sizes, rows = list[int](), list[int]()
    for n in (5, 16):
        space = cfx.Space.from_data(X)
        many = cfx.explain_many(model, X[:n], space, target, rng=0, prove=False)
        sizes.append(len(pickle.dumps(many)))
        rows.append(len(many[0].evaluations))
        assert all(answer.verify(model) for answer in many)
    assert rows[1] - rows[0] > 11 * 300
    # A quarter of what the numbers of the scored rows take by themselves, answers included.
    assert sizes[1] - sizes[0] < 0.25 * (rows[1] - rows[0]) * X.shape[1] * 8


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "share"), [(0.0, 0.9), (0.1, 1.0)])
def test_sharing_saves_evaluations(weight: float, share: float) -> None:
    """Where nearness counts, each query is searched around, so that sharing saves less."""
    X = cloud()
    space = cfx.Space.from_data(X).cost(weight=weight)
    target = cfx.reach(1.4)
    together: list[cfx.Explanation] = []
    alone: list[cfx.Explanation] = []
    for seed in range(8):  # few may be lucky
        together += cfx.explain_many(plane, X[:6], space, target, budget=30, rng=seed)
        alone += [cfx.explain(plane, x, space, target, budget=30, rng=seed) for x in X[:6]]
    assert all(a.reached for a in together)
    assert all(a.reached for a in alone)
    spent = sum(a.n_evaluations for a in together)
    assert spent < share * sum(a.n_evaluations for a in alone)
    if weight:
        cost = sum(a.best.cost for a in together)
        assert cost <= 1.01 * sum(a.best.cost for a in alone)


def test_there_may_be_one_target_per_query() -> None:
    targets = [1.2, cfx.at_most(0.2), cfx.increase(by=0.5)]
    queries = pd.DataFrame([ZERO] * 3)
    many = cfx.explain_many(plane, queries, cube(), targets, budget=25, rng=0)
    assert [a.reached for a in many] == [True] * 3
    assert many[0].best.output == pytest.approx(1.2, abs=0.05)
    assert many[1].best.output <= 0.2
    assert many[2].best.output == pytest.approx(1.0, abs=0.05)


def test_a_query_that_has_what_is_wanted_is_its_own_answer() -> None:
    queries = pd.DataFrame([ZERO, {"a": 0.9, "b": 0.9, "c": 0.1}])
    many = cfx.explain_many(plane, queries, cube(), cfx.at_least(1.0), budget=20, rng=0)
    met = many[1]
    assert met.reached
    assert met.best.changes == {}
    assert met.n_evaluations == 1
    assert met.best.output == met.output
    assert met.verify(plane)
    assert many[0].reached
    assert many[0].best.n_changes > 0


def test_a_query_that_breaks_a_rule_is_no_answer_although_it_has_what_is_wanted() -> None:
    space = cube().require("a >= 0.5")
    fine = {**ZERO, "a": 0.75}
    ruled, met = cfx.explain_many(plane, [ZERO, fine], space, cfx.at_least(0.1), rng=0)
    assert ruled.reached
    assert ruled.best.row["a"] >= 0.5
    assert (met.stopped, met.best.changes) == ("already met", {})


@pytest.fixture
def blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explainer, "BLOCK", 3)


@pytest.mark.usefixtures("blocks_of_three")
def test_jobs_do_not_change_the_answers() -> None:
    def ask(n_jobs: int) -> cfx.Explanations:
        return cfx.explain_many(
            plane,
            cloud()[:5],
            cfx.Space.from_data(cloud()),
            1.4,
            budget=7,
            rng=3,
            n_jobs=n_jobs,
            on_step=lambda step: None,
        )

    one = ask(1)
    for other in (ask(1), ask(2)):
        assert [codes(a) for a in other] == [codes(a) for a in one]
        frames = [many[0].evaluations.to_frame() for many in (one, other)]
        first, second = (f.sort_values(list(f.columns), ignore_index=True) for f in frames)
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.usefixtures("blocks_of_three")
def test_after_an_interruption_no_block_begins() -> None:
    heard: list[int] = []

    def listen(step: cfx.Step) -> None:
        heard.append(step.question)
        raise StopIteration

    model, queries = Recorder(plane), pd.DataFrame(cloud()[:8], index=list("abcdefgh"))
    space = cfx.Space.from_data(queries)
    many = cfx.explain_many(model, queries, space, 40.0, budget=30, rng=0, on_step=listen)
    assert [a.stopped for a in many] == ["interrupted"] * 3
    assert many.index.tolist() == ["a", "b", "c"]
    assert heard == [0]
    assert model.n <= 3 + 3 * 5  # f(query), and one round of single changes


@pytest.mark.usefixtures("blocks_of_three")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_fault_in_one_block_keeps_what_all_have_learnt(n_jobs: int) -> None:
    def model(rows: Any) -> Any:
        return np.where(np.asarray(rows)[:, 0] > 0.8, np.nan, plane(rows))

    queries = cloud()[cloud()[:, 0] < 0.5][:7]
    with pytest.raises(cfx.ModelError, match="returned nan") as caught:
        cfx.explain_many(
            model,
            queries,
            cfx.Space.from_data(cloud()),
            2.4,
            method="random",
            budget=20,
            rng=0,
            n_jobs=n_jobs,
        )
    known = caught.value.evaluations  # type: ignore[attr-defined]  # attached to any error
    assert len(known) >= 7
    assert np.isfinite(known.outputs).all()


def test_answers_do_not_depend_on_the_ranges_of_other_queries() -> None:
    X = pd.DataFrame({"a": np.linspace(0, 1, 40), "job": LEVELS[:2] * 20})
    queries = pd.DataFrame(
        {"a": [0.5, 9.0, -7.0], "job": ["clerk", "cook", "pilot"]}, index=[5, 6, 7]
    )
    space = cfx.Space.from_data(X)
    model = lambda r: 10.0 * r["a"] + (r["job"] == "pilot")  # noqa: E731  # a bare callable
    with pytest.warns(cfx.SpaceWarning, match="for the query 6") as caught:
        many = cfx.explain_many(
            model, queries, space, cfx.change(by=3), budget=15, method="random", rng=0
        )
    (warning,) = caught
    assert str(warning.message).startswith(
        "for the query 6 (and 1 more): the query lies outside the space, which grew "
        "for it: 'a' by the range 0.0 … 9.0; 'job' by the level 'cook'."
    )
    assert warning.filename == __file__
    for i, answer in enumerate(many):
        assert answer.verify(model)
        with pytest.warns(cfx.SpaceWarning) if i else nullcontext():
            region = space.around(queries.iloc[i])
        for c in answer.counterfactuals:
            low, high = region.low[0], region.high[0]
            assert low <= c.row["a"] <= high
            assert c.row["job"] in {"clerk", "nurse", queries["job"].iloc[i]}


def test_no_queries_have_no_answers() -> None:
    assert len(cfx.explain_many(plane, cloud()[:0], cfx.Space.from_data(cloud()), 1.0)) == 0


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_every_method_answers_many_queries_within_their_budgets(method: str) -> None:
    model = Recorder(plane)
    many = cfx.explain_many(
        model,
        cloud()[:3],
        cfx.Space.from_data(cloud()),
        40.0,
        method=stubborn(method),
        budget=9,
        rng=0,
    )
    spent = [a.n_evaluations for a in many]
    assert model.n == sum(spent)
    # Only those that may give up, knowing what the others know, end a row earlier.
    assert spent == [9, 9, 9] or (method == "auto" and {a.stopped for a in many} == {"unreachable"})
    assert max(spent) <= 9


@pytest.mark.parametrize(("budget", "rng"), [(25, 2), (36, 3), (38, 0)])
def test_a_far_hit_of_another_query_does_not_end_the_search_around_this_one(
    budget: int, rng: int
) -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    queries = X.iloc[32:48]
    targets = [cfx.reach(output + 20.0) for output in model.predict(queries)]
    hits = []
    costs = []
    for share in SHARES:
        answers = cfx.explain_many(
            lambda rows: model.predict(rows),
            queries,
            cfx.Space.from_data(X),
            targets,
            budget=budget,
            share=share,
            rng=rng,
        )
        hits.append([answer.reached for answer in answers])
        costs.append([answer.best.cost for answer in answers])
    shared, alone = np.array(hits)
    assert (shared >= alone).all()
    together, apart = np.array(costs)[:, shared & alone]
    assert together.mean() <= 1.05 * apart.mean()
    assert (together <= 1.5 * apart).all()
