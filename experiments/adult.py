"""Adult income as in the paper's appendix: preprocessing, logistic regression, queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array
from experiments.data import load_adult

READINGS = {"gain - loss": -1, "gain + loss": 1}  # of "capital change"
MAIN, OTHER = READINGS
FREE = ("age", "capital-change", "hours-per-week")
NUMERIC = (*FREE, "fnlwgt")
CATEGORIES = (
    *("workclass", "marital-status", "occupation", "relationship", "race", "sex"),
    "native-country",
)
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad"),
    *("Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school"),
    "Doctorate",
)
STATE = 7

_WORK = {
    **dict.fromkeys(("Without-pay", "Never-worked"), "Unemployed"),
    **dict.fromkeys(("State-gov", "Local-gov"), "Government"),
    **dict.fromkeys(("Self-emp-inc", "Self-emp-not-inc"), "Self-employed"),
}
_MARRIED = ("Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent")
_COUNTRIES = {
    "North America": (
        "United-States Canada Mexico Puerto-Rico Cuba Jamaica Haiti Dominican-Republic Honduras "
        "Guatemala Nicaragua El-Salvador Trinadad&Tobago Outlying-US(Guam-USVI-etc)"
    ),
    "Asia": "Cambodia China Hong India Iran Japan Laos Philippines Taiwan Thailand Vietnam",
    "South America": "Columbia Ecuador Peru",
    "Europe": (
        "England France Germany Greece Holand-Netherlands Hungary Ireland Italy Poland Portugal "
        "Scotland Yugoslavia"
    ),
}
_REGION = {name: region for region, names in _COUNTRIES.items() for name in names.split()}


@dataclass(frozen=True)
class Probability:
    """P(income above 50K) of rows; a class, so that other processes can unpickle it."""

    pipeline: Pipeline

    def __call__(self, rows: pd.DataFrame) -> Array:
        """Return probabilities ``(n,)``."""
        return np.asarray(self.pipeline.predict_proba(rows)[:, 1])


@dataclass(frozen=True, eq=False)
class Adult:
    """The model, its data, and the queries of Section 4.

    Parameters
    ----------
    rows : DataFrame
        All rows after preprocessing steps 1 to 4.
    model : Probability
        Steps 5 to 7 and the logistic regression.
    right, holdout : int
        Correctly classified rows of the holdout, and all of its rows.
    queries : DataFrame
        Age below 30 and a probability of at least 0.9.
    """

    rows: pd.DataFrame
    model: Probability
    right: int
    holdout: int
    queries: pd.DataFrame

    @property
    def box(self) -> cfx.Space:
        """The paper's domain: a box in three features, without data and without cost."""
        return cfx.Space(dict(self.space.features)).allow(*FREE).cost(weight=0, per_change=0)

    @property
    def space(self) -> cfx.Space:
        """The same domain with start rows and scales from the data."""
        return cfx.Space.from_data(self.rows).allow(*FREE).cost(weight=0, per_change=0)


def preprocess(table: pd.DataFrame, sign: int) -> tuple[pd.DataFrame, Any]:
    """Return the rows after steps 1 to 4 of the appendix, in its order, and the labels.

    Countries are grouped before rows with missing values are removed, so that a missing country
    is "Other" and stays. Rows keep their number in the raw table.
    """
    workclass = table["workclass"].replace(_WORK)
    married = table["marital-status"].replace(dict.fromkeys(_MARRIED, "Married"))
    country = table["native-country"].map(_REGION).fillna("Other")
    change = table["capital-gain"] + sign * table["capital-loss"]
    rows = table.assign(
        **{
            "workclass": workclass,
            "marital-status": married,
            "native-country": country,
            "capital-change": change,
        }
    )
    rows = rows[(rows[list(CATEGORIES)] != "?").all(axis=1)]
    # continuous, as the paper's box is
    rows = rows.astype(dict.fromkeys(FREE, float))
    return rows[[*NUMERIC, "education", *CATEGORIES]], rows["income"] == ">50K"


def load(reading: str, folder: Path | None = None) -> Adult:
    """Return model, data and queries for one reading of "capital change"."""
    rows, label = preprocess(load_adult(folder), READINGS[reading])
    encode = make_column_transformer(
        (StandardScaler(), list(NUMERIC)),
        (OrdinalEncoder(categories=[list(EDUCATION)]), ["education"]),
        (OneHotEncoder(), list(CATEGORIES)),
    )
    # ℓ2 with unit scaling; converged, so that other environments get the same model
    fit = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10)
    train, test, train_y, test_y = train_test_split(rows, label, test_size=0.2, random_state=STATE)
    pipeline = make_pipeline(encode, fit).fit(train, train_y)
    model = Probability(pipeline)
    chosen = (rows["age"] < 30) & (model(rows) >= 0.9)
    right = int((pipeline.predict(test) == test_y).sum())
    return Adult(rows, model, right, len(test), rows[chosen].reset_index(drop=True))


def lowest(problem: Adult, points: int, free: tuple[str, ...] = FREE) -> Array:
    """Return the lowest probability that each query can reach, by brute force over the box.

    A grid of ``points`` values per free feature, corners included; a logistic regression has its
    extremes there.
    """
    names = list(free)
    limits = problem.rows[names].agg(["min", "max"])
    axes = [np.linspace(limits[n].iloc[0], limits[n].iloc[1], points) for n in names]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(names))
    found = []
    for i in range(len(problem.queries)):
        grid = problem.queries.iloc[[i] * len(cells)].reset_index(drop=True)
        grid[names] = cells
        found.append(float(problem.model(grid).min()))
    return np.array(found)
