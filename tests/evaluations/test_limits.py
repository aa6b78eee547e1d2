"""Locked files, full disks, damage: clear errors, and no scored row is lost."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.conftest import Recorder

X = np.random.default_rng(0).normal(size=(40, 3))
SPACE = cfx.Space.from_data(X)


def f(rows: Any) -> Any:
    return rows @ [1.0, -2.0, 0.5]


def ask(model: Any, known: cfx.Evaluations, **more: Any) -> cfx.Explanation:
    settings: dict[str, Any] = {"budget": 40, "rng": 0, "method": "random"} | more
    return cfx.explain(model, X[0], SPACE, cfx.increase(by=50.0), evaluations=known, **settings)


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_the_wait_for_a_lock_ends_with_the_timeout(tmp_path: Path) -> None:
    model = Recorder(f)
    with cfx.Evaluations.open(tmp_path / "a.db", model="v1") as known:
        known.append(X[:3], f(X[:3]))
        words = [sys.executable, "-c", HOLD, str(tmp_path / "a.db")]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            with pytest.raises(cfx.EvaluationsError, match="is held by another program"):
                ask(model, known, timeout=0.5)  # which notes that it begins, and does not
            assert model.n == 0
            began = time.monotonic()
            with pytest.raises(cfx.EvaluationsError, match="is held by another program") as caught:
                ask(model, known, timeout=0.5, rng=None)
            assert time.monotonic() - began < 9  # and not 10 s, nor 60
            kept = caught.value.evaluations  # type: ignore[attr-defined]  # attached
            scored = {tuple(row) for rows in model.calls for row in rows.tolist()}
            assert scored <= {tuple(row) for row in kept.rows.tolist()}
            other.communicate()
        known.append(X[5:6], f(X[5:6]))
    with cfx.Evaluations.open(tmp_path / "a.db", model="v1") as again:  # all was written then
        assert scored <= {tuple(row) for row in np.asarray(again.rows).tolist()}


def test_a_full_disk_ends_the_search_with_the_best_so_far(tmp_path: Path) -> None:
    model = Recorder(f)
    with cfx.Evaluations.open(tmp_path / "a.db", model="v1") as known:
        known.append(X, f(X))
        assert known.file is not None
        ((pages,),) = known.file.ask("PRAGMA page_count")
        known.file.ask(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(cfx.EvaluationsError, match=r"got database or disk is full") as caught:
            ask(model, known, budget=2000, method=cfx.RandomSearch(batch=20))
        kept = caught.value.evaluations  # type: ignore[attr-defined]  # attached
        (best,) = caught.value.explanations  # type: ignore[attr-defined]  # attached
        assert best.stopped == "fault"
        rows = {tuple(row) for rows in model.calls for row in rows.tolist()}
        assert rows <= {tuple(row) for row in kept.rows.tolist()}
        assert len(rows) > 20
        assert best.best.output == kept.outputs.max()
        n = len(kept)
        known.file.ask("PRAGMA max_page_count = 1000000")
    with cfx.Evaluations.open(tmp_path / "a.db", model="v1") as again:  # there was room at the end
        assert len(again) == n


FULL = """
import resource, signal, sys
import numpy as np
import bayescfx as cfx
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
known = cfx.Evaluations.open(sys.argv[1], model="v1")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
rows = np.random.default_rng(0).normal(size=(20_000, 3))
for i in range(0, len(rows), 100):
    try:
        known.append(rows[i : i + 100], rows[i : i + 100, 0])
    except cfx.EvaluationsError as error:
        assert "must be a file that can be written; got" in str(error), error
        print(len(known) == i + 100, i)
        break
"""


def test_a_file_that_cannot_grow_causes_an_error(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FULL, str(tmp_path / "a.db")]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    assert printed[0] == "True"
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        assert len(known) == int(printed[1]) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="files in use stay there")
def test_a_file_that_is_removed_ends_the_search_with_the_best_so_far(tmp_path: Path) -> None:
    calls: list[int] = []

    def removing(rows: Any) -> Any:
        calls.append(len(rows))
        if len(calls) == 3:
            (tmp_path / "a.db").unlink()
        return f(rows)

    known = cfx.Evaluations.open(tmp_path / "a.db")
    with pytest.raises(cfx.EvaluationsError, match="was removed while it was in use") as caught:
        ask(removing, known, method=cfx.BayesCFX(), budget=20)
    assert len(calls) == 3
    assert len(getattr(caught.value, "explanations", ())) == 1


def test_the_error_for_a_damaged_file_names_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with cfx.Evaluations.open(path) as known:
        known.append(X, f(X))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with (
        pytest.raises(cfx.EvaluationsError, match="bayescfx store"),
        cfx.Evaluations.open(path) as k,
    ):
        k.to_frame()
    path.write_bytes(content)
    db = sqlite3.connect(path)
    db.execute("UPDATE evaluations SET cells = '[1' WHERE id = 3")
    db.commit()
    db.close()
    with (
        pytest.raises(cfx.EvaluationsError, match="bayescfx store"),
        cfx.Evaluations.open(path) as k,
    ):
        k.to_frame()


def test_writing_to_a_file_takes_no_memory(tmp_path: Path) -> None:
    rows = np.arange(60_000.0).reshape(-1, 3)
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        known.append(rows[:2000], rows[:2000, 0])
        tracemalloc.start()
        try:
            for i in range(2000, len(rows), 2000):
                known.append(rows[i : i + 2000], rows[i : i + 2000, 0])
            gc.collect()
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert grown < rows.nbytes / 2  # other threads may take some
        assert len(known) == len(rows)


def test_answers_can_be_read_after_closing(tmp_path: Path) -> None:
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        answer = ask(f, known)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.evaluations.outputs.tolist() == answer.evaluations.outputs.tolist()
    more = ask(f, answer.evaluations, rng=1)  # goes on in memory
    assert len(more.evaluations) > len(again.evaluations)
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        assert len(known) == len(again.evaluations)


WRITE = """
import sys, time
import numpy as np
import bayescfx as cfx
path, me, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with cfx.Evaluations.open(path, model="v1") as known:
    end, k = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        mine = np.array([[me, k, 0.0], [me, k, 1.0], [9.0, k, 0.0]])  # all write the last
        known.append(mine, mine[:, 1])
        k += 1
print(k)
"""


def check_writers(path: Path, seconds: float) -> None:
    words = [sys.executable, "-c", WRITE, str(path)]
    writers = [
        subprocess.Popen([*words, str(i), str(seconds)], stdout=subprocess.PIPE, text=True)
        for i in range(4)
    ]
    counts = [int(writer.communicate()[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    with cfx.Evaluations.open(path, model="v1") as known:
        rows = [tuple(row) for row in np.asarray(known.rows).tolist()]
    wanted = {(float(i), k, z) for i, n in enumerate(counts) for k in range(n) for z in (0.0, 1.0)}
    wanted |= {(9.0, k, 0.0) for k in range(max(counts))}
    assert min(counts) > 0
    assert len(rows) == len(set(rows))
    assert set(rows) == wanted


def test_four_processes_write_to_one_file(tmp_path: Path) -> None:
    check_writers(tmp_path / "a.db", 0.7)


@pytest.mark.slow
def test_four_processes_write_to_one_file_for_a_minute(tmp_path: Path) -> None:
    check_writers(tmp_path / "a.db", 60.0)


@pytest.mark.slow
def test_two_hundred_thousand_rows_take_no_memory(tmp_path: Path) -> None:
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        tracemalloc.start()
        try:
            for i in range(100):
                rows = pd.DataFrame({"a": np.arange(2000.0) + 2000 * i})
                known.append(rows, np.zeros(2000))
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert grown < 2**20
