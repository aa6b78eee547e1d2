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
    closed_form,
    compare,
    composition,
    consistency,
    environment,
    existence,
    fig1_thresholds,
    fig2_potentials,
    fig3_acquisition,
    fig4_adult,
    localopt,
    one_pass,
    report,
    results,
    table1_properties,
    table2_taxi,
)
from experiments.data import DataError
from experiments.runs import Settings

# Short names for --only, in the order of the report, which is the paper's.
EXPERIMENTS: dict[str, ModuleType] = {
    "properties": table1_properties,
    "thresholds": fig1_thresholds,
    "existence": existence,
    "localopt": localopt,
    "potentials": fig2_potentials,
    "composition": composition,
    "acquisition": fig3_acquisition,
    "closed-form": closed_form,
    "consistency": consistency,
    "one-pass": one_pass,
    "adult": fig4_adult,
    "taxi": table2_taxi,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen experiments; return the exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["compare"]:
        return _compare(words[1:])
    given = _parser().parse_args(words)
    settings = Settings(quick=given.quick, jobs=given.jobs, data=given.data)
    numbers, figures, page = _places(given.out, given.quick)
    names = given.only or list(EXPERIMENTS)
    runs = {}
    for k, name in enumerate(names, start=1):
        module = EXPERIMENTS[name]
        start = time.perf_counter()
        print(f"[{k}/{len(names)}] {name}", file=sys.stderr, flush=True)
        try:
            result = results.save(module.NAME, module.run(settings), numbers)
        except DataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        if hasattr(module, "draw"):
            module.draw(result, figures / f"{module.NAME}.png")
        seconds = time.perf_counter() - start
        runs[name] = {"seconds": round(seconds, 1), "jobs": given.jobs}
        environment.save(numbers, runs)
        print(f"{name}: done in {seconds:.0f} s", file=sys.stderr)
    _write(numbers, page)
    return 0


def _write(numbers: Path, page: Path) -> None:
    """Write the report of a results folder."""
    parts = results_in(numbers)
    present = [name for name, _, _ in parts]
    missing = [name for name in EXPERIMENTS if name not in present]
    report.write(parts, numbers, page, missing)
    print(f"written: {page}", file=sys.stderr)


def results_in(numbers: Path) -> list[report.Part]:
    """Return the experiments that have a result in a folder."""
    return [
        (name, module, json.loads(path.read_text(encoding="utf-8")))
        for name, module in EXPERIMENTS.items()
        if (path := numbers / f"{module.NAME}.json").exists()
    ]


def _compare(arguments: Sequence[str]) -> int:
    """Compare two results folders claim by claim; return 1 if a verdict differs."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments compare",
        description="Compare the verdicts of two results folders; the first one's page shows it.",
    )
    parser.add_argument("first", type=Path, help="a folder with results, as experiments/results")
    parser.add_argument("second", type=Path, help="the other folder")
    given = parser.parse_args(arguments)
    folders = (given.first, given.second)
    for folder in folders:
        if not results_in(folder):
            print(f"{folder}: no results here", file=sys.stderr)
            return 2
    try:
        rows = compare.compare(*(report.claims_of(results_in(folder)) for folder in folders))
    except (KeyError, TypeError, IndexError) as error:
        problem = f"{error!r} is missing: results of another version; run the experiments again"
        print(f"{folders[0]} or {folders[1]}: {problem}", file=sys.stderr)
        return 2
    compare.save(rows, folders, given.first / compare.FILE)
    print(compare.table(rows))
    is_own = given.first.resolve() == results.RESULTS
    _write(given.first, results.REPORT if is_own else given.first.parent / results.REPORT.name)
    return 0 if all(row["same_verdict"] for row in rows) else 1


def _places(out: Path | None, quick: bool) -> tuple[Path, Path, Path]:
    """Return the folders of numbers and figures, and the page; quick runs never overwrite."""
    if out is None and quick:
        out = results.ROOT / "build" / "reproduction-quick"
    if out is None:
        return results.RESULTS, results.FIGURES, results.REPORT
    return out / "results", out / "figures", out / results.REPORT.name


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the paper's claims; `compare A B` compares two results folders.",
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
