"""The environment of a run: software, hardware, seeds and time."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bayescfx as cfx

FILE = "environment.json"
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "lightgbm", "matplotlib")


def describe() -> dict[str, Any]:
    """Return versions and hardware, without names of machines, users or folders."""
    software = {"Python": platform.python_version(), "bayescfx": cfx.__version__}
    return {
        "software": software | {name: version(name) for name in PACKAGES},
        "hardware": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()}, {platform.machine()}",
        },
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor, if the system provides it."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or "unknown"


def save(folder: Path, runs: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Write ``environment.json``; runs made before in the same environment are kept."""
    here = describe()
    before = load(folder)
    same = all(before.get(part) == here[part] for part in here)
    kept = {**(before["runs"] if same else {}), **runs}
    found = here | {"runs": dict(sorted(kept.items()))}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    return found


def load(folder: Path) -> dict[str, Any]:
    """Return the environment in a results folder; empty if there is none."""
    path = folder / FILE
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def line(found: Mapping[str, Any]) -> str:
    """Return the versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in found.get("software", {}).items())


def tell(found: Mapping[str, Any], seeds: Mapping[str, int | None]) -> str:
    """Return the section of the report; `seeds` are the numbers of seeds per experiment."""
    if not found:
        return "## Where it was run\n\nThis folder has no `environment.json`.\n"
    hardware = found["hardware"]
    runs = found["runs"]
    rows = [
        f"| {name} | {'–' if count is None else f'0 … {count - 1}'} | "
        + (f"{runs[name]['seconds']:.0f} s, {runs[name]['jobs']:.0f} |" if name in runs else "– |")
        for name, count in seeds.items()
    ]
    strangers = [name for name in seeds if name not in runs]
    note = (
        f"\nNot from this environment: the results of {', '.join(strangers)}.\n"
        if strangers
        else ""
    )
    total = sum(run["seconds"] for run in runs.values()) / 60
    return f"""\
## Where it was run

{line(found)}; {hardware["processor"]}, {hardware["cores"]} cores, {hardware["system"]}; one thread
per process, {total:.1f} minutes in all. Where anything is random, a seed begins the search; the
models have seeds of their own, as the paper gives them.
{note}
| experiment | seeds | time, processes |
|---|---|---|
{chr(10).join(rows)}
"""
