"""The evaluations a question learns from: few, up to date and sufficient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx import Evaluations, at_least, explain, explain_many
from bayescfx.arrays import Array, Indices
from bayescfx.evaluations.evaluator import Account, Evaluator
from bayescfx.models.model import Model
from bayescfx.propose import ledger
from bayescfx.search import bayes, objectives
from bayescfx.search.finish import distinct
from bayescfx.search.question import Nearby, Question, relevant
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.search.questions import MIDDLE, UNIT, plane


def known_rows(n: int, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).random((n, 4)), columns=list("abcd"))


def question_after(rows: pd.DataFrame, target: float = 4.5, n: int = 1) -> Question:
    """Return a question that begins after some rows were scored."""
    region = Space(UNIT).around(MIDDLE)
    store = Evaluations(rows, np.asarray(plane(rows)))
    evaluator = Evaluator(Model(plane), region.schema, store)
    question = Question(evaluator, region, 80, np.random.default_rng(1), n=n)
    question.begin(at_least(target), float(question.evaluate(region.query[None])[0]))
    return question


def inside(question: Question) -> Indices:
    return question.inside.places(question.region.contains, question._best)


def counted(question: Question) -> Indices:
    """Return the positions of all scored rows in the region, from scratch."""
    places = np.arange(len(question.known))
    X, y = question.known.take(places)
    return places[question.scored(places, X, y) & question.region.contains(X)]


def test_all_of_few_scored_rows_are_used() -> None:
    question = question_after(known_rows(300))
    for seed in range(1, 4):
        assert inside(question).tolist() == counted(question).tolist()
        assert len(question.lessons()[1]) == len(question.known)
        question.evaluate(known_rows(7, seed).to_numpy())
    assert len(question.X) == 301 + 2 * 7 + 7


def test_relevant_rows_are_kept_of_many_scored_ones() -> None:
    question = question_after(known_rows(20_000))
    X, y = question.known.take(counted(question))
    assert len(question.X) <= 450
    assert len(question.lessons()[1]) <= 450
    hits = X[question.accepted(y)]
    cheapest = np.sort(question.region.distance(hits))[:50]
    kept = np.sort(question.region.distance(question.X[question.accepted(question.y)]))[:50]
    np.testing.assert_array_equal(kept, cheapest)
    assert (question.y.min(), question.y.max()) == (y.min(), y.max())
    below = y[~question.accepted(y)].max()
    assert below in question.y


def test_own_rows_are_never_dropped_and_requested_rows_return() -> None:
    rows = known_rows(20_000)
    question = question_after(rows)
    places = inside(question)
    dropped = np.setdiff1d(np.arange(20_000), places)[:5]
    assert len(dropped) == 5
    spent = question.spent
    question.evaluate(rows.to_numpy()[dropped])
    assert question.spent == spent
    assert np.isin(dropped, inside(question)).all()
    mine = known_rows(30, seed=9).to_numpy()
    question.evaluate(mine)
    other = Account(question.evaluator, question.region, 5000)
    other.evaluate(known_rows(2000, seed=5).to_numpy())
    kept = {row.tobytes() for row in question.X}
    assert len(kept) <= 450 + 36
    assert all(row.tobytes() in kept for row in [*mine, *rows.to_numpy()[dropped]])


def test_several_answers_are_found_among_many_known_rows() -> None:
    rows = known_rows(20_000)
    single = np.arange(200)
    rows.loc[single, list("abd")] = 0.5
    rows.loc[single + 200, list("acd")] = 0.5
    rows.loc[single + 200, "b"] = 1.0
    question = question_after(rows, target=4.0, n=3)
    X = question.X[distinct(question, 3)]
    assert len({tuple(row) for row in question.region.changes(X).tolist()}) > 1
    everything = question_after(rows, target=4.0, n=3)
    everything.inside.most = len(rows)
    assert len(everything.X) > 10_000
    np.testing.assert_array_equal(X, everything.X[distinct(everything, 3)])


@pytest.mark.parametrize("target", [4.5, 7.0])
def test_the_work_of_a_step_is_bounded_after_many_scored_rows(
    monkeypatch: pytest.MonkeyPatch, target: float
) -> None:
    """No step uses all of 20,000 rows: neither surrogate, terraces, flat boxes nor records."""
    sizes: dict[str, list[int]] = {}

    def watch(owner: Any, name: str, at: int) -> None:
        inner = getattr(owner, name)

        def seen(*given: Any, **named: Any) -> Any:
            sizes.setdefault(name, []).append(len(given[at]))
            return inner(*given, **named)

        monkeypatch.setattr(owner, name, seen)

    watch(bayes, "fit_surrogate", 2)
    watch(objectives.Terraces, "__init__", 2)
    watch(objectives.FlatBoxes, "__init__", 2)
    watch(objectives.Record, "__init__", 2)
    watch(ledger, "row_keys", 0)
    looked: list[int] = []
    add = Nearby._add

    def adding(self: Nearby, counts: Any, places: Any, X: Array, y: Array) -> None:
        looked.append(len(y))
        add(self, counts, places, X, y)

    monkeypatch.setattr(Nearby, "_add", adding)
    rows = known_rows(20_000)
    answer = explain(
        lambda frame: np.sin(3 * plane(frame)) + plane(frame),
        MIDDLE,
        Space(UNIT),
        at_least(target),
        method="bayes-cfx",
        budget=40,
        evaluations=Evaluations(rows, np.sin(3 * plane(rows)) + plane(rows)),
        rng=0,
    )
    assert answer.n_evaluations > 8
    assert sizes["fit_surrogate"]
    for name, seen in sizes.items():
        bound = 4096 if name == "row_keys" else 900
        assert max(seen) <= bound, name
    # Each known row is looked at once by each of the two that keep places, at the start.
    assert sum(looked) <= 2 * (20_000 + 41) + 80


def test_a_scored_hit_is_a_free_first_answer() -> None:
    rows = known_rows(20_000)
    region = Space(UNIT).around(MIDDLE)
    y = np.asarray(plane(rows))
    nearest = region.distance(rows.to_numpy()[y >= 4.5]).min()
    costs = []
    distances = []
    for budget in (5, 30):
        answer = explain(
            plane,
            MIDDLE,
            Space(UNIT),
            at_least(4.5),
            method="bayes-cfx",
            budget=budget,
            evaluations=Evaluations(rows, y),
            rng=0,
        )
        assert answer.reached
        costs.append(answer.best.cost)
        distances.append(answer.best.distance)
        assert answer.n_evaluations <= budget
    assert nearest >= distances[0]
    assert costs[0] >= costs[1]


def test_distant_rows_hardly_change_an_answer() -> None:
    """More and more distant rows do no harm."""
    costs = []
    for n in (100, 2000, 20_000):
        rows = known_rows(n)
        rows["d"] = 0.9 + 0.1 * rows["d"]  # which does nothing, and is far from the query's
        store = Evaluations(rows, np.asarray(plane(rows)))
        space, target = Space(UNIT), at_least(4.5)
        answer = explain(
            plane, MIDDLE, space, target, method="bayes-cfx", budget=40, evaluations=store, rng=0
        )
        assert answer.reached
        costs.append(answer.best.cost)
    assert max(costs) <= 1.1 * min(costs)


@pytest.mark.parametrize("method", ["sweep", "bayes-cfx"])
def test_many_questions_after_many_scored_rows_use_little_memory(method: str) -> None:
    rows = known_rows(5000)
    store = Evaluations(rows, np.asarray(plane(rows)))
    queries = known_rows(6, seed=3) * 0.5
    found = explain_many(
        plane, queries, Space(UNIT), at_least(4.5), method=method, budget=30, evaluations=store,
        rng=0,
    )  # fmt: skip
    assert all(answer.reached for answer in found)


def test_relevant_rows_are_near_ones_and_some_from_everywhere() -> None:
    region = Space(UNIT).around(MIDDLE)
    X = known_rows(5_000).to_numpy()
    chosen = relevant(region, X, 200, np.empty((0, 4)))
    assert len(chosen) == len(set(chosen.tolist())) == 200
    rank = np.argsort(np.argsort(np.abs(X - region.query).sum(axis=1)))[chosen]
    assert set(range(50)) <= set(rank.tolist())
    assert (np.histogram(rank, bins=10, range=(0, 5_000))[0] >= 9).all()


def test_a_far_target_costs_no_more_after_many_scored_rows() -> None:
    """Rows near the query and the best answer alone do not cover the way between them."""

    def model(rows: Any) -> Any:
        return 100.0 * np.tanh(2.0 * (rows.to_numpy() @ np.linspace(0.2, 1.0, 8)) - 6.0)

    space, costs = Space({f"x{j}": cfx.Real(0, 1) for j in range(8)}), []
    for n in (100, 20_000):
        X = pd.DataFrame(
            np.clip(np.random.default_rng(0).normal(0.25, 0.15, size=(n, 8)), 0, 1),
            columns=list(space.features),
        )
        answer = explain(
            model,
            pd.Series(0.1, index=X.columns),
            space,
            at_least(60.0),
            method="bayes-cfx",
            budget=40,
            evaluations=Evaluations(X, model(X)),
            rng=0,
        )
        assert answer.reached
        costs.append(answer.best.cost)
    assert costs[1] <= 1.05 * costs[0]


def test_a_question_can_postpone_the_rows_of_other_questions() -> None:
    question = question_after(known_rows(20))
    before = len(question.X)
    question.inside.is_own_only = True
    other = Account(question.evaluator, question.region, 5000)
    other.evaluate(known_rows(30, 5).to_numpy())
    mine = known_rows(3, 6).to_numpy()
    question.evaluate(mine)
    assert len(question.X) == before + 3
    question.inside.is_own_only = False
    assert len(question.X) == before + 33


def test_a_question_can_leave_out_rows_of_the_same_call_at_any_time() -> None:
    question = question_after(known_rows(20))
    other = Account(question.evaluator, question.region, 5000)
    other.evaluate(known_rows(30, 5).to_numpy())
    assert len(question.X) == 51
    assert question.borrowed.sum() == 30
    question.leave_out_borrowed()
    other.evaluate(known_rows(10, 6).to_numpy())
    question.evaluate(known_rows(3, 7).to_numpy())
    question.evaluate(known_rows(2, 5).to_numpy())  # those of the other, asked for again
    assert len(question.X) == len(question.lessons()[1]) == 21 + 3 + 2
    assert not question.borrowed.any()
    rows = pd.concat([known_rows(30, 5), known_rows(10, 6), known_rows(3, 7)])
    hits = question.accepted(np.asarray(plane(rows)))
    assert hits.any()
    np.testing.assert_array_equal(question.hits_of_call(), rows.to_numpy()[hits])
    question.let_in_borrowed()
    assert inside(question).tolist() == counted(question).tolist()
    assert question.borrowed.sum() == 30 + 10 - 2


def test_relevant_rows_include_the_centres() -> None:
    region = Space(UNIT).around(MIDDLE)
    X = np.vstack([region.query, sample(region, 500, np.random.default_rng(0))])
    chosen = relevant(region, X, 50, X[[7]])
    assert len(chosen) == 50
    assert {0, 7} <= set(chosen.tolist())
    assert relevant(region, X, 501, X[[7]]).tolist() == list(range(501))
    near = np.abs(X - region.query).sum(axis=1)
    assert np.median(near[chosen]) < np.median(near)
