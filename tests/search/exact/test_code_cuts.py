"""The codes at which tests change, against a search over neighbouring floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

import bayescfx as cfx
from bayescfx.models.model import as_model
from bayescfx.models.readers import read_model
from bayescfx.search.exact.cells import Line, cut_features
from bayescfx.search.exact.code_cuts import as_ordered, from_ordered
from tests.models.readers.reading_checks import numbers, target


class Counting(StandardScaler):  # type: ignore[misc]
    """A scaler that counts its calls."""

    n_calls = 0

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        type(self).n_calls += 1
        return super().transform(X, copy=copy)


class CountingBooster(LGBMRegressor):
    """A booster that counts its calls."""

    n_calls = 0

    def predict(self, X: Any, *args: Any, **options: Any) -> Any:
        type(self).n_calls += 1
        return super().predict(X, *args, **options)


def booster() -> Any:
    """Return an estimator that compares numbers of 64 bits."""
    return LGBMRegressor(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1)


def forest() -> Any:
    """Return an estimator that compares numbers of 32 bits."""
    return RandomForestRegressor(10, max_depth=5, random_state=0)


@pytest.mark.parametrize("last", [booster, forest])
@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(),
        FunctionTransformer(np.negative),
        FunctionTransformer(np.arcsinh),
        StandardScaler(),
        PowerTransformer(),
    ],
    ids=["same", "negative", "arcsinh", "scaler", "power"],
)
def test_outcomes_change_between_a_cut_and_the_next_float(step: Any, last: Any) -> None:
    table = numbers()
    model = make_pipeline(step, last()).fit(table, target(table))
    space = cfx.Space.from_data(table)
    form: Any = read_model(as_model(model, space.schema), table).form
    region = space.around(table.iloc[0])
    for cells in cut_features(form, form.tests, region):
        assert isinstance(cells, Line)
        assert np.isfinite(cells.cuts).all()
        codes = np.stack([cells.cuts, np.nextafter(cells.cuts, np.inf)])[:, cells.rank]
        X = np.repeat(region.query[None], codes.size, axis=0)
        X[:, cells.feature] = codes.ravel()
        outcomes = form.tests.outcomes(form.inputs.compute(region.rows(X)))[:, cells.tests]
        below, above = np.split(outcomes, 2)
        is_own = np.eye(len(cells.tests), dtype=bool)
        assert (below[is_own] == cells.is_below).all()
        assert (above[is_own] != cells.is_below).all()


def test_transformers_are_called_a_few_times_for_the_first_query_and_hardly_for_others() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    last = CountingBooster(n_estimators=20, num_leaves=8, verbose=-1, n_jobs=1)
    model = make_pipeline(Counting(), last).fit(table, table.a * table.b + table.c)
    explainer = cfx.Explainer(model, cfx.Space.from_data(table), method="exact", rng=0, budget=60)
    counts = []
    for k in range(3):
        Counting.n_calls = 0
        CountingBooster.n_calls = 0
        answer = explainer.explain(table.iloc[k], cfx.increase(by=0.3))
        assert answer.stopped == "proven"
        counts.append(Counting.n_calls - CountingBooster.n_calls)  # without those of the model
    assert counts[0] <= 20
    assert max(counts[1:]) <= 3


def test_levels_in_another_order_than_their_numbers_are_listed() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"k": rng.integers(1, 6, 300), "a": rng.normal(size=300).round(1)})
    y = (table.k == 3) * 5.0 + (table.k == 5) * 4.0 + table.a
    model = RandomForestRegressor(5, random_state=0).fit(table, y)
    space = cfx.Space.from_data(table, {"k": cfx.Ordinal([3, 1, 5, 2, 4])})
    for k in range(5):
        region = space.around(table.iloc[k])
        X = region.enumerate(10**5)
        assert X is not None
        hits = X[model.predict(region.rows(X)) >= 4.5]
        lowest = region.distance(hits).min()
        answer = cfx.explain(model, table.iloc[k], space, ">= 4.5", method="exact", rng=0)
        best = region.distance(region.encode(pd.DataFrame([answer.best.row])))[0]
        assert best == pytest.approx(lowest)


def test_floats_and_whole_numbers_have_the_same_order() -> None:
    x = np.array([-np.inf, -1e300, -1.0, -1e-320, 0.0, 1e-320, 1.0, 1e300, np.inf])
    assert (np.diff(as_ordered(x).astype(object)) > 0).all()
    np.testing.assert_array_equal(from_ordered(as_ordered(x)), x)
    assert as_ordered(np.nextafter(x[5:6], 1.0))[0] == as_ordered(x)[5] + 1
