"""The numbers of convergence and potential."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx import plots
from bayescfx.plots.info.outcomes import convergence_info, potential_info
from tests.plots.conftest import linear


def test_convergence_marks_the_first_accepted_row(numbers: cfx.Explanation) -> None:
    info = convergence_info(numbers)
    (low, high), y = numbers.accepted[0], numbers.evaluations.outputs
    first = int(np.flatnonzero((y >= low) & (y <= high))[0]) + 1
    assert info.reached_at == first
    assert info.scores is not None
    np.testing.assert_allclose(np.maximum.accumulate(info.scores), info.best)


def test_convergence_of_shared_evaluations_shows_the_trace_alone(
    numbers: cfx.Explanation,
) -> None:
    known = cfx.Evaluations(np.zeros((3, 3)), np.zeros(3))
    info = convergence_info(replace(numbers, evaluations=known))
    assert info.scores is None
    assert info.reached_at is not None
    assert info.best[info.reached_at - 1] >= 0.99


def test_a_missed_target_has_no_reaching_row(mixed: cfx.Explanation) -> None:
    assert convergence_info(mixed).reached_at is None


def test_the_potential_is_0_at_the_query_and_1_at_the_target(
    numbers: cfx.Explanation,
) -> None:
    info = potential_info(numbers)
    assert info.share is not None
    at = dict(zip(info.outputs.tolist(), info.share.tolist(), strict=True))
    assert at[numbers.output] == 0.0
    assert np.interp(numbers.output + 1.5, info.outputs, info.share) == pytest.approx(1.0, abs=1e-3)
    assert info.outputs[0] < info.reachable[0] <= info.reachable[1] < info.outputs[-1]


class Bump:
    """A user's own potential."""

    def value(self, y: Any) -> Any:
        return np.exp(-((np.asarray(y) - 3.0) ** 2))

    def slope(self, y: Any) -> Any:
        return -2 * (np.asarray(y) - 3.0) * self.value(y)


def test_a_users_own_potential_has_only_its_target_after_json() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    answer = cfx.explain(linear, X[0] * 0 + 0.4, cfx.Space.from_data(X), Bump(), budget=30, rng=0)
    assert potential_info(answer).share is not None
    again = cfx.Explanation.from_json(answer.to_json())
    info = potential_info(again)
    assert info.share is None
    assert info.accepted == answer.accepted
    plots.potential(again)
    plots.convergence(again)


def test_a_one_sided_target_is_reached_at_its_bound() -> None:
    X = pd.DataFrame({"a": np.linspace(0, 100, 101), "b": np.sin(np.arange(101))})

    class Steps:
        def rounds(self, question: Any) -> Any:
            for share in (0.98, 0.985, 0.99, 1.0, 1.01):
                row = question.region.query.copy()
                row[0] += 20 * share
                yield row[None]
            return "exhausted"

    many = cfx.explain_many(
        lambda rows: rows["a"].to_numpy(),
        X.iloc[[3, 10]],
        cfx.Space.from_data(X),
        cfx.increase(by=20.0),
        budget=60,
        method=Steps(),
        rng=0,
    )
    assert [convergence_info(answer).reached_at for answer in many] == [5, 5]
