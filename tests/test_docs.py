"""README and docs are correct: code runs, links resolve, names exist."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks import exact_courses

import bayescfx
from tests import pages
from tests.pages import ROOT, blocks, commands, name_of, refreshed
from tests.web.pictures import MENU, SHOTS

PAGES = pages.pages()
RUNNING = [
    page
    for page in PAGES
    if any(b.language in ("python", "bash") for b in blocks(page.read_text(encoding="utf-8")))
]
# by `make reproduce`
GENERATED = tuple(
    ROOT / "docs" / name for name in ("reproduction.md", "reproduction-details.md", "figures")
)
LANGUAGES = {"python", "bash", "text", "console", "sh", "toml", "json"}
DIRECTIVES = {"{button-ref}", "{eval-rst}", "{math}", "{toctree}"}  # blocks that Sphinx renders
GALLERY = "gallery/index.md"  # made from `examples/` when the site is built
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

# Every numbered item of the paper, by its counters.
ITEMS = (
    "Definition 2.1",
    "Definition 2.2",
    "Definition 2.3",
    "Definition 2.4",
    "Definition 2.5",
    "Definition 3.1",
    "Definition A.1",
    "Theorem 2.1",
    "Theorem 2.2",
    "Corollary 2.2.1",
    "Proposition 3.1",
    "Theorem 3.2",
    "Lemma B.1",
    "Table 1",
    "Table 2",
    "Figure 1",
    "Figure 2",
    "Figure 3",
    "Figure 4",
)


def _outside_code(text: str) -> str:
    """Return a page without its fenced blocks and inline code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))


def _links(page: Path) -> list[tuple[Path, str]]:
    """Return the files a page links to, with anchors."""
    found = re.findall(r"\]\(([^)\s]+)\)", _outside_code(page.read_text(encoding="utf-8")))
    inner = [link for link in found if not re.match(r"[a-z]+:", link)]
    split = [link.partition("#") for link in inner]
    return [((page.parent / path).resolve() if path else page, to) for path, _, to in split]


def _anchors(page: Path) -> set[str]:
    """Return the anchors that Markdown gives the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.+)$", text, flags=re.M)
    kept = ("".join(c for c in title.lower() if c.isalnum() or c in " -") for title in titles)
    return {title.strip().replace(" ", "-") for title in kept}


def _is_generated(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in GENERATED)


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_code_and_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    printed = pages.run(page, tmp_path)
    found = blocks(page.read_text(encoding="utf-8"))
    for k, (above, shown) in enumerate(pairwise(found)):
        if shown.language == "text" and above.language == "python" and "print(" in above.text:
            assert printed[k].strip(), f"line {above.line} prints nothing"
    for name in pages.pictures(page):
        assert (tmp_path / name).is_file(), f"no block writes {name}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_language_and_shows_its_output(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        assert block.language in LANGUAGES | DIRECTIVES, f"line {block.line}: {block.language!r}"
        assert block.text.strip(), f"line {block.line}: run python -m tests.pages {name_of(page)}"
        if block.language == "bash":
            assert all(words[0] == "bayescfx" for words, _ in commands(block))


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target, anchor in _links(page):
        if not (_is_generated(page) and _is_generated(target)):
            assert target.exists(), f"{name_of(page)} links to {target}"
            assert not anchor or anchor in _anchors(target), f"{target} has no #{anchor}"


def test_a_broken_link_is_detected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title, twice\n[x](gone.md#a) `[y](code.md)`\n\n[z](#a-title-twice)\n")
    assert _links(page) == [(tmp_path / "gone.md", "a"), (page, "a-title-twice")]
    assert _anchors(page) == {"a-title-twice"}


def test_outputs_shown_are_rewritten() -> None:
    page = "```python\nprint(1)\n```\n\n```text\nold\n```\n\nAnd\n\n```text\nkept\n```\n"
    assert refreshed(page, {0: "new  \n", 1: "", 2: ""}) == page.replace("old", "new")


def test_every_page_is_in_the_navigation() -> None:
    docs = ROOT / "docs"
    there = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    named = {"index.md"}
    for page in there:
        for block in blocks((docs / page).read_text(encoding="utf-8")):
            if block.language == "{toctree}":
                names = re.findall(r"^(?:.+ <)?([\w/-]+)>?$", block.text, flags=re.M)
                named |= {(Path(page).parent / f"{name}.md").as_posix() for name in names}
    assert there - named == set()
    assert {name for name in named - there if not _is_generated(docs / name)} == {GALLERY}


def test_every_picture_is_made_by_a_program() -> None:
    figures = ROOT / "docs" / "figures"
    drawn = {path for page in RUNNING for path in pages.pictures(page).values()}
    shot = {
        figures / "web-page" / f"{name}.png" for name in (*SHOTS, MENU)
    }  # by `tests.web.pictures`
    measured = {exact_courses.PICTURE}  # by `python -m benchmarks exact --part far`
    assert drawn | shot | measured == {
        path for folder in figures.iterdir() for path in folder.glob("*")
    }
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if _is_generated(page))
    for path in figures.glob("*.*"):  # by `make reproduce`
        assert f"(figures/{path.name})" in text


def test_every_public_name_is_in_the_reference() -> None:
    folder = ROOT / "docs" / "reference"
    listed = [b for page in folder.glob("*.md") for b in blocks(page.read_text(encoding="utf-8"))]
    tables = "\n".join(block.text for block in listed if "autosummary::" in block.text)
    named = {f"bayescfx.{name}" for name in re.findall(r"^ {3}([A-Za-z][\w.]*)$", tables, re.M)}
    names = {*bayescfx.__all__, *(f"plots.{name}" for name in bayescfx.plots.__all__)} - {"plots"}
    assert {f"bayescfx.{name}" for name in names} - named == set()
    for name in named:
        assert inspect.getdoc(resolved(name)), f"{name} has no docstring"


def resolved(name: str) -> object:
    """Return the object of a dotted name; fields of dataclasses count too."""
    module = name
    _ = ""
    rest = ""
    parts: list[str] = []
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, rest = module.rpartition(".")
            parts.insert(0, rest)
    for part in parts:
        fields = getattr(found, "__dataclass_fields__", {})
        found = fields[part] if part in fields else getattr(found, part)
    return found


def test_the_names_of_the_paper_map_exist() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(bayescfx(?:\.\w+)+)`", text))
    assert len(names) > 40
    for name in names:
        resolved(name)
    for path in re.findall(r"`((?:tests|experiments|benchmarks)/[\w/.]+)`", text):
        assert (ROOT / path).is_file(), path
    missing = [item for item in ITEMS if item not in text]
    assert not missing


def test_a_removed_name_is_detected() -> None:
    with pytest.raises(AttributeError):
        resolved("bayescfx.potentials.Gone")
    assert resolved("bayescfx.Explanation.status") is not None


def test_the_command_line_page_covers_every_command() -> None:
    text = (ROOT / "docs" / "how-to" / "command-line.md").read_text(encoding="utf-8")
    for command in ("explain", "explain-many", "inspect", "report"):
        assert f"bayescfx {command} " in text
    usage = subprocess.run(
        [sys.executable, "-m", "bayescfx", "explain-many", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for flag in set(re.findall(r"`(--[\w-]+)", text)) - {"--out", "--trust-pickle", "--query"}:
        assert flag in usage, flag


def test_the_version_is_in_the_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{bayescfx.__version__}]" in text


def test_every_module_is_importable_without_side_effects_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in pkgutil.walk_packages(bayescfx.__path__, "bayescfx."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert capsys.readouterr().out == ""
