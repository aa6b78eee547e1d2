"""Answers hold as printed: short decimals, typed in, reach the target and keep the constraints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from bayescfx import Space, explain
from bayescfx.potentials import contains
from tests.printed import FORMATS, MODELS, TABLES, questions, typed_row


def check_printed_answers(table: str, model: str, n: int) -> None:
    """Check that each answer holds as it is printed in each format."""
    for answer, query, fitted in questions(table, model, n):
        for name, read in FORMATS.items():
            changes = read(answer)
            assert set(changes) == set(map(str, answer.best.changes)), (name, changes, str(answer))
            row = typed_row(query, changes)
            output = np.asarray(fitted.predict(row), dtype=np.float64)
            assert contains(answer.accepted, output)[0] == answer.reached, (name, str(answer))
            assert output[0] == pytest.approx(answer.best.output, rel=1e-6), (name, str(answer))
        assert answer.verify(fitted)


@pytest.mark.parametrize("model", ["LightGBM", "ridge"])
@pytest.mark.parametrize("table", ["houses", "single precision", "mixed"])
def test_printed_answers_hold(table: str, model: str) -> None:
    check_printed_answers(table, model, 4)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_printed_answers_hold_on_ten_tables(table: str, model: str) -> None:
    if model == "XGBoost":
        pytest.importorskip("xgboost")
    check_printed_answers(table, model, 12)


def test_a_small_budget_is_spent_alike_with_rows_kept_for_rounding_and_for_checks() -> None:
    # With 40 rows two start rows are affordable for each of 8 features, and the first steps after
    # them are still in the half of the budget in which a search stays near the query.
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    wide = Space.from_data(X).fix("age", "sex").max_changes(3)
    for space in (wide, wide.only_down("bmi").move({"bp": (-20, 0)})):
        answers = [
            explain(model, X.iloc[114], space, "-20%", budget=40, rng=0, short_decimals=short)
            for short in (True, False)
        ]
        first, second = (answer.evaluations.to_frame().head(18) for answer in answers)
        pd.testing.assert_frame_equal(first, second)
        assert (first.drop(columns="output").nunique() > 1).sum() == 8
