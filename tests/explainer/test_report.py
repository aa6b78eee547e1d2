"""How searches end, and how the answer reports it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.potentials import Target
from bayescfx.result.wording import plausibility
from bayescfx.search.verdict import Conclusion, Verdict
from tests.conftest import (
    ZERO,
    cube,
    plane,
)


def test_an_unreachable_target_is_said_to_be_so() -> None:
    space = cube().between({"a": (0, 0.4)}).fix("c")
    answer = cfx.explain(plane, ZERO, space, 4.0, budget=100, rng=0)
    assert answer.status == "unreachable"
    assert answer.stopped == "unreachable"
    assert not answer.reached
    assert answer.n_evaluations < 100
    low, high = answer.reachable
    assert low < 0.5 < high < 1.6
    # The best guess is as near as any row came, but for rounding.
    assert answer.best.output == pytest.approx(high, rel=1e-2)
    assert answer.probability_reachable is not None
    assert answer.probability_reachable < 0.05
    assert {(each.words, each.evidence) for each in answer.binding} == {
        ("limit on 'a'", "checked"),
        ("'c' being fixed", "checked"),
    }
    text = repr(answer)
    assert "Target probably out of reach (estimated from the scored rows, not proven)." in text
    assert "Estimated probability that it can be reached: " in text
    assert "Removing one of these constraints would bring it closer (checked): limit on 'a'" in text


def test_nothing_is_out_of_reach_that_is_likely_all_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search gives up on what it knows then; the verdict hears of every row."""
    likely = Verdict(Conclusion.ESTIMATED, 0.4, ())
    monkeypatch.setattr("bayescfx.explainer.report.judge", lambda question: likely)
    space = cube().between({"a": (0, 0.4)}).fix("c")
    answer = cfx.explain(plane, ZERO, space, 4.0, budget=100, rng=0)
    assert answer.stopped == "unreachable"
    assert answer.status == "best_guess"
    assert "out of reach" not in answer.verdict
    assert "it saw no way to the target. Estimated probability that it can be reached: 40 %" in (
        answer.verdict
    )


@pytest.mark.parametrize("method", ["sweep", "bayes-cfx", "bayes", "random", "lbfgsb"])
@pytest.mark.parametrize(
    "target", [cfx.at_most(1.2), cfx.at_least(0.5), cfx.between(0.4, 1.1)], ids=str
)
def test_what_a_query_has_by_breaking_a_rule_is_searched_for(method: str, target: Target) -> None:
    space = cube().require("a >= 0.5")
    budget = {"bayes-cfx": 50, "bayes": 25}.get(method, 200)
    answer = cfx.explain(plane, ZERO, space, target, method=method, budget=budget, rng=0)
    assert answer.reached
    assert answer.best.row["a"] >= 0.5
    assert answer.verify(plane)
    if method in ("sweep", "bayes-cfx"):  # nothing else has to move, and no further
        assert set(answer.best.changes) == {"a"}
        assert answer.best.row["a"] == pytest.approx(0.5, abs=0.01)


def test_the_very_output_of_a_query_that_breaks_a_rule_is_not_searched_for() -> None:
    answer = cfx.explain(plane, ZERO, cube().require("a >= 0.5"), 0.5, budget=50, rng=0)
    assert (answer.status, answer.stopped) == ("best_guess", "already met")
    assert "already meets the target, but breaks a rule" in answer.verdict


def test_a_finite_region_without_the_target_is_exhausted() -> None:
    space = cfx.Space({"a": cfx.Integer(0, 3), "b": cfx.Categorical(["x", "y"])})
    answer = cfx.explain(lambda r: r["a"], {"a": 0, "b": "x"}, space, 9, budget=50, rng=0)
    assert (answer.status, answer.stopped) == ("unreachable", "exhausted")
    assert answer.n_evaluations == 8
    assert answer.probability_reachable == 0.0
    assert answer.reachable == (0.0, 3.0)
    assert answer.best.output == 3.0
    assert "Target out of reach: every allowed row was scored. Outputs seen: 0 to 3." in repr(
        answer
    )


def test_a_constant_model_has_no_counterfactual() -> None:
    answer = cfx.explain(lambda X: np.ones(len(X)), ZERO, cube(), 2.0, budget=60, rng=0)
    # Outputs that never vary say nothing of what lies beyond a jump: no verdict.
    assert answer.status == "best_guess"
    assert answer.probability_reachable is None
    assert answer.best.changes == {}  # no row is nearer than the query itself
    assert answer.reachable == (1.0, 1.0)


def test_the_best_guess_is_the_nearest_output_not_the_nearest_row() -> None:
    answer = cfx.explain(plane, ZERO, cube(), 1e6, method="random", budget=50, rng=0)
    assert answer.status == "best_guess"
    assert answer.best.output == answer.reachable[1]


def test_few_rows_give_no_probability() -> None:
    answer = cfx.explain(plane, ZERO, cube(), 100.0, budget=3, rng=0)
    assert answer.status == "best_guess"
    assert answer.stopped == "budget"
    assert answer.probability_reachable is None
    assert "surrogate" not in repr(answer)


def test_fifty_answers_where_three_exist_are_three() -> None:
    space = cfx.Space({name: cfx.Categorical([0, 1]) for name in "abc"})
    query = dict.fromkeys("abc", 0)
    answer = cfx.explain(lambda r: r.sum(axis=1), query, space, 1, budget=50, n=50, rng=0)
    assert len(answer.counterfactuals) == 3
    assert {tuple(c.changes) for c in answer.counterfactuals} == {("a",), ("b",), ("c",)}
    assert len(answer.to_frame()) == 3


@pytest.mark.parametrize("weight", [0.1, 0.0])
def test_several_answers_change_different_features_and_no_trifles(weight: float) -> None:
    space = cube().cost(weight=weight)
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=0.5), budget=40, n=3, rng=1)
    answers = answer.counterfactuals
    assert len(answers) == 3
    assert "differs enough" not in answer.verdict
    assert all(c.valid for c in answers)
    assert len({tuple(c.changes) for c in answers}) == 3
    assert [c.cost for c in answers] == sorted(c.cost for c in answers)
    scale = dict(zip("abc", space.scale, strict=True))
    for c in answers if weight else ():
        moves = [abs(after - before) / scale[str(n)] for n, (before, after) in c.changes.items()]
        assert min(moves) > 0.02 * max(moves)


@pytest.mark.parametrize("method", ["auto", "bayes-cfx", "sweep"])
def test_one_change_is_not_told_three_times(method: str) -> None:
    rng = np.random.default_rng(0)
    rows = {"area": rng.integers(30, 200, 200), "rooms": rng.integers(1, 8, 200)}
    space = cfx.Space.from_data(pd.DataFrame(rows))

    def price(rows: Any) -> Any:
        return 1000 * rows["area"] + 0 * rows["rooms"]

    query = {"area": 138, "rooms": 4}
    more = cfx.explain(
        price, query, space, cfx.at_least(150_000), n=3, budget=100, method=method, rng=0
    )
    assert [c.changes for c in more.counterfactuals] == [{"area": (138, 150)}]
    reason = "was found" if more.stopped == "budget" else "differs enough"
    assert more.verdict.endswith(f"Found 1 of 3 answers; no other {reason}.")
    again = cfx.Explanation.from_json(more.to_json())
    assert (again.n_wanted, again.verdict) == (3, more.verdict)
    far = cfx.explain(
        price, query, space, cfx.at_least(900_000), n=3, budget=100, method=method, rng=0
    )
    assert [list(c.changes) for c in far.counterfactuals] == [["area"]]
    met = cfx.explain(price, query, space, cfx.at_least(1000), n=3, budget=100, rng=0)
    assert "differs enough" not in met.verdict


def test_a_band_that_the_model_jumps_over_is_not_called_out_of_reach() -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 1)})

    def steps(rows: Any) -> Any:
        return 10.0 * np.floor(rows["a"])

    answer = cfx.explain(steps, {"a": 1.5, "b": 0.5}, space, 44.0, tolerance=0.01, rng=0, budget=60)
    assert answer.status == "best_guess"
    assert answer.jump == (40.0, 50.0)
    assert answer.probability_reachable is None
    assert "Nearest outputs on either side: 40 and 50; the model may jump across the target" in str(
        answer
    )
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.jump == answer.jump
    assert cfx.explain(steps, {"a": 1.5, "b": 0.5}, space, 40.0, rng=0, budget=60).jump is None


def test_every_answer_of_a_space_with_data_states_its_plausibility() -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 10, 400)
    frame = pd.DataFrame({"a": t, "b": t + rng.normal(0, 0.2, 400), "c": rng.random(400)})

    def model(rows: Any) -> Any:
        return rows["a"] + rows["b"]

    space, query = cfx.Space.from_data(frame), {"a": 3.0, "b": 3.0, "c": 0.5}
    along = cfx.explain(model, query, space, 12.0, rng=0, budget=300)
    across = cfx.explain(model, query, space.fix("b"), 12.0, rng=0, budget=300)
    assert along.best.plausibility is not None
    assert across.best.plausibility is not None
    assert across.best.plausibility < 0.05  # a = 9 never goes with b = 3
    assert f"Plausibility: {plausibility(along.best.plausibility)}." in str(along)
    assert along.to_frame()["plausibility"].tolist() == [along.best.plausibility]
    assert cfx.Explanation.from_json(along.to_json()).best.plausibility == along.best.plausibility
    many = cfx.Explanations([along, across]).to_frame(changes_only=True)
    added = ["output", "valid", "potential", "cost", "distance", "n_changes", "plausibility"]
    assert many.columns[-7:].tolist() == added
    near = cfx.explain(model, query, space.near_data(frame), 12.0, rng=0, budget=300)
    assert near.reached
    assert near.best.plausibility is not None
    assert near.best.plausibility >= 0.04
