"""Ctrl-C at any moment: the best so far or a clean end, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")

#: A model that presses Ctrl-C itself: at some calls, and in the import if call 0 is among them.
MODEL = """\
import os, signal, time
calls = []

def press():
    if str(len(calls)) in os.environ["PRESSED"].split():
        os.kill(os.getpid(), signal.SIGINT)

class Pressing:
    def __del__(self):  # where nothing can be raised
        os.kill(os.getpid(), signal.SIGINT)

def score(rows):
    calls.append(len(rows))
    press()
    if os.environ["PRESSED"] == "last breath" and len(calls) == 3:
        Pressing()
        time.sleep(0.2)
    return rows["a"] * 2.0 + rows["b"] ** 2

press()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a model and data."""
    (tmp_path / "pressing.py").write_text(MODEL)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(70, 2)), columns=["a", "b"])
    frame.to_csv(tmp_path / "X.csv", index=False)
    return tmp_path


def started(
    place: Path, command: str, *words: str, pressed: str = "", queries: str = "X.csv"
) -> subprocess.Popen[str]:
    base = (command, "--model", "pressing:score", "--data", "X.csv", "--target", ">= 50")
    many = ("--queries", queries, "--out", "answers.csv", "--budget", "9")
    more = many if command == "explain-many" else ("--query", "3", "--budget", "40", "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "bayescfx", *base, *more, "--quiet", *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PRESSED": pressed, "PYTHONIOENCODING": "utf-8"},
    )


def test_ctrl_c_in_a_search_prints_the_best_so_far_and_keeps_stored_rows(place: Path) -> None:
    process = started(place, "explain", "--evaluations", "s.db", pressed="5")
    out, err = process.communicate()
    assert (process.returncode, err) == (3, "")
    answer = json.loads(out)
    assert answer["stopped"] == "interrupted"
    with cfx.Evaluations.open(place / "s.db") as kept:
        # All but the batch in which it was pressed.
        assert 1 < len(kept) < answer["n_evaluations"] < 40


def test_ctrl_c_that_python_would_lose_is_heard_a_little_later(place: Path) -> None:
    process = started(place, "explain", pressed="last breath")
    out, err = process.communicate()
    assert (process.returncode, err) == (3, "")
    assert json.loads(out)["stopped"] == "interrupted"


@pytest.mark.parametrize("pressed", ["0", "1"], ids=["import", "query"])
def test_ctrl_c_before_anything_is_known_is_one_line(place: Path, pressed: str) -> None:
    process = started(place, "explain", pressed=pressed)
    assert process.communicate() == ("", "error: interrupted.\n")
    assert process.returncode == 130


def test_ctrl_c_ends_all_queries_and_those_answered_are_written(place: Path) -> None:
    process = started(place, "explain-many", pressed="4")
    out, err = process.communicate()
    assert process.returncode == 130
    message = "error: interrupted: 64 of 70 queries have answers. They are in answers.csv.\n"
    assert err == message
    assert out.count("not answered: interrupted before") == 6
    written = pd.read_csv(place / "answers.csv")
    assert len(written) == 70
    assert written["error"].notna().sum() == 6


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("command", ["explain", "explain-many"])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_at_random_moments_never_shows_a_traceback(
    place: Path, command: str, times: int
) -> None:
    rng = np.random.default_rng(times)
    # Eight queries: searches, verdicts and writing take about as long as loading does.
    pd.read_csv(place / "X.csv").head(8).to_csv(place / "some.csv", index=False)
    process = started(place, command, queries="some.csv")
    begun = time.monotonic()
    process.communicate()
    whole = time.monotonic() - begun
    for _ in range(12):
        process = started(place, command, "--evaluations", "s.db", queries="some.csv")
        # Python itself takes a moment to start, before which Ctrl-C can't be caught.
        time.sleep(0.1 + float(rng.uniform(0, whole)))
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(float(rng.choice([0.0, 0.001, 0.05])))
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err, err
        assert "Exception ignored" not in err, err
        assert process.returncode in (0, 3, 4, 130, -signal.SIGINT), err
        with cfx.Evaluations.open(place / "s.db") as kept:
            rows = kept.rows
            assert rows is None or np.allclose(rows["a"] * 2 + rows["b"] ** 2, kept.outputs)
