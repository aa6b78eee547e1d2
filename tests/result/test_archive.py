"""The answer as JSON and back."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.errors import ArchiveError
from bayescfx.evaluations.evaluator import Account, Evaluator
from bayescfx.models.model import as_model
from bayescfx.potentials import decrease
from bayescfx.potentials.targets import as_target
from bayescfx.result.explanation import Explanation
from bayescfx.space.space import Space
from tests.result.answers import FRAME, ask, model


def test_json_keeps_everything_exactly() -> None:
    answer = ask()
    again = Explanation.from_json(answer.to_json())
    pd.testing.assert_frame_equal(again.to_frame(), answer.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(
        again.evaluations.to_frame(), answer.evaluations.to_frame(), check_exact=True
    )
    assert isinstance(again.query, pd.Series)
    assert isinstance(answer.query, pd.Series)
    pd.testing.assert_series_equal(again.query, answer.query)
    for name in (
        "output",
        "wanted",
        "accepted",
        "status",
        "stopped",
        "reachable",
        "n_evaluations",
        "tolerance",
        "probability_reachable",
        "binding",
        "method",
        "seed",
    ):
        assert getattr(again, name) == getattr(answer, name), name
    assert again.trace.tolist() == answer.trace.tolist()
    assert again.best.changes == answer.best.changes
    assert repr(again.target) == repr(answer.target)
    assert repr(again) == repr(answer)
    assert again.to_json() == answer.to_json()


def test_the_text_is_strict_json_with_a_format() -> None:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    content = json.loads(ask().to_json(), parse_constant=refuse)
    assert content["format"] == 1
    assert content["kind"] == "explanation"
    assert re.match(r"\d+\.\d+", content["version"])


def test_missing_cells_and_infinite_targets_survive_json() -> None:
    space = Space.from_data(FRAME).allow("bmi", "age")
    answer = ask(space=space, query=FRAME.iloc[2], target=as_target(decrease(by=5)))
    wanted_before = answer.wanted
    answer = replace(answer, wanted=((-math.inf, 3.0),), probability_reachable=0.25)
    again = Explanation.from_json(answer.to_json())
    assert again.wanted == ((-math.inf, 3.0),)
    assert again.probability_reachable == 0.25
    assert math.isnan(again.best.row["score"])
    assert replace(again, wanted=wanted_before).verify(model)


def test_evaluations_from_json_serve_the_next_query() -> None:
    answer = Explanation.from_json(ask().to_json())
    region = answer.space.around(FRAME.iloc[0])

    def never(rows: Any) -> Any:
        raise AssertionError

    evaluator = Evaluator(as_model(never), region.schema, answer.evaluations)
    y = Account(evaluator, region, 0).evaluate(region.query[None])
    assert y.tolist() == [answer.output]


def test_a_users_own_potential_is_archived_as_text() -> None:
    class Hill:
        def value(self, y: Any) -> Array:
            return np.exp(-np.square((np.asarray(y) - 150.0) / 40.0))

        def slope(self, y: Any) -> Array:
            return self.value(y) * (150.0 - np.asarray(y)) / 800.0

    answer = ask(target=as_target(Hill(), outputs=[100.0, 200.0]))
    assert answer.verify(model)
    again = Explanation.from_json(answer.to_json())
    assert repr(again.target) == repr(answer.target)
    assert Explanation.from_json(again.to_json()).to_json() == again.to_json()
    assert again.verify(model)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "`text` must be JSON; got "),
        ("[1]", "`text` must hold an explanation; got 'list'. Pass what to_json returned."),
        ('{"kind": "space"}', "`text` must hold an explanation; got 'space'. Pass what"),
        (
            '{"kind": "explanation", "format": 9, "version": "3.0"}',
            "`text` must have format 1; got 9, written by bayescfx 3.0. Read it with that version.",
        ),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(ArchiveError, match=re.escape(message)):
        Explanation.from_json(text)
