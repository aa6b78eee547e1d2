"""Rules given as functions of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.errors import SpaceError
from bayescfx.space.rules.function import FunctionRule
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space


@pytest.mark.parametrize("bad", [lambda d: True, lambda d: d["a"], lambda d: [True]])
def test_a_function_must_return_one_boolean_per_row(bad: Any) -> None:
    rule = FunctionRule(bad, "odd")
    with pytest.raises(SpaceError, match="rule 'odd' must return one boolean per row; got shape"):
        rule.allows(pd.DataFrame({"a": [1.0, 2.0]}))


def test_a_function_may_return_nullable_booleans() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
    found = FunctionRule(lambda d: d["a"] > 1, "big").allows(frame)
    assert found.tolist() == [False, False, True]


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_function_rules_see_rows_as_the_model_does(kind: str) -> None:
    X: Any = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    X = X if kind == "array" else pd.DataFrame(X, columns=list("abc"))
    seen: list[Any] = []

    def rule(rows: Any) -> Any:
        seen.append(rows)
        return np.asarray(rows)[:, 0] >= -1

    region = Space.from_data(X).require(rule).around(X[0] if kind == "array" else X.iloc[0])
    sample(region, 5, np.random.default_rng(0))
    assert {type(rows) for rows in seen} == {type(X)}
    if kind == "frame":
        assert all(rows.dtypes.equals(X.dtypes) for rows in seen)
