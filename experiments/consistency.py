"""Theorem "EI-CFX is asymptotically consistent": ρ*ₙ → ρ*, on functions of every kind.

What is plotted is the shortfall 1 − ρ*ₙ/ρ* against n, on logarithmic scales. The theorem is about
the limit and about covariances with the no-empty-ball property; 200 calls show how far one gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.drawing import LOOK, figure
from experiments.runs import Method, Settings, each, padded

NAME = "consistency"
BUDGET = 200
TOLERANCE = 1e-4  # a search ends at a shortfall of 2e-8
FLOOR = 1e-8
METHODS = (
    Method("Random", cfx.RandomSearch()),
    Method("L-BFGS-B", cfx.LBFGSB()),
    Method("Bayes", cfx.NaiveBayes()),
    # the theorem is about the best guess in the limit: nobody gives up on a target out of reach
    Method("Bayes-CFX", cfx.BayesCFX(give_up=False)),
)


@dataclass(frozen=True)
class Case:
    """One function on the unit cube, a query and a wish.

    Parameters
    ----------
    name : str
        What kind it is.
    f : callable
        ``(n, d) -> (n,)``.
    dimension : int
        Number of features.
    query : float
        Every coordinate of the query.
    target : float
        The wanted output.
    best : float
        The output in the cube that is nearest to the target in potential; the target itself where
        it can be reached.
    without : float, optional
        The same for those who never enter the part that is cut off by a jump.
    beyond : tuple of float, optional
        The middle of that part.
    """

    name: str
    f: Callable[[Array], Array]
    dimension: int
    query: float
    target: float
    best: float
    without: float | None = None
    beyond: tuple[float, ...] | None = None

    def optimum(self) -> float:
        """Return ρ* relative to the potential's peak."""
        return self._worth(self.best)

    def outside(self) -> float | None:
        """Return the shortfall of those who stay on this side of the jump."""
        return None if self.without is None else 1.0 - self._worth(self.without) / self.optimum()

    def _worth(self, output: float) -> float:
        start = float(self.f(np.full((1, self.dimension), self.query))[0])
        potential = cfx.reach(self.target).potential(start)
        return float(potential.value(output)) / potential.peak


def smooth(X: Array) -> Array:
    """Return a wave, 1 feature."""
    return np.asarray(np.sin(6.0 * X[:, 0]) + X[:, 0])


def flat(X: Array) -> Array:
    """Return a cliff between two plains, 2 features."""
    return np.asarray(1.0 / (1.0 + np.exp(-60.0 * (X[:, 0] + 0.5 * X[:, 1] - 1.1))))


def steps(X: Array) -> Array:
    """Return a sum of stairs, as trees make them, 3 features."""
    return np.asarray((np.floor(X * [10.0, 7.0, 5.0]) * [1.0, 1.7, 2.9]).sum(axis=1))


def broken(X: Array) -> Array:
    """Return a slope with a jump along a circle, 2 features; wanted outputs are inside only."""
    inside = ((X - [0.7, 0.65]) ** 2).sum(axis=1) < 0.18**2
    return np.asarray(X[:, 0] + 0.5 * X[:, 1] + np.where(inside, 2.0, 0.0))


def multimodal(X: Array) -> Array:
    """Return Rastrigin's function, 4 features."""
    z = 4.0 * X - 1.7
    return np.asarray((z**2 - 2.0 * np.cos(2 * np.pi * z)).sum(axis=1))


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def hartmann(X: Array) -> Array:
    """Return Hartmann's function with 6 features, to be made large; its maximum is 3.32237."""
    gap = (_A * (X[:, None, :] - _P) ** 2).sum(axis=2)
    return np.asarray((np.array([1.0, 1.2, 3.0, 3.2]) * np.exp(-gap)).sum(axis=1))


def bounded(X: Array) -> Array:
    """Return a dome of height 1, 3 features."""
    return np.asarray(np.exp(-4.0 * ((X - [0.3, 0.8, 0.55]) ** 2).sum(axis=1)))


CASES = (
    Case("smooth, 1 feature", smooth, 1, 0.2, 0.5, 0.5),
    Case("flat but for a cliff, 2", flat, 2, 0.1, 0.5, 0.5),
    Case("discontinuous, 2", broken, 2, 0.1, 2.9, 2.9, without=1.5, beyond=(0.7, 0.65)),
    Case("steps, 3", steps, 3, 0.05, 20.9, 20.9),
    Case("target out of reach, 3", bounded, 3, 0.0, 1.5, 1.0),
    Case("multimodal, 4", multimodal, 4, 0.9, -6.0, -6.0),
    Case("smooth and narrow, 6", hartmann, 6, 0.9, 3.0, 3.0),
)


def run(settings: Settings) -> dict[str, Any]:
    """Run four black-box methods on every case."""
    budget, seeds = settings.pick(BUDGET, 20), range(settings.pick(10, 1))
    cases = CASES[:: settings.pick(1, 2)][: settings.pick(len(CASES), 2)]
    # one list of tasks, Bayesian methods and many features first: no core waits for the last one
    tasks = [
        (case, method.name, budget, seed)
        for method in METHODS[::-1]
        for case in cases[::-1]
        for seed in seeds
    ]
    found = each(search, tasks, NAME, settings.jobs)
    groups: dict[tuple[str, str], list[Any]] = {}
    for (case, method, _, _), one in zip(tasks, found, strict=True):
        groups.setdefault((case.name, method), []).append(one)
    parts = {
        case.name: {
            "optimum": case.optimum(),
            "outside": case.outside(),
            "methods": {m.name: _summary(groups[case.name, m.name]) for m in METHODS},
        }
        for case in cases
    }
    return {"budget": budget, "seeds": len(seeds), "floor": FLOOR, "cases": parts}


def search(task: tuple[Case, str, int, int]) -> tuple[Array, list[float] | None]:
    """Return the shortfall after each call, ``(budget,)``, and the belief beyond a jump."""
    case, name, budget, seed = task
    (method,) = (m.search for m in METHODS if m.name == name)
    space = cfx.Space({k: cfx.Real(0.0, 1.0) for k in range(case.dimension)}).cost(weight=0)
    answer = cfx.explain(
        lambda rows: case.f(rows.to_numpy()),
        dict.fromkeys(range(case.dimension), case.query),
        space,
        cfx.reach(case.target),
        method=method,
        budget=budget,
        tolerance=TOLERANCE,
        rng=seed,
    )
    best = padded(np.asarray(answer.trace), budget)
    believed = None
    if case.beyond is not None and name == "Bayes-CFX":
        believed = _believed(answer.evaluations, np.array([case.beyond]))
    return np.maximum(1.0 - best / case.optimum(), 0.0), believed


def _believed(evaluations: cfx.Evaluations, x: Array) -> list[float]:
    """Return mean and deviation at a point of a surrogate that knows the evaluations."""
    X, y = (np.asarray(part, float) for part in (evaluations.rows, evaluations.outputs))
    mean, std = cfx.GaussianProcess().fit(X, y).predict(x)
    return [float(mean[0]), float(std[0])]


def _summary(found: list[tuple[Array, list[float] | None]]) -> dict[str, Any]:
    shortfall = np.array([values for values, _ in found])
    beliefs = [belief for _, belief in found if belief is not None]
    return ({"belief_beyond": beliefs} if beliefs else {}) | {
        "median": np.median(shortfall, axis=0),
        "worst": shortfall.max(axis=0),
        "quartiles": np.quantile(shortfall, [0.25, 0.75], axis=0),
        "final": shortfall[:, -1],
        "below_1_percent": float((shortfall[:, -1] <= 0.01).mean()),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the median shortfall with quartiles, one panel per function."""
    cases = result["cases"]
    columns = min(4, len(cases))
    lines = -(-len(cases) // columns)
    n = np.arange(1, result["budget"] + 1)
    with figure(path, 4.3 * columns, 4.2 * lines) as canvas:
        axes = np.atleast_1d(canvas.subplots(lines, columns, sharex=True, sharey=True)).ravel()
        for ax, (name, part) in zip(axes, cases.items(), strict=False):
            for k, (method, summary) in enumerate(part["methods"].items()):
                look = {**LOOK[method], "markevery": (8 * k + 4, 40), "markersize": 6}
                low, high = np.maximum(summary["quartiles"], result["floor"])
                ax.plot(n, np.maximum(summary["median"], result["floor"]), label=method, **look)
                ax.fill_between(n, low, high, color=look["color"], alpha=0.15, linewidth=0)
            ax.set(xscale="log", yscale="log", title=name, ylim=(result["floor"] / 2, 2.0))
        for ax in axes[: len(cases)]:
            ax.set_xlabel("model calls n")
            ax.tick_params(labelbottom=True)
        for ax in axes[::columns]:
            ax.set_ylabel("shortfall 1 − ρ*ₙ/ρ*")
        for ax in axes[len(cases) :]:
            ax.axis("off")
        handles, labels = axes[0].get_legend_handles_labels()
        if len(axes) > len(cases):
            axes[-1].legend(handles, labels, loc="center", fontsize=14)
        else:
            axes[0].legend(loc="lower left")


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    lines = []
    for name, part in result["cases"].items():
        cells = " | ".join(
            f"{_small(s['median'][-1], result)} / {_small(s['worst'][-1], result)}"
            for s in part["methods"].values()
        )
        lines.append(f"| {name} | {part['optimum']:.3f} | {cells} |")
    names = " | ".join(method.name for method in METHODS)
    return f"""\
## Theorem: asymptotic consistency

{len(result["cases"])} functions on the unit cube, {result["budget"]} calls,
{result["seeds"]} seeds, the library's default surrogate for both Bayesian methods; Bayes-CFX has
the library's local steps, which take turns with the EI-CFX of the theorem. Shortfall
1 − ρ\\*ₙ/ρ\\* at the last call, median / worst seed; a search ends at 2e-8.

| function | ρ\\*, of the peak | {names} |
|---|---|{"---|" * len(METHODS)}
{chr(10).join(lines)}

![Consistency](figures/consistency.png)

**The paper's value:** a theorem, no experiment. {_verdict(result)}
"""


def _small(value: float, result: dict[str, Any]) -> str:
    return f"{value:.1e}" if value > 2.5 * result["floor"] else "< 2e-8"


def _verdict(result: dict[str, Any]) -> str:
    cases = result["cases"]
    solved = {
        m.name: sum(p["methods"][m.name]["below_1_percent"] == 1.0 for p in cases.values())
        for m in METHODS
    }
    said = ", ".join(f"{name} {count}" for name, count in solved.items())
    open_ = [n for n, p in cases.items() if p["methods"]["Bayes-CFX"]["below_1_percent"] < 1.0]
    text = (
        f"**Ours:** functions of {len(cases)} on which every seed is within 1 % of ρ\\* at the "
        f"last call: {said}. "
    )
    if open_:
        text += (
            f"Bayes-CFX leaves some seed further away on: {', '.join(open_)}. That does not "
            "contradict a statement about the limit, but "
            "it is what the limit is worth at this budget. "
        )
    ahead = [name for name, part in cases.items() if _lowest(part) == "Bayes-CFX"]
    text += f"Its median shortfall is the lowest of the four (or level) on {len(ahead)}. "
    text += "".join(_behind(result))
    return text + (
        "The theorem assumes the generalised no-empty-ball property of the covariance; the paper "
        "does not check it for the RBF kernel of its experiments. And it is about a fixed prior, "
        "where the paper's search and ours learn the hyperparameters as the data come in."
    )


def _behind(result: dict[str, Any]) -> list[str]:
    """Say where random search does better than Bayes-CFX, which no limit excuses."""
    told = []
    for name, part in result["cases"].items():
        ours, random = part["methods"]["Bayes-CFX"], part["methods"]["Random"]
        if ours["below_1_percent"] >= random["below_1_percent"]:
            continue
        text = (
            f"\n\n> **Weaker than the paper says** on *{name}*: Bayes-CFX is within 1 % for "
            f"{ours['below_1_percent']:.0%} of the seeds, random search for "
            f"{random['below_1_percent']:.0%}."
        )
        if part["outside"] is not None:
            pairs = zip(ours["final"], ours["belief_beyond"], strict=True)
            stuck = [belief for value, belief in pairs if value >= 0.999 * part["outside"]]
            widest = max((std for _, std in stuck), default=0.0)
            text += (
                f" {len(stuck)} of {len(ours['final'])} seeds never cross the jump: they end with "
                "the best output of the slope, which the surrogate has learnt so well that beyond "
                "the jump, where it is wrong by 2, it claims a standard deviation of at most "
                f"{widest:.1g}. A discontinuous function is not one that the prior could have "
                "drawn, so the theorem does not speak of it; but the paper's conclusion, a "
                "guarantee even when the model is not differentiable, must not be read so widely."
            )
        told.append(text + "\n\n")
    return told


def _lowest(part: dict[str, Any]) -> str:
    """Return the method with the lowest median shortfall at the last call; ours if level."""
    last = {name: summary["median"][-1] for name, summary in part["methods"].items()}
    ours = last["Bayes-CFX"]
    return "Bayes-CFX" if ours <= min(last.values()) else min(last, key=lambda name: last[name])
