"""Answers over random tables, spaces, rules and models: every one is allowed and was scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.errors import InfeasibleError, TargetError
from tests.oracles.spaces import Case, noted, random_case


class Bumpy:
    """A bumpy model of a table's codes that keeps every row it was asked about."""

    def __init__(self, case: Case, seed: int) -> None:
        region = case.space.around(case.query)
        rng = np.random.default_rng(seed)
        self.region = region
        self.span = np.where(region.high > region.low, region.high - region.low, 1.0)
        self.weights, self.phases = rng.normal(size=(2, len(region.query)))
        self.rows: list[pd.DataFrame] = []
        self.outputs: list[float] = []

    def quietly(self, rows: Any) -> Any:
        codes = np.nan_to_num((self.region.encode(rows) - self.region.query) / self.span)
        return codes @ self.weights + 0.2 * np.sin(9.0 * codes + self.phases) @ self.weights

    def __call__(self, rows: Any) -> Any:
        y = self.quietly(rows)
        self.rows += [rows.iloc[[i]].reset_index(drop=True) for i in range(len(rows))]
        self.outputs += y.tolist()
        return y


def check(seed: int) -> bool:
    """Ask a random question three ways; return whether it had a counterfactual to check."""
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    model = Bumpy(case, seed)
    method = "bayes-cfx" if seed % 3 else str(rng.choice(["random", "lbfgsb", "bayes"]))
    budget, n = int(rng.integers(8, 26)), int(rng.integers(1, 5))
    if seed % 5 == 4:
        method, budget = "sweep", 10 * budget
    target = cfx.increase(by=float(rng.choice([0.2, 1.0, 50.0])))
    try:
        answer = cfx.explain(
            model, case.query, case.space, target, method=method, budget=budget, n=n, rng=seed
        )
    except (InfeasibleError, TargetError):
        return False
    assert len(model.rows) == answer.n_evaluations <= budget
    assert 1 <= len(answer.counterfactuals) <= n
    moved = [c for c in answer.counterfactuals if c.changes]
    assert len({repr(c.row) for c in moved}) == len(moved)
    rows = answer.rows
    assert isinstance(rows, pd.DataFrame)
    for i, c in enumerate(answer.counterfactuals):
        row = rows.iloc[[i]].reset_index(drop=True)
        asked = [y for x, y in zip(model.rows, model.outputs, strict=True) if x.equals(row)]
        # scored exactly as handed out; the best once more if rows were left, in another batch
        assert asked[0] == c.output
        assert len(asked) == 1 or (i == 0 and np.allclose(asked, c.output, rtol=1e-12, atol=0.0))
        assert 1 <= len(asked) <= 2
        if c.changes:
            assert case.broken(row) == []
    assert answer.violations(model.quietly) == ()
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.violations(model.quietly, case.space) == ()
    assert repr(again) == repr(answer)
    return bool(moved)


@noted
@pytest.mark.parametrize("block", range(4))
def test_answers_are_allowed_and_were_scored_as_they_are(block: int) -> None:
    assert any([check(seed) for seed in range(5 * block, 5 * block + 5)])


@noted
@pytest.mark.parametrize("seed", [1267, 1287])
def test_nothing_to_relax_is_no_error(seed: int) -> None:
    check(seed)  # no row that breaks the bound on changes has exactly one change more


@noted
@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_hundreds_of_answers_are_allowed_and_were_scored_as_they_are(block: int) -> None:
    assert sum(check(seed) for seed in range(1000 + 30 * block, 1030 + 30 * block)) > 10
