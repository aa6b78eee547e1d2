"""Bayes-CFX: phases, batches, several answers, failed rows, settings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Integer
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Account, Evaluator, OnFault, Stop
from bayescfx.models.model import Link, Model
from bayescfx.potentials import reach
from bayescfx.search import bayes
from bayescfx.search.bayes import BayesCFX, Phase
from bayescfx.search.finish import distinct
from bayescfx.search.question import Question
from bayescfx.space.neighbourhood import n_to_settle
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.fit import SurrogateSettings
from tests.conftest import Recorder
from tests.search.questions import UNIT, asked, drive, plane

DATA = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 4)), columns=list("abcd"))
MIDDLE = dict.fromkeys("abcd", 0.3)


def smooth(rows: pd.DataFrame) -> Any:
    return np.sin(3 * rows["a"]) + rows["b"] ** 2 - 0.3 * rows["c"] + 0.1 * rows["d"]


def steps(rows: pd.DataFrame) -> Any:
    """Return a step function, like that of a tree."""
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
    question = Question(evaluator, region, budget, np.random.default_rng(seed), n=n)
    question.begin(reach(by=by), float(question.evaluate(region.query[None])[0]))
    return question, recorder


def finish(question: Question, search: BayesCFX | None = None) -> str:
    try:
        return drive(BayesCFX() if search is None else search, question)
    except Stop as stop:
        return stop.stopped


def cheapest(question: Question) -> float:
    return float(question.region.distance(question.X[question.accepted(question.y)]).min())


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
def test_answers_after_the_first_hit_are_nearer(model: Callable[[pd.DataFrame], Any]) -> None:
    question, _ = ask(model, by=1.0, budget=40)
    finish(question)
    hits = np.flatnonzero(question.accepted(question.y))
    cost = question.region.distance(question.X)[hits]
    assert len(hits) > 1
    assert cost.min() < cost[0]  # nearer than the first hit
    assert question.best == hits[np.argmin(cost)]


def test_after_the_first_hit_every_row_is_nearer() -> None:
    question, _ = ask(budget=40)
    rounds = BayesCFX().rounds(question)
    X = next(rounds)
    while True:
        reached = question.reached
        bar = cheapest(question) if reached else np.inf
        if reached and len(X) == 1:
            assert question.region.distance(X)[0] < bar + 1e-12
        try:
            X = rounds.send(question.evaluate(X))
        except (StopIteration, Stop):
            break


def test_with_the_cost_switched_off_the_first_hit_is_enough() -> None:
    question, recorder = ask(weight=0.0, budget=40)
    assert finish(question) == "converged"
    assert question.accepted(question.y).sum() == 1
    assert question.accepted(question.y)[-1]
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


def test_an_expensive_feature_does_not_change() -> None:
    space = Space.from_data(DATA).cost(per_feature={"a": 10.0})
    question, _ = ask(lambda r: 3 * r["a"] + 2 * r["b"], space, by=0.8, budget=40)
    finish(question)
    assert question.region.changes(question.X[[question.best]])[0].tolist() == [
        False,
        True,
        False,
        False,
    ]


# ── needless changes ──


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
def test_batches_have_the_requested_size_and_are_deterministic(batch: int) -> None:
    calls = []
    for _ in range(2):
        question, recorder = ask(budget=36, by=5.0)  # out of reach, so that the search goes on
        finish(question, BayesCFX(batch=batch, give_up=False))
        calls.append(recorder.calls)
    sizes = [len(rows) for rows in calls[0]]
    assert sum(sizes) == 36
    assert max(sizes[2:]) == min(batch, 36 - sum(sizes[:2]))
    for one, two in zip(*calls, strict=True):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert not pd.concat(calls[0]).duplicated().any()


@pytest.mark.parametrize("batch", [4, 32])
def test_batches_find_near_answers(batch: int) -> None:
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
    assert question.accepted(question.y)[chosen].all()
    assert len(set(supports(question, chosen))) == 3


def test_with_the_cost_switched_off_several_answers_end_the_search() -> None:
    question, _ = ask(weight=0.0, by=0.4, n=3, budget=80)
    assert finish(question) == "converged"
    assert question.spent < 80


# ── scored rows ──


def test_scored_rows_are_not_requested_again() -> None:
    known = Evaluations()
    first, one = ask(budget=25, known=known)
    finish(first)
    second, two = ask(budget=25, known=known, seed=5)
    finish(second)
    assert not pd.concat([one.rows, *two.calls]).duplicated().any()
    assert len(known) == len(pd.concat([one.rows, *two.calls]))
    assert cheapest(second) <= cheapest(first)


def test_scored_rows_replace_the_start_set() -> None:
    known = Evaluations(DATA, smooth(DATA))
    question, recorder = ask(budget=10, known=known)
    X = next(BayesCFX().rounds(question))
    assert len(X) == 1  # a proposal
    assert len(recorder.rows) == 1


# ── failed rows ──


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


def test_a_finite_region_of_failed_rows_is_exhausted() -> None:
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


def test_failed_rows_are_avoided() -> None:
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
    assert hopeless.spent < 40
    stubborn, _ = ask(by=50.0, budget=40)
    assert finish(stubborn, BayesCFX(give_up=False)) == "budget"
    assert stubborn.spent == 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BayesCFX(batch=0), "`batch` must be a whole number of at least 1; got 0."),
        (lambda: BayesCFX(batch="4"), "`batch` must be a whole number of at least 1; got '4'."),  # type: ignore[arg-type]
        (lambda: BayesCFX(starts=-1), "`starts` must be a whole number of at least 0; got -1."),
    ],
)
def test_settings_out_of_range_raise(make: Callable[[], object], message: str) -> None:
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


def test_rows_are_reserved_to_settle_the_answers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Array] = []

    def spy(region: Any, X: Array) -> Any:
        settled.append(X)
        return n_to_settle(region, X)

    monkeypatch.setattr(bayes, "n_to_settle", spy)
    question = asked(Space(UNIT), reach(by=1.0), rows=20, budget=60)
    with contextlib.suppress(Stop):
        drive(BayesCFX(), question)
    assert question.accepted(plane(pd.DataFrame(settled[0], columns=list("abcd")))).all()


def rows_up_to_a_hit(question: Question) -> Array:
    """Return the codes ``(k, d)`` that a search asks for up to its first hit."""
    rounds = BayesCFX().rounds(question)
    X = next(rounds)
    rows = [X]
    with contextlib.suppress(StopIteration, Stop):
        while not question.accepted(question.evaluate(X)).any():
            X = rounds.send(question.evaluate(X))
            rows.append(X)
    rounds.close()
    return np.vstack(rows)


@pytest.mark.parametrize("budget", [20, 23, 31, 38, 57])
def test_up_to_its_first_hit_a_search_is_that_of_a_separate_call(budget: int) -> None:
    asked_for = []
    for n_borrowed in (0, 60):
        question, _ = ask(steps, by=2.0, budget=budget)
        if n_borrowed:
            other = Account(question.evaluator, question.region, 100)
            rows = sample(question.region, n_borrowed, np.random.default_rng(1))
            assert question.accepted(other.evaluate(rows)).any()
        asked_for.append(rows_up_to_a_hit(question))
    assert len(asked_for[0]) > 4
    np.testing.assert_array_equal(asked_for[0], asked_for[1])


@pytest.mark.parametrize("budget", [40, 57, 90])
def test_a_far_hit_of_another_question_is_approached_where_no_other_is_found(budget: int) -> None:
    def corner(rows: pd.DataFrame) -> Any:
        return 1.0 * (rows[["a", "b", "c"]] > 0.9).all(axis=1)

    question, _ = ask(corner, by=1.0, budget=budget)
    other = Account(question.evaluator, question.region, 1)
    far = np.array([[1.0, 1.0, 1.0, 1.0]])
    assert question.accepted(other.evaluate(far)).all()
    drive(BayesCFX(give_up=False), question)
    assert question.reached
    cost = question.region.cost(question.X[[question.best]])
    assert cost < 0.99 * question.region.cost(far)
