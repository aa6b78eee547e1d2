"""Many queries from one file into another, part by part, gone on with after whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.cli.shell import Shell
from tests.people import people

MANY = ("explain-many", "--model", "m.txt", "--data", "X.csv", "--target", "+5%", "--quiet")


@pytest.fixture(autouse=True)
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few queries be a stream."""
    monkeypatch.setattr("bayescfx.cli.commands.MOST_IN_MEMORY", 4)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts and blocks be small, parts a multiple of blocks as in the package."""
    monkeypatch.setattr("bayescfx.cli.streaming.PART", 16)
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 8)


def queries(folder: Path, n: int, name: str = "many.parquet", groups: int = 12) -> pd.DataFrame:
    """Write queries with row groups of other sizes than parts."""
    X, _ = people()
    table = pd.concat([X] * (n // len(X) + 1), ignore_index=True).head(n)
    if name.endswith(".parquet"):
        table.to_parquet(folder / name, row_group_size=groups)
    else:
        table.to_csv(folder / name, index=False)
    return table


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("name", ["many.parquet", "many.csv"])
def test_answers_are_those_of_python(shell: Shell, name: str) -> None:
    table = queries(shell.folder, 40, name)
    words = ("--queries", name, "--method", "random", "--budget", "9")
    ran = shell(*MANY, *words, "--out", "a.parquet", "--out", "a.csv")
    found = pd.read_parquet(shell.folder / "a.parquet")
    assert found["query"].tolist() == list(range(40))
    assert sorted(p.name for p in shell.folder.glob("a.*")) == ["a.csv", "a.parquet"]
    model, space = cfx.load_model("m.txt"), cfx.Space.from_data(people()[0])
    target = cfx.increase(percent=5)
    many = cfx.explain_many(model.model, table, space, target, method="random", budget=9, rng=0)
    assert found["status"].tolist() == [a.status for a in many]
    assert found["output"].tolist() == [a.best.output for a in many]
    assert found["changes"].tolist() == [line for line in many.summary()["changes"].tolist()]
    assert f"{sum(a.reached for a in many)} of 40 reached" in ran.out
    again = pd.read_csv(shell.folder / "a.csv")
    assert again["output"].tolist() == found["output"].tolist()


@pytest.mark.usefixtures("parts")
def test_parts_that_are_there_are_left_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    queries(shell.folder, 50)
    words = (
        *MANY,
        "--queries",
        "many.parquet",
        "--method",
        "random",
        "--budget",
        "9",
        "--out",
    )
    shell(*words, "whole.parquet")
    calls: list[int] = []
    real = cfx.Space.encode_queries

    def counting(self: Any, rows: Any, **more: Any) -> Any:
        calls.append(len(rows))
        if sum(calls) > 42:
            raise KeyboardInterrupt
        return real(self, rows, **more)

    monkeypatch.setattr(cfx.Space, "encode_queries", counting)
    shell(*words, "cut.parquet")
    kept = sorted((shell.folder / "cut.parquet.parts").glob("*.parquet"))
    assert kept
    assert not (shell.folder / "cut.parquet").exists()
    before = [part.stat().st_mtime_ns for part in kept]
    calls.clear()
    monkeypatch.setattr("bayescfx.cli.streaming._finish", lambda *_: 0)
    shell(*words, "cut.parquet")
    assert [part.stat().st_mtime_ns for part in kept] == before
    assert 0 < sum(calls) <= 50 - 16 * len(kept) + 1
    monkeypatch.undo()
    os.chdir(shell.folder)
    monkeypatch.setattr("bayescfx.cli.streaming.PART", 16)
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 8)
    monkeypatch.setattr("bayescfx.cli.commands.MOST_IN_MEMORY", 4)
    shell(*words, "cut.parquet")
    whole, cut = (pd.read_parquet(shell.folder / f"{n}.parquet") for n in ("whole", "cut"))
    pd.testing.assert_frame_equal(whole, cut)
    assert not (shell.folder / "cut.parquet.parts").exists()


def test_parts_of_another_command_are_not_mixed(shell: Shell) -> None:
    queries(shell.folder, 20)
    folder = shell.folder / "b.csv.parts"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"key": "another"}')
    (folder / "00000000.csv").write_text("query\n0\n")
    (folder / "00000000.summary").write_text("{}")
    words = (*MANY, "--queries", "many.parquet", "--out", "b.csv")
    assert "holds answers of another command" in shell.fails(*words)


@pytest.mark.usefixtures("parts")
def test_parts_from_before_the_data_changed_are_not_mixed(shell: Shell) -> None:
    queries(shell.folder, 20)
    data = pd.read_csv(shell.folder / "X.csv")
    data.to_csv(shell.folder / "Y.csv", index=False)
    files = ("--data", "Y.csv", "--queries", "many.parquet", "--out", "data.csv")
    words = (*MANY, *files, "--method", "random", "--budget", "9")
    manifest = shell.folder / "data.csv.parts" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("")  # cut short while it was written: there are no parts yet
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayescfx.cli.growing_table.GrowingTable.finish", lambda _: 1 / 0)
        assert shell(*words).code == 1
    assert len([*manifest.parent.glob("*.csv")]) == 2
    data.head(len(data) // 2).to_csv(shell.folder / "Y.csv", index=False)
    assert "holds answers of another command" in shell.fails(*words)


def test_a_command_that_failed_at_once_does_not_block_the_next(shell: Shell) -> None:
    queries(shell.folder, 20)
    words = (*MANY, "--queries", "many.parquet", "--out", "h.csv", "--budget", "9")
    assert "must be one of" in shell.fails(*words, "--method", "randon")
    assert shell(*words, "--method", "random").code in (0, 3, 4)
    assert len(pd.read_csv(shell.folder / "h.csv")) == 20


@pytest.mark.slow
@pytest.mark.usefixtures("parts")
def test_queries_are_counted_once_however_many_answers_they_have(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.cli.streaming.PART", 64)
    queries(shell.folder, 900)
    words = (*MANY, "--queries", "many.parquet", "--out", "i.csv", "-n", "3")
    ran = shell(*words, "--method", "random", "--budget", "6", "--json")
    found = pd.read_csv(shell.folder / "i.csv")
    assert len(found) > 16 * 64  # in more than one piece when it is read again
    each = found.drop_duplicates("query")
    assert ran.content["queries"] == len(each) == 900
    assert ran.content["rows"] == each["n_evaluations"].sum()


def test_a_query_with_an_error_does_not_stop_the_others(shell: Shell) -> None:
    table = queries(shell.folder, 20).astype({"bmi": object})
    table.loc[7, "sex"] = "mle"
    table.to_csv(shell.folder / "bad.csv", index=False)
    words = (*MANY, "--queries", "bad.csv", "--out", "c.csv")
    ran = shell(*words)
    assert ran.code == 2
    found = pd.read_csv(shell.folder / "c.csv")
    assert found["status"].tolist().count("error") == 1
    assert "'mle'" in found["error"].iloc[7]
    assert "row 7: the query has 'mle' in column 'sex'" in ran.err


@pytest.mark.parametrize("out", [(), ("--out", "d.html"), ("--out", "d.csv", "--out", "d.json")])
def test_many_answers_go_into_tables(shell: Shell, out: tuple[str, ...]) -> None:
    queries(shell.folder, 5)
    words = (*MANY, "--queries", "many.parquet", *out)
    assert "answered into tables, --out FILE.csv or FILE.parquet" in shell.fails(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--timeout", "-1"), "error: --timeout must be seconds >= 0; got -1.0."),
        (("--seed", "-1"), "error: --seed must be a whole number >= 0; got -1."),
    ],
)
def test_errors_name_options_as_typed(words: tuple[str, ...], message: str, shell: Shell) -> None:
    queries(shell.folder, 5)
    base = (*MANY, "--queries", "many.parquet", "--out", "j.csv")
    assert shell.fails(*base, *words) == message


def test_a_thousand_queries_and_one_are_a_stream(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def stream(*given: Any) -> int:
        seen.append(len(given))
        return 0

    monkeypatch.setattr("bayescfx.cli.commands.stream", stream)
    monkeypatch.setattr("bayescfx.cli.commands.MOST_IN_MEMORY", 1000)
    queries(shell.folder, 1001)
    shell(*MANY, "--queries", "many.parquet", "--out", "e.csv")
    assert len(seen) == 1


#: The command with parts of one block, so that kills fall between parts.
SMALL_PARTS = """\
import sys
import bayescfx.cli.commands as commands
import bayescfx.cli.streaming as streaming
from bayescfx.cli import main

commands.MOST_IN_MEMORY = 4
streaming.PART = 64
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_killed_command_goes_on(shell: Shell) -> None:
    queries(shell.folder, 640)
    command = [sys.executable, "-c", SMALL_PARTS, *MANY, "--queries", "many.parquet"]
    command += ["--method", "sweep", "--budget", "100", "--jobs", "2", "--out"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, "f.parquet"], cwd=shell.folder, env=env, check=False)
    rng, tries = np.random.default_rng(0), 0
    while not (shell.folder / "g.parquet").exists():
        tries += 1
        child = subprocess.Popen(
            [*command, "g.parquet"], cwd=shell.folder, env=env, start_new_session=True
        )
        end = time.monotonic() + (rng.uniform(4, 12) if tries < 6 else 600)
        while child.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    assert tries > 1
    whole, cut = (pd.read_parquet(shell.folder / f"{n}.parquet") for n in ("f", "g"))
    pd.testing.assert_frame_equal(whole, cut)


@pytest.mark.usefixtures("parts")
def test_levels_of_digits_are_text_in_every_part(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is read by itself; one without a letter looks like numbers."""
    monkeypatch.syspath_prepend(str(shell.folder))
    (shell.folder / "codes.py").write_text(
        "score = lambda rows: rows['a'] + rows['code'].str.len()"
    )
    code = ["5"] * 25 + ["5", "A7", "17"] * 5
    table = pd.DataFrame({"a": np.linspace(0.0, 1.0, 40), "code": code})
    table.to_csv(shell.folder / "C.csv", index=False)
    words = ("--data", "C.csv", "--queries", "C.csv", "--kind", "code=categorical")
    more = ("--target", ">= 0", "--method", "random", "--out", "c.parquet")
    shell("explain-many", "--model", "codes:score", *words, *more, "--quiet")
    found = pd.read_parquet(shell.folder / "c.parquet")
    assert len(found) == 40
    assert found["error"].isna().all()
