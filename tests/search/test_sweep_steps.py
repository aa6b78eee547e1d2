"""The steps of one sweep, each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayescfx.data import Real
from bayescfx.potentials import at_least, increase
from bayescfx.potentials.targets import Target
from bayescfx.search.finish import distinct
from bayescfx.search.question import Question
from bayescfx.search.sweep import (
    TUNING,
    SweepState,
    _ask_singles,
    _shorten_answers,
    _shorter_answers,
)
from bayescfx.space.space import Space
from tests.search.questions import UNIT, asked
from tests.search.steps import run_step


def state_of(question: Question) -> SweepState:
    return SweepState(question, 24, 200)


def unreached(budget: int = 80) -> SweepState:
    """A state that knows the query only, 1.5 below its target."""
    return state_of(asked(Space(UNIT), at_least(4.5), rows=0, budget=budget))


SLOPES = np.array([1.0, 2.0, 3.0, 0.0])
CUBE = Space({name: Real(0, 1) for name in "abc"})
START = dict.fromkeys("abc", 0.0)
HIT = np.array([0.5, 0.9, 0.9, 0.5])  # 5.0
FAR_HIT = np.array([0.9, 0.9, 0.9, 0.9])  # 5.4


def test_the_query_is_known_from_the_start() -> None:
    state = unreached()
    np.testing.assert_array_equal(state.X, state.region.query[None])
    assert state.y.tolist() == [3.0]
    assert state.origin == 3.0
    assert state.record is None
    assert state.cost_limit == np.inf


def test_of_many_known_rows_the_best_are_kept() -> None:
    question = asked(Space(UNIT), increase(by=1.0), rows=2 * TUNING.known_rows, budget=2000)
    state = state_of(question)
    assert len(state.y) in (TUNING.known_rows, TUNING.known_rows + 1)  # and the query
    hits = question.accepted(question.y).sum()
    assert state.question.accepted(state.y).sum() == min(hits, TUNING.known_rows)


@pytest.mark.parametrize(
    ("budget", "growth"), [(100, 1.0), (2000, 1.0), (8000, 4.0), (10**6, 10.0)]
)
def test_larger_budgets_try_more(budget: int, growth: float) -> None:
    state = unreached(budget)
    assert state.batch == round(200 * growth)
    assert state.n_values == round(24 * np.sqrt(growth))


def test_rows_that_are_not_allowed_or_affordable_are_not_evaluated() -> None:
    state = unreached()
    X = np.array([[0.1, 0.5, 0.5, 0.5], [1.5, 0.5, 0.5, 0.5], [0.2, 0.5, 0.5, 0.5], HIT])
    y, calls = run_step(state.question, state.ask(X, 2))
    np.testing.assert_array_equal(calls[0], X[[0, 2]])
    assert np.isnan(y).tolist() == [False, True, False, True]
    assert state.is_cut
    assert len(state.y) == 3


def test_the_limit_is_the_cost_of_the_last_answer_once_there_are_enough() -> None:
    for n, is_limited in ((1, True), (2, False)):
        question = asked(Space(UNIT), at_least(4.5), rows=0)
        question.n = n
        state = state_of(question)
        run_step(state.question, state.ask(np.array([HIT]), 10))
        assert state.record is not None
        assert np.isfinite(state.cost_limit) == is_limited


def test_rows_are_kept_to_finish_answers_and_more_while_nothing_hits() -> None:
    state = unreached()
    assert state.spare == state.question.left - 80 // TUNING.kept_of_misses
    run_step(state.question, state.ask(np.array([FAR_HIT]), 10))
    # Four changes: each alone, and all that may go together, until none is left.
    assert state.for_take_back() == min(4 * 5, TUNING.kept_for_take_back * 80)
    assert state.spare == state.question.left - state.for_take_back()
    few = state_of(asked(Space(UNIT), at_least(4.5), rows=0, budget=2000))
    run_step(few.question, few.ask(np.array([FAR_HIT]), 10))
    assert few.spare == few.question.left - 2000 // TUNING.kept_of_hits


def test_a_standing_is_better_with_more_answers_or_a_clearly_lower_cost() -> None:
    state = unreached()
    before = state.standing
    assert before[0] == 0
    assert before[1] == pytest.approx(-1.5, abs=0.1)  # the miss, less the tolerance
    assert not state.is_better_than(before)
    run_step(state.question, state.ask(np.array([FAR_HIT]), 10))
    assert state.is_better_than(before)
    reached = state.standing
    trifle = FAR_HIT - np.array([0.0, 0.0, 0.0, 1e-4])
    run_step(state.question, state.ask(trifle[None], 10))
    assert not state.is_better_than(reached)
    run_step(state.question, state.ask(HIT[None], 10))
    assert state.is_better_than(reached)


def test_without_a_cost_of_moving_enough_answers_satisfy() -> None:
    state = state_of(asked(Space(UNIT).cost(weight=0), at_least(4.5), rows=0))
    assert not state.is_satisfied
    run_step(state.question, state.ask(HIT[None], 10))
    assert state.is_satisfied
    costly = unreached()
    run_step(costly.question, costly.ask(HIT[None], 10))
    assert not costly.is_satisfied


def test_gains_are_measured_from_each_base_and_unscored_moves_left_out() -> None:
    state = unreached(budget=2000)
    bases = np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.9, 0.5, 0.5]])
    step = _ask_singles(state, list(bases), np.array([3.0, 3.8]), 4, np.inf)
    X = next(step)
    y = X @ SLOPES
    y[0] = np.nan
    with pytest.raises(StopIteration) as end:
        step.send(y)
    found = end.value.value
    assert sum(len(moves.X) for moves in found) == len(X) - 1
    for base, moves in zip(bases, found, strict=True):
        np.testing.assert_allclose(moves.gain, (moves.X - base) @ SLOPES)


# ── shorter answers ──


def swept(f: Any, target: Target, X: Any, *, space: Space = CUBE, n: int = 1) -> SweepState:
    """Return a sweep that knows some rows."""
    question = asked(space, target, f=f, query=START, rows=0, budget=500)
    question.n = n
    state = state_of(question)
    run_step(question, state.ask(np.array(X), 500))
    return state


def test_each_answer_is_shortened_once() -> None:
    state = swept(lambda r: r["a"] + r["b"], at_least(0.9), [[0.9, 0.5, 0.0]])
    rows = _shorter_answers(state)
    assert len(rows)
    assert (np.diff(state.region.cost(rows)) >= 0.0).all()
    assert not len(_shorter_answers(state))


def test_a_sweep_is_finished_without_needless_changes_and_nearly_as_short_as_can_be() -> None:
    """A step in a, another in b, nothing in c."""

    def steps(r: Any) -> Any:
        return 1.0 * (r["a"] > 0.3) + 1.0 * (r["b"] > 0.6)

    state = swept(steps, at_least(2), [[0.9, 0.9, 0.7], [0.9, 0.0, 0.0], [0.0, 0.9, 0.0]])
    run_step(state.question, _shorten_answers(state))
    record = state.record
    assert record is not None
    [best] = record.answers
    assert best[2] == 0.0
    # No change can be shortened by an eighth.
    assert 7 / 8 * best[0] <= 0.3 < best[0]
    assert 7 / 8 * best[1] <= 0.6 < best[1]


def test_several_answers_of_a_sweep_are_settled() -> None:
    state = swept(lambda r: r.max(axis=1), at_least(0.5), [[0.9, 0.9, 0.0], [0.0, 0.9, 0.8]], n=3)
    run_step(state.question, _shorten_answers(state))
    X = state.question.X[distinct(state.question, 3)]
    assert len(X) == 3
    assert (state.region.changes(X).sum(axis=1) == 1).all()
