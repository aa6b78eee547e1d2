"""CFX-Potential-Localopt and Globalopt, executable: certificates, violations, finite differences.

An instance of GD-Local-Search on [0, 1]² becomes ρ(y) = y and f = −g, as in the proof of Theorem
2.2, and is solved by the recurrence x ← Π[x + η∇ρ(f(x))]. `bayescfx.theory.certificate` certifies
the ends; the certificates are recomputed here from g alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.theory.certificate import LocalOptimum, certify
from experiments.circuits import DELTA, ETA, IDENTITY, Wells, instance, violations
from experiments.claims import Claim, exactly, fact
from experiments.drawing import BLACK, GREEN, VERMILION, figure
from experiments.functions import steps
from experiments.runs import Settings, each

NAME = "localopt"
STARTS = [(float(a), float(b)) for a in (0.1, 0.5, 0.9) for b in (0.1, 0.5, 0.9)]
SAME = 0.01  # ends nearer than this are one point
INSIDE = Wells(((0.2, 0.7), (0.8, 0.25), (0.75, 0.85)), (1.0, 0.8, 0.6))
OUTSIDE = Wells(((1.15, 0.5), (0.2, 0.2)), (1.0, 0.3))  # its lowest point is on the border


def run(settings: Settings) -> dict[str, Any]:
    """Follow the recurrence with and without gradients, break promises, certify global optima."""
    starts = STARTS[: settings.pick(9, 2)]
    tasks = [(start, exact) for start in starts for exact in (True, False)]
    ends = each(descend, tasks, NAME, settings.jobs)
    return {
        "eta": ETA,
        "delta": DELTA,
        "exact": ends[::2],
        "differences": ends[1::2],
        "violations": violations(),
        "global": {"inside": lowest(INSIDE), "border": lowest(OUTSIDE)},
        "stairs": {"points": 1_000, "flat": flat_points(1_000)},
    }


def descend(task: tuple[tuple[float, float], bool]) -> dict[str, Any]:
    """Follow the plain recurrence from a start, and check the certificate independently."""
    start, exact = task
    side = 4.0  # the scale of a feature is a quarter of its range, so it is 1 here
    space = cfx.Space({"a": cfx.Real(0.0, side), "b": cfx.Real(0.0, side)}).cost(
        weight=0, per_change=0
    )
    method = cfx.ProjectedGradient(
        step=ETA * side**2,
        tolerance=side * DELTA,
        gradient=(lambda rows: -INSIDE.gradient(rows.to_numpy() / side) / side) if exact else None,
        backtrack=False,
        restarts=0,
    )
    path: list[list[float]] = []

    def model(rows: pd.DataFrame) -> Array:
        path.extend((rows.to_numpy() / side).tolist())
        return -INSIDE(rows.to_numpy() / side)

    query = {"a": side * start[0], "b": side * start[1]}
    answer = cfx.explain(
        model, query, space, IDENTITY, method=method, budget=1_500, rng=0, short_decimals=False
    )
    c = np.asarray(answer.best.row, dtype=float) / side
    solution = certify(instance(lambda X: -INSIDE(X), lambda X: -INSIDE.gradient(X)), c)
    return {
        "start": start,
        "point": c,
        "residual": residual(INSIDE, c),
        "certified": isinstance(solution, LocalOptimum) and residual(INSIDE, c) <= DELTA,
        "calls": answer.n_evaluations,
        "g": float(INSIDE(c[None])[0]),
        "path": [start, *path[1:]] if exact else [],
    }


def residual(g: Wells, c: Array) -> float:
    """Return ‖c − Π[c − η∇g(c)]‖₂, the certificate of GD-Local-Search."""
    step = np.clip(c - ETA * g.gradient(c[None])[0], 0.0, 1.0)
    return float(np.linalg.norm(c - step))


def lowest(g: Wells) -> dict[str, Any]:
    """Return the global minimum by brute force, certified with difference quotients alone."""
    ticks = np.linspace(0.0, 1.0, 401)
    grid = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    start = grid[np.argmin(g(grid))]

    def value(z: Array) -> float:
        return float(g(z[None])[0])

    def quotients(X: Array) -> Array:
        h = 1e-6 * np.eye(2)
        return np.stack([-(g(X + step) - g(X - step)) / 2e-6 for step in h], axis=1)

    found = minimize(value, start, bounds=[(0, 1), (0, 1)], tol=1e-12)
    c = np.clip(found.x, 0.0, 1.0)
    solution = certify(instance(lambda X: -g(X), quotients), c, difference=None)
    return {
        "point": c,
        "certified": isinstance(solution, LocalOptimum),
        "residual": getattr(solution, "residual", None),
        "gradient": float(np.linalg.norm(g.gradient(c[None])[0])),
    }


def flat_points(points: int) -> int:
    """Return the number of random points at which a step function, like a tree's, has slope 0."""
    X = np.random.default_rng(0).random((points, 3))
    moves = [steps(X + nudge) != steps(X - nudge) for nudge in 1e-6 * np.eye(3)]
    return int(points - np.any(moves, axis=0).sum())


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the paths of the recurrence."""
    ticks = np.linspace(0, 1, 121)
    grid = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    with figure(path, 6.6, 6.2) as canvas:
        ax = canvas.subplots()
        level = INSIDE(grid).reshape(121, 121).T
        ax.contourf(ticks, ticks, level, levels=16, cmap="Blues_r", alpha=0.8)
        for row in result["exact"]:
            walked = np.array(row["path"])
            ax.plot(*walked.T, color=BLACK, linewidth=1.4)
            ax.plot(*walked[0], "s", color="white", markeredgecolor=BLACK, markersize=7)
            color = GREEN if row["certified"] else VERMILION
            ax.plot(*row["point"], "*", color=color, markersize=16, markeredgecolor="white")
        ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(0, 1), ylim=(0, 1))
        ax.set_title("g, □ start, ★ certified end")
        ax.grid(False)


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 2 and Appendix A on Localopt and Globalopt."""
    return [*_complexity_claims(result), *_gradient_claims(result), *_global_claims(result)]


def _complexity_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on CLS-completeness: certified ends, and witnesses of broken promises."""
    ends = result["exact"]
    sure = sum(row["certified"] for row in ends)
    promises = [row for row in result["violations"] if row["broken"] != "nothing"]
    seen = sum(row["witness"] == row["broken"] and row["holds"] for row in promises)
    (sound,) = (row for row in result["violations"] if row["broken"] == "nothing")
    return [
        Claim(
            "localopt.cls-complete",
            "Theorem 2.2",
            "CFX-Potential-Localopt is CLS-complete",
            "a proof; what of it can be run follows",
            None,
            "the promise that ρ is a potential is broken by the reduction, as the paper says",
        ),
        Claim(
            "localopt.certified",
            "Theorem 2.2",
            "a solution of Localopt is one of GD-Local-Search",
            f"{sure} of {len(ends)} ends certified, residual at most "
            f"{max(row['residual'] for row in ends):.1e}",
            fact(sure == len(ends)),
            f"by `certify`, and again from g alone; δ = {result['delta']:g}",
        ),
        Claim(
            "localopt.violations",
            "Appendix A",
            "a broken promise is a solution too, and has a witness",
            f"{seen} of {len(promises)} broken promises have one that proves itself; a sound "
            f"instance has {'none' if sound['witness'] is None else 'one'}",
            fact(seen == len(promises) and sound["witness"] is None),
            "witnesses are evaluated again: two points, or a difference quotient",
        ),
    ]


def _gradient_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on methods that follow a gradient."""
    ends = result["exact"]
    others = result["differences"]
    best = min(row["g"] for row in ends)
    far = sum(row["g"] > best + SAME for row in ends)
    gap = max(_distance(a, b) for a, b in zip(ends, others, strict=True))
    stairs = result["stairs"]
    return [
        Claim(
            "localopt.finite-differences",
            "Section 2.1",
            "Localopt can be transformed into GD-Finite-Diff",
            f"with difference quotients every end is within {gap:.0e} of the one with ∇f",
            exactly(SAME - gap),
            f"one point: nearer than {SAME}",
        ),
        Claim(
            "localopt.local",
            "Section 2.1",
            "gradient-based methods only find locally optimal solutions",
            f"{far} of {len(ends)} ends are not the global optimum",
            fact(far > 0),
            "the difference between Localopt and Globalopt",
        ),
        Claim(
            "localopt.stairs",
            "Section 2.1",
            "the recurrence can't apply to models like boosted decision trees",
            f"stairs have slope 0 at {stairs['flat']} of {stairs['points']} random points",
            exactly(stairs["flat"] / stairs["points"] - 0.99),
            "it stays where it is; can't apply: at 99 % of the points",
        ),
    ]


def _global_claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims on Globalopt."""
    inside = result["global"]["inside"]
    border = result["global"]["border"]
    return [
        Claim(
            "globalopt.cls-hard",
            "Corollary 2.2.1",
            "CFX-Potential-Globalopt is CLS-hard",
            "a proof; what of it can be run follows",
            None,
            "the problem is stated for ε > 0, the proof takes ε = 0",
        ),
        Claim(
            "globalopt.is-local",
            "Corollary 2.2.1",
            "a globally optimal point solves GD-Local-Search",
            f"residuals {inside['residual'] or 0:.0e} (inside) and {border['residual'] or 0:.0e} "
            "(on the border), with finite differences",
            fact(inside["certified"] and border["certified"]),
            f"the optima of two functions by brute force; δ = {result['delta']:g}",
        ),
        Claim(
            "globalopt.zero-gradient",
            "Corollary 2.2.1, proof",
            "the gradient at a global optimum must be zero",
            f"‖∇‖ = {inside['gradient']:.0e} inside, {border['gradient']:.2f} on the border",
            exactly(0.01 - max(inside["gradient"], border["gradient"])),
            "it is the projected step that vanishes, which is all that the corollary needs; zero: "
            "below 0.01",
        ),
    ]


def _distance(a: dict[str, Any], b: dict[str, Any]) -> float:
    return float(np.linalg.norm(np.subtract(a["point"], b["point"])))


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    rows = "\n".join(
        f"| {row['broken']} | {row['witness'] or 'none'} | "
        f"{'yes' if row['holds'] else '–' if row['witness'] is None else '**no**'} |"
        for row in result["violations"]
    )
    return f"""\
## Theorem 2.2 and Corollary 2.2.1: local and global optima

GD-Local-Search on [0, 1]² with three wells becomes ρ(y) = y and f = −g, η = {result["eta"]}, δ =
{result["delta"]}; the plain recurrence from {len(result["exact"])} starts, with ∇f and with
difference quotients. It ends where `certify` holds, not where f is largest.

![Localopt](figures/localopt.png)

The problem also accepts a witness that its input breaks a promise (L = 2 here):

| broken | witness of `certify` | proves it |
|---|---|---|
{rows}
"""
