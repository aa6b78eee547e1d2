"""Running many searches: settings, processes, progress, and the methods of the paper."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.surrogate.fit import SurrogateSettings

Task = TypeVar("Task")
Answer = TypeVar("Answer")

# "An RBF kernel and zero mean function" (Section 4).
AS_IN_THE_PAPER = SurrogateSettings(kernel="rbf", mean="zero")


@dataclass(frozen=True)
class Settings:
    """Size of the experiments, processes and data folder.

    Parameters
    ----------
    quick : bool
        Small versions, for tests.
    jobs : int
        Processes; results do not depend on it.
    data : Path, optional
        The folder with the data files; default ``$BAYESCFX_DATA``.
    """

    quick: bool = False
    jobs: int = 1
    data: Path | None = None

    def pick(self, full: int, quick: int) -> int:
        """Return one of two sizes."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Method:
    """A search with the name that figures and JSON use.

    Parameters
    ----------
    name : str
        The name.
    search : object
        The argument `method` of ``cfx.explain``.
    """

    name: str
    search: Any


# The four methods of Section 4, with the paper's surrogate.
PAPER_METHODS = (
    Method("Random", cfx.RandomSearch()),
    Method("L-BFGS-B", cfx.LBFGSB()),
    Method("Bayes", cfx.NaiveBayes(surrogate=AS_IN_THE_PAPER)),
    # The paper's search has no verdict, so it never gives up.
    Method("Bayes-CFX", cfx.BayesCFX(local=False, give_up=False, surrogate=AS_IN_THE_PAPER)),
)
DEFAULTS = Method("Bayes-CFX (defaults)", cfx.BayesCFX())


def each(
    function: Callable[[Task], Answer], tasks: Iterable[Task], label: str, jobs: int = 1
) -> list[Answer]:
    """Return ``[function(task) for task in tasks]``, with progress on stderr.

    Order and values do not depend on `jobs`, because every task has its own seed. Tasks start in
    the given order, one per free process: put long tasks first, so that no core waits at the end.
    """
    all_tasks = list(tasks)
    with _bar(label, len(all_tasks)) as bar:
        if jobs == 1:
            return [_count(function(task), bar) for task in all_tasks]
        futures = [_pool(jobs).submit(function, task) for task in all_tasks]
        for _ in as_completed(futures):
            bar.update()
        return [future.result() for future in futures]


@cache
def _pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool that lives as long as this process, because starting one takes seconds."""
    # "spawn": no state of this process, above all no threads, leaks into the others.
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def _bar(label: str, total: int) -> Any:
    interval = 0.5 if sys.stderr.isatty() else 20.0
    return tqdm(total=total, desc=f"{label:<24}", file=sys.stderr, mininterval=interval)


def _count(answer: Answer, bar: Any) -> Answer:
    bar.update()
    return answer


def padded(trace: Array, length: int) -> Array:
    """Return a trace of best values as ``(length,)``, continued with its last value."""
    kept = trace[:length]
    return np.concatenate([kept, np.full(length - len(kept), kept[-1])])


def calls_to(trace: Array, level: float) -> int | None:
    """Return the number of calls until a trace of best values reaches `level`, or None."""
    hit = np.flatnonzero(trace >= level)
    return int(hit[0]) + 1 if len(hit) else None


def median_calls(calls: Sequence[int | None]) -> float | None:
    """Return the median, where None counts as infinite; None if the median is infinite."""
    finite = [float("inf") if c is None else float(c) for c in calls]
    middle = float(np.median(finite))
    return middle if np.isfinite(middle) else None
