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
    "scale",
    "workers",
    "page",
)


def measure(name: str, words: list[str]) -> None:
    """Run one benchmark's command line and keep what its ``run`` returns."""
    module = import_module(f"benchmarks.{name}")
    measured, kept = module.run, []

    def run(*given: Any, **named: Any) -> Any:
        kept.append(measured(*given, **named))
        return kept[-1]

    print(f"\n== {name} ==", flush=True)
    with patch.object(module, "run", run), patch.object(sys, "argv", [name, *words]):
        module.main()
    if name != "efficiency":  # which writes each of its parts as soon as it is done
        write(name, kept[-1], quick=bool(words))


def main(words: list[str]) -> None:
    if words and words[0] not in NAMES:
        sys.exit(f"no benchmark {words[0]!r}; there are {', '.join(NAMES)}.")
    for name in words[:1] or NAMES:
        measure(name, words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
