"""Evaluations in a file: exact cells, and complete after a crash."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import EvaluationsError
from bayescfx.evaluations.data import Evaluations
from tests.evaluations.rows import MIXED, same_tables


def test_a_file_keeps_every_cell_exactly(tmp_path: Path) -> None:
    path = tmp_path / "known.db"
    with Evaluations.open(path) as known:
        known.append(MIXED.iloc[:1], [-1e300])
        known.append(MIXED.iloc[1:], [np.nan])
    with Evaluations.open(path) as again:
        assert len(again) == 2
        assert again.outputs[0] == -1e300
        assert np.isnan(again.outputs[1])
        same_tables(again.to_frame().drop(columns="output"), MIXED)
        assert repr(again) == f"Evaluations(2 rows in {str(path)!r})"


def test_a_row_is_kept_once_with_its_first_output(tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": [1, 2, 3]})
    with Evaluations.open(tmp_path / "a.db") as known:
        known.append(rows, [1.0, np.nan, 5e-324])
        known.append(rows, [9.0, 2.0, np.nan])
        # The failed row has an output now, and counts as new.
        assert known.to_frame().to_numpy().tolist() == [[1, 1.0], [3, 5e-324], [2, 2.0]]
        assert len(known) == 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "object"])
def test_a_file_keeps_arrays(tmp_path: Path, dtype: str) -> None:
    rows = np.array([[0, 1], [1, 1]]).astype(dtype)
    with Evaluations.open(tmp_path / "a.db") as known:
        known.append(rows, [1.0, 2.0])
    with Evaluations.open(tmp_path / "a.db") as again:
        assert isinstance(again.rows, np.ndarray)
        assert again.rows.dtype == rows.dtype
        assert again.rows.tolist() == rows.tolist()


def test_categories_that_appear_later_are_kept(tmp_path: Path) -> None:
    def level(name: str) -> pd.DataFrame:
        return pd.DataFrame({"c": pd.Categorical([name])})

    with Evaluations.open(tmp_path / "a.db") as known:
        known.append(level("x"), [1.0])
        known.append(level("y"), [2.0])
        assert known.to_frame()["c"].tolist() == ["x", "y"]
    with Evaluations.open(tmp_path / "a.db") as again:
        frame = again.to_frame()
        assert frame["c"].tolist() == ["x", "y"]
        assert frame["c"].cat.categories.tolist() == ["x", "y"]


def test_readers_see_whole_batches_while_a_writer_has_the_file_open(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "a.db") as writer:
        writer.append(pd.DataFrame({"a": [1, 2]}), [1.0, 2.0])
        with Evaluations.open(tmp_path / "a.db") as reader:
            assert reader.outputs.tolist() == [1.0, 2.0]
        writer.append(pd.DataFrame({"a": [3]}), [3.0])
    with Evaluations.open(tmp_path / "a.db") as reader:
        assert len(reader) == 3


def test_two_writers_share_a_file_and_cannot_mix_columns(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "a.db") as one, Evaluations.open(tmp_path / "a.db") as two:
        one.append(pd.DataFrame({"a": [1]}), [1.0])
        two.append(pd.DataFrame({"a": [2.5]}), [2.0])
        with pytest.raises(EvaluationsError, match="holds rows with the columns a; got b"):
            Evaluations.open(tmp_path / "a.db").append(pd.DataFrame({"b": [1]}), [1.0])
    with Evaluations.open(tmp_path / "a.db") as both:
        assert both.to_frame()["a"].tolist() == [1.0, 2.5]


def test_a_crash_loses_nothing_that_was_scored(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    script = (
        "import os, sys, pandas as pd\n"
        "from bayescfx.evaluations.data import Evaluations\n"
        "known = Evaluations.open(sys.argv[1])\n"
        "known.append(pd.DataFrame({'a': [1, 2]}), [1.0, 2.0])\n"
        "known.append(pd.DataFrame({'a': [3]}), [3.0])\n"
        "os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == 9
    with Evaluations.open(path) as known:
        assert known.outputs.tolist() == [1.0, 2.0, 3.0]


def test_a_batch_is_on_disk_before_the_search_continues(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "known.db") as known:
        assert known.file is not None
        with known.file.writing() as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_batch_that_cannot_be_written_is_not_kept_in_memory(tmp_path: Path) -> None:
    with Evaluations.open(tmp_path / "a.db") as known:
        rows = pd.DataFrame({"a": np.array([1, object()], dtype=object)})
        with pytest.raises(TypeError, match="a cell must be"):
            known.append(rows, [1.0, 2.0])
        assert len(known) == 0
    with Evaluations.open(tmp_path / "a.db") as again:
        assert len(again) == 0


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to have a header " * 40)
    with pytest.raises(EvaluationsError, match=r"notes.txt' must be a file of evaluations; got"):
        Evaluations.open(text)
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE customers (id INTEGER)")
    db.close()
    with pytest.raises(
        EvaluationsError, match=r"got a database of another program. Choose another"
    ):
        Evaluations.open(other)
    db = sqlite3.connect(other)
    assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    db.close()


def test_a_file_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(EvaluationsError, match=r"a.db' must be a file that can be written; got"):
        Evaluations.open(tmp_path / "missing" / "a.db")


def test_a_removed_file_causes_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Evaluations.open(path) as kept:
        kept.append(MIXED, [1.0, 2.0])
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(EvaluationsError, match="Put it back where it was"):
        kept.to_frame()


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    Evaluations.open(tmp_path / "a.db").close()
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(
        EvaluationsError, match=r"must have format 2; got format 7. Use the version"
    ):
        Evaluations.open(tmp_path / "a.db")


def test_a_closed_file_is_complete_without_its_log(tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0]})
    with Evaluations.open(tmp_path / "a.db") as known:
        other = Evaluations.open(tmp_path / "a.db")  # as an idle worker has
        assert len(other) == 0
        known.append(rows, [3.0, 4.0])
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    with Evaluations.open(tmp_path / "copy.db") as copied:
        assert copied.outputs.tolist() == [3.0, 4.0]
    other.close()


def test_rows_read_before_stay_available_after_closing(tmp_path: Path) -> None:
    known = Evaluations.open(tmp_path / "a.db")
    known.append(pd.DataFrame({"a": [1]}), [1.0])
    known.close()
    known.close()
    assert known.outputs.tolist() == [1.0]


def test_evaluations_in_memory_can_be_sent_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(Evaluations(MIXED, [1.0, 2.0])))
    assert again.outputs.tolist() == [1.0, 2.0]


def test_several_processes_can_create_one_file(tmp_path: Path) -> None:
    def opened(k: int) -> int:
        with Evaluations.open(tmp_path / f"{k // 3}.db") as known:
            return len(known)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(opened, range(90))) == [0] * 90
