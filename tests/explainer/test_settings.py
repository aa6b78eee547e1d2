"""Errors about arguments, and their messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.conftest import (
    ZERO,
    Recorder,
    cube,
    mixed,
    outcome,
    plane,
)


def refuse(message: str, *, error: type[Exception] = ValueError, **given: Any) -> None:
    arguments: dict[str, Any] = {
        "model": plane,
        "query": ZERO,
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error) as caught:
        cfx.explain(**arguments)
    assert str(caught.value).startswith(message), str(caught.value)


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "space": (
        cfx.SpaceError,
        "`space` must be a Space; got DataFrame. Use Space.from_data(X).",
        {"space": pd.DataFrame(ZERO, index=[0])},
    ),
    "budget 0": (
        ValueError,
        "`budget` must be a whole number of at least 1; got 0.",
        {"budget": 0},
    ),
    "budget 1.5": (
        ValueError,
        "`budget` must be a whole number of at least 1; got 1.5.",
        {"budget": 1.5},
    ),
    "budget True": (
        ValueError,
        "`budget` must be a whole number of at least 1; got True.",
        {"budget": True},
    ),
    "n": (ValueError, "`n` must be a whole number of at least 1; got None.", {"n": None}),
    "tolerance 1": (
        ValueError,
        "`tolerance` must be at least 0 and less than 1; got 1. It is the share of the wanted "
        "change that may be missed.",
        {"tolerance": 1},
    ),
    "tolerance text": (
        ValueError,
        "`tolerance` must be at least 0 and less than 1; got 'x'.",
        {"tolerance": "x"},
    ),
    "timeout -1": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got -1.",
        {"timeout": -1},
    ),
    "timeout nan": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got nan.",
        {"timeout": float("nan")},
    ),
    "timeout text": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got '3'.",
        {"timeout": "3"},
    ),
    "evaluations": (
        ValueError,
        "`evaluations` must be None, Evaluations or a path; got 3.",
        {"evaluations": 3},
    ),
    "a table as evaluations": (
        ValueError,
        "`evaluations` must be None, Evaluations or a path; got a DataFrame of shape (40, 20).",
        {"evaluations": pd.DataFrame(np.ones((40, 20)))},
    ),
    "rng text": (
        ValueError,
        "`rng` must be None, a whole number of at least 0 or a numpy Generator; got 'a'.",
        {"rng": "a"},
    ),
    "rng -1": (
        ValueError,
        "`rng` must be None, a whole number of at least 0 or a numpy Generator; got -1.",
        {"rng": -1},
    ),
    "on_step": (
        ValueError,
        "`on_step` must be None or a function of a Step; got 3.",
        {"on_step": 3},
    ),
    "on_fault": (
        ValueError,
        "`on_fault` must be 'raise' or 'skip'; got 'ignore'.",
        {"on_fault": "ignore"},
    ),
    "method name": (
        ValueError,
        "`method` must be one of 'auto', 'bayes-cfx', 'sweep', 'exact', 'bayes', 'random', "
        "'lbfgsb', 'gradient'; got 'bayes_cfx'. Did you mean 'bayes-cfx'?",
        {"method": "bayes_cfx"},
    ),
    "method class": (
        ValueError,
        "`method` must be a name or a configured Search such as BayesCFX(); got <class",
        {"method": cfx.BayesCFX},
    ),
    "model": (
        cfx.ModelError,
        "`model` must be callable or have `predict`; got NoneType.",
        {"model": None},
    ),
    "target": (
        cfx.TargetError,
        "the target must be like '+20%' or '-15' (at least so much more or less), '±10%', '=+20%' "
        "(exactly), '>= 150', '<= 0.3', '140..160' or '= 150'; for classifiers 'becomes good', "
        "'becomes good 0.7' or 'flips'; got 'up'.",
        {"target": "up"},
    ),
    "missing column": (
        cfx.QueryError,
        "`query` must have every column of the space; missing: 'c'.",
        {"query": {"a": 0.1, "b": 0.2}},
    ),
    "unknown column": (
        cfx.QueryError,
        "`query` must have only the columns of the space; unknown: 'd'.",
        {"query": {**ZERO, "d": 1.0}},
    ),
    "text": (
        cfx.QueryError,
        "`query` must fit the dtypes of the space; got '1.0' in column 'a' of dtype float64. "
        "Correct the cell.",
        {"query": {**ZERO, "a": "1.0"}},
    ),
    "two rows": (
        cfx.QueryError,
        "`query` must be one row; got 2.",
        {"query": pd.DataFrame([ZERO, ZERO])},
    ),
    "no row": (
        cfx.QueryError,
        "`query` must be one row; got 0.",
        {"query": pd.DataFrame([ZERO]).iloc[:0]},
    ),
    "no query": (
        cfx.QueryError,
        "`query` must be a Series, a dict, a DataFrame or an array; got NoneType.",
        {"query": None},
    ),
    "short query": (
        cfx.QueryError,
        "`query` must have 3 columns; got shape (1, 2).",
        {"query": [1.0, 2.0]},
    ),
    "two columns": (
        cfx.ModelError,
        "`model` returned shape (1, 2) for 1 rows; expected (1,). If these are several "
        "outputs, pass one of them, e.g. lambda X: model.predict(X)[:, 0]; for a classifier pass "
        "bayescfx.probability(model, label).",
        {"model": lambda X: np.zeros((len(X), 2))},
    ),
    "no free feature": (
        cfx.InfeasibleError,
        "no feature may move for this query: every one is fixed, missing or at its limits.",
        {"space": cfx.Space({n: cfx.Real(0, 1) for n in "abc"}).fix("a", "b", "c")},
    ),
    "contradiction": (
        cfx.InfeasibleError,
        "no point satisfies every rule for this query (0 of 2048 tried). This constraint alone "
        "forbids every row within the ranges of the features: rule 'a >= 1.2 + b'. Relax it.",
        {
            "space": cfx.Space({n: cfx.Real(0, 1) for n in "abc"})
            .require("b >= 0.5")
            .require("a >= 1.2 + b")
        },
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str) -> None:
    error, message, given = WRONG[case]
    refuse(message, error=error, **given)


@pytest.mark.parametrize(
    "case", [c for c in WRONG if c not in ("no free feature", "contradiction", "two columns")]
)
def test_the_model_is_not_asked_before_the_arguments_are_right(case: str) -> None:
    error, _, given = WRONG[case]
    model = Recorder(plane)
    arguments: dict[str, Any] = {
        "model": model,
        "query": ZERO,
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error):
        cfx.explain(**arguments)
    assert model.n <= (1 if case == "target" else 0)


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'buget'"):
        cfx.explain(plane, ZERO, cube(), 1.0, buget=3)  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="positional arguments"):
        cfx.explain(plane, ZERO, cube(), 1.0, "random")  # type: ignore[call-arg]  # what is tested


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"n_jobs": 0},
            ValueError,
            "`n_jobs` must be None or a whole number other than 0; got 0.",
        ),
        (
            {"n_jobs": 1.5},
            ValueError,
            "`n_jobs` must be None or a whole number other than 0; got 1.5.",
        ),
        (
            {"queries": ZERO},
            cfx.QueryError,
            "`queries` must be a DataFrame, a 2-D array or a sequence of rows; got dict. For one "
            "row use explain.",
        ),
        (
            {"queries": np.zeros(3)},
            cfx.QueryError,
            "`queries` must be a DataFrame, a 2-D array or a sequence of rows; got an array of "
            "shape (3,). For one row use explain.",
        ),
        (
            {"target": [1.0, 2.0, 3.0]},
            cfx.TargetError,
            "`target` must be one target or one per query; got 3 for 2 queries.",
        ),
        ({"on_step": 3, "n_jobs": 2}, ValueError, "`on_step` must be None or a function of a Step"),
    ],
)
def test_what_is_wrong_with_many_queries_is_said(
    given: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "model": plane,
        "queries": pd.DataFrame([ZERO, ZERO]),
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error) as caught:
        cfx.explain_many(**arguments)
    assert str(caught.value).startswith(message), str(caught.value)


@pytest.mark.parametrize(
    ("queries", "target", "message"),
    [
        ([ZERO, {"a": 1.0}], 1.0, "`query` must have every column"),
        ([ZERO, ZERO], [1.0, "up"], "the target must be like"),
        ([ZERO, {**ZERO, "a": 0.95}], 1.0, "no feature may move for this query"),
    ],
)
def test_an_error_says_which_query_it_is_about(queries: Any, target: Any, message: str) -> None:
    space = cfx.Space({n: cfx.Real(0, 0.95) for n in "abc"}).only_up("a").allow("a")
    with pytest.raises(cfx.BayesCFXError, match=message) as caught:
        cfx.explain_many(plane, queries, space, target, budget=10, rng=0)
    assert "for the query at position 1" in caught.value.__notes__


@pytest.mark.parametrize(
    ("queries", "who"),
    [
        (pd.DataFrame([ZERO, {**ZERO, "a": 0.95}], index=["P3", "P7"]), "'P7'"),
        (pd.DataFrame([ZERO, {**ZERO, "a": 0.95}], index=[12, 99]), "99"),
        (pd.DataFrame([ZERO, {**ZERO, "a": 0.95}]), "at position 1"),
        ([ZERO, pd.Series({**ZERO, "a": 0.95}, name="P7")], "'P7'"),
    ],
)
def test_a_query_that_has_a_name_is_called_by_it(queries: Any, who: str) -> None:
    space = cfx.Space({n: cfx.Real(0, 0.95) for n in "abc"}).only_up("a").allow("a")
    with pytest.raises(cfx.BayesCFXError, match="no feature may move") as caught:
        cfx.explain_many(plane, queries, space, 1.0, budget=10, rng=0)
    assert f"for the query {who}" in caught.value.__notes__


@pytest.mark.parametrize("method", ["auto", "sweep", "bayes-cfx", "bayes", "random", "lbfgsb"])
def test_every_method_refuses_a_query_without_a_free_feature(method: str) -> None:
    space = cfx.Space({n: cfx.Real(0, 1) for n in "abc"}).fix("a", "b", "c")
    with pytest.raises(cfx.InfeasibleError, match="no feature may move"):
        cfx.explain(plane, ZERO, space, cfx.increase(by=1), method=method, budget=10, rng=0)


def test_a_table_records_a_query_without_an_allowed_row() -> None:
    space = cfx.Space({n: cfx.Real(0, 0.95) for n in "abc"}).only_up("a").allow("a")
    queries = pd.DataFrame([ZERO, {**ZERO, "a": 0.95}], index=["P3", "P7"])
    table = cfx.explain_partition(queries, plane, space, 1.0, budget=10, rng=0)
    assert table["status"].tolist()[1] == "error"
    assert "no feature may move" in str(table.loc["P7", "error"])


def test_an_error_in_a_function_of_the_user_says_which() -> None:
    def wrong(rows: pd.DataFrame) -> Any:
        raise ZeroDivisionError

    for space, message in (
        (cube().require(wrong, "never"), "rule 'never' raised ZeroDivisionError: "),
        (cube().derive("c", wrong), "derive('c') raised ZeroDivisionError: "),
    ):
        with pytest.raises(cfx.SpaceError) as caught:
            cfx.explain(plane, ZERO, space, 1.0, budget=5, rng=0)
        assert str(caught.value).startswith(message)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_list_of_mixed_cells_is_a_query() -> None:
    query = list(mixed().drop(columns="score").iloc[0])
    space = cfx.Space.from_data(mixed().drop(columns="score"))
    answer = cfx.explain(outcome, query, space, cfx.increase(by=1), budget=5, rng=0)
    assert list(answer.query) == query


def test_a_query_outside_the_data_is_explained_with_a_warning() -> None:
    with pytest.warns(cfx.SpaceWarning, match="outside the space, which grew for it: 'a'") as said:
        answer = cfx.explain(
            plane, {**ZERO, "a": 1.5}, cube(), cfx.decrease(by=1), budget=25, rng=0
        )
    assert said[0].filename == __file__
    assert answer.reached


def test_an_explainer_opens_a_file_of_evaluations_by_its_path(tmp_path: Path) -> None:
    model = Recorder(plane)
    path = tmp_path / "known.db"
    with cfx.Explainer(model, cube(), path, budget=20) as explainer:
        first = explainer.explain(ZERO, 1.2, rng=0)
        assert len(explainer.evaluations or ()) == first.n_evaluations
    spent = model.n
    again = cfx.explain(model, ZERO, cube(), 1.2, budget=20, rng=0, evaluations=path)
    assert again.reached
    assert again.best.cost <= first.best.cost
    assert model.n - spent < spent


def test_defaults_of_an_explainer_are_replaced_by_a_call() -> None:
    explainer = cfx.Explainer(plane, cube(), budget=7, method="random")
    assert explainer.explain(ZERO, 40.0, rng=0).n_evaluations == 7
    assert explainer.explain(ZERO, 40.0, rng=0, budget=3).n_evaluations == 3
    with pytest.raises(cfx.SettingsError, match="there is no setting 'bugdet'"):
        explainer.explain(ZERO, 40.0, bugdet=3)  # type: ignore[call-arg]  # what is tested


def test_a_row_by_hand_takes_no_setting_of_a_search() -> None:
    explainer = cfx.Explainer(plane, cube(), budget=7)
    assert not explainer.what_if(ZERO, {"a": 0.62}, 1.2).reached
    assert explainer.what_if(ZERO, {"a": 0.62}, 1.2, tolerance=0.1).reached
    for options in ({"budget": 3}, {"tolerance": 0.1, "rng": 0}):
        name = [*options][-1]
        message = f"the setting {name!r} has no effect here; only 'tolerance' may be given"
        with pytest.raises(cfx.SettingsError, match=message):
            explainer.what_if(ZERO, {"a": 1.0}, 1.0, **options)
        with pytest.raises(cfx.SettingsError, match=message):
            explainer.assess(ZERO, [[1.0, 0.0, 0.0]], 1.0, **options)
    with pytest.raises(cfx.SettingsError, match="there is no setting 'tollerance'"):
        explainer.what_if(ZERO, {"a": 1.0}, 1.0, tollerance=0.1)
