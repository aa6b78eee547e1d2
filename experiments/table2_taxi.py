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

NAME = "table2_taxi"
BUDGET = 100
TOLERANCE = 0.05  # the library's default; the paper's own results miss by up to 4.5 %

# target in per cent, l0 bound, the paper's changes and result
PAPER: tuple[tuple[int, int | None, tuple[float, ...], float], ...] = (
    (20, 1, (0, 0, 0, 2.16), 19.6),
    (20, 2, (0, 2, 0, 1.12), 19.5),
    (20, 3, (0, 1, -1, 1.18), 19.9),
    (20, 4, (2, -2, 1, 0.92), 20.9),
    (10, 3, (0, 0, 0, -0.31), 10.1),
    (50, 3, (0, 1, -1, 2.45), 50.0),
    (100, 3, (2, 2, 0, 3.67), 56.7),
    (100, None, (2, 2, 1, 3.89), 57.9),
)


@dataclass(frozen=True)
class Variant:
    """One way to read the experiment."""

    name: str
    seconds: bool = False
    derive: bool = True
    lower_tail: bool = True
    cost: bool = False


VARIANTS = (
    Variant("log, minute follows the hour"),
    Variant("log, minute stays", derive=False),
    Variant("seconds", seconds=True),
    Variant("log, nearest row whatever its duration", lower_tail=False),
    Variant("log, with the library's cost of moving", cost=True),
)


def run(settings: Settings) -> dict[str, Any]:
    """Ask the eight questions in every variant."""
    data = taxi.load(settings.data, rounds=settings.pick(taxi.ROUNDS, 10))
    variants = VARIANTS[: settings.pick(len(VARIANTS), 1)]
    result: dict[str, Any] = {
        "trips_read": data.read,
        "trips": len(data.rows),
        "rounds": settings.pick(taxi.ROUNDS, 10),
        "distance_sd": data.reach,
        "rmse_log_train": _rmse(data),
        "budget": BUDGET,
        "seeds": settings.pick(3, 1),
        "matches": len(data.matches()),
        "variants": {},
    }
    for variant in variants:
        result["variants"][variant.name] = _variant(data, variant, settings)
    return result


def _rmse(data: taxi.Taxi) -> float:
    miss = data.model(data.rows) - np.log(data.seconds.to_numpy())
    return float(np.sqrt(np.mean(miss**2)))


def _variant(data: taxi.Taxi, variant: Variant, settings: Settings) -> dict[str, Any]:
    query = data.query(lower_tail=variant.lower_tail)
    model = taxi.Duration(data.model.booster, variant.seconds)
    space = data.space(query, derive=variant.derive)
    if not variant.cost:
        space = space.cost(weight=0)
    rows = taxi.grid(data, query, settings.pick(2_001, 201), derive=variant.derive)
    outputs = model(rows)
    start = float(model(query.to_frame().T.astype(data.rows.dtypes.to_dict()))[0])
    seeds = range(settings.pick(3, 1))
    tasks = [
        (model, query, space if bound is None else space.max_changes(bound), percent, seeds)
        for percent, bound, _, _ in PAPER
    ]
    answers = each(ask, tasks, f"taxi: {variant.name}"[:44], settings.jobs)
    found = []
    for (percent, bound, _, _), mine in zip(PAPER, answers, strict=True):
        allowed = np.ones(len(rows), bool) if bound is None else _changed(rows, query) <= bound
        best = _brute(rows[allowed], outputs[allowed], query, start, percent)
        shares = [answer["potential"] / best["potential"] for answer in mine]
        found.append(
            {"percent": percent, "bound": bound, "brute": best, "share": shares, "answers": mine}
        )
    change = 100 * (outputs / start - 1)
    return {
        "query": {name: float(query[name]) for name in (*taxi.FREE, "minute_of_day", "week")},
        "seconds": data.duration(query),
        "output": start,
        "reachable_percent": [float(change.min()), float(change.max())],
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
    return {
        "potential": float(worth[k]),
        "percent": float(100 * (outputs[k] / start - 1)),
        "moves": _moves(rows.iloc[k], query),
        "satisfiable": bool(((outputs >= low) & (outputs <= high)).any()),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw target, result and brute force for each row and both readings."""
    names = [v for v in ("log, minute follows the hour", "seconds") if v in result["variants"]]
    labels = [f"+{p} %, {'no bound' if b is None else f'≤ {b}'}" for p, b, _, _ in PAPER]
    with figure(path, 15.0, 5.6) as canvas:
        axes = np.atleast_1d(canvas.subplots(1, len(names), sharey=True))
        for ax, name in zip(axes, names, strict=True):
            part = result["variants"][name]
            for k, row in enumerate(part["rows"]):
                y = len(PAPER) - 1 - k
                found = [answer["percent"] for answer in row["answers"]]
                ax.plot([row["percent"]] * 2, [y - 0.35, y + 0.35], color=BLACK, linewidth=3)
                ax.plot(row["brute"]["percent"], y, "s", color=ORANGE, markersize=13)
                ax.plot(found, [y] * len(found), "o", color=BLUE, markersize=6)
                if name != "seconds":
                    ax.plot(PAPER[k][3], y, "x", color=VERMILION, markersize=9, markeredgewidth=2)
            ax.axvline(part["reachable_percent"][1], color=GREY, linestyle="--")
            ax.annotate(
                "highest\nreachable", (part["reachable_percent"][1], 6.6), color=GREY, fontsize=10
            )
            ax.set(
                yticks=range(len(PAPER)), yticklabels=labels[::-1], xlabel="change of the output, %"
            )
            ax.set_title("per cent of the seconds" if name == "seconds" else "per cent of the log")
            top = 130 if part["reachable_percent"][1] > 130 else 110
            ax.set_xlim(0, top)
        marks = [("|", BLACK, "target"), ("s", ORANGE, "brute force"), ("o", BLUE, "Bayes-CFX")]
        for mark, color, label in (*marks, ("x", VERMILION, "paper")):
            axes[0].plot([], [], mark, color=color, markersize=9, label=label)
        axes[0].legend(loc="upper right")


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    variants = result["variants"]
    main = variants[VARIANTS[0].name]
    low, high = main["reachable_percent"]
    tables = "\n\n".join(
        f"### {name}\n\n{_headline(part)}\n\n{_table(part)}" for name, part in variants.items()
    )
    return f"""\
## Table 2: New York taxi

Preprocessing and LightGBM of the appendix on the shared 5 % sample: {result["trips_read"]:,} trips,
{result["trips"]:,} after filtering, RMSE of log(duration) {result["rmse_log_train"]:.3f} on the
training data. The paper does not say how many boosting rounds it used ({result["rounds"]} here,
LightGBM's default) and gives no unit for "speed < 30" (m/s here; 30 km/h would drop one trip in
twenty). `bagging_fraction` has no effect without `bagging_freq`, which the paper does not mention.
The query is the trip nearest to the paper's among {result["matches"]} (one passenger, Monday in
May, 10 AM) whose duration is in the lowest tenth ("lower tail"): {main["query"]["distance"]:.2f} km
in {main["seconds"]:.0f} s. Free: passengers +0…+2, weekday ±2 (cyclic), hour ±2, distance ±
{result["distance_sd"]:.2f} km (one standard deviation; not below 0). {result["budget"]} calls,
{result["seeds"]} seeds; shown is the first seed, shares of brute force for all. Brute force: all 75
combinations with 2,001 distances.

{tables}

![Table 2](figures/table2_taxi.png)

{_verdict(result, low, high)}
"""


def _headline(part: dict[str, Any]) -> str:
    q = part["query"]
    low, high = part["reachable_percent"]
    return (
        f"f(q) = {part['output']:.3f} for {q['distance']:.2f} km; "
        f"reachable: {low:+.1f} % to {high:+.1f} %."
    )


def _table(part: dict[str, Any]) -> str:
    lines = [
        "| target | ℓ0 | paper: moves → result | ours: moves → result | brute force | share of "
        "brute force | calls | status |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (percent, bound, moves, outcome), row in zip(PAPER, part["rows"], strict=True):
        first = row["answers"][0]
        shares = " ".join(f"{share:.3f}" for share in row["share"])
        calls = " ".join(str(answer["calls"]) for answer in row["answers"])
        states = sorted({answer["status"].replace("_", " ") for answer in row["answers"]})
        lines.append(
            f"| +{percent} % | {'∞' if bound is None else bound} | {_told(moves)} → "
            f"{outcome:+.1f} % | "
            f"{_told(first['moves'])} → {first['percent']:+.1f} % | "
            f"{row['brute']['percent']:+.1f} %"
            f"{'' if row['brute']['satisfiable'] else ' (out of reach)'} | {shares} | {calls} | "
            f"{', '.join(states)} |"
        )
    return "\n".join(lines)


def _told(moves: Any) -> str:
    passengers, weekday, hour, distance = moves
    return f"({passengers:+.0f}, {weekday:+.0f}, {hour:+.0f}, {distance:+.2f})"


def _verdict(result: dict[str, Any], low: float, high: float) -> str:
    """Say what agrees, what does not, and whether the promises hold."""
    rows = [row for part in result["variants"].values() for row in part["rows"]]
    can = [row for row in rows if row["brute"]["satisfiable"]]
    cannot = [row for row in rows if not row["brute"]["satisfiable"]]
    worst = min(min(row["share"]) for row in can)
    log = min(
        min(row["share"])
        for name, part in result["variants"].items()
        for row in part["rows"]
        if name != "seconds" and row["brute"]["satisfiable"]
    )
    states = [a["status"] for row in cannot for a in row["answers"]]
    called = sum(state == "unreachable" for state in states)
    wrong = sum(a["status"] == "unreachable" for row in can for a in row["answers"])
    least = min((min(row["share"]) for row in cannot), default=1.0)
    text = [
        "* **Every satisfiable row reaches ≥ 0.99 of brute force:** "
        f"{'yes' if log >= 0.99 else '**no**'} on the log scale, the paper's (lowest {log:.4f} "
        f"over all rows and seeds); the lowest of all, seconds included, is {worst:.4f}.",
        f"* **The unreachable ones are called so:** {called} of {len(states)} searches end as "
        f'"unreachable", the others as "best guess"; {wrong} searches of reachable rows are '
        f"wrongly called unreachable. Best guesses have at least {least:.3f} of brute force.",
        f"* **Per cent of what?** On the log scale the highest reachable is {high:+.1f} % (paper: "
        "+57.9 %), so +100 % is out of reach, as the paper's brute force found. "
        + _seconds(result),
    ]
    stays = result["variants"].get(VARIANTS[1].name)
    if stays:
        text.append(
            "* **The minute of the day** follows the hour in the first table, so that rows stay "
            f"possible. If it stays, {stays['reachable_percent'][1]:+.1f} % instead of "
            f"{high:+.1f} % is the highest reachable: "
            "a row at 9:00 whose minute of the day says 10:39 is one the trees never saw."
        )
    text += [
        f'* *"Distance … appears in all counterfactuals"*: {_distance(result)}',
        "* **Why the moves differ:** another query, a model from a twentieth of the data, and "
        "many equally good answers: a potential without a cost of moving does not say which one. "
        "With the cost (last table) the "
        "answers are the nearest ones, and fewer features move.",
        "* The paper moves Monday by −2 days to Saturday: weekday is cyclic, here too.",
    ]
    return "\n".join(text)


def _seconds(result: dict[str, Any]) -> str:
    part = result["variants"].get("seconds")
    if part is None:
        return ""
    top = part["reachable_percent"][1]
    return (
        f"On the scale of seconds up to {top:+,.0f} % is reachable and +100 % is easy: "
        "only the log reading fits the paper."
    )


def _distance(result: dict[str, Any]) -> str:
    rows = result["variants"][VARIANTS[0].name]["rows"]
    moved = sum(row["answers"][0]["moves"][3] != 0.0 for row in rows)
    return f"in {moved} of {len(rows)} of ours."
