"""What is to be written is looked at before the model is asked; no answer is lost."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import bayescfx as cfx
from bayescfx.errors import MissingExtraError
from tests.cli.shell import FUNCTIONS, LINEAR, MANY, Shell

ASK = ("--query", "3", "--target", "+20", "--quiet")
UNASKED = ("explain", "--model", f"{FUNCTIONS}:broken", "--data", "X.csv", "--drop", "progression")


@pytest.mark.parametrize(
    ("library", "ending", "extra"),
    [
        ("matplotlib", "html", "plots"),
        ("matplotlib", "png", "plots"),
        ("matplotlib", "pdf", "plots"),
        ("pyarrow", "parquet", "models"),
    ],
)
def test_a_missing_extra_is_an_error_before_the_model_is_called(
    library: str, ending: str, extra: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    command = MANY if ending == "parquet" else UNASKED
    ask = ("--queries", "five.csv", "--target", "+20") if ending == "parquet" else ASK
    message = shell.fails(*command, *ask, "--out", f"x.{ending}")
    assert f"need {library}, which is not installed" in message
    assert f"bayescfx[{extra}]" in message


def test_an_unwritable_path_is_an_error_before_the_model_is_called(shell: Shell) -> None:
    Path("folder.json").mkdir(exist_ok=True)
    message = shell.fails(*UNASKED, *ASK, "--out", "folder.json")
    assert message == "error: --out 'folder.json' can't be written: it is a folder. Choose another."
    long = "x" * 300 + ".json"
    assert "can't be written: File name too long." in shell.fails(*UNASKED, *ASK, "--out", long)
    assert "no such folder." in shell.fails(*UNASKED, *ASK, "--out", "none/x.json")
    assert not list(Path().glob("*.part"))


def test_an_answer_that_can_not_be_written_is_kept_elsewhere(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    def run(*words: str) -> Any:
        with monkeypatch.context() as patched:
            replace = os.replace
            patched.setattr(
                "os.replace", lambda a, b: full(a, b) if str(b) == "full.json" else replace(a, b)
            )
            return shell(*words, "--quiet", "--out", "full.json", "--out", "good.csv")

    for words in (
        (*LINEAR, "--query", "3", "--target", "+20"),
        (*MANY, "--queries", "five.csv", "--target", "+20", "--budget", "20"),
    ):
        Path("good.csv").unlink(missing_ok=True)
        ran = run(*words)
        assert ran.code == 2
        assert "+20" in ran.out or "reached" in ran.out
        assert Path("good.csv").exists()
        assert "'full.json' can't be written: [Errno 28] No space left on device." in ran.err
        found = re.search(r"The complete answer is in (\S+\.json);", ran.err)
        assert found is not None
        assert json.loads(Path(found[1]).read_text())["kind"].startswith("explanation")
        Path(found[1]).unlink()


@pytest.mark.parametrize(
    ("library", "more"),
    [
        ("tqdm", {"progress": True}),
        ("joblib", {"n_jobs": 2}),
        ("cloudpickle", {"n_jobs": 2}),
    ],
)
def test_python_checks_extras_before_the_model_is_called(
    library: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    space = cfx.Space({name: cfx.Real(0, 1) for name in "ab"}).require("a + b <= 1.5")
    asked: list[object] = []
    with pytest.raises(MissingExtraError, match=library):
        cfx.explain_many(asked.append, [{"a": 0.1, "b": 0.2}], space, 1.0, **more)
    assert not asked
