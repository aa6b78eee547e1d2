"""Evaluations in other processes: they write to the same file, or keep new rows in memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.store import File

ROWS = pd.DataFrame({"a": [1, 2]})


def test_evaluations_of_a_file_write_to_it_from_another_process(tmp_path: Path) -> None:
    script = (
        "import pickle, sys, pandas as pd\n"
        "known = pickle.load(sys.stdin.buffer)\n"
        "known.append(pd.DataFrame({'a': [2, 3]}), [9.0, 3.0])\n"
        "assert known.packed() is None\n"
        "assert len(known) == 3\n"
    )
    with Evaluations.open(tmp_path / "a.db", model="v1") as known:
        known.append(ROWS, [1.0, 2.0])
        sent = pickle.dumps(known)
        subprocess.run([sys.executable, "-c", script], input=sent, check=True, cwd=tmp_path)
        assert known.outputs.tolist() == [1.0, 2.0, 3.0]
        again = pickle.loads(sent)
        assert again.outputs.tolist() == [1.0, 2.0, 3.0]
        assert again.model == "v1"
        again.file.close()


def test_evaluations_of_a_file_on_another_machine_are_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Evaluations.open(tmp_path / "a.db", model="v1") as known:
        known.append(ROWS, [1.0, 2.0])
        sent = pickle.dumps(known)
        monkeypatch.setattr("platform.node", lambda: "elsewhere")
        away = pickle.loads(sent)
        assert away.file is None
        assert away.packed() is None
        assert len(away) == 0
        away.append(pd.DataFrame({"a": [3]}), [3.0])
        known.absorb(away.packed(), None)
        assert known.outputs.tolist() == [1.0, 2.0, 3.0]


def test_another_file_with_the_same_path_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Evaluations.open(path) as known:
        sent = pickle.dumps(known)
    path.unlink()
    assert pickle.loads(sent).file is None
    Evaluations.open(path).close()
    assert pickle.loads(sent).file is None


def test_new_rows_in_memory_are_returned() -> None:
    known = Evaluations()
    assert known.packed() is None
    known.append(pd.DataFrame({"a": [3]}), [3.0])
    away = pickle.loads(pickle.dumps(known))
    away.append(pd.DataFrame({"a": [4]}), [np.nan])
    assert away.rows is not None  # this joins the parts
    learnt = pickle.loads(pickle.dumps(away.packed()))
    assert learnt.rows["a"].tolist() == [3, 4]
    assert learnt.y[0] == 3.0
    assert len(known) == 1


def test_a_connection_is_not_used_after_a_fork(tmp_path: Path) -> None:
    file = File(tmp_path / "a.db")
    before = file._db
    file._pid -= 1  # as in a child
    file.release("v1")
    assert file._db is not before
    file.close()
    assert before is not None
    before.close()
