"""Model rows, distance and time of our search, against its targets and other libraries.

``python -m benchmarks.efficiency --part nearest --queries 10 --models lgbm --budget 50``
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from benchmarks.parts import (
    Settings,
    audit,
    cheap,
    expensive,
    far,
    many,
    mixed,
    nearest,
    overhead,
    potential,
    repeatable,
    shared_cost,
    sharing,
    thirty,
)
from benchmarks.problems import MODELS, OTHER_MODELS, OTHERS
from benchmarks.reporting import write

PARTS: dict[str, ModuleType] = {
    "potential": potential,
    "nearest": nearest,
    "thirty": thirty,
    "overhead": overhead,
    "sharing": sharing,
    "shared-cost": shared_cost,
    "repeatable": repeatable,
    "cheap": cheap,
    "many": many,
    "expensive": expensive,
    "mixed": mixed,
    "audit": audit,
    "far": far,
}


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    words = argparse.ArgumentParser(prog="python -m benchmarks efficiency", description=__doc__)
    words.add_argument("--part", "--only", nargs="+", choices=PARTS, default=list(PARTS))
    words.add_argument("--queries", type=int, help="questions per cell")
    words.add_argument("--models", nargs="+", choices=(*MODELS, *OTHER_MODELS))
    words.add_argument("--budget", type=int, nargs="+", help="model rows per question")
    words.add_argument(
        "--data",
        nargs="+",
        choices=("diabetes", *OTHERS, "others"),
        default=["diabetes"],
        help="tables of the parts potential and nearest; 'others' means all but diabetes",
    )
    words.add_argument("--batch", type=int, default=Settings.batch, help="proposals per round")
    words.add_argument("--method", help="a search to use in place of the part's own")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--peers", choices=("auto", "run", "cached", "none"), default="auto")
    return words


def settings(given: argparse.Namespace) -> Settings:
    """Return the settings given on the command line."""
    data = OTHERS if "others" in given.data else tuple(given.data)
    return Settings(
        queries=given.queries,
        models=tuple(given.models) if given.models else None,
        budgets=tuple(given.budget) if given.budget else None,
        data=data,
        batch=given.batch,
        method=given.method,
        seed=given.seed,
        peers=given.peers,
    )


def run(chosen: Settings | None = None, parts: Sequence[str] = tuple(PARTS)) -> dict[str, Any]:
    """Measure, print and write each part; return all figures."""
    chosen = chosen or Settings()
    figures = {}
    for name in parts:
        figures[name] = PARTS[name].run(chosen)
        write(f"efficiency-{name}", figures[name], quick=chosen.quick)
        PARTS[name].show(figures[name])
    return figures


def main(words: Sequence[str] | None = None) -> None:
    given = parser().parse_args(words)
    run(settings(given), given.part)


if __name__ == "__main__":
    main()
