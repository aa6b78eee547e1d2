"""The questions of the quality gate: three tables, seven models, seven groups of questions.

Everything here uses the public interface only, so the same questions can be put to any commit.
Hits and costs are computed from the returned rows, not taken from the answers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import bayescfx as cfx

Array = NDArray[np.float64]

BUDGETS = {"bayes": 40, "far": 40, "verdict": 60, "many bayes": 25}  # rows for Bayes-CFX
PER_CHANGE = 0.2  # the price of a changed feature, the library's default
FAR = 0.85  # a far target: this share of the way from f(query) to the end of the outputs
BEYOND = 0.5  # an unreachable target: this share of the output range beyond its end
RANDOM_ROWS = 20_000  # rows that estimate the output range of a model


# -- Tables and models ----------------------------------------------------------------------------


def _diabetes() -> tuple[pd.DataFrame, Array]:
    """Return the diabetes data in raw units: 442 rows, 10 numeric columns."""
    data = load_diabetes(as_frame=True, scaled=False)
    return data.data, data.target.to_numpy(dtype=np.float64)


def _friedman() -> tuple[pd.DataFrame, Array]:
    """Return Friedman's first function: 400 rows, 8 numeric columns, 3 of them without effect."""
    X, y = make_friedman1(400, n_features=8, noise=1.0, random_state=0)
    names = [f"x{j}" for j in range(X.shape[1])]
    return pd.DataFrame(X, columns=names), y


def _flats() -> tuple[pd.DataFrame, Array]:
    """Return rents of 500 made flats: real, integer, text and Boolean columns."""
    rng = np.random.default_rng(0)
    n_rows = 500
    area = rng.gamma(9.0, 8.0, n_rows).round(1)
    rooms = np.clip(np.round(area / 25 + rng.normal(0, 0.7, n_rows)), 1, 7).astype(int)
    floor = rng.integers(0, 9, n_rows)
    year = rng.integers(1900, 2024, n_rows)
    district = rng.choice(["centre", "harbour", "hills", "north", "south"], n_rows)
    heating = rng.choice(["gas", "heat pump", "oil"], n_rows)
    balcony = rng.random(n_rows) < 0.5
    level = pd.Series(district).map(
        {"centre": 1.6, "harbour": 1.3, "hills": 1.2, "north": 0.9, "south": 1.0}
    )
    warmth = pd.Series(heating).map({"gas": 0.0, "heat pump": 60.0, "oil": -40.0})
    age_effect = 2.0 * np.maximum(year - 1980, 0)
    rent = 8 * area * level + 40 * rooms + warmth + age_effect + 50 * balcony + 6 * floor
    frame = pd.DataFrame(
        {
            "area": area,
            "rooms": rooms,
            "floor": floor,
            "year": year,
            "district": district,
            "heating": heating,
            "balcony": balcony,
        }
    )
    return frame, np.asarray(rent + rng.normal(0, 40, n_rows), dtype=np.float64)


_TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Array]]] = {
    "diabetes": _diabetes,
    "friedman": _friedman,
    "flats": _flats,
}


@cache
def table(name: str) -> tuple[pd.DataFrame, Array]:
    """Return the columns and the outputs of a table."""
    return _TABLES[name]()


def _flat_columns(scale: bool) -> Any:
    """Return a transformer of the flats: text as indicators, numbers scaled or passed through."""
    numbers = ["area", "rooms", "floor", "year", "balcony"]
    words = ["district", "heating"]
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words),
        (StandardScaler() if scale else "passthrough", numbers),
    )


_MODELS: dict[str, Callable[[], Any]] = {
    "lgbm": lambda: lightgbm.LGBMRegressor(random_state=0, verbose=-1, n_jobs=1),
    "forest": lambda: RandomForestRegressor(30, random_state=0, n_jobs=1),
    "svr": lambda: make_pipeline(StandardScaler(), SVR(C=100.0)),
    "mlp": lambda: make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(30, 30), max_iter=300, random_state=0)
    ),
    "linear": lambda: make_pipeline(StandardScaler(), Ridge()),
    "boosted pipeline": lambda: make_pipeline(
        _flat_columns(scale=False), GradientBoostingRegressor(random_state=0)
    ),
    "linear pipeline": lambda: make_pipeline(_flat_columns(scale=True), Ridge()),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A fitted model, its table and the space of allowed changes."""

    model: Any
    X: pd.DataFrame
    space: cfx.Space

    def predict(self, rows: pd.DataFrame) -> Array:
        """Return the model's output for each row."""
        return np.asarray(self.model.predict(rows), dtype=np.float64)

    @cached_property
    def outputs(self) -> Array:
        """Return the outputs for the rows of the table."""
        return self.predict(self.X)

    @cached_property
    def output_range(self) -> tuple[float, float]:
        """Return the lowest and highest output for random rows: each column drawn on its own."""
        rng = np.random.default_rng(1)
        columns = {
            name: column.array.take(rng.integers(len(column), size=RANDOM_ROWS))
            for name, column in self.X.items()
        }
        y = self.predict(pd.DataFrame(columns))
        return float(y.min()), float(y.max())

    @cached_property
    def scales(self) -> pd.Series[float]:
        """Return the scale of each numeric column: MAD, else the standard deviation."""
        numbers = self.X.select_dtypes("number")
        mad = (numbers - numbers.median()).abs().median()
        return mad.where(mad > 0, numbers.std())

    def cost(self, query: pd.Series[Any], row: pd.Series[Any]) -> float:
        """Return the distance in scales, 1 per changed level, and the price per change."""
        total = 0.0
        for name in self.X.columns:
            if row[name] == query[name]:
                continue
            total += PER_CHANGE
            if name in self.scales:
                total += abs(float(row[name]) - float(query[name])) / float(self.scales[name])
            else:
                total += 1.0
        return total


def _space(data: str, rules: str) -> cfx.Space:
    """Return the space of a table, free or with the constraints of a usual application."""
    X, _ = table(data)
    space = cfx.Space.from_data(X)
    if rules == "free":
        return space
    if data == "diabetes":
        return space.fix("sex").only_up("age").require("s3 <= s1").max_changes(3)
    if data == "flats":
        return space.fix("district").only_up("year").between({"area": (25, 150)})
    return space.fix("x0").only_down("x1").max_changes(3)


@cache
def problem(data: str, model: str, rules: str = "free") -> Problem:
    """Return a problem by the names of its table, model and rules ("free" or "ruled")."""
    X, y = table(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a short training is intended
        fitted = _MODELS[model]().fit(X, y)
    return Problem(fitted, X, _space(data, rules))


# -- Questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """The outcome for one query.

    Attributes
    ----------
    hit : bool
        Whether the answer is right: the target is reached, or an unreachable one is called so.
    cost : float or None
        Cost of the counterfactual, where the target is reached.
    rows : int
        Rows sent to the model.
    cpu : float
        CPU seconds, with the model's own.
    """

    hit: bool
    cost: float | None
    rows: int
    cpu: float


@dataclass(frozen=True)
class Question:
    """A question that can be asked with any seed.

    Attributes
    ----------
    group : str
        "sweep", "bayes", "far", "verdict", "verdict auto", "many" or "many bayes".
    data, model, rules : str
        Names of the problem.
    rows : tuple of int
        Rows of the table to explain; more than one uses `explain_many`.
    """

    group: str
    data: str
    model: str
    rules: str
    rows: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return a unique name."""
        return f"{self.group}: {self.data} {self.model} {self.rules} {self.rows[0]}"

    @property
    def problem(self) -> Problem:
        """Return the model with its table and space."""
        return problem(self.data, self.model, self.rules)

    def prepare(self) -> None:
        """Fit the model and compute its outputs, which are cached."""
        for row in self.rows:
            self.bounds(row)

    @property
    def options(self) -> dict[str, Any]:
        """Return the arguments that select the search; none are the library's defaults."""
        if self.group not in BUDGETS:
            return {}
        return {"method": "bayes-cfx", "budget": BUDGETS[self.group]}

    @property
    def is_unreachable(self) -> bool:
        """Return whether the target lies beyond all outputs of the model."""
        return self.group.startswith("verdict")

    def bounds(self, row: int) -> tuple[float, float]:
        """Return the lowest and highest accepted output.

        Rows with an output below the median are asked for more, the others for less. The usual
        target is one standard deviation of the outputs away.
        """
        outputs = self.problem.outputs
        output = float(outputs[row])
        low, high = self.problem.output_range
        side = 1.0 if output <= float(np.median(outputs)) else -1.0
        end = high if side > 0 else low
        if self.group == "far":
            value = output + FAR * (end - output)
        elif self.is_unreachable:
            value = end + side * BEYOND * (high - low)
        else:
            value = output + side * float(outputs.std())
        return (value, np.inf) if side > 0 else (-np.inf, value)

    def target(self, row: int) -> Any:
        """Return the target of one row."""
        low, high = self.bounds(row)
        return cfx.at_least(low) if np.isfinite(low) else cfx.at_most(high)

    def ask(self, seed: int) -> list[Answer]:
        """Ask with a seed; return one answer per row of the question."""
        problem = self.problem
        queries = problem.X.iloc[list(self.rows)]
        targets = [self.target(row) for row in self.rows]
        begin = time.process_time()
        if len(self.rows) == 1:
            found = [
                cfx.explain(
                    problem.model,
                    queries.iloc[0],
                    problem.space,
                    targets[0],
                    rng=seed,
                    **self.options,
                )
            ]
        else:
            found = list(
                cfx.explain_many(
                    problem.model, queries, problem.space, targets, rng=seed, **self.options
                )
            )
        cpu = (time.process_time() - begin) / len(found)
        return [self._judge(row, answer, cpu) for row, answer in zip(self.rows, found, strict=True)]

    def _judge(self, row: int, answer: cfx.Explanation, cpu: float) -> Answer:
        """Score an explanation by the model, and compute its cost."""
        problem = self.problem
        best = pd.Series(answer.best.row, index=problem.X.columns)
        low, high = self.bounds(row)
        # `at_least` and `at_most` accept no miss except rounding.
        slack = 1e-9 * float(np.ptp(problem.outputs))
        scored = pd.DataFrame([best])[list(problem.X.columns)].astype(problem.X.dtypes.to_dict())
        output = float(problem.predict(scored)[0])
        is_reached = low - slack <= output <= high + slack
        cost = problem.cost(problem.X.iloc[row], best) if is_reached else None
        is_right = answer.status == "unreachable" if self.is_unreachable else is_reached
        return Answer(is_right, cost, answer.n_evaluations, cpu)


CELLS = (
    ("diabetes", "lgbm", "free"),
    ("diabetes", "lgbm", "ruled"),
    ("diabetes", "forest", "free"),
    ("diabetes", "linear", "ruled"),
    ("friedman", "svr", "free"),
    ("friedman", "mlp", "ruled"),
    ("flats", "boosted pipeline", "ruled"),
    ("flats", "linear pipeline", "free"),
)
FREE_CELLS = tuple(dict.fromkeys((data, model, "free") for data, model, _ in CELLS))
# For each group: its cells, and the number of queries per cell.
SINGLE = {
    "sweep": (CELLS, 4),
    "bayes": (CELLS, 2),
    "far": (FREE_CELLS, 2),  # with rules, the range of the outputs is not known
    "verdict": (CELLS, 1),
    "verdict auto": (CELLS[1::2], 1),
}
MANY = {
    "many": ((("diabetes", "lgbm", "free"), 48), (("flats", "boosted pipeline", "ruled"), 32)),
    "many bayes": ((("friedman", "svr", "free"), 6), (("flats", "linear pipeline", "ruled"), 6)),
}
GROUPS = (*SINGLE, *MANY)


def questions() -> Iterator[Question]:
    """Yield all questions in a fixed order."""
    for group, (cells, n_queries) in SINGLE.items():
        for cell in cells:
            for row in _choose_rows(cell[0], n_queries, seed=7):
                yield Question(group, *cell, (row,))
    for group, pairs in MANY.items():
        for cell, n_queries in pairs:
            yield Question(group, *cell, _choose_rows(cell[0], n_queries, seed=11))


def _choose_rows(data: str, n_rows: int, seed: int) -> tuple[int, ...]:
    """Return the first rows of a fixed random order of a table."""
    X, _ = table(data)
    order = np.random.default_rng(seed).permutation(len(X))
    return tuple(int(row) for row in order[:n_rows])
