"""The site: pages made from the program say what it takes, and all builds without a warning."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import bayescfx
from bayescfx.cli.arguments import COMMANDS, KINDS, OPTIONS, Option
from bayescfx.cli.options import read_settings, settable
from bayescfx.errors import SettingsError
from tests.pages import ROOT, blocks, pages

TYPES = {str: '"x"', int: "3", float: "3", list: '["a"]', dict: "{}", bool: "true"}  # as TOML


def made() -> dict[str, Any]:
    """Return the module that makes pages of the reference."""
    return runpy.run_path(str(ROOT / "docs" / "_ext" / "made.py"))


def test_the_reference_of_the_command_line_has_every_option() -> None:
    text = made()["command_line"]()
    options = [*(option for group in OPTIONS.values() for option in group)]
    for name, command in COMMANDS.items():
        assert f"## bayescfx {name}\n" in text
        options += command.own
    for option in options:
        told = option.flag if option.flag.startswith("-") else option.metavar
        assert re.search(rf"^:::{{option}} .*{re.escape(told.strip('-'))}", text, re.M), option.flag


def test_the_index_of_the_reference_links_every_name() -> None:
    text = made()["names"]()
    assert {name for name in bayescfx.__all__ if f"<bayescfx.{name}>`" not in text} == {"plots"}


def written(option: Option, name: str) -> str:
    return f"{name} = {TYPES[KINDS[option.kind][1][0]]}\n"


def test_the_reference_of_settings_names_what_a_file_may_hold(tmp_path: Path) -> None:
    head, _, tail = made()["settings"]().partition("## The table `[space]`")
    options, verbs = settable()
    for names, known, table in ((head, options, ""), (tail, verbs, "[space]\n")):
        told = set(re.findall(r"^\| `(\w+)` \|", names, re.M))
        for name, option in known.items():
            file = tmp_path / "some.toml"
            file.write_text(table + written(option, name))
            if name in told:
                assert name in str(read_settings(file))
            else:
                with pytest.raises(SettingsError, match="what code runs"):
                    read_settings(file)


def test_settings_shown_in_pages_can_be_read(tmp_path: Path) -> None:
    shown = [b.text for p in pages() for b in blocks(p.read_text("utf-8")) if b.language == "toml"]
    assert shown
    for text in shown:
        (tmp_path / "shown.toml").write_text(text)
        assert read_settings(tmp_path / "shown.toml")


def links(page: Path) -> set[Path]:
    """Return the files that a page of the site needs or links to."""
    found = re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8"))
    inner = (unquote(link) for link in found if not re.match(r"[a-z]+:", link))
    return {(page.parent / link).resolve() for link in inner}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery")
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    site = tmp_path / "site"
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(site)]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    assert len(made) > 100
    for page in made:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="http', text)
        assert not [link for link in links(page) if not link.exists()], page
        shown = re.sub(r"<(pre|code|script).*?</\1>", "", text, flags=re.S)
        assert ":func:" not in shown, page
        assert "``" not in shown, page
    explain = (site / "reference" / "generated" / "bayescfx.explain.html").read_text("utf-8")
    assert 'href="bayescfx.Explanation.html#bayescfx.Explanation"' in explain
    assert len(list((site / "gallery").glob("plot_*.html"))) >= 8
