"""Import time of the library, in a new process each time.

Imports are measured on top of pandas, as a share of the import time of pandas. The help of the
command line is measured in units of an empty Python process. The sides run in turns and median CPU
seconds are compared, so a busy machine slows all equally. Byte code is compiled before the first
measurement, as in an installation.
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

#: (our code, code of the unit, whether to subtract the unit and an empty process, the target).
SIDES = {
    "everything / pandas": ("import pandas; from bayescfx import *", "import pandas", True, 0.3),
    "explain / pandas": ("import pandas; from bayescfx import explain", "import pandas", True, 0.3),
    "bayescfx --help / nothing": (
        "import sys; from bayescfx.cli import main; sys.argv = ['bayescfx', '--help']; main()",
        "pass",
        False,
        3.0,
    ),
    "bayescfx explain --help / nothing": (
        "import sys; from bayescfx.cli import main; sys.argv[1:] = ['explain', '--help']; main()",
        "pass",
        False,
        8.0,
    ),
}


def seconds(code: str, folder: str) -> float:
    """Return the CPU seconds of a new process that runs the code."""
    environment = {name: value for name, value in os.environ.items() if "BYTECODE" not in name}
    before = _children_seconds()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPYCACHEPREFIX": folder},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return _children_seconds() - before


def _children_seconds() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(repeats: int = 15) -> dict[str, float]:
    """Return the ratio for each pair of sides."""
    codes = ["pass", *{code for ours, unit, *_ in SIDES.values() for code in (ours, unit)}]
    times: dict[str, list[float]] = {code: [] for code in codes}
    with tempfile.TemporaryDirectory() as folder:
        for code in codes:
            seconds(code, folder)
        for _ in range(repeats):
            for code in codes:
                times[code].append(seconds(code, folder))
    cost = {code: statistics.median(found) for code, found in times.items()}
    ratios = {}
    for name, (ours, unit, is_on_top, _) in SIDES.items():
        start = cost["pass"] if is_on_top else 0.0
        added = cost[ours] - (cost[unit] if is_on_top else 0.0)
        ratios[name] = added / (cost[unit] - start)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="measurements of each side")
    found = run(parser.parse_args().repeats)
    rows = [[name, ratio, aim(ratio, "<=", SIDES[name][3])] for name, ratio in found.items()]
    show_table("CPU time to load", ["", "ratio", "aim"], rows)


if __name__ == "__main__":
    main()
