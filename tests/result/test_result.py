"""The answer: exact as data, honest in words, and checkable from itself alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.errors import ArchiveError, SpaceError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import Evaluator, Stopped
from bayescfx.explainer.report import counterfactuals, query_row
from bayescfx.model.model import as_model
from bayescfx.potentials.family import AEP
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.targets import as_target, decrease
from bayescfx.result import wording
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.question import Question
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space

FRAME = pd.DataFrame(
    {
        "age": np.array([30, 40, 50, 60], dtype=np.int16),
        "bmi": np.array([32.1, 27.4, 21.0, 35.5]),
        'job\'s "name"': ["clerk", "cook", "<b>ünïcode</b> & co", "漢"],
        "grade": pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "mid", "hi"], ordered=True),
        "since": pd.to_datetime(["2020-01-01", "2021-06-01", "2019-05-05", "2022-02-02"]),
        "score": np.array([0.1, 0.2, np.nan, 0.4], dtype=np.float32),
        "ok": [True, False, True, True],
    }
)


def model(rows: pd.DataFrame) -> Array:
    high = (rows["grade"] == "hi").to_numpy()
    y: Array = 5.0 * rows["bmi"].to_numpy(float) + rows["age"].to_numpy(float) + 10.0 * high
    return y


def sums(rows: Any) -> Array:
    y: Array = np.asarray(rows, dtype=float).sum(axis=1)
    return y


def ask(
    f: Callable[[Any], Array] = model,
    space: Space | None = None,
    query: Any = None,
    target: Any = None,
    n: int = 3,
) -> Explanation:
    """Answer a question by looking at a few random rows."""
    space = Space.from_data(FRAME).fix("since", "score", "ok") if space is None else space
    region = space.around(FRAME.iloc[0] if query is None else query)
    wish = as_target(decrease(by=40) if target is None else target)
    evaluator = Evaluator(as_model(f), region.schema, Evaluations())
    account = evaluator.account(region, 60)
    output = float(account.evaluate(region.query[None])[0])
    rng = np.random.default_rng(0)
    question = Question(account, output, wish, rng)
    account.evaluate(np.concatenate([sample(region, 30, rng), sample(region, 10, rng, changes=1)]))
    X, y = account.X, account.y
    best = np.argsort(-question.score(y), kind="stable")[:n]
    row, layout = query_row(region)
    reached = bool(question.accepted(y[best[:1]])[0])
    return Explanation(
        query=row,
        output=output,
        target=wish,
        wanted=question.wanted,
        accepted=question.acceptance,
        status="reached" if reached else "best_guess",
        counterfactuals=counterfactuals(question, X[best], y[best]),
        stopped="budget",
        reachable=(float(y.min()), float(y.max())),
        trace=np.maximum.accumulate(question.score(evaluator.known.outputs[account.paid])),
        evaluations=evaluator.evaluations,
        n_evaluations=account.spent,
        space=space,
        layout=layout,
        seed=0,
    )


def plain_answer(**changes: Any) -> Explanation:
    """Return an answer with round numbers, for the wording."""
    space = Space.from_data(pd.DataFrame({"bmi": [20.5, 40.0], "bp": [80, 120]}))
    rows = pd.DataFrame({"bmi": [32.1, 27.4], "bp": [101, 93]})
    region = space.around(rows.iloc[[0]])
    query, layout = query_row(region)
    best = Counterfactual(
        row=pd.Series([27.4, 93], index=["bmi", "bp"], dtype=object),
        output=171.0,
        potential=1.0,
        changes={"bmi": (32.1, 27.4), "bp": (101, 93)},
        cost=1.25,
        valid=True,
    )
    answer = Explanation(
        query=query,
        output=214.0,
        target=as_target(decrease(by=43)),
        wanted=((171.0, 171.0),),
        accepted=((168.85, 173.15),),
        status="reached",
        counterfactuals=(best,),
        stopped="nothing nearer expected",
        reachable=(150.25, 260.0),
        trace=np.array([0.0, 1.0]),
        evaluations=Evaluations(rows, [214.0, 171.0]),
        n_evaluations=2,
        space=space,
        layout=layout,
    )
    return replace(answer, **changes)


# ── as data ──


def test_the_best_comes_first_and_reached_follows_the_status() -> None:
    answer = plain_answer()
    assert answer.best is answer.counterfactuals[0]
    assert answer.reached
    assert not replace(answer, status="best_guess").reached
    with pytest.raises(ValueError, match="`counterfactuals` must hold at least one row; got none"):
        replace(answer, counterfactuals=())


def test_rows_are_exactly_what_the_model_scored() -> None:
    answer = ask()
    frame = answer.to_frame()
    rows = frame[list(FRAME.columns)]
    assert dict(rows.dtypes) == dict(FRAME.dtypes)
    assert model(rows).tolist() == frame["output"].tolist()
    assert frame["output"].tolist() == [c.output for c in answer.counterfactuals]
    assert list(frame.columns[len(FRAME.columns) :]) == [
        "output",
        "valid",
        "potential",
        "cost",
        "n_changes",
    ]


def test_a_row_is_a_series_whose_cells_keep_their_types() -> None:
    row = ask().best.row
    assert isinstance(row, pd.Series)
    assert list(row.index) == list(FRAME.columns)
    assert [type(cell) for cell in row] == [int, float, str, str, pd.Timestamp, float, bool]
    for name in ("since", "score", "ok"):
        assert row[name] == FRAME[name].iloc[0]


def test_changes_name_the_moved_features_with_before_and_after() -> None:
    answer = ask()
    for found in answer.counterfactuals:
        assert found.n_changes == len(found.changes)
        for name in FRAME.columns:
            before, after = answer.query[name], found.row[name]
            assert (name in found.changes) == (before != after)
            if before != after:
                assert found.changes[name] == (before, after)


def test_changes_only_shows_the_columns_that_moved() -> None:
    answer = ask()
    frame = answer.to_frame(changes_only=True)
    moved = [n for n in FRAME.columns if any(n in c.changes for c in answer.counterfactuals)]
    assert list(frame.columns[:-5]) == moved
    for i, found in enumerate(answer.counterfactuals):
        for name in moved:
            assert frame.loc[i, name] == (found.changes[name][1] if name in found.changes else "-")


def test_columns_called_like_ours_are_kept() -> None:
    frame = pd.DataFrame({"cost": [1.5, 2.5, 3.5], "valid": [0.25, 0.5, 1.5]})
    answer = ask(sums, Space.from_data(frame), frame.iloc[0], decrease(by=1))
    columns = ["cost", "valid", "output", "valid_", "potential", "cost_", "n_changes"]
    assert list(answer.to_frame().columns) == columns


def test_arrays_in_arrays_out() -> None:
    data = np.array([[1.5, 2.5], [3.5, 4.5], [9.5, 7.25]], dtype=np.float32)
    answer = ask(sums, Space.from_data(data), data[1], decrease(by=2))
    row = answer.best.row
    assert isinstance(row, np.ndarray)
    assert row.dtype == np.float32
    assert isinstance(answer.query, np.ndarray)
    assert list(answer.to_frame().columns[:2]) == ["x0", "x1"]
    assert set(answer.best.changes) <= {"x0", "x1"}
    again = Explanation.from_json(answer.to_json())
    assert isinstance(again.best.row, np.ndarray)
    assert again.best.row.tolist() == row.tolist()
    assert again.verify(sums)


# ── JSON ──


def test_json_carries_everything_exactly() -> None:
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


def test_missing_cells_and_infinite_wishes_survive_json() -> None:
    space = Space.from_data(FRAME).allow("bmi", "age")
    answer = ask(space=space, query=FRAME.iloc[2], target=as_target(decrease(by=5)))
    answer = replace(answer, wanted=((-math.inf, 3.0),), probability_reachable=0.25)
    again = Explanation.from_json(answer.to_json())
    assert again.wanted == ((-math.inf, 3.0),)
    assert again.probability_reachable == 0.25
    assert math.isnan(again.best.row["score"])
    assert again.verify(model)


def test_evaluations_from_json_serve_the_next_question() -> None:
    answer = Explanation.from_json(ask().to_json())
    region = answer.space.around(FRAME.iloc[0])

    def never(rows: Any) -> Any:
        raise AssertionError

    evaluator = Evaluator(as_model(never), region.schema, answer.evaluations)
    y = evaluator.account(region, 0).evaluate(region.query[None])
    assert y.tolist() == [answer.output]


def test_a_potential_of_the_users_own_is_told_in_words() -> None:
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


# ── verification ──


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


# ── in words ──


def test_the_text_states_the_wish_then_the_answer_then_how_it_ended() -> None:
    assert repr(plain_answer()).splitlines() == [
        "Wanted: prediction 171 (-43; now 214)",
        "Answer: bmi 32.1 → 27.4, bp 101 → 93: prediction 214 → 171, wanted 171",
        "Reached; the search ended because nothing nearer is expected.",
        "2 rows of the model used.",
    ]


def test_a_best_guess_says_how_far_off_it_is() -> None:
    answer = plain_answer(status="best_guess", stopped="timeout", accepted=((100.0, 160.0),))
    lines = repr(answer).splitlines()
    assert lines[1].startswith("Best guess: bmi 32.1 → 27.4")
    assert lines[2] == (
        "Not reached, this is the best guess (off by 11): the time is over. "
        "Outputs seen: 150.2 to 260."
    )


def test_unreachable_is_worded_as_what_the_surrogate_says() -> None:
    answer = plain_answer(
        status="unreachable",
        stopped="unreachable",
        probability_reachable=0.0199,
        binding=("limit on 'bmi' (at least 18)", "rule 's3 <= s1'"),
    )
    assert repr(answer).splitlines()[2] == (
        "Probably out of reach, judged by the surrogate of the model, not proven. The surrogate "
        "gives the target a probability of 2 % within the limits. Outputs seen: 150.2 to 260. "
        "Relaxing any of these would bring it nearer, as the surrogate sees it: "
        "limit on 'bmi' (at least 18); rule 's3 <= s1'."
    )
    one = replace(answer, binding=("at most 1 change",))
    assert (
        repr(one)
        .splitlines()[2]
        .endswith(
            "Relaxing this would bring it nearer, as the surrogate sees it: at most 1 change."
        )
    )


def test_further_answers_are_listed() -> None:
    best = plain_answer().best
    worse = replace(best, changes={"bp": (101, 80)}, output=180.5, valid=False)
    lines = repr(plain_answer(counterfactuals=(best, worse))).splitlines()
    assert lines[2] == "  2. bp 101 → 80: prediction 180.5 (not valid)"


def test_no_change_is_called_that() -> None:
    still = replace(plain_answer().best, changes={}, output=214.0, valid=False)
    answer = plain_answer(counterfactuals=(still,), status="best_guess")
    assert "Best guess: no change: prediction 214, wanted 171" in repr(answer)
    assert repr(still) == "Counterfactual(no change: prediction 214, not valid, cost 1.25)"


def test_many_changes_are_cut_in_words_only() -> None:
    changes = {f"c{j}": (0, j + 1) for j in range(30)}
    best = replace(plain_answer().best, changes=changes)
    assert "c11 0 → 12 and 18 more: prediction" in repr(plain_answer(counterfactuals=(best,)))


def test_every_ending_has_words() -> None:
    for stopped in get_args(Stopped):
        assert wording.ENDINGS[stopped] in repr(plain_answer(stopped=stopped))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (((0.4, 0.6),), "0.4 to 0.6"),
        (((-math.inf, 3.0),), "at most 3"),
        (((3.0, math.inf),), "at least 3"),
        (((1.0, 1.0), (2.0, 2.0)), "1 or 2"),
        (((0.99991, 0.99992),), "0.99991 to 0.99992"),
        (((-math.inf, math.inf),), "anything"),
    ],
)
def test_wishes_of_every_kind_have_words(wanted: Intervals, words: str) -> None:
    assert f"Wanted: prediction {words} (-43; now 214)" in repr(plain_answer(wanted=wanted))


def test_display_rounds_and_data_do_not() -> None:
    best = replace(plain_answer().best, output=171.123456789, changes={"bmi": (1 / 3, 2 / 3)})
    answer = plain_answer(counterfactuals=(best,))
    assert "bmi 0.3333 → 0.6667: prediction 214 → 171.1" in repr(answer)
    assert answer.to_frame()["output"].tolist() == [171.123456789]


class Tags(HTMLParser):
    """Collect tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_self_contained_and_escaped() -> None:
    nasty = "<script>alert('x')</script>"
    best = replace(plain_answer().best, changes={nasty: ("<i>", '"&"'), "bmi": (32.1, 27.4)})
    html = plain_answer(counterfactuals=(best,))._repr_html_()
    parsed = Tags()
    parsed.feed(html)
    assert set(parsed.tags) <= {"div", "style", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert nasty in parsed.text
    assert "<script" not in html
    assert "prediction" in parsed.text
    assert "27.4" in parsed.text


# ── many answers ──


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


# ── groups and derived columns ──


def test_a_one_hot_group_changes_as_one_feature() -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "red": [1, 0, 0], "blue": [0, 1, 1]})
    space = Space.from_data(frame).group("colour", ["red", "blue"])

    def f(rows: Any) -> Array:
        return np.asarray(rows["blue"] * 10.0 + rows["x"])

    answer = ask(f, space, frame.iloc[0], AEP(0.5, 10.0, 1))
    changed = [c for c in answer.counterfactuals if "colour" in c.changes]
    assert changed
    assert changed[0].changes["colour"] == ("red", "blue")
    assert changed[0].row[["red", "blue"]].tolist() == [0, 1]
    assert answer.verify(f)
    assert Explanation.from_json(answer.to_json()).verify(f)
