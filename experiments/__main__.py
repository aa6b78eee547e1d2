"""``python -m experiments``: run the experiments and write the report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from experiments import (
    complexity,
    composition,
    consistency,
    fig1_thresholds,
    fig2_acquisition,
    fig3_potentials,
    fig4_adult,
    one_pass,
    report,
    results,
    table2_taxi,
)
from experiments.data import DataError
from experiments.runs import Settings

# Short names for --only, in the order of the report.
EXPERIMENTS: dict[str, ModuleType] = {
    "thresholds": fig1_thresholds,
    "acquisition": fig2_acquisition,
    "potentials": fig3_potentials,
    "adult": fig4_adult,
    "taxi": table2_taxi,
    "consistency": consistency,
    "one-pass": one_pass,
    "composition": composition,
    "complexity": complexity,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit code."""
    given = _parser().parse_args(arguments)
    settings = Settings(quick=given.quick, jobs=given.jobs, data=given.data)
    numbers, figures, page = _places(given.out, given.quick)
    todo = given.only or list(EXPERIMENTS)
    for k, name in enumerate(todo, start=1):
        module, begun = EXPERIMENTS[name], time.perf_counter()
        print(f"[{k}/{len(todo)}] {name}", file=sys.stderr, flush=True)
        try:
            result = results.save(module.NAME, module.run(settings), numbers)
        except DataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        module.draw(result, figures / f"{module.NAME}.png")
        print(f"{name}: done in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    done = [
        (module, json.loads(path.read_text(encoding="utf-8")))
        for module in EXPERIMENTS.values()
        if (path := numbers / f"{module.NAME}.json").exists()
    ]
    there = {module.NAME for module, _ in done}
    missing = [name for name, module in EXPERIMENTS.items() if module.NAME not in there]
    report.write(done, page, missing)
    print(f"written: {page}", file=sys.stderr)
    return 0


def _places(out: Path | None, quick: bool) -> tuple[Path, Path, Path]:
    """Return the folders of numbers and figures, and the page; quick runs never overwrite."""
    if out is None and quick:
        out = results.ROOT / "build" / "reproduction-quick"
    if out is None:
        return results.RESULTS, results.FIGURES, results.REPORT
    return out / "results", out / "figures", out / "reproduction.md"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Reproduce the paper's figures, tables, claims."
    )
    parser.add_argument("--quick", action="store_true", help="small versions, into build/")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(EXPERIMENTS),
        metavar="NAME",
        help=f"some of: {', '.join(EXPERIMENTS)}",
    )
    parser.add_argument("--data", type=Path, help="folder with the data (default: $BAYESCFX_DATA)")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="processes (default: every core)")
    parser.add_argument("--out", type=Path, help="write results, figures and page here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
