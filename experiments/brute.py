"""Brute force on taxi trips: the best row, other boosting rounds, trips of one kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments import taxi
from experiments.table2_claims import PAPER, TOLERANCE


def frame(data: taxi.Taxi, query: pd.Series[Any]) -> pd.DataFrame:
    """Return a trip as a table of one row."""
    return query.to_frame().T.astype(data.rows.dtypes.to_dict())


def moves_of(row: Any, query: pd.Series[Any]) -> list[float]:
    """Return the changes of passengers, weekday (the short way round), hour and distance."""
    moves = [float(row[name]) - float(query[name]) for name in taxi.FREE]
    moves[1] = (moves[1] + 3) % 7 - 3
    return moves


def changed_of(rows: pd.DataFrame, query: pd.Series[Any]) -> Array:
    """Return the number of changed features of each row."""
    return np.asarray(sum((rows[name] != query[name]).to_numpy(int) for name in taxi.FREE))


def best(
    rows: pd.DataFrame, outputs: Array, query: pd.Series[Any], start: float, percent: int
) -> dict[str, Any]:
    """Return the grid's best row by potential, and whether it is within the tolerance."""
    target = cfx.reach(percent=percent)
    potential = target.potential(start)
    values = potential.value(outputs) / potential.peak
    k = int(np.argmax(values))
    ((low, high),) = target.acceptance(start, TOLERANCE)
    accepted = int(((outputs >= low) & (outputs <= high)).sum())
    return {
        "potential": float(values[k]),
        "percent": float(100 * (outputs[k] / start - 1)),
        "moves": moves_of(rows.iloc[k], query),
        "satisfiable": accepted > 0,
        "accepted": accepted,
        "rows": len(rows),
    }


def by_rounds(
    data: taxi.Taxi, query: pd.Series[Any], rows: pd.DataFrame, rounds: list[int]
) -> list[dict[str, Any]]:
    """Return errors and the highest change at each ℓ0 bound, by number of boosting rounds."""
    outputs, start = (data.model.after(table, rounds) for table in (rows, frame(data, query)))
    change = 100 * (outputs / start - 1)
    changed = changed_of(rows, query)
    return [
        {
            "rounds": count,
            "rmse": errors,
            "highest": [change[k, changed <= bound].max() for bound in range(1, 5)],
        }
        for k, (count, errors) in enumerate(zip(rounds, taxi.errors(data, rounds), strict=True))
    ]


def trip(
    data: taxi.Taxi, model: taxi.Duration, query: pd.Series[Any], points: int
) -> dict[str, Any]:
    """Return the changes of the output, in per cent, that brute force finds for one trip."""
    rows = taxi.grid(data, query, points)
    change = 100 * (model(rows) / model(frame(data, query))[0] - 1)
    moves = np.array([moves_of(row, query) for row in rows[list(taxi.FREE)].to_dict("records")])
    passengers, _, hour, distance = moves.T
    alone = (moves != 0).sum(axis=1) == 1
    targets = sorted({percent for percent, _, _, _ in PAPER})
    hits = np.any([np.abs(change - t) <= TOLERANCE * t for t in targets], axis=0)
    later, others = (passengers[hits & here] for here in (hour == 1, hour != 1))
    return {
        "highest": change.max(),
        "distance_alone": change[alone & (distance != 0)].max(),
        "without_distance": change[distance == 0].max(),
        "best_moves_passengers": bool(passengers[np.argmax(change)] != 0),
        "with_passengers": change.max() - change[passengers == 0].max(),
        "shorter_alone": change[alone & (distance < 0)].max(initial=-100.0),
        "hour_earlier": change[hour == -1].mean() - change[hour == 0].mean(),
        "passengers_later": later.mean() - others.mean() if len(later) and len(others) else None,
    }


def passengers_of(data: taxi.Taxi) -> dict[str, Any]:
    """Return passengers of trips on Saturday at 11, and their mean on weekdays at 10."""
    r = data.rows
    brunch = r.loc[(r["weekday"] == 5) & (r["hour"] == 11), "passenger_count"]
    weekdays = r.loc[(r["weekday"] < 5) & (r["hour"] == 10), "passenger_count"]
    return {"saturday_11": brunch.tolist(), "weekdays_10": float(weekdays.mean())}
