"""Missing cells in runs that share what is known, in every kind of column."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.space.space import Space

DAY = pd.Timestamp("2020-01-01")
HOT = ["h0", "h1", "h2"]
COLUMNS = ["real", "single", "whole", "grade", "colour", "text", "hour", "day", "flag", "hot"]


def table(rng: np.random.Generator, n: int = 40) -> pd.DataFrame:
    """Return a table of every kind of column with missing cells in some of them."""
    frame = pd.DataFrame(
        {
            "sure": rng.normal(size=n),
            "real": rng.normal(size=n),
            "single": rng.normal(size=n).astype(np.float32),
            "whole": pd.array(rng.integers(0, 20, n), dtype="Int64"),
            "grade": pd.Categorical(rng.choice(["lo", "mid", "hi"], n), ["lo", "mid", "hi"], True),
            "colour": pd.Categorical(rng.choice(["r", "g", "b"], n)),
            "text": pd.Series(rng.choice(["u", "v"], n), dtype=object),
            "hour": pd.array(rng.integers(0, 24, n), dtype="Int64"),
            "day": DAY + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "flag": pd.array(rng.random(n) < 0.5, dtype="boolean"),
        }
    )
    hot = rng.integers(0, 3, n)
    dtype: Any = str(rng.choice(["float64", "Int64"]))
    for k, name in enumerate(HOT):
        frame[name] = pd.Series(hot == k).astype(dtype)
    for name in rng.choice(COLUMNS, int(rng.integers(1, 5)), replace=False).tolist():
        gone = rng.random(n) < 0.4
        frame.loc[gone, HOT if name == "hot" else name] = None
    return frame


def model(rows: pd.DataFrame) -> Any:
    """Return outputs that depend on every column, and on what is missing."""
    numbers = rows[["real", "single", "whole", "h0", "h1", "flag"]].astype("Float64").fillna(0.6)
    y = rows["sure"] + numbers.astype(float) @ np.array([2.0, 1.0, 0.2, 1.5, 0.5, 1.0])
    y += rows["grade"].cat.codes + 1.5 * (rows["colour"] == "r") + 0.8 * (rows["text"] == "u")
    y += np.cos(rows["hour"].astype("Float64").fillna(3.0).astype(float) / 24 * 2 * np.pi)
    return y + (rows["day"] - DAY).dt.days.fillna(400) / 100 + 0.5 * rows.isna().sum(axis=1)


def space(frame: pd.DataFrame, rng: np.random.Generator) -> Space:
    """Return the space of the table with some rules."""
    found = Space.from_data(frame, kinds={"hour": cfx.Integer(0, 23, cyclic=True)})
    found = found.group("hot", HOT)
    if rng.random() < 0.3:
        found = found.fix(*rng.choice(COLUMNS[:-1], 3, replace=False))
    if rng.random() < 0.3:
        found = found.max_changes(int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        found = found.together("real", "whole")
    if rng.random() < 0.3:  # comes and goes
        found = found.derive("single", lambda rows: (2 * rows["sure"]).where(rows["sure"] < 1))
    if rng.random() < 0.3:
        found = found.near_data(frame, quantile=1.0)
    return found


def check(seed: int) -> int:
    """Run one shared search; return how many answers were found."""
    rng = np.random.default_rng(seed)
    frame = table(rng)
    rules = space(frame, rng)
    known = cfx.Evaluations(frame[5:25], model(frame[5:25])) if rng.random() < 0.7 else None
    method = str(rng.choice(["bayes-cfx", "bayes-cfx", "bayes", "random", "lbfgsb", "gradient"]))
    queries = frame.iloc[:4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cfx.SpaceWarning)  # missing cells stay
        answers = cfx.explain_many(
            model,
            queries,
            rules,
            cfx.increase(by=2.0),
            budget=9,
            evaluations=known,
            rng=seed,
            method=method,
            n=2,
        )
        for answer in answers:
            assert answer.verify(model), seed
    derived = {rule.derives for rule in rules.rules}
    kept = [str(name) for name in frame if name not in derived]
    for (_, query), answer in zip(queries.iterrows(), answers, strict=True):
        assert answer.n_evaluations <= 9
        for found in answer.counterfactuals:
            row: Any = found.row
            # missing cells stay, and nothing becomes missing
            assert row[kept].isna().tolist() == query[kept].isna().tolist(), seed
    return sum(answer.reached for answer in answers)


@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3))]
)
def test_missing_cells_in_shared_runs_neither_crash_nor_move(block: int) -> None:
    assert sum(check(seed) for seed in range(5 * block, 5 * block + 5)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_missing_cells_in_many_shared_runs(block: int) -> None:
    assert sum(check(seed) for seed in range(10 * block + 100, 10 * block + 110)) > 5
