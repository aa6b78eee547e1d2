"""Answers to several questions."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from bayescfx.errors import ArchiveError
from bayescfx.result.explanations import Explanations
from tests.result.answers import FRAME, ask, model, plain_answer


def test_explanations_are_a_sequence() -> None:
    first, second = ask(n=2), ask(query=FRAME.iloc[3], n=1)
    many = Explanations([first, second])
    assert len(many) == 2
    assert many[1] is second
    assert list(many[:1]) == [first]
    assert isinstance(many[:1], Explanations)
    assert list(many) == [first, second]


def test_frames_of_many_answers_are_put_together() -> None:
    many = Explanations([ask(n=2), ask(query=FRAME.iloc[3], n=1)])
    frame = many.to_frame()
    assert frame["query"].tolist() == [0, 0, 1]
    assert dict(frame[list(FRAME.columns)].dtypes) == dict(FRAME.dtypes)
    assert model(frame).tolist() == frame["output"].tolist()
    short = many.to_frame(changes_only=True)
    assert list(short.columns[-5:]) == list(frame.columns[-5:])
    for name in short.columns[1:-5]:
        for i, found in enumerate([*many[0].counterfactuals, *many[1].counterfactuals]):
            assert short.loc[i, name] == (found.changes[name][1] if name in found.changes else "-")


def test_many_answers_survive_json_and_share_their_evaluations() -> None:
    first = ask(n=2)
    second = replace(ask(query=FRAME.iloc[3], n=1), evaluations=first.evaluations)
    third = ask(n=1)
    many = Explanations([first, second, third])
    text = many.to_json()
    assert len(json.loads(text)["evaluations"]) == 2
    again = Explanations.from_json(text)
    assert again[0].evaluations is again[1].evaluations
    assert again[2].evaluations is not again[0].evaluations
    pd.testing.assert_frame_equal(again.to_frame(), many.to_frame(), check_exact=True)
    assert [a.to_json() for a in again] == [a.to_json() for a in many]
    with pytest.raises(ArchiveError, match="`text` must hold explanations; got 'explanation'"):
        Explanations.from_json(first.to_json())


def test_the_summary_has_one_line_per_query() -> None:
    many = Explanations([plain_answer(), plain_answer(status="unreachable")])
    frame = many.summary()
    assert frame["status"].tolist() == ["reached", "unreachable"]
    assert frame["changes"].tolist() == ["bmi 32.1 → 27.4, bp 101 → 93"] * 2
    assert frame["wanted"].tolist() == ["171"] * 2
    assert frame["n_evaluations"].tolist() == [2, 2]


def test_many_answers_in_words() -> None:
    text = repr(Explanations([plain_answer()] * 11 + [plain_answer(status="best_guess")]))
    lines = text.splitlines()
    assert lines[0] == "12 answers, 11 reached, 24 rows of the model used"
    assert lines[1] == "  0. bmi 32.1 → 27.4, bp 101 → 93: prediction 214 → 171, wanted 171"
    assert lines[-1] == "  … and 2 more"
    assert "(best guess)" in repr(Explanations([plain_answer(status="best_guess")]))
    assert repr(Explanations([])) == "0 answers, 0 reached, 0 rows of the model used"
    assert "<td>reached</td>" in Explanations([plain_answer()])._repr_html_()
    assert len(Explanations([]).to_frame()) == 0
