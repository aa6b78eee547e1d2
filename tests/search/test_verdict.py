"""Verdicts: probabilities, conclusions, and when a search gives up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.deadline import NEVER
from bayescfx.errors import InfeasibleError
from bayescfx.potentials import change
from bayescfx.search.question import Question
from bayescfx.search.verdict import (
    Conclusion,
    Outlook,
    Verdict,
    Watch,
    frontier,
    is_hidden,
    judge,
    overconfidence,
    probability_reachable,
    probe_rows,
    shortfall,
)
from bayescfx.space.repair import project
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.fit import SurrogateSettings, fit_surrogate
from bayescfx.surrogate.posterior import Units, condition
from tests.oracles.spaces import noted, random_case
from tests.search.questions import MIDDLE, UNIT, asked, believed, plane


def probability(question: Question) -> float:
    found = probability_reachable(believed(question), question, np.random.default_rng(0))
    assert found is not None
    return found


def improbable(question: Question) -> bool:
    """Return whether the probability is the least one after so many misses."""
    return probability(question) == max(0.01, 1 / (len(question.y) + 2))


# ── the probability ──


@pytest.mark.parametrize("target", [8.0, -2.0])
def test_a_target_beyond_every_corner_is_improbable(target: float) -> None:
    assert improbable(asked(Space(UNIT), target))


@pytest.mark.parametrize("target", [5.9, 0.1])
def test_a_target_that_only_a_corner_reaches_is_probable(target: float) -> None:
    question = asked(Space(UNIT), target)
    assert not question.reached
    assert probability(question) > 0.5


def test_the_same_target_becomes_improbable_when_a_limit_cuts_the_corner_off() -> None:
    assert improbable(asked(Space(UNIT).between({"c": (0, 0.6)}), 5.9))


def test_fewer_changes_make_a_target_improbable() -> None:
    assert probability(asked(Space(UNIT), 5.8)) > 0.5
    assert improbable(asked(Space(UNIT).max_changes(1), 5.8, rows=60))


def test_both_directions_of_a_change_count() -> None:
    up = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.5}  # f = 0.6: five more can be had, five less not
    assert probability(asked(Space(UNIT), change(by=4.9), query=up)) > 0.5
    assert improbable(asked(Space(UNIT), change(by=7.0), query=up))


def test_a_target_between_outputs_gets_no_probability() -> None:
    def step(frame: pd.DataFrame) -> Any:
        return (frame["a"] > 0.5) * 10.0

    question = asked(Space(UNIT), 7.0, f=step)
    assert probability_reachable(believed(question), question, np.random.default_rng(0)) is None
    assert shortfall(believed(question), question, np.random.default_rng(0)) == 0.0
    verdict = judge(question)
    assert (verdict.conclusion, verdict.probability) == (Conclusion.BETWEEN, None)


@pytest.mark.parametrize(("rows", "least"), [(18, 0.05), (198, 0.01)])
def test_the_probability_follows_the_rule_of_succession(rows: int, least: float) -> None:
    question = asked(Space(UNIT), 80.0, rows=rows - 1, budget=300)
    assert len(question.y) == rows
    assert probability(question) == pytest.approx(least)
    assert shortfall(believed(question), question, np.random.default_rng(0)) > 4.0


def test_a_reached_target_is_certain_and_nothing_binds() -> None:
    question = asked(Space(UNIT), 3.3)
    question.evaluate(np.array([[0.8, 0.5, 0.5, 0.5]]))
    assert judge(question) == Verdict(Conclusion.REACHED, 1.0, ())


def test_a_fully_scored_finite_region_has_probability_zero() -> None:
    space = Space({"a": Categorical(["x", "y", "z"]), "b": Integer(0, 3)})

    def f(frame: pd.DataFrame) -> Any:
        return (frame["a"] == "y") * 4.0 + 10.0 * frame["b"]

    question = asked(space, 27.0, f=f, query={"a": "x", "b": 0}, rows=0)
    half = question.region.enumerate(100)
    assert half is not None
    question.evaluate(half[::2])
    assert probability(question) > 0.01
    question.evaluate(half)
    verdict = judge(question)
    assert (verdict.conclusion, verdict.probability) == (Conclusion.IMPOSSIBLE, 0.0)


def test_outputs_between_rows_of_a_finite_region_are_not_reachable() -> None:
    space = Space({"a": Integer(0, 20)})

    def f(frame: pd.DataFrame) -> Any:
        return 10.0 * frame["a"]

    question = asked(space, 95.0, f=f, query={"a": 0}, rows=0)
    question.evaluate(np.array([[5.0], [8.0], [9.0], [10.0], [11.0], [15.0], [20.0]]))
    assert improbable(question)


def test_targets_on_a_probability_are_judged_on_log_odds() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return 1 / (1 + np.exp(3.0 - plane(frame)))

    assert probability(asked(Space(UNIT), 0.94, f=f, link="logit")) > 0.5
    low = Space(UNIT).between({"c": (0, 0.5)})
    assert improbable(asked(low, 0.94, f=f, link="logit"))


def test_judging_does_not_change_the_question() -> None:
    question = asked(Space(UNIT), 8.0)
    before = question.rng.bit_generator.state, question.spent
    assert judge(question) == judge(question)
    assert (question.rng.bit_generator.state, question.spent) == before


def test_deviations_are_widened_where_the_surrogate_was_overconfident() -> None:
    rng = np.random.default_rng(0)
    smooth = asked(Space(UNIT), 8.0)
    surrogate = believed(smooth)
    assert overconfidence(surrogate) < 1.2
    # the same hyperparameters, which suit a plane, for outputs that jump
    jumps = np.sign(rng.normal(size=len(smooth.X)))
    Z = surrogate.coordinates(smooth.X)
    posterior = condition(surrogate.posterior.prior, Units(0.0, 1.0), Z, jumps)
    assert overconfidence(replace(surrogate, posterior=posterior)) > 2.0


# ── watching a search ──


def first_doubt(question: Question, rows: Array) -> int | None:
    """Score rows one by one and return the number spent when the watch gave up."""
    watch = Watch(question)
    surrogate = None
    for row in rows:
        question.evaluate(row[None])
        if question.reached or question.left < 10:
            return None
        surrogate = fit_surrogate(
            SurrogateSettings(), question.region, question.X, question.y, surrogate, NEVER
        )
        if watch.look(surrogate) is Outlook.OUT_OF_REACH:
            return question.spent
        question.evaluate(watch.probe())
    return None


def test_a_hopeless_target_is_given_up_before_three_fifths_of_the_budget() -> None:
    question = asked(Space(UNIT), 9.0, rows=0)
    spent = first_doubt(question, sample(question.region, 79, np.random.default_rng(2)))
    assert spent is not None
    assert 12 <= spent < 48


def test_a_hard_but_reachable_target_is_not_given_up() -> None:
    question = asked(Space(UNIT), 5.9, rows=0)
    assert first_doubt(question, sample(question.region, 79, np.random.default_rng(2))) is None


def test_no_verdict_without_a_probe() -> None:
    question = asked(Space(UNIT), 9.0, rows=60)
    surrogate, watch = believed(question), Watch(question)
    assert not len(watch.probe())
    assert watch.look(surrogate) is Outlook.SUSPICIOUS
    rows = watch.probe()
    assert len(rows) >= 2
    assert question.region.contains(rows).all()
    assert len(np.unique(np.vstack([question.X, rows]), axis=0)) == len(question.X) + len(rows)
    assert not len(watch.probe())  # handed out once


def test_a_probe_lies_away_from_scored_rows() -> None:
    def hill(frame: pd.DataFrame) -> Any:
        return 10.0 * np.exp(-20.0 * (frame["a"] - 0.9) ** 2) + 0.1 * frame["b"]

    frame = pd.DataFrame(np.random.default_rng(0).random((60, 4)), columns=list("abcd"))
    question = asked(Space.from_data(frame), 8.0, f=hill, query=dict.fromkeys("abcd", 0.2), rows=0)
    near = question.region.query + np.random.default_rng(1).uniform(-0.1, 0.1, (30, 4))
    question.evaluate(project(question.region, near))
    rows = probe_rows(believed(question), question, 1, np.random.default_rng(0), 8)
    assert len(rows) == 8
    assert (rows[:, 0] > 0.6).any()


def test_a_near_miss_is_not_given_up() -> None:
    def capped(frame: pd.DataFrame) -> Any:
        return np.minimum(plane(frame), 4.0)

    # half of the way, and all but a little of it: both are out of reach, one is no near miss
    for target, given_up in [(5.0, True), (4.09, False)]:
        question = asked(Space(UNIT), target, f=capped, rows=0)
        spent = first_doubt(question, sample(question.region, 79, np.random.default_rng(2)))
        assert (spent is not None) == given_up


def test_a_probe_takes_an_eighth_of_the_budget_at_most_and_comes_once() -> None:
    for budget, most in ((20, 2), (40, 5), (80, 8)):
        question = asked(Space(UNIT), 9.0, rows=0, budget=budget)
        watch, probed = Watch(question), []
        for row in sample(question.region, budget - 10, np.random.default_rng(2)):
            question.evaluate(row[None])
            watch.look(believed(question))
            probed.append(len(watch.probe()))
        assert sum(n > 0 for n in probed) == 1
        assert 2 <= sum(probed) <= most


def test_the_last_look_needs_less_evidence() -> None:
    question = asked(Space(UNIT), 9.0, rows=40)
    assert Watch(question).look(believed(question), is_last=True) is Outlook.OPEN  # without a probe
    watch = Watch(question)
    watch.look(believed(question))
    question.evaluate(watch.probe())
    assert watch.look(believed(question)) is Outlook.DOUBTFUL  # once is not twice
    assert watch.look(believed(question), is_last=True) is Outlook.OUT_OF_REACH


def test_a_target_within_past_errors_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def needle(frame: pd.DataFrame) -> Any:
        return plane(frame) + 6.0 * (frame["a"] > 0.93)

    smooth, odd = asked(Space(UNIT), 8.0, rows=40), asked(Space(UNIT), 14.0, f=needle, rows=40)
    monkeypatch.setattr("bayescfx.search.verdict.shortfall", lambda *_: 3.0)
    for question, given_up in ((smooth, True), (odd, False)):
        watch = Watch(question)
        watch.look(believed(question))
        question.evaluate(watch.probe())
        outlook = watch.look(believed(question), is_last=True)
        assert (outlook is Outlook.OUT_OF_REACH) == given_up


def strip(frame: pd.DataFrame) -> Any:
    """Return a condition that is nearly an equality."""
    return (frame["a"] + frame["b"] - 1.0).abs() <= 0.005


def test_a_region_hidden_by_a_rule_gets_no_probability() -> None:
    question = asked(Space(UNIT).require(strip), 9.0, rows=0)
    rows = sample(question.region, 60, np.random.default_rng(2))
    assert first_doubt(question, rows) is None
    verdict = judge(question)
    assert (verdict.conclusion, verdict.probability) == (Conclusion.HIDDEN, None)


@pytest.mark.parametrize(
    ("space", "hides"),
    [
        (Space(UNIT), False),
        (Space(UNIT).require(strip), True),
        (Space(UNIT).require(lambda frame: frame["a"] < frame["b"], "less a than b"), False),
        (Space(UNIT).require("a + b <= 1.005").require("a + b >= 0.995"), False),
        (
            Space.from_data(
                pd.DataFrame(
                    {"a": [0.0, 0.3, 0.5, 0.9], "b": [1.0, 0.7, 0.5, 0.1], "c": 0.5, "d": 0.5}
                )
            ).require(strip),
            False,
        ),
    ],
)
def test_a_rule_hides_a_region_if_neither_draws_nor_data_pass(space: Space, hides: bool) -> None:
    assert is_hidden(space.around(MIDDLE), np.random.default_rng(0)) == hides


@pytest.mark.parametrize("budget", [2, 7, 13, 40])
def test_a_hopeless_search_ends_within_its_budget(budget: int) -> None:
    asked_for = 0

    def counted(frame: pd.DataFrame) -> Any:
        nonlocal asked_for
        asked_for += len(frame)
        return plane(frame)

    answer = cfx.explain(counted, MIDDLE, Space(UNIT), 9.0, budget=budget, rng=0)
    assert asked_for == answer.n_evaluations <= budget
    stubborn = cfx.BayesCFX(give_up=False)
    with_all = cfx.explain(
        plane, MIDDLE, Space(UNIT), 9.0,
        budget=budget, rng=0, method=stubborn, short_decimals=False,
    )  # fmt: skip
    assert (with_all.stopped, with_all.n_evaluations) == ("budget", budget)


def test_no_verdict_without_evidence() -> None:
    wide = {f"x{i}": Real(0, 1) for i in range(20)}

    def gentle(frame: pd.DataFrame) -> Any:
        return 0.1 * frame["x0"] + 1.0

    question = asked(Space(wide), 50.0, f=gentle, query=dict.fromkeys(wide, 0.5), rows=0)
    spent = first_doubt(question, sample(question.region, 79, np.random.default_rng(2)))
    assert spent is not None
    assert spent >= 20


def test_a_constant_model_gets_no_probability() -> None:
    def formula(frame: pd.DataFrame) -> Any:
        return 1.0 * ((frame["a"] > 0.999) & (frame["b"] > 0.999))

    question = asked(Space(UNIT), 1.0, f=formula, rows=0)
    assert first_doubt(question, sample(question.region, 79, np.random.default_rng(2))) is None
    verdict = judge(question)
    assert (verdict.conclusion, verdict.probability) == (Conclusion.CONSTANT, None)


def test_watching_is_deterministic_and_does_not_change_the_search() -> None:
    def once() -> tuple[int | None, object]:
        question = asked(Space(UNIT), 9.0, rows=0)
        rows = sample(question.region, 79, np.random.default_rng(2))
        return first_doubt(question, rows), question.rng.bit_generator.state

    first, state = once()
    assert once() == (first, state)
    assert asked(Space(UNIT), 9.0, rows=0).rng.bit_generator.state == state


def test_rows_missed_long_ago_lower_the_probability() -> None:
    worth = dict(zip("uvwxyz", (0.0, 0.3, 0.6, 0.1, 0.8, 0.2), strict=True))

    def price(frame: pd.DataFrame) -> Any:
        size, quality = np.floor(8 * frame["size"]) / 8, np.floor(4 * frame["quality"]) / 4
        place = frame["district"].map(worth).astype(float)
        return 6e4 * np.exp(2 * size + place) * (1 + 0.3 * quality)  # never below 60,000

    levels, unit = Categorical(list("uvwxyz")), Real(0, 1)
    features = {"size": unit, "quality": unit, "district": levels, "age": unit}
    space = Space(features).max_changes(2)
    query = {"size": 0.6, "quality": 0.7, "age": 0.2, "district": "z"}
    question = asked(space, cfx.at_most(7), f=price, query=query, rows=1000, budget=2000)
    verdict = judge(question)
    assert verdict.probability is not None
    assert verdict.probability < 0.05  # 0.29 from the 200 rows nearest to the best alone
    assert verdict.binding == ("at most 2 changes",)


def test_a_near_miss_gets_no_low_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate can't rule out another hill that is a little higher."""
    monkeypatch.setattr("bayescfx.search.verdict.probability_reachable", lambda *_: 0.01)
    near, far = (asked(Space(UNIT), at, rows=60) for at in (5.7, 12.0))
    assert not near.reached
    assert judge(near).probability is None
    assert judge(near).conclusion is Conclusion.CLOSE
    assert judge(far).probability == 0.01
    assert judge(far).conclusion is Conclusion.ESTIMATED


def test_a_verdict_carries_the_evidence_it_rests_on() -> None:
    question = asked(Space(UNIT), cfx.at_least(12.0), rows=30)
    evidence = judge(question).evidence
    assert evidence is not None
    assert evidence.n_outputs == len(question.y)
    assert evidence.span == pytest.approx(np.ptp(question.y))
    assert evidence.miss == pytest.approx(12.0 - question.y.max())
    assert evidence.query_miss == pytest.approx(12.0 - 3.0)
    assert not evidence.is_close()


# ── any space ──


@noted
@pytest.mark.parametrize("seed", range(24))
def test_any_space_can_be_judged(seed: int) -> None:
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    region = case.space.around(case.query)
    weights = rng.normal(size=len(region.query))
    span = np.where(region.high > region.low, region.high - region.low, 1.0)

    def f(rows: Any) -> Any:
        codes = np.nan_to_num((region.encode(rows) - region.query) / span)
        return codes @ weights

    try:
        drawn = sample(region, 20, rng)
    except InfeasibleError:
        return
    question = asked(case.space, 100.0, f=f, query=case.query, rows=0)
    question.evaluate(drawn)
    verdict = judge(question)
    assert verdict.probability is None or 0.0 <= verdict.probability <= 1.0
    assert len(verdict.binding) <= 3
    assert judge(question) == verdict
    surrogate = believed(question)
    for side in (1, -1):
        rows = frontier(surrogate, question, side, rng, 50)
        assert region.contains(rows).all()
        assert 1 <= len(rows) <= 50


def test_no_search_is_given_up_before_forty_rows() -> None:
    ends = {}
    for budget in (40, 60, 100):
        answer = cfx.explain(
            plane, MIDDLE, Space(UNIT), 80.0,
            method="bayes-cfx", budget=budget, rng=0, short_decimals=False,
        )  # fmt: skip
        assert answer.status == "unreachable"
        ends[budget] = answer.n_evaluations
    assert ends[40] >= 39  # with one row left nothing more can be learnt
    assert 40 <= ends[60] < 60
    assert 50 <= ends[100] < 100
