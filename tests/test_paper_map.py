"""docs/paper-map.md: each file listed for an item uses the names of the item."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_docs import resolved

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    """A row of the map: the item, the names in its code, and the files that show it."""

    item: str
    names: list[str]
    files: list[str]


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of all tables with the column "shown by"."""
    showing = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| item"):
            showing = cells[-1].strip(" |") == "shown by"
        elif line.startswith("| ") and showing:
            names = re.findall(r"`(bayescfx(?:\.\w+)+)`", cells[1])
            yield Row(cells[0], names, re.findall(r"`((?:tests|experiments)/[\w/.]+)`", cells[2]))
        elif not line.startswith("|"):
            showing = False


class Used(NamedTuple):
    """The names that a file imports from `bayescfx`, and the attributes that it uses."""

    taken: frozenset[str]
    attributes: frozenset[str]

    def has(self, name: str) -> bool:
        """Return whether a name of the map is used; members of classes count as attributes."""
        parent, _, last = name.rpartition(".")
        return last in (self.attributes if inspect.isclass(resolved(parent)) else self.taken)


@cache
def used(path: Path) -> Used:
    """Return the names used in a file and in the local definitions that it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    taken = _taken(tree)
    attributes = _attributes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            beside = ROOT / (node.module.replace(".", "/") + ".py")
            if beside.is_file():
                other = ast.parse(beside.read_text(encoding="utf-8"))
                for part in _definitions(other, {alias.name for alias in node.names}):
                    named = {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
                    taken |= _taken(part) | named & _taken(other)
                    attributes |= _attributes(part)
    return Used(frozenset(taken), frozenset(attributes))


def _taken(tree: ast.AST) -> set[str]:
    """Return the names imported from `bayescfx` or accessed through it."""
    taken = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            taken |= {node.attr} if node.value.id in ("cfx", "bayescfx") else set()
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayescfx"):
            taken |= {*str(node.module).split("."), *(alias.name for alias in node.names)}
    return taken


def _attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _definitions(tree: ast.Module, wanted: set[str]) -> Iterator[ast.stmt]:
    """Yield the definitions of the names imported from a file."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defines = {node.name}
        elif isinstance(node, ast.Assign):
            defines = {target.id for target in node.targets if isinstance(target, ast.Name)}
        else:
            continue
        if defines & wanted:
            yield node


def faults(text: str) -> list[str]:
    """Return the errors in the map: rows without evidence, and broken references."""
    found = []
    for row in rows(text):
        if not (row.names and row.files):
            found.append(f"{row.item}: nothing shows it")
        seen = {
            file: [name for name in row.names if used(ROOT / file).has(name)] for file in row.files
        }
        found += [
            f"{row.item}: {file} uses none of {row.names}" for file, n in seen.items() if not n
        ]
        idle = set(row.names).difference(*seen.values())
        found += [f"{row.item}: nothing uses {name}" for name in sorted(idle)]
    return found


def test_files_of_an_item_use_its_names() -> None:
    text = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    assert len(list(rows(text))) > 25
    assert not faults(text)


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ("`bayescfx.AEP` | ", "nothing shows it"),
        ("`bayescfx.AEP` | `tests/test_layers.py`", "uses none of"),
        ("`bayescfx.AEP`, `bayescfx.Space` | `tests/test_paper.py`", "nothing uses"),
    ],
)
def test_a_reference_without_evidence_is_detected(cells: str, fault: str) -> None:
    text = f"| item | code | shown by |\n|---|---|---|\n| Definition 9 | {cells} |\n"
    (found,) = faults(text)[:1]
    assert fault in found
