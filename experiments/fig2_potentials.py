"""Figure 2: the exponential-polynomial family, with its superlevel sets."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.claims import Claim, fact
from experiments.drawing import BLACK, BLUE, GREY, VERMILION, figure
from experiments.runs import Settings

NAME = "fig2_potentials"
EPSILONS = (0.5, 0.25, 0.1, 0.01)
TOLERANCE = 1e-12
_PATCH = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}  # behind labels on lines


def run(settings: Settings) -> dict[str, Any]:
    """Tabulate the potentials, their target sets, and the changes of both radii."""
    y = np.linspace(-3.0, 3.0, settings.pick(1_201, 241))
    both = cfx.SEP(0.0, 1.0)
    low = cfx.AEP(0.0, 1.0, side=-1)
    high = cfx.AEP(0.0, 1.0, side=1)
    sets = {f"{epsilon:g}": both.target_set(epsilon) for epsilon in EPSILONS}
    return {
        "y": y,
        "AEP-": low.value(y),
        "AEP+": high.value(y),
        "SEP": both.value(y),
        "peak": both.peak,
        "peak_at": [float(y[np.argmax(low.value(y))]), float(y[np.argmax(high.value(y))])],
        "target_sets": sets,
        "sum_of_sides_error": float(np.abs(low.value(y) + high.value(y) - both.value(y)).max()),
        "edge_error": max(edge_error(both, epsilon) for epsilon in EPSILONS),
        "nested": nested([both.target_set(epsilon) for epsilon in EPSILONS]),
        "exact": bool(abs(both.peak - np.exp(-1.0)) < TOLERANCE),
        "lipschitz": {name: lipschitz(rho) for name, rho in (("AEP", high), ("SEP", both))},
        "parts": {"AEP": len(high.target_set(0.1)), "SEP": len(both.target_set(0.1))},
    }


def edge_error(potential: cfx.SEP, epsilon: float) -> float:
    """Return the largest difference of the potential at the ends of a target set to its level."""
    ends = np.array(potential.target_set(epsilon)).ravel()
    level = (1.0 - epsilon) * potential.peak
    return float(np.abs(potential.value(ends) - level).max())


def nested(sets: list[Any]) -> bool:
    """Return whether each set of intervals lies strictly inside the one before."""
    return all(
        a < c and d < b
        for outer, inner in pairwise(sets)
        for (a, b), (c, d) in zip(outer, inner, strict=True)
    )


def lipschitz(potential: cfx.AEP | cfx.SEP) -> dict[str, list[float]]:
    """Return the steepest difference quotients of ρ and of ρ′, on a grid and on a finer one.

    They are equal if the function is Lipschitz. The finer grid has ten times the points, so the
    quotient of a jump would grow tenfold.
    """
    found: dict[str, list[float]] = {"value": [], "slope": []}
    for points in (4_000, 40_000):  # both have f(q) between two points
        y = np.linspace(-5.0, 5.0, points)
        for name in found:
            rise = np.diff(getattr(potential, name)(y)) / np.diff(y)
            found[name].append(float(np.abs(rise).max()))
    return found


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the family, and below it the target sets as bars."""
    with figure(path, 11.0, 6.0) as canvas:
        top, bottom = canvas.subplots(2, 1, height_ratios=[2.2, 1.0], sharex=True)
        y: Array = np.array(result["y"])
        top.plot(y[y <= 0], np.array(result["AEP-"])[y <= 0], color=VERMILION, label="AEP₋")
        top.plot(y[y >= 0], np.array(result["AEP+"])[y >= 0], "--", color=BLUE, label="AEP₊")
        top.axhline(result["peak"], color=GREY, linewidth=1, linestyle=":")
        top.annotate("peak 1/e", (2.35, result["peak"] + 0.008), color=GREY)
        for at, label in ((-1, "$f(q)-w$"), (0, "$f(q)$"), (1, "$f(q)+w$")):
            for ax in (top, bottom):
                ax.axvline(at, color=GREY, linewidth=1)
            top.annotate(label, (at, 0.43), ha="center", bbox=_PATCH)
        top.set(ylabel="potential ρ(y)", ylim=(0, 0.47))
        top.legend(loc="center right")
        for k, (epsilon, intervals) in enumerate(result["target_sets"].items()):
            for (low, high), color in zip(intervals, (VERMILION, BLUE), strict=True):
                bottom.barh(k, high - low, left=low, height=0.6, color=color, alpha=0.75)
            bottom.annotate(
                f"ε = {epsilon}", (0.0, k), ha="center", va="center", color=BLACK, bbox=_PATCH
            )
        bottom.set(xlabel="output y, in widths from f(q)", ylabel="target sets $T^ε$", yticks=[])


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 2 on the EP family."""
    low, high = result["peak_at"]
    sets = {float(epsilon): upper for epsilon, (_, upper) in result["target_sets"].items()}
    inner, outer = ([ends[k] for ends in sets.values()] for k in (0, 1))
    steep = result["lipschitz"].values()
    quotients = [pair for one in steep for pair in one.values()]
    slope = max(one["slope"][-1] for one in steep)
    return [
        Claim(
            "potentials.maxima",
            "Definition 2.5, Figure 2",
            "EP potentials have their maxima at f(q) ± w",
            f"maxima at {low:+g} w and {high:+g} w, height 1/e; SEP = AEP₋ + AEP₊",
            fact([low, high] == [-1.0, 1.0] and result["exact"]),
            f"SEP differs from the sum by {result['sum_of_sides_error']:.0e}",
        ),
        Claim(
            "potentials.valid",
            "Definition 2.3",
            "potentials are C¹, ρ and ∇ρ are L-Lipschitz",
            f"AEP and SEP are: difference quotients of ρ′ up to {slope:.2f} w⁻²",
            fact(all(fine < 1.01 * coarse for coarse, fine in quotients)),
            "quotients stay within 1 % on a grid ten times finer; a jump would grow tenfold",
        ),
        Claim(
            "potentials.nested",
            "Section 2, after Definition 2.5",
            "nesting superlevel sets, which ensure consistent ordering",
            f"the sets of ε = {', '.join(result['target_sets'])} are strictly nested",
            fact(result["nested"]),
            f"ρ at their ends is their level to {result['edge_error']:.0e}",
        ),
        Claim(
            "potentials.annulus",
            "Footnote 1",
            "T^ε is an annulus of outer radius w and fixed inner radius",
            f"outer {outer[0]:.2f} … {outer[-1]:.2f} w, inner {inner[0]:.2f} … {inner[-1]:.2f} w "
            f"for ε = {max(sets):g} … {min(sets):g}",
            fact(np.ptp(inner) < TOLERANCE and bool(np.allclose(outer, 1.0))),
            "both radii are roots of ρ(y) = (1 − ε)/e and move with ε",
        ),
        Claim(
            "potentials.closed",
            "Remark after Definition 2.4, Section 5",
            "for a differentiable model, target sets comprise closed and connected sets",
            f"closed intervals: {result['parts']['AEP']} for AEP, {result['parts']['SEP']} for SEP",
            fact(result["edge_error"] < TOLERANCE),
            "made of connected parts; under SEP not connected itself, if f reaches both sides",
        ),
    ]


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    rows = "\n".join(
        f"| {epsilon} | [{high[0]:.4f}, {high[1]:.4f}] | {high[1] - high[0]:.4f} |"
        for epsilon, (_, high) in result["target_sets"].items()
    )
    return f"""\
## Figure 2: the EP family

The shapes are the paper's. Its footnote on the target sets is not: both of their ends move with ε.

| ε | upper part of T^ε, in widths | its length |
|---|---|---|
{rows}

![Figure 2](figures/fig2_potentials.png)
"""
