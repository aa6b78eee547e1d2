"""Answers to several queries."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.errors import ArchiveError
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.result.flat_table import flat_table
from tests.result.answers import FRAME, ask, model, plain_answer


def test_explanations_are_a_sequence() -> None:
    first, second = ask(n=2), ask(query=FRAME.iloc[3], n=1)
    many = Explanations([first, second])
    assert len(many) == 2
    assert many[1] is second
    assert list(many[:1]) == [first]
    assert isinstance(many[:1], Explanations)
    assert list(many) == [first, second]


def test_frames_of_many_answers_are_concatenated() -> None:
    many = Explanations([ask(n=2), ask(query=FRAME.iloc[3], n=1)])
    frame = many.to_frame()
    assert frame["query"].tolist() == [0, 0, 1]
    assert dict(frame[list(FRAME.columns)].dtypes) == dict(FRAME.dtypes)
    assert model(frame).tolist() == frame["output"].tolist()
    short = many.to_frame(changes_only=True)
    assert list(short.columns[-6:]) == list(frame.columns[-9:-3])
    for name in short.columns[1:-6]:
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


def test_many_answers_as_text() -> None:
    text = repr(Explanations([plain_answer()] * 11 + [plain_answer(status="best_guess")]))
    lines = text.splitlines()
    assert lines[0] == "12 answers, 11 reached; scored 24 rows"
    assert lines[1] == "  query 0  bmi 32.1 → 27.4, bp 101 → 93: prediction 214 → 171, target 171"
    assert lines[-1] == "  … and 2 more"
    assert "(best guess)" in repr(Explanations([plain_answer(status="best_guess")]))
    assert repr(Explanations([])) == "0 answers, 0 reached; scored 0 rows"
    assert "<td>reached</td>" in Explanations([plain_answer()])._repr_html_()
    assert len(Explanations([]).to_frame()) == 0


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cells = {"job": rng.choice(["cook", "clerk", "none"], n), "pay": rng.integers(0, 50, n)}
    return pd.DataFrame(
        {**cells, "day": rng.integers(0, 7, n)}, index=pd.Index(range(100, 100 + n), name="who")
    )


def score(rows: pd.DataFrame) -> Any:
    return rows["pay"] + 30.0 * (rows["job"] == "cook")


def test_importance_counts_moves_by_hand() -> None:
    X = people()
    space = cfx.Space.from_data(X, kinds={"day": cfx.Integer(0, 6, cyclic=True)})
    answers = cfx.explain_many(score, X.head(20), space, cfx.at_least(45), method="sweep", rng=0)
    table = answers.importance().set_index("feature")
    moved = [a for a in answers if a.best.changes]
    assert 0 < len(moved) < 20
    assert {*table.index} == {*X.columns}
    assert table["times"].is_monotonic_decreasing
    for name, line in table.iterrows():
        pairs = [a.best.changes[name] for a in moved if name in a.best.changes]
        assert line["times"] == len(pairs)
        assert line["share"] == len(pairs) / len(moved)
        if name == "pay":
            steps = np.array([after - before for before, after in pairs])
            unit = space.scale[space.schema.positions["pay"]]
            assert line["up"] == (steps > 0).mean()
            assert line["down"] == (steps < 0).mean()
            assert (line["mean"], line["median"]) == (abs(steps).mean(), np.median(abs(steps)))
            assert line["median_scaled"] == pytest.approx(np.median(abs(steps)) / unit)
        if name == "job":
            counts = Counter(" → ".join(pair) for pair in pairs)
            assert line["transitions"] == ", ".join(f"{t} ({n})" for t, n in counts.most_common())
            assert np.isnan(line["median"])
    assert Explanations([]).importance().empty


def test_the_index_is_kept_in_tables_json_and_text() -> None:
    X = people()
    space = cfx.Space.from_data(X).fix("day")
    many = cfx.explain_many(score, X.iloc[2:5], space, cfx.at_least(60), budget=30, rng=0)
    again = Explanations.from_json(many.to_json())
    for answers in (many, again, many[:3]):
        assert answers.to_frame()["who"].tolist() == [102, 103, 104]
        assert answers.summary().index.name == "who"
        assert "| who | status |" in answers.to_markdown()
        assert "| 103 | " in answers.to_markdown()
        assert ">103</th>" in answers._repr_html_()
        assert "  who 103  " in repr(answers)


def test_flat_lines_have_the_changes_and_the_cells_before() -> None:
    X = people()
    space = cfx.Space.from_data(X).fix("day")
    many = cfx.explain_many(score, X.head(6), space, cfx.at_least(40), budget=30, rng=0)
    table = flat_table(space, X.index[:6], dict(enumerate(many)), {})
    assert table["job_before"].tolist() == X["job"].head(6).tolist()
    assert table["pay_before"].tolist() == X["pay"].head(6).tolist()
    assert "day_before" not in table  # it can't move
    assert table["changes"].tolist() == many.summary()["changes"].tolist()
    met = table["stopped"] == "already met"
    assert 0 < met.sum() < 6
    assert (met == (table["changes"] == "already meets the target")).all()


def test_markdown_escapes_all_text() -> None:
    best = replace(plain_answer().best, changes={"a|b_*": ("<i>", "x\ny")})
    text = plain_answer(counterfactuals=(best,)).to_markdown()
    assert "| a\\|b\\_\\* | \\<i\\> | x y |" in text
    assert text.startswith("Target: prediction 171 (43 below 214)\n\n|  | now | answer 1 |")


def test_about_survives_json() -> None:
    answer = replace(plain_answer(), about={"model": "m.onnx", "unit": "€"})
    assert Explanation.from_json(answer.to_json()).about == answer.about
    broken = answer.to_json().replace('"m.onnx"', "7")
    with pytest.raises(ArchiveError, match="`about` must be texts by name"):
        Explanation.from_json(broken)


def test_verify_scores_the_rows_of_all_answers_in_one_call() -> None:
    X = people()
    space = cfx.Space.from_data(X).fix("day")
    target = cfx.at_least(60)
    many = cfx.explain_many(score, X.iloc[:6], space, target, n=2, budget=60, rng=0)
    sizes = []

    def counted(rows: pd.DataFrame) -> Any:
        sizes.append(len(rows))
        return score(rows)

    assert many.verify(counted)
    n_rows = sum(1 + len(answer.counterfactuals) for answer in many)
    assert sizes == [n_rows]
    assert Explanations.from_json(many.to_json()).verify(score)
    assert Explanations([]).violations(score) == {}


def test_violations_name_the_answers_with_false_claims() -> None:
    X = people()
    space = cfx.Space.from_data(X).fix("day")
    many = cfx.explain_many(score, X.iloc[:4], space, cfx.at_least(60), budget=60, rng=0)
    best = many[2].best
    forged = replace(many[2], counterfactuals=(replace(best, output=best.output + 1.0),))
    answers = Explanations([many[0], many[1], forged, many[3]])
    assert answers.violations(score) == {2: ("the model has another output for answer 0",)}
    assert not answers.verify(score)
    other = ask()  # with other columns: scored by itself, by a model that does not fit
    with pytest.raises(KeyError):
        Explanations([many[0], other]).verify(score)
