"""Table 2: the taxi trip, eight questions, beside brute force.

Every question is asked as in the paper (potential only, no cost of moving), on both readings of
"per cent" and with both ways to treat the minute of the day.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments import taxi
from experiments.drawing import BLACK, BLUE, GREY, ORANGE, VERMILION, figure
from experiments.runs import Settings, each
from experiments.table2_words import ANY_ROW, DEAR, LOG, PAPER, SECONDS, STAYS, tell

__all__ = ["NAME", "draw", "run", "tell"]

NAME = "table2_taxi"
BUDGET = 200
EARLY = 100  # shares of brute force are also given for a search that ends here
DISTANCES = (2_001, 201)  # of the grid: full, quick
TOLERANCE = 0.05  # the library's default; the paper's own results miss by up to 4.5 %


@dataclass(frozen=True)
class Variant:
    """One way to read the experiment."""

    name: str
    seconds: bool = False
    derive: bool = True
    lower_tail: bool = True
    cost: bool = False
    seeds: int = 3


VARIANTS = (
    Variant(LOG),
    Variant(SECONDS, seconds=True),
    # what another reading changes shows with one seed
    Variant(STAYS, derive=False, seeds=1),
    Variant(ANY_ROW, lower_tail=False, seeds=1),
    Variant(DEAR, cost=True, seeds=1),
)


@dataclass(frozen=True, eq=False)
class Scene:
    """A variant with its query, model, space, and every row of the grid."""

    variant: Variant
    query: pd.Series[Any]
    model: taxi.Duration
    space: cfx.Space
    start: float
    rows: pd.DataFrame
    outputs: Array

    def task(self, k: int, seeds: int) -> tuple[Any, ...]:
        """Return what `ask` needs for row `k` of the table."""
        percent, bound, _, _ = PAPER[k]
        space = self.space if bound is None else self.space.max_changes(bound)
        return self.model, self.query, space, percent, range(seeds)


def run(settings: Settings) -> dict[str, Any]:
    """Ask the eight questions in every variant."""
    rounds = settings.pick(taxi.ROUNDS, 10)
    data = taxi.load(settings.data, rounds=rounds)
    scenes = [_scene(data, v, settings) for v in VARIANTS[: settings.pick(len(VARIANTS), 2)]]
    # targets out of reach take longest: they go first
    order = sorted(
        ((k, i) for k in range(len(PAPER)) for i in range(len(scenes))),
        key=lambda pair: -PAPER[pair[0]][0],
    )
    tasks = [scenes[i].task(k, settings.pick(scenes[i].variant.seeds, 1)) for k, i in order]
    found = dict(zip(order, each(ask, tasks, NAME, settings.jobs), strict=True))
    return {
        "trips_read": data.read,
        "trips": len(data.rows),
        "faster_than_30_km_h": data.fast,
        "rounds": rounds,
        "distance_sd": data.reach,
        "rmse_log_train": _rmse(data),
        "distances": settings.pick(*DISTANCES),
        "budget": BUDGET,
        "early": EARLY,
        "matches": len(data.matches()),
        "variants": {
            scene.variant.name: _variant(
                data, scene, [found[k, i] for k in range(len(PAPER))], settings
            )
            for i, scene in enumerate(scenes)
        },
    }


def _rmse(data: taxi.Taxi) -> float:
    miss = data.model(data.rows) - np.log(data.seconds.to_numpy())
    return float(np.sqrt(np.mean(miss**2)))


def _scene(data: taxi.Taxi, variant: Variant, settings: Settings) -> Scene:
    query = data.query(lower_tail=variant.lower_tail)
    model = taxi.Duration(data.model.booster, variant.seconds)
    space = data.space(query, derive=variant.derive)
    if not variant.cost:
        space = space.cost(weight=0)
    rows = taxi.grid(data, query, settings.pick(*DISTANCES), derive=variant.derive)
    start = float(model(query.to_frame().T.astype(data.rows.dtypes.to_dict()))[0])
    return Scene(variant, query, model, space, start, rows, model(rows))


def _variant(
    data: taxi.Taxi, scene: Scene, answers: list[list[dict[str, Any]]], settings: Settings
) -> dict[str, Any]:
    rows, query = scene.rows, scene.query
    changed = _changed(rows, query)
    found = []
    for (percent, bound, _, _), mine in zip(PAPER, answers, strict=True):
        allowed = np.ones(len(rows), bool) if bound is None else changed <= bound
        best = _brute(rows[allowed], scene.outputs[allowed], query, scene.start, percent)
        shares = {
            when: [answer[key] / best["potential"] for answer in mine]
            for when, key in (("share", "potential"), ("share_early", "potential_early"))
        }
        found.append({"percent": percent, "bound": bound, "brute": best, **shares, "answers": mine})
    change = 100 * (scene.outputs / scene.start - 1)
    shorter = (changed == 1) & (rows["distance"] < query["distance"]).to_numpy()
    return {
        "seeds": settings.pick(scene.variant.seeds, 1),
        "query": {name: float(query[name]) for name in (*taxi.FREE, "minute_of_day", "week")},
        "seconds": data.duration(query),
        "output": scene.start,
        "reachable_percent": [float(change.min()), float(change.max())],
        "shorter_trip_percent": float(change[shorter].max()),
        "rows": found,
    }


def ask(task: tuple[taxi.Duration, pd.Series[Any], cfx.Space, int, range]) -> list[dict[str, Any]]:
    """Ask one question, once per seed; return the answers in the table's terms."""
    model, query, space, percent, seeds = task
    found = []
    for seed in seeds:
        answer = cfx.explain(
            model,
            query,
            space,
            cfx.increase(percent=percent),
            budget=BUDGET,
            tolerance=TOLERANCE,
            rng=seed,
        )
        found.append(
            {
                "status": answer.status,
                "stopped": answer.stopped,
                "calls": answer.n_evaluations,
                "potential": answer.best.potential,
                "potential_early": min(float(answer.trace[:EARLY].max()), answer.best.potential),
                "probability_reachable": answer.probability_reachable,
                "percent": 100 * (answer.best.output / answer.output - 1),
                "moves": _moves(answer.best.row, query),
                "verified": answer.verify(model),
            }
        )
    return found


def _moves(row: Any, query: pd.Series[Any]) -> list[float]:
    """Return the changes of passengers, weekday (the short way round), hour and distance."""
    moves = [float(row[name]) - float(query[name]) for name in taxi.FREE]
    moves[1] = (moves[1] + 3) % 7 - 3
    return moves


def _changed(rows: pd.DataFrame, query: pd.Series[Any]) -> Array:
    """Return how many of the four features differ from the query."""
    return np.asarray(sum((rows[name] != query[name]).to_numpy(int) for name in taxi.FREE))


def _brute(
    rows: pd.DataFrame, outputs: Array, query: pd.Series[Any], start: float, percent: int
) -> dict[str, Any]:
    """Return the grid's best row by potential, and whether it is within the tolerance."""
    wish = cfx.increase(percent=percent)
    potential = wish.potential(start)
    worth = potential.value(outputs) / potential.peak
    k = int(np.argmax(worth))
    ((low, high),) = wish.acceptance(start, TOLERANCE)
    accepted = int(((outputs >= low) & (outputs <= high)).sum())
    return {
        "potential": float(worth[k]),
        "percent": float(100 * (outputs[k] / start - 1)),
        "moves": _moves(rows.iloc[k], query),
        "satisfiable": accepted > 0,
        "accepted": accepted,
        "rows": len(rows),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw target, result and brute force for each row and both readings."""
    names = [name for name in (LOG, SECONDS) if name in result["variants"]]
    labels = [f"+{p} %, {'no bound' if b is None else f'ℓ0 ≤ {b}'}" for p, b, _, _ in PAPER]
    with figure(path, 15.0, 6.2) as canvas:
        axes = np.atleast_1d(canvas.subplots(1, len(names), sharey=True))
        for ax, name in zip(axes, names, strict=True):
            _draw_rows(ax, result["variants"][name], with_paper=name == LOG)
            ax.set(yticks=range(len(PAPER)), yticklabels=labels[::-1])
            ax.set_title(f"per cent of the {'logarithm' if name == LOG else 'seconds'}", pad=10)
        handles, texts = axes[0].get_legend_handles_labels()
        canvas.legend(handles, texts, loc="outside upper center", ncols=len(texts), markerscale=0.7)


def _draw_rows(ax: Any, part: dict[str, Any], *, with_paper: bool) -> None:
    """Draw each row of the table on a line of its own, from the top."""
    y = np.arange(len(PAPER))[::-1]
    found = [[answer["percent"] for answer in row["answers"]] for row in part["rows"]]
    wide: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none"}
    ax.plot([p for p, _, _, _ in PAPER], y, "|", color=BLACK, markersize=30, mew=3, label="target")
    brute = [row["brute"]["percent"] for row in part["rows"]]
    ax.plot(brute, y, marker="s", color=ORANGE, ms=15, mew=2.5, label="brute force", **wide)
    heights = np.repeat(y, [len(percents) for percents in found])
    ax.plot(np.concatenate(found), heights, "o", color=BLUE, ms=6.5, label="Bayes-CFX, each seed")
    if with_paper:
        theirs = [outcome for _, _, _, outcome in PAPER]
        ax.plot(theirs, y - 0.33, "x", color=VERMILION, ms=8, mew=2.2, label="paper, its own trip")
    top = part["reachable_percent"][1]
    if top < 130:
        ax.axvline(
            top, color=GREY, linestyle="--", linewidth=1.6, label="highest reachable", zorder=1
        )
    ax.set(xlabel="change of the output, %", xlim=(0, 115), ylim=(-0.7, len(PAPER) - 0.4))
