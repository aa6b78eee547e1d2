"""Answers hold as printed: short decimals, typed in, reach the target and keep the constraints."""

from __future__ import annotations

import numpy as np
import pytest

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
