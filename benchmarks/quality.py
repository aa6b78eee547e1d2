"""The quality gate: compares hits, cost and rows with a stored baseline.

::

    make quality                                              # compare with results/quality.json
    python -m benchmarks.quality --against OTHER/src          # run two checkouts in turns
    python -m benchmarks.quality --store --commit ID          # make the baseline

Every question of `benchmarks.questions` is asked with several seeds. A *unit* is one query of a
question; its figures are means over the seeds. A group of questions is judged by

* hits: the mean over its units of the share of seeds that hit,
* cost: the geometric mean of cost, new / baseline, over the units that hit on both sides,
* rows: the geometric mean of rows, new / baseline.

The margin of a figure is `Z` standard errors of the difference. They follow from the spread
between the seeds of one unit in the baseline, so they state what another choice of seeds would
change. The exit code is 1 if hits, cost or rows of a group are worse by more than the margin.

CPU is reported and does not decide. Against the stored baseline it is given in units of a fixed
calibration workload, timed between the questions of the same run; for a decision use `--against`,
which asks both checkouts the same question one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from benchmarks.reporting import RESULTS, machine, show_table

BASELINE = RESULTS / "quality.json"
ROOT = Path(__file__).resolve().parents[1]
SEEDS = 4  # of a run; a seed takes about 35 CPU seconds
BASELINE_SEEDS = 10  # more than a run has, for the spread between seeds is estimated from them
Z = 3.0  # standard errors; with 20 figures, an unchanged program fails in about 3 % of the runs
LEAST_MARGIN = 0.003  # of cost and rows, where seeds make no difference: rounding


@dataclass(frozen=True)
class Record:
    """One answer: the question's name, the position of the query in it, the seed, the outcome."""

    question: str
    query: int
    seed: int
    hit: bool
    cost: float | None
    rows: int
    cpu: float

    @property
    def group(self) -> str:
        """Return the group of the question."""
        return self.question.partition(":")[0]

    @property
    def unit(self) -> str:
        """Return the name of the query within all questions."""
        return f"{self.question}/{self.query}"


# -- Asking ---------------------------------------------------------------------------------------


def ask(position: int, seed: int) -> list[Record]:
    """Ask one question, by its position among all, in this process."""
    question = _questions()[position]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the library do not count here
        answers = question.ask(seed)
    return [
        Record(question.name, query, seed, **asdict(answer)) for query, answer in enumerate(answers)
    ]


@cache
def _questions() -> list[Any]:
    """Return all questions, with their models fitted.

    Imported here because this loads the library, and the process that runs two checkouts loads
    neither.
    """
    from benchmarks.questions import questions

    found = list(questions())
    for question in found:
        question.prepare()
    return found


def warm_up(ask_question: Callable[[int, int], object], names: Sequence[str]) -> None:
    """Ask the last question of each group, so that imports are not counted."""
    last = {name.partition(":")[0]: position for position, name in enumerate(names)}
    for position in last.values():
        ask_question(position, 10_000)


class Worker:
    """A process that answers questions with one checkout.

    Parameters
    ----------
    source : Path
        The ``src`` folder of the checkout.
    """

    def __init__(self, source: Path) -> None:
        path = os.pathsep.join([str(source.resolve()), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.quality", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
        )
        first = self._read()
        self.source: str = first["source"]
        self.names: list[str] = first["names"]

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the worker ended with exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, position: int, seed: int) -> list[Record]:
        """Ask one question by its position."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{position} {seed}\n")
        self.process.stdin.flush()
        return [Record(**fields) for fields in self._read()]

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve() -> None:
    """Answer lines ``position seed`` from standard input with JSON lines, until it ends."""
    import bayescfx

    replies = sys.stdout
    sys.stdout = sys.stderr  # a print of a model or of the library must not mix with replies
    names = [question.name for question in _questions()]
    _reply(replies, {"source": str(bayescfx.__file__), "names": names})
    for line in sys.stdin:
        position, seed = line.split()
        _reply(replies, [asdict(record) for record in ask(int(position), int(seed))])


def _reply(stream: Any, content: object) -> None:
    stream.write(json.dumps(content, default=float) + "\n")
    stream.flush()


def calibrate() -> float:
    """Return the CPU seconds of a fixed workload like the library's: small matrices, Python."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 10))
    others = rng.normal(size=(200, 10))
    begin = time.process_time()
    for _ in range(150):
        gaps = points[:, None, :] - points[None, :, :]
        kernel = np.exp(-0.5 * (gaps**2).sum(axis=2)) + 1e-6 * np.eye(len(points))
        factor = cho_factor(kernel, lower=True)
        cross = np.exp(-0.5 * ((others[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
        means = cross @ cho_solve(factor, points[:, 0])
        log_ndtr(means)
        sum(float(value) for value in means)
    return time.process_time() - begin


# -- Figures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """Figures of one query over its seeds: means, and variances between the seeds."""

    n_seeds: int
    hits: float
    hits_variance: float
    n_costs: int
    log_cost: float | None
    log_cost_variance: float
    log_rows: float
    log_rows_variance: float
    cpu: float


def summarise(records: Iterable[Record]) -> dict[str, Unit]:
    """Return the figures of each unit."""
    by_unit: dict[str, list[Record]] = {}
    for record in records:
        by_unit.setdefault(record.unit, []).append(record)
    return {name: _unit(found) for name, found in by_unit.items()}


def _unit(records: Sequence[Record]) -> Unit:
    hits = [float(record.hit) for record in records]
    log_costs = [float(np.log(record.cost)) for record in records if record.cost]
    log_rows = [float(np.log(record.rows)) for record in records]
    return Unit(
        n_seeds=len(records),
        hits=float(np.mean(hits)),
        hits_variance=_variance(hits),
        n_costs=len(log_costs),
        log_cost=float(np.mean(log_costs)) if log_costs else None,
        log_cost_variance=_variance(log_costs),
        log_rows=float(np.mean(log_rows)),
        log_rows_variance=_variance(log_rows),
        cpu=float(np.mean([record.cpu for record in records])),
    )


def _variance(values: Sequence[float]) -> float:
    """Return the unbiased variance, 0 for a single value."""
    return float(np.var(values, ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Figure:
    """A figure of a group beside the baseline's, with the margin of their difference."""

    new: float
    old: float
    margin: float
    is_worse: bool


@dataclass(frozen=True)
class Comparison:
    """The figures of one group."""

    group: str
    n_units: int
    hits: Figure
    cost: Figure | None
    rows: Figure
    cpu: float  # CPU seconds per answer, new / old

    @property
    def is_worse(self) -> bool:
        """Return whether a figure is worse by more than its margin."""
        figures = (self.hits, self.cost, self.rows)
        return any(figure.is_worse for figure in figures if figure is not None)


def compare(new: dict[str, Unit], old: dict[str, Unit]) -> list[Comparison]:
    """Compare the units that both sides have, group by group."""
    common = [name for name in new if name in old]
    if not common:
        sys.exit("the baseline has none of these questions; make it again with --store")
    groups = dict.fromkeys(name.partition(":")[0] for name in common)
    comparisons = []
    for group in groups:
        names = [name for name in common if name.partition(":")[0] == group]
        pairs = [(new[name], old[name]) for name in names]
        comparisons.append(
            Comparison(
                group,
                len(pairs),
                _compare_hits(pairs),
                _compare_costs(pairs),
                _compare_rows(pairs),
                sum(unit.cpu for unit, _ in pairs) / sum(unit.cpu for _, unit in pairs),
            )
        )
    return comparisons


Pairs = Sequence[tuple[Unit, Unit]]


def _compare_hits(pairs: Pairs) -> Figure:
    """Compare the shares of hits.

    Where the baseline hits with every seed, the variance between seeds is 0 although a miss is
    possible. So the variance is at least that of one miss in one answer more than it has.
    """
    new = float(np.mean([unit.hits for unit, _ in pairs]))
    old = float(np.mean([unit.hits for _, unit in pairs]))
    variances = [unit.hits_variance for _, unit in pairs]
    counts = [(unit.n_seeds, other.n_seeds) for unit, other in pairs]
    n_new = sum(count for count, _ in counts)
    n_old = sum(count for _, count in counts)
    miss = 1.0 / (n_old + 1)
    least_error = float(np.sqrt(miss * (1 - miss) * (1 / n_new + 1 / n_old)))
    margin = Z * max(_standard_error(variances, counts), least_error)
    return Figure(new, old, margin, old - new > margin)


def _compare_costs(pairs: Pairs) -> Figure | None:
    """Compare costs where both sides hit; the old cost counts as 1."""
    both = [(unit, other) for unit, other in pairs if unit.n_costs and other.n_costs]
    if not both:
        return None
    differences = [cast(float, unit.log_cost) - cast(float, other.log_cost) for unit, other in both]
    variances = [other.log_cost_variance for _, other in both]
    counts = [(unit.n_costs, other.n_costs) for unit, other in both]
    return _ratio(differences, variances, counts)


def _compare_rows(pairs: Pairs) -> Figure:
    """Compare rows; the old number counts as 1."""
    differences = [unit.log_rows - other.log_rows for unit, other in pairs]
    variances = [other.log_rows_variance for _, other in pairs]
    counts = [(unit.n_seeds, other.n_seeds) for unit, other in pairs]
    return _ratio(differences, variances, counts)


def _ratio(
    differences: Sequence[float], variances: Sequence[float], counts: Sequence[tuple[int, int]]
) -> Figure:
    """Return a geometric mean ratio as a figure, from differences of logarithms."""
    difference = float(np.mean(differences))
    margin = max(Z * _standard_error(variances, counts), LEAST_MARGIN)
    return Figure(float(np.exp(difference)), 1.0, margin, difference > margin)


def _standard_error(variances: Sequence[float], counts: Sequence[tuple[int, int]]) -> float:
    """Return the standard error of a mean of differences, new minus old.

    Parameters
    ----------
    variances : sequence of float
        Variance between seeds of each unit.
    counts : sequence of (int, int)
        Seeds of each unit, new and old.
    """
    total = 0.0
    for variance, (n_new, n_old) in zip(variances, counts, strict=True):
        total += variance * (1.0 / n_new + 1.0 / n_old)
    return float(np.sqrt(total)) / len(variances)


# -- Running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """All records of one checkout, and the calibration time of the run in CPU seconds."""

    records: list[Record]
    calibration: float


def run_here(seeds: Sequence[int]) -> Run:
    """Ask all questions in this process."""
    import bayescfx

    print(f"runs {bayescfx.__file__}", flush=True)
    names = [question.name for question in _questions()]
    warm_up(ask, names)
    records: list[Record] = []
    calibrations = []
    for position, seed in _schedule(names, seeds):
        if position % 10 == 0:
            calibrations.append(calibrate())
        records += ask(position, seed)
    return Run(records, float(np.median(calibrations)))


def run_in_turns(sources: Sequence[Path], seeds: Sequence[int]) -> list[Run]:
    """Ask each question to every checkout in turn; who begins changes from question to question."""
    workers = [Worker(source) for source in sources]
    for worker in workers:
        print(f"runs {worker.source}", flush=True)
        warm_up(worker.ask, worker.names)
    records: list[list[Record]] = [[] for _ in workers]
    for turn, (position, seed) in enumerate(_schedule(workers[0].names, seeds)):
        order = range(len(workers)) if turn % 2 else reversed(range(len(workers)))
        for k in order:
            records[k] += workers[k].ask(position, seed)
    for worker in workers:
        worker.close()
    return [Run(found, 1.0) for found in records]


def _schedule(names: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the positions of all questions with each seed, and print the progress."""
    begin = time.monotonic()
    for k, seed in enumerate(seeds):
        for position in range(len(names)):
            yield position, seed
        seconds = time.monotonic() - begin
        print(f"seed {seed}: {k + 1} of {len(seeds)} done after {seconds:.0f} s", flush=True)


# -- The baseline ---------------------------------------------------------------------------------


def store(run: Run, commit: str, path: Path = BASELINE) -> None:
    """Write the baseline."""
    units = summarise(run.records)
    content = {
        "commit": commit,
        "machine": machine(),
        "seeds": sorted({record.seed for record in run.records}),
        "calibration_seconds": run.calibration,
        "margin": f"{Z:g} standard errors, from the spread between the seeds of each query",
        "units": {name: _short(asdict(unit)) for name, unit in units.items()},
    }
    path.write_text(_json(content) + "\n")


def _short(fields: dict[str, Any]) -> dict[str, Any]:
    """Round figures to five digits."""
    return {
        name: float(f"{value:.5g}") if isinstance(value, float) else value
        for name, value in fields.items()
    }


def _json(content: dict[str, Any]) -> str:
    """Return JSON with one line per unit."""
    units = content.pop("units")
    head = json.dumps(content, indent=1)[:-2]
    lines = [f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in units.items()]
    return head + ',\n "units": {\n' + ",\n".join(lines) + "\n }\n}"


def load(path: Path = BASELINE) -> tuple[dict[str, Unit], dict[str, Any]]:
    """Return the units of the baseline, and its other content."""
    content = json.loads(path.read_text())
    units = {name: Unit(**fields) for name, fields in content.pop("units").items()}
    return units, content


def scale_cpu(units: dict[str, Unit], factor: float) -> dict[str, Unit]:
    """Return units whose CPU seconds are multiplied by a factor."""
    return {
        name: Unit(**(asdict(unit) | {"cpu": unit.cpu * factor})) for name, unit in units.items()
    }


# -- Report ---------------------------------------------------------------------------------------


def report(comparisons: Sequence[Comparison], title: str) -> int:
    """Print the table; return the exit code."""
    rows = []
    for found in comparisons:
        cost = "-" if found.cost is None else _ratio_text(found.cost)
        hits = f"{_percent(found.hits.new)} of {_percent(found.hits.old)}"
        hits += f" (-{_percent(found.hits.margin)})"
        verdict = "WORSE" if found.is_worse else "ok"
        rows.append(
            [
                found.group,
                found.n_units,
                hits + _mark(found.hits),
                cost,
                _ratio_text(found.rows),
                f"{found.cpu:.2f}",
                verdict,
            ]
        )
    head = ["group", "queries", "hits, new of old (margin)", "cost ratio", "rows ratio"]
    show_table(title, [*head, "CPU ratio", ""], rows)
    is_worse = any(found.is_worse for found in comparisons)
    print("\nWorse beyond the margin (marked !)." if is_worse else "\nNot worse.")
    return 1 if is_worse else 0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ratio_text(figure: Figure) -> str:
    return f"{figure.new:.3f} (+{figure.margin:.3f}){_mark(figure)}"


def _mark(figure: Figure) -> str:
    return " !" if figure.is_worse else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the gate; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="SRC", help="src folder of a checkout")
    parser.add_argument("--seeds", type=int, default=None, help=f"{SEEDS} by default")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--store", action="store_true", help="write the baseline")
    parser.add_argument("--commit", default="", help="commit id, written with --store")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        serve()
        return 0
    n_seeds = chosen.seeds or (BASELINE_SEEDS if chosen.store else SEEDS)
    seeds = range(chosen.first_seed, chosen.first_seed + n_seeds)
    if chosen.store:
        store(run_here(seeds), chosen.commit)
        return 0
    if chosen.against is not None:
        return _compare_checkouts(chosen.against, seeds)
    return _compare_with_baseline(seeds)


def _compare_checkouts(other: Path, seeds: Sequence[int]) -> int:
    """Run this checkout and another in turns."""
    here, there = run_in_turns([ROOT / "src", other], seeds)
    comparisons = compare(summarise(here.records), summarise(there.records))
    return report(comparisons, f"This checkout against {other}; CPU seconds of the same run")


def _compare_with_baseline(seeds: Sequence[int]) -> int:
    """Run this checkout and compare it with the stored baseline."""
    old, about = load()
    found = run_here(seeds)
    new = scale_cpu(summarise(found.records), about["calibration_seconds"] / found.calibration)
    title = f"Against the baseline of commit {about['commit']}; CPU in units of the calibration"
    return report(compare(new, old), title)


if __name__ == "__main__":
    sys.exit(main())
