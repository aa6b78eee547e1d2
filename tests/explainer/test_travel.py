"""Models that hold what does not travel, and calls with workers that are cut short."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.models.endpoint import Endpoint
from bayescfx.models.loaders import load_model
from tests.conftest import cloud, codes, plane
from tests.servers import Scoring, serving

joblib = pytest.importorskip("joblib")

# x (n, 3) times the weights 1, 2, -1
ONNX = base64.b64decode(
    "CAg6VQoRCgF4CgF3EgF5IgZNYXRNdWwSAWcqFwgDCAEQAUIBd0oMAACAPwAAAEAA"
    "AIC/WhEKAXgSDAoKCAESBgoACgIIA2IRCgF5EgwKCggBEgYKAAoCCAFCBAoAEA0="
)


@pytest.fixture(autouse=True)
def blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 3)


def ask(model: Any, n_jobs: int, X: Any) -> list[Any]:
    how: Any = {"budget": 8, "rng": 0, "method": "random", "n_jobs": n_jobs}
    many = cfx.explain_many(model, X[:9], cfx.Space.from_data(X), 1.4, **how)
    return [codes(answer) for answer in many]


def test_an_endpoint_has_a_connection_in_each_worker() -> None:
    X = pd.DataFrame(cloud(), columns=[f"x{j}" for j in range(cloud().shape[1])])
    with serving(Scoring(lambda rows: plane(rows.to_numpy()))) as server:
        model = Endpoint(server.url)
        assert ask(model, 2, X) == ask(model, 1, X)
        model.close()


@pytest.mark.parametrize("way", ["bytes", "path", "file"])
def test_an_onnx_session_is_made_again_in_each_worker(way: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    path, X = tmp_path / "model.onnx", cloud()[:, :3]
    path.write_bytes(ONNX)
    model: Any = load_model(str(path)).model
    if way != "file":
        model = runtime.InferenceSession(ONNX if way == "bytes" else str(path))
    there = ask(model, 2, X)
    path.unlink()
    assert there == ask(model, 1, X)


SCRIPT = """
    import os, sys, time
    from pathlib import Path
    import numpy as np
    import bayescfx as cfx
    from bayescfx.explainer import explainer

    explainer.BLOCK = 3
    folder = Path(sys.argv[1])

    def model(X):  # notes by process which rows it was asked for
        with (folder / f"{os.getpid()}.log").open("a") as file:
            file.write(repr(X.tolist()) + chr(10))
        time.sleep(float(sys.argv[2]))
        return X @ [1.0, 2.0]

    X = np.random.default_rng(0).normal(size=(60, 2))
    given = model, X, cfx.Space.from_data(X), 1.4
"""


def start(rest: str, folder: Path, seconds: float) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(rest))
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, as of a command in a terminal
    )


def wait_for_calls(folder: Path, n: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while sum(log.read_text().count("\n") for log in folder.glob("*.log")) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_ctrl_c_ends_workers_and_keeps_the_answers_of_finished_blocks(tmp_path: Path) -> None:
    rest = """
        many = cfx.explain_many(*given, method="random", budget=40, rng=0, n_jobs=2)
        print(len(many), len(many) == len(many.index), all(a.n_evaluations for a in many))
    """
    process = start(rest, tmp_path, 0.2)
    wait_for_calls(tmp_path, 20, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    count, *good = out.split()
    assert 0 < int(count) < 60
    assert good == ["True", "True"]


@pytest.mark.slow
def test_a_killed_call_with_workers_loses_at_most_what_was_being_scored(tmp_path: Path) -> None:
    rest = """
        with cfx.Evaluations.open(folder / "known.db") as store:
            how = dict(method="random", budget=20, rng=0, n_jobs=2)
            many = cfx.explain_many(*given, evaluations=store, **how)
            print([[float(x) for x in a.best.row] for a in many])
    """
    process = start(rest, tmp_path, 0.2)
    wait_for_calls(tmp_path, 20, process)
    process.kill()  # -9, the parent alone
    process.wait()
    logs = [log.read_text().splitlines() for log in tmp_path.glob("*.log")]
    sure = {tuple(row) for log in logs for line in log[:-1] for row in json.loads(line)}
    with cfx.Evaluations.open(tmp_path / "known.db") as store:
        kept = {tuple(row) for row in store.to_frame().iloc[:, :2].to_numpy().tolist()}
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # workers that wait for more
    process.communicate(timeout=60)
    assert len(sure) > 30
    assert sure <= kept
    again = start(rest, tmp_path, 0.0).communicate(timeout=120)
    (tmp_path / "fresh").mkdir()
    whole = start(rest, tmp_path / "fresh", 0.0).communicate(timeout=120)
    assert again[0] == whole[0] != "", again[1]
