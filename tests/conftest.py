"""Models, data and recorders that several test packages share."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.search.exact import acceleration

# Compiling takes 15 seconds in each process; the tests of the compiled code load it themselves.
acceleration._WORK_BEFORE_LOADING = np.inf

# A shell that runs tests in the background makes them, and their child processes, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEVELS = ["clerk", "nurse", "cook"]
ZERO = {"a": 0.25, "b": 0.25, "c": 0.25}  # plane is 0.5 here


class Recorder:
    """A model that records every batch that it scores."""

    def __init__(self, model: Callable[[Any], Any]) -> None:
        self.model = model
        self.calls: list[Any] = []

    def __call__(self, rows: Any) -> Any:
        self.calls.append(rows.copy())
        return self.model(rows)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each call."""
        return [len(rows) for rows in self.calls]

    @property
    def n(self) -> int:
        """The number of scored rows."""
        return sum(self.sizes)

    @property
    def rows(self) -> pd.DataFrame:
        """All scored rows."""
        return pd.concat(map(pd.DataFrame, self.calls), ignore_index=True)


def plane(rows: Any) -> Any:
    """Return the outputs of a fast model: 2a + b - c."""
    block = np.asarray(rows, dtype=float)
    return 2.0 * block[:, 0] + block[:, 1] - block[:, 2]


@cache
def cloud() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return 60 rows of three numbers between 0 and 1."""
    return np.random.default_rng(1).uniform(size=(60, 3))


@cache
def cube() -> cfx.Space:
    """Return the space of the cloud with columns a, b and c."""
    return cfx.Space.from_data(pd.DataFrame(cloud(), columns=list("abc")))


def plain() -> tuple[pd.DataFrame, cfx.Space]:
    """Return a table with a real, an integer and a categorical column, and its space."""
    rngs = [np.random.default_rng(seed) for seed in (1, 2, 3)]
    frame = pd.DataFrame(
        {
            "x": rngs[0].uniform(0, 10, 50),
            "k": rngs[1].integers(0, 9, 50),
            "c": rngs[2].choice(list("abc"), 50),
        }
    )
    return frame, cfx.Space.from_data(frame)


@cache
def mixed() -> pd.DataFrame:
    """Return a mixed table: ints, floats, booleans, categories, text, and a column with gaps."""
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "hours": rng.integers(10, 60, n).astype(np.int16),
            "member": rng.random(n) < 0.5,
            "job": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS),
            "city": rng.choice(["Ulm", 'Köln "am Rhein"', "Bern"], n),
            "score": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        }
    )


def outcome(rows: pd.DataFrame) -> Any:
    """Return the outcomes that the pipelines are trained on."""
    job = np.asarray(rows["job"] == "cook")
    y = 0.1 * rows["age"] + rows["income"] / 1e4 + 0.05 * rows["hours"]
    return y + 2.0 * rows["member"] + 3.0 * job + 1.5 * (rows["city"] == "Ulm")


@cache
def pipeline(kind: str) -> Any:
    """Return a pipeline for the mixed table, with its encoders."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    model: Any = HistGradientBoostingRegressor(max_iter=40, random_state=0)
    if kind == "lightgbm":
        from lightgbm import LGBMRegressor

        model = LGBMRegressor(n_estimators=40, random_state=0, verbose=-1, n_jobs=1)
    encode = ColumnTransformer(
        [
            ("levels", OneHotEncoder(sparse_output=False), ["job", "city"]),
            ("numbers", StandardScaler(), ["age", "income", "hours", "score"]),
        ],
        remainder="passthrough",
    )
    X = mixed()
    return Pipeline([("encode", encode), ("model", model)]).fit(X, outcome(X))


@cache
def people() -> cfx.Space:
    """Return the space of the mixed table with some rules."""
    return cfx.Space.from_data(mixed()).fix("score", "city").only_up("age")


def stubborn(method: str) -> Any:
    """Return a search that spends its budget even on an unreachable target."""
    return cfx.BayesCFX(give_up=False) if method == "bayes-cfx" else method


def codes(answer: cfx.Explanation) -> list[list[Any]]:
    """Return the rows of an answer as lists of cells."""
    return [list(c.row) for c in answer.counterfactuals]
