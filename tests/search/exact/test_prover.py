"""Proofs agree with brute force over every allowed row."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.models.model import as_model
from bayescfx.models.readers import read_model
from bayescfx.search.exact.branching import Work, find_extreme
from bayescfx.search.exact.cells import local_cells
from bayescfx.search.exact.leaves import make_leaf_table
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Proof, Prover, prove, raw_intervals
from tests.search.exact.random_questions import MOST_ROWS, RandomQuestion, make_question


def run_proof(
    question: RandomQuestion, prover: Prover, cost: float = np.inf, work: Work | None = None
) -> tuple[Proof, float, int]:
    """Return the proof, the cost of the best answer, and the number of scored rows."""
    X = question.region.query[None]
    scored = X, question.outputs(X)
    search: Generator[Array, Array, Proof] = prove(question, prover, scored, cost, work or Work())
    best = cost
    n_rows = 0
    try:
        rows = next(search)
        while True:
            n_rows += len(rows)
            assert question.region.contains(rows).all()
            outputs = question.outputs(rows)
            hits = rows[question.accepted(outputs)]
            best = min([best, *question.region.cost(hits)])
            rows = search.send(outputs)
    except StopIteration as end:
        return end.value, best, n_rows


def check_question(seed: int) -> str | None:
    """Check one random question; return the conclusion."""
    question = make_question(seed)
    lowest = question.lowest_cost()
    prover = Prover(question.model)
    proof, best, _ = run_proof(question, prover)
    assert best == pytest.approx(lowest, rel=1e-8)
    if proof.conclusion == "out of reach":
        assert lowest == np.inf
    elif proof.conclusion == "optimal":
        assert proof.bound == pytest.approx(lowest, rel=1e-8)
    elif proof.conclusion == "bounded":
        assert proof.bound is not None
        assert proof.bound <= lowest
    if np.isfinite(lowest):  # with the answer known, nothing nearer is found
        again, best, _ = run_proof(question, prover, lowest)
        assert best == lowest
        assert again.conclusion in ("optimal", "bounded")
    return proof.conclusion


@pytest.mark.parametrize("seed", range(15))
def test_the_nearest_answer_is_found_and_proven(seed: int) -> None:
    assert check_question(seed) is not None


@pytest.mark.slow
def test_hundreds_of_nearest_answers_are_found_and_proven() -> None:
    conclusions = [check_question(seed) for seed in range(100, 400)]
    assert conclusions.count("optimal") > 100
    assert conclusions.count("out of reach") > 20
    assert None not in conclusions


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("side", [-1, 1])
def test_extreme_outputs_are_those_of_brute_force(seed: int, side: int) -> None:
    question = make_question(seed)
    form: Any = question.reading.form
    X = question.region.enumerate(MOST_ROWS)
    assert X is not None
    if not len(X):
        return
    outputs = question.outputs(X)
    problem = BoxProblem(make_leaf_table(form, question.region), question.region, ())
    found = find_extreme(problem, side, Work())
    assert found.score == pytest.approx(side * (side * outputs).max())
    assert found.bound == pytest.approx(found.score)
    assert question.outputs(found.row[None])[0] == pytest.approx(found.score)


@pytest.fixture(scope="module")
def continuous() -> tuple[Any, pd.DataFrame]:
    """Return a model of columns without a grid, and its data."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = table.a * table.b + np.sin(3 * table.c)
    model = lightgbm.LGBMRegressor(n_estimators=25, num_leaves=6, verbose=-1, n_jobs=1)
    return model.fit(table, y), table


@pytest.mark.parametrize("single", [False, True])
def test_answers_of_continuous_features_lie_at_the_edge_of_a_cell(
    continuous: tuple[Any, pd.DataFrame], single: bool
) -> None:
    model, table = continuous
    if single:  # forests compare numbers of 32 bits
        model = RandomForestRegressor(12, max_depth=4, random_state=0).fit(table, table.a * table.b)
    space = cfx.Space.from_data(table, dict.fromkeys("abc", "real"))
    rng = np.random.default_rng(1)
    for k in range(4):
        region = space.around(table.iloc[k])
        checked = as_model(model, space.schema)
        output = float(checked.scores(table.iloc[[k]])[0])
        acceptance = ((output + 0.4, np.inf),)
        prover = Prover(checked)
        question = RandomQuestion(checked, prover.reading(region), region, acceptance)
        proof, best, _ = run_proof(question, prover)
        assert proof.conclusion in ("optimal", "out of reach")
        # Random rows within the proven distance never reach the target.
        X = region.query + rng.normal(size=(20_000, 3)) * rng.exponential(0.5, size=(20_000, 1))
        X = region.snap(np.where(rng.random(X.shape) < 0.5, X, region.query))
        hits = X[question.accepted(question.outputs(X))]
        assert (region.cost(hits) >= best * (1 - 1e-9)).all()


def test_a_long_grid_that_begins_beyond_the_query_is_reached() -> None:
    table = pd.DataFrame({"i": np.r_[0:100_000:997, 300_000:1_000_000:997]})
    model = DecisionTreeRegressor(max_depth=1).fit(table, table.i > 200_000)
    space = cfx.Space.from_data(table).between({"i": (600_000, 800_000)})
    with pytest.warns(cfx.SpaceWarning, match="outside its limits"):
        answer = cfx.explain(model, table.iloc[0], space, cfx.at_least(0.5), method="exact", rng=0)
    assert answer.proof == "optimal"
    assert answer.best.changes["i"][1] == 600_000


def test_cells_of_scaled_numbers_are_found_across_zero() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(40.0 * rng.normal(size=(300, 2)), columns=["a", "b"])
    y = np.sin(table.a / 20.0) + table.b / 40.0
    model = make_pipeline(StandardScaler(), RandomForestRegressor(10, max_depth=5, random_state=0))
    model.fit(table, y)
    space = cfx.Space.from_data(table, dict.fromkeys("ab", "real"))
    form: Any = read_model(as_model(model, space.schema), table).form
    region = space.around(table.iloc[0])
    for cells in local_cells(region, make_leaf_table(form, region).cells):
        X = np.repeat(region.query[None], len(cells.code), axis=0)
        X[:, cells.feature] = cells.code
        numbers = form.inputs.compute(region.rows(X))[:, cells.feature]
        assert (np.diff(numbers) > 0).all()  # each code lies in the next cell
        assert len(np.unique(cells.cell)) == len(cells.cell) > 5


def test_a_proof_that_is_cut_short_gives_a_lower_bound() -> None:
    question = make_question(0)
    lowest = question.lowest_cost()
    proof, _, _ = run_proof(question, Prover(question.model), lowest * 3, Work(most=1))
    assert proof.conclusion == "bounded"
    assert proof.bound is not None
    assert proof.bound <= lowest
    assert proof.reason == "the proof was cut short"


def test_a_function_is_not_proven_and_the_reason_is_given() -> None:
    question = make_question(0)
    proof, _, n_rows = run_proof(question, Prover(as_model(lambda rows: rows["a"])))
    assert proof.conclusion is None
    assert proof.reason == "the model is not an estimator in this process"
    assert n_rows == 0


def test_accepted_outputs_are_mapped_through_the_link() -> None:
    question = make_question(0)
    form: Any = question.reading.form
    assert raw_intervals(form, ((1.0, np.inf),), 0.0)[0] == pytest.approx((1.0, np.inf))
    logistic = type("Form", (), {"link": "expit"})()
    low, high = raw_intervals(logistic, ((0.5, 1.0),), 0.0)[0]
    assert low == pytest.approx(0.0, abs=1e-12)
    assert high == np.inf


def test_the_table_of_a_model_is_made_once_for_all_queries_of_a_space() -> None:
    question = make_question(0)
    prover = Prover(question.model)
    X = question.region.query[None]
    form: Any = prover.form(question.region, X, question.outputs(X))
    assert prover.table(question.region, form) is prover.table(question.region, form)


def test_a_linear_rule_on_a_cyclic_feature_excludes_no_allowed_hour() -> None:
    # The cells of a circle are listed by cost, so that the first and the last are not its ends.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hour": rng.integers(0, 24, 3000), "a": rng.integers(0, 2, 3000)}).assign(
        b=rng.integers(0, 2, 3000)
    )
    y = 1.0 * ((X["hour"] == 18) & (X["a"] == 1) & (X["b"] == 1))
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    hours = cfx.Integer(0, 23, cyclic=True)
    space = cfx.Space.from_data(X, kinds={"hour": hours}).require("hour >= 18")
    query = pd.Series({"hour": 12, "a": 0, "b": 0})
    answer = cfx.explain(model, query, space, cfx.at_least(0.9), method="exact", rng=0)
    assert answer.proof == "optimal"
    assert answer.best.changes == {"hour": (12, 18), "a": (0, 1), "b": (0, 1)}


def test_reachable_outputs_are_bounded_where_a_rule_excludes_a_corner() -> None:
    X = pd.DataFrame({"a": np.linspace(0.0, 1.0, 101), "b": np.linspace(1.0, 0.0, 101)})
    model = DecisionTreeRegressor(max_depth=1, random_state=0).fit(X, 1.0 * (X["a"] > 0.5))
    kinds = {"a": cfx.Real(0.0, 1.0), "b": cfx.Real(0.0, 1.0)}
    space = cfx.Space(kinds).require("a + b >= 1.3")
    query = pd.Series({"a": 0.4, "b": 0.95})
    found = cfx.reachable(model, query, space)
    low, high = found.bounds
    assert low <= 0.0
    assert high >= 1.0


def test_reachable_rows_of_a_linear_model_keep_rules_that_are_not_linear() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.integers(-5, 6, 100), "e": rng.integers(0, 2, 100)})
    model = LinearRegression().fit(data, data.a + 2 * data.e)
    space = cfx.Space.from_data(data).require("e == 0 or a <= 0")
    found = cfx.reachable(model, pd.Series({"a": -2, "e": 0}), space)
    assert found.highest_row is not None
    assert found.highest_row["e"] == 0 or found.highest_row["a"] <= 0
    assert not found.is_exact
    assert found.bounds[1] == pytest.approx(7.0)


def test_reachable_outputs_lie_within_their_bounds_in_single_precision() -> None:
    xgboost = pytest.importorskip("xgboost")
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X[["bmi", "bp", "s5"]]
    model = xgboost.XGBRegressor(n_estimators=30, max_depth=3, n_jobs=1).fit(X, y)
    space = cfx.Space.from_data(X).max_changes(1)
    for row in range(5):
        found = cfx.reachable(model, X.iloc[row], space)
        assert found.bounds[0] <= found.lowest <= found.highest <= found.bounds[1]
