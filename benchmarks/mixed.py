"""Tables with categorical columns, Adult and taxi trips, and their constraints.

Like `problems`, this does not depend on the measured library: the constraints are data that can be
translated for every library, and they are checked here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from experiments.data import DataError, load_adult, load_taxi
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Array = NDArray[np.float64]

ROWS = 10_000  # of each table; a search needs no more, and dice-ml reads all rows
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad"),
    *("Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school"),
    "Doctorate",
)


@dataclass(frozen=True)
class Rules:
    """Constraints besides the ranges and levels of the data."""

    fixed: tuple[str, ...] = ()  # never change
    up: tuple[str, ...] = ()  # never decrease
    within: Mapping[str, tuple[float, float]] = field(
        default_factory=dict
    )  # limits of changed values
    period: Mapping[str, int] = field(default_factory=dict)  # cyclic integers from 0


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows `X` with numeric and categorical columns, their outcomes `y`, and the constraints."""

    name: str
    X: pd.DataFrame
    y: Array
    rules: Rules

    def row(self, i: int) -> pd.Series[Any]:
        """Return one row."""
        found: pd.Series[Any] = self.X.iloc[i]
        return found

    def stack(self, *rows: pd.Series[Any]) -> pd.DataFrame:
        """Return rows in the form that the model takes."""
        cells = {name: [row[name] for row in rows] for name in self.names}
        return pd.DataFrame(cells).astype(self.X.dtypes.to_dict())

    def codes(self, frame: pd.DataFrame) -> Array:
        """Return codes of shape (n, d): numbers, and positions of levels."""
        columns = [
            c.cat.codes if isinstance(c.dtype, pd.CategoricalDtype) else c for _, c in frame.items()
        ]
        return np.array(columns, dtype=np.float64).T

    @cached_property
    def names(self) -> list[str]:
        """Return the columns."""
        return [str(name) for name in self.X]

    @cached_property
    def has_levels(self) -> NDArray[np.bool_]:
        """Return which columns have levels."""
        return np.array([isinstance(t, pd.CategoricalDtype) for t in self.X.dtypes])

    @cached_property
    def ordered(self) -> NDArray[np.bool_]:
        """Return which columns have a scale: numbers, and ordered levels."""
        return np.array([getattr(t, "ordered", True) is not False for t in self.X.dtypes])

    @cached_property
    def scale(self) -> Array:
        """Return each column's scale, see `spread`."""
        return spread(self.codes(self.X))

    def random(self, n: int = 50_000, seed: int = 1) -> pd.DataFrame:
        """Return random rows: every column is drawn from the data independently."""
        rng = np.random.default_rng(seed)
        picks = {name: rng.integers(len(self.X), size=n) for name in self.X}
        return pd.DataFrame({name: self.X[name].array.take(at) for name, at in picks.items()})

    def units(self, query: pd.Series[Any], row: pd.Series[Any]) -> Array:
        """Return each column's change in units of its scale; another level is one unit."""
        before, after = self.codes(self.stack(query, row))
        change = np.abs(after - before)
        for name, period in self.rules.period.items():
            j = self.names.index(name)
            change[j] = min(change[j], period - change[j])
        return np.asarray(np.where(self.ordered, change / self.scale, change != 0))

    def distance(self, query: pd.Series[Any], row: pd.Series[Any]) -> float:
        """Return the sum of the changes in units of their scale."""
        return float(self.units(query, row).sum())

    def changes(self, query: pd.Series[Any], row: pd.Series[Any]) -> int:
        """Return the number of changed columns."""
        return int((self.units(query, row) != 0).sum())

    def broken(self, query: pd.Series[Any], row: pd.Series[Any]) -> list[str]:
        """Return the columns of a row that break a constraint."""
        before, after = self.codes(self.stack(query, row))
        data = self.codes(self.X)
        broken = []
        for j, name in enumerate(self.names):
            if row[name] == query[name]:
                continue
            low, high = self.rules.within.get(name, (data[:, j].min(), data[:, j].max()))
            is_fixed = name in self.rules.fixed
            is_lower = name in self.rules.up and after[j] < before[j]
            is_fractional = self.X.dtypes.iloc[j].kind == "i" and row[name] != after[j]
            if is_fixed or is_lower or is_fractional or not low <= after[j] <= high:
                broken.append(name)
        return broken


def spread(codes: Array) -> Array:
    """Return each column's MAD; where it is 0, the median deviation of the rows that deviate."""
    apart = np.abs(codes - np.median(codes, axis=0))
    mad = np.median(apart, axis=0)
    for j in np.flatnonzero(mad == 0):
        mad[j] = np.median(apart[apart[:, j] > 0, j]) if apart[:, j].any() else 1.0
    return mad


@cache
def frame(name: str) -> Frame:
    """Return a table by name.

    Raises
    ------
    DataError
        If there is no file with the data. The message says how to get it.
    """
    return _FRAMES[name]()


def available(name: str) -> bool:
    """Return whether a table is available; print the reason if not. Numeric tables always are."""
    try:
        return name not in FRAMES or bool(frame(name).name)
    except DataError as error:
        print(f"  ({name} left out: {error})")
        return False


def _adult() -> Frame:
    """Return Adult's raw columns, without the weight and the second column of education."""
    raw = load_adult()
    raw = raw[~(raw == "?").any(axis=1)].drop(columns=["fnlwgt", "education-num"])
    raw = raw.sample(ROWS, random_state=0).reset_index(drop=True)
    X = raw.drop(columns="income")
    levels = pd.CategoricalDtype([e for e in EDUCATION if e in set(X["education"])], ordered=True)
    X["education"] = X["education"].astype(levels)
    texts = [name for name in X if X[name].dtype.kind not in "i" and name != "education"]
    X = X.astype(dict.fromkeys(texts, "category"))
    kept = ["marital-status", "relationship", "race", "sex", "native-country"]
    kept += ["capital-gain", "capital-loss"]  # otherwise nearly every answer increases them
    rules = Rules(fixed=tuple(kept), up=("age", "education"), within={"hours-per-week": (1, 60)})
    return Frame("adult", X, np.asarray(raw["income"] == ">50K", dtype=np.float64), rules)


def _taxi() -> Frame:
    """Return taxi trips: time, distance and pickup; the outcome is the duration in minutes."""
    raw = load_taxi()
    minutes = raw["trip_duration"] / 60
    north = 111.2 * (raw["dropoff_latitude"] - raw["pickup_latitude"])
    east = 84.3 * (raw["dropoff_longitude"] - raw["pickup_longitude"])
    when = pd.to_datetime(raw["pickup_datetime"])
    X = pd.DataFrame(
        {
            "vendor": raw["vendor_id"].map({1: "one", 2: "two"}).astype("category"),
            "passengers": raw["passenger_count"],
            "weekday": when.dt.day_name().astype("category"),
            "hour": when.dt.hour.astype("int64"),
            "km": np.hypot(north, east).round(2),
            "latitude": raw["pickup_latitude"].round(3),
            "longitude": raw["pickup_longitude"].round(3),
        }
    )
    city = X["latitude"].between(40.6, 40.9) & X["longitude"].between(-74.05, -73.75)
    usual = (
        city & minutes.between(1, 120) & X["km"].between(0.1, 30) & X["passengers"].between(1, 6)
    )
    X = X[usual].sample(ROWS, random_state=0)
    rules = Rules(fixed=("vendor",), period={"hour": 24})
    return Frame("taxi", X.reset_index(drop=True), minutes[X.index].to_numpy(np.float64), rules)


_FRAMES: dict[str, Callable[[], Frame]] = {"adult": _adult, "taxi": _taxi}
FRAMES = tuple(_FRAMES)


@dataclass(frozen=True, eq=False)
class FrameModel:
    """A fitted model of a frame: the probability of the second class, or the prediction."""

    estimator: Any
    dtypes: Mapping[str, Any]

    def predict(self, X: pd.DataFrame) -> Array:
        """Return one number per row; text cells, as dice-ml passes them, become levels first."""
        if any(X[name].dtype != wanted for name, wanted in self.dtypes.items()):
            X = X[list(self.dtypes)].astype(self.dtypes)
        if hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict_proba(X)[:, 1])
        return np.asarray(self.estimator.predict(X), dtype=np.float64)


@cache
def fit(data: str, model: str) -> FrameModel:
    """Return a model by name ("lgbm", "pipeline"), fitted to a frame."""
    rows = frame(data)
    if model == "pipeline":
        columns = np.array(rows.names)
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False), columns[rows.has_levels]),
            (StandardScaler(), columns[~rows.has_levels]),
        )
        network = MLPClassifier((30,), max_iter=30, random_state=0)
        estimator = make_pipeline(encoder, network)
    elif data == "adult":
        estimator = lightgbm.LGBMClassifier(random_state=0, verbose=-1, n_jobs=1)
    else:
        estimator = lightgbm.LGBMRegressor(random_state=0, verbose=-1, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 30 epochs are intended
        estimator.fit(rows.X, rows.y)
    return FrameModel(estimator, {str(name): t for name, t in rows.X.dtypes.items()})
