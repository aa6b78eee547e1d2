"""What is written where, and in which words."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bayescfx as cfx
from bayescfx.cli.progress_lines import show_progress
from bayescfx.requests.console import Console
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.messages import describe_error
from bayescfx.requests.settings import OPTIONS
from bayescfx.search.turns import Step
from tests.cli.shell import FUNCTIONS, LINEAR, Shell
from tests.people import people


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bayescfx", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": ""},
    )


def test_nothing_but_the_answer_is_on_stdout_whatever_the_model_prints(folder: Path) -> None:
    words = ("explain", "--model", f"{FUNCTIONS}:noisy", *LINEAR[3:])
    ran = run(folder, *words, "--query", "3", "--target", "+10%", "--json", "--budget", "10")
    assert json.loads(ran.stdout)["status"] in ("reached", "best_guess")
    assert "printed by the model" in ran.stderr
    assert "written by compiled code" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the C library has another name")
@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_lines_left_in_the_buffer_of_c_are_not_on_stdout(
    folder: Path, jobs: tuple[str, ...]
) -> None:
    (folder / "printing.py").write_text(
        "import ctypes\n"
        "def score(rows):\n"
        "    ctypes.CDLL(None).printf(b'left in the buffer\\n')\n"
        "    return rows['age'] * 2.0 + rows['bmi']\n"
    )
    words = ["explain-many", "--model", "printing:score", *LINEAR[3:], "--queries", "four.csv"]
    people()[0].head(4).to_csv(folder / "four.csv", index=False)
    ran = run(folder, *words, *jobs, "--target", "+10%", "--json", "--quiet")
    assert len(json.loads(ran.stdout)["answers"]) == 4
    assert "left in the buffer" in ran.stderr


def test_an_unexpected_error_is_one_line_with_its_own_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("bayescfx.cli.asking.gather_settings", fail)
    ran = shell("explain")
    assert ran.code == 1
    assert ran.err == "error: unexpected KeyError: 'lost'. See the traceback with --debug.\n"


def test_an_interruption_has_its_own_code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bayescfx.cli.asking.gather_settings", stop)
    assert shell("explain").code == 130


def test_a_warning_is_one_line_and_written_once(shell: Shell) -> None:
    row = json.loads((shell.folder / "one.json").read_text())
    query = json.dumps({**row, "bmi": 99.0})
    ran = shell(*LINEAR, "--query", query, "--target", "+10%", "--quiet")
    assert ran.err.count("warning: ") == 1
    assert "warning: the query lies outside the space, which grew for it: 'bmi' by the" in ran.err


def test_advice_for_python_becomes_advice_for_the_command_line() -> None:
    advice = "Exclude that region with space.require, or pass on_fault='skip'."
    error = cfx.ModelError("`model` returned nan.", parameter="on_fault", advice=advice)
    assert str(error) == f"`model` returned nan. {advice}"
    assert describe_error(error) == (
        "the model returned nan. Exclude that region with --require, or pass --on-fault skip."
    )


def test_an_error_of_another_library_is_named() -> None:
    assert (
        describe_error(ZeroDivisionError("division by zero"))
        == "ZeroDivisionError: division by zero."
    )


@pytest.mark.parametrize("name", ["budget", "tolerance", "retries", "batch", "only_up"])
def test_a_parameter_is_called_like_its_option(name: str) -> None:
    error = cfx.SpaceError(f"`{name}` must be more; got less than `it`.", parameter=name)
    assert describe_error(error) == f"--{name.replace('_', '-')} must be more; got less than `it`."
    assert describe_error(cfx.SpaceError(f"`{name}` must be more")) == f"`{name}` must be more."


def test_no_message_of_the_library_names_options() -> None:
    root = Path(cfx.__file__).parent
    flags = {option.flag for option in OPTIONS.values()}
    flags |= {verb.option for verb in VERBS.values()}
    for path in root.rglob("*.py"):
        if path.name not in ("verbs.py", "parameters.py") and path.parent.name not in (
            "cli",
            "requests",
            "web",
        ):
            words = set(re.findall(r"--[a-z][a-z-]+", path.read_text(encoding="utf-8")))
            assert not words & flags, path


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def step(question: int, n: int, *, reached: bool = False) -> Step:
    return Step(question, n, 10, 1.5, 0.5, reached, 1.0)


def test_progress_is_a_bar_on_a_terminal_and_plain_lines_elsewhere() -> None:
    pytest.importorskip("tqdm", reason="needs tqdm")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with show_progress(Console(io.StringIO(), stream)) as bar:
            for n in range(1, 11):
                bar(step(0, n, reached=n > 5))
    assert "\r" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
    lines = file.getvalue().splitlines()
    assert len(lines) <= 8
    assert lines[-1].startswith("  ")
    assert lines[-1].endswith("rows: best prediction 1.5, reached at cost 1")


def test_progress_of_a_long_proof_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    with show_progress(Console(io.StringIO(), stream)) as show:
        for bound in (0.2, 0.5, 0.8):
            show(replace(step(0, 1, reached=True), bound=bound))
    assert "  1 of at most 10 rows: proving: cost 1, bound 0.5, gap 100 %" in stream.getvalue()


def test_progress_without_tqdm_is_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    terminal = Terminal()
    with show_progress(Console(io.StringIO(), terminal)) as bar:
        bar(step(0, 10))
    assert terminal.getvalue().splitlines() == ["  10 of at most 10 rows: best prediction 1.5"]


def test_progress_of_many_queries_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    with show_progress(Console(io.StringIO(), stream), 2) as bar:
        for n in (2, 4, 6):
            bar(step(0, n))
            bar(step(1, n, reached=True))
        bar(step(1, 8))
        bar(step(1, 9))
        bar(step(1, 10))
    lines = stream.getvalue().splitlines()
    assert 2 <= len(lines) <= 5
    assert lines[0].endswith("rows: 1 of 2 queries reached")
    assert lines[-1].endswith("rows: 1 of 2 queries reached")


def test_quiet_shows_no_progress() -> None:
    stream = io.StringIO()
    with show_progress(Console(io.StringIO(), stream, is_quiet=True)) as bar:
        bar(step(0, 2))
    assert stream.getvalue() == ""


def test_a_model_that_ends_the_program_is_bad_input(shell: Shell) -> None:
    words = ("explain", "--model", f"{FUNCTIONS}:leaves", *LINEAR[3:])
    ran = shell(*words, "--query", "3", "--target", "+10%", "--quiet")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: the model ended the program with 0.\n"


HOSTILE = "a\x1b[31m\x9b2J\x07\u202eb"


@pytest.mark.parametrize("more", [(), ("--json",), ("--debug",)])
def test_control_characters_do_not_reach_the_terminal(more: tuple[str, ...], shell: Shell) -> None:
    X, _ = people()
    X.rename(columns={"glucose": HOSTILE}).to_csv("hostile.csv", index=False)
    base = ("explain", "--model", f"{FUNCTIONS}:score", "--data", "hostile.csv", "--budget", "10")
    for words in (
        (*base, "--query", "3", "--target", "+10%"),
        (*base, "--query", "3", "--target", "+10%", "--require", f"`{HOSTILE}` <= 1"),
        ("inspect", "--data", "hostile.csv"),
    ):
        ran = shell(*words, *more)
        assert ran.out + ran.err != ""
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.out + ran.err)
        if "--json" in more and words[0] == "inspect":
            assert HOSTILE in ran.content["features"]
