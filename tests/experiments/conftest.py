"""The data folder of the experiments, if there is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from experiments import data

ROOT = Path(__file__).resolve().parents[2]


def data_folder() -> Path | None:
    """Return the folder with both data files, or None."""
    for place in (os.environ.get(data.VARIABLE), ROOT.parent / "shared" / "data"):
        if place and all((Path(place) / n).exists() for n in ("adult.csv.gz", "nyc_taxi.csv.gz")):
            return Path(place)
    return None


FOLDER = data_folder()
needs_data = pytest.mark.skipif(
    FOLDER is None, reason=f"no folder with adult.csv.gz and nyc_taxi.csv.gz in {data.VARIABLE}"
)


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the data folder and the network."""
    monkeypatch.delenv(data.VARIABLE, raising=False)

    def unreachable() -> Any:
        raise OSError("no network")

    monkeypatch.setattr(data, "_fetch", unreachable)


def verdicts(module: Any, result: dict[str, Any]) -> dict[str, str]:
    """Return the verdict of every claim of an experiment."""
    return {claim.key: claim.verdict for claim in module.claims(result)}
