"""Budget, time, interruption, seeds, and what is known already."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.errors import BayesCFXWarning
from tests.any_model import METHODS_FOR_ANY_MODEL
from tests.conftest import (
    ZERO,
    Recorder,
    codes,
    cube,
    mixed,
    people,
    pipeline,
    plane,
    stubborn,
)

# ── budget, time, interruption ──


@pytest.mark.parametrize("method", [name for name in METHODS_FOR_ANY_MODEL if name != "auto"])
@pytest.mark.parametrize("budget", [1, 2, 3, 17])
def test_the_budget_is_exact(method: str, budget: int) -> None:
    model = Recorder(plane)
    answer = cfx.explain(model, ZERO, cube(), 40.0, method=stubborn(method), budget=budget, rng=0)
    assert model.n == answer.n_evaluations == len(answer.trace) == len(answer.evaluations) == budget
    assert answer.stopped == "budget"
    assert not model.rows.duplicated().any()


class Clock:
    """A clock that moves on with every model call, and a little with every look at it."""

    def __init__(self, per_call: float, per_look: float) -> None:
        self.now, self.per_call, self.per_look = 0.0, per_call, per_look
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now += self.per_look
        return self.now

    def model(self, rows: Any) -> Any:
        self.now += self.per_call
        return plane(rows)


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_the_time_is_kept_between_model_calls(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(per_call=1.0, per_look=0.0)
    monkeypatch.setattr(time, "monotonic", clock)
    answer = cfx.explain(
        clock.model, ZERO, cube(), 40.0, method=method, budget=1000, timeout=3.5, rng=0
    )
    assert answer.stopped == "timeout"
    assert clock.now == 4.0  # no model call begins after the deadline
    assert answer.status == "best_guess"
    assert "the time limit was reached" in repr(answer)


def test_the_time_is_kept_while_fitting_and_proposing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(per_call=0.0, per_look=0.01)
    monkeypatch.setattr(time, "monotonic", clock)
    answer = cfx.explain(clock.model, ZERO, cube(), 40.0, budget=1000, timeout=0.3, rng=0)
    assert answer.stopped == "timeout"
    # Looks after the deadline: those that end the search, the checks and the rounding, and the
    # report's.
    assert clock.now < 0.3 + 7 * clock.per_look


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_the_time_is_kept_by_slow_rules(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(per_call=0.0, per_look=0.0)
    monkeypatch.setattr(time, "monotonic", clock)

    def rule(rows: Any) -> Any:
        clock.now += 1.0
        return np.asarray(rows)[:, 0] > 1e9 if clock.now > 1 else np.ones(len(rows), dtype=bool)

    space = cube().require(rule)
    answer = cfx.explain(
        clock.model, ZERO, space, 40.0, method=method, budget=1000, timeout=8, rng=0
    )
    assert answer.stopped == "timeout"
    assert clock.now <= 9.0  # no rule is tested after the deadline


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_no_time_at_all_still_gives_an_answer(method: str) -> None:
    answer = cfx.explain(plane, ZERO, cube(), 2.0, method=method, timeout=0, rng=0)
    assert answer.stopped == "timeout"
    assert answer.n_evaluations == 1
    assert answer.best.changes == {}


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_steps_are_heard_after_each_model_call(method: str) -> None:
    model, steps = Recorder(plane), list[cfx.Step]()
    cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=12, rng=0, on_step=steps.append)
    assert [s.n_evaluations for s in steps] == np.cumsum(model.sizes)[1:].tolist()
    assert {(s.question, s.budget, s.reached) for s in steps} == {(0, 12, False)}
    potential = [s.potential for s in steps]
    assert potential == sorted(potential)
    with pytest.raises(AttributeError):
        steps[0].output = 1.0  # type: ignore[misc]  # frozen, which is what is tested


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
@pytest.mark.parametrize("interruption", [StopIteration, KeyboardInterrupt])
def test_on_step_ends_the_search_with_the_best_so_far(
    method: str, interruption: type[BaseException]
) -> None:
    steps: list[cfx.Step] = []

    def listen(step: cfx.Step) -> None:
        steps.append(step)
        if step.n_evaluations >= 6:
            raise interruption

    model = Recorder(plane)
    answer = cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=50, rng=0, on_step=listen)
    assert answer.stopped == "interrupted"
    assert answer.n_evaluations == model.n == steps[-1].n_evaluations
    assert answer.best.output == steps[-1].output
    assert "it was interrupted" in repr(answer)


@pytest.mark.parametrize("method", ["bayes-cfx", "lbfgsb"])
def test_an_error_in_on_step_ends_the_search_with_a_warning(method: str) -> None:
    def listen(step: cfx.Step) -> None:
        raise ZeroDivisionError("oh")

    with pytest.warns(BayesCFXWarning) as caught:
        answer = cfx.explain(
            plane, ZERO, cube(), 40.0, method=method, budget=50, rng=0, on_step=listen
        )
    assert str(caught[0].message) == (
        "`on_step` raised ZeroDivisionError('oh'), which ended the search. "
        "Raise StopIteration to end it quietly."
    )
    assert caught[0].filename == __file__
    assert answer.stopped == "interrupted"


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_ctrl_c_in_the_model_ends_the_search_with_the_best_so_far(method: str) -> None:
    calls = [0]

    def model(rows: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt
        return plane(rows)

    answer = cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=100, rng=0)
    assert answer.stopped == "interrupted"
    assert len(answer.evaluations) < 100


# ── seeds ──


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_the_same_seed_gives_the_same_answer_and_leaves_the_global_state_alone(method: str) -> None:
    before = str(np.random.get_state())  # noqa: NPY002  # the global state is what is tested

    def ask(rng: Any) -> cfx.Explanation:
        return cfx.explain(
            plane, ZERO, cube(), cfx.increase(by=1), method=method, budget=9, n=2, rng=rng
        )

    first, again = ask(7), ask(7)
    assert codes(first) == codes(again)
    assert first.trace.tolist() == again.trace.tolist()
    assert codes(ask(np.random.default_rng(7))) == codes(first)
    assert first.seed == 7
    assert str(np.random.get_state()) == before  # noqa: NPY002  # see above
    plain = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))
    assert codes(ask(plain)) == codes(first)


def test_batches_are_deterministic() -> None:
    model = Recorder(plane)
    for _ in range(2):
        cfx.explain(model, ZERO, cube(), 2.0, method=cfx.BayesCFX(batch=16), budget=60, rng=0)
    half = len(model.sizes) // 2
    assert model.sizes[:half] == model.sizes[half:]
    assert max(model.sizes) == 16
    asked = model.rows
    first, second = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    assert first.reset_index(drop=True).equals(second.reset_index(drop=True))


# ── what is known already ──


def test_a_second_question_is_cheaper() -> None:
    known, X = cfx.Evaluations(), mixed()
    model = Recorder(pipeline("histogram").predict)
    target = cfx.reach(by=2)
    first = cfx.explain(model, X.iloc[0], people(), target, budget=60, rng=0, evaluations=known)
    assert first.reached
    assert first.evaluations is known
    assert len(known) <= model.n == first.n_evaluations  # one row may have been checked again
    second = cfx.explain(model, X.iloc[0], people(), target, budget=60, rng=1, evaluations=known)
    assert second.reached
    assert second.n_evaluations < first.n_evaluations
    assert second.best.cost <= first.best.cost
    # Is it the same model, still? The first call checks that only if a row is left.
    assert model.rows.astype(str).duplicated().sum() in (2, 3)


def test_evaluations_in_a_file_serve_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "known.db"
    model = Recorder(plane)
    with cfx.Evaluations.open(path) as known:
        first = cfx.explain(model, ZERO, cube(), 1.2, budget=30, rng=0, evaluations=known)
    spent = model.n
    with cfx.Evaluations.open(path) as known:
        assert len(known) == spent
        again = cfx.explain(model, ZERO, cube(), 1.2, budget=30, rng=0, evaluations=known)
    assert first.reached
    assert again.reached
    assert again.best.cost <= first.best.cost
    assert model.rows.duplicated().sum() == 3  # to see whose they are
