"""`bayescfx store`: what a file holds, what is left of a damaged one, several put together."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.cli.shell import LINEAR, Shell

ROWS = pd.DataFrame({"a": np.arange(300), "b": ["x", "ü"] * 150})


def make(path: Path, model: str, rows: pd.DataFrame = ROWS) -> None:
    with cfx.Evaluations.open(path, model=model) as known:
        known.append(rows, rows["a"].to_numpy(float))


def test_whole_files_are_listed_exported_and_merged(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "a.db", "v1", ROWS.head(5))
    make(tmp_path / "b.db", "v1", ROWS.iloc[3:8])
    make(tmp_path / "b.db", "v2", ROWS.head(2))
    assert shell("store", "check", "a.db", "b.db").code == 0
    assert shell("store", "list", "b.db").out.splitlines() == [
        "b.db: v1: 5 rows",
        "b.db: v2: 2 rows",
    ]
    assert shell("store", "merge", "c.db", "a.db", "b.db").code == 0
    with cfx.Evaluations.open(tmp_path / "c.db", model="v1") as known:
        pd.testing.assert_frame_equal(known.to_frame()[["a", "b"]], ROWS.head(8))
    for end in ("csv", "json", "parquet"):
        assert shell("store", "export", "c.db", f"c.{end}").code == 0
        read: Any = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[end]
        table = read(tmp_path / f"c.{end}")
        assert table["model"].tolist() == ["v1"] * 8 + ["v2"] * 2
        assert table["output"].tolist() == [*range(8), 0, 1]


def test_rows_of_a_model_without_a_name_stay_apart_in_a_merged_file(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with cfx.Evaluations.open("a.db") as known:
        known.append(ROWS.head(5), np.full(5, 7.0))
    make(tmp_path / "b.db", "v1", ROWS.iloc[3:8])
    assert shell("store", "merge", "a.db", "b.db").code == 0
    message = ["a.db: model without a name: 5 rows", "a.db: v1: 5 rows"]
    assert shell("store", "list", "a.db").out.splitlines() == message
    with cfx.Evaluations.open("a.db", model="v1") as known:
        assert known.outputs.tolist() == [3, 4, 5, 6, 7]
    with cfx.Evaluations.open("c.db", model="v1") as known:
        known.append(np.eye(2), [1.0, 2.0])
    assert "holds rows of an array; got a DataFrame" in shell.fails(
        "store", "merge", "c.db", "b.db"
    )


def test_readable_rows_of_a_damaged_file_are_exported(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "a.db", "v1")
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("UPDATE evaluations SET cells = '[1' WHERE id % 10 = 0")
    db.commit()
    db.close()
    ran = shell("store", "check", "a.db")
    assert ran.code == 2
    assert "270 rows, damaged (rows can not be read); 30 rows lost" in ran.out
    assert shell("store", "export", "a.db", "a.csv").code == 2
    assert len(pd.read_csv(tmp_path / "a.csv")) == 270
    assert shell("store", "merge", "new.db", "a.db").code == 2
    with cfx.Evaluations.open(tmp_path / "new.db", model="v1") as known:
        assert len(known) == 270


@pytest.mark.parametrize("kind", ["cut", "flipped"])
def test_bytes_that_are_gone_do_not_take_all_with_them(
    shell: Shell, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "a.db", "v1")
    path = tmp_path / "a.db"
    content = bytearray(path.read_bytes())
    if kind == "cut":
        del content[-3 * 4096 :]
    else:
        content[-5 * 4096 : -4 * 4096] = bytes(4096)
    path.write_bytes(bytes(content))
    ran = shell("store", "check", "a.db")
    assert ran.code == 2
    assert "damaged" in ran.out
    shell("store", "export", "a.db", "a.csv")
    assert (tmp_path / "a.csv").is_file()


def test_wrong_arguments_are_errors(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "store must be check, list, export, merge" in shell.fails("store", "mend", "a.db")
    assert "there is none" in shell.fails("store", "check", "gone.db")
    assert "2 or more files" in shell.fails("store", "export", "gone.db")
    make(tmp_path / "a.db", "v1")
    assert ".csv, .parquet or .json" in shell.fails("store", "export", "a.db", "a.txt")


def test_a_named_run_ends_the_same_way(shell: Shell) -> None:
    words = ("--query", "3", "--target", "+25%", "--budget", "30", "--json")
    kept = ("--evaluations", "run.db", "--run", "monday")
    outs = [shell.explain(*words, *kept).content for _ in range(2)]
    assert outs[0] == outs[1]
    assert "monday" in shell("store", "list", "run.db").out
    assert "--run must have a file" in shell.fails(*LINEAR, *words[:4], "--run", "x")
