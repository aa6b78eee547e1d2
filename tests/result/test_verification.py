"""The check of an answer from itself alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

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


def test_rounding_of_another_batch_size_is_forgiven() -> None:
    answer = ask()
    assert answer.verify(lambda rows: model(rows) * (1 + 1e-12))
    assert not answer.verify(lambda rows: model(rows) * (1 + 1e-7))


def test_models_in_single_precision_are_forgiven_more() -> None:
    def single(rows: Any) -> Any:
        return model(rows).astype(np.float32)

    answer = ask(single)
    noise = np.float32(1 + 2e-7)
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
    status = replace(answer, status="best_guess" if answer.reached else "reached")
    word = "reached" if answer.reached else "not reached"
    assert status.violations(model) == (f"the target is {word}",)


def test_rows_that_break_limits_or_rules_are_found_by_name() -> None:
    answer = ask(n=1)
    row = answer.best.row.copy()
    row["bmi"] = 500.0
    far = forge(answer, row=row)
    assert "a row breaks the limits of the features" in far.violations(model)
    ruled = replace(answer, space=answer.space.require("bmi <= 1", label="very thin"))
    assert ruled.violations(model) == ("a row breaks very thin",)


def test_rules_that_are_functions_must_be_brought_along() -> None:
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
