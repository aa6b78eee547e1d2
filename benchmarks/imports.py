"""What it costs to load the library, in a new process each time.

Everything the package exports on top of pandas, as a share of pandas itself; and the help of the
command line, in units of a Python that does nothing. The sides are measured in turns and medians of
CPU seconds are compared, so that a busy machine slows all alike. Byte code is written before the
first measurement, as an installation does.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from benchmarks.reporting import aim, show_table

#: What is run, and what it is measured in: (ours, the other, what both do besides, the aim).
SIDES = {
    "everything / pandas": ("import pandas; from bayescfx import *", "import pandas", True, 0.3),
    "explain / pandas": ("import pandas; from bayescfx import explain", "import pandas", True, 0.3),
    "bayescfx --help / nothing": (
        "import sys; from bayescfx.cli import main; sys.argv = ['bayescfx', '--help']; main()",
        "pass",
        False,
        3.0,
    ),
}


def seconds(code: str, folder: str) -> float:
    """Return the CPU seconds of a new process that runs some code."""
    kept = {name: value for name, value in os.environ.items() if "BYTECODE" not in name}
    before = _used()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPYCACHEPREFIX": folder},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return _used() - before


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(repeats: int = 15) -> dict[str, float]:
    """Return the ratio for each pair of sides."""
    codes = ["pass", *{code for ours, other, *_ in SIDES.values() for code in (ours, other)}]
    times: dict[str, list[float]] = {code: [] for code in codes}
    with tempfile.TemporaryDirectory() as folder:
        for code in codes:
            seconds(code, folder)
        for _ in range(repeats):
            for code in codes:
                times[code].append(seconds(code, folder))
    cost = {code: statistics.median(found) for code, found in times.items()}
    ratios = {}
    for name, (ours, other, on_top, _) in SIDES.items():
        start = cost["pass"] if on_top else 0.0
        added = cost[ours] - (cost[other] if on_top else 0.0)
        ratios[name] = added / (cost[other] - start)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="how often each side is measured")
    found = run(parser.parse_args().repeats)
    rows = [[name, ratio, aim(ratio, "<=", SIDES[name][3])] for name, ratio in found.items()]
    show_table("CPU time to load", ["", "ratio", "aim"], rows)


if __name__ == "__main__":
    main()
