"""New York taxi trips as in the paper's appendix: preprocessing, LightGBM, query, space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.data import load_taxi

FREE = ("passenger_count", "weekday", "hour", "distance")
PAPER_DISTANCE = 0.41
EARTH = 6371.0  # km
ROUNDS = (100, 200, 300, 400)  # the paper does not give the number
PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.1,
    "max_depth": 25,
    "num_leaves": 1000,
    "feature_fraction": 0.9,
    "bagging_fraction": 0.5,
    "max_bin": 1000,
    "seed": 123,
    # the same trees on every run
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


@dataclass(frozen=True)
class Duration:
    """Predicted duration of rows: its logarithm, as in the model, or seconds."""

    booster: lgb.Booster
    seconds: bool = False

    def __call__(self, rows: pd.DataFrame) -> Array:
        """Return durations ``(n,)``."""
        log = np.asarray(self.booster.predict(rows, num_threads=1))
        return np.exp(log) if self.seconds else log

    def after(self, rows: pd.DataFrame, rounds: Sequence[int]) -> Array:
        """Return logarithms of durations ``(stages, n)`` after each number of boosting rounds."""
        parts: Any = [
            self.booster.predict(rows, start_iteration=a, num_iteration=b - a, num_threads=1)
            for a, b in pairwise((0, *rounds))
        ]
        return np.cumsum(parts, axis=0)

    def until(self, rounds: int) -> Duration:
        """Return the same model after fewer rounds."""
        text = self.booster.model_to_string(num_iteration=rounds)
        return Duration(lgb.Booster(model_str=text), self.seconds)


@dataclass(frozen=True, eq=False)
class Taxi:
    """The model and its data.

    Parameters
    ----------
    rows : DataFrame
        All trips after preprocessing.
    seconds : Series
        Their durations.
    model : Duration
        On the logarithmic scale, after all rounds.
    read : int
        Trips in the file.
    """

    rows: pd.DataFrame
    seconds: pd.Series[Any]
    model: Duration
    read: int

    @property
    def reach(self) -> float:
        """One standard deviation of the distance, in km."""
        return float(self.rows["distance"].std())

    @property
    def fast(self) -> float:
        """The share of trips that a limit of 30 km/h in place of 30 m/s would drop."""
        return float((3600 * self.rows["distance"] / self.seconds >= 30).mean())

    def matches(self, *, may: bool = True, lower_tail: bool = False) -> pd.DataFrame:
        """Return one-passenger trips on Mondays at 10 AM, nearest to the paper's 0.41 km first.

        In May alone, and with a duration in the lowest tenth, if so wished.
        """
        r = self.rows
        kind = (r["passenger_count"] == 1) & (r["weekday"] == 0) & (r["hour"] == 10)
        kind &= (r["month"] == 5) | (not may)
        kind &= (self.seconds <= self.seconds.quantile(0.1)) | (not lower_tail)
        gap = (r.loc[kind, "distance"] - PAPER_DISTANCE).abs()
        return r.loc[gap.sort_values(kind="stable").index]

    def duration(self, query: pd.Series[Any]) -> float:
        """Return the duration of a trip of the data, in seconds."""
        return float(self.seconds[self.rows.index == query.name].iloc[0])

    def space(self, query: pd.Series[Any], *, derive: bool = True) -> cfx.Space:
        """Return the paper's space; the minute of the day follows the hour, or is fixed."""
        kinds = {"weekday": cfx.Integer(0, 6, cyclic=True), "hour": cfx.Integer(0, 23)}
        reach = self.reach
        space = (
            cfx.Space.from_data(self.rows, kinds={**kinds, "passenger_count": "integer"})
            .allow(*FREE)
            .move({"passenger_count": (0, 2), "weekday": (-2, 2), "hour": (-2, 2)})
            .move({"distance": (-reach, reach)})
        )
        if not derive:
            return space
        return space.derive("minute_of_day", MinuteOfDay(int(query["minute_of_day"]) % 60))


@dataclass(frozen=True)
class MinuteOfDay:
    """The minute of the day, given the minute past the hour."""

    past: int

    def __call__(self, rows: pd.DataFrame) -> Array:
        """Return minutes since midnight ``(n,)``."""
        return np.asarray(60 * rows["hour"] + self.past)


def haversine(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return the great-circle distance in km between (lat a, lon b) and (lat c, lon d)."""
    a, b, c, d = (np.radians(angle) for angle in (a, b, c, d))
    h = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(h))


def bearing(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return the direction in degrees from (lat a, lon b) to (lat c, lon d)."""
    a, b, c, d = (np.radians(angle) for angle in (a, b, c, d))
    east = np.sin(d - b) * np.cos(c)
    north = np.cos(a) * np.sin(c) - np.sin(a) * np.cos(c) * np.cos(d - b)
    return np.degrees(np.arctan2(east, north))


def preprocess(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return features and durations in seconds after the appendix's seven steps."""
    keep = (table["trip_duration"] < 5900) & (table["passenger_count"] > 0)
    keep &= (table["pickup_longitude"] > -100) & (table["pickup_latitude"] < 50)
    t = table[keep]
    when = pd.to_datetime(t["pickup_datetime"])
    ends = [
        t[f"{end}_{axis}"] for end in ("pickup", "dropoff") for axis in ("latitude", "longitude")
    ]
    rows = pd.DataFrame(
        {
            "passenger_count": t["passenger_count"],
            "pickup_longitude": t["pickup_longitude"],
            "pickup_latitude": t["pickup_latitude"],
            "dropoff_longitude": t["dropoff_longitude"],
            "dropoff_latitude": t["dropoff_latitude"],
            "month": when.dt.month,
            "week": when.dt.isocalendar().week.astype("int64"),
            "weekday": when.dt.day_of_week,
            "hour": when.dt.hour,
            "minute_of_day": 60 * when.dt.hour + when.dt.minute,
            "distance": haversine(*ends),
            "direction": bearing(*ends),
        }
    )
    for level in ("N", "Y"):
        rows[f"store_and_fwd_flag_{level}"] = (t["store_and_fwd_flag"] == level).astype("int64")
    for vendor in (1, 2):
        rows[f"vendor_id_{vendor}"] = (t["vendor_id"] == vendor).astype("int64")
    speed = 1000 * rows["distance"] / t["trip_duration"]  # m/s; 30 km/h would drop every 20th trip
    good = (rows["distance"] < 200) & (speed < 30)
    whole = rows.select_dtypes("int32").columns
    return rows[good].astype(dict.fromkeys(whole, "int64")), t.loc[good, "trip_duration"]


def load(folder: Path | None = None, rounds: int = ROUNDS[-1]) -> Taxi:
    """Return data and fitted model."""
    table = load_taxi(folder)
    rows, seconds = preprocess(table)
    return Taxi(rows, seconds, _fit(rows, seconds, rounds), len(table))


def _fit(rows: pd.DataFrame, seconds: pd.Series[Any], rounds: int) -> Duration:
    return Duration(lgb.train(PARAMETERS, lgb.Dataset(rows, np.log(seconds)), rounds))


def errors(taxi: Taxi, rounds: Sequence[int]) -> Array:
    """Return the RMSE of log(duration) on 80 % that are fitted and the other 20 %, ``(stages, 2)``.

    The split is drawn with seed 0.
    """
    order = np.random.default_rng(0).permutation(len(taxi.rows))
    parts = np.split(order, [int(0.8 * len(order))])
    model = _fit(taxi.rows.iloc[parts[0]], taxi.seconds.iloc[parts[0]], rounds[-1])
    found = []
    for part in parts:
        miss = model.after(taxi.rows.iloc[part], rounds) - np.log(
            taxi.seconds.iloc[part].to_numpy()
        )
        found.append(np.sqrt(np.mean(miss**2, axis=1)))
    return np.stack(found, axis=1)


def grid(taxi: Taxi, query: pd.Series[Any], points: int, *, derive: bool = True) -> pd.DataFrame:
    """Return every combination of passengers, weekday and hour with a fine grid of distances."""
    near = float(query["distance"])
    reach = taxi.reach
    distance = np.unique(np.append(np.linspace(max(near - reach, 0.0), near + reach, points), near))
    steps = np.stack(
        np.meshgrid(range(3), range(-2, 3), range(-2, 3), distance, indexing="ij"), axis=-1
    ).reshape(-1, 4)
    rows = query.to_frame().T.iloc[np.zeros(len(steps), dtype=int)].reset_index(drop=True)
    rows = rows.astype(taxi.rows.dtypes.to_dict())
    rows["passenger_count"] += steps[:, 0].astype(int)
    rows["weekday"] = (rows["weekday"] + steps[:, 1].astype(int)) % 7
    rows["hour"] += steps[:, 2].astype(int)
    rows["distance"] = steps[:, 3]
    if derive:
        rows["minute_of_day"] += 60 * steps[:, 2].astype(int)
    return rows
