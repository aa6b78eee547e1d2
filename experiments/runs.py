"""Running many searches: settings, processes, progress, and what all methods are called."""

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
    """How much to do, and where things are.

    Parameters
    ----------
    quick : bool
        Small versions, for tests and for a first look.
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
    """One line of a comparison: what it is called and how it searches.

    Parameters
    ----------
    name : str
        In JSON and figures.
    search : object
        What ``cfx.explain`` takes as `method`.
    """

    name: str
    search: Any


# The four methods of Section 4, with the paper's surrogate.
PAPER_METHODS = (
    Method("Random", cfx.RandomSearch()),
    Method("L-BFGS-B", cfx.LBFGSB()),
    Method("Bayes", cfx.NaiveBayes(surrogate=AS_IN_THE_PAPER)),
    # The paper's search knows no verdict: it never gives up.
    Method("Bayes-CFX", cfx.BayesCFX(local=False, give_up=False, surrogate=AS_IN_THE_PAPER)),
)
DEFAULTS = Method("Bayes-CFX (defaults)", cfx.BayesCFX())


def each(
    function: Callable[[Task], Answer], tasks: Iterable[Task], label: str, jobs: int = 1
) -> list[Answer]:
    """Return ``[function(task) for task in tasks]``, with progress on stderr.

    Order and values do not depend on `jobs`: every task carries its own seed. Tasks are begun in
    the order given, one per free process: put long ones first, and no core waits at the end.
    """
    todo = list(tasks)
    with _bar(label, len(todo)) as bar:
        if jobs == 1:
            return [_counted(function(task), bar) for task in todo]
        futures = [_pool(jobs).submit(function, task) for task in todo]
        for _ in as_completed(futures):
            bar.update()
        return [future.result() for future in futures]


@cache
def _pool(jobs: int) -> ProcessPoolExecutor:
    """Return processes that live as long as this one: starting them takes seconds."""
    # "spawn": no state of this process, threads above all, leaks into the others
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def _bar(label: str, total: int) -> Any:
    interval = 0.5 if sys.stderr.isatty() else 20.0
    return tqdm(total=total, desc=f"{label:<24}", file=sys.stderr, mininterval=interval)


def _counted(answer: Answer, bar: Any) -> Answer:
    bar.update()
    return answer


def padded(trace: Array, length: int) -> Array:
    """Return a trace of best values as ``(length,)``: a search that ended keeps its best."""
    kept = trace[:length]
    return np.concatenate([kept, np.full(length - len(kept), kept[-1])])


def calls_to(trace: Array, level: float) -> int | None:
    """Return after how many calls a trace of best values reaches `level`, or None."""
    hit = np.flatnonzero(trace >= level)
    return int(hit[0]) + 1 if len(hit) else None


def median_calls(calls: Sequence[int | None]) -> float | None:
    """Return the median where None counts as later than all; None if the median is one."""
    finite = [float("inf") if c is None else float(c) for c in calls]
    middle = float(np.median(finite))
    return middle if np.isfinite(middle) else None
