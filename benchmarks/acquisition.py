"""Time of log EI-CFX with gradient, as multiples of `numpy.exp` on an array of 10,000 x 32.

The time is that of one thread and includes the setup of each threshold. Both sides run alternately
and their median CPU times are compared, so a busy machine slows both equally.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from bayescfx.acquisition import LogEI
from bayescfx.arrays import Array
from bayescfx.potentials import AEP, SEP, LevelPotential, Linked, Logit, Plateau

POINTS = 10_000
COLUMNS = 32
LIMIT = 15.0  # multiples of `numpy.exp`
POTENTIALS: dict[str, LevelPotential] = {
    "AEP": AEP(0.0, 1.0),
    "SEP": SEP(0.0, 1.0),
    "at least": Plateau(1.0, math.inf, 0.5),
    "between": Plateau(1.0, 2.0, 0.5),
    "AEP on log-odds": Linked(AEP(0.9, 0.4, -1), Logit()),
}


def evaluate(potential: LevelPotential, best: ArrayLike, mean: Array, std: Array) -> object:
    """Evaluate log EI-CFX with gradient at all points."""
    return LogEI(potential, best).value_and_gradient(mean, std)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def ratio(work: Callable[[], object], unit: Callable[[], object], repeats: int = 15) -> float:
    """Return the median CPU time of `work` in units of the median CPU time of `unit`."""
    work()
    work_seconds = []
    unit_seconds = []
    for _ in range(repeats):
        work_seconds.append(seconds(work))
        unit_seconds.append(statistics.median(seconds(unit) for _ in range(9)))
    return statistics.median(work_seconds) / statistics.median(unit_seconds)


def run() -> dict[str, float]:
    """Return the ratio for each potential, shared and per-point thresholds."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(POINTS, COLUMNS))
    mean = 2.0 * rng.normal(size=POINTS)
    std = 10.0 ** rng.uniform(-2.0, 0.5, POINTS)
    best = rng.uniform(0.05, 0.36, POINTS)
    found: dict[str, float] = {}
    with threadpool_limits(1):
        for name, potential in POTENTIALS.items():
            for kind, level in (("", 0.3), (", one threshold per point", best)):
                work = partial(evaluate, potential, level, mean, std)
                found[name + kind] = ratio(work, partial(np.exp, table))
    return found


def main() -> None:
    for name, value in run().items():
        verdict = "within" if value <= LIMIT else "OVER"
        print(f"{name:45s} {value:7.1f} x numpy.exp(10000 x 32), {verdict} the limit of {LIMIT:g}")


if __name__ == "__main__":
    main()
