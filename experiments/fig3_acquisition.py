"""Figure 3: whether the acquisition recovers the target set, for EI-CFX and EI on ρ∘f.

The three scenes have two features of a logistic regression and the target 50 %, see `scenes`. All
acquisitions have the same observations. The measure is the share of an acquisition's mass within
the ε-target set, ε = 0.1. An acquisition with a share of at least `HALF` has recovered the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import bayescfx as cfx
from bayescfx.acquisition import expected_improvement
from bayescfx.arrays import Array
from experiments.adult import MAIN, load
from experiments.claims import Claim, Estimate, bootstrap
from experiments.drawing import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, figure
from experiments.runs import Settings, each
from experiments.scenes import BAND, CANCER, CHOSEN, CORNER, EPSILON, Scene, scenes

NAME = "fig3_acquisition"
MOST = 8  # observations
SHOWN = 0  # the seed that is drawn
HALF = 0.5  # of the mass: from here on an acquisition has converged to the target set
OURS, NAIVE, LOG_ODDS = ROWS = ("EI-CFX", "EI on ρ∘f", "EI-CFX, log-odds")
SEARCHED, RANDOM = DESIGNS = ("chosen by EI-CFX", "random")
KEYS = {CANCER: "cancer", CORNER: "corner", BAND: "band"}


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
    """Return one acquisition on the grid, given the observed grid points."""
    X = here.grid[known]
    p = here.p[known]
    rho = here.potential.value(p)
    best = float(rho.max())
    if row == NAIVE:
        return expected_improvement(*_paper().fit(X, rho).predict(here.grid), best)
    if row == OURS:
        return cfx.ei_cfx(*_paper().fit(X, p).predict(here.grid), here.potential, best)
    belief = cfx.GaussianProcess().fit(X, np.log(p / (1.0 - p))).predict(here.grid)
    return cfx.ei_cfx(*belief, LogOdds(here.potential), best)


def _paper() -> cfx.GaussianProcess:
    return cfx.GaussianProcess(kernel="rbf", mean="zero")


def observations(here: Scene, design: str, seed: int) -> list[int]:
    """Return positions of the observations: all at random, or the first two and then EI-CFX."""
    rng = np.random.default_rng(seed)
    chosen = [int(k) for k in rng.choice(len(here.grid), size=MOST, replace=False)]
    if design == RANDOM:
        return chosen
    chosen = chosen[:2]
    while len(chosen) < MOST:
        alpha = acquisition(here, np.array(chosen), OURS).copy()
        alpha[chosen] = -1.0
        chosen.append(int(np.argmax(alpha)))
    return chosen


def shares(task: tuple[Scene, str, int]) -> dict[str, list[float]]:
    """Return the share of each acquisition's mass in the target set for n = 1 … 8."""
    here, design, seed = task
    known = np.array(observations(here, design, seed))
    return {
        row: [_inside(here, acquisition(here, known[:n], row)) for n in range(1, MOST + 1)]
        for row in ROWS
    }


def _inside(here: Scene, alpha: Array) -> float:
    alpha = np.maximum(alpha, 0.0)
    total = float(alpha.sum())
    # An acquisition without mass counts as uniform.
    return float(alpha[here.inside].sum() / total if total > 0.0 else here.inside.mean())


def run(settings: Settings) -> dict[str, Any]:
    """Measure over 30 draws of the observations, both designs and all scenes."""
    size = settings.pick(51, 25)
    seeds = range(settings.pick(30, 2))
    found = scenes(size, load(MAIN, settings.data))
    tasks = [(name, design, seed) for design in DESIGNS for name in found for seed in seeds]
    todo = [(found[name], design, seed) for name, design, seed in tasks]
    answers = dict(zip(tasks, each(shares, todo, NAME, settings.jobs), strict=True))
    return {
        "epsilon": EPSILON,
        "seeds": len(seeds),
        "size": size,
        "scenes": {
            name: describe(here)
            | {"row": CHOSEN[name][0], "shown": maps(here)}
            | {
                "share": {
                    design: {
                        row: [answers[name, design, seed][row] for seed in seeds] for row in ROWS
                    }
                    for design in DESIGNS
                }
            }
            for name, here in found.items()
        },
    }


def describe(here: Scene) -> dict[str, Any]:
    """Return the description of a scene, for the page and the figure."""
    return {
        "features": here.features,
        "limits": here.limits,
        "f_query": here.potential.origin,
        "query": here.query,
        "area": float(here.inside.mean()),
        "lowest": float(here.p.min()),
        "log_odds_span": float(np.ptp(np.log(here.p / (1.0 - here.p)))),
        "target_set": here.potential.target_set(EPSILON)[0],
    }


def maps(here: Scene) -> dict[str, Any]:
    """Return the maps of one seed for the figure: every second grid point, rounded."""
    known = np.array(observations(here, SEARCHED, SHOWN))
    return {
        "points": here.grid[known],
        "p": np.round(_thin(here.p), 4),
        "maps": {
            row: [_scale(acquisition(here, known[:n], row)) for n in range(1, MOST + 1)]
            for row in (OURS, NAIVE)
        },
    }


def _thin(values: Array) -> Array:
    size = int(np.sqrt(len(values)))
    return values.reshape(size, size)[::2, ::2].ravel()


def _scale(alpha: Array) -> Array:
    """Return a map relative to its maximum, rounded to the precision of a picture."""
    top = max(float(alpha.max()), 1e-300)
    return np.asarray(np.round(np.clip(_thin(alpha) / top, 0.0, 1.0), 3), dtype=float)


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the maps of one seed in every scene, and the shares of all seeds in another file."""
    with figure(path, 17.0, 15.6) as canvas:
        parts: Any = canvas.subfigures(len(result["scenes"]), 1, hspace=0.02)
        for part, (name, scene) in zip(parts, result["scenes"].items(), strict=True):
            _draw_maps(part, name, scene)
    with figure(path.with_name(f"{path.stem}_shares.png"), 15.0, 8.6) as canvas:
        axes = canvas.subplots(len(DESIGNS), len(result["scenes"]), sharex=True, sharey=True)
        for line, design in zip(axes, DESIGNS, strict=True):
            for ax, (name, scene) in zip(line, result["scenes"].items(), strict=True):
                _draw_shares(ax, scene, name, design)
            line[0].set_ylabel("share of the mass\nin the target set")
        for ax in axes[-1]:
            ax.set_xlabel("observations n")
        handles, texts = axes[0, 0].get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside upper center", ncols=len(texts), fontsize=14)


def _draw_maps(part: Any, name: str, scene: dict[str, Any]) -> None:
    axes = part.subplots(2, MOST, sharex=True, sharey=True)
    for line, row in zip(axes, (OURS, NAIVE), strict=True):
        for n, ax in enumerate(line, start=1):
            shade = _draw_map(ax, scene, row, n)
        line[0].set_ylabel(f"{row}\n{scene['features'][1]}", fontsize=13)
    for n, (top, bottom) in enumerate(axes.T, start=1):
        top.set_title(f"n = {n}")
        bottom.set_xlabel(scene["features"][0], fontsize=13)
    key = part.colorbar(shade, ax=axes, ticks=[0, 0.5, 1], pad=0.01, aspect=30)
    key.set_label("acquisition ÷ its maximum\nin the same map", fontsize=12)
    part.suptitle(f"{name}: ★ query, ● observations, red: edges of the target set", fontsize=15)


def _draw_map(ax: Any, scene: dict[str, Any], row: str, n: int) -> Any:
    shown = scene["shown"]
    low, high = np.array(scene["limits"])
    size = round(len(shown["p"]) ** 0.5)
    x, y = np.linspace(low, high, size).T
    values, p = (np.array(v).reshape(size, size).T for v in (shown["maps"][row][n - 1], shown["p"]))
    shade = ax.pcolormesh(x, y, values, cmap="Blues", vmin=0, vmax=1, shading="gouraud")
    ax.contour(x, y, p, levels=scene["target_set"], colors=VERMILION, linewidths=1.8)
    look = {"color": BLACK, "markeredgecolor": "white", "clip_on": False, "zorder": 3}
    ax.plot(*(low + np.array(shown["points"][:n]) * (high - low)).T, "o", markersize=6, **look)
    ax.plot(*(low + np.array(scene["query"]) * (high - low)), "*", markersize=12, **look)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), box_aspect=1)
    ax.locator_params(nbins=3)
    ax.tick_params(labelsize=10)
    ax.grid(False)
    return shade


def _draw_shares(ax: Any, scene: dict[str, Any], name: str, design: str) -> None:
    looks = zip(ROWS, ((BLUE, "o", "-"), (PURPLE, "s", "--"), (GREEN, "D", ":")), strict=True)
    n = np.arange(1, MOST + 1)
    for row, (color, mark, line) in looks:
        found = [share(scene, design, row, int(k)) for k in n]
        ax.plot(n, [e.value for e in found], color=color, marker=mark, linestyle=line, label=row)
        ax.fill_between(n, [e.low for e in found], [e.high for e in found], color=color, alpha=0.2)
    ax.axhline(HALF, color=BLACK, linewidth=1.2, linestyle="--", label="converged")
    ax.axhline(scene["area"], color=GREY, linewidth=1.6, label="share of the area")
    ax.set(ylim=(-0.02, 1.02), xticks=n)
    ax.tick_params(labelbottom=True)
    ax.set_title(f"{name}\nobservations {design}")


def share(scene: dict[str, Any], design: str, row: str, n: int = MOST) -> Estimate:
    """Return the mean share after `n` observations, bootstrapped over the draws of these."""
    return bootstrap(np.array(scene["share"][design][row])[:, n - 1])


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Figure 3 and its text."""
    where = "Section 3, Figure 3"
    found = []
    for name, scene in result["scenes"].items():
        ours, naive, log_odds = (share(scene, SEARCHED, row) for row in ROWS)
        ours_random, naive_random = (share(scene, RANDOM, row).text(".2f") for row in (OURS, NAIVE))
        found += [
            Claim(
                f"acquisition.converges-{KEYS[name]}",
                f"{where} (a)",
                f'EI-CFX recovers the target set "with just 7 or 8 samples" ({name})',
                f"{ours.text('.2f')} of its mass in the set at n = {MOST}; at least {HALF:g} is "
                f"converged (random observations: {ours_random})",
                ours.less(HALF),
                f"the log-odds span {scene['log_odds_span']:.1f}: p is "
                f"{'a cliff' if scene['log_odds_span'] > 10.0 else 'a slope'}; a surrogate of "
                f"log-odds has {log_odds.value:.2f}",
            ),
            Claim(
                f"acquisition.naive-{KEYS[name]}",
                f"{where} (b)",
                f'EI on ρ∘f shows no "meaningful convergence even after 8 samples" ({name})',
                f"{naive.text('.2f')} of its mass in the set at n = {MOST}; at least {HALF:g} is "
                f"converged (random observations: {naive_random})",
                -naive.less(HALF),
                "the observations are those that EI-CFX chooses",
            ),
        ]
    return found


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    scenes_ = result["scenes"]
    rows = "\n".join(
        f"| {name} | {design} | "
        + " | ".join(share(scene, design, row).text(".2f") for row in ROWS)
        + f" | {scene['area']:.2f} |"
        for name, scene in scenes_.items()
        for design in DESIGNS
    )
    verdict = {claim.key: claim.verdict for claim in claims(result)}
    ours, naive = (
        ", ".join(
            f"**{verdict[f'acquisition.{kind}-{KEYS[name]}']}** on {name}" for name in scenes_
        )
        for kind in ("converges", "naive")
    )
    return f"""\
## Figure 3: convergence of the acquisition

The paper does not say which logistic regression, features and row it drew. Three scenes, all
shown: fixed rows of the raw data and models fitted to 1e-10, so that they are the same everywhere.
Share of the acquisition's mass within the ε-target set (ε = {result["epsilon"]:g}) after {MOST}
observations, mean and 95 % interval over {result["seeds"]} draws of the first observations.
**Converged** means, for every acquisition, a share of at least {HALF:g}.

| scene | observations | {" | ".join(ROWS)} | share of the area |
|---|---|{"---|" * len(ROWS)}---|
{rows}

![Figure 3](figures/fig3_acquisition.png)

Each map is divided by its own maximum (colour key); observations chosen by EI-CFX, first seed. That
EI-CFX converges: {ours}. That EI on ρ∘f does not: {naive}. With random observations, which lie
further apart, EI on ρ∘f has more of its mass in the set, see the table. RBF and zero mean on p have
to learn a sigmoid from {MOST} points; on log-odds (Matérn 5/2, the library's default for
probabilities) it is a plane. [All n](reproduction-details.md#figure-3-all-n).
"""


def details(result: dict[str, Any]) -> str:
    """Return the scenes and the shares after every observation."""
    steps = range(1, MOST + 1)
    lines = "\n".join(
        f"| {name} | {design} | {row} | "
        + " | ".join(f"{share(scene, design, row, n).value:.2f}" for n in steps)
        + " |"
        for name, scene in result["scenes"].items()
        for design in DESIGNS
        for row in ROWS
    )
    descriptions = "\n".join(
        f"* {_describe_scene(name, scene)}" for name, scene in result["scenes"].items()
    )
    return f"""\
## Figure 3: all n

{descriptions}

| scene | observations | acquisition | {" | ".join(f"n = {n}" for n in steps)} |
|---|---|---|{"---|" * MOST}
{lines}

![Figure 3, shares](figures/fig3_acquisition_shares.png)
"""


def _describe_scene(name: str, scene: dict[str, Any]) -> str:
    return (
        f"**{name}**: {' and '.join(scene['features'])}, row {scene['row']} of the raw data: "
        f"{CHOSEN[name][1]}. f(q) = {scene['f_query']:.6f}, lowest p {scene['lowest']:.3g}; "
        f"log-odds span {scene['log_odds_span']:.1f}; the ε-target set is {scene['area']:.1%} of "
        "the square."
    )
