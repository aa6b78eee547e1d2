"""Bayes-CFX: phases, walking back, batches, several answers, faults."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.deadline import NEVER
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, OnFault, Stop
from bayescfx.models.model import Link, Model
from bayescfx.potentials import increase
from bayescfx.search import bayes
from bayescfx.search.bayes import BayesCFX, Phase
from bayescfx.search.learning import relevant
from bayescfx.search.question import Question
from bayescfx.search.selection import different, distinct
from bayescfx.search.start import (
    few_rows,
    first_rows,
    single_changes,
    towards_query,
    towards_target,
)
from bayescfx.space.neighbourhood import n_to_settle
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.fit import SurrogateSettings, fit_surrogate
from tests.conftest import Recorder
from tests.search.questions import UNIT, asked, drive, plane

DATA = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 4)), columns=list("abcd"))
MIDDLE = dict.fromkeys("abcd", 0.3)


def smooth(rows: pd.DataFrame) -> Any:
    return np.sin(3 * rows["a"]) + rows["b"] ** 2 - 0.3 * rows["c"] + 0.1 * rows["d"]


def steps(rows: pd.DataFrame) -> Any:
    """Return a step function, as trees are."""
    return np.floor(4 * rows["a"]) + 0.5 * np.floor(3 * rows["b"]) - 0.25 * np.floor(5 * rows["c"])


def ask(
    model: Callable[[pd.DataFrame], Any] = smooth,
    space: Space | None = None,
    query: dict[str, Any] | None = None,
    *,
    by: float = 0.8,
    weight: float | None = None,
    budget: int = 30,
    n: int = 1,
    on_fault: OnFault = "raise",
    known: Evaluations | None = None,
    link: Link | None = None,
    seed: int = 0,
) -> tuple[Question, Recorder]:
    """Return a question with f(query) evaluated, and its model."""
    space = Space.from_data(DATA) if space is None else space
    region = space.cost(weight=weight).around(MIDDLE if query is None else query)
    recorder = Recorder(model)
    store = Evaluations() if known is None else known
    evaluator = Evaluator(Model(recorder, link=link), region.schema, store, on_fault=on_fault)
    account = Account(evaluator, region, budget)
    output = float(account.evaluate(region.query[None])[0])
    target = increase(by=by)
    return Question(account, output, target, np.random.default_rng(seed), n=n), recorder


def finish(question: Question, search: BayesCFX | None = None) -> str:
    try:
        return drive(BayesCFX() if search is None else search, question)
    except Stop as stop:
        return stop.reason


def cheapest(question: Question) -> float:
    return float(question.region.distance(question.X[question.hits]).min())


# ── phases ──


@pytest.mark.parametrize(
    ("settings", "expected", "ending"),
    [
        (
            {"budget": 200},
            [Phase.START, Phase.REACH, Phase.APPROACH, Phase.SETTLE],
            "nothing nearer expected",
        ),
        ({"weight": 0.0, "budget": 40}, [Phase.START, Phase.REACH, Phase.SPREAD], "converged"),
        ({"by": 50.0, "budget": 40}, [Phase.START, Phase.REACH], "unreachable"),
    ],
)
def test_each_phase_names_the_next_or_the_ending(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], expected: list[Phase], ending: str
) -> None:
    passed: list[Phase] = []

    def recorded(phase: Phase, rounds: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(state: Any) -> Any:
            passed.append(phase)
            return (yield from rounds(state))

        return run

    for phase, rounds in list(bayes.PHASES.items()):
        monkeypatch.setitem(bayes.PHASES, phase, recorded(phase, rounds))
    question, _ = ask(**settings)
    assert finish(question) == ending
    assert passed == expected


@pytest.mark.parametrize("model", [smooth, steps])
def test_first_it_hits_then_it_comes_nearer(model: Callable[[pd.DataFrame], Any]) -> None:
    question, _ = ask(model, by=1.0, budget=40)
    finish(question)
    hits = np.flatnonzero(question.hits)
    cost = question.region.distance(question.X)[hits]
    assert len(hits) > 1
    assert cost.min() < cost[0]  # nearer than the first hit
    assert question.best == hits[np.argmin(cost)]


def test_after_the_first_hit_no_row_is_asked_for_that_would_be_no_nearer() -> None:
    question, _ = ask(budget=40)
    rounds = BayesCFX().rounds(question)
    X = next(rounds)
    while True:
        reached = question.reached
        bar = cheapest(question) if reached else np.inf
        if reached and len(X) == 1:
            assert question.region.distance(X)[0] < bar + 1e-12
        try:
            X = rounds.send(question.account.evaluate(X))
        except (StopIteration, Stop):
            break


def test_with_the_cost_switched_off_the_first_hit_is_enough() -> None:
    question, recorder = ask(weight=0.0, budget=40)
    assert finish(question) == "converged"
    assert question.hits.sum() == 1
    assert question.hits[-1]
    assert len(recorder.rows) < 40


def test_it_ends_when_nothing_nearer_is_expected() -> None:
    question, recorder = ask(budget=200)
    assert finish(question) == "nothing nearer expected"
    assert len(recorder.rows) < 100


def test_the_nearest_answer_of_a_plane_is_found() -> None:
    """The knapsack: only the feature with the best rate moves, as far as needed."""
    question, _ = ask(lambda r: 3 * r["a"] + 2 * r["b"] + r["c"] - r["d"], by=1.0, budget=60)
    finish(question)
    region = question.region
    rate = np.abs([3.0, 2.0, 1.0, -1.0]) * region.scale
    nearest = 0.95 / rate.max()  # within the tolerance of 5 %
    assert cheapest(question) <= 1.02 * nearest
    assert region.changes(question.X[[question.best]]).sum() == 1


def test_a_feature_that_costs_more_is_left_alone() -> None:
    space = Space.from_data(DATA).cost(per_feature={"a": 10.0})
    question, _ = ask(lambda r: 3 * r["a"] + 2 * r["b"], space, by=0.8, budget=40)
    finish(question)
    assert question.region.changes(question.X[[question.best]])[0].tolist() == [
        False,
        True,
        False,
        False,
    ]


# ── walking back ──


@pytest.mark.parametrize("model", [smooth, steps])
def test_no_single_change_of_the_answer_can_be_taken_back(
    model: Callable[[pd.DataFrame], Any],
) -> None:
    question, _ = ask(model, by=1.0, budget=100)
    finish(question)
    x = question.X[question.best]
    for j in np.flatnonzero(question.region.changes(x[None])[0]):
        row = x.copy()
        row[j] = question.region.query[j]
        y = np.asarray(model(pd.DataFrame(row[None], columns=list("abcd"))), dtype=np.float64)
        assert not question.accepted(y)[0]


# ── batches ──


@pytest.mark.parametrize("batch", [1, 3, 16, 32])
def test_batches_are_of_the_size_asked_for_and_deterministic(batch: int) -> None:
    calls = []
    for _ in range(2):
        question, recorder = ask(budget=36, by=5.0)  # far off, so that it goes on
        finish(question, BayesCFX(batch=batch, give_up=False))
        calls.append(recorder.calls)
    sizes = [len(rows) for rows in calls[0]]
    assert sum(sizes) == 36
    assert max(sizes[2:]) == min(batch, 36 - sum(sizes[:2]))
    for one, two in zip(*calls, strict=True):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert not pd.concat(calls[0]).duplicated().any()


@pytest.mark.parametrize("batch", [4, 32])
def test_batches_come_nearer_too(batch: int) -> None:
    question, _ = ask(lambda r: 3 * r["a"] + 2 * r["b"], by=1.0, budget=200)
    finish(question, BayesCFX(batch=batch))
    nearest = 0.95 / (np.array([3.0, 2.0]) * question.region.scale[:2]).max()
    assert cheapest(question) <= 1.1 * nearest


# ── several answers ──


def supports(question: Question, chosen: Any) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(row)) for row in question.region.changes(question.X[chosen])]


@pytest.mark.parametrize("weight", [None, 0.0])
def test_several_answers_change_different_features(weight: float | None) -> None:
    question, _ = ask(
        lambda r: r["a"] + r["b"] + r["c"] + r["d"], weight=weight, by=0.5, n=3, budget=40
    )
    finish(question)
    chosen = distinct(question, 3)
    assert len(chosen) == 3
    assert question.hits[chosen].all()
    assert len(set(supports(question, chosen))) == 3


def test_with_the_cost_switched_off_several_answers_end_the_search() -> None:
    question, _ = ask(weight=0.0, by=0.4, n=3, budget=80)
    assert finish(question) == "converged"
    assert question.account.spent < 80


def test_answers_are_distinct_and_the_query_is_none() -> None:
    question, _ = ask(budget=12)
    rows = sample(question.region, 11, np.random.default_rng(4))
    question.account.evaluate(rows)
    chosen = distinct(question, 50)
    X = question.X[chosen]
    assert question.region.changes(X).any(axis=1).all()
    clear = different(question.region, X, X)
    assert (clear | np.eye(len(X), dtype=bool)).all()


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ([0.9, 5, 0], [0.8, 5, 0], False),  # the same, a little less
        ([0.9, 5, 0], [0.6, 5, 0], False),  # the same, much less
        ([0.9, 5, 0], [0.1, 5, 0], True),  # the other way
        ([0.9, 5, 0], [0.5, 9, 0], True),  # another feature
        ([0.9, 5, 0], [0.88, 9, 0], False),  # nearly the same, and more
        ([0.9, 5, 0], [0.6, 9, 0], True),  # less of one, and another
        ([0.9, 6, 0], [0.6, 9, 0], True),  # less of one, more of another
        ([0.5, 5, 1], [0.5, 5, 2], True),  # another level
        ([0.9, 5, 1], [0.6, 5, 2], True),
        ([0.9, 5, 1], [0.6, 5, 1], False),
    ],
)
def test_answers_differ_if_each_has_something_that_the_other_has_not(
    one: list[float], other: list[float], answer: bool
) -> None:
    space = Space({"a": Real(0, 1), "b": Integer(0, 9), "c": Categorical(list("xyz"))})
    region = space.around({"a": 0.5, "b": 5, "c": "x"})
    pair = np.array([one]), np.array([other], dtype=float)
    assert different(region, *pair).item() is answer
    assert different(region, *pair[::-1]).item() is answer


def test_a_sparser_row_that_is_nearly_as_near_comes_first() -> None:
    question, _ = ask(lambda r: 2 * r["a"], by=0.5)
    q = question.region.query
    scale = question.region.scale
    rows = np.repeat(q[None], 2, axis=0)
    rows[:, 0] += 0.25
    rows[0, 0] -= 1e-3
    rows[0, 1] += 1e-4 * scale[1]
    question.account.evaluate(rows)
    assert question.hits[1:].all()
    assert supports(question, distinct(question, 2)) == [(0,)]


def test_what_comes_no_nearer_to_the_target_than_the_query_is_no_guess() -> None:
    question, _ = ask(lambda r: r["a"], by=5.0)
    q = question.region.query
    lower, higher = q.copy(), q.copy()
    lower[0], higher[0] = 0.1, 0.4
    question.account.evaluate(lower[None])
    assert distinct(question, 3).tolist() == [0]  # the query
    question.account.evaluate(higher[None])
    assert distinct(question, 3).tolist() == [2]


# ── what is known ──


def test_nothing_that_is_known_is_asked_again() -> None:
    known = Evaluations()
    first, one = ask(budget=25, known=known)
    finish(first)
    second, two = ask(budget=25, known=known, seed=5)
    finish(second)
    assert not pd.concat([one.rows, *two.calls]).duplicated().any()
    assert len(known) == len(pd.concat([one.rows, *two.calls]))
    assert cheapest(second) <= cheapest(first)


def test_known_rows_take_the_place_of_a_start_set() -> None:
    known = Evaluations(DATA, smooth(DATA))
    question, recorder = ask(budget=10, known=known)
    X = next(BayesCFX().rounds(question))
    assert len(X) == 1  # a proposal
    assert len(recorder.rows) == 1


def test_many_known_rows_are_narrowed_to_those_that_matter() -> None:
    region = Space.from_data(DATA).around(MIDDLE)
    X = np.vstack([region.query, sample(region, 500, np.random.default_rng(0))])
    chosen = relevant(region, X, 50, X[[7]])
    assert len(chosen) == 50
    assert {0, 7} <= set(chosen.tolist())
    assert relevant(region, X, 501, X[[7]]).tolist() == list(range(501))
    near = np.abs(X - region.query).sum(axis=1)
    assert np.median(near[chosen]) < np.median(near)


def test_hyperparameters_are_learnt_less_often_as_rows_accumulate() -> None:
    region = Space.from_data(DATA).around(MIDDLE)
    X = sample(region, 60, np.random.default_rng(0))
    y = np.asarray(smooth(pd.DataFrame(X, columns=list("abcd"))))
    first = fit_surrogate(SurrogateSettings(), region, X[:40], y[:40], None, NEVER)
    second = fit_surrogate(SurrogateSettings(), region, X[:45], y[:45], first, NEVER)
    third = fit_surrogate(SurrogateSettings(), region, X[:55], y[:55], second, NEVER)
    assert (first.n_rows, second.n_rows, third.n_rows) == (40, 40, 55)
    assert second.posterior.prior.h == first.posterior.prior.h
    mean, _ = second.predict(X[:45])
    assert mean == pytest.approx(y[:45], abs=0.1)


# ── start sets and candidates ──


def test_where_nearness_counts_each_feature_is_moved_once_at_the_start() -> None:
    question, _ = ask()
    rows = first_rows(question, 4)
    changed = question.region.changes(rows)
    assert changed.sum(axis=1).tolist() == [1] * 4
    assert changed.any(axis=0).all()
    units = np.abs(rows - question.region.query) / question.region.scale
    assert (units.max(axis=1) <= 1.0 + 1e-9).all()


def test_with_more_features_than_rows_they_are_moved_in_groups() -> None:
    question, _ = ask()
    changed = question.region.changes(first_rows(question, 2))
    assert len(changed) == 2
    assert changed.any(axis=0).all()


def test_where_nearness_does_not_count_data_rows_come_first() -> None:
    question, _ = ask(weight=0.0)
    rows = first_rows(question, 5)
    data = {tuple(row) for row in DATA.to_numpy().tolist()}
    assert {tuple(row) for row in rows.tolist()} <= data


def test_without_data_random_rows_come_first() -> None:
    space = Space({name: Real(0, 1) for name in "abcd"})
    question, _ = ask(space=space, weight=0.0)
    assert len(first_rows(question, 5)) == 5


def mixed_question(weight: float | None) -> Question:
    space = Space(
        {
            "a": Real(0, 1),
            "b": Integer(0, 9),
            "c": Categorical(list("xyz")),
            "h": Integer(0, 23, cyclic=True),
        }
    ).require("a <= 0.1 * b + 0.2")
    question, _ = ask(
        lambda r: 2 * r["a"] + 0.1 * r["b"] + (r["c"] == "y"),
        space,
        {"a": 0.3, "b": 5, "c": "x", "h": 7},
        weight=weight,
    )
    question.account.evaluate(sample(question.region, 10, np.random.default_rng(0)))
    return question


@pytest.mark.parametrize("weight", [None, 0.0])
def test_all_candidates_are_allowed(weight: float | None) -> None:
    question = mixed_question(weight)
    region, X = question.region, question.X
    value = question.score(question.y)
    sets: list[Array] = [
        first_rows(question, 6),
        towards_target(question, value),
        towards_query(question, X[3:5]),
        few_rows(question, X[3], 2),
        single_changes(region),
    ]
    for rows in sets:
        assert len(rows)
        assert region.contains(rows).all()
    assert ((few_rows(question, X[3], 2) != X[3]).sum(axis=1) <= 4).all()


# ── faults ──


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("rule", [None, "a >= 0.5"])
def test_a_model_that_fails_everywhere_ends_at_the_budget(batch: int, rule: str | None) -> None:
    def model(rows: pd.DataFrame) -> Any:
        return np.where((rows == 0.3).all(axis=1), smooth(rows), np.nan)

    space = Space.from_data(DATA)
    space = space if rule is None else space.require(rule)
    question, recorder = ask(model, space, budget=25, on_fault="skip")
    assert finish(question, BayesCFX(batch=batch)) == "budget"
    assert len(recorder.rows) == 25
    assert not recorder.rows.duplicated().any()


def test_a_finite_region_of_faults_is_exhausted() -> None:
    space = Space({"a": Integer(0, 3), "b": Integer(0, 3)}).require("a >= 1")
    question, recorder = ask(
        lambda r: np.where(r["a"] > 0, np.nan, 0.0),
        space,
        {"a": 0, "b": 0},
        budget=100,
        on_fault="skip",
    )
    assert finish(question) == "exhausted"
    assert len(recorder.rows) == 1 + 12


def test_faults_are_gone_round() -> None:
    def model(rows: pd.DataFrame) -> Any:
        return np.where(rows["a"] > 0.5, np.nan, 2 * rows["a"] + rows["b"])

    question, _ = ask(model, by=0.6, budget=40, on_fault="skip")
    finish(question)
    assert question.reached
    assert (question.X[:, 0] <= 0.5).all()


# ── settings ──


def test_the_paper_is_a_setting() -> None:
    paper = BayesCFX(local=False, surrogate=SurrogateSettings(kernel="rbf", mean="zero"))
    question, recorder = ask(weight=0.0, budget=25)
    assert finish(question, paper) == "converged"
    assert len(recorder.rows) <= 25


def test_the_number_of_starts_is_a_setting() -> None:
    for starts in (1, 5):
        question, _ = ask(budget=40)
        assert len(next(BayesCFX(starts=starts).rounds(question))) == starts
    question, _ = ask(budget=40)
    assert len(next(BayesCFX(starts=0).rounds(question))) == 1  # a proposal at once


def test_give_up_is_a_setting() -> None:
    hopeless, _ = ask(by=50.0, budget=40)
    assert finish(hopeless) == "unreachable"
    assert hopeless.account.spent < 40
    stubborn, _ = ask(by=50.0, budget=40)
    assert finish(stubborn, BayesCFX(give_up=False)) == "budget"
    assert stubborn.account.spent == 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BayesCFX(batch=0), "`batch` must be a whole number of at least 1; got 0."),
        (lambda: BayesCFX(batch="4"), "`batch` must be a whole number of at least 1; got '4'."),  # type: ignore[arg-type]
        (lambda: BayesCFX(starts=-1), "`starts` must be a whole number of at least 0; got -1."),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_probability_is_modelled_on_log_odds() -> None:
    def model(rows: pd.DataFrame) -> Any:
        return 1.0 / (1.0 + np.exp(-(20.0 * rows["a"] - 14.0)))

    question, recorder = ask(model, by=0.9, budget=25, link="logit")
    finish(question)
    assert question.reached
    assert len(recorder.rows) <= 25
    plain, _ = ask(model, by=0.9, budget=25)
    assert plain.acceptance == question.acceptance


def test_rows_are_kept_to_settle_the_answers_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Array] = []

    def spy(region: Any, X: Array) -> Any:
        settled.append(X)
        return n_to_settle(region, X)

    monkeypatch.setattr(bayes, "n_to_settle", spy)
    question = asked(Space(UNIT), increase(by=1.0), rows=20, budget=60)
    with contextlib.suppress(Stop):
        drive(BayesCFX(), question)
    assert question.accepted(plane(pd.DataFrame(settled[0], columns=list("abcd")))).all()
