"""Killed at random times and restarted: nothing is lost, and the answer is the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescfx.evaluations.data import Evaluations

# The model notes every answer on the disk itself, then returns it; it fails for some batches.
SCRIPT = """
import json, os, sys, time
import numpy as np
import bayescfx as cfx

folder, many = sys.argv[1], int(sys.argv[2])
log = open(os.path.join(folder, "log"), "a")

def model(X):
    time.sleep(0.002)
    if many and (X[:, 0] > 1.9).any():
        raise ValueError("out of reach")
    y = X[:, 0] - 2 * X[:, 1] + np.sin(3 * X[:, 2])
    for row, output in zip(X.tolist(), y.tolist()):
        log.write(json.dumps([row, output]) + chr(10))
    log.write("end" + chr(10))
    log.flush()
    os.fsync(log.fileno())
    return y

X = np.random.default_rng(0).normal(size=(90, 3))
space = cfx.Space.from_data(X)
with cfx.Evaluations.open(os.path.join(folder, "known.db"), model="v1") as known:
    if many:
        found = cfx.explain_many(
            model, X[:many], space, cfx.increase(by=2.0), evaluations=known, rng=3, run="r",
            budget=12, method=cfx.BayesCFX(batch=4), on_fault="skip",
        )
    else:
        found = [cfx.explain(
            model, X[0], space, cfx.increase(by=6.0), evaluations=known, rng=3, run="r", budget=40,
            method="bayes-cfx",
        )]
    answers = [
        [a.status, a.n_evaluations, a.stopped, [float(v) for v in a.trace],
         [[c.row.tolist(), c.output] for c in a.counterfactuals]]
        for a in found
    ]
with open(os.path.join(folder, "answers"), "w") as file:
    json.dump(answers, file)
"""


def start(folder: Path, n_queries: int) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(n_queries)])


def given(folder: Path) -> tuple[list[tuple[tuple[float, ...], float]], list[int]]:
    """Return the outputs of the model, and the sizes of its batches."""
    rows: list[Any] = []
    sizes = [0]
    for line in (folder / "log").read_text().splitlines():
        if line == "end":
            sizes.append(0)
        else:
            row, output = json.loads(line)
            rows.append((tuple(row), output))
            sizes[-1] += 1
    return rows, sizes


def check_kills(folder: Path, n_queries: int, n: int) -> int:
    folder.mkdir(exist_ok=True)
    undisturbed = folder / "whole"
    killed = folder / "killed"
    assert start(undisturbed, n_queries).wait() == 0
    wanted = json.loads((undisturbed / "answers").read_text())
    rng = np.random.default_rng(1)
    kills = 0
    killed.mkdir()
    (killed / "log").touch()
    while kills < n:
        before = (killed / "log").stat().st_size
        process = start(killed, n_queries)
        # Wait for new rows, so that the runs end; then kill at a random time.
        while process.poll() is None and (killed / "log").stat().st_size <= before:
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0, 0.02)))
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
        rows, sizes = given(killed)
        with Evaluations.open(killed / "known.db", model="v1") as known:
            table: Any = known.rows
            outputs = known.outputs
            kept = (
                {} if table is None else dict(zip(map(tuple, table.tolist()), outputs, strict=True))
            )
        lost = {row for row, output in rows if kept.get(row) != output}  # these may be lost
        assert len(lost) <= max(sizes)  # at most the batch in flight
        assert all(row in [r for r, _ in rows[-max(sizes) :]] for row in lost)
    assert kills > 0
    assert start(killed, n_queries).wait() == 0
    assert json.loads((killed / "answers").read_text()) == wanted
    whole, sizes = given(undisturbed)
    calls = len(given(killed)[0])
    assert calls <= len(whole) + kills * max(sizes)
    return kills


@pytest.mark.parametrize("n_queries", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_two_kills_lose_nothing(tmp_path: Path, n_queries: int) -> None:
    check_kills(tmp_path, n_queries, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("n_queries", [0, 70])
def test_fifty_kills_lose_nothing(tmp_path: Path, n_queries: int) -> None:
    kills = 0
    while kills < 50:  # a run may end before it is killed
        kills += check_kills(tmp_path / str(kills), n_queries, 50 - kills)
