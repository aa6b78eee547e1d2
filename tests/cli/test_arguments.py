"""Options: what is wrong with them is one line; help is quick."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

import bayescfx as cfx
from bayescfx.cli.arguments import COMMANDS, Command, parse
from bayescfx.models.loaders import LOADERS
from bayescfx.requests.console import Console
from bayescfx.requests.option import KINDS
from bayescfx.requests.settings import OPTIONS
from bayescfx.search.methods import METHODS
from tests.cli.shell import Shell


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "abc"), "the target must be like '+20%' or '-15' (at least so much"),
        (
            ("--target", "[160, 140]"),
            "`low` must not exceed `high`; got 160.0 and 140.0. Swap them.",
        ),
        (("--fix", "agee"), "error: there is no feature 'agee'. Did you mean 'age'?"),
        (("--between", "bmi"), "--between must be like name=value; got 'bmi'."),
        (("--between", "bmi=a:b"), "--between for 'bmi' must be numbers; got 'a'."),
        (("--between", "bmi=3"), "limits of 'bmi' must be like low:high; got '3'."),
        (("--between", "sex=x"), "'sex' has no level 'x'."),
        (("--move", "sex=-1:1"), "error: --move needs an order, but 'sex' is Categorical."),
        (("--require", "bmi <"), "a rule must be a comparison"),
        (("--kind", "bmi=rael"), "--kind of 'bmi' must be one of 'real', 'integer', 'ordinal'"),
        (("--kind", "bmi"), "--kind must be like name=value; got 'bmi'."),
        (("--drop", "bm"), "--drop must name columns of the data; got 'bm'."),
        (("--budget", "0"), "error: --budget must be a whole number of at least 1; got 0."),
        (("--budget", "x"), "argument --budget: invalid int value: 'x'. See bayescfx explain --h"),
        (("--tolerance", "2"), "error: --tolerance must be at least 0 and less than 1; got 2.0."),
        (("--timeout", "-1"), "--timeout must be seconds >= 0; got -1.0."),
        (("--method", "magic"), "error: --method must be one of 'auto', 'bayes-cfx'"),
        (("--max-changes", "0"), "error: --max-changes must be a whole number >= 1; got 0."),
        (("-n", "0"), "error: -n must be a whole number of at least 1; got 0."),
        (("--seed", "-1"), "error: --seed must be a whole number >= 0; got -1."),
        (("--label", "x"), "the label 'x' must be one of a classifier's; this model is none."),
        (
            ("--out", "a.xyz"),
            "--out must end in .json, .csv, .parquet, .xlsx, .md, .html, .png, .svg, .pdf; got 'a.",
        ),
        (("--out", "no/a.csv"), "--out 'no/a.csv' can't be written: no such folder."),
        (("--header", "x"), "--header must be like 'Name: value'; got 'x'."),
        (("--derive", "bmi=math:pi"), "--derive must be a function of rows; got 3.14"),
        (("--http-timeout", "0"), "error: --http-timeout must be seconds > 0; got 0.0."),
        (("--nonsense",), "unrecognized arguments: --nonsense. See bayescfx --help."),
    ],
)
def test_bad_options_are_one_line(words: tuple[str, ...], message: str, shell: Shell) -> None:
    base = ("explain", "--model", "m.txt", "--data", "X.csv", "--query", "3", "--target", "150")
    assert message in shell.fails(*base, *words)


def test_without_a_command_help_is_shown(shell: Shell) -> None:
    ran = shell()
    assert ran.code == 2
    assert "explain-many" in ran.err
    assert "exit codes:" in ran.err
    ran = shell("--version")
    assert (ran.code, ran.out) == (0, f"bayescfx {cfx.__version__}\n")
    assert "invalid choice: 'foo'" in shell.fails("foo")


def test_a_target_with_a_minus_is_no_option() -> None:
    assert parse(["explain", "--target", "-15%", "--budget", "3"]).target == "-15%"
    assert parse(["explain", "--target=-15"]).target == "-15"


def shout(options: Namespace, console: Console) -> int:
    """Say a word louder."""
    console.write(options.word.upper() * (options.times or 1))
    return 0


def add_shout(parser: ArgumentParser, _: Command) -> None:
    """Add the options of the new command."""
    parser.add_argument("word", help="what to say")
    parser.add_argument("--times", type=int, help="how often")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--debug", action="store_true")


def test_a_new_command_is_a_function_and_a_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Command(f"{__name__}:shout", "say a word louder", f"{__name__}:add_shout")
    monkeypatch.setitem(COMMANDS, "shout", command)
    assert shell("shout", "hey", "--times", "2").out == "HEYHEY\n"
    assert "shout say a word louder" in " ".join(shell("--help").out.split())
    assert "Say a word louder." in shell("shout", "--help").out
    assert "--times: invalid int value: 'x'. See bayescfx shout --help." in shell.fails(
        "shout", "hey", "--times", "x"
    )


def test_help_names_every_search_and_every_kind_of_file(shell: Shell) -> None:
    printed = " ".join(shell("explain", "--help").out.split())
    assert f"{', '.join(METHODS)} (default: auto)" in printed
    assert f"a file ({', '.join(LOADERS)}), http" in printed


def test_every_option_has_a_kind_and_every_kind_is_used() -> None:
    assert {option.kind for option in OPTIONS.values()} == set(KINDS)


QUICK = """
import sys
from bayescfx.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
print(sorted({"dataclasses", "inspect", "difflib", "typing"} & set(sys.modules)))
"""


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_loads_nothing_but_itself(words: tuple[str, ...]) -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-c", QUICK, *words],  # without what the environment loads
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(cfx.__file__).parents[1])},
    )
    assert run.stdout.splitlines()[-2:] == ["['__main__', 'bayescfx']", "[]"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_on_a_command_loads_no_other_library(command: str) -> None:
    run = subprocess.run(
        [sys.executable, "-S", "-c", QUICK, command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(cfx.__file__).parents[1])},
    )
    assert run.stdout.splitlines()[-2] == "['__main__', 'bayescfx']"
