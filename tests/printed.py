"""Answers as they are printed: the changes are read back from each format, as a reader types them.

Ten made tables of different kinds, six kinds of models, and a reader for each format.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from html import unescape
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx

N_ROWS = 300

#: Names of columns to new cells, as texts.
Changes = dict[str, str]


# ── tables ──


def _houses(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "income": rng.lognormal(1.2, 0.5, N_ROWS),
            "rooms": rng.lognormal(1.6, 0.3, N_ROWS),
            "age": rng.integers(1, 52, N_ROWS).astype(float),
            "latitude": rng.uniform(32, 42, N_ROWS),
            "people": rng.lognormal(7, 0.6, N_ROWS),
        }
    )


def _single_precision(rng: np.random.Generator) -> pd.DataFrame:
    return _houses(rng).astype(np.float32)


def _scaled(rng: np.random.Generator) -> pd.DataFrame:
    X: pd.DataFrame = load_diabetes(as_frame=True, scaled=True).data
    return X.sample(N_ROWS, random_state=int(rng.integers(1000))).reset_index(drop=True)


def _two_decimals(rng: np.random.Generator) -> pd.DataFrame:
    return _houses(rng).round(2)


def _tiny_numbers(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(N_ROWS, 4)) * 1e-7, columns=list("abcd"))


def _large_numbers(rng: np.random.Generator) -> pd.DataFrame:
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=list("abcd"))
    return X * [3e9, 4e4, 1e12, 5e6] - 1e4


def _mostly_zero(rng: np.random.Generator) -> pd.DataFrame:
    X = pd.DataFrame(rng.exponential(size=(N_ROWS, 4)), columns=list("abcd"))
    return X.where(rng.random(X.shape) > 0.6, 0.0)


def _shares(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.dirichlet(np.ones(4), N_ROWS), columns=list("abcd"))


def _mixed(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "salary": rng.lognormal(10.5, 0.4, N_ROWS),
            "years": rng.integers(0, 40, N_ROWS),
            "town": rng.choice(["north", "south", "east"], N_ROWS),
            "rate": rng.normal(3.0, 1.0, N_ROWS),
        }
    )


def _odd_names(rng: np.random.Generator) -> pd.DataFrame:
    X = _houses(rng)
    X.columns = pd.Index(["a → b", "x|y", "1 st", "b & c", "50 %"])
    return X


TABLES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "houses": _houses,
    "single precision": _single_precision,
    "scaled": _scaled,
    "two decimals": _two_decimals,
    "tiny numbers": _tiny_numbers,
    "large numbers": _large_numbers,
    "mostly zero": _mostly_zero,
    "shares": _shares,
    "mixed": _mixed,
    "odd names": _odd_names,
}


def outputs(X: pd.DataFrame, rng: np.random.Generator) -> Any:
    """Return outputs ``(n,)`` that depend on all columns of a table, with steps and bends."""
    y = rng.normal(0.0, 0.1, len(X))
    for k, name in enumerate(X):
        column = pd.factorize(X[name])[0] if X[name].dtype.kind in "OUT" else X[name]
        z = np.asarray(column, dtype=np.float64)
        z = (z - z.mean()) / max(z.std(), 1e-300)
        y += np.sin((1.0 + 0.3 * k) * z) + 0.5 * z * (k % 2)
    return 100.0 + 20.0 * y


# ── models ──


class Typed:
    """A regressor of text and numbers behind a pipeline, for any table."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        """Return the fitted pipeline, or the regressor itself if all columns are numbers."""
        text = [name for name in X if X[name].dtype.kind not in "iuf"]
        if not text and not isinstance(self.regressor, Ridge | MLPRegressor):
            return self.regressor.fit(X, y)
        numbers = [name for name in X if name not in text]
        columns = make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(sparse_output=False), text)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the network
            return make_pipeline(columns, self.regressor).fit(X, y)


def _xgboost() -> Any:
    xgboost: Any = importlib.import_module("xgboost")  # only where it is installed
    return xgboost.XGBRegressor(n_estimators=60, max_depth=4, random_state=0, n_jobs=1)


MODELS: dict[str, Callable[[], Any]] = {
    "LightGBM": lambda: LGBMRegressor(n_estimators=60, random_state=0, verbose=-1, n_jobs=1),
    "XGBoost": _xgboost,
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(max_iter=60, random_state=0),
    "forest": lambda: RandomForestRegressor(30, random_state=0),
    "ridge": lambda: Ridge(),
    "network": lambda: MLPRegressor(
        hidden_layer_sizes=(20,), solver="lbfgs", max_iter=200, random_state=0
    ),
}


# ── formats ──


def _from_text(answer: cfx.Explanation) -> Changes:
    lines = str(answer).split("\n\n")[1].splitlines()[:-1]  # the last one is the prediction
    found = {}
    for line in lines:
        before, new = line.strip().rsplit(" → ", 1)
        found[before.rsplit("  ", 1)[0].strip()] = new
    return found


def _from_markdown(answer: cfx.Explanation) -> Changes:
    found = {}
    for line in answer.to_markdown().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and re.search(r"\w", cells[2]):
            name, _, new = (re.sub(r"\\(.)", r"\1", cell) for cell in cells)
            found[name] = new
    return _without_outputs(found)


def _from_html(answer: cfx.Explanation) -> Changes:
    line = r'<tr><th scope="row">(.*?)</th><td>.*?</td><td>(.*?)</td></tr>'
    found = re.findall(line, answer._repr_html_())
    return _without_outputs({unescape(name): unescape(new) for name, new in found})


def _without_outputs(found: Changes) -> Changes:
    """Return the lines of a table of changes without those that are no features."""
    return {k: v for k, v in found.items() if k not in ("", "prediction", "target reached")}


def _from_repr(answer: cfx.Explanation) -> Changes:
    text = repr(answer.best).removeprefix("Counterfactual(").rsplit(": prediction", 1)[0]
    return _from_moves(text, answer)


def _from_moves(text: str, answer: cfx.Explanation) -> Changes:
    found = {}
    for name in answer.best.changes:
        start = text.index(f"{name} ") + len(str(name))
        found[str(name)] = text[start:].split(" → ", 1)[1].split(", ")[0]
    return found


def _from_csv(answer: cfx.Explanation) -> Changes:
    table = pd.read_csv(StringIO(answer.to_frame().to_csv(index=False)), dtype=str)
    _ = _from_moves(table["changes"][0], answer)
    return {str(name): table[str(name)][0] for name in answer.best.changes}


def _from_changes_column(answer: cfx.Explanation) -> Changes:
    return _from_moves(str(answer.to_frame()["changes"][0]), answer)


def _from_json(answer: cfx.Explanation) -> Changes:
    again = cfx.Explanation.from_json(answer.to_json())
    return _from_text(again)


FORMATS: dict[str, Callable[[cfx.Explanation], Changes]] = {
    "text": _from_text,
    "Markdown": _from_markdown,
    "HTML": _from_html,
    "repr": _from_repr,
    "CSV": _from_csv,
    "column of changes": _from_changes_column,
    "JSON": _from_json,
}


def typed_row(query: pd.DataFrame, changes: Changes) -> pd.DataFrame:
    """Return the query, a table with one row, with new cells typed in as texts."""
    row = query.copy()
    for name, text in changes.items():
        dtype = row[name].dtype
        value: Any = text if dtype.kind not in "iuf" else float(text)
        row[name] = pd.Series([value], index=row.index).astype(dtype)
    return row


def questions(
    table: str, model: str, n: int, seed: int = 0
) -> Iterator[tuple[cfx.Explanation, pd.DataFrame, Any]]:
    """Yield `n` answers for rows of a table, each with its query and the fitted model."""
    rng = np.random.default_rng(seed)
    X = TABLES[table](rng)
    y = outputs(X, rng)
    fitted = Typed(MODELS[model]()).fit(X, y)
    space = cfx.Space.from_data(X)
    targets = [cfx.increase(percent=8), cfx.decrease(percent=8), cfx.reach(percent=5)]
    for k in range(n):
        query = X.iloc[[k]]
        answer = cfx.explain(fitted, query, space, targets[k % 3], rng=0)
        yield answer, query, fitted
