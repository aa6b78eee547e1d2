"""Blocks in workers: the same answers, nothing lost."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.deadline import Deadline
from tests.any_model import METHODS_FOR_ANY_MODEL
from tests.conftest import cloud, codes, plane

joblib = pytest.importorskip("joblib")


@pytest.fixture(autouse=True)
def blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 3)


def ask(model: Any = plane, n: int = 8, **settings: Any) -> cfx.Explanations:
    given: dict[str, Any] = {"budget": 9, "rng": 3, "method": "random"} | settings
    return cfx.explain_many(model, cloud()[:n], cfx.Space.from_data(cloud()), 1.4, **given)


def same(a: cfx.Explanations, b: cfx.Explanations) -> bool:
    return [(codes(x), x.trace.tolist(), x.stopped) for x in a] == [
        (codes(x), x.trace.tolist(), x.stopped) for x in b
    ]


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_answers_are_the_same_in_processes_and_threads(method: str) -> None:
    here = ask(method=method)
    assert same(here, ask(method=method, n_jobs=2))
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert same(here, ask(method=method))


def test_workers_hand_over_what_the_model_said_in_the_order_of_the_blocks(tmp_path: Path) -> None:
    here, there = ask(), ask(n_jobs=2)
    known = [many[0].evaluations.to_frame() for many in (here, there)]
    pd.testing.assert_frame_equal(known[0], known[1])
    assert all(answer.evaluations is there[0].evaluations for answer in there)
    with cfx.Evaluations.open(tmp_path / "known.db") as store:
        ask(n_jobs=2, evaluations=store)
    with cfx.Evaluations.open(tmp_path / "known.db") as store:
        assert len(store) == len(known[0])


class Travelling:
    """A model that notes in a folder where it was unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        with (self.folder / f"{os.getpid()}").open("a") as file:
            file.write("x")

    def __call__(self, rows: Any) -> Any:
        return plane(rows)


def test_a_model_travels_once_to_each_worker(tmp_path: Path) -> None:
    ask(Travelling(tmp_path), n=24, n_jobs=2)
    notes = [file.read_text() for file in tmp_path.iterdir()]
    assert 1 <= len(notes) <= 2
    assert set(notes) == {"x"}  # eight blocks


def test_a_model_that_can_not_travel_says_what_to_do() -> None:
    lock = threading.Lock()

    def model(rows: Any) -> Any:
        with lock:
            return plane(rows)

    with pytest.raises(cfx.ModelError, match=r"Use n_jobs=1, or threads: with joblib"):
        ask(model, n_jobs=2)
    with joblib.parallel_config(backend="threading"):
        assert same(ask(model, n_jobs=2), ask(model))


def test_a_block_of_a_killed_worker_is_done_again(tmp_path: Path) -> None:
    def model(rows: Any) -> Any:
        mark = tmp_path / "killed"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return plane(rows)

    there = ask(model, n_jobs=2)
    assert same(ask(), there)


def test_a_block_that_kills_every_worker_is_named_and_the_others_are_kept() -> None:
    deadly = cloud()[4]

    def model(rows: Any) -> Any:
        if (np.asarray(rows) == deadly).all(axis=1).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return plane(rows)

    with pytest.raises(cfx.WorkerError, match="queries at positions 3 to 5") as caught:
        ask(model, n_jobs=2)
    kept: cfx.Explanations = caught.value.explanations  # type: ignore[attr-defined]  # attached
    here = ask()
    assert 3 not in kept.index
    for i, answer in zip(kept.index, kept, strict=True):
        assert codes(answer) == codes(here[i])


def test_a_model_that_differs_between_processes_is_told() -> None:
    parent = os.getpid()

    def model(rows: Any) -> Any:
        return plane(rows) + 0.5 * (os.getpid() != parent)

    how: Any = {"budget": 60, "method": "bayes-cfx"}
    ask(model, **how)
    with pytest.warns(cfx.BayesCFXWarning, match="is not deterministic"):
        ask(model, n_jobs=2, **how)


def test_a_model_that_only_workers_can_ask_is_no_fault() -> None:
    parent = os.getpid()

    def model(rows: Any) -> Any:
        if os.getpid() == parent:
            raise OSError("no graphics card here")
        return plane(rows)

    how: Any = {"budget": 60, "method": "bayes-cfx"}
    assert same(ask(**how), ask(model, n_jobs=2, **how))


HANGING = """
import fcntl, sys, time
import numpy as np, bayescfx as cfx
X, folder = np.random.default_rng(0).uniform(size=(200, 3)), sys.argv[1]
def model(rows):
    with open(f"{folder}/lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        open(f"{folder}/held", "w").close()
        time.sleep(3600)
cfx.explain_many(model, X, cfx.Space.from_data(X), 1.4, n_jobs=2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_workers_end_with_the_process_that_sent_them_work(tmp_path: Path) -> None:
    import fcntl

    with subprocess.Popen([sys.executable, "-c", HANGING, str(tmp_path)]) as process:
        while process.poll() is None and not (tmp_path / "held").exists():
            time.sleep(0.01)
        process.kill()
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # which the worker holds as long as it is there


def test_a_fault_in_a_worker_tells_where() -> None:
    def model(rows: Any) -> Any:
        if len(rows) == 2:
            raise ZeroDivisionError("oh")
        return plane(rows)

    with pytest.raises(ZeroDivisionError, match="oh") as caught:
        ask(model, n_jobs=2)  # the last block has two queries
    assert "in model" in str(caught.value.__cause__)
    assert len(caught.value.evaluations) > 0  # type: ignore[attr-defined]  # attached


def test_steps_of_workers_are_told_once_per_query_and_can_end_the_rest() -> None:
    steps: list[cfx.Step] = []
    many = ask(n_jobs=2, on_step=steps.append)
    assert sorted(s.question for s in steps) == list(range(8))
    assert [s.output for s in sorted(steps, key=lambda s: s.question)] == [
        a.best.output for a in many
    ]

    def listen(step: cfx.Step) -> None:
        raise StopIteration

    assert 0 < len(ask(n=60, n_jobs=2, on_step=listen)) < 60


def test_without_joblib_workers_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(cfx.MissingExtraError, match=r"pip install 'bayescfx\[parallel\]'"):
        ask(n_jobs=2)


def test_a_deadline_travels_by_the_clock_or_by_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = Deadline.after(100.0)
    assert pickle.loads(pickle.dumps(end)).at == end.at
    packed = pickle.dumps(end)
    monkeypatch.setattr("bayescfx.deadline.machine", lambda: "another")
    monkeypatch.setattr("time.monotonic", lambda: 5.0)
    assert 5.0 < pickle.loads(packed).at <= 105.0


def test_answers_keep_the_index_of_the_queries() -> None:
    queries = pd.DataFrame(cloud()[:4], index=pd.Index(list("wxyz"), name="who"))
    many = cfx.explain_many(
        lambda X: plane(X), queries, cfx.Space.from_data(queries), 1.4, budget=5, rng=0
    )
    assert many.index.equals(queries.index)
    assert many.summary().index.equals(queries.index)
    assert many.to_frame()["who"].tolist() == list("wxyz")
    assert many[1:3].index.tolist() == ["x", "y"]
    again = cfx.Explanations.from_json(many.to_json())
    pd.testing.assert_index_equal(again.index, queries.index)
    assert "index" not in json.loads(cfx.Explanations([*many]).to_json())  # as before
