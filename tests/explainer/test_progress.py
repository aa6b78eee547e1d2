from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tqdm
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import bayescfx as cfx
from bayescfx.errors import MissingExtraError
from bayescfx.progress import ProgressBar, progress_bar


def step(question: int = 0, n: int = 5, *, reached: bool = False) -> cfx.Step:
    return cfx.Step(question, n, 20, output=1.5, potential=0.5, reached=reached, cost=2.0)


def shown(*steps: cfx.Step, questions: int = 1) -> str:
    stream = io.StringIO()
    drawn: Any = tqdm.tqdm(file=stream, mininterval=0.0, miniters=1)
    with ProgressBar(drawn, questions) as bar:
        for one in steps:
            bar(one)
    return stream.getvalue()


def test_a_bar_counts_rows_and_tells_the_best_prediction() -> None:
    text = shown(step(n=5), step(n=12, reached=True))
    assert "5/20" in text
    assert "12/20" in text
    assert "best prediction 1.5, reached at cost 2" in text


def test_a_bar_shows_the_gap_while_a_proof_runs() -> None:
    proving = replace(step(n=12, reached=True), bound=1.6)
    assert "proving: cost 2, bound 1.6, gap 25 %" in shown(step(n=12, reached=True), proving)
    missed = replace(step(n=12), bound=1.6)
    assert "proving: no answer costs less than 1.6" in shown(missed)


@pytest.mark.slow
def test_a_long_proof_passes_on_its_bound_and_can_be_stopped() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = RandomForestRegressor(n_estimators=40, random_state=0).fit(X, y)
    space = cfx.Space.from_data(X)
    steps: list[cfx.Step] = []
    answer = cfx.explain(model, X.iloc[114], space, "-55%", rng=0, on_step=steps.append)
    bounds = [each.bound for each in steps if each.bound is not None]
    assert len(bounds) > 1
    assert max(bounds) <= answer.best.cost
    assert answer.bound is not None
    assert max(bounds) <= answer.bound * (1 + 1e-9)

    def stop(each: cfx.Step) -> None:
        if each.bound is not None:
            raise StopIteration

    stopped = cfx.explain(model, X.iloc[114], space, "-55%", rng=0, on_step=stop)
    assert stopped.stopped == "interrupted"
    assert stopped.proof is None
    assert stopped.reached


def test_a_search_that_ends_early_leaves_a_full_bar() -> None:
    assert "12/12" in shown(step(n=12)).split("\r")[-1]


def test_a_bar_for_many_questions_counts_all_of_them() -> None:
    text = shown(step(0, 5), step(1, 7, reached=True), step(0, 6), questions=3)
    assert "13/60" in text
    assert "1 of 3 queries done, 1 reached" in text  # the third was never heard of


def test_a_query_that_falls_silent_is_done() -> None:
    bar = ProgressBar(None, n_queries=100)
    for question in (*range(64), *range(64), 3, 5, 3, 5):
        bar(step(question))
    assert bar.done == 62
    bar(step(64))
    assert bar.done == 64


def test_explain_takes_the_bar_as_a_listener(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with progress_bar() as bar:
        answer = cfx.explain(
            lambda X: X[:, 0], X[0], cfx.Space.from_data(X), 1.0, budget=8, rng=0, on_step=bar
        )
    captured = capsys.readouterr()
    assert f"{answer.n_evaluations}/{answer.n_evaluations}" in captured.err
    assert captured.out == ""


def test_a_missing_tqdm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayescfx\[progress\]'"):
        progress_bar()
