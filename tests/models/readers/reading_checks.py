"""Comparisons of forms with the models that they were read from."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.models.model import Model
from bayescfx.models.readers import Form, TreeEnsemble, read_model


@cache
def numbers(missing: bool = False) -> pd.DataFrame:
    """Return a table of numbers, one column of which may have gaps."""
    rng = np.random.default_rng(5)
    n = 240
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.uniform(0, 100, n),
            "k": rng.integers(0, 6, n),
            "c": rng.exponential(size=n).astype(np.float32),
        }
    )
    if missing:
        table["gaps"] = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    return table


def levels() -> pd.DataFrame:
    """Return a table of numbers and categories."""
    rng = np.random.default_rng(6)
    n = 400
    table = numbers().sample(n, replace=True, random_state=1).reset_index(drop=True)
    table["job"] = pd.Categorical(rng.choice(["cook", "nurse", "clerk", "smith", "judge"], n))
    table["town"] = rng.choice(["Ulm", "Bern", "Graz"], n)
    return table


def target(table: pd.DataFrame) -> Any:
    """Return an outcome above 0 that depends on every column."""
    y = np.sin(2 * table["a"]) + table["b"] / 40 + 0.3 * table["k"] + np.sqrt(table["c"])
    if "gaps" in table:
        y = y + table["gaps"].fillna(1.5)
    if "job" in table:
        y = y + table["job"].astype(str).map({"cook": 1, "nurse": 2, "clerk": 0}).fillna(3)
        y = y + (table["town"] == "Ulm")
    return np.asarray(np.exp(y / 3))


def label(table: pd.DataFrame, n_classes: int = 2) -> Any:
    """Return classes made from the outcome."""
    ranks = pd.Series(target(table)).rank(pct=True)
    return np.minimum((ranks * n_classes).to_numpy().astype(int), n_classes - 1)


def check_reading(model: Model, rows: Any, most: float = 1e-9) -> Form:
    """Return the form of a model after comparing it on data, random rows and thresholds.

    `most` is the largest difference allowed, as a share of the spread of the outputs.
    """
    reading = read_model(model, rows[:60])
    assert reading.form is not None, reading.reason
    assert reading.reason == ""
    form = reading.form
    batches = [rows, _random_rows(rows)]
    if isinstance(form, TreeEnsemble):
        batches.append(_edges(form, rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.concatenate([model.scores(batch) for batch in batches])
        computed = np.concatenate([form.predict(batch) for batch in batches])
    spread = np.ptp(expected)
    assert spread > 0
    assert np.abs(expected - computed).max() <= most * spread
    assert reading.rounding <= most * spread
    assert len(form.inputs.columns) == len(form.inputs.direction)
    return form


def check_refused(model: Model, rows: Any, *words: str) -> None:
    """Assert that a model is not read, with a reason that contains these words."""
    reading = read_model(model, rows[:60])
    assert reading.form is None
    for word in words:
        assert word in reading.reason


def _random_rows(rows: Any) -> Any:
    """Return rows of shuffled cells, with new numbers in columns of floats."""
    rng = np.random.default_rng(8)
    if not isinstance(rows, pd.DataFrame):
        return rng.permuted(rows, axis=0) * rng.uniform(0.8, 1.2, rows.shape)
    columns = {}
    for name in rows:
        cells = rows[name].sample(frac=1.0, random_state=rng).reset_index(drop=True)
        if cells.dtype.kind == "f":
            shifts = rng.normal(scale=0.3 * float(cells.std()), size=len(cells))
            cells = cells + pd.Series(shifts).astype(cells.dtype)
            cells = cells.abs() if (rows[name].dropna() >= 0).all() else cells
        columns[name] = cells
    return pd.DataFrame(columns)


def _edges(form: TreeEnsemble, rows: Any) -> Any:
    """Return rows one of whose cells is a threshold or the next float64 or float32 beside it."""
    batch = rows[:1].copy() if len(form.tests) == 0 else None
    if batch is not None:
        return batch
    rng = np.random.default_rng(9)
    tests = rng.integers(len(form.tests), size=200)
    table = pd.DataFrame(rows)
    frame = table.iloc[rng.integers(len(rows), size=200)].reset_index(drop=True)
    for row, test in enumerate(tests):
        name = form.inputs.columns[form.tests.input[test]]
        at = form.tests.threshold[test]
        if test in form.tests.levels or frame[name].dtype != np.float64 or abs(at) > 1e30:
            continue
        low = np.nextafter(np.float32(at), np.float32(-np.inf))
        high = np.nextafter(np.float32(at), np.float32(np.inf))
        steps = [at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf), low, high]
        frame.loc[row, name] = np.float64(steps[row % 5])
    return frame if isinstance(rows, pd.DataFrame) else frame.to_numpy()


def name_of(value: object) -> str:
    """Return the name of a parameter of a test: the class of an estimator, which has no address."""
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
