"""Verdicts: what is out of reach, what is not, and which limits bind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.deadline import NEVER
from bayescfx.errors import InfeasibleError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator
from bayescfx.features import Categorical, Integer, Ordinal, Real
from bayescfx.model.model import Link, Model
from bayescfx.potentials.targets import as_target, change
from bayescfx.search.question import Question, misses
from bayescfx.search.surrogate import Surrogate, SurrogateSettings, learn
from bayescfx.search.verdict import (
    Verdict,
    Watch,
    frontier,
    hidden,
    judge,
    overconfidence,
    probability_reachable,
    probes,
)
from bayescfx.space.repair import project
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.oracles.spaces import random_case

UNIT = {name: Real(0, 1) for name in "abcd"}
MIDDLE = dict.fromkeys("abcd", 0.5)


def plane(frame: pd.DataFrame) -> Any:
    """Return a + 2 b + 3 c, between 0 and 6."""
    return frame["a"] + 2 * frame["b"] + 3 * frame["c"]


def asked(
    space: Space,
    target: object,
    *,
    f: Callable[[Any], Any] = plane,
    query: Any = MIDDLE,
    rows: int = 30,
    budget: int = 80,
    link: Link | None = None,
) -> Question:
    """Return a question whose region is known at the query and at some random rows."""
    region = space.around(query)
    account = Evaluator(Model(f, link=link), region.schema, Evaluations()).account(region, budget)
    output = float(account.evaluate(region.query[None])[0])
    rng = np.random.default_rng(1)
    if rows:
        account.evaluate(sample(region, rows, rng))
    return Question(account, output, as_target(target), rng)


def believed(question: Question) -> Surrogate:
    y = question.to_surrogate(question.y)
    return learn(SurrogateSettings(), question.region, question.X, y, None, NEVER)


def probability(question: Question) -> float:
    return probability_reachable(believed(question), question, np.random.default_rng(0))


# ── the probability ──


@pytest.mark.parametrize("target", [8.0, -2.0])
def test_a_target_beyond_every_corner_is_improbable(target: float) -> None:
    assert probability(asked(Space(UNIT), target)) < 0.02


@pytest.mark.parametrize("target", [5.9, 0.1])
def test_a_target_that_only_a_corner_reaches_is_probable(target: float) -> None:
    question = asked(Space(UNIT), target)
    assert not question.reached
    assert probability(question) > 0.5


def test_the_same_target_becomes_improbable_when_a_limit_cuts_the_corner_off() -> None:
    assert probability(asked(Space(UNIT).between({"c": (0, 0.6)}), 5.9)) < 0.02


def test_two_changes_cannot_do_what_three_can() -> None:
    assert probability(asked(Space(UNIT), 5.8)) > 0.5
    assert probability(asked(Space(UNIT).max_changes(1), 5.8, rows=60)) < 0.02


def test_either_way_of_a_change_counts() -> None:
    up = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.5}  # f = 0.6: five more can be had, five less not
    assert probability(asked(Space(UNIT), change(by=4.9), query=up)) > 0.5
    assert probability(asked(Space(UNIT), change(by=7.0), query=up)) < 0.02


def test_outputs_on_both_sides_of_the_target_make_it_certain() -> None:
    def step(frame: pd.DataFrame) -> Any:
        return (frame["a"] > 0.5) * 10.0

    assert probability(asked(Space(UNIT), 7.0, f=step)) == 1.0


def test_a_reached_target_is_certain_and_nothing_binds() -> None:
    question = asked(Space(UNIT), 3.3)
    question.account.evaluate(np.array([[0.8, 0.5, 0.5, 0.5]]))
    assert judge(question) == Verdict(1.0, ())


def test_a_finite_region_that_was_tried_in_full_leaves_no_hope() -> None:
    space = Space({"a": Categorical(["x", "y", "z"]), "b": Integer(0, 3)})

    def f(frame: pd.DataFrame) -> Any:
        return (frame["a"] == "y") * 4.0 + 10.0 * frame["b"]

    question = asked(space, 27.0, f=f, query={"a": "x", "b": 0}, rows=0)
    half = question.region.enumerate(100)
    assert half is not None
    question.account.evaluate(half[::2])
    assert probability(question) > 0.0
    question.account.evaluate(half)
    assert judge(question).probability == 0.0


def test_a_finite_region_knows_no_values_in_between() -> None:
    space = Space({"a": Integer(0, 20)})

    def f(frame: pd.DataFrame) -> Any:
        return 10.0 * frame["a"]

    question = asked(space, 95.0, f=f, query={"a": 0}, rows=0)
    question.account.evaluate(np.array([[5.0], [8.0], [9.0], [10.0], [11.0], [15.0], [20.0]]))
    assert probability(question) < 0.1


def test_no_probability_above_one_can_be_reached() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return 1 / (1 + np.exp(-plane(frame)))

    question = asked(Space(UNIT), 1.5, f=f, link="logit")
    assert question.surrogate_acceptance == ()
    assert judge(question) == Verdict(0.0, ())


def test_targets_on_a_probability_are_judged_on_log_odds() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return 1 / (1 + np.exp(3.0 - plane(frame)))

    assert probability(asked(Space(UNIT), 0.94, f=f, link="logit")) > 0.5
    low = Space(UNIT).between({"c": (0, 0.5)})
    assert probability(asked(low, 0.94, f=f, link="logit")) < 0.02


def test_joint_samples_do_not_touch_the_question() -> None:
    question = asked(Space(UNIT), 8.0)
    before = question.rng.bit_generator.state, question.account.spent
    assert judge(question) == judge(question)
    assert (question.rng.bit_generator.state, question.account.spent) == before


def test_deviations_are_widened_where_the_surrogate_was_too_sure() -> None:
    rng = np.random.default_rng(0)
    smooth = asked(Space(UNIT), 8.0)
    surrogate = believed(smooth)
    assert overconfidence(surrogate) < 1.2
    # the same hyperparameters, which suit a plane, for outputs that jump
    jumps = np.sign(rng.normal(size=len(smooth.X)))
    process = surrogate.process.condition(
        surrogate.coordinates(smooth.X), jumps, surrogate.process.hyperparameters
    )
    assert overconfidence(Surrogate(surrogate.coordinates, process, len(jumps))) > 2.0


# ── what binds ──


def words(space: Space, target: object, **more: Any) -> tuple[str, ...]:
    return judge(asked(space, target, **more)).binding


def test_a_limit_that_was_set_is_named_with_its_end() -> None:
    assert words(Space(UNIT).between({"c": (0, 0.6)}), 8.0)[0] == "limit on 'c' (at most 0.6)"
    assert words(Space(UNIT).move({"c": (-0.1, 0.1)}), -4.0)[0] == "limit on 'c' (at least 0.4)"
    assert words(Space(UNIT).only_up("c"), -4.0)[0] == "limit on 'c' (at least 0.5)"


def test_an_end_of_the_data_is_not_called_a_limit() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 4)), columns=list("abcd"))
    high = frame["c"].max()
    found = words(Space.from_data(frame), 9.0, query=frame.iloc[0])
    assert found[0] == f"the data's upper end of 'c' ({high:.6g})"
    assert words(Space(UNIT), 9.0)[0] == "the upper end of 'c' (1)"


def test_the_most_binding_limits_come_first_and_three_at_most() -> None:
    names = [text.split("'")[1] for text in words(Space(UNIT), 9.0)]
    assert names == ["c", "b", "a"]
    assert "d" not in names


def test_the_bound_on_changes_is_named() -> None:
    zero = dict.fromkeys("abcd", 0.0)
    two = words(Space(UNIT).max_changes(2), 8.0, query=zero, rows=50)
    assert two[0] == "at most 2 changes"
    one = words(Space(UNIT).max_changes(1), 8.0, query=zero, rows=50)
    assert one[0] == "at most 1 change"


def test_rules_are_named_by_their_labels() -> None:
    assert words(Space(UNIT).require("c <= a"), -3.0, rows=60)
    assert words(Space(UNIT).require("b + c <= 1"), 8.0, rows=60)[0] == "rule 'b + c <= 1'"

    def low(frame: pd.DataFrame) -> Any:
        return frame["c"] < 0.6

    found = words(Space(UNIT).require(low, label="little c"), 8.0, rows=60)
    assert found[0] == "rule 'little c'"


def test_features_that_move_together_may_bind() -> None:
    def apart(frame: pd.DataFrame) -> Any:
        return 3 * frame["a"] - 3 * frame["b"]

    found = words(Space(UNIT).together("a", "b"), 5.0, f=apart, rows=60)
    assert found[0] == "moving 'a' and 'b' together"


def test_levels_left_out_are_named() -> None:
    space = Space({"a": Real(0, 1), "job": Categorical(["clerk", "cook", "pilot"])})

    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 10.0 * (frame["job"] == "pilot")

    wide = space.around({"a": 0.5, "job": "clerk"})
    question = asked(
        space.between({"job": ["clerk", "cook"]}), 20.0, f=f, query={"a": 0.5, "job": "clerk"}
    )
    question.account.evaluator.account(wide, 20).evaluate(
        sample(wide, 20, np.random.default_rng(3))
    )
    assert judge(question).binding[0] == "limit on 'job' (only 'clerk', 'cook')"


def test_an_ordered_feature_with_levels_left_out_is_named() -> None:
    space = Space({"a": Real(0, 1), "size": Ordinal(["S", "M", "L", "XL"])})

    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 3.0 * frame["size"].map({"S": 0, "M": 1, "L": 2, "XL": 3}).astype(float)

    question = asked(
        space.between({"size": ["S", "M", "L"]}), 12.0, f=f, query={"a": 0.5, "size": "S"}
    )
    assert judge(question).binding[0] == "limit on 'size' (only 'S', 'M', 'L')"


def staircase(frame: pd.DataFrame) -> Any:
    """Return what `plane` does, in steps of an eighth, and flat beyond the ends, as trees do."""
    stairs = (8 * frame[list("abc")]).apply(np.floor).clip(0, 7) / 7
    return plane(stairs)


def sums(frame: pd.DataFrame) -> Any:
    return frame["b"] + frame["c"] < 0.9


def exchanged(frame: pd.DataFrame) -> Any:
    return np.abs(frame["b"] + frame["c"] - 1.0) < 0.01


LOW = {"a": 0.3, "b": 0.3, "c": 0.3, "d": 0.5}
LEVELS: dict[str, Real | Integer] = {**UNIT, "c": Integer(0, 10)}
BOUND: list[tuple[str, Space, float, dict[str, float]]] = [
    ("limit on 'c' (at most 0.5)", Space(UNIT).between({"c": (0, 0.5)}), 8.0, LOW),
    ("limit on 'c' (at least 0.4)", Space(UNIT).between({"c": (0.4, 1)}), -4.0, MIDDLE),
    ("limit on 'c' (at most 0.4)", Space(UNIT).move({"c": (-0.1, 0.1)}), 8.0, LOW),
    ("limit on 'c' (at least 0.5)", Space(UNIT).only_up("c"), -4.0, MIDDLE),
    ("limit on 'c' (at most 0.3)", Space(UNIT).only_down("c"), 8.0, LOW),
    ("limit on 'b' (at most 0.3)", Space(UNIT).only_down("b"), 9.0, LOW),
    ("at most 1 change", Space(UNIT).max_changes(1), 5.0, LOW),
    ("at most 2 changes", Space(UNIT).max_changes(2), 7.0, LOW),
    ("rule 'b + c <= 0.9'", Space(UNIT).require("b + c <= 0.9"), 8.0, LOW),
    ("rule 'sums'", Space(UNIT).require(sums), 8.0, LOW),
    ("rule 'c <= d'", Space(UNIT).fix("d").require("c <= d"), 8.0, LOW),
    ("limit on 'c' (at most 0.5)", Space(UNIT).between({"c": (0, 0.5)}).max_changes(3), 80.0, LOW),
]


@pytest.mark.parametrize("f", [plane, staircase])
@pytest.mark.parametrize(("named", "space", "target", "query"), BOUND)
def test_what_binds_is_named_first(
    f: Callable[[Any], Any],
    named: str,
    space: Space,
    target: float,
    query: dict[str, float],
) -> None:
    assert words(space, target, f=f, query=query, rows=50)[:1] == (named,)


def test_a_rule_that_is_nearly_an_equality_is_named_where_the_model_is_smooth() -> None:
    # all rows known lie in a strip; of steps across it the surrogate knows by its trend only
    space = Space(UNIT).require(exchanged)
    assert words(space, 8.0, rows=50)[:1] == ("rule 'exchanged'",)


def test_the_bound_of_an_integer_is_named() -> None:
    def f(frame: pd.DataFrame) -> Any:
        return frame["a"] + 2 * frame["b"] + 0.3 * frame["c"]

    space = Space(LEVELS).between({"c": (0, 4)})
    assert words(space, 8.0, f=f, query={**LOW, "c": 3}, rows=50)[0] == "limit on 'c' (at most 4)"


@pytest.mark.parametrize(
    "space",
    [
        Space(UNIT),
        Space(UNIT).between({"c": (0, 0.9)}),
        Space(UNIT).max_changes(3),
        Space(UNIT).require("d <= 0.6"),
        Space(UNIT).only_up("d"),
    ],
)
def test_nothing_is_named_where_the_model_goes_no_further(space: Space) -> None:
    def capped(frame: pd.DataFrame) -> Any:
        return np.minimum(plane(frame), 2.5)

    assert words(space, 5.0, f=capped, query=LOW, rows=60) == ()


@pytest.mark.parametrize(
    "space",
    [
        Space(UNIT).between({"d": (0.4, 0.6)}),
        Space(UNIT).require("d <= 0.6"),
        Space(UNIT).max_changes(3),
        Space(UNIT).only_down("d"),
    ],
)
def test_a_limit_that_does_not_bind_is_not_named(space: Space) -> None:
    ends = words(space, 9.0, rows=50)
    assert ends
    assert all(text.startswith("the upper end of") for text in ends)


def test_a_fixed_feature_binds_if_others_have_moved_it() -> None:
    free = Space(UNIT).around(MIDDLE)
    question = asked(Space(UNIT).fix("c"), 8.0)
    assert "'c' being fixed" not in judge(question).binding  # nothing is known of its effect
    question.account.evaluator.account(free, 40).evaluate(
        sample(free, 40, np.random.default_rng(3))
    )
    assert judge(question).binding[0] == "'c' being fixed"


def test_nothing_binds_where_no_feature_matters() -> None:
    assert words(Space(UNIT), 8.0, f=lambda frame: 0.0 * frame["a"] + 1.0) == ()


def test_the_miss_is_the_distance_to_the_nearest_interval() -> None:
    found = misses(((0.0, 2.0), (4.0, np.inf)), np.array([-1.0, 2.5, 10.0]))
    assert found.tolist() == [1.0, 0.5, 0.0]


# ── watching a search ──


def first_doubt(question: Question, rows: Array) -> int | None:
    """Feed rows one by one and return how many were spent when the watch gave up."""
    watch, surrogate = Watch(question), None
    for row in rows:
        question.account.evaluate(row[None])
        if question.reached or question.account.left < 10:
            return None
        surrogate = learn(
            SurrogateSettings(), question.region, question.X, question.y, surrogate, NEVER
        )
        if watch.out_of_reach(surrogate):
            return question.account.spent
        question.account.evaluate(watch.probe())
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
    assert not watch.out_of_reach(surrogate)
    assert not len(watch.probe())
    for row in sample(question.region, 6, np.random.default_rng(3)):
        question.account.evaluate(row[None])
        assert not watch.out_of_reach(believed(question))
    rows = watch.probe()
    assert question.region.contains(rows).all()
    assert len(np.unique(np.vstack([question.X, rows]), axis=0)) == len(question.X) + len(rows)
    assert not len(watch.probe())  # handed out once


def test_a_probe_looks_where_the_search_was_not() -> None:
    def hill(frame: pd.DataFrame) -> Any:
        return 10.0 * np.exp(-20.0 * (frame["a"] - 0.9) ** 2) + 0.1 * frame["b"]

    frame = pd.DataFrame(np.random.default_rng(0).random((60, 4)), columns=list("abcd"))
    question = asked(Space.from_data(frame), 8.0, f=hill, query=dict.fromkeys("abcd", 0.2), rows=0)
    near = question.region.query + np.random.default_rng(1).uniform(-0.1, 0.1, (30, 4))
    question.account.evaluate(project(question.region, near))
    rows = probes(believed(question), question.region, question.X, 1, np.random.default_rng(0), 8)
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


def test_a_search_that_climbs_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescfx.search.verdict.probability_reachable", lambda *_: 0.0)
    question = asked(Space(UNIT), 6.1, rows=0, budget=100)
    still = np.column_stack([np.full((30, 3), 0.5), np.linspace(0, 1, 30)])
    question.account.evaluate(still)
    surrogate, watch = believed(asked(Space(UNIT), 9.0)), Watch(question)

    def gives_up(rows: Array) -> bool:
        found = []
        for row in rows:
            question.account.evaluate(row[None])
            found.append(watch.out_of_reach(surrogate))
            watch.probe()
        return any(found)

    assert not gives_up(np.linspace(0.5, 0.85, 15)[:, None] * np.ones(4))
    assert gives_up(np.column_stack([np.full((30, 3), 0.8), np.linspace(0, 1, 30)]))


def test_probes_take_a_fifth_of_the_budget_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    hopes = iter(([0.0] * 6 + [1.0]) * 100)
    monkeypatch.setattr("bayescfx.search.verdict.probability_reachable", lambda *_: next(hopes))
    question = asked(Space(UNIT), 9.0, rows=0, budget=200)
    surrogate, watch, probed = believed(asked(Space(UNIT), 9.0)), Watch(question), []
    for row in sample(question.region, 150, np.random.default_rng(2)):
        question.account.evaluate(row[None])
        watch.out_of_reach(surrogate)
        probed.append(len(watch.probe()))
    assert sum(n > 0 for n in probed) > 1
    assert max(probed) <= 8
    assert sum(probed) <= 0.2 * 200


def strip(frame: pd.DataFrame) -> Any:
    """Return what is nearly an equality."""
    return (frame["a"] + frame["b"] - 1.0).abs() <= 0.005


def test_nothing_is_said_of_a_region_that_a_rule_hides() -> None:
    question = asked(Space(UNIT).require(strip), 9.0, rows=0)
    rows = sample(question.region, 60, np.random.default_rng(2))
    assert first_doubt(question, rows) is None
    assert judge(question).probability is None


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
    assert hidden(space.around(MIDDLE), np.random.default_rng(0)) == hides


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
    with_all = cfx.explain(plane, MIDDLE, Space(UNIT), 9.0, budget=budget, rng=0, method=stubborn)
    assert (with_all.stopped, with_all.n_evaluations) == ("budget", budget)


def test_no_verdict_without_evidence() -> None:
    wide = {f"x{i}": Real(0, 1) for i in range(20)}

    def gentle(frame: pd.DataFrame) -> Any:
        return 0.1 * frame["x0"] + 1.0

    question = asked(Space(wide), 50.0, f=gentle, query=dict.fromkeys(wide, 0.5), rows=0)
    spent = first_doubt(question, sample(question.region, 79, np.random.default_rng(2)))
    assert spent is not None
    assert spent >= 20


def test_nothing_is_said_of_a_model_whose_outputs_are_all_the_same() -> None:
    def formula(frame: pd.DataFrame) -> Any:
        return 1.0 * ((frame["a"] > 0.999) & (frame["b"] > 0.999))

    question = asked(Space(UNIT), 1.0, f=formula, rows=0)
    assert first_doubt(question, sample(question.region, 79, np.random.default_rng(2))) is None
    assert judge(question).probability is None


def test_watching_leaves_the_search_alone_and_repeats_itself() -> None:
    def once() -> tuple[int | None, object]:
        question = asked(Space(UNIT), 9.0, rows=0)
        rows = sample(question.region, 79, np.random.default_rng(2))
        return first_doubt(question, rows), question.rng.bit_generator.state

    first, state = once()
    assert once() == (first, state)
    assert asked(Space(UNIT), 9.0, rows=0).rng.bit_generator.state == state


# ── any space ──


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
    question.account.evaluate(drawn)
    verdict = judge(question)
    assert verdict.probability is None or 0.0 <= verdict.probability <= 1.0
    assert len(verdict.binding) <= 3
    assert judge(question) == verdict
    surrogate = believed(question)
    for side in (1, -1):
        rows = frontier(surrogate, region, question.X, side, rng, 50)
        assert region.contains(rows).all()
        assert 1 <= len(rows) <= 50
