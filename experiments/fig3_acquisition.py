"""Figure 3: does the acquisition find the target set? EI-CFX against EI on ρ∘f.

Two features of a logistic regression, target 50 %, three times: see `SCENES`. Both acquisitions see
the same observations. How well an acquisition has recovered the target set is the share of its mass
within the ε-target set, ε = 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import expit

import bayescfx as cfx
from bayescfx.acquisition import expected_improvement
from bayescfx.arrays import Array
from experiments.adult import load
from experiments.drawing import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, figure
from experiments.fig3_words import DESIGNS, FIRST, ROWS, SCENES, SECOND, tell
from experiments.runs import Settings, each
from experiments.scenes import EPSILON, Scene, adult, breast_cancer

__all__ = ["NAME", "draw", "run", "tell"]

NAME = "fig3_acquisition"
MOST = 8  # observations
SHOWN = 0  # the seed that is drawn


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


def acquisition(here: Scene, known: Array, row: str) -> Array:
    """Return one acquisition on the grid, given the grid points that were observed."""
    X, p = here.grid[known], here.p[known]
    rho = here.potential.value(p)
    best = float(rho.max())
    if row == "EI on ρ∘f":
        return expected_improvement(*_paper().fit(X, rho).predict(here.grid), best)
    if row == "EI-CFX":
        return cfx.ei_cfx(*_paper().fit(X, p).predict(here.grid), here.potential, best)
    belief = cfx.GaussianProcess().fit(X, np.log(p / (1.0 - p))).predict(here.grid)
    return cfx.ei_cfx(*belief, LogOdds(here.potential), best)


def _paper() -> cfx.GaussianProcess:
    return cfx.GaussianProcess(kernel="rbf", mean="zero")


def observations(here: Scene, design: str, seed: int) -> list[int]:
    """Return positions of the observations: all at random, or the first two and then EI-CFX."""
    rng = np.random.default_rng(seed)
    chosen = [int(k) for k in rng.choice(len(here.grid), size=MOST, replace=False)]
    if design == "random":
        return chosen
    chosen = chosen[:2]
    while len(chosen) < MOST:
        alpha = acquisition(here, np.array(chosen), "EI-CFX").copy()
        alpha[chosen] = -1.0
        chosen.append(int(np.argmax(alpha)))
    return chosen


def shares(task: tuple[Scene, str, int]) -> dict[str, Any]:
    """Return the share of each acquisition's mass in the target set for n = 1 … 8.

    And how far apart the observations are: the median distance of two, in the unit square.
    """
    here, design, seed = task
    known = np.array(observations(here, design, seed))
    found: dict[str, Any] = {
        row: [_inside(here, acquisition(here, known[:n], row)) for n in range(1, MOST + 1)]
        for row in ROWS
    }
    return found | {"apart": float(np.median(pdist(here.grid[known])))}


def _inside(here: Scene, alpha: Array) -> float:
    alpha = np.maximum(alpha, 0.0)
    total = float(alpha.sum())
    # no mass anywhere: the acquisition says nothing, as good as uniform
    return float(alpha[here.inside].sum() / total if total > 0.0 else here.inside.mean())


def run(settings: Settings) -> dict[str, Any]:
    """Measure over 20 seeds, both designs and all scenes."""
    size, seeds = settings.pick(51, 25), range(settings.pick(20, 2))
    problem = load("gain - loss", settings.data)
    scenes = dict(
        zip(
            SCENES,
            (breast_cancer(size), adult(size, problem), adult(size, problem, 0.25)),
            strict=True,
        )
    )
    tasks = [(name, design, seed) for design in DESIGNS[::-1] for name in SCENES for seed in seeds]
    found = each(shares, [(scenes[n], d, seed) for n, d, seed in tasks], NAME, settings.jobs)
    by_task = dict(zip(tasks, found, strict=True))
    return {
        "epsilon": EPSILON,
        "seeds": len(seeds),
        "size": size,
        "scenes": {
            name: describe(here)
            | {"share": {d: _summary([by_task[name, d, k] for k in seeds]) for d in DESIGNS}}
            for name, here in scenes.items()
        },
        "shown": {name: maps(scenes[name]) for name in (FIRST, SECOND)},
    }


def _summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return median and quartiles over seeds, of one scene and design."""
    tables = {row: np.array([one[row] for one in found]) for row in ROWS}
    return {
        row: {"median": np.median(t, axis=0), "quartiles": np.quantile(t, [0.25, 0.75], axis=0)}
        for row, t in tables.items()
    } | {"apart": float(np.median([one["apart"] for one in found]))}


def describe(here: Scene) -> dict[str, Any]:
    """Return the scene itself, for the page and the figure."""
    return {
        "features": here.features,
        "f_query": here.potential.origin,
        "query": here.query,
        "area": float(here.inside.mean()),
        "lowest": float(here.p.min()),
        "log_odds_span": float(np.ptp(np.log(here.p / (1.0 - here.p)))),
        "target_set": here.potential.target_set(EPSILON)[0],
    }


def maps(here: Scene) -> dict[str, Any]:
    """Return what the figure shows of one seed: every second grid point, few digits."""
    known = np.array(observations(here, DESIGNS[1], SHOWN))
    return {
        "points": here.grid[known],
        "p": np.round(_thinned(here.p), 4),
        "maps": {
            row: [_scaled(acquisition(here, known[:n], row)) for n in range(1, MOST + 1)]
            for row in ROWS[:2]
        },
    }


def _thinned(values: Array) -> Array:
    size = int(np.sqrt(len(values)))
    return values.reshape(size, size)[::2, ::2].ravel()


def _scaled(alpha: Array) -> Array:
    """Return a map relative to its top, with as many digits as a picture shows."""
    top = max(float(alpha.max()), 1e-300)
    return np.asarray(np.round(np.clip(_thinned(alpha) / top, 0.0, 1.0), 3), dtype=float)


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the maps of one seed in both of Adult's scenes; the shares of all get another file."""
    with figure(path, 17.0, 10.2) as canvas:
        halves: Any = canvas.subfigures(2, 1, hspace=0.03)
        for part, scene in zip(halves, (FIRST, SECOND), strict=True):
            _draw_maps(part, result, scene)
    with figure(path.with_name(f"{path.stem}_shares.png"), 15.0, 8.6) as canvas:
        axes = canvas.subplots(len(DESIGNS), len(SCENES), sharex=True, sharey=True)
        for line, design in zip(axes, DESIGNS, strict=True):
            for ax, scene in zip(line, SCENES, strict=True):
                _draw_shares(ax, result["scenes"][scene], scene, design)
            line[0].set_ylabel("share of the mass\nin the target set")
        for ax in axes[-1]:
            ax.set_xlabel("observations n")
        handles, texts = axes[0, 0].get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside upper center", ncols=len(texts), fontsize=14)


def _draw_maps(part: Any, result: dict[str, Any], scene: str) -> None:
    axes = part.subplots(2, MOST, sharex=True, sharey=True)
    features = result["scenes"][scene]["features"]
    for i, row in enumerate(ROWS[:2]):
        for n in range(1, MOST + 1):
            _draw_map(axes[i, n - 1], result, scene, row, n)
        axes[i, 0].set_ylabel(f"{row}\n{features[1]}", fontsize=13)
    for n, (top, bottom) in enumerate(axes.T, start=1):
        top.set_title(f"n = {n}")
        bottom.set_xlabel(features[0], fontsize=13)
    part.suptitle(f"{scene}: ★ query, ● observations, red: edges of the target set", fontsize=15)


def _draw_map(ax: Any, result: dict[str, Any], scene: str, row: str, n: int) -> None:
    here, shown = result["scenes"][scene], result["shown"][scene]
    size = (result["size"] + 1) // 2
    ticks = np.linspace(0.0, 1.0, size)
    shade, p = (np.array(v).reshape(size, size).T for v in (shown["maps"][row][n - 1], shown["p"]))
    ax.pcolormesh(ticks, ticks, shade, cmap="Blues", vmin=0, vmax=1, shading="gouraud")
    ax.contour(ticks, ticks, p, levels=here["target_set"], colors=VERMILION, linewidths=1.8)
    look = {"color": BLACK, "markeredgecolor": "white", "clip_on": False, "zorder": 3}
    ax.plot(*np.array(shown["points"][:n]).T, "o", markersize=6, **look)
    ax.plot(*here["query"], "*", markersize=12, **look)
    ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.grid(False)


def _draw_shares(ax: Any, part: dict[str, Any], scene: str, design: str) -> None:
    looks = zip(ROWS, ((BLUE, "o", "-"), (PURPLE, "s", "--"), (GREEN, "D", ":")), strict=True)
    n = np.arange(1, MOST + 1)
    for row, (color, mark, line) in looks:
        share = part["share"][design][row]
        ax.plot(n, share["median"], color=color, marker=mark, linestyle=line, label=row)
        ax.fill_between(n, *np.array(share["quartiles"]), color=color, alpha=0.15)
    ax.axhline(part["area"], color=GREY, linewidth=1.6, label="share of the area")
    ax.set(ylim=(-0.02, 1.02), xticks=n)
    ax.tick_params(labelbottom=True)
    ax.set_title(f"{scene}\nobservations {design}")
