"""Proofs: how many answers are proven, how fast, and how far the sweep was from the optimum.

``python -m benchmarks exact --part near --models lgbm --treecf PYTHON``

Each cell is stored when it is measured; ``--resume`` measures the missing ones only.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.search.exact.acceleration import LOADER
from benchmarks import exact_courses, extremes, ocean_answers, treecf_answers
from benchmarks.readable import CELLS, TOLERANCE, Subject, subject
from benchmarks.reporting import RESULTS, aim, machine, show_table, write

SECONDS = 10.0  # of a proof at most, on the wall clock
SECONDS_ALONE = 2.0  # of the exact search without a sweep
TREECF_QUERIES = 8  # of each model; treecf needs seconds for most of them
SOON = 1.0  # CPU seconds in which an answer should be proven
PROVEN = ("optimal", "out of reach")
SAME_COST = 1e-6
FAR_LIMITS = (0.3, 1.0, 3.0, 10.0)
FAR_CELLS = (("cancer-forest", "forest"), ("friedman-20", "lgbm"))
MANY_CELLS = (
    ("diabetes", "lgbm"), ("diabetes", "forest"), ("friedman-12", "lgbm"), ("adult", "lgbm"),
)  # fmt: skip
MANY_QUERIES = 64


@dataclass(frozen=True)
class Settings:
    """Settings of a run; the defaults are those of the aims."""

    queries: int = 20
    data: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    treecf: Path | None = None
    ocean: Path | None = None
    resume: bool = False

    @property
    def quick(self) -> bool:
        """Return whether the figures are not those of the aims."""
        return self.queries != Settings.queries

    def has(self, cell: tuple[str, str]) -> bool:
        """Return whether a table and model are to be measured."""
        is_table = self.data is None or cell[0] in self.data
        return is_table and (self.models is None or cell[1] in self.models)


Record = dict[str, Any]


def ask(asked: Subject, row: int, target: Any, **options: Any) -> tuple[Record, cfx.Explanation]:
    """Return the record of one answer, with its CPU seconds, and the answer."""
    explainer = options.pop("explainer")
    begin = time.process_time()
    answer = explainer.explain(
        asked.X.iloc[row], target, **{"rng": 0, "tolerance": TOLERANCE, **options}
    )
    seconds = time.process_time() - begin
    record = {
        "row": row,
        "seconds": seconds,
        "status": answer.status,
        "proof": answer.proof,
        "reason": answer.proof_reason,
        "bound": answer.bound,
        "cost": answer.best.cost if answer.status == "reached" else None,
        "distance": answer.best.distance,
        "rows": answer.n_evaluations,
    }
    return record, answer


# ── near targets ──


def measure_near(asked: Subject, settings: Settings) -> Record:
    """Return the answers of the sweep, of sweep and proof, and of the exact search alone."""
    explainer = cfx.Explainer(asked.predictor, asked.space, short_decimals=False)
    sides: dict[str, dict[str, Any]] = {
        "sweep": {"prove": False},
        "proof": {"prove": SECONDS},
        "exact": {"prove": SECONDS_ALONE, "method": "exact"},
    }
    rows = asked.rows(settings.queries)
    first = asked.target(rows[0])
    cold, _ = ask(asked, rows[0], first, explainer=explainer, **sides["proof"])
    ask(asked, rows[0], first, explainer=explainer, **sides["sweep"])
    records: dict[str, list[Record]] = {name: [] for name in sides}
    accepted = {}
    for row in rows:
        for name, options in sides.items():
            record, answer = ask(asked, row, asked.target(row), explainer=explainer, **options)
            records[name].append(record)
            accepted[row] = answer.accepted
    found: Record = {"first": cold["seconds"], **records}
    if settings.treecf and treecf_answers.can_read(asked):
        asked_too = {row: accepted[row] for row in rows[:TREECF_QUERIES]}
        found["treecf"] = treecf_answers.answers(asked, asked_too, settings.treecf, SECONDS)
    return {**found, "summary": summarise_near(found)}


def summarise_near(found: Record) -> Record:
    """Return the figures of a cell."""
    seconds = {}
    for name in ("sweep", "proof", "exact"):
        seconds[name] = np.array([record["seconds"] for record in found[name]])
    is_proven = np.array([record["proof"] in PROVEN for record in found["proof"]])
    ratios = []
    for sweep, proof in zip(found["sweep"], found["proof"], strict=True):
        if proof["proof"] == "optimal" and sweep["cost"] is not None and proof["cost"] > 0:
            ratios.append(sweep["cost"] / proof["cost"])
    proven_alone = [record["proof"] in PROVEN for record in found["exact"]]
    figures: Record = {
        "n": len(is_proven),
        "proven_1s": float(np.mean(is_proven & (seconds["proof"] <= SOON))),
        "proven_10s": float(np.mean(is_proven)),
        "out_of_reach": sum(record["proof"] == "out of reach" for record in found["proof"]),
        "proven_alone": float(np.mean(proven_alone)),
        "rows": float(np.median([record["rows"] for record in found["proof"]])),
        "rows_alone": float(np.median([record["rows"] for record in found["exact"]])),
        "sweep_ratio_mean": float(np.mean(ratios)) if ratios else None,
        "sweep_ratio_worst": float(np.max(ratios)) if ratios else None,
        "sweep_optimal": float(np.mean(np.array(ratios) <= 1 + SAME_COST)) if ratios else None,
        "first": found["first"],
        "contradictions": contradictions(found),
        "unproven": [r["row"] for r in found["proof"] if r["proof"] not in PROVEN],
    }
    for name, values in seconds.items():
        figures[f"{name}_median"] = float(np.median(values))
        figures[f"{name}_worst"] = float(np.max(values))
    if "treecf" in found:
        figures["treecf"] = treecf_answers.compare(found["proof"][:TREECF_QUERIES], found["treecf"])
    return figures


def contradictions(found: Record) -> list[str]:
    """Return answers that a proof excludes: a lower cost than the optimum, or out of reach."""
    problems = []
    sides = ("sweep", "proof", "exact")
    for records in zip(*(found[name] for name in sides), strict=True):
        costs = [record["cost"] for record in records if record["cost"] is not None]
        for name, record in zip(sides, records, strict=True):
            row = record["row"]
            if record["proof"] == "out of reach" and costs:
                problems.append(f"row {row}: {name} says out of reach, an answer costs {costs[0]}")
            bound = record["bound"]
            if bound is not None and costs and min(costs) < bound * (1 - SAME_COST):
                problems.append(f"row {row}: bound {bound} of {name}, but cost {min(costs)}")
    return problems


def show_near(cells: dict[str, Record]) -> None:
    """Print the table of near targets."""
    rows = []
    for name, cell in cells.items():
        figures = cell["summary"]
        rows.append(
            (
                name,
                figures["proven_1s"],
                aim(figures["proven_1s"], ">=", 0.95),
                figures["proven_10s"],
                *(figures[f"{side}_median"] for side in ("sweep", "proof", "exact")),
                *(figures[f"{side}_worst"] for side in ("sweep", "proof", "exact")),
                figures["first"],
                figures["rows"],
                figures["rows_alone"],
                figures["sweep_ratio_mean"],
                figures["sweep_ratio_worst"],
                len(figures["contradictions"]),
            )
        )
    head = ["model", "<= 1 s", "aim", "<= 10 s", "sweep", "+ proof", "exact"]
    head += ["worst: sweep", "+ proof", "exact", "first", "rows", "exact", "sweep / optimum"]
    show_table("Near targets: share proven, CPU seconds", [*head, "worst", "contradictions"], rows)
    beside = {name: cell for name, cell in cells.items() if "treecf" in cell["summary"]}
    if beside:
        show_treecf(beside)


def show_treecf(cells: dict[str, Record]) -> None:
    """Print the comparison with treecf."""
    rows = []
    for name, cell in cells.items():
        peer = cell["summary"]["treecf"]
        ratio = None
        if "median" in peer:
            ratio = peer["our_median"] / peer["median"]
        rows.append(
            (
                name,
                peer.get("our_proven"),
                peer.get("proven"),
                peer.get("our_median"),
                peer.get("median"),
                ratio,
                aim(ratio, "<=", 1.0),
                peer.get("our_worst"),
                peer.get("worst"),
                peer.get("compared"),
                peer.get("off_grid"),
                peer.get("difference"),
                peer.get("contradictions", peer.get("error")),
            )
        )
    head = ["model", "proven", "treecf", "median", "treecf", "ratio", "aim", "worst", "treecf"]
    head += ["compared", "off grid", "largest difference", "contradictions"]
    show_table("Beside treecf (exact), CPU seconds", head, rows)


# ── targets out of reach ──


def measure_reach(cell: extremes.Limit, settings: Settings) -> Record:
    """Return the answers to targets just inside and 20 % beyond the largest output."""
    asked = cell.subject
    explainer = cfx.Explainer(asked.predictor, cell.space, short_decimals=False)
    records = []
    # Without a bound on the changes the search for the largest output is slow.
    n_queries = settings.queries if cell.max_changes else max(1, settings.queries // 4)
    for row in asked.rows(n_queries):
        largest, bound = cell.largest(row)
        output = float(asked.outputs[row])
        record: Record = {"row": row, "largest": largest, "bound": bound}
        targets = {"beyond": bound + 0.2 * (bound - output), "inside": largest}
        for name, value in targets.items():
            options = {"explainer": explainer, "prove": SECONDS, "tolerance": 1e-9}
            record[name], _ = ask(asked, row, cfx.at_least(value), **options)
        records.append(record)
    seconds = np.array([record["beyond"]["seconds"] for record in records])
    named = np.array([record["beyond"]["proof"] == "out of reach" for record in records])
    false = [r["row"] for r in records if r["inside"]["proof"] == "out of reach"]
    reached = [record["inside"]["status"] == "reached" for record in records]
    summary = {
        "n": len(records),
        "named_1s": float(np.mean(named & (seconds <= SOON))),
        "named": float(np.mean(named)),
        "median": float(np.median(seconds)),
        "worst": float(np.max(seconds)),
        "false": false,
        "inside_reached": float(np.mean(reached)),
    }
    return {"records": records, "summary": summary}


def show_reach(cells: dict[str, Record]) -> None:
    """Print the table of targets that are out of reach."""
    rows = []
    for name, cell in cells.items():
        figures = cell["summary"]
        soon = figures["named_1s"]
        times = (figures["median"], figures["worst"])
        false = len(figures["false"])
        inside = figures["inside_reached"]
        named = (soon, aim(soon, ">=", 0.95), figures["named"])
        rows.append((name, figures["n"], *named, *times, false, inside))
    head = (
        "model",
        "questions",
        "named <= 1 s",
        "aim",
        "<= 10 s",
        "median s",
        "worst s",
        "false verdicts",
    )
    show_table("Out of reach: 20 % beyond the largest output", (*head, "inside: reached"), rows)


# ── many queries ──


def measure_many(asked: Subject, settings: Settings) -> Record:
    """Return the CPU seconds of `explain_many` with and without proofs, in turns."""
    explainer = cfx.Explainer(asked.predictor, asked.space, short_decimals=False)
    rows = asked.rows(MANY_QUERIES)
    queries = asked.X.iloc[rows]
    targets = [asked.target(row) for row in rows]
    explainer.explain_many(queries[:2], targets[:2], tolerance=TOLERANCE, rng=0)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    answers = None
    for _ in range(2):
        for prove in (False, True):
            begin = time.process_time()
            answers = explainer.explain_many(
                queries, targets, tolerance=TOLERANCE, rng=0, prove=prove
            )
            seconds[prove].append(time.process_time() - begin)
    assert answers is not None
    without = min(seconds[False])
    proofs = min(seconds[True]) - without
    return {
        "queries": len(rows),
        "seconds_without": without,
        "seconds_with": min(seconds[True]),
        "proofs_of_sweeps": proofs / without,
        "proven": float(np.mean([answer.proof in PROVEN for answer in answers])),
        "reached": float(np.mean([answer.status == "reached" for answer in answers])),
    }


def show_many(cells: dict[str, Record]) -> None:
    """Print the table of many queries."""
    rows = []
    for name, cell in cells.items():
        times = (cell["seconds_without"], cell["seconds_with"])
        ratio = cell["proofs_of_sweeps"]
        rows.append((name, *times, ratio, aim(ratio, "<=", 1.0), cell["proven"]))
    head = ("model", "sweeps s", "with proofs s", "proofs / sweeps", "aim", "proven")
    show_table(f"explain_many, {MANY_QUERIES} queries", head, rows)


# ── far targets and many features ──


def far_target(asked: Subject, row: int) -> Any:
    """Return a far target: the other class with 90 %, or two standard deviations more."""
    if asked.data == "cancer-forest":
        is_low = asked.outputs[row] < 0.5
        return cfx.at_least(0.9) if is_low else cfx.at_most(0.1)
    return asked.target(row, 2.0)


@dataclass
class Course:
    """A listener for `on_step` that keeps the course of a search and its proofs."""

    begin: float = field(default_factory=time.process_time)
    kept: list[tuple[float, float | None, float]] = field(default_factory=list)

    def __call__(self, step: cfx.Step) -> None:
        """Keep the CPU seconds, the cost of the best answer and the proven bound."""
        cost = step.cost if step.reached else None
        self.kept.append((time.process_time() - self.begin, cost, step.bound or 0.0))

    def points(self, record: Record) -> list[tuple[float, float | None, float]]:
        """Return CPU seconds, cost (None before an answer) and the best bound until then.

        The last point is that of the returned answer. `auto` proves before and after its sweep, so
        that a later report may have a lower bound; the higher one still holds.
        """
        last = (record["seconds"], record["cost"], record["bound"] or 0.0)
        points = []
        highest = 0.0
        for seconds, cost, bound in (*self.kept, last):
            highest = max(highest, bound)
            points.append((seconds, cost, highest))
        return points


def measure_far(asked: Subject, settings: Settings) -> Record:
    """Return the gap of each question after several time limits."""
    explainer = cfx.Explainer(asked.predictor, asked.space, short_decimals=False)
    rows = asked.rows(max(1, settings.queries // 4))
    first = far_target(asked, rows[0])
    ask(asked, rows[0], first, explainer=explainer, prove=FAR_LIMITS[0])
    records: dict[str, list[Record]] = {}
    for limit in FAR_LIMITS:
        records[f"{limit:g}"] = []
        for row in rows:
            target = far_target(asked, row)
            course = Course() if limit == max(FAR_LIMITS) else None
            record, _ = ask(asked, row, target, explainer=explainer, prove=limit, on_step=course)
            record["gap"] = gap(record)
            if course is not None:
                record["course"] = course.points(record)
            records[f"{limit:g}"].append(record)
    summary = {}
    for name, answers in records.items():
        gaps = [record["gap"] for record in answers]
        summary[name] = {
            "proven": float(np.mean([record["proof"] in PROVEN for record in answers])),
            "gap_median": float(np.median(gaps)),
            "gap_worst": float(np.max(gaps)),
            "seconds_median": float(np.median([record["seconds"] for record in answers])),
        }
    return {"features": asked.X.shape[1], "records": records, "summary": summary}


def gap(record: Record) -> float:
    """Return the share of an answer's cost that lies above the bound; 1 without an answer."""
    if record["proof"] in PROVEN:
        return 0.0
    if record["cost"] is None or record["bound"] is None:
        return 1.0
    return float(1.0 - record["bound"] / record["cost"])


def show_far(cells: dict[str, Record]) -> None:
    """Print the gap over time."""
    rows = []
    for name, cell in cells.items():
        for limit, figures in cell["summary"].items():
            rows.append((name, cell["features"], f"{limit} s", *figures.values()))
    head = ("model", "features", "limit", "proven", "median gap", "worst gap", "CPU s")
    show_table("Far targets: 1 - bound / cost after a time limit", head, rows)


# ── forests for two classes, beside OCEAN ──


def measure_classes(forest: ocean_answers.Forest, settings: Settings) -> Record:
    """Return our answers and OCEAN's to the nearest row of the other class."""
    predictor = cfx.probability(forest.model, 1)
    explainer = cfx.Explainer(predictor, forest.space, short_decimals=False)
    rows = forest.rows(settings.queries)
    records = []
    for row in (rows[0], *rows):  # the first question twice, and timed the second time
        begin = time.process_time()
        answer = explainer.explain(
            forest.X.iloc[row], forest.target(row), rng=0, tolerance=1e-9, prove=SECONDS
        )
        seconds = time.process_time() - begin
        cost = answer.best.cost if answer.status == "reached" else None
        record = {"row": row, "seconds": seconds, "proof": answer.proof, "cost": cost}
        records.append({**record, "distance": answer.best.distance})
    found: Record = {"ours": records[1:], "ocean": []}
    summary: Record = {}
    if settings.ocean:
        found["ocean"] = ocean_answers.answers(forest, rows, settings.ocean, SECONDS)
        summary = ocean_answers.compare(found["ours"], found["ocean"])
    return {**found, "summary": summary}


def show_classes(cells: dict[str, Record]) -> None:
    """Print the comparison with OCEAN."""
    rows = []
    for name, cell in cells.items():
        figures = cell["summary"]
        keys = ("ours_proven", "ocean_proven", "ours_median", "ocean_median", "ours_worst")
        row = [figures.get(key) for key in (*keys, "ocean_worst", "compared", "difference")]
        rows.append((name, *row, figures.get("contradictions", figures.get("error"))))
    head = ["forest", "proven", "OCEAN", "median", "OCEAN", "worst", "OCEAN", "compared"]
    head += ["largest difference", "contradictions"]
    show_table("The other class, beside OCEAN (CP-SAT), CPU seconds", head, rows)


# ── the parts ──

Measure = Callable[[Any, Settings], Record]


def subjects(cells: Sequence[tuple[str, str]], settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the names of cells and functions that make their subjects."""
    for cell in filter(settings.has, cells):
        yield "/".join(cell), lambda cell=cell: subject(*cell)


def limits(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the names of models with a limit of two changes and without, and their makers."""
    for cell in filter(settings.has, extremes.CELLS):
        for max_changes in (2, None):
            name = "/".join(cell) + (", two changes" if max_changes else ", any changes")
            yield name, lambda cell=cell, n=max_changes: extremes.make_limit(cell[0], cell[1], n)


def forests(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the names of forests for two classes and their makers; none without OCEAN."""
    for data, n_trees, depth in ocean_answers.CELLS if settings.ocean else ():
        if settings.has((data, "forest")):
            name = f"{data}/forest, {n_trees} trees"
            yield name, lambda cell=(data, n_trees, depth): ocean_answers.make_forest(*cell)


PARTS: dict[str, tuple[Callable[[Settings], Iterator[tuple[str, Any]]], Measure, Any]] = {
    "near": (lambda settings: subjects(CELLS, settings), measure_near, show_near),
    "reach": (limits, measure_reach, show_reach),
    "many": (lambda settings: subjects(MANY_CELLS, settings), measure_many, show_many),
    "far": (lambda settings: subjects(FAR_CELLS, settings), measure_far, show_far),
    "classes": (forests, measure_classes, show_classes),
}


def measure_part(name: str, settings: Settings) -> dict[str, Record]:
    """Measure the cells of a part, store each at once, and return all that are stored."""
    cells, measure, _ = PARTS[name]
    suffix = "-quick" if settings.quick else ""
    path = RESULTS / f"exact-{name}{suffix}.json"
    figures: dict[str, Record] = {}
    is_subset = settings.data is not None or settings.models is not None
    if path.exists() and (settings.resume or is_subset):
        figures = json.loads(path.read_text())["figures"]
    for key, make in cells(settings):
        if settings.resume and key in figures:
            continue
        made = make()
        if made is None:
            continue
        begin = time.monotonic()
        measured = measure(made, settings)
        if path.exists() and (settings.resume or is_subset):  # another run may have added cells
            figures = json.loads(path.read_text())["figures"]
        figures[key] = measured
        write(f"exact-{name}", figures, quick=settings.quick)
        print(f"  {key}: measured in {time.monotonic() - begin:.0f} s", flush=True)
    return figures


def run(settings: Settings | None = None, parts: Sequence[str] = tuple(PARTS)) -> Record:
    """Measure, print and write each part; return all figures."""
    settings = settings or Settings()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("  (OMP_NUM_THREADS is not 1: CPU seconds may be those of several threads)")
    if settings.treecf is None:
        print("  (treecf left out: no --treecf PYTHON)")
    if settings.ocean is None:
        print("  (part `classes` left out: no --ocean PYTHON)")
    LOADER.load()  # its time belongs to no question
    print(f"  numba: {'not used' if LOADER.compiled is None else 'used'}")
    print(f"  {json.dumps(machine())}", flush=True)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parts:
            found[name] = measure_part(name, settings)
            PARTS[name][2](found[name])
            if name == "far":
                picture = (
                    RESULTS / "exact-far-quick.png" if settings.quick else exact_courses.PICTURE
                )
                exact_courses.draw(found[name], picture)
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks exact", description=__doc__)
    parser.add_argument("--part", "--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--queries", type=int, default=Settings.queries, help="questions per cell")
    parser.add_argument("--data", nargs="+", help="tables")
    parser.add_argument("--models", nargs="+", help="models")
    parser.add_argument("--treecf", type=Path, help="the Python of an environment with treecf")
    parser.add_argument("--ocean", type=Path, help="the Python of an environment with oceanpy")
    parser.add_argument("--resume", action="store_true", help="measure only what is not stored")
    given = parser.parse_args(words)
    settings = Settings(
        queries=given.queries,
        data=tuple(given.data) if given.data else None,
        models=tuple(given.models) if given.models else None,
        treecf=given.treecf,
        ocean=given.ocean,
        resume=given.resume,
    )
    run(settings, given.part)


if __name__ == "__main__":
    main()
