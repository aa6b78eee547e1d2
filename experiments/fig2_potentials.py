"""Figure 2: the exponential-polynomial family, with its superlevel sets."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.drawing import BLACK, BLUE, GREY, VERMILION, figure
from experiments.runs import Settings

NAME = "fig2_potentials"
EPSILONS = (0.5, 0.25, 0.1, 0.01)
TOLERANCE = 1e-12
_PATCH = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}  # behind labels on lines


def run(settings: Settings) -> dict[str, Any]:
    """Tabulate the potentials, their target sets, and how far both radii move."""
    y = np.linspace(-3.0, 3.0, settings.pick(1_201, 241))
    both, low, high = cfx.SEP(0.0, 1.0), cfx.AEP(0.0, 1.0, side=-1), cfx.AEP(0.0, 1.0, side=1)
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
    }


def edge_error(potential: cfx.SEP, epsilon: float) -> float:
    """Return how far the potential at the ends of a target set is from the set's level."""
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


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    rows = "\n".join(
        f"| {epsilon} | [{high[0]:.4f}, {high[1]:.4f}] | {high[1] - high[0]:.4f} |"
        for epsilon, (_, high) in result["target_sets"].items()
    )
    low, high = result["peak_at"]
    return f"""\
## Figure 2: the EP family

Peaks of height 1/e at f(q) ± w (found at {low:g} and {high:g} for w = 1); SEP = AEP₋ + AEP₊ to
within {result["sum_of_sides_error"]:.0e}; the potential at the ends of each target set is the set's
level to {result["edge_error"]:.0e}; the sets are nested: {"yes" if result["nested"] else "**no**"}.

| ε | upper part of T^ε, in widths | its length |
|---|---|---|
{rows}

![Figure 2](figures/fig2_potentials.png)

**The paper's value:** the shapes agree. **Contradicts a footnote:** it calls T^ε "an annulus of
outer radius w and fixed inner radius"; both radii move with ε, and the outer one is larger than w
(the table above). The limits of integration in Appendix B need Lambert's W at −ρ\\*, not ρ\\*.
"""
