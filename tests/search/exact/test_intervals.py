from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from bayescfx.models.model import as_model
from bayescfx.models.readers import TreeEnsemble, read_model
from bayescfx.search.exact.intervals import ScoredRow, find_valid_codes
from bayescfx.search.exact.leaves import make_leaf_table
from tests.search.exact.certificate_problems import SmallProblem, make_problem


def is_valid(problem: SmallProblem, row: Array, j: int, codes: Array) -> Mask:
    """Return which codes of a feature keep all rules and reach the target, by the model."""
    X = np.repeat(row[None], len(codes), axis=0)
    X[:, j] = codes
    return problem.region.contains(X) & problem.reaches(X)


@pytest.mark.parametrize("seed", range(9))
def test_ranges_equal_brute_force(seed: int) -> None:
    small = make_problem(seed)
    hits = np.flatnonzero(np.isfinite(small.costs))
    rng = np.random.default_rng(seed)
    for at in rng.permutation(hits)[:4]:
        row = small.rows[at]
        found = find_valid_codes(ScoredRow(small.table, small.region, small.accepted, row))
        changed = np.flatnonzero(small.region.changes(row[None])[0])
        assert [each.feature for each in found] == changed.tolist()
        for each in found:
            j = each.feature
            codes = small.region.axes[j].choices
            assert codes is not None
            valid = is_valid(small, row, j, codes)
            if each.codes is not None:
                np.testing.assert_array_equal(each.codes, codes[valid])
                continue
            assert each.is_exact
            inside = (codes >= each.low) & (codes <= each.high)
            assert inside[codes == row[j]].all()
            assert valid[inside].all()
            first, last = np.flatnonzero(inside)[[0, -1]]
            assert codes[first] == each.low
            assert codes[last] == each.high
            assert first == 0 or not valid[first - 1]
            assert last == len(codes) - 1 or not valid[last + 1]


@pytest.mark.parametrize("has_rule", [False, True])
def test_continuous_range_ends_at_thresholds_and_linear_rules(has_rule: bool) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    fitted = HistGradientBoostingRegressor(max_iter=10).fit(data, data.a + data.b * data.c)
    space = cfx.Space.from_data(data)
    if has_rule:
        space = space.require("a + b <= 1.25")
    model = as_model(fitted, space.schema)
    form = read_model(model, data.iloc[:60]).form
    assert isinstance(form, TreeEnsemble)
    query = data.iloc[[int(np.argmin(np.abs(data.a + 0.5) + np.abs(data.b)))]]
    region = space.around(query)
    row = region.query.copy()
    row[0] = 1.0
    accepted = ((model.scores(region.rows(row[None]))[0] - 0.2, np.inf),)
    table = make_leaf_table(form, region)
    (found,) = find_valid_codes(ScoredRow(table, region, accepted, row))
    ends = np.array([found.low, found.high, np.nextafter(found.low, -9.0)])
    ends = np.append(ends, np.nextafter(found.high, 9.0))
    X = np.repeat(row[None], 4, axis=0)
    X[:, 0] = ends
    is_valid = region.contains(X) & (model.scores(region.rows(X)) >= accepted[0][0])
    assert is_valid.tolist() == [True, True, False, False]
    if has_rule:
        assert found.high == pytest.approx(1.25 - row[1])
    middle = np.repeat(row[None], 500, axis=0)
    middle[:, 0] = np.linspace(found.low, found.high, 500)
    assert (model.scores(region.rows(middle)) >= accepted[0][0]).all()
