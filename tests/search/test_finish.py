"""The finisher: answers without needless changes; and Bayes-CFX between its start rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, Stop
from bayescfx.models.model import Model
from bayescfx.potentials import at_least, increase
from bayescfx.potentials.targets import Target
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.finish import (
    distinct,
    finish,
    halve,
    needless,
    shorter_rows,
)
from bayescfx.search.objectives import FlatBoxes
from bayescfx.search.question import Question
from bayescfx.search.start import single_changes
from bayescfx.space.neighbourhood import exchange, n_to_settle, take_back
from bayescfx.space.space import Space
from tests.search.questions import drive


def ask(
    f: Any, space: Space, query: Any, target: Target, *, budget: int, n: int = 1, seed: int = 0
) -> Question:
    region = space.around(query)
    evaluator = Evaluator(Model(f), region.schema, Evaluations())
    question = Question(evaluator, region, budget, np.random.default_rng(seed), n=n)
    question.begin(target, float(question.evaluate(region.query[None])[0]))
    return question


def run_to_end(question: Question) -> str:
    try:
        return drive(BayesCFX(), question)
    except Stop as stop:
        return stop.stopped


def answers(question: Question) -> Array:
    return question.X[distinct(question, question.n)]


MIXED = Space({"a": Real(0, 1), "b": Integer(0, 9), "c": Categorical(list("xyz"))})
OWN = {"a": 0.5, "b": 5, "c": "x"}


def mixed(f: Any, budget: int = 50, n: int = 1) -> Question:
    return ask(f, MIXED, OWN, increase(by=1.0), budget=budget, n=n)


# ── rows ──


def test_each_change_is_taken_back_alone() -> None:
    region = MIXED.around(OWN)
    X = np.array([[0.9, 9.0, 2.0], [0.5, 7.0, 0.0]])
    back = {tuple(row) for row in take_back(region, X).tolist()}
    assert back == {(0.5, 9.0, 2.0), (0.9, 5.0, 2.0), (0.9, 9.0, 0.0)}  # the query is no row to try


def test_changes_are_halved_from_the_last_miss_on() -> None:
    question = mixed(lambda r: 4.0 * (r["a"] > 0.85))
    x = np.array([[0.9, 5.0, 0.0]])
    assert halve(question, x).tolist() == [[0.7, 5.0, 0.0]]
    question.evaluate(np.array([[0.7, 5.0, 0.0]]))
    assert halve(question, x) == pytest.approx(np.array([[0.8, 5.0, 0.0]]))


def test_exchanged_rows_are_nearer_and_change_fewer_features() -> None:
    region = MIXED.around(OWN)
    x = np.array([[0.6, 8.0, 1.0]])
    rows = exchange(region, x)
    assert len(rows)
    assert region.contains(rows).all()
    assert (region.changes(rows).sum(axis=1) <= 2).all()
    assert (region.cost(rows) < region.cost(x)[0]).all()
    longer = rows[(rows[:, 0] > 0.6) & (rows[:, 2] == 0.0)]
    assert len(longer)  # one dropped, another lengthened


def test_rows_with_few_values_are_tried_value_by_value() -> None:
    region = MIXED.around(OWN)
    rows = single_changes(region)
    assert (region.changes(rows).sum(axis=1) == 1).all()
    assert sorted(rows[rows[:, 1] != 5.0, 1].tolist()) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert sorted(rows[rows[:, 2] != 0.0, 2].tolist()) == [1.0, 2.0]
    first = rows[:3]
    assert region.changes(first).any(axis=0).all()  # each feature once, before any twice
    later = rows[6:]
    assert (np.diff(region.distance(later)) >= -1e-12).all()
    assert set(map(tuple, single_changes(region, 0.0)[:, :1].tolist())) == {(0.5,)}


def test_features_that_move_together_are_tried_together() -> None:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "c": Real(0, 1)}).together("a", "b")
    region = space.around({"a": 0.5, "b": 0.5, "c": 0.5})
    changed = {tuple(row) for row in region.changes(single_changes(region)).tolist()}
    assert changed == {(True, True, False), (False, False, True)}


# ── walking back ──


def test_needless_changes_are_taken_back() -> None:
    question = mixed(lambda r: 1.0 * (r["a"] > 0.8))
    question.evaluate(np.array([[0.95, 8.0, 2.0]]))
    for X in (rounds := finish(question, 40)):
        y = question.evaluate(X)
        while True:
            try:
                y = question.evaluate(rounds.send(y))
            except StopIteration:
                break
    (x,) = answers(question)
    assert x[1:].tolist() == [5.0, 0.0]
    assert 0.8 < x[0] < 0.83


def test_a_row_is_tried_only_if_it_can_be_settled() -> None:
    region = MIXED.around(OWN)
    X = np.array([[0.5, 6.0, 0.0], [0.6, 6.0, 0.0], [0.6, 6.0, 1.0]])
    assert n_to_settle(region, X).tolist() == [0, 2, 5]


def test_an_answer_with_a_needless_change_is_not_returned() -> None:
    question = mixed(lambda r: 1.0 * (r["a"] > 0.55), n=3)
    X = np.array([[0.9, 5.0, 0.0], [0.9, 9.0, 0.0], [0.56, 9.0, 1.0]])
    question.evaluate(X)
    assert needless(question.region, X, X[1])
    assert not needless(question.region, X, X[2])  # as far as is known
    assert {tuple(x) for x in answers(question).tolist()} == {tuple(X[0]), tuple(X[2])}


def test_a_nearly_equal_answer_with_a_needless_change_does_not_replace_one_without() -> None:
    question = mixed(lambda r: 1.0 * (r["a"] > 0.8), n=3)
    X = np.array([[0.82, 5.0, 0.0], [0.82, 9.0, 0.0], [0.825, 9.0, 0.0]])
    question.evaluate(X)
    assert not any(needless(question.region, X, x) for x in answers(question))


def test_a_batch_leaves_enough_rows_to_settle_its_hits() -> None:
    names = list("abcd")
    space = Space({name: Real(0, 1) for name in names})
    question = ask(
        lambda r: r[names].sum(axis=1), space, dict.fromkeys(names, 0.0), at_least(1.5), budget=99
    )
    question.evaluate(np.array([[0.4, 0.4, 0.4, 0.4]]))
    rounds = finish(question, 13, batch=50)
    assert len(next(rounds)) == 4  # each change taken back
    question.evaluate(take_back(question.region, answers(question)))
    tried = rounds.send(np.empty(4))
    assert 4 + len(tried) + n_to_settle(question.region, tried).max() <= 13


@pytest.mark.parametrize(
    ("steps", "n_seeds"),
    [
        (False, 3),
        pytest.param(False, 8, marks=pytest.mark.slow),
        pytest.param(True, 8, marks=pytest.mark.slow),
    ],
)
def test_hardly_any_of_several_answers_has_a_needless_change(steps: bool, n_seeds: int) -> None:
    data = pd.DataFrame(np.random.default_rng(0).uniform(size=(80, 5)), columns=list("abcde"))

    def f(rows: pd.DataFrame) -> Any:
        a, b, c, d = (np.floor(5 * rows[k]) / 5 if steps else rows[k] for k in "abcd")
        return 2 * a + b + c * d

    query, found, needless = dict.fromkeys("abcde", 0.3), 0, 0
    for seed in range(n_seeds):
        question = ask(f, Space.from_data(data), query, increase(by=0.6), budget=80, n=3, seed=seed)
        run_to_end(question)
        X = answers(question)
        assert question.accepted(question.y)[distinct(question, 3)].all()
        found += len(X)
        back = take_back(question.region, X)
        y = np.asarray(f(pd.DataFrame(back, columns=list("abcde"))), dtype=np.float64)
        needless += int(question.accepted(y).sum())
    assert found >= 1.5 * n_seeds
    # One of 24: a row that becomes the third answer with the last row of the budget.
    assert needless <= n_seeds // 8


# ── flats ──


def test_between_rows_with_the_same_output_a_model_is_flat() -> None:
    region = MIXED.around(OWN)
    X = np.array([[0.5, 5, 0], [0.6, 5, 0], [0.8, 7, 0], [0.6, 5, 1], [0.9, 5, 0], [0.95, 5, 0.0]])
    y = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    flats = FlatBoxes(region, X, y, y < 2.0)
    probe = np.array([[0.7, 6, 0], [0.7, 6, 1], [0.55, 5, 0], [0.92, 5, 0.0]])
    assert flats.hold(probe).tolist() == [True, False, False, False]  # hits are no flats
    seen = np.vstack([X, [0.7, 6.0, 0.0]])
    assert (
        not FlatBoxes(region, seen, np.append(y, 0.5), np.append(y < 2.0, True)).hold(probe).any()
    )


# ── not blind ──


@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_peak_between_the_starts_is_found(seed: int, cyclic: bool) -> None:
    """Rides peak at eight; the hours within three of six are seven values."""
    rng, n = np.random.default_rng(0), 600
    data = pd.DataFrame(
        {
            "hour": rng.integers(0, 24, n),
            "warmth": rng.uniform(-5, 35, n).round(1),
            "damp": rng.uniform(20, 100, n).round(),
            "wind": rng.gamma(2, 6, n).round(1),
            "month": rng.integers(1, 13, n),
            "weekday": rng.integers(0, 7, n),
            "holiday": rng.integers(0, 2, n),
            "weather": rng.choice(["clear", "mist", "rain"], n),
        }
    )

    def rides(rows: pd.DataFrame) -> Any:
        mild = 1.5 * rows["warmth"] - 0.25 * rows["damp"] - 0.5 * rows["wind"]
        mild += 2.5 * np.sin(rows["month"] / 2) - 20.0 * (rows["weather"] == "rain")
        rush = 330.0 * (rows["hour"] == 8) + 60.0 * (rows["hour"] > 8)
        return np.maximum(30.0 + mild + rush, 0.0)

    kinds = {"hour": Integer(0, 23, cyclic=True)} if cyclic else None
    space = Space.from_data(data, kinds=kinds).between({"hour": (3, 9)})
    query = data.iloc[0].to_dict() | {"hour": 6, "warmth": 12.0, "damp": 60.0, "weather": "clear"}
    question = ask(rides, space, query, at_least(300), budget=50, seed=seed)
    run_to_end(question)
    x = question.X[question.best]
    assert question.reached
    assert question.region.changes(x[None])[0].tolist() == [True] + [False] * 7
    assert x[0] == 8.0


@pytest.mark.parametrize("n_seeds", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_column_that_is_mostly_zero_is_not_overlooked(n_seeds: int) -> None:
    """A second floor alone is enough, where many small changes are too."""
    rng, n = np.random.default_rng(0), 400
    data = pd.DataFrame(
        {
            "upper": np.where(rng.random(n) < 0.57, 0, rng.normal(800, 200, n)).round(),
            "ground": rng.normal(1100, 250, n).round(),
            "kitchens": np.where(rng.random(n) < 0.95, 1, 2),
            "garage": rng.choice(["finished", "rough", "unfinished"], n),
            **{f"area {k}": rng.normal(500, 100, n).round() for k in range(8)},
        }
    )
    rng = np.random.default_rng(14)
    stairs = [name for name in data if name not in ("kitchens", "garage")]
    at = {name: np.sort(rng.choice(np.unique(data[name]), 12, replace=False)) for name in stairs}
    rise = {name: rng.exponential(1, 12) * rng.choice([1, 1, -0.5], 12) for name in stairs}

    def price(rows: Any) -> Any:
        worth = {"finished": 109.0, "rough": 103.0, "unfinished": 100.0}
        y = rows["garage"].map(worth).to_numpy(float) - 15.0 * (rows["kitchens"].to_numpy() == 2)
        for name in stairs:
            above = rows[name].to_numpy(float)[:, None] > at[name]
            y = y + above @ rise[name] * (6.0 if name == "upper" else 3.0)
        return y

    query = data.iloc[3].to_dict() | {"upper": 0.0, "kitchens": 1, "garage": "finished"}
    ratios = []
    for seed in range(n_seeds):
        question = ask(
            price, Space.from_data(data), query, increase(by=25.0), budget=100, seed=seed
        )
        run_to_end(question)
        floors = np.repeat(question.region.query[None], 1400, axis=0)
        floors[:, 0] = np.arange(1400.0)
        enough = question.accepted(price(question.region.rows(floors)))
        nearest = question.region.distance(floors[enough]).min()
        best = question.region.distance(question.X[[question.best]])[0]
        ratios.append(best / nearest if question.reached else np.inf)
    n_missed = int((np.array(ratios) > 1.1).sum())
    assert n_missed <= n_seeds // 5  # all but one of five


# ── many rows in few calls ──

CUBE = Space({name: Real(0, 1) for name in "abc"})
START = dict.fromkeys("abc", 0.0)


def test_a_change_is_shortened_up_to_the_longest_miss() -> None:
    region = CUBE.around(START)
    x = np.array([0.8, 0.4, 0.0])
    scored = np.array([[0.4, 0.4, 0.0], [0.2, 0.4, 0.0], [0.6, 0.1, 0.0]])
    first, second = shorter_rows(region, scored, np.ones(3, dtype=bool), x, (0.0, 0.5))
    np.testing.assert_allclose(first[:, 0], [0.4, 0.6])  # from the miss at 0.4 on
    np.testing.assert_allclose(second[:, 1], [0.0, 0.2])  # no miss on this line
    hits = np.zeros(3, dtype=bool)
    first, _ = shorter_rows(region, scored, hits, x, (0.0, 0.5))
    np.testing.assert_allclose(first[:, 0], [0.0, 0.4])


def test_levels_are_taken_back_and_features_that_move_together_shortened_together() -> None:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "c": Categorical(list("xy"))})
    region = space.together("a", "b").around({"a": 0.0, "b": 0.0, "c": "x"})
    x = np.array([0.8, 0.4, 1.0])
    fractions = tuple(np.arange(8) / 8)
    level, block = shorter_rows(region, x[None][:0], np.empty(0, dtype=bool), x, fractions)
    np.testing.assert_array_equal(level, [[0.8, 0.4, 0.0]])
    assert len(block) == 8
    np.testing.assert_allclose(block[:, 1], 0.5 * block[:, 0])
    np.testing.assert_array_equal(block[0], [0.0, 0.0, 1.0])
    halves = shorter_rows(region, x[None][:0], np.empty(0, dtype=bool), x, (0.5,))
    assert [tuple(row) for row in np.vstack(halves).tolist()] == [(0.4, 0.2, 1.0)]


def test_rules_limit_how_short_a_change_may_be_without_a_model_row() -> None:
    region = CUBE.require("a >= 0.6").around(START)
    x = np.array([0.8, 0.4, 0.0])
    fractions = tuple(np.arange(8) / 8)
    first, _ = shorter_rows(region, x[None][:0], np.empty(0, dtype=bool), x, fractions)
    assert len(first) == 8
    assert (first[:, 0] >= 0.6).all()
