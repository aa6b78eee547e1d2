"""The page "How we compare" quotes the figures of one run correctly."""

from __future__ import annotations

import json
from typing import Any

from tests.pages import ROOT

PARTS = ("cheap", "mixed")
NAMES = {
    "lgbm": "LightGBM",
    "rf": "random forest",
    "svr": "SVR",
    "mlp": "network",
    "knn": "neighbours",
    "logistic": "logistic",
    "pipeline": "pipeline",
}
SIDES = {
    "ours, 2000 rows": "sweep",
    "Bayes-CFX, 1000 rows": "Bayes-CFX",
    "dice-ml random": "DiCE\xa0random",
    "dice-ml genetic": "DiCE\xa0genetic",
}


def results() -> dict[str, Any]:
    """Return the stored results of the run, by part."""
    folder = ROOT / "benchmarks" / "results"
    return {
        part: json.loads((folder / f"efficiency-{part}.json").read_text(encoding="utf-8"))
        for part in PARTS
    }


def lines(part: str, cells: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table: side, hits, distance, features, rows, CPU milliseconds."""
    found = []
    for cell in cells:
        names = [] if part == "mixed" else [f"{cell['data']}, {NAMES[cell['model']]}"]
        figures = (
            f"{100 * cell['hits']:g}\xa0%",
            f"{cell['median']:.2f}",
            f"{cell['features']:g}",
            f"{cell['rows']:,.0f}",
            f"{1000 * cell['seconds']:,.0f}",
        )
        found.append(f"| {' | '.join([*names, SIDES[cell['side']], *figures])} |")
    return found


def test_every_figure_is_of_one_run() -> None:
    page = (ROOT / "docs" / "explanation" / "how-we-compare.md").read_text(encoding="utf-8")
    found = results()
    for part in PARTS:
        assert found[part]["machine"]["at"][:10] in page
        for line in lines(part, found[part]["figures"]["cells"]):
            assert line in page, f"the page lacks {line}"
        for name, version in found[part]["machine"]["versions"].items():
            assert f"{name} {version}" in page
