"""Valid ranges of linear models and networks, against enumeration and the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from bayescfx.models.model import as_model
from bayescfx.models.readers import LinearModel, read_model
from bayescfx.potentials import contains
from bayescfx.search.exact.intervals import find_valid_codes
from bayescfx.search.exact.prover import sure_intervals
from bayescfx.search.exact.scored_sums import ScoredSum
from tests.search.exact.linear_problems import LinearProblem, make_linear_problem, region_of


def is_valid(problem: LinearProblem, row: Array, j: int, codes: Array) -> Mask:
    """Return which codes of a feature are allowed in a row and reach the target."""
    X = np.repeat(row[None], len(codes), axis=0)
    X[:, j] = codes
    return problem.region.contains(X) & problem.reaches(X)


@pytest.mark.parametrize("seed", range(12))
def test_ranges_equal_brute_force(seed: int) -> None:
    problem = make_linear_problem(seed)
    region = problem.region
    hits = problem.rows[np.isfinite(problem.costs)]
    rounding = problem.prover.reading(region).rounding
    accepted = sure_intervals(problem.form, problem.acceptance, rounding)
    rng = np.random.default_rng(seed)
    for row in hits[rng.permutation(len(hits))[:10]]:
        found = find_valid_codes(ScoredSum(problem.form, region, accepted, row))
        assert [each.feature for each in found] == np.flatnonzero(
            region.changes(row[None])[0]
        ).tolist()
        for each in found:
            j = each.feature
            codes = region.axes[j].choices
            assert codes is not None
            valid = codes[is_valid(problem, row, j, codes)]
            if each.codes is not None:
                assert np.array_equal(each.codes, valid)
                continue
            misses = np.setdiff1d(codes, valid)
            below = misses[misses < row[j]].max(initial=-np.inf)
            above = misses[misses > row[j]].min(initial=np.inf)
            run = valid[(valid > below) & (valid < above)]
            assert (each.low, each.high) == (run[0], run[-1])


def continuous(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.uniform(1.0, 5.0, (n, 3)), columns=list("abc"))


def log_pipeline() -> Any:
    columns = make_column_transformer(
        (FunctionTransformer(np.log, feature_names_out="one-to-one"), ["a"]),
        (StandardScaler(), ["b", "c"]),
    )
    return make_pipeline(columns, LinearRegression())


@pytest.mark.parametrize("is_bent", [False, True])
@pytest.mark.parametrize("has_rule", [False, True])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_continuous_ranges_are_as_large_as_can_be(is_bent: bool, has_rule: bool, side: int) -> None:
    data = continuous()
    y = 3.0 * np.log(data.a) - data.b + 0.5 * data.c
    fitted = (log_pipeline() if is_bent else LinearRegression()).fit(data, y)
    space = cfx.Space.from_data(data)
    if has_rule:
        space = space.require("a + b <= 7")
    model = as_model(fitted, space.schema)
    region = region_of(space, data.iloc[[0]])
    form = read_model(model, data).form
    assert isinstance(form, LinearModel)
    rng = np.random.default_rng(side + 1)
    X = rng.uniform(region.low, region.high, (40, 3))
    X = X[region.contains(X)][:8]
    for row in X:
        own = float(model.scores(region.rows(row[None]))[0])
        edge = 1e-9  # the last bits of an output depend on the other rows of a batch
        ends = {-1: (-np.inf, own + edge), 0: (own - 0.3, own + 0.2), 1: (own - edge, np.inf)}
        acceptance = (ends[side],)
        accepted = sure_intervals(form, acceptance, 1e-12)
        for each in find_valid_codes(ScoredSum(form, region, accepted, row)):
            j = each.feature
            assert each.low <= row[j] <= each.high
            points = np.linspace(each.low, each.high, 21)
            near = np.repeat(row[None], 21, axis=0)
            near[:, j] = points
            is_kept = region.contains(near) & contains(acceptance, model.scores(region.rows(near)))
            assert is_kept[[0, -1]].all()
            assert is_kept.all()
            size = 1e-6 * float(region.high[j] - region.low[j])
            for outside in (each.low - size, each.high + size):
                beyond = row.copy()
                beyond[j] = outside
                table = region.rows(beyond[None])
                is_out = not region.contains(beyond[None])[0]
                assert is_out or not contains(acceptance, model.scores(table))[0]


def test_ranges_of_explained_linear_answers_reach_the_target_as_printed() -> None:
    data = continuous()
    y = 3.0 * data.a - data.b + 0.5 * data.c
    model = LinearRegression().fit(data, y)
    space = cfx.Space.from_data(data).max_changes(2)
    answer = cfx.explain(model, data.iloc[0], space, cfx.between(0.0, 3.0), rng=0)
    assert answer.proof == "optimal before rounding"
    assert "Stays valid with" in str(answer)
    assert answer.verify(model)
    assert answer.best.valid_ranges is not None
    for name, each in answer.best.valid_ranges.items():
        texts = [text for text in each.text.split() if text[0].isdigit()]
        assert texts, each.text
        for text in texts:
            row = pd.DataFrame([answer.best.row])
            row[name] = float(text)
            assert contains(answer.accepted, model.predict(row[data.columns])).all()
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.best.valid_ranges == answer.best.valid_ranges


def test_networks_have_ranges_of_features_with_steps_only() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"n": rng.integers(0, 20, 200), "u": rng.normal(size=200)})
    y = data.n * 0.4 + data.u
    layers = MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", max_iter=500, random_state=0)
    model = make_pipeline(StandardScaler(), layers).fit(data, y)
    space = cfx.Space.from_data(data)
    answer = cfx.explain(model, data.iloc[0], space, cfx.increase(by=4.0), rng=0)
    assert answer.best.valid_ranges is not None
    assert list(answer.best.valid_ranges) == ["n"]
    assert answer.verify(model)
    low, high = answer.best.valid_ranges["n"].low, answer.best.valid_ranges["n"].high
    table = pd.DataFrame([answer.best.row] * 20)[data.columns]
    table["n"] = np.arange(20)
    is_hit = contains(answer.accepted, model.predict(table))
    assert is_hit[low : high + 1].all()
    assert low == 0 or not is_hit[low - 1]
    assert high == 19 or not is_hit[high + 1]
