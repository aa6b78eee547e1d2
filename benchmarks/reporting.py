"""Tables on the screen and figures in JSON files."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("results")
_PACKAGES = ("bayescfx", "numpy", "scipy", "scikit-learn", "lightgbm")


def show_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with aligned columns."""
    lines = [list(head)]
    for row in rows:
        lines.append([cell(value) for value in row])
    widths = [max(len(line[j]) for line in lines) for j in range(len(head))]
    print(f"\n{title}")
    for first, *others in lines:
        texts = [first.ljust(widths[0])]
        for text, width in zip(others, widths[1:], strict=True):
            texts.append(text.rjust(width))
        print("  " + "  ".join(texts).rstrip())


def cell(value: object) -> str:
    """Return a value as short text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def aim(value: float | None, relation: str, limit: float) -> str:
    """Return an aim and whether the value meets it."""
    if value is None or np.isnan(value):
        return f"{relation} {limit:g}"
    is_met = value >= limit if relation == ">=" else value <= limit
    return f"{relation} {limit:g} {'met' if is_met else 'MISSED'}"


def machine() -> dict[str, Any]:
    """Return the conditions of a run: time, load, processor, versions."""
    return {
        "at": time.strftime("%Y-%m-%d %H:%M:%S"),
        "load": [round(x, 2) for x in os.getloadavg()],
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "exp_ms": _pace(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _pace() -> float:
    """Return the CPU milliseconds of `numpy.exp` on 10,000 x 32 numbers."""
    table = np.random.default_rng(0).normal(size=(10_000, 32))
    times = []
    for _ in range(25):
        begin = time.process_time()
        np.exp(table)
        times.append(time.process_time() - begin)
    return round(1e3 * float(np.median(times)), 3)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def write(name: str, figures: object, *, quick: bool = False) -> Path:
    """Write figures to ``results``; a quick run does not replace a full one."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if quick else ''}.json"
    content = {"machine": machine(), "figures": figures}
    path.write_text(json.dumps(content, indent=1, default=_plain) + "\n")
    return path


def _plain(value: object) -> object:
    """Convert numbers and arrays of NumPy to plain Python."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
