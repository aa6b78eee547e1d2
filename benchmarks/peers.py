"""Calls to other libraries, which run in a separate environment, and their stored answers.

The Python of the environment is named by BAYESCFX_BOTORCH_PYTHON (default
``.venv-botorch/bin/python``). Without it, the other libraries are left out with a message.
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
    """Yield the answers of another library as they arrive; nothing if it cannot run."""
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
    """Yield the results of BoTorch's composite loop, started from the query and Sobol points."""
    for data in dict.fromkeys(c.data for c in cases):
        same_table = [c for c in cases if c.data == data]
        yield from call("botorch", same_table, start=sobol(data, points).tolist(), budget=budget)


def botorch_traces(cases: Sequence[Case], budget: int, mode: str) -> dict[str, list[float]]:
    """Return the outputs that BoTorch's composite loop scored, by case; cached between runs.

    Parameters
    ----------
    cases : sequence of Case
        The questions.
    budget : int
        Calls per question, the query's included.
    mode : {"auto", "run", "cached", "none"}
        Run the cases without a stored answer, run all, run none, or leave BoTorch out.
    """
    if mode == "none":
        return {}
    cache = stored()
    missing = [c for c in cases if mode == "run" or not _is_same(c, cache.get(c.key))]
    if mode != "cached" and missing:
        print(f"  BoTorch has {len(missing)} problems to solve, about one minute each", flush=True)
        # Query by query, so that an interrupted run has covered every model.
        missing.sort(key=lambda c: order(c.data).index(c.row))
        for answer in botorch(missing, STARTS, budget):
            cache[answer["case"]] = answer
            RESULTS.mkdir(exist_ok=True)
            STORED.write_text(json.dumps(cache, default=float) + "\n")
    return {c.key: cache[c.key]["outputs"] for c in cases if _is_same(c, cache.get(c.key))}


def stored() -> dict[str, dict[str, Any]]:
    """Return BoTorch's answers of earlier runs, by case."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def _is_same(case: Case, answer: dict[str, Any] | None) -> bool:
    """Return whether a stored answer belongs to this question and this model."""
    if answer is None:
        return False
    close = 1e-6 * abs(case.target - case.output)
    same_model = abs(answer["outputs"][0] - case.output) <= close
    return bool(same_model and abs(answer["target"] - case.target) <= close)


def dice(cases: Sequence[Case], mode: str, method: str = "random") -> list[dict[str, Any]]:
    """Return dice-ml's records of the same questions; nothing in the modes "none" and "cached".

    The first question is asked twice, and its first record, which includes imports, is left out.
    """
    if mode in ("none", "cached"):
        return []
    return list(call("dice", [*cases[:1], *cases], method=method))[1:]
