"""Whole numbers with few values in the data move from one to the next."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx


@pytest.mark.parametrize(
    ("values", "step"),
    [([36, 60], 24), ([12, 24, 36, 60], 12), ([0, 1], 1), ([3, 4, 6, 8], 1), ([1, 3], 2)],
)
def test_the_step_between_few_values_is_inferred(values: list[int], step: int) -> None:
    X = pd.DataFrame({"term": np.resize(values, 60), "amount": np.arange(60)})
    assert cfx.Space.from_data(X).features["term"].step == step
    assert cfx.Space.from_data(X.head(10)).features["term"].step == 1
    by_hand = cfx.Space.from_data(X).steps({"term": 1})
    assert by_hand.features["term"].step == 1


def test_no_answer_asks_for_a_term_that_nobody_offers() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"term": rng.choice([36, 60], 200), "amount": rng.uniform(1e3, 2e4, 200)})
    space = cfx.Space.from_data(X)
    answer = cfx.explain(
        lambda r: r["term"] / 10 + r["amount"] / 1e4,
        {"term": 60, "amount": 5000.0},
        space,
        cfx.decrease(by=0.2),
        rng=0,
    )
    assert answer.best.row["term"] in (36, 60)
    assert "36 … 60 by 24" in str(space)
