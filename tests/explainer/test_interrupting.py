"""Ctrl-C between any two lines, and a clock that jumps."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"x": rng.uniform(0, 9, 60), "k": np.arange(60) % 9, "c": list("abc") * 20})
SPACE = cfx.Space.from_data(FRAME)


def score(rows: Any) -> Any:
    return rows["x"] + 0.3 * rows["k"] + np.sin(2 * rows["x"]) + (rows["c"] == "b")


class Line:
    """Press Ctrl-C at a line of the library, counted from the start."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        if "bayescfx" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def ask(line: Line, method: str, store: cfx.Evaluations) -> cfx.Explanations:
    """Return the answers to two questions, or those that there are after Ctrl-C at a line."""
    before = sys.gettrace()
    sys.settrace(line)
    try:
        return cfx.explain_many(
            score,
            FRAME[:2],
            SPACE,
            cfx.increase(by=3),
            budget=20,
            rng=0,
            method=method,
            evaluations=store,
        )
    except KeyboardInterrupt:
        return cfx.Explanations([])
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    ("method", "times"), [("random", 25), pytest.param("bayes-cfx", 60, marks=pytest.mark.slow)]
)
def test_ctrl_c_between_any_two_lines_loses_no_row_and_breaks_no_answer(
    method: str, times: int, tmp_path: Path
) -> None:
    ask(Line(0), method, cfx.Evaluations())  # which imports what it needs
    whole = Line(0)
    ask(whole, method, cfx.Evaluations())
    interrupted = 0
    for i, at in enumerate(np.random.default_rng(0).integers(1, whole.seen, times)):
        path = tmp_path / f"{i}.db"
        with cfx.Evaluations.open(path) as store:
            for answer in ask(Line(int(at)), method, store):
                interrupted += answer.stopped == "interrupted"
                assert answer.violations(score) == ()
            known = 0 if store.rows is None else len(store.rows)
            assert known == len(store.outputs)
        with cfx.Evaluations.open(path) as kept:
            # The line may be the one between the file and the memory.
            assert known <= len(kept)
            assert kept.rows is None or np.array_equal(score(kept.rows), kept.outputs)
    assert interrupted


def test_a_clock_that_jumps_by_years_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer() -> cfx.Explanation:
        return cfx.explain(
            score, FRAME.iloc[0], SPACE, cfx.increase(by=3), budget=30, timeout=600, rng=0
        )

    quiet, jumps = answer(), itertools.cycle([0.0, 4e9, 1e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(jumps) * 1e9))
    jumped = answer()
    assert jumped.stopped == quiet.stopped != "timeout"
    assert jumped.best.changes == quiet.best.changes
    assert jumped.n_evaluations == quiet.n_evaluations


class Entry:
    """Press Ctrl-C where a function of the library is entered for the `at`-th time."""

    def __init__(self, function: str, at: int) -> None:
        self.function, self.at = function, at

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        is_there = frame.f_code.co_name == self.function
        if event != "call" or not is_there or "bayescfx" not in frame.f_code.co_filename:
            return
        self.at -= 1
        if self.at == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt


@pytest.fixture
def press() -> Iterator[Callable[[str, int], None]]:
    """Return a function that presses Ctrl-C where a function is entered the n-th time."""
    before = sys.getprofile()
    yield lambda function, at: sys.setprofile(Entry(function, at))
    sys.setprofile(before)


OUT_OF_REACH: Any = (SPACE, cfx.increase(by=100))
BAYES: Any = {"method": "bayes-cfx", "budget": 10, "rng": 0}


def test_ctrl_c_in_a_verdict_keeps_every_answer(press: Callable[[str, int], None]) -> None:
    whole = cfx.explain_many(score, FRAME[:3], *OUT_OF_REACH, **BAYES)
    press("judge", 2)
    answers = cfx.explain_many(score, FRAME[:3], *OUT_OF_REACH, **BAYES)
    assert [answer.best.output for answer in answers] == [a.best.output for a in whole]
    assert answers[0].probability_reachable == whole[0].probability_reachable is not None
    assert answers[0].stopped == whole[0].stopped != "interrupted"
    for answer in answers[1:]:
        assert (answer.stopped, answer.status) == ("interrupted", "best_guess")
        assert answer.probability_reachable is None


def test_ctrl_c_in_a_search_leaves_no_verdicts_to_wait_for(
    press: Callable[[str, int], None],
) -> None:
    queries = FRAME[:2]
    targets = [cfx.increase(by=100), cfx.increase(by=3)]
    seen: list[cfx.Step] = []

    def on_step(step: cfx.Step) -> None:
        seen.append(step)
        if step.question == 1 and step.n_evaluations > 8:
            raise KeyboardInterrupt

    given: Any = {**BAYES, "budget": 40, "on_step": on_step}
    answers = cfx.explain_many(score, queries, SPACE, targets, **given)
    assert max(step.n_evaluations for step in seen if step.question == 0) > 1
    assert answers[0].stopped == "interrupted"
    assert answers[0].probability_reachable is None


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("judge", {"budget": 10}),
        ("is_deterministic", {"budget": 1000, "method": "sweep"}),
        ("_receive", {"budget": 4, "method": "random", "n_jobs": 2, "share": "none"}),
    ],
    ids=["verdict", "check of the model", "workers"],
)
def test_ctrl_c_outside_of_searches_ends_a_stream_with_an_error(
    function: str, options: dict[str, Any], press: Callable[[str, int], None]
) -> None:
    target = cfx.increase(by=3 if function == "is_deterministic" else 100)
    options = {"method": "bayes-cfx", "rng": 0, **options}
    press(function, 1)
    with pytest.raises(KeyboardInterrupt):
        list(cfx.explain_stream(score, [FRAME[:2]], SPACE, target, **options))
