"""Tables of queries without end."""

from __future__ import annotations

import functools
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.conftest import mixed


@pytest.fixture(autouse=True)
def blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 3)


def numbers() -> pd.DataFrame:
    cells = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(cells, columns=["a", "b"], index=[f"q{i}" for i in range(40)])
    return frame.assign(k=np.arange(40) % 7)


def model(rows: Any) -> Any:
    return rows["a"] + 2 * rows["b"] + rows["k"]


@functools.cache
def eleven_answers() -> cfx.Explanations:
    """Return the answers to eleven queries in one call."""
    X = numbers()
    space = cfx.Space.from_data(X)
    return cfx.explain_many(model, X[:11], space, cfx.at_least(4.0), budget=6, rng=1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_stream_is_explain_many_however_it_is_cut(n_jobs: int) -> None:
    X = numbers()
    space = cfx.Space.from_data(X)
    how: Any = {"budget": 6, "rng": 1, "n_jobs": n_jobs}
    many = eleven_answers()
    for cuts in ([0, 11], [0, 2, 9, 11], [0, 1, 2, 3, 11]):
        frames = (X[a:b] for a, b in pairwise(cuts))
        parts = list(cfx.explain_stream(model, frames, space, cfx.at_least(4.0), **how))
        assert [len(part) for part in parts] == [3, 3, 3, 2]
        table = pd.concat(parts)
        assert table.index.tolist() == X.index[:11].tolist()
        assert table["output"].tolist() == [a.best.output for a in many]
        assert table["a"].tolist() == [a.best.row["a"] for a in many]
        assert table["status"].tolist() == [a.status for a in many]
        assert table["n_evaluations"].tolist() == [a.n_evaluations for a in many]


def test_tables_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def frames() -> Any:
        for i in range(0, 30, 3):
            taken.append(i)
            yield numbers()[i : i + 3]

    stream = cfx.explain_stream(
        model, frames(), cfx.Space.from_data(numbers()), 4.0, budget=4, rng=0, n_jobs=1
    )
    next(stream)
    assert len(taken) <= 2


def test_a_query_with_an_error_does_not_stop_the_others() -> None:
    X = numbers().astype({"k": object})
    X.loc["q1", "k"] = "seven"
    space = cfx.Space.from_data(numbers())
    table = cfx.explain_partition(X[:5], model, space, cfx.at_least(4.0), budget=9, rng=0)
    assert table.index.tolist() == X.index[:5].tolist()
    assert (table["status"] == "error").tolist() == [False, True, False, False, False]
    assert "'seven'" in str(table.loc["q1", "error"])
    assert table["error"].notna().sum() == 1
    assert table.loc["q0", "changes"]


@pytest.mark.parametrize("bad", [1, 3])
def test_queries_that_cannot_be_asked_stop_nothing_where_rows_are_known(bad: int) -> None:
    X = numbers().astype({"k": object})
    X.iloc[:bad, 2] = "seven"
    known = cfx.Evaluations(numbers()[20:], model(numbers()[20:]))
    space = cfx.Space.from_data(numbers())
    how: Any = {"budget": 9, "rng": 0, "evaluations": known}
    parts = cfx.explain_stream(model, [X[:5]], space, 4.0, **how)
    assert (pd.concat(parts)["status"] == "error").tolist() == [i < bad for i in range(5)]
    with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
        list(cfx.explain_stream(lambda rows: model(rows) + 9, [X[:5]], space, 4.0, **how))


def test_columns_and_dtypes_do_not_depend_on_the_answers() -> None:
    X = mixed()
    space = cfx.Space.from_data(X)
    score = lambda rows: rows.select_dtypes("number").sum(axis=1)  # noqa: E731  # a bare callable
    target = cfx.increase(percent=1)
    meta = cfx.explain_partition(X[:0], score, space, target)
    told = cfx.explain_partition(X[:4], score, space, target, budget=9, rng=0)
    refused = X[:2].astype(object)
    refused.iloc[:, 0] = "wrong"
    lost = cfx.explain_partition(refused, score, space, target, budget=9, rng=0)
    assert lost["status"].tolist() == ["error"] * 2
    for other in (told, lost):
        pd.testing.assert_series_equal(other.dtypes, meta.dtypes)


def test_what_a_stream_can_not_take_is_said() -> None:
    X = numbers()
    space = cfx.Space.from_data(X)
    with pytest.raises(cfx.SettingsError, match="Did you mean 'budget'"):
        cfx.explain_stream(model, [X], space, 1.0, bugdet=3)
    with pytest.raises(cfx.QueryError, match="`frames` must be several DataFrames"):
        cfx.explain_stream(model, X, space, 1.0)  # type: ignore[arg-type]
    with pytest.raises(cfx.QueryError, match="`frames` must be DataFrames; got str"):
        next(cfx.explain_stream(model, ["rows"], space, 1.0))  # type: ignore[list-item]
    with pytest.raises(cfx.QueryError, match="`frames` must be DataFrames; got tuple"):
        next(cfx.explain_stream(model, [(0,)], space, 1.0))  # type: ignore[list-item]
    with pytest.raises(cfx.SettingsError, match="position of a table in `frames`"):
        next(cfx.explain_stream(model, [("first", X)], space, 1.0))  # type: ignore[list-item]


def test_ctrl_c_is_raised_after_the_last_whole_block(tmp_path: Path) -> None:
    X, calls = numbers(), [0]

    def interrupted(rows: Any) -> Any:
        calls[0] += 1
        if calls[0] == 4:  # in the second block
            raise KeyboardInterrupt
        return model(rows)

    given: Any = ([X[:9]], cfx.Space.from_data(X), cfx.at_least(4.0))
    how: Any = {"budget": 9, "rng": 0, "method": "random"}
    whole = [*cfx.explain_stream(model, *given, **how)]
    with cfx.Evaluations.open(tmp_path / "known.db") as store:
        stream = cfx.explain_stream(interrupted, *given, **how, evaluations=store, run="a")
        pd.testing.assert_frame_equal(next(stream), whole[0])
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        again = [*cfx.explain_stream(interrupted, *given, **how, evaluations=store, run="a")]
    for a, b in zip(whole, again, strict=True):
        pd.testing.assert_frame_equal(a, b)


@pytest.mark.parametrize("odd", [False, True])
def test_a_used_name_of_a_run_takes_no_other_queries(tmp_path: Path, odd: bool) -> None:
    X, sent = numbers(), [0]
    space = cfx.Space.from_data(X)

    def counting(rows: Any) -> Any:
        sent[0] += len(rows)
        return model(rows)

    asked = X[:9].astype({"k": object})
    if odd:  # a query that can't be asked about
        asked.loc["q1", "k"] = "seven"
    other = asked.assign(a=asked["a"].where(asked.index != "q4", 0.5))
    how: Any = {"budget": 9, "rng": 0, "method": "random", "run": "a", "n_jobs": 1}

    def told(*frames: pd.DataFrame) -> Any:
        target = space, cfx.at_least(4.0)
        return cfx.explain_stream(counting, frames, *target, evaluations=store, **how)

    with cfx.Evaluations.open(tmp_path / "known.db", model="v1") as store:
        whole = pd.concat(told(asked[:5], asked[5:8]))
        n = sent[0]
        pd.testing.assert_frame_equal(pd.concat(told(asked[:2], asked[2:8])), whole)
        assert sent[0] == n  # it was replayed
        with pytest.raises(cfx.EvaluationsError) as caught:
            pd.concat(told(other[:8]))
        assert str(caught.value) == (
            "`run` 'a' was begun with other queries; those from position 3 on differ. Choose "
            "another name."
        )
        with pytest.raises(cfx.EvaluationsError, match="those from position 6 on differ"):
            pd.concat(told(asked))  # a query more in the last part
        assert sent[0] == n
        store.forget()
        assert len(pd.concat(told(other))) == 9


def test_a_used_name_of_a_call_takes_no_other_queries(tmp_path: Path) -> None:
    X = numbers()
    how: Any = {"budget": 9, "rng": 0, "method": "random", "run": "a"}
    given: Any = cfx.Space.from_data(X), cfx.at_least(4.0)
    with cfx.Evaluations.open(tmp_path / "known.db") as store:
        cfx.explain_many(model, X[:5], *given, evaluations=store, **how)
        for rows in (X[1:6], X[:4], X[:5].iloc[::-1], X[:5].to_dict("records")[1:]):
            with pytest.raises(cfx.EvaluationsError, match="`run` 'a' was begun with other quest"):
                cfx.explain_many(model, rows, *given, evaluations=store, **how)
        with pytest.raises(cfx.EvaluationsError, match="`run` 'a' was begun with other quest"):
            cfx.explain(model, X.iloc[0], *given, evaluations=store, **how)


def test_columns_may_have_the_names_of_what_is_told() -> None:
    X = numbers().rename(columns={"a": "status", "b": "query_output", "k": "error"})
    space = cfx.Space.from_data(X)

    def named(rows: Any) -> Any:
        return rows["status"] + rows["query_output"] + rows["error"]

    told = cfx.explain_partition(X[:5], named, space, 4.0, budget=9, method="random", rng=0)
    empty = cfx.explain_partition(X[:0], named, space, 4.0)
    assert told.dtypes.to_dict() == empty.dtypes.to_dict()
    assert set(told["status_"]) <= {"reached", "best_guess"}
    assert told["query_output_"].tolist() == named(X[:5]).tolist()
    assert told["output"].tolist() == pytest.approx(named(told).astype(float).tolist())


def test_a_query_without_an_allowed_row_stops_nothing() -> None:
    X = numbers()
    low = X.copy()
    low.loc["q1", ["a", "b", "k"]] = X.min()
    space = cfx.Space.from_data(X).only_down("a", "b", "k")
    table = cfx.explain_partition(low[:5], model, space, cfx.at_most(-9.0), budget=9, rng=0)
    assert table.index.tolist() == low.index[:5].tolist()
    assert table.loc["q1", "status"] == "error"
    assert "error" not in table["status"].drop("q1").tolist()


def refuses_row_5(rows: pd.DataFrame) -> Any:
    if (rows["k"] == 5).any():
        raise LookupError("k is 5")
    return rows["a"] + rows["b"]


@pytest.mark.parametrize("how", ["rule", "derived column"])
def test_an_exception_of_a_users_function_does_not_end_a_stream(how: str) -> None:
    X = numbers().drop(columns="b")
    X["b"] = 0.0
    space = cfx.Space.from_data(X).fix("k")
    if how == "rule":
        space = space.require(lambda rows: refuses_row_5(rows) < np.inf, "finite")
        name = "rule 'finite'"
    else:
        X["b"] = X["a"]
        space = cfx.Space.from_data(X).fix("k").derive("b", lambda rows: 0 * refuses_row_5(rows))
        name = "derive('b')"
    frames = (X[a:b] for a, b in pairwise([0, 7, 12]))
    table = pd.concat(cfx.explain_stream(model, frames, space, cfx.at_least(1.0), budget=9, rng=0))
    failed = table[table["status"] == "error"]
    assert failed.index.tolist() == ["q5"]
    assert str(failed["error"].iloc[0]).startswith(f"{name} raised LookupError: k is 5")
    assert table.index.nunique() == 12


def test_a_derived_column_that_fails_for_one_of_several_rows_is_recorded() -> None:
    X = numbers()

    def derive(rows: Any) -> Any:
        return ["three" if k == 3 else 1.0 for k in rows["k"]]

    space = cfx.Space.from_data(X).fix("k").derive("b", derive)
    rows = [X.iloc[i] for i in (2, 3, 4)]
    with pytest.warns(cfx.SpaceWarning, match="derive\\('b'\\) gives 1, but the query has"):
        (batch,) = cfx.Explainer(model, space, budget=9).ask(rows, 4.0, rng=0, on_error="record")
    assert sorted(batch.answers) == [0, 2]
    assert "got 'three'" in str(batch.errors[1])
