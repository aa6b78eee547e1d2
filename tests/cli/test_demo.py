"""The demo is what its Python gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayescfx.cli.demo import DEMO
from tests.cli.shell import Shell


def test_the_demo_shows_the_answer_that_its_python_gives(shell: Shell, tmp_path: Path) -> None:
    ran = shell("demo", "--folder", str(tmp_path))
    assert ran.code == 0
    assert "What would have to change for it to be at least" in ran.out
    assert ran.out.endswith(DEMO)
    names: dict[str, Any] = {}
    exec(DEMO.replace("print(answer)", ""), names)
    assert str(names["answer"]) in ran.out
    assert (tmp_path / "bayescfx-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<!DOCTYPE html>" in (tmp_path / "bayescfx-demo.html").read_text()


def test_the_demo_needs_a_folder(shell: Shell) -> None:
    assert "--folder must be a folder; got 'nowhere'." in shell.fails("demo", "--folder", "nowhere")
