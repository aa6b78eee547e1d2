"""Random search, L-BFGS-B, and Bayesian optimisation of the potential itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Categorical, Integer
from bayescfx.potentials import reach
from bayescfx.search.baselines import LBFGSB, NaiveBayes, RandomSearch
from bayescfx.search.question import Search
from bayescfx.space.space import Space
from tests.search.kinds import KINDS, LEVELS, Kind, ask, finish
from tests.search.questions import drive

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
    assert drive(RandomSearch(batch=batch), question) == "exhausted"
    assert len(model.rows) == len(model.rows.drop_duplicates()) == 16


@pytest.mark.parametrize("search", [NaiveBayes(), LBFGSB()], ids=["bayes", "lbfgsb"])
def test_a_finite_region_is_exhausted(search: Search) -> None:
    question, model = ask(SMALL, 100)
    assert drive(search, question) == "exhausted"
    assert len(model.rows.drop_duplicates()) == 16


def test_the_batch_does_not_change_what_is_drawn() -> None:
    drawn = []
    for batch in (1, 5, 32):
        question, model = ask(KINDS["mixed"], 33, weight=0.1)
        finish(RandomSearch(batch=batch), question)
        drawn.append(model.rows)
    pd.testing.assert_frame_equal(drawn[0], drawn[1])
    pd.testing.assert_frame_equal(drawn[0], drawn[2])


def test_random_search_stops_early_only_if_it_is_satisfied() -> None:
    at_once = replace(KINDS["real"], target=reach(by=0.5))
    question, _ = ask(at_once, 400)
    assert drive(RandomSearch(batch=1), question) == "converged"
    assert question.accepted(question.y).sum() == 1
    for weight, n in ((0.1, 1), (0.0, 2)):
        question, _ = ask(at_once, 400, weight=weight, n=n)
        assert finish(RandomSearch(batch=1), question) == "budget"


def test_other_seeds_give_other_rows() -> None:
    drawn = []
    for seed in (0, 1):
        question, model = ask(KINDS["real"], 40, seed=seed)
        finish(RandomSearch(batch=4), question)
        drawn.append(model.rows)
    assert not drawn[0].iloc[1:].isin(drawn[1]).any().any()


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
    question, model = ask(replace(down, target=reach(by=0.5)), 9)
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


# ── Bayes ──


def test_naive_bayes_proposes_batches() -> None:
    question, model = ask(KINDS["real"], 11, weight=0.1)
    finish(NaiveBayes(starts=2, batch=4), question)
    assert [len(call) for call in model.calls] == [1, 2, 4, 4]


def test_naive_bayes_starts_from_failed_rows_alone() -> None:
    given = KINDS["real"]
    seen: list[int] = []

    def late(rows: pd.DataFrame) -> Any:
        seen.extend(range(len(rows)))
        return given.model(rows) if len(seen) > 6 or len(seen) == 1 else np.full(len(rows), np.nan)

    question, _ = ask(replace(given, model=late), 12, on_fault="skip")
    assert finish(NaiveBayes(), question) in ("budget", "converged")
    assert len(question.y) > 1
