"""Bayesian optimisation of the potential itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.search.naive import NaiveBayes
from tests.search.kinds import KINDS, ask, finish


def test_naive_bayes_proposes_batches() -> None:
    question, model = ask(KINDS["real"], 11, weight=0.1)
    finish(NaiveBayes(starts=2, batch=4), question)
    assert [len(call) for call in model.calls] == [1, 2, 4, 4]


def test_naive_bayes_starts_from_failed_rows_alone() -> None:
    given = KINDS["real"]
    seen: list[int] = []

    def late(rows: pd.DataFrame) -> Any:
        seen.extend(range(len(rows)))
        return given.model(rows) if len(seen) > 6 or len(seen) == 1 else np.full(len(rows), np.nan)

    question, _ = ask(replace(given, model=late), 12, on_fault="skip")
    assert finish(NaiveBayes(), question) in ("budget", "converged")
    assert len(question.y) > 1
