"""Climbs to far targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayescfx.potentials import at_least
from bayescfx.search.climb import climb, remaining_way
from bayescfx.search.sweep import SweepState
from bayescfx.space.space import Space
from tests.search.questions import UNIT, asked
from tests.search.steps import run_step


def bowl(frame: pd.DataFrame) -> Any:
    """Return 10 minus the squared distance from (1, 1, 1, 1): smooth, at most 10."""
    return 10.0 - ((frame - 1.0) ** 2).sum(axis=1)


def stairs(frame: pd.DataFrame) -> Any:
    """Return the sum of all features, in steps of a quarter each."""
    return np.floor(4.0 * frame).sum(axis=1)


def state_for(f: Any, target: float, space: Space | None = None) -> SweepState:
    question = asked(space or Space(UNIT), at_least(target), f=f, rows=0, budget=2000)
    return SweepState(question, 24, 200)


def test_a_smooth_model_is_climbed_along_its_slope() -> None:
    state = state_for(bowl, 9.99)
    run_step(state.question, climb(state))
    assert state.record is not None
    assert state.starts is not None  # of further climbs


def test_a_model_with_steps_is_climbed_feature_by_feature() -> None:
    state = state_for(stairs, 16.0)  # every feature at its upper limit
    state.has_steps = True
    run_step(state.question, climb(state))
    assert state.record is not None


def test_a_climb_stays_within_the_rules() -> None:
    space = Space(UNIT).require("a + b <= 1.2")
    state = state_for(bowl, 9.9, space)
    _, calls = run_step(state.question, climb(state))
    X = np.vstack(calls)
    assert state.region.contains(X).all()
    assert state.record is None  # at most 10 - 2 * 0.4 ** 2
    assert state.y.max() > 9.5


def test_starts_are_used_up_one_by_one() -> None:
    state = state_for(lambda frame: 0.0 * frame["a"], 1.0)  # nothing helps
    run_step(state.question, climb(state))
    assert state.starts is not None
    n_starts = len(state.starts)
    assert n_starts > 0
    run_step(state.question, climb(state))
    assert len(state.starts) == n_starts - 1
    state.starts.clear()
    _, calls = run_step(state.question, climb(state))
    assert not calls


def test_the_remaining_way_shrinks_from_the_query_to_the_target() -> None:
    state = SweepState(asked(Space(UNIT), at_least(4.5), rows=0), 24, 200)
    assert remaining_way(state) == 1.0
    run_step(state.question, state.ask(np.array([[0.5, 0.9, 0.5, 0.5]]), 10))  # 3.8
    assert 0.3 < remaining_way(state) < 0.6
    run_step(state.question, state.ask(np.array([[0.5, 0.9, 0.9, 0.5]]), 10))  # 5.0
    assert remaining_way(state) == 0.0
