"""Run the benchmarks: ``python -m benchmarks`` for all, ``python -m benchmarks NAME ...`` for one.

Each prints its tables and writes its figures to ``benchmarks/results``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any
from unittest.mock import patch

from benchmarks.reporting import write

NAMES = (
    "acquisition",
    "surrogate",
    "propose",
    "near",
    "verdict",
    "imports",
    "efficiency",
    "exact",
    "scale",
    "workers",
    "page",
)


def measure(name: str, words: list[str]) -> None:
    """Run the command line of one benchmark and write the result of its ``run``."""
    module = import_module(f"benchmarks.{name}")
    original_run = module.run
    results = []

    def run(*args: Any, **kwargs: Any) -> Any:
        results.append(original_run(*args, **kwargs))
        return results[-1]

    print(f"\n== {name} ==", flush=True)
    with patch.object(module, "run", run), patch.object(sys, "argv", [name, *words]):
        module.main()
    if name not in ("efficiency", "exact"):  # they write each part as soon as it is done
        write(name, results[-1], quick=bool(words))


def main(words: list[str]) -> None:
    if words and words[0] not in NAMES:
        sys.exit(f"the benchmark must be one of {', '.join(NAMES)}; got {words[0]!r}.")
    for name in words[:1] or NAMES:
        measure(name, words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
