"""A folder with models and data, and a shell in it."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import FUNCTION, Shell
from tests.people import categories, people

lightgbm: Any = importlib.import_module("lightgbm")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models and data, which tests copy and never change."""
    folder = tmp_path_factory.mktemp("cli-made")
    X, y = people()
    X.assign(progression=y).to_csv(folder / "X.csv", index=False)
    X.iloc[[3]].to_csv(folder / "one.csv", index=False)
    X.head(5).to_csv(folder / "five.csv", index=False)
    X.assign(progression=y).to_parquet(folder / "X.parquet")
    (folder / "one.json").write_text(json.dumps(X.iloc[3].to_dict(), default=float))
    (folder / "functions_of_rows.py").write_text(FUNCTION)
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1)
    model.fit(categories(X), y).booster_.save_model(str(folder / "m.txt"))
    return folder


@pytest.fixture(scope="module")
def folder(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def shell(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(folder)
    return Shell(folder, capsys)
