"""Tables of leaves: sums from cells, leaves that cost too much, limits of time and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import OutOfTime
from bayescfx.search.exact import query_leaves
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.leaves import make_leaf_table
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Prover
from tests.search.exact.random_questions import MOST_ROWS, RandomQuestion, make_question
from tests.search.exact.test_prover import run_proof

SEEDS = range(12)


def list_rows(question: RandomQuestion) -> Any:
    """Return some of the allowed rows of a question."""
    X = question.region.enumerate(MOST_ROWS)
    assert X is not None
    return X[:: max(len(X) // 200, 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_give_the_sums_of_the_form(seed: int) -> None:
    question = make_question(seed)
    form: Any = question.reading.form
    X = list_rows(question)
    table = make_leaf_table(form, question.region)
    np.testing.assert_allclose(table.raw(X), form.raw(question.region.rows(X)), atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaves_of_rows_within_the_limit_are_kept(seed: int) -> None:
    question = make_question(seed)
    region = question.region
    form: Any = question.reading.form
    X = list_rows(question)
    if not len(X):
        return
    limit = float(np.median(region.cost(X)))
    problem = BoxProblem(make_leaf_table(form, region), region, (), limit=limit)
    everything = BoxProblem(make_leaf_table(form, region), region, (), keep_costly=True)
    assert len(problem.code) <= len(everything.code)
    near = X[region.cost(X) <= limit]
    corner = np.empty((len(near), len(problem.features)), dtype=np.intp)
    for k, cells in enumerate(problem.cells):
        codes = near[:, cells.feature][:, None]
        is_inside = (cells.lowest <= codes) & (codes <= cells.highest)
        assert is_inside.any(axis=1).all()
        corner[:, k] = is_inside.argmax(axis=1)
    expected = form.raw(region.rows(near))[:, 0]
    np.testing.assert_allclose(problem.corner_scores(corner), expected, atol=1e-9)


def test_a_table_is_not_made_after_the_time_limit() -> None:
    question = make_question(0)
    form: Any = question.reading.form
    table = make_leaf_table(form, question.region)
    with limited_to(Deadline.after(0.0)):
        with pytest.raises(OutOfTime):
            make_leaf_table(form, question.region)
        with pytest.raises(OutOfTime):
            BoxProblem(table, question.region, ())


def test_a_proof_without_time_gives_the_reason() -> None:
    question = make_question(0)
    work = Work(deadline=Deadline.after(0.0))
    proof, _, n_rows = run_proof(question, Prover(question.model), work=work)
    assert proof.conclusion is None
    assert proof.reason == "the time was over before the proof began"
    assert n_rows == 0


def test_too_many_leaves_are_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    question = make_question(0)
    form: Any = question.reading.form
    monkeypatch.setattr(query_leaves, "MOST_WORDS", 10)
    with pytest.raises(NoProof, match="too many leaves for a proof"):
        BoxProblem(make_leaf_table(form, question.region), question.region, ())
