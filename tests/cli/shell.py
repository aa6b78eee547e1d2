"""A command as a user types it, in a folder with models and data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bayescfx.cli import main

FUNCTION = """\
import os

def score(rows):
    return rows["age"] * 2.0 + rows["bmi"]

def noisy(rows):
    print("printed by the model")
    os.write(1, b"written by compiled code\\n")
    return score(rows)

def broken(rows):
    raise RuntimeError("no such\\n  luck")

def fragile(rows):
    if (rows["age"] > 61).any():
        raise ValueError("too old")
    return score(rows)

def leaves(rows):
    raise SystemExit(0)

def double(rows):
    return rows["age"] * 2

def partly(rows):
    return score(rows).where(rows["age"] < 40)
"""


@dataclass(frozen=True)
class Ran:
    """What a command wrote and returned."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """Run commands in a folder with a model, data and a module."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Ran:
        """Run a command."""
        self.capture.readouterr()
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(str(stop.code))
        seen = self.capture.readouterr()
        return Ran(code, seen.out, seen.err)

    def explain(self, *words: str) -> Ran:
        """Run `explain` on the LightGBM model without progress, with a small budget."""
        base = ("--model", "m.txt", "--data", "X.csv", "--quiet", "--budget", "14")
        return self("explain", *base, *words)

    def fails(self, *words: str) -> str:
        """Run a command that must fail for bad input, and return its one line."""
        ran = self(*words)
        assert ran.code == 2, ran
        assert ran.out == ""
        lines = [line for line in ran.err.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, ran.err
        assert lines[0].startswith("error: ")
        return lines[0]


FUNCTIONS = "functions_of_rows"


LINEAR = (
    *("explain", "--model", f"{FUNCTIONS}:score", "--data", "X.csv", "--drop", "progression"),
    *("--budget", "14"),
)


MANY = ("explain-many", "--model", f"{FUNCTIONS}:score", "--data", "X.csv", "--drop", "progression")
