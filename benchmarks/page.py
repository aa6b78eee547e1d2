"""The page under load: twenty searches at once, and how long a prediction takes meanwhile.

`bayescfx serve` runs in a process of its own with LightGBM on the diabetes data. Twenty different
questions are asked at the same time, four times over; until all are answered, a row changed by
hand is scored again and again, as by somebody who moves a slider. The memory of the server is read
before, after each wave, and when its questions are forgotten.
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
    """Yield a client of a page, and the process that shows it."""
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


def wave(client: httpx.Client, questions: int, seed: int, **wish: Any) -> dict[str, Any]:
    """Return what became of questions asked at once, and how long predictions took meanwhile."""
    rows = client.get("/api/rows", params={"limit": questions}).json()["rows"]
    start, numbers, waits = time.perf_counter(), [], []
    for row in rows:
        asked = {"cells": row["cells"], "target": "+20%", "seed": seed, **wish}
        numbers.append(client.post("/api/questions", json=asked).json()["id"])
    left, k = set(numbers), 0
    while left:
        cells = {**rows[k % len(rows)]["cells"], "x2": 20.0 + k % 15}
        before = time.perf_counter()
        client.post("/api/predict", json={"cells": cells}).raise_for_status()
        waits.append(time.perf_counter() - before)
        k += 1
        time.sleep(0.05)  # a person moves a slider
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
    """Return waves of cheap sweeps and of Bayes-CFX, and the memory around them."""
    with page() as (client, pid):
        held, waves = {"before": memory(pid)}, []
        for seed, wish in enumerate(
            [{}, {"method": "bayes-cfx", "budget": 100}, {}, {"method": "bayes-cfx", "budget": 100}]
        ):
            name = str(wish.get("method", "auto"))
            waves.append({"method": name, **wave(client, questions, seed, **wish)})
            held[f"after {seed + 1}"] = memory(pid)
        for question in client.get("/api/questions").json()["questions"]:
            client.delete(f"/api/questions/{question['id']}")
        held["forgotten"] = memory(pid)
    return {"waves": waves, "memory MB": held}


def show(found: dict[str, Any]) -> None:
    """Print the figures and the aim."""
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
