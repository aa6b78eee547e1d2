"""Random questions with random faults, for a chosen time.

``python -m tests.soak --minutes 60`` ends with an error if any search overspends, is stuck, gives
an answer that does not hold, raises anything undocumented, or leaves something behind. A new fault
is one more function in `FAULTS`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.models.isolated import Isolated

Model = Callable[[Any], Any]
METHODS = ("auto", "bayes-cfx", "bayes", "random", "lbfgsb", "gradient", "sweep")


class Planned(Exception):
    """The error of a faulty model."""


def score(rows: Any) -> Any:
    """Return a model with a trend, a bump and levels."""
    x = rows["x"].to_numpy(float)
    k = rows["k"].to_numpy(float)
    return x + 0.3 * k + np.sin(2 * x) + (rows["c"] == "b").to_numpy(float)


def hanging(rows: pd.DataFrame) -> Any:
    """Return the score; hang in one corner, crash in another."""
    if (rows["x"] > 9.5).any():
        time.sleep(600)
    if (rows["k"] > 8).any():
        os._exit(1)
    return score(rows)


def table(rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of mixed kinds."""
    n = int(rng.integers(30, 120))
    frame = pd.DataFrame(
        {"x": rng.uniform(0, 10, n), "k": rng.integers(0, 10, n), "c": rng.choice(list("abc"), n)}
    )
    for j in range(int(rng.integers(0, 4))):
        frame[f"z{j}"] = rng.normal(size=n).round(int(rng.integers(0, 4)))
    if rng.random() < 0.3:
        frame["gap"] = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    return frame


def raising(rng: np.random.Generator) -> Model:
    """Return a model that sometimes raises."""

    def model(rows: Any) -> Any:
        if rng.random() < 0.1:
            raise Planned
        return score(rows)

    return model


def missing(rng: np.random.Generator) -> Model:
    """Return a model without an output for some rows."""
    limit = rng.uniform(5, 10)
    return lambda rows: np.where(rows["x"] > limit, np.nan, score(rows))


def noisy(rng: np.random.Generator) -> Model:
    """Return a model that is not deterministic."""
    return lambda rows: score(rows) + rng.normal(0, 0.3, len(rows))


def misshapen(rng: np.random.Generator) -> Model:
    """Return a model that sometimes returns too many outputs."""
    return lambda rows: score(rows) if rng.random() < 0.9 else np.ones((len(rows), 2))


def slow(rng: np.random.Generator) -> Model:
    """Return a slow model."""

    def model(rows: Any) -> Any:
        time.sleep(0.002)
        return score(rows)

    return model


def isolated(rng: np.random.Generator) -> Model:
    """Return a model in a separate process that hangs or crashes for some rows."""
    return cfx.isolated(hanging, timeout=0.3)


def learnt(rng: np.random.Generator) -> Model:
    """Return an estimator on a real and an integer column."""
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    X = pd.DataFrame({"x": rng.uniform(0, 10, 200), "k": rng.integers(0, 10, 200), "c": "a"})
    fitted = [
        LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
        RandomForestRegressor(10, random_state=0),
        LinearRegression(),
    ][int(rng.integers(3))].fit(X[["x", "k"]], score(X))
    return lambda rows: fitted.predict(rows[["x", "k"]])


#: Every kind of model; each gets a generator.
FAULTS: dict[str, Callable[[np.random.Generator], Model]] = {
    "sound": lambda rng: score,
    "learnt": learnt,
    "raising": raising,
    "missing": missing,
    "noisy": noisy,
    "misshapen": misshapen,
    "slow": slow,
    "isolated": isolated,
}
REPEATABLE = ("sound", "learnt", "missing", "slow")


@dataclass
class Soak:
    """Counts of questions and failures, and the resources in use."""

    asked: int = 0
    answered: int = 0
    killed: int = 0  # processes
    failed: dict[str, int] = field(default_factory=dict)  # by kind of error
    # kB, descriptors, threads, child processes
    use: list[tuple[int, int, int, int]] = field(default_factory=list)

    def look(self) -> None:
        """Record the resources in use."""
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1])
        kilobytes = resident * os.sysconf("SC_PAGE_SIZE") // 1024
        children = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # the process has just ended
                children += stat.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        descriptors = len(os.listdir("/proc/self/fd"))
        self.use.append((kilobytes, descriptors, threading.active_count(), children))

    def check_use(self) -> None:
        """Compare the resources in use with those after the warm-up."""
        if len(self.use) < 4:
            return
        early = self.use[len(self.use) // 3]
        late = self.use[-1]
        questions = self.asked * 2 / 3
        assert late[1] <= early[1] + 3, f"open files: {early} {late}"
        assert late[2] <= early[2] + 3, f"threads: {early} {late}"
        assert late[3] <= early[3], f"child processes: {early} {late}"
        # Freed memory that a process keeps levels off; a leak of 100 kB per question does not.
        assert late[0] - early[0] <= 100_000 + 100 * questions, f"memory: {early} {late}"


def question(soak: Soak, seed: int) -> None:
    """Ask one random question and check the result."""
    rng = np.random.default_rng(seed)
    frame = table(rng)
    kind = str(rng.choice(list(FAULTS)))
    model = FAULTS[kind](rng)
    space = cfx.Space.from_data(frame)
    if rng.random() < 0.3:
        space = space.require("x <= 2 * k + 6")
    if rng.random() < 0.3:
        space = space.max_changes(2)
    budget = int(rng.integers(5, 150))
    timeout = float(rng.choice([0.2, 1.0, 5.0]))
    ask: dict[str, Any] = {"budget": budget, "timeout": timeout, "rng": seed}
    ask |= {"method": str(rng.choice(METHODS)), "n": int(rng.integers(1, 4))}
    ask |= {"on_fault": str(rng.choice(["raise", "skip"]))}
    target = cfx.increase(by=float(rng.uniform(0.2, 5)))
    many = int(rng.integers(2, 5)) if rng.random() < 0.3 else 1
    queries = frame.sample(many, random_state=seed)
    context = (seed, kind, ask, many)
    begun = time.monotonic()
    soak.asked += 1
    try:
        found = cfx.explain_many(model, queries, space, target, **ask)
    except (cfx.BayesCFXError, Planned) as error:
        name = type(error).__name__
        soak.failed[name] = soak.failed.get(name, 0) + 1
        found = getattr(error, "explanations", cfx.Explanations([]))
    finally:
        if isinstance(model, Isolated):
            model.close()
    # Skipping sends a failed batch row by row, and each process takes time to start.
    assert time.monotonic() - begun < timeout + 60, context
    for answer in found:
        soak.answered += 1
        assert answer.n_evaluations <= budget, context
        moved = [c for c in answer.counterfactuals if c.changes]
        assert all(np.isfinite(c.output) for c in moved), context
        if kind in REPEATABLE and moved:
            assert answer.violations(model) == (), context  # in the space that was searched


def stored(seed: int, path: Path) -> cfx.Explanation:
    """Explain a slow model with evaluations in a file."""
    rng = np.random.default_rng(seed)
    frame = table(rng)
    with cfx.Evaluations.open(path) as store:
        return cfx.explain(
            slow(rng),
            frame.iloc[0],
            cfx.Space.from_data(frame),
            cfx.increase(by=float(rng.uniform(2, 9))),
            method="bayes-cfx",
            budget=60,
            evaluations=store,
            rng=seed,
            run="soak",
        )


def killed(soak: Soak, seed: int) -> None:
    """Kill a process during or before its search, and continue from its stored evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.db")
        other = Path(folder, "t.db")
        command = [sys.executable, "-m", "tests.soak", "--seed", str(seed), "--store", str(path)]
        child = subprocess.Popen(command)
        time.sleep(float(np.random.default_rng(seed).uniform(0.5, 4)))
        child.kill()
        child.wait()
        soak.asked += 1
        soak.killed += 1
        with cfx.Evaluations.open(path) as store:
            kept = store.rows
            assert kept is None or np.array_equal(score(kept), store.outputs), seed
        found = stored(seed, path)
        whole = stored(seed, other)
        assert found.violations(score) == (), seed
        assert found.trace.tolist() == whole.trace.tolist(), seed
        assert found.best.changes == whole.best.changes, seed


def run(seconds: float, seed: int = 0) -> Soak:
    """Ask questions for some seconds; raise an error if a check fails."""
    soak = Soak()
    end = time.monotonic() + seconds
    due = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cfx.BayesCFXWarning)
        while time.monotonic() < end:
            one = killed if soak.asked % 30 == 15 else question
            at = seed + soak.asked
            try:
                one(soak, at)
            except Exception as error:
                error.add_note(f"{one.__name__} with seed {at}")
                raise
            if time.monotonic() >= due:
                soak.look()
                due = time.monotonic() + seconds / 30
    soak.check_use()
    return soak


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--store", type=Path, help="ask one question with a store in this file")
    given = options.parse_args()
    if given.store is not None:
        stored(given.seed, given.store)
        sys.exit()
    sys.stdout.write(f"{run(60 * given.minutes, given.seed)}\n")
