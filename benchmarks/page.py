"""The page under load: twenty concurrent searches, and the latency of a prediction meanwhile.

`bayescfx serve` runs in a separate process with LightGBM on the diabetes data. Four waves of twenty
different questions are posted. Until all are answered, a row is edited and scored repeatedly, as
when a user moves a slider. The memory of the server is read before the first wave, after each
wave, and after all questions are deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd

from benchmarks.problems import fitted, table
from benchmarks.reporting import aim, show_table


@contextlib.contextmanager
def page() -> Iterator[tuple[httpx.Client, int]]:
    """Yield a client of the page, and the process ID of its server."""
    with tempfile.TemporaryDirectory() as folder:
        rows = table("diabetes")
        model: Any = fitted("diabetes", "lgbm")
        data = pd.DataFrame(rows.X, columns=[f"x{j}" for j in range(rows.X.shape[1])])
        data.to_csv(Path(folder) / "X.csv", index=False)
        model.booster.save_model(str(Path(folder) / "m.txt"))
        command = [sys.executable, "-m", "bayescfx", "serve", "--model", f"{folder}/m.txt"]
        command += ["--data", f"{folder}/X.csv", "--port", "0", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert address is not None
            try:
                with httpx.Client(base_url=address[0], timeout=60) as client:
                    yield client, server.pid
            finally:
                server.send_signal(signal.SIGINT)


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def wave(client: httpx.Client, questions: int, seed: int, **options: Any) -> dict[str, Any]:
    """Post questions concurrently; return their outcomes and the latency of predictions."""
    rows = client.get("/api/rows", params={"limit": questions}).json()["rows"]
    start = time.perf_counter()
    numbers = []
    waits = []
    for row in rows:
        body = {"cells": row["cells"], "target": "+20%", "seed": seed, **options}
        numbers.append(client.post("/api/questions", json=body).json()["id"])
    left = set(numbers)
    k = 0
    while left:
        cells = {**rows[k % len(rows)]["cells"], "x2": 20.0 + k % 15}
        before = time.perf_counter()
        client.post("/api/predict", json={"cells": cells}).raise_for_status()
        waits.append(time.perf_counter() - before)
        k += 1
        time.sleep(0.05)  # about as fast as a user moves a slider
        listed = client.get("/api/questions").json()["questions"] if k % 5 == 0 else []
        left -= {q["id"] for q in listed if q["state"] in ("done", "failed")}
    ends = [client.get(f"/api/questions/{number}").json() for number in numbers]
    return {
        "questions": questions,
        "done": sum(end["state"] == "done" for end in ends),
        "seconds": time.perf_counter() - start,
        "predictions": len(waits),
        "median ms": 1e3 * float(np.median(waits)),
        "95 % ms": 1e3 * float(np.quantile(waits, 0.95)),
    }


def run(questions: int = 20) -> dict[str, Any]:
    """Return the figures of waves of sweeps and of Bayes-CFX, and the memory between them."""
    bayes: dict[str, Any] = {"method": "bayes-cfx", "budget": 100}
    with page() as (client, pid):
        held = {"before": memory(pid)}
        waves = []
        for seed, options in enumerate([{}, bayes, {}, bayes]):
            name = str(options.get("method", "auto"))
            waves.append({"method": name, **wave(client, questions, seed, **options)})
            held[f"after {seed + 1}"] = memory(pid)
        for question in client.get("/api/questions").json()["questions"]:
            client.delete(f"/api/questions/{question['id']}")
        held["forgotten"] = memory(pid)
    return {"waves": waves, "memory MB": held}


def show(found: dict[str, Any]) -> None:
    """Print the figures and the target."""
    waves = found["waves"]
    show_table("Searches at once", list(waves[0]), [list(one.values()) for one in waves])
    worst = max(one["median ms"] for one in waves)
    print("  median of a prediction meanwhile, ms", aim(worst, "<=", 200))
    show_table("Memory", ["when", "MB"], [*map(list, found["memory MB"].items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20)
    show(run(parser.parse_args().questions))


if __name__ == "__main__":
    main()
