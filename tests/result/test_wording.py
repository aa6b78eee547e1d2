"""The answer as text and as HTML."""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.potentials import Intervals, Target
from bayescfx.result import answer_text, wording
from bayescfx.result.answer_text import REASONS, miss, sentence
from bayescfx.result.binding_constraint import BindingConstraint
from tests.result.answers import plain_answer


def test_the_text_has_target_changes_and_verdict() -> None:
    assert repr(plain_answer()).splitlines() == [
        "Target: prediction 171 (43 below 214)",
        "",
        "  bmi         32.1 → 27.4",
        "  bp           101 → 93",
        "  prediction   214 → 171",
        "",
        "Target reached. The search stopped because no lower cost is expected.",
        "Cost 1.25 (distance 0.85, 2 changes).  Scored 2 rows (bayes-cfx).",
    ]


def test_plausibility_is_a_percentile_of_the_training_rows() -> None:
    best = replace(plain_answer().best, plausibility=0.152)
    last = repr(plain_answer(counterfactuals=(best,))).splitlines()[-1]
    assert last == (
        "Plausibility: 15th percentile of the training rows (15 % are less typical).  "
        "Cost 1.25 (distance 0.85, 2 changes).  Scored 2 rows (bayes-cfx)."
    )


def test_the_ends_of_plausibility_are_explained() -> None:
    texts = [wording.plausibility(share) for share in (0.001, 0.02, 0.999)]
    assert texts == [
        "below the 1st percentile of the training rows (nearly all are more typical)",
        "2nd percentile of the training rows (2 % are less typical)",
        "above the 99th percentile of the training rows (nearly all are less typical)",
    ]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "below the 1st percentile"),
        (0.006, "1st percentile"),
        (0.02, "2nd percentile"),
        (0.03, "3rd percentile"),
        (0.04, "4th percentile"),
        (0.11, "11th percentile"),
        (0.12, "12th percentile"),
        (0.13, "13th percentile"),
        (0.22, "22nd percentile"),
        (0.99, "99th percentile"),
        (0.999, "above the 99th percentile"),
    ],
)
def test_a_percentile_is_an_ordinal_number(share: float, text: str) -> None:
    assert wording.percentile(share) == text


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (cfx.increase(percent=20), "(20 % above 214)"),
        (cfx.decrease(percent=2.5), "(2.5 % below 214)"),
        (cfx.increase(by=3), "(3 above 214)"),
        (cfx.reach(percent=20), "(20 % above 214)"),
        (cfx.reach(by=-3), "(3 below 214)"),
        (cfx.change(percent=20), "(20 % below or above 214)"),
        (cfx.reach(171), "(now 214)"),
    ],
)
def test_a_relative_target_states_its_reference(target: Target, text: str) -> None:
    answer = plain_answer(target=target, wanted=((171.0, 171.0),))
    assert repr(answer).splitlines()[0] == f"Target: prediction 171 {text}"


def missed(output: float, wanted: float) -> cfx.Explanation:
    """Return an answer whose best guess just misses a bound."""
    answer = plain_answer(status="best_guess", wanted=((-math.inf, wanted),))
    best = replace(answer.best, output=output, valid=False)
    return replace(answer, counterfactuals=(best,), reachable=(output, 260.0))


def test_a_miss_never_looks_like_the_target() -> None:
    answer = missed(203.50004, 203.5)
    text = repr(answer)
    assert "at most 203.5 " in text.splitlines()[0]
    assert "214 → 203.50004" in text
    assert "Outputs seen: 203.50004 to 260" in text
    assert answer_text.sentence(answer).endswith("214 → 203.50004, target at most 203.5")
    shifted = missed(203.48, 203.46)
    assert "at most 203.46 " in repr(shifted).splitlines()[0]
    assert "214 → 203.48" in repr(shifted)


def test_a_miss_by_rounding_is_written_with_all_digits() -> None:
    output = math.nextafter(203.5, 300.0)
    text = repr(missed(output, 203.5))
    assert f"214 → {output!r}" in text
    assert "at most 203.5 " in text


def test_a_hit_is_not_written_with_the_digits_of_rounding() -> None:
    answer = plain_answer(wanted=((-math.inf, math.nextafter(171.0, 0.0)),))
    assert repr(answer).splitlines()[0] == "Target: prediction at most 171 (43 below 214)"


def test_a_cost_never_looks_like_its_bound() -> None:
    answer = plain_answer(proof="within 1 %", bound=2.6001)
    answer = replace(answer, counterfactuals=(replace(answer.best, cost=2.602),))
    assert "no allowed change costs less than 2.6." in answer.verdict
    assert "Cost 2.602 (" in answer_text.facts(answer)


def test_a_best_guess_has_its_distance_from_the_target() -> None:
    wanted = ((100.0, 160.0),)
    answer = plain_answer(status="best_guess", stopped="timeout", wanted=wanted, accepted=wanted)
    assert answer.verdict == (
        "Target not reached; this best guess misses it by 11. "
        "The search stopped because the time limit was reached. Outputs seen: 150.2 to 260."
    )


def test_the_distance_is_measured_from_the_target_not_from_its_tolerance() -> None:
    answer = plain_answer(status="best_guess", wanted=((180.0, 180.0),), accepted=((178.0, 182.0),))
    assert "misses it by 9." in answer.verdict  # 180 - 171


def test_unreachable_is_worded_as_an_estimate() -> None:
    answer = plain_answer(
        status="unreachable",
        stopped="unreachable",
        probability_reachable=0.0199,
        binding=(
            BindingConstraint("limit on 'bmi' (at least 18)", "guess"),
            BindingConstraint("rule 's3 <= s1'", "guess"),
        ),
    )
    assert answer.verdict == (
        "Target probably out of reach (estimated from the scored rows, not proven). "
        "Estimated probability that it can be reached: 2 %. Outputs seen: 150.2 to 260. "
        "Relaxing any of these constraints might bring it closer (a guess): "
        "limit on 'bmi' (at least 18); rule 's3 <= s1'."
    )
    one = replace(answer, binding=(BindingConstraint("at most 1 change", "guess"),))
    assert one.verdict.endswith(
        "Relaxing this constraint might bring it closer (a guess): at most 1 change."
    )
    data = replace(answer, binding=(BindingConstraint("data range of 'bmi' (up to 42)", "guess"),))
    expected = "Only values beyond the data might bring it closer (a guess): data range of 'bmi'"
    assert expected in repr(data)


def test_several_answers_are_columns_of_a_table() -> None:
    best = plain_answer().best
    worse = replace(best, changes={"bp": (101, 80)}, output=180.5, valid=False)
    lines = repr(plain_answer(counterfactuals=(best, worse))).splitlines()
    assert lines[2:7] == [
        "                   now  answer 1  answer 2",
        "  bmi             32.1      27.4         -",
        "  bp               101        93        80",
        "  prediction       214       171     180.5",
        "  target reached             yes        no",
    ]


def test_the_text_of_an_answer_without_a_change() -> None:
    still = replace(plain_answer().best, changes={}, output=214.0, valid=False)
    answer = plain_answer(counterfactuals=(still,), status="best_guess")
    assert repr(answer).splitlines()[2:4] == ["  no change", "  prediction  214"]
    assert repr(still) == "Counterfactual(no change: prediction 214, not valid, cost 1.25)"


def test_a_long_list_of_changes_is_cut_but_the_table_is_not() -> None:
    changes = {f"c{j}": (0, j + 1) for j in range(30)}
    best = replace(plain_answer().best, changes=changes)
    answer = plain_answer(counterfactuals=(best,))
    assert "c11 0 → 12 and 18 more: prediction" in sentence(answer)
    assert "  c29" in repr(answer)


def test_every_ending_has_a_text() -> None:
    for stopped in get_args(Stopped):
        assert REASONS[stopped] in plain_answer(stopped=stopped).verdict.replace("The", "the")


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
def test_targets_of_every_kind_have_a_text(wanted: Intervals, words: str) -> None:
    assert f"Target: prediction {words} (43 below 214)" in repr(plain_answer(wanted=wanted))


def test_outputs_are_rounded_and_cells_are_exact() -> None:
    best = replace(plain_answer().best, output=171.123456789, changes={"bmi": (1 / 3, 2 / 3)})
    answer = plain_answer(counterfactuals=(best,))
    text = "bmi 0.3333333333333333 → 0.6666666666666666: prediction 214 → 171.1"
    assert text in sentence(answer)
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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (214.3721, "214.4"),
        (46500.0, "46500"),
        (1234567.8, "1234568"),
        (3e-7, "3e-07"),
        (2.0, "2"),
        (-0.0, "0"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "nan"),
    ],
)
def test_only_very_small_and_large_numbers_have_exponents(value: float, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("clerk", "clerk"),
        (0.123456, "0.123456"),
        (0.1 + 0.2, "0.30000000000000004"),
        (np.float32(0.1), "0.1"),
        (46500.0, "46500"),
        (-0.0, "0"),
        (1e-9, "1e-09"),
        (1e300, "1e+300"),
        (math.inf, "∞"),
        (7, "7"),
        (True, "True"),
        (None, "missing"),
        (pd.Timestamp("2024-03-01"), "2024-03-01"),
        (pd.Timestamp("2024-03-01 08:30"), "2024-03-01 08:30"),
        (pd.Timedelta("3D"), "3 days"),
        (pd.Timedelta("36h"), "1 days 12:00:00"),
    ],
)
def test_cells_of_every_type_have_a_text(value: Any, text: str) -> None:
    assert wording.cell(value) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (32.1, 27.42222, "32.1 → 27.42222"),
        (0.50001, 0.50002, "0.50001 → 0.50002"),
        (
            pd.Timestamp("2024-03-01"),
            pd.Timestamp("2024-03-04 08:30"),
            "2024-03-01 00:00 → 2024-03-04 08:30",
        ),
    ],
)
def test_a_move_has_enough_digits_to_tell_its_ends_apart(
    before: Any, after: Any, text: str
) -> None:
    assert wording.move(before, after) == text


def test_changes_are_listed_by_name() -> None:
    changes = {"bmi": (32.1, 27.4), "job": ("clerk", "cook")}
    assert wording.moves(changes) == "bmi 32.1 → 27.4, job clerk → cook"
    assert wording.moves({}) == "no change"


def test_a_percentage_is_never_rounded_to_certainty() -> None:
    shares = [0.0231, 1e-9, 0.9999]
    assert [wording.percent(share) for share in shares] == [
        "2 %",
        "at most 1 %",
        "more than 99 %",
    ]


def test_a_miss_is_the_distance_from_the_nearest_wanted_output() -> None:
    accepted = ((1.0, 2.0), (7.0, 8.0))
    assert [miss(y, accepted) for y in (5.0, 1.5)] == [2.0, 0.0]
    assert math.isnan(miss(1.0, ()))


def test_nouns_agree_with_their_number() -> None:
    assert [wording.count(n, "row") for n in (1, 2)] == ["1 row", "2 rows"]
