"""Figure 2: does the acquisition find the target set? EI-CFX against EI on ρ∘f.

Two features of a logistic regression, target 50 %, twice: Adult's age and hours per week, a gentle
slope, and scikit-learn's breast cancer data, a cliff between two plains. Both acquisitions see the
same observations. How well an acquisition has recovered the target set is the share of its mass
within the ε-target set, ε = 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayescfx as cfx
from bayescfx.acquisition.ei import expected_improvement
from bayescfx.arrays import Array
from experiments.adult import load
from experiments.drawing import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, figure
from experiments.runs import Settings, each

NAME = "fig2_acquisition"
EPSILON = 0.1
MOST = 8  # observations
SHOWN = 0  # the seed that is drawn
ROWS = ("EI-CFX", "EI on ρ∘f", "EI-CFX, log-odds")
DESIGNS = ("random", "chosen by EI-CFX")


@dataclass(frozen=True)
class LogOdds:
    """A potential of probabilities, as a function of log-odds."""

    inner: cfx.AEP

    def value(self, u: Any) -> Array:
        """Return ρ(p(u))."""
        return self.inner.value(_logistic(u))

    def slope(self, u: Any) -> Array:
        """Return its derivative by u."""
        p = _logistic(u)
        return np.asarray(self.inner.slope(p) * p * (1.0 - p))


def _logistic(u: Any) -> Array:
    return np.asarray(expit(np.asarray(u, dtype=float)))


@dataclass(frozen=True, eq=False)
class Scene:
    """The unit square of two features: probabilities on a grid, and the question."""

    features: tuple[str, str]
    grid: Array
    p: Array
    query: Array
    potential: cfx.AEP

    @property
    def inside(self) -> Array:
        """Which grid points belong to the ε-target set."""
        ((low, high),) = self.potential.target_set(EPSILON)
        return np.asarray((self.p >= low) & (self.p <= high))


def unit_grid(size: int) -> Array:
    """Return ``size²`` points of the unit square."""
    ticks = np.linspace(0.0, 1.0, size)
    return np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)


def downwards(start: float) -> cfx.AEP:
    """Return AEP₋ with its peak at 50 %."""
    return cfx.AEP(start, start - 0.5, side=-1)


def breast_cancer(size: int) -> Scene:
    """Return a steep scene: P(malignant) by two features, and the row nearest to 95 %."""
    features = ("mean radius", "mean concave points")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[list(features)].to_numpy(), data.target.to_numpy() == 0
    clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    grid = unit_grid(size)
    p = clf.predict_proba(low + grid * span)[:, 1]
    confident = clf.predict_proba(X)[:, 1]
    k = int(np.argmin(np.abs(confident - 0.95)))
    return Scene(features, grid, p, (X[k] - low) / span, downwards(float(confident[k])))


def adult(size: int, folder: Path | None, least: float) -> Scene:
    """Return a gentle scene: Adult's model by age and hours, and the row nearest to 90 %.

    Among rows without capital gains for which the two features alone can bring the probability
    down to `least`: with 25 % all of the target set lies within the square, with 50 % a corner.
    """
    features = ("age", "hours-per-week")
    names = list(features)
    problem = load("gain - loss", folder)
    rows = problem.rows[problem.rows["capital-change"] == 0].reset_index(drop=True)
    low, high = (problem.rows[names].agg(which).to_numpy() for which in ("min", "max"))
    lowest = rows.copy()
    lowest[names] = low  # both coefficients are positive
    confident = problem.model(rows)
    k = int(np.argmin(np.abs(confident - 0.9) + (problem.model(lowest) > least)))
    grid = unit_grid(size)
    table = rows.iloc[[k] * len(grid)].reset_index(drop=True)
    table[names] = low + grid * (high - low)
    query = (rows.loc[k, names].to_numpy(float) - low) / (high - low)
    return Scene(features, grid, problem.model(table), query, downwards(float(confident[k])))


def acquisitions(here: Scene, known: Array) -> dict[str, Array]:
    """Return each acquisition on the grid, given the grid points that were observed."""
    X, p = here.grid[known], here.p[known]
    rho = here.potential.value(p)
    best = float(rho.max())
    u = np.log(p / (1.0 - p))
    on_f = cfx.GaussianProcess(kernel="rbf", mean="zero").fit(X, p).predict(here.grid)
    on_rho = cfx.GaussianProcess(kernel="rbf", mean="zero").fit(X, rho).predict(here.grid)
    on_u = cfx.GaussianProcess().fit(X, u).predict(here.grid)
    return {
        "EI-CFX": cfx.ei_cfx(*on_f, here.potential, best),
        "EI on ρ∘f": expected_improvement(*on_rho, best),
        "EI-CFX, log-odds": cfx.ei_cfx(*on_u, LogOdds(here.potential), best),
    }


def observations(here: Scene, design: str, seed: int) -> list[int]:
    """Return positions of the observations: all at random, or the first two and then EI-CFX."""
    rng = np.random.default_rng(seed)
    chosen = [int(k) for k in rng.choice(len(here.grid), size=MOST, replace=False)]
    if design == "random":
        return chosen
    chosen = chosen[:2]
    while len(chosen) < MOST:
        alpha = acquisitions(here, np.array(chosen))["EI-CFX"].copy()
        alpha[chosen] = -1.0
        chosen.append(int(np.argmax(alpha)))
    return chosen


def shares(task: tuple[Scene, str, int]) -> dict[str, list[float]]:
    """Return the share of each acquisition's mass in the target set for n = 1 … 8."""
    here, design, seed = task
    known = observations(here, design, seed)
    found: dict[str, list[float]] = {row: [] for row in ROWS}
    for n in range(1, MOST + 1):
        for row, alpha in acquisitions(here, np.array(known[:n])).items():
            alpha = np.maximum(alpha, 0.0)
            total = float(alpha.sum())
            # no mass anywhere: the acquisition says nothing, as good as uniform
            inside = alpha[here.inside].sum() / total if total > 0.0 else here.inside.mean()
            found[row].append(float(inside))
    return found


def run(settings: Settings) -> dict[str, Any]:
    """Measure over 20 seeds, both designs and both scenes."""
    size = settings.pick(51, 25)
    scenes = {
        "Adult": adult(size, settings.data, 0.25),
        "Adult, corner": adult(size, settings.data, 0.5),
        "breast cancer": breast_cancer(size),
    }
    return {
        "epsilon": EPSILON,
        "seeds": settings.pick(20, 2),
        "size": size,
        "scenes": {name: measure(name, here, settings) for name, here in scenes.items()},
        "shown": maps(scenes["Adult"]),
    }


def measure(name: str, here: Scene, settings: Settings) -> dict[str, Any]:
    """Return the shares of one scene, and the scene itself, for the figure."""
    seeds = range(settings.pick(20, 2))
    tasks = [(here, design, seed) for design in DESIGNS for seed in seeds]
    found = each(shares, tasks, f"{NAME}: {name}", settings.jobs)
    share: dict[str, Any] = {}
    for i, design in enumerate(DESIGNS):
        mine = found[i * len(seeds) : (i + 1) * len(seeds)]
        tables = {row: np.array([one[row] for one in mine]) for row in ROWS}
        share[design] = {
            row: {"median": np.median(t, axis=0), "quartiles": np.quantile(t, [0.25, 0.75], axis=0)}
            for row, t in tables.items()
        }
    return {
        "features": here.features,
        "f_query": here.potential.origin,
        "query": here.query,
        "area": float(here.inside.mean()),
        "log_odds_span": float(np.ptp(np.log(here.p / (1.0 - here.p)))),
        "target_set": here.potential.target_set(EPSILON)[0],
        "share": share,
    }


def maps(here: Scene) -> dict[str, Any]:
    """Return what the figure shows of one seed: every second grid point, few digits."""
    known = np.array(observations(here, DESIGNS[1], SHOWN))
    found = [acquisitions(here, known[:n]) for n in range(1, MOST + 1)]
    return {
        "points": here.grid[known],
        "p": np.round(_thinned(here.p), 4),
        "maps": {row: [_scaled(alpha[row]) for alpha in found] for row in ROWS[:2]},
    }


def _thinned(values: Array) -> Array:
    size = int(np.sqrt(len(values)))
    return values.reshape(size, size)[::2, ::2].ravel()


def _scaled(alpha: Array) -> Array:
    """Return a map relative to its top, with as many digits as a picture shows."""
    top = max(float(alpha.max()), 1e-300)
    return np.asarray(np.round(np.clip(_thinned(alpha) / top, 0.0, 1.0), 3), dtype=float)


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the maps of one seed on Adult, and the shares of all seeds in both scenes."""
    shown = result["scenes"]["Adult"]
    with figure(path, 17.0, 8.8) as canvas:
        halves: Any = canvas.subfigures(2, 1, height_ratios=[1.25, 1.0])
        upper, lower = halves
        axes = upper.subplots(2, MOST, sharex=True, sharey=True)
        for i, row in enumerate(ROWS[:2]):
            for n in range(1, MOST + 1):
                _draw_map(axes[i, n - 1], result, row, n)
            axes[i, 0].set_ylabel(f"{row}\n\n{shown['features'][1]}", fontsize=12)
        for n, (top, bottom) in enumerate(axes.T, start=1):
            top.set_title(f"n = {n}")
            bottom.set_xlabel(shown["features"][0], fontsize=12)
        panels = [(scene, design) for scene in ("Adult", "breast cancer") for design in DESIGNS]
        for ax, (scene, design) in zip(lower.subplots(1, 4, sharey=True), panels, strict=True):
            _draw_shares(ax, result, scene, design)
            ax.set_ylabel(
                "share of the mass\nin the target set"
                if ax.get_subplotspec().colspan.start == 0
                else ""
            )


def _draw_map(ax: Any, result: dict[str, Any], row: str, n: int) -> None:
    scene, shown = result["scenes"]["Adult"], result["shown"]
    size = (result["size"] + 1) // 2
    ticks = np.linspace(0.0, 1.0, size)
    shade, p = (np.array(v).reshape(size, size).T for v in (shown["maps"][row][n - 1], shown["p"]))
    ax.pcolormesh(ticks, ticks, shade, cmap="Blues", vmin=0, vmax=1, shading="gouraud")
    ax.contour(ticks, ticks, p, levels=scene["target_set"], colors=VERMILION, linewidths=1.8)
    look = {"color": BLACK, "markeredgecolor": "white", "clip_on": False, "zorder": 3}
    ax.plot(*np.array(shown["points"][:n]).T, "o", markersize=6, **look)
    ax.plot(*scene["query"], "*", markersize=12, **look)
    ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.grid(False)


def _draw_shares(ax: Any, result: dict[str, Any], scene: str, design: str) -> None:
    looks = zip(ROWS, ((BLUE, "o", "-"), (PURPLE, "s", "--"), (GREEN, "D", ":")), strict=True)
    part, n = result["scenes"][scene], np.arange(1, MOST + 1)
    for row, (color, mark, line) in looks:
        share = part["share"][design][row]
        ax.plot(n, share["median"], color=color, marker=mark, linestyle=line, label=row)
        ax.fill_between(n, *np.array(share["quartiles"]), color=color, alpha=0.15)
    ax.axhline(part["area"], color=GREY, linewidth=1.4)
    ax.annotate("share of the area", (3.6, part["area"] - 0.065), color=GREY, fontsize=11)
    ax.set(xlabel="observations n", ylim=(-0.05, 1.02), xticks=n)
    ax.set_title(f"{scene}\nobservations {design}", fontsize=13)
    if (scene, design) == ("breast cancer", DESIGNS[1]):
        ax.legend(loc="upper left")


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    lines, scenes = [], []
    for name, scene in result["scenes"].items():
        scenes.append(
            f"* **{name}**: {' and '.join(scene['features'])}; f(q) = {scene['f_query']:.3f}; the "
            f"log-odds span {scene['log_odds_span']:.1f} over the square; the ε-target set is "
            f"{scene['area']:.1%} of it."
        )
        for design, rows in scene["share"].items():
            for row, share in rows.items():
                cells = " | ".join(f"{value:.2f}" for value in share["median"])
                lines.append(f"| {name} | {design} | {row} | {cells} |")
    return f"""\
## Figure 2: convergence of the acquisition

The paper does not say which logistic regression and which two features it drew. Tried here,
AEP₋ with its peak at 50 %:

{chr(10).join(scenes)}

Share of the acquisition's mass within the ε-target set, ε = {result["epsilon"]:g}; median over
{result["seeds"]} seeds. The same observations for every acquisition; RBF kernel and zero mean on p,
except "log-odds" (Matérn 5/2 on log-odds, the library's default for probabilities).

| model | observations | acquisition | {" | ".join(f"n = {n}" for n in range(1, MOST + 1))} |
|---|---|---|{"---|" * MOST}
{chr(10).join(lines)}

![Figure 2](figures/fig2_acquisition.png)

**The paper's value:** EI-CFX recovers the set "with just 7 or 8 samples", EI on ρ∘f "does not show
any meaningful convergence even after 8". **Ours:** {_verdict(result)}
"""


def _verdict(result: dict[str, Any]) -> str:
    last = {
        (name, design): [rows[row]["median"][-1] for row in ROWS]
        for name, scene in result["scenes"].items()
        for design, rows in scene["share"].items()
    }
    table = {key: f"{a:.0%} against {b:.0%}" for key, (a, b, _) in last.items()}
    drawn, chosen = (("Adult", design) for design in DESIGNS)
    steep = ("breast cancer", DESIGNS[1])
    gentle = [(name, DESIGNS[0]) for name in result["scenes"] if name.startswith("Adult")]
    text = (
        "on Adult's model, the one of the paper's Section 4, the share of the mass inside the set "
        f"at n = 8 is {table[drawn]} (EI-CFX against EI on ρ∘f) with random observations and "
        f"{table[chosen]} with those that EI-CFX chooses; a uniform acquisition would have "
        f"{result['scenes']['Adult']['area']:.0%}. "
    )
    if all(ours > naive for ours, naive, _ in last.values()):
        text += "EI-CFX is ahead in every row of the table. "
    else:
        text += "**EI-CFX is not ahead everywhere.** "
    if max(last[key][1] for key in gentle) > 0.3:
        shares = ", ".join(f"{table[key]} on {key[0]}" for key in gentle)
        text += (
            "\n\n> **Contradicts the paper in one point.** EI on ρ∘f does converge on a gentle "
            f"model when the observations are random: {shares}. It is left behind with the "
            "observations that EI-CFX chooses, which all lie close together.\n"
        )
    if last[steep][0] < 0.5:
        text += (
            f"\n\n> **Weaker than the paper says** on a steep model: {table[steep]} on breast "
            f"cancer ({last[steep][2]:.0%} on log-odds). An RBF process with zero mean on p has to "
            "learn a cliff between two plains from eight points; on log-odds the model is a "
            "plane. And a "
            "search that has found the set stops learning about the rest of it, which is no fault "
            "in a search: shares are higher with random observations.\n"
        )
    return text
