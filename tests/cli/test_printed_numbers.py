"""Numbers on the command line hold as printed: in text, CSV, JSON and the report."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor

from tests.cli.shell import Shell
from tests.printed import TABLES, outputs

ASK = ("explain", "--model", "houses.txt", "--data", "houses.csv", "--target", "+8%", "--quiet")


@pytest.fixture
def houses(shell: Shell) -> tuple[pd.DataFrame, Any]:
    """Return a table of unrounded numbers and a model of it, both written to the folder."""
    rng = np.random.default_rng(3)
    X = TABLES["houses"](rng)
    model = LGBMRegressor(n_estimators=60, verbose=-1, n_jobs=1).fit(X, outputs(X, rng))
    X.to_csv(shell.folder / "houses.csv", index=False)
    model.booster_.save_model(str(shell.folder / "houses.txt"))
    return X, model


def check_typed(houses: tuple[pd.DataFrame, Any], k: int, changes: dict[str, str]) -> None:
    """Check that row `k` with new values typed in reaches the target."""
    X, model = houses
    row = X.iloc[[k]].copy()
    now = model.predict(row)[0]
    assert changes
    for name, text in changes.items():
        row[name] = float(text)
        assert len(text) < 9, text
    assert model.predict(row)[0] >= 1.08 * now - 1e-9


@pytest.mark.parametrize("k", [0, 5, 11])
def test_printed_numbers_reach_the_target(
    shell: Shell, houses: tuple[pd.DataFrame, Any], k: int
) -> None:
    text = shell(*ASK, "--query", str(k)).out
    line = re.compile(r"^ +(\w+) +[\d.]+ → ([\d.e-]+)$", re.MULTILINE)
    printed = {name: new for name, new in line.findall(text) if name != "prediction"}
    check_typed(houses, k, printed)
    content = shell(*ASK, "--query", str(k), "--json").content
    [found] = content["counterfactuals"]
    assert {name: repr(float(pair["to"])) for name, pair in found["changes"].items()} == {
        name: repr(float(new)) for name, new in printed.items()
    }
    report = Path(shell.folder / "answer.html")
    shell(*ASK, "--query", str(k), "--out", str(report))
    page = unescape(report.read_text(encoding="utf-8"))
    for name, new in printed.items():
        assert re.search(rf"{name}.{{0,80}}→ ?{re.escape(new)}\b", page), (name, new)


def test_tables_of_many_answers_hold_as_printed(
    shell: Shell, houses: tuple[pd.DataFrame, Any]
) -> None:
    X, _ = houses
    X.head(8).to_csv(shell.folder / "some.csv", index=False)
    words = ("explain-many", *ASK[1:], "--queries", "some.csv", "--out", "many.csv")
    assert shell(*words).code == 0
    lines = list(csv.DictReader(io.StringIO((shell.folder / "many.csv").read_text())))
    assert len(lines) == 8
    for k, line in enumerate(lines):
        moved = {str(name): line[str(name)] for name in X if line[name] != line[f"{name}_before"]}
        listed = dict(part.split(" ", 1) for part in line["changes"].split(", "))
        assert {name: text.split(" → ")[1] for name, text in listed.items()}.keys() == moved.keys()
        check_typed(houses, k, {name: text.split(" → ")[1] for name, text in listed.items()})
        check_typed(houses, k, moved)
