"""`reproduce`: the paper's experiments, which live beside the package in its repository."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import bayescfx as cfx
from bayescfx.errors import SettingsError
from bayescfx.requests.console import Console


def reproduce(options: Namespace, console: Console) -> int:
    """Run the paper's experiments; return their exit code."""
    root = _find_repository()
    words = []
    if options.quick:
        words.append("--quick")
    if options.experiments:
        words += ["--only", *options.experiments]
    for flag, folder in (("--out", options.out), ("--data", options.data)):
        if folder is not None:
            words += [flag, str(Path(folder).resolve())]
    console.note(f"running the experiments in {root}.")
    done = subprocess.run([sys.executable, "-m", "experiments", *words], cwd=root, check=False)
    return done.returncode


def _find_repository() -> Path:
    """Return the folder with the experiments: the current one, or that of the source."""
    for folder in (Path.cwd(), Path(cfx.__file__).resolve().parents[2]):
        if (folder / "experiments" / "__main__.py").is_file():
            return folder
    raise SettingsError(
        "the paper's experiments are in the repository, not in the package. Clone it, and run "
        "`bayescfx reproduce` or `make reproduce` there."
    )
