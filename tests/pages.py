"""README and docs as programs: the code blocks of a page, run in order in one folder.

``python`` blocks of a page share one namespace. ``bash`` blocks hold ``bayescfx`` commands, one
per line; a comment ``# exit code 3 or 4`` says what one returns if not 0. A ``text`` block right
below shows what the block prints. Nothing else runs: ``console`` is for other programs. A picture
``figures/PAGE/x.png`` is one that the page's own code wrote as ``x.png``.

``python -m tests.pages`` runs every page, rewrites the outputs and pictures shown, so that readers
see what the code gives now; with names of pages, only those are run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from bayescfx.cli import main
from tests.servers import Scoring, serving

ROOT = Path(__file__).resolve().parents[1]
SERVER = "http://localhost:5000"  # the address of a model server in the docs

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^ *```$", re.M | re.S
)
_PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]+)\)")
_EXIT = re.compile(r"#\s*exit code (\d+)(?: or (\d+))?")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and its position in the page."""

    language: str
    text: str
    line: int
    start: int
    end: int


def pages() -> list[Path]:
    """Return README and every page of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return the name of a page: its path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [
        Block(
            found["language"],
            found["text"],
            text.count("\n", 0, found.start("text")) + 1,
            found.start("text"),
            found.end("text"),
        )
        for found in _FENCE.finditer(text)
    ]


def commands(block: Block) -> Iterator[tuple[list[str], set[int]]]:
    """Yield the words of each command of a ``bash`` block, and its allowed exit codes."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            match = _EXIT.search(line)
            codes = {int(code) for code in match.groups() if code} if match else {0}
            yield words, codes


def pictures(page: Path) -> dict[str, Path]:
    """Return the pictures that a page draws: file names in its code, and paths in the docs."""
    found = _PICTURE.finditer(page.read_text(encoding="utf-8"))
    shown = [(page.parent / picture["path"]).resolve() for picture in found]
    own = ROOT / "docs" / "figures" / page.stem.lower()
    return {path.name: path for path in shown if path.parent == own}


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Run in a folder; afterwards unload modules imported from it and close all figures."""
    before = os.getcwd()
    known = set(sys.modules)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]


@contextlib.contextmanager
def _served(text: str) -> Iterator[str]:
    """Yield the page's text with the address of a real server, if it mentions one."""
    if SERVER not in text:
        yield text
        return
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    with serving(Scoring(model.predict)) as scoring:
        yield text.replace(SERVER, scoring.url)


def run(page: Path, folder: Path) -> dict[int, str]:
    """Run a page; return the output of each block, by the position of the block.

    Raises
    ------
    AssertionError
        If a command ends with another exit code than the page says.
    """
    printed: dict[int, str] = {}
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with _served(page.read_text(encoding="utf-8")) as text, _in_folder(folder):
        for position, block in enumerate(blocks(text)):
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                if block.language == "python":
                    _execute(block, name_of(page), namespace)
                elif block.language == "bash":
                    _command(block, name_of(page))
            printed[position] = stream.getvalue()
    return printed


def _execute(block: Block, name: str, namespace: dict[str, Any]) -> None:
    # Leading empty lines, so that a traceback has the line numbers of the page.
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    exec(code, namespace)


def _command(block: Block, name: str) -> None:
    for words, expected in commands(block):
        where = f"{name}, line {block.line}: {shlex.join(words)}"
        assert words[0] == "bayescfx", f"{where}: use a `console` block for other programs"
        code = main(words[1:])
        assert code in expected, f"{where}: exit code {code}, expected {expected}"


def refreshed(text: str, printed: dict[int, str]) -> str:
    """Return the page with the outputs below its blocks replaced by new outputs."""
    found = blocks(text)
    for k in reversed(range(1, len(found))):
        above = found[k - 1]
        shown = found[k]
        between = text[above.end : shown.start]
        below = shown.language == "text" and re.fullmatch(r"\s*```\s*```text[^\n]*\n", between)
        if below and above.language in ("python", "bash"):
            lines = (line.rstrip() for line in printed[k - 1].splitlines())
            text = text[: shown.start] + "\n".join(lines) + "\n" + text[shown.end :]
    return text


def rewrite(names: Sequence[str]) -> None:
    """Run pages, and rewrite their outputs and pictures."""
    for page in pages():
        if not names or name_of(page) in names:
            with tempfile.TemporaryDirectory() as folder:
                printed = run(page, Path(folder))
                for name, place in pictures(page).items():
                    made = Path(folder) / name
                    if made.exists():  # else a benchmark drew it
                        place.parent.mkdir(exist_ok=True)
                        shutil.copy(made, place)
            text = page.read_text(encoding="utf-8")
            page.write_text(refreshed(text, printed), encoding="utf-8")
            sys.stderr.write(f"{name_of(page)}\n")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    rewrite(sys.argv[1:])
