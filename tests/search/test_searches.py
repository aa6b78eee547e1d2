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
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import OutOfTime, SpaceError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, OnFault, Stop
from bayescfx.features import Categorical, Integer, Ordinal, Real
from bayescfx.model.model import Model
from bayescfx.potentials.targets import increase
from bayescfx.potentials.wishes import Target
from bayescfx.search.baselines import LBFGSB, RandomSearch
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.naive import NaiveBayes
from bayescfx.search.question import Question, Search
from bayescfx.space.space import Space

METHODS: dict[str, Search] = {
    "bayes-cfx": BayesCFX(),
    "bayes": NaiveBayes(),
    "random": RandomSearch(batch=4),
    "lbfgsb": LBFGSB(),
    "gradient": ProjectedGradient(),
}
STEPS = {"bayes-cfx": 9, "bayes": 9, "random": 40, "lbfgsb": 60, "gradient": 60}  # budgets
WISH = increase(by=1.0)
LEVELS = ["red", "green", "blue", "grey"]


@dataclass(frozen=True)
class Kind:
    """A space with a query, a model, a wish that is easy to fulfil, and a check of raw rows."""

    space: Space
    query: Any
    model: Callable[[pd.DataFrame], Any]
    check: Callable[[pd.DataFrame], Any]
    target: Target = WISH


def _kinds() -> dict[str, Kind]:
    unit = {name: Real(0, 1) for name in "abcde"}
    low = dict.fromkeys("abcde", 0.25)
    abc = {name: unit[name] for name in "abc"}

    def inside(rows: pd.DataFrame) -> Any:
        return ((rows >= 0) & (rows <= 1)).to_numpy().all(axis=1)

    def few_changes(rows: pd.DataFrame) -> Any:
        return inside(rows) & ((rows != 0.25).to_numpy().sum(axis=1) <= 2)

    return {
        "real": Kind(
            Space(abc), dict.fromkeys("abc", 0.25), lambda r: 2 * r["a"] + r["b"] - r["c"], inside
        ),
        "integer": Kind(
            Space({name: Integer(0, 9) for name in "abc"}),
            {"a": 2, "b": 2, "c": 2},
            lambda r: 0.2 * r["a"] + 0.1 * r["b"] - 0.1 * r["c"],
            lambda r: r.isin(range(10)).all(axis=1) & (set(r.dtypes) == {np.dtype(int)}),
        ),
        "categorical": Kind(
            Space({name: Categorical(LEVELS) for name in "abc"}),
            {"a": "red", "b": "red", "c": "red"},
            lambda r: 1.0 * (r["a"] == "blue") + 0.25 * (r["b"] != r["c"]),
            lambda r: r.isin(LEVELS).all(axis=1),
        ),
        "mixed": Kind(
            Space(
                {
                    "a": Real(0, 1),
                    "b": Integer(0, 9),
                    "c": Ordinal(["low", "mid", "high"]),
                    "d": Categorical(LEVELS),
                }
            ),
            {"a": 0.25, "b": 2, "c": "low", "d": "red"},
            lambda r: 2 * r["a"] + 0.1 * r["b"] + 0.3 * (r["c"] == "high") + (r["d"] == "blue"),
            lambda r: (
                r["a"].between(0, 1)
                & r["b"].isin(range(10))
                & r["c"].isin(["low", "mid", "high"])
                & r["d"].isin(LEVELS)
            ),
        ),
        "at most k": Kind(
            Space(unit).max_changes(2), low, lambda r: r.sum(axis=1) + r["a"], few_changes
        ),
        "text rules": Kind(
            Space(abc).require("a <= b").require("a + b + c <= 2"),
            dict.fromkeys("abc", 0.25),
            lambda r: r["a"] + r["b"] + 0.5 * r["c"],
            lambda r: inside(r) & (r["a"] <= r["b"]) & (r.sum(axis=1) <= 2),
        ),
        "callable rules": Kind(
            Space(abc).require(lambda r: r["a"] ** 2 + r["b"] ** 2 <= 1, "in the disc"),
            dict.fromkeys("abc", 0.25),
            lambda r: 2 * r["a"] + r["b"] - r["c"],
            lambda r: inside(r) & (r["a"] ** 2 + r["b"] ** 2 <= 1),
        ),
        "derived": Kind(
            Space(abc).derive("c", lambda r: r["a"] * r["b"]),
            {"a": 0.25, "b": 0.25, "c": 0.0625},
            lambda r: r["a"] + 2 * r["c"],
            lambda r: inside(r) & (r["c"] == r["a"] * r["b"]),
        ),
        "cyclic": Kind(
            Space({"a": Real(0, 1), "b": Integer(0, 6, cyclic=True)}).move({"b": (-2, 2)}),
            {"a": 0.25, "b": 0},
            lambda r: 2 * r["a"] + 0.2 * (r["b"] == 5),
            lambda r: r["a"].between(0, 1) & r["b"].isin([5, 6, 0, 1, 2]),
        ),
    }


KINDS = _kinds()
NO_GRADIENT = ("integer", "categorical")  # regions without a continuous feature
PAIRS = [(m, k) for m in METHODS for k in KINDS if m != "gradient" or k not in NO_GRADIENT]
every_pair = pytest.mark.parametrize(("method", "kind"), PAIRS)


class Recorder:
    """A model that keeps every row it was asked for."""

    def __init__(self, model: Callable[[pd.DataFrame], Any]) -> None:
        self.model = model
        self.calls: list[pd.DataFrame] = []

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.calls.append(rows.copy())
        return self.model(rows)

    @property
    def rows(self) -> pd.DataFrame:
        return pd.concat(self.calls, ignore_index=True)


def ask(
    kind: Kind,
    budget: int,
    *,
    weight: float = 0.0,
    seed: int = 0,
    n: int = 1,
    deadline: Deadline = NEVER,
    on_fault: OnFault = "raise",
) -> tuple[Question, Recorder]:
    """Return a question with f(query) evaluated, and the model that records it."""
    region = kind.space.cost(weight=weight).around(kind.query)
    model = Recorder(kind.model)
    evaluator = Evaluator(
        Model(model), region.schema, Evaluations(), deadline=deadline, on_fault=on_fault
    )
    account = evaluator.account(region, budget)
    output = float(account.evaluate(region.query[None, :])[0])
    rng = np.random.default_rng(seed)
    return Question(account, output, kind.target, rng, deadline, n), model


def finish(search: Search, question: Question) -> str:
    """Run a search and return why it ended."""
    try:
        return search.run(question)
    except Stop as stop:
        return stop.reason
    except OutOfTime:
        return "timeout"


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
    return Run(ending, question.account.spent, model.rows, question.score(question.y))


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
    assert found.spent == STEPS[method] or found.ending in ("exhausted", "converged")


@every_pair
@pytest.mark.parametrize("budget", [1, 4])
def test_a_small_budget_is_never_exceeded(method: str, kind: str, budget: int) -> None:
    question, model = ask(KINDS[kind], budget, weight=0.1)
    ending = finish(METHODS[method], question)
    assert len(model.rows) == question.account.spent == budget
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
def test_an_easy_wish_is_nearly_fulfilled(method: str, kind: str) -> None:
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
    late = Deadline(at=0.0)
    question.account.evaluator.deadline = late
    assert finish(METHODS[method], replace(question, deadline=late)) == "timeout"
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

    question, model = ask(replace(given, model=slow), 100_000, weight=0.1, deadline=Deadline(4.5))
    assert finish(METHODS[method], question) == "timeout"
    assert len(model.calls) == 5


@pytest.mark.parametrize("kind", NO_GRADIENT)
def test_the_gradient_method_asks_for_a_continuous_feature(kind: str) -> None:
    question, model = ask(KINDS[kind], 10)
    message = "`ProjectedGradient` needs a continuous feature that may move; this query has none"
    with pytest.raises(SpaceError, match=message):
        METHODS["gradient"].run(question)
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


# ── random search ──

SMALL = Kind(
    Space({"a": Integer(0, 4), "b": Categorical(LEVELS)}).require(lambda r: r["a"] != 3),
    {"a": 0, "b": "red"},
    lambda r: 0.01 * r["a"],
    lambda r: r["a"] != 3,
)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_random_search_evaluates_a_finite_region_completely(batch: int) -> None:
    question, model = ask(SMALL, 100)
    assert RandomSearch(batch=batch).run(question) == "exhausted"
    assert len(model.rows) == len(model.rows.drop_duplicates()) == 16


@pytest.mark.parametrize("method", ["bayes", "lbfgsb"])
def test_a_finite_region_is_exhausted(method: str) -> None:
    question, model = ask(SMALL, 100)
    assert METHODS[method].run(question) == "exhausted"
    assert len(model.rows.drop_duplicates()) == 16


def test_the_batch_does_not_change_what_is_drawn() -> None:
    drawn = []
    for batch in (1, 5, 32):
        question, model = ask(KINDS["mixed"], 33, weight=0.1)
        finish(RandomSearch(batch=batch), question)
        drawn.append(model.rows)
    pd.testing.assert_frame_equal(drawn[0], drawn[1])
    pd.testing.assert_frame_equal(drawn[0], drawn[2])


def test_random_search_stops_early_only_if_nothing_can_be_gained() -> None:
    at_once = replace(KINDS["real"], target=increase(by=0.5))
    question, _ = ask(at_once, 400)
    assert RandomSearch(batch=1).run(question) == "converged"
    assert question.hits.sum() == 1
    for weight, n in ((0.1, 1), (0.0, 2)):
        question, _ = ask(at_once, 400, weight=weight, n=n)
        assert finish(RandomSearch(batch=1), question) == "budget"


def test_other_seeds_give_other_rows() -> None:
    one, two = run("random", "real", seed=0), run("random", "real", seed=1)
    assert not one.rows.iloc[1:].isin(two.rows).any().any()


# ── L-BFGS-B ──


def test_lbfgsb_starts_at_the_query_with_forward_differences() -> None:
    question, model = ask(KINDS["real"], 4)
    finish(LBFGSB(difference=0.01), question)
    moved = model.rows.to_numpy()[1:] - 0.25
    np.testing.assert_allclose(moved, 0.01 * np.eye(3), atol=1e-12)


def test_lbfgsb_finds_the_peak_of_a_smooth_model() -> None:
    smooth = replace(KINDS["real"], model=lambda r: np.sin(2 * r["a"]) + r["b"] ** 2 - r["c"])
    question, _ = ask(smooth, 200, weight=0.1)
    finish(LBFGSB(), question)
    assert question.score(question.y).max() > 0.999


def test_lbfgsb_stays_at_a_query_without_slope_and_starts_again() -> None:
    # AEP: exactly flat to the other side, where every forward difference leads
    down = replace(KINDS["real"], model=lambda r: -r["a"] - r["b"] - r["c"] + 0.75)
    question, model = ask(replace(down, target=increase(by=0.5)), 9)
    finish(LBFGSB(), question)
    rows = model.rows.to_numpy()
    assert np.abs(rows[:4] - 0.25).max() < 1e-3
    assert np.abs(rows[4] - 0.25).max() > 1e-2


def test_lbfgsb_moves_integers_by_whole_steps_and_keeps_levels_within_a_climb() -> None:
    question, model = ask(KINDS["mixed"], 12)
    finish(LBFGSB(), question)
    rows = model.rows
    assert rows["b"].tolist()[:4] == [2, 2, 3, 2]
    assert rows["c"].tolist()[:4] == ["low", "low", "low", "mid"]
    # one climb is a point and its three neighbours, again and again, at one level
    assert rows["d"].tolist() == ["red"] * 12


# ── naive Bayes ──


def test_naive_bayes_proposes_batches() -> None:
    question, model = ask(KINDS["real"], 11, weight=0.1)
    finish(NaiveBayes(starts=2, batch=4), question)
    assert [len(call) for call in model.calls] == [1, 2, 4, 4]


def test_naive_bayes_works_from_faults_alone_until_something_is_known() -> None:
    given = KINDS["real"]
    seen: list[int] = []

    def late(rows: pd.DataFrame) -> Any:
        seen.extend(range(len(rows)))
        return given.model(rows) if len(seen) > 6 or len(seen) == 1 else np.full(len(rows), np.nan)

    question, _ = ask(replace(given, model=late), 12, on_fault="skip")
    assert finish(NaiveBayes(), question) in ("budget", "converged")
    assert len(question.y) > 1


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
