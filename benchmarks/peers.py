"""Calls to the peers, which run in an environment of their own, and what they answered before.

The environment's Python is named by BAYESCFX_BOTORCH_PYTHON (default
``.venv-botorch/bin/python``). Without it, peers are left out with a message.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.problems import Case, order, sobol
from benchmarks.reporting import RESULTS

ROOT = Path(__file__).resolve().parent.parent
STORED = RESULTS / "peer-botorch.json"
STARTS = 3  # Sobol points that BoTorch's loop starts from, besides the query


def peer_python() -> Path | None:
    """Return the Python of the peers' environment, or None."""
    default = ROOT / ".venv-botorch" / "bin" / "python"
    path = Path(os.environ.get("BAYESCFX_BOTORCH_PYTHON", default))
    return path if path.exists() else None


def call(peer: str, cases: Sequence[Case], **options: Any) -> Iterator[dict[str, Any]]:
    """Yield a peer's answers one by one as they come; nothing if it can't be run."""
    python = peer_python()
    if python is None:
        print(f"  ({peer} left out: no environment; see benchmarks/README.md)")
        return
    request = {"peer": peer, "cases": [asdict(c) for c in cases], **options}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(json.dumps(request))
        command = [str(python), "-m", "benchmarks.peer_efficiency", str(path)]
        with (
            (Path(folder) / "errors.txt").open("w+") as errors,
            subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None  # it is a pipe
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
            if process.wait():
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                print(f"  ({peer} left out: {last})")


def botorch(cases: Sequence[Case], points: int, budget: int) -> Iterator[dict[str, Any]]:
    """Yield what BoTorch's composite loop saw, started from the query and Sobol points."""
    for data in dict.fromkeys(c.data for c in cases):
        asked = [c for c in cases if c.data == data]
        yield from call("botorch", asked, start=sobol(data, points).tolist(), budget=budget)


def botorch_traces(cases: Sequence[Case], budget: int, mode: str) -> dict[str, list[float]]:
    """Return the outputs that BoTorch's composite loop saw, by case; cached between runs.

    Parameters
    ----------
    cases : sequence of Case
        The questions.
    budget : int
        Calls per question, the query's included.
    mode : {"auto", "run", "cached", "none"}
        Run what was never run, run everything, run nothing, or leave BoTorch out.
    """
    if mode == "none":
        return {}
    cache = stored()
    missing = [c for c in cases if mode == "run" or not _same(c, cache.get(c.key))]
    if mode != "cached" and missing:
        print(f"  BoTorch has {len(missing)} problems to solve, a minute each", flush=True)
        # Query by query, so that an interrupted run has covered every model.
        missing.sort(key=lambda c: order(c.data).index(c.row))
        for answer in botorch(missing, STARTS, budget):
            cache[answer["case"]] = answer
            RESULTS.mkdir(exist_ok=True)
            STORED.write_text(json.dumps(cache, default=float) + "\n")
    return {c.key: cache[c.key]["outputs"] for c in cases if _same(c, cache.get(c.key))}


def stored() -> dict[str, dict[str, Any]]:
    """Return BoTorch's answers of earlier runs, by case."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def _same(asked: Case, answer: dict[str, Any] | None) -> bool:
    """Return whether a stored answer is to this question, put to this model."""
    if answer is None:
        return False
    close = 1e-6 * abs(asked.target - asked.output)
    same_model = abs(answer["outputs"][0] - asked.output) <= close
    return bool(same_model and abs(answer["target"] - asked.target) <= close)


def dice(cases: Sequence[Case], mode: str, method: str = "random") -> list[dict[str, Any]]:
    """Return dice-ml's nearness on the same questions; run anew, unless only caches are wanted.

    The first question is asked twice, and the first time, which pays for imports, left out.
    """
    if mode in ("none", "cached"):
        return []
    return list(call("dice", [*cases[:1], *cases], method=method))[1:]
