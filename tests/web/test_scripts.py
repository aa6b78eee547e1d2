"""The pure functions of the page's JavaScript, tested by Node's own runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
STATIC = Path(__file__).parents[2] / "src" / "bayescfx" / "web" / "static"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="no Node: install nodejs to test the page's scripts")
def test_scripts() -> None:
    command = [str(NODE), "--test", *map(str, sorted(SCRIPTS.glob("*.test.js")))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_every_script_is_type_checked() -> None:
    unchecked = [
        path.name
        for path in STATIC.glob("*.js")
        if not path.read_text(encoding="utf-8").startswith("// @ts-check\n")
    ]
    assert unchecked == []
