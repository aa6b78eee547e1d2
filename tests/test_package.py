"""The package as shown on a package index."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that makes the package's README, without the build backend."""
    base = SimpleNamespace(MetadataHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", base)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("repository", [None, "https://host/us/it"])
def test_every_link_of_the_readme_works_on_an_index(repository: str | None, hook: Any) -> None:
    text = hook.absolute(readme(), repository)
    assert any(not link.startswith("http") for link in links(readme()))
    assert all(link.startswith(("http", "#")) for link in links(text))
    if repository is None:
        assert "![" not in text
        assert "[Tutorial]" not in text
        assert "Tutorial" in text
    else:
        assert f"({repository}/raw/HEAD/docs/figures/readme/changes.png)" in text
        assert f"[Tutorial]({repository}/blob/HEAD/docs/tutorial.md)" in text


def test_links_of_the_readme_are_files() -> None:
    for link in links(readme()):
        if not link.startswith(("http", "#")):
            assert (ROOT / link.partition("#")[0]).is_file(), link


def test_metadata_are_complete() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["authors"]
    assert all(url.startswith("https://") for url in project["urls"].values())
    assert "Typing :: Typed" in project["classifiers"]
    assert {"excel", "mlflow", "plots"} <= {*project["optional-dependencies"]}
