"""The gallery: every example runs as a script and has the format of sphinx-gallery."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

from tests.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
SLOW = {"plot_simulator"}  # its model takes a second per row


def _named(path: Path) -> object:
    marks = [pytest.mark.slow] if path.stem in SLOW else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [*map(_named, EXAMPLES)])
def test_an_example_runs_prints_and_draws(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(path))
        assert plt.get_fignums()
    finally:
        plt.close("all")
    assert capsys.readouterr().out.strip()
    assert not os.listdir(tmp_path), "an example leaves no files behind"


def test_the_gallery_has_its_examples_and_a_header() -> None:
    assert len(EXAMPLES) >= 8
    assert (EXAMPLES[0].parent / "GALLERY_HEADER.rst").read_text(encoding="utf-8").strip()
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        title = re.match(r'"""\n(.+)\n(=+)\n\n\w', text)
        assert title, f"{path.name} begins with its title and a paragraph"
        assert len(title[1]) == len(title[2]), path.name
        assert text.count("\n# %%\n") >= 4, f"{path.name} must have at least four blocks"
