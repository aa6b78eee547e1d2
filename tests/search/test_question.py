"""One question: what is accepted, what it is worth, and the same on the surrogate's scale."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayescfx.data import Real
from bayescfx.errors import TargetError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator
from bayescfx.models.model import Link, Model
from bayescfx.potentials import Logit, Target, at_least, reach
from bayescfx.search.question import Question, misses
from bayescfx.space.space import Space

REGION = Space({"a": Real(0.0, 1.0)}).around({"a": 0.5})


def asked_of(output: float, target: Target, link: Link | None = None) -> Question:
    model = Model(lambda rows: rows["a"], link=link)
    evaluator = Evaluator(model, REGION.schema, Evaluations())
    question = Question(evaluator, REGION, 1, np.random.default_rng(0))
    question.begin(target, output)
    return question


def problem(output: float, by: float, link: Link | None = None) -> Question:
    return asked_of(output, reach(by=by), link)


def test_an_output_is_accepted_within_the_tolerance_of_the_wanted_change() -> None:
    asked = problem(100.0, 20.0)
    y = np.array([118.9, 119.0, 120.0, 121.0, 121.1, 100.0, np.nan])
    assert asked.accepted(y).tolist() == [False, True, True, True, False, False, False]
    assert asked.acceptance == ((119.0, 121.0),)
    assert asked.wanted == ((120.0, 120.0),)


def test_the_score_is_one_at_the_wish_zero_at_the_query_and_for_a_fault() -> None:
    scores = problem(100.0, -20.0).score(np.array([80.0, 100.0, 90.0, 1e9, np.nan]))
    assert scores[0] == 1.0
    assert scores[1] == scores[3] == scores[4] == 0.0
    # z = 1/2: z^2 exp(1 - z^2)
    assert scores[2] == pytest.approx(0.25 * math.exp(0.75), rel=1e-14)


def test_without_a_link_the_surrogate_sees_the_output_itself() -> None:
    asked = problem(100.0, 20.0)
    y = np.array([1.0, 2.0])
    assert asked.to_surrogate(y) is y
    assert asked.surrogate_potential is asked.potential
    assert asked.surrogate_acceptance is asked.acceptance


def test_with_a_link_potential_and_target_set_mean_the_same_outputs() -> None:
    asked = problem(0.9, -0.4, "logit")
    y = np.linspace(0.001, 0.999, 500)
    u = asked.to_surrogate(y)
    np.testing.assert_allclose(
        asked.surrogate_potential.value(u), asked.potential.value(y), rtol=1e-10, atol=1e-15
    )
    ((low, high),) = asked.surrogate_acceptance
    assert np.array_equal((low <= u) & (u <= high), asked.accepted(y))
    np.testing.assert_allclose(Logit().inverse([low, high]), asked.acceptance[0])


def test_certain_probabilities_stay_finite_for_the_surrogate() -> None:
    asked = problem(0.9, -0.4, "logit")
    assert np.isfinite(asked.to_surrogate(np.array([0.0, 1.0]))).all()


def test_accepted_probabilities_up_to_one_reach_to_infinity() -> None:
    asked = asked_of(0.2, at_least(0.7), "logit")
    ((low, high),) = asked.surrogate_acceptance
    assert low == pytest.approx(math.log(0.7 / 0.3))
    assert high == math.inf


def test_targets_beyond_any_probability_are_errors() -> None:
    with pytest.raises(TargetError, match=r"at most 0\.9 less or 0\.1 more is possible"):
        problem(0.9, 0.4, "logit")


def test_the_miss_is_the_distance_to_the_nearest_interval() -> None:
    found = misses(((0.0, 2.0), (4.0, np.inf)), np.array([-1.0, 2.5, 10.0]))
    assert found.tolist() == [1.0, 0.5, 0.0]
