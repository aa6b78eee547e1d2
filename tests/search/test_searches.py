"""What every search keeps to, on every kind of region."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import SpaceError
from bayescfx.search.baselines import LBFGSB, NaiveBayes, RandomSearch
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.question import Search
from tests.search.kinds import KINDS, ask, finish
from tests.search.questions import drive

METHODS: dict[str, Search] = {
    "bayes-cfx": BayesCFX(),
    "bayes": NaiveBayes(),
    "random": RandomSearch(batch=4),
    "lbfgsb": LBFGSB(),
    "gradient": ProjectedGradient(),
}
STEPS = {"bayes-cfx": 9, "bayes": 9, "random": 40, "lbfgsb": 60, "gradient": 60}  # budgets
NO_GRADIENT = ("integer", "categorical")  # regions without a continuous feature
PAIRS = [(m, k) for m in METHODS for k in KINDS if m != "gradient" or k not in NO_GRADIENT]
every_pair = pytest.mark.parametrize(("method", "kind"), PAIRS)


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    ending: str
    spent: int
    rows: pd.DataFrame
    score: Array


@cache
def run(method: str, kind: str, *, weight: float = 0.0, seed: int = 0) -> Run:
    question, model = ask(KINDS[kind], STEPS[method], weight=weight, seed=seed)
    ending = finish(METHODS[method], question)
    return Run(ending, question.spent, model.rows, question.score(question.y))


# ── what all keep to ──


@every_pair
@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_every_row_evaluated_lies_in_the_region(method: str, kind: str, weight: float) -> None:
    rows = run(method, kind, weight=weight).rows
    assert len(rows) > 1
    assert KINDS[kind].check(rows).all()


@every_pair
def test_the_budget_is_spent_to_the_last_row_or_the_search_has_ended(
    method: str, kind: str
) -> None:
    found = run(method, kind, weight=0.1)
    assert found.spent == len(found.rows)
    assert found.spent <= STEPS[method]
    # Bayes-CFX spares the last rows where they could not show what a new answer needs.
    spared = 2 * found.rows.shape[1] if method == "bayes-cfx" else 0
    left = STEPS[method] - found.spent
    assert found.ending in ("exhausted", "converged") or left <= spared


@every_pair
@pytest.mark.parametrize("budget", [1, 4])
def test_a_small_budget_is_never_exceeded(method: str, kind: str, budget: int) -> None:
    question, model = ask(KINDS[kind], budget, weight=0.1)
    ending = finish(METHODS[method], question)
    assert len(model.rows) == question.spent == budget
    assert ending == "budget"


@every_pair
def test_no_row_is_sent_to_the_model_twice(method: str, kind: str) -> None:
    assert not run(method, kind, weight=0.1).rows.duplicated().any()


@every_pair
def test_the_same_seed_gives_the_same_rows(method: str, kind: str) -> None:
    first = run(method, kind)
    question, model = ask(KINDS[kind], STEPS[method])
    assert finish(METHODS[method], question) == first.ending
    pd.testing.assert_frame_equal(model.rows, first.rows, check_exact=True)


@every_pair
def test_an_easy_target_is_nearly_reached(method: str, kind: str) -> None:
    found = run(method, kind)
    assert found.score[0] < 1e-9  # the query
    assert found.score.max() > 0.6


@every_pair
def test_nothing_that_was_given_is_changed(method: str, kind: str) -> None:
    given = KINDS[kind]
    query, described = given.query.copy(), repr(given.space)
    question, _ = ask(given, 5, weight=0.1)
    region = question.region
    before = [a.copy() for a in (region.query, region.low, region.high, region.scale, region.data)]
    state = str(np.random.get_state())  # noqa: NPY002  # the global state is what is tested
    finish(METHODS[method], question)
    after = (region.query, region.low, region.high, region.scale, region.data)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert given.query == query
    assert repr(given.space) == described
    assert str(np.random.get_state()) == state  # noqa: NPY002  # see above


@every_pair
def test_nothing_is_evaluated_after_the_deadline(method: str, kind: str) -> None:
    question, model = ask(KINDS[kind], 100, weight=0.1)
    with limited_to(Deadline(at=0.0)):
        assert finish(METHODS[method], question) == "timeout"
    assert len(model.calls) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_search_ends_when_time_runs_out_on_the_way(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    given = KINDS["real"]

    def slow(rows: pd.DataFrame) -> Any:
        clock[0] += 1.0
        return given.model(rows)

    question, model = ask(replace(given, model=slow), 100_000, weight=0.1)
    with limited_to(Deadline(4.5)):
        assert finish(METHODS[method], question) == "timeout"
    assert len(model.calls) == 5


@pytest.mark.parametrize("kind", NO_GRADIENT)
def test_the_gradient_method_asks_for_a_continuous_feature(kind: str) -> None:
    question, model = ask(KINDS[kind], 10)
    message = "`ProjectedGradient` needs a continuous feature that may move; this query has none"
    with pytest.raises(SpaceError, match=message):
        drive(METHODS["gradient"], question)
    assert len(model.rows) == 1


FAULTY = replace(
    KINDS["integer"],
    model=lambda r: np.where(r["a"] % 3 == 1, np.nan, KINDS["integer"].model(r)),
)


@pytest.mark.parametrize("method", ["bayes", "random", "lbfgsb"])
def test_rows_on_which_the_model_fails_are_passed_over(method: str) -> None:
    question, model = ask(FAULTY, 30, weight=0.1, on_fault="skip")
    assert finish(METHODS[method], question) == "budget"
    assert not model.rows.duplicated().any()
    assert question.score(question.y).max() > 0.6


def test_a_gradient_search_turns_back_where_the_model_fails() -> None:
    given = KINDS["real"]
    faulty = replace(given, model=lambda r: np.where(r["a"] > 0.5, np.nan, given.model(r)))
    question, _ = ask(faulty, 60, on_fault="skip")
    finish(METHODS["gradient"], question)
    assert question.score(question.y).max() > 0.6


# ── settings ──


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomSearch(batch=0), "`batch` must be a whole number of at least 1; got 0."),
        (lambda: RandomSearch(batch=True), "`batch` must be a whole number of at least 1; got T"),
        (lambda: LBFGSB(difference=0.0), "`difference` must be a positive number; got 0.0."),
        (lambda: LBFGSB(tolerance=float("nan")), "`tolerance` must be a positive number; got nan"),
        (lambda: LBFGSB(memory=0), "`memory` must be a whole number of at least 1; got 0."),
        (lambda: NaiveBayes(starts=-1), "`starts` must be a whole number of at least 0; got -1."),
        (lambda: NaiveBayes(batch=0), "`batch` must be a whole number of at least 1; got 0."),
        (lambda: ProjectedGradient(step=-1.0), "`step` must be a positive number; got -1.0."),
        (lambda: ProjectedGradient(tolerance=0.0), "`tolerance` must be a positive number"),
        (lambda: ProjectedGradient(restarts=-1), "`restarts` must be a whole number of at least 0"),
        (lambda: ProjectedGradient(iterations=0), "`iterations` must be a whole number of at le"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], Search], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
