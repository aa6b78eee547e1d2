"""The site: generated pages are complete, and it builds without a warning."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import bayescfx
from bayescfx.cli.arguments import COMMANDS, make_parser
from bayescfx.errors import SettingsError
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.option import KINDS, Option
from bayescfx.requests.settings import OPTIONS
from bayescfx.requests.settings_file import read_settings_file
from bayescfx.space.verbs import Verb
from tests.pages import ROOT, blocks, pages

TYPES = {str: '"x"', int: "3", float: "3", list: '["a"]', dict: "{}", bool: "true"}  # as TOML


def made() -> dict[str, Any]:
    """Return the module that makes pages of the reference."""
    return runpy.run_path(str(ROOT / "docs" / "_ext" / "made.py"))


def help_of(name: str) -> str:
    """Return the help on a command."""
    commands = next(a for a in make_parser([name])._actions if isinstance(a.choices, dict))
    return str(commands.choices[name].format_help())  # type: ignore[index]  # by name


def test_the_reference_of_the_command_line_has_every_option() -> None:
    text = made()["command_line"]()
    for name in COMMANDS:
        assert f"## bayescfx {name}\n" in text
        flags = re.findall(r"^  (--?[a-z][a-z-]*)", help_of(name), re.M)
        assert "--quiet" in flags
        for flag in set(flags) - {"-h"}:
            assert re.search(rf"^:::{{option}} (.*, )?{flag}\b", text, re.M), flag


def test_the_index_of_the_reference_links_every_name() -> None:
    text = made()["names"]()
    assert {name for name in bayescfx.__all__ if f"<bayescfx.{name}>`" not in text} == {"plots"}


def written(option: Option | Verb, name: str) -> str:
    types = KINDS[option.kind].types if isinstance(option, Option) else option.parameter.types
    value = '[["a"]]' if name == "together" else TYPES[types[0]]
    return f"{name} = {value}\n"


def test_the_reference_of_settings_is_complete(tmp_path: Path) -> None:
    head, _, tail = made()["settings"]().partition("## The table `[space]`")
    tables: tuple[tuple[str, Mapping[str, Any], str], ...] = (
        (head, OPTIONS, ""),
        (tail, VERBS, "[space]\n"),
    )
    for names, known, table in tables:
        documented = set(re.findall(r"^\| `(\w+)` \|", names, re.M))
        for name, option in known.items():
            file = tmp_path / "some.toml"
            file.write_text(table + written(option, name))
            if name in documented:
                assert name in str(read_settings_file(file, OPTIONS))
            else:
                with pytest.raises(SettingsError, match="what code runs"):
                    read_settings_file(file, OPTIONS)


def test_settings_shown_in_pages_can_be_read(tmp_path: Path) -> None:
    shown = [b.text for p in pages() for b in blocks(p.read_text("utf-8")) if b.language == "toml"]
    assert shown
    for text in shown:
        (tmp_path / "shown.toml").write_text(text)
        assert read_settings_file(tmp_path / "shown.toml", OPTIONS)


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
