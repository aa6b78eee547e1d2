"""Verification of an answer by its own content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data import Integer, Real
from bayescfx.errors import SpaceError
from bayescfx.result.explanation import Explanation
from bayescfx.space.space import Space
from tests.result.answers import FRAME, ask, model


def test_a_true_answer_verifies_before_and_after_json() -> None:
    answer = ask()
    assert answer.violations(model) == ()
    assert answer.verify(model)
    assert Explanation.from_json(answer.to_json()).verify(model)


def test_another_model_does_not_verify() -> None:
    answer = ask(n=1)
    found = answer.violations(lambda rows: model(rows) + 1e-3)
    assert found == (
        "the model has another output for the query",
        "the model has another output for answer 0",
    )


def test_rounding_is_tolerated() -> None:
    answer = ask()
    assert answer.verify(lambda rows: model(rows) * (1 + 1e-15))
    assert not answer.verify(lambda rows: model(rows) * (1 + 1e-13))


def test_differences_between_batches_are_tolerated() -> None:
    def wavering(rows: pd.DataFrame) -> Any:
        return model(rows) * (1 + 1e-10 / len(rows))

    answer = ask(wavering)
    assert answer.verify(wavering)
    assert not answer.verify(lambda rows: wavering(rows) * (1 + 1e-9))
    assert not forge(answer, output=answer.best.output * (1 + 1e-8)).verify(wavering)


@pytest.mark.parametrize("size", [10.0, 2e6])
def test_each_output_has_its_own_tolerance(size: float) -> None:
    space = Space({"a": Real(0.0, 3.0 * size), "b": Real(0.0, 1.0)})

    def f(rows: Any) -> Any:
        return rows["a"] + 0.0 * rows["b"]

    query = {"a": 4.0, "b": 0.5}
    answer = cfx.explain(f, query, space, cfx.at_least(size + 10.0), budget=40, rng=0)
    assert answer.reached
    assert answer.verify(f)
    best = answer.best
    lower = best.row.copy()
    lower["a"] = size + 4.0
    before = dict(best.changes)
    forged = forge(answer, row=lower, output=size + 12.0, changes=before | {"a": (4.0, size + 4)})
    assert "the model has another output for answer 0" in forged.violations(f)
    assert "answer 0 misses the target" in forged.violations(f)
    small = replace(answer, output=4.0 + 1e-6)
    assert "the model has another output for the query" in small.violations(f)


def test_single_precision_does_not_decide_at_an_edge() -> None:
    def f(rows: pd.DataFrame) -> Any:
        return 2_000_000.5 + 0.5 * rows["k"].to_numpy()

    space = Space({"k": Integer(0, 17)})
    answer = cfx.explain(f, {"k": 0}, space, cfx.at_least(2_000_009.5), budget=18, rng=0)
    assert not answer.reached
    assert answer.verify(f)
    for output in (2_000_009.5, 2_000_010.0):
        best = replace(answer.best, output=output, valid=True)
        assert not replace(answer, status="reached", counterfactuals=(best,)).verify(f)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_outputs_of_any_size_are_compared_without_warnings(size: float) -> None:
    space = Space({"a": Real(0.0, 1.0), "b": Real(0.0, 1.0)})

    def f(rows: Any) -> Any:
        return size * rows["a"]

    query = {"a": 0.2, "b": 0.5}
    answer = cfx.explain(f, query, space, cfx.at_least(0.8 * size), budget=30, rng=0)
    assert answer.verify(f)
    assert not answer.verify(lambda rows: f(rows) * (1 + 1e-6))
    assert not answer.verify(lambda rows: np.full(len(rows), np.inf))


def test_another_target_is_found() -> None:
    answer = ask(n=1)
    other = replace(answer, accepted=((0.0, 1e9),))
    assert other.violations(model) == ("the target asks for other outputs",)


def test_a_damaged_row_is_a_violation_not_an_error() -> None:
    space = Space({"k": Integer(0, 17), "x": Real(0, 1)})
    query = pd.Series({"k": 3, "x": 0.5}, dtype=object)
    answer = cfx.explain(lambda r: r["k"] + r["x"], query, space, cfx.at_least(9), budget=30, rng=0)
    row = answer.best.row.copy()
    row["k"] = 0.5
    (found,) = forge(answer, row=row).violations(lambda r: r["k"] + r["x"])
    assert found.startswith("a row ")


def test_a_forged_cost_is_found() -> None:
    answer = ask(n=1)
    assert forge(answer, cost=0.5 * answer.best.cost).violations(model) == (
        "answer 0 has another cost",
    )
    space = answer.space.cost(per_change=0.5)
    assert replace(answer, space=space).violations(model) == ("answer 0 has another cost",)


def test_single_precision_has_a_larger_tolerance() -> None:
    def single(rows: Any) -> Any:
        return model(rows).astype(np.float32)

    answer = ask(single)
    noise = np.float32(1 + 2.4e-7)  # two units in the last place
    assert answer.verify(lambda rows: single(rows) * noise)
    assert not answer.verify(lambda rows: single(rows) * np.float32(1.001))


def forge(answer: Explanation, **changes: Any) -> Explanation:
    return replace(answer, counterfactuals=(replace(answer.best, **changes),))


def test_forged_claims_are_found() -> None:
    answer = ask(n=1)
    claim = "answer 0 misses the target" if not answer.reached else "answer 0 reaches the target"
    flipped = forge(answer, valid=not answer.best.valid)
    assert claim in flipped.violations(model)
    other = forge(answer, changes={"bmi": (1.0, 2.0), "ok": (True, False)})
    assert other.violations(model) == ("answer 0 has other changes",)
    name, (before, _) = next(iter(answer.best.changes.items()))
    beautified = forge(answer, changes={**answer.best.changes, name: (before, before)})
    assert beautified.violations(model) == ("answer 0 has other changes",)
    status = replace(answer, status="best_guess" if answer.reached else "reached")
    word = "reached" if answer.reached else "not reached"
    assert status.violations(model) == (f"the target is {word}",)


def test_a_forged_level_of_a_one_hot_group_is_found() -> None:
    frame = pd.DataFrame({"red": [1, 0, 0], "blue": [0, 1, 0], "green": [0, 0, 1]})
    space = Space.from_data(frame).group("colour", ["red", "blue", "green"])

    def f(rows: pd.DataFrame) -> Any:
        return 7.0 * rows["green"] + rows["blue"]

    answer = cfx.explain(f, frame.iloc[0], space, 7.0, rng=0)
    assert answer.best.changes == {"colour": ("red", "green")}
    assert Explanation.from_json(answer.to_json()).verify(f)
    forged = forge(answer, changes={"colour": ("red", "blue")})
    assert forged.violations(f) == ("answer 0 has other changes",)


def test_rows_that_break_limits_or_rules_are_found_by_name() -> None:
    answer = ask(n=1)
    row = answer.best.row.copy()
    row["bmi"] = 500.0
    far = forge(answer, row=row)
    assert "a row breaks the limits of the features" in far.violations(model)
    ruled = replace(answer, space=answer.space.require("bmi <= 1", label="very thin"))
    assert ruled.violations(model) == ("a row breaks very thin",)


def test_a_space_is_required_if_rules_are_functions() -> None:
    space = Space.from_data(FRAME).fix("since", "score", "ok")
    space = space.require(lambda rows: rows["bmi"] > 0, label="a body")
    answer = ask(space=space)
    assert answer.verify(model)
    again = Explanation.from_json(answer.to_json())
    with pytest.raises(SpaceError) as caught:
        again.verify(model)
    assert str(caught.value) == (
        "`space` must be given, because these rules are functions, which JSON does not hold: "
        "a body. Pass the space that was used."
    )
    assert again.verify(model, space)
    strict = space.require(lambda rows: rows["bmi"] < 0, label="no body")
    assert again.violations(model, strict) == ("a row breaks no body",)
