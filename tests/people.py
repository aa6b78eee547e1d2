"""Real data with text columns, for tests of models: scikit-learn's diabetes data."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes


@functools.cache
def people() -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return age, body mass index, glucose in three bands and sex as text; and progression."""
    raw, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    bands = np.array(["low", "middle", "high"])
    X = pd.DataFrame(
        {
            "age": raw["age"].astype(int),
            "bmi": raw["bmi"],
            "glucose": bands[np.digitize(raw["s6"], raw["s6"].quantile([1 / 3, 2 / 3]))],
            "sex": np.where(raw["sex"] == 1, "female", "male"),
        }
    )
    return X, y


def categories(X: pd.DataFrame, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return rows with the text columns of `X` as categories of `X`."""
    rows = X if rows is None else rows
    text = {n: pd.CategoricalDtype(sorted(X[n].unique())) for n in ("glucose", "sex")}
    return rows.astype(text)
