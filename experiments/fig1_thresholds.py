"""Figure 1: the brittleness of a threshold and of a potential.

The function is that of the paper's TikZ source. A parameter (the threshold ε, or the width w of an
AEP potential) grows by 1 % per step; the figure is the move of the counterfactual in one step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.theory.definitions import ThresholdSet, in_target_set
from experiments.claims import Claim, exactly, fact
from experiments.drawing import BLACK, BLUE, GREEN, GREY, VERMILION, figure
from experiments.runs import Settings, each

NAME = "fig1_thresholds"
QUERY = 0.9
X1 = 1.9
X2 = 4.0
EPS1_AT = 1.5  # the paper's ε₁ is g(1.5) − f(q)
EPS2_AT = 2.4  # the paper's ε₂ is g(2.4) − f(q)
LOW = 0.5  # left end of the paper's plot; rows below q are not allowed
HIGH = 4.2
WEIGHTS = (0.02, 0.1, 0.2, 0.5)  # λ of the ℓ1 regulariser
STEP = 1.01  # the parameter grows by 1 %
EPSILON = 0.01  # of the target set S^ε whose nearest point is computed
BRITTLE = 0.1  # largest move for 1 % of the parameter, as a share of Δ or of the peak


def g(x: Array | float) -> Array:
    """Return the logarithmic branch."""
    return np.asarray(0.9 * np.log(np.asarray(x) / 1.5) + 1.0)


def f(x: Array | float) -> Array:
    """Return the paper's function: logarithmic up to x₁, then flat, then steep."""
    x = np.asarray(x, dtype=float)
    rise = np.maximum(x - X1, 0.0) ** 7 * (g(X2) - g(X1)) / (X2 - X1) ** 7
    return np.where(x <= X1, g(np.minimum(x, X1)), g(X1) + rise)


def run(settings: Settings) -> dict[str, Any]:
    """Sweep the parameter; return counterfactuals, jumps, and the answers of the library."""
    start = float(f(QUERY))
    eps1 = float(g(EPS1_AT)) - start
    eps2 = float(g(EPS2_AT)) - start
    far = float(f(X2)) - start
    sweep: Array = eps1 * STEP ** np.arange(0.0, np.log(far / eps1) / np.log(STEP))
    x = np.linspace(QUERY, HIGH, settings.pick(33_001, 3_301))
    curves = {
        "threshold": nearest_beyond(x, sweep),
        "potential": best_of_potential(x, sweep, 0.0),
        "potential, nearest of S^ε": nearest_of_set(x, sweep),
    }
    for weight in WEIGHTS:
        curves[f"potential, λ = {weight:g}"] = best_of_potential(x, sweep, weight)
    within = sweep <= eps2
    worth = np.array([relative(w, f(X1)) for w in sweep])
    every = settings.pick(9, 36)
    tasks = [(kind, float(w)) for kind in ("threshold", "potential") for w in sweep[::every]]
    answers = each(ask, tasks, NAME, settings.jobs)
    return {
        "output": start,
        "eps1": eps1,
        "eps2": eps2,
        "f_x1": float(f(X1)) - start,
        "f_x2": far,
        "chosen": {
            f"eps{k}": float(nearest_beyond(x, np.array([e]))[0]) for k, e in ((1, eps1), (2, eps2))
        },
        "hair": hair(x),
        "sweep": sweep,
        "curves": curves,
        "jump": {name: jump(sweep, curve) for name, curve in curves.items()},
        "jump_eps1_to_eps2": {
            name: jump(sweep[within], curve[within]) for name, curve in curves.items()
        },
        "worth_of_x1": worth,
        "worth_of_x1_at_eps2": float(relative(eps2, f(X1))),
        "worth_jump": {"threshold": 1.0, "potential": float(np.abs(np.diff(worth)).max())},
        "library": [
            {"kind": kind, "parameter": w, "x": answer}
            for (kind, w), answer in zip(tasks, answers, strict=True)
        ],
    }


def nearest_beyond(x: Array, sweep: Array) -> Array:
    """Return the nearest x with |f(x) - f(q)| >= ε, for each ε ``(n,)``."""
    distance = np.abs(x - QUERY)
    start = float(f(QUERY))
    y = f(x)
    beyond = [ThresholdSet(start, float(eps)).contains(y) for eps in sweep]
    return np.array([x[np.argmin(np.where(mask, distance, np.inf))] for mask in beyond])


def nearest_of_set(x: Array, sweep: Array) -> Array:
    """Return the nearest point of the ε-optimal primal set S^ε, for each width ``(n,)``."""
    distance = np.abs(x - QUERY)
    start = float(f(QUERY))
    y = f(x)
    found = []
    for w in sweep:
        potential = cfx.AEP(start, float(w))
        best = float(potential.value(y).max())
        inside = in_target_set(potential, y, EPSILON, best)
        found.append(x[np.argmin(np.where(inside, distance, np.inf))])
    return np.array(found)


def hair(x: Array) -> dict[str, dict[str, list[float]]]:
    """Return where a tenth of a per cent moves the answers across the flat stretch.

    The threshold's does at ε = f(x₁) − f(q); that of the target set where its lower end, z₀w, is
    there.
    """
    rise = float(f(X1)) - float(f(QUERY))
    edge = cfx.AEP(0.0, 1.0).target_set(EPSILON)[0][0]
    kinds = {"threshold": (nearest_beyond, 1.0), "S^ε": (nearest_of_set, 1.0 / edge)}
    found = {}
    for kind, (answer, factor) in kinds.items():
        ratio = factor * np.array([0.999, 1.001])
        found[kind] = {"ratio": ratio.tolist(), "x": answer(x, rise * ratio).tolist()}
    return found


def best_of_potential(x: Array, sweep: Array, weight: float) -> Array:
    """Return the maximiser of ρ(f(x))/peak - λ|x - q|, for each width ``(n,)``."""
    cost = weight * np.abs(x - QUERY)
    y = f(x)
    return np.array([x[np.argmax(relative(w, y) - cost)] for w in sweep])


def relative(width: float, y: Array) -> Array:
    """Return the potential of outputs relative to its peak."""
    potential = cfx.AEP(float(f(QUERY)), float(width))
    return potential.value(y) / potential.peak


def jump(sweep: Array, curve: Array) -> dict[str, float]:
    """Return the largest move for a 1 % change of the parameter, and where it happens."""
    moves = np.abs(np.diff(curve))
    k = int(np.argmax(moves))
    return {"size": moves[k], "parameter": sweep[k], "from": curve[k], "to": curve[k + 1]}


def ask(task: tuple[str, float]) -> float:
    """Return the counterfactual that the library finds."""
    kind, size = task
    start = float(f(QUERY))
    space = cfx.Space({"x": cfx.Real(QUERY, HIGH)}).cost(per_change=0)
    if kind == "threshold":
        target: Any = cfx.at_least(start + size)
    else:
        space = space.cost(weight=0)
        target = cfx.reach(by=size)
    method = cfx.BayesCFX()
    answer = cfx.explain(
        model_frame,
        {"x": QUERY},
        space,
        target,
        method=method,
        budget=40,
        tolerance=0.01,
        rng=0,
        short_decimals=False,
    )
    return float(answer.best.row["x"])


def model_frame(rows: Any) -> Array:
    """Return f of a frame with the column ``x``."""
    return f(rows["x"].to_numpy())


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the function, the counterfactual against the parameter, and the value of x₁."""
    with figure(path, 15.0, 5.6) as canvas:
        left, middle, right = canvas.subplots(1, 3, width_ratios=[1.0, 1.25, 1.0])
        _draw_function(left, result)
        _draw_curves(middle, result)
        _draw_worth(right, result)
        handles, texts = middle.get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside lower center", ncols=len(texts))


def _draw_function(ax: Any, result: dict[str, Any]) -> None:
    x = np.linspace(LOW, 4.1, 800)
    start = result["output"]
    ax.plot(x, f(x), color=BLACK)
    for at, label in ((QUERY, "q"), (X1, "$x_1$"), (X2, "$x_2$")):
        ax.plot([at, at], [0.0, float(f(at))], color=GREY, linewidth=1)
        ax.plot(at, float(f(at)), "o", color=BLACK)
        ax.annotate(label, (at, 0.03), xytext=(5, 0), textcoords="offset points")
    for size, label in ((result["eps1"], "$f(q)+ε_1$"), (result["eps2"], "$f(q)+ε_2$")):
        ax.axhline(start + size, color=VERMILION, linewidth=1.2, linestyle="--")
        ax.annotate(label, (2.15, start + size + 0.03), color=VERMILION)
    ax.set(xlabel="x", ylabel="f(x)", ylim=(0, 2.1), title="The paper's function")


def _draw_curves(ax: Any, result: dict[str, Any]) -> None:
    sweep = result["sweep"]
    curves = result["curves"]
    for size, label in ((result["eps1"], "$ε_1$"), (result["eps2"], "$ε_2$")):
        ax.axvline(size, color=GREY, linewidth=1)
        ax.annotate(label, (size, 4.02), xytext=(4, 0), textcoords="offset points", color=GREY)
    ax.plot(sweep, curves["threshold"], color=VERMILION, linewidth=6, alpha=0.45, label="threshold")
    ax.plot(sweep, curves["potential"], color=BLUE, label="potential")
    looks = {"λ = 0.1": (GREEN, "--"), "λ = 0.5": (BLACK, "-.")}
    for key, (color, line) in looks.items():
        name = f"potential, {key}"
        ax.plot(sweep, curves[name], color=color, linestyle=line, label=name)
    for kind, mark, color in (("threshold", "v", VERMILION), ("potential", "o", BLUE)):
        dots = [d for d in result["library"] if d["kind"] == kind]
        ax.plot(
            [d["parameter"] for d in dots],
            [d["x"] for d in dots],
            mark,
            color=color,
            markerfacecolor="white",
            markersize=7,
            label=f"{kind}, found by search",
        )
    ax.set(xlabel="threshold ε, or width w", ylabel="counterfactual x", ylim=(1.3, 4.2))
    ax.set_title("Where the counterfactual is")


def _draw_worth(ax: Any, result: dict[str, Any]) -> None:
    sweep = np.array(result["sweep"])
    wide = {"color": VERMILION, "linewidth": 6, "alpha": 0.45}
    ax.plot(sweep, sweep <= result["f_x1"], label="threshold", **wide)
    ax.plot(sweep, result["worth_of_x1"], color=BLUE, label="potential")
    for size in (result["eps1"], result["eps2"]):
        ax.axvline(size, color=GREY, linewidth=1)
    ax.set(xlabel="threshold ε, or width w", ylabel="worth of $x_1$, relative to the best")
    ax.set(ylim=(-0.04, 1.12), title="What the answer $x_1$ is worth")


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Section 2 on thresholds and potentials."""
    gap = X2 - X1
    moves = result["jump"]
    chosen = result["chosen"]
    shares = {name: move["size"] / gap for name, move in moves.items()}
    small = f"brittle: 1 % more moves the answer by over {BRITTLE:.0%} of Δ = x₂ − x₁"
    lost = result["worth_jump"]["potential"]
    line = "Section 2, Figure 1"
    return [
        Claim(
            "thresholds.brittle",
            line,
            "counterfactuals by a threshold can be very sensitive to ε",
            f"1 % more on ε moves the answer by {shares['threshold']:.0%} of Δ",
            exactly(shares["threshold"] - BRITTLE),
            small,
        ),
        Claim(
            "thresholds.points",
            line,
            "choosing ε₂ over ε₁ yields x₂ = 4 rather than x₁ = 1.9",
            f"{chosen['eps2']:.2f} rather than {chosen['eps1']:.2f}",
            fact(abs(chosen["eps1"] - X1) < 0.05 and abs(chosen["eps2"] - X2) < 0.05),
            "f is continuous: the nearest x beyond ε has f(x) = f(q) + ε, left of the point named",
        ),
        Claim(
            "thresholds.resolved",
            "Abstract, Section 1",
            "potentials resolve the robustness issues of thresholds",
            f"1 % more on w moves the answer by {shares['potential']:.0%} of Δ",
            exactly(BRITTLE - shares["potential"]),
            f"f is monotone: ρ is largest where the threshold ε = w is met; {small}",
        ),
        Claim(
            "thresholds.ranks",
            "Section 2",
            "a threshold does not distinguish counterfactuals; a potential gives each a value",
            f"1 % more on w changes the worth of x₁ by at most {lost:.3f} of the peak, on ε by 1",
            exactly(BRITTLE - lost),
            f"a change of value is small up to {BRITTLE:.0%} of the peak",
        ),
    ]


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    threshold, part = (result["hair"][kind] for kind in ("threshold", "S^ε"))
    return f"""\
## Figure 1: thresholds are brittle

The function of the paper's TikZ source, q = {QUERY}, ε₁ = {result["eps1"]:.3f}, ε₂ =
{result["eps2"]:.3f}, x ≥ q; ε or w grows in steps of 1 %. Largest move of the counterfactual in one
step:

| objective | jump, ε₁ … ε₂ | jump, whole sweep | where |
|---|---|---|---|
{chr(10).join(_row(result, name) for name in result["jump"])}

![Figure 1](figures/fig1_thresholds.png)

**Where the answer is.** A potential alone moves it just as a threshold does: on a monotone function
both ask for f(x) = f(q) + w. The nearest point of S^ε (ε = {EPSILON}) makes the same jump later,
where the lower end of the target set passes f(x₁): {part["x"][0]:.2f} → {part["x"][1]:.2f} between
w = {part["ratio"][0]:.4f} and {part["ratio"][1]:.4f} times f(x₁) − f(q), against
{threshold["x"][0]:.2f} → {threshold["x"][1]:.2f} at {threshold["ratio"][0]:.4f} to
{threshold["ratio"][1]:.4f} for the threshold. A small cost of moving (λ) keeps the answer at x₁ for
longer and then lets it jump further; a large one keeps it there.

**What it is worth.** The value of x₁ is continuous under a potential (right panel): it has
{result["worth_of_x1_at_eps2"]:.0%} of the peak at w = ε₂, where the threshold counts it as nothing.
So potentials rank near misses; it is that *and* a cost of moving that keeps an answer near.
"""


def _row(result: dict[str, Any], name: str) -> str:
    part = result["jump_eps1_to_eps2"][name]
    full = result["jump"][name]
    where = f"{full['from']:.2f} → {full['to']:.2f} at {full['parameter']:.3f}"
    return f"| {name} | {part['size']:.3f} | {full['size']:.3f} | {where} |"
