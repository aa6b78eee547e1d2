"""A model is loaded and asked, block by block; one that fails leaves the best so far."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from tests.cli.shell import FUNCTIONS, MANY, Shell
from tests.people import people
from tests.servers import Scoring, serving


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [(), ("--jobs", "1"), ("--jobs", "2")])
def test_answers_are_those_of_python_with_any_number_of_workers(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, jobs: tuple[str, ...]
) -> None:
    monkeypatch.syspath_prepend(str(shell.folder))
    X, _ = people()
    X.head(70).to_csv(shell.folder / "seventy.csv", index=False)
    words = ("--queries", "seventy.csv", "--target", "+10%", "--method", "random", "--json")
    ran = shell(*MANY, *words, *jobs, "--budget", "8", "--quiet")
    space = cfx.Space.from_data(X)
    target = cfx.increase(percent=10)
    expected = cfx.explain_many(score, X.head(70), space, target, method="random", budget=8, rng=0)
    assert [(answer.best.output, answer.n_evaluations) for answer in expected] == [
        (a["counterfactuals"][0]["output"], a["n_evaluations"]) for a in ran.content["answers"]
    ]


def score(rows: Any) -> Any:
    return rows["age"] * 2.0 + rows["bmi"]


@pytest.fixture
def dying() -> Iterator[Scoring]:
    """Yield a server that stops to answer after some rows."""
    with serving(Scoring(score, fails_after=12)) as server:
        yield server


def test_an_endpoint_that_goes_down_half_way_leaves_the_best_so_far(
    shell: Shell, dying: Scoring
) -> None:
    words = ("--query", "3", "--target", "= 160.123", "--tolerance", "0.00001", "--retries", "0")
    ran = shell(
        *("explain", "--model", dying.url, "--data", "X.csv", "--drop", "progression", *words),
        *("--quiet", "--json", "--out", "rescued.json", "--budget", "60"),
    )
    assert ran.code == 2
    assert ran.err.startswith(f"error: the model failed after {dying.rows} rows: the model at ")
    assert "Start the server, or correct the address. The answer is the best of the rows" in ran.err
    assert ran.err.rstrip().endswith("with --evaluations FILE it goes on from there.")
    assert ran.err.count("\n") == 1
    answer = cfx.Explanation.from_json((shell.folder / "rescued.json").read_text())
    assert len(answer.evaluations) == dying.rows == answer.n_evaluations
    assert ran.content["stopped"] == "fault"
    X, _ = people()
    outputs = answer.evaluations.outputs
    assert abs(answer.best.output - 160.123) == np.abs(outputs - 160.123).min()
    assert answer.output == score(X.iloc[3])


def test_the_best_row_before_the_endpoint_failed_is_an_answer(shell: Shell, dying: Scoring) -> None:
    ran = shell(
        *("explain", "--model", dying.url, "--data", "X.csv", "--drop", "progression"),
        *("--query", "3", "--target", "+1", "--tolerance", "0.9", "--retries", "0", "-n", "3"),
        *("--quiet", "--json", "--budget", "60"),
    )
    assert ran.code == 0
    assert ran.content["status"] == "reached"
    assert ran.err.startswith(f"warning: the model failed after {dying.rows} rows: the model at ")


def test_an_endpoint_that_is_down_from_the_start_is_an_error(shell: Shell) -> None:
    with serving(Scoring(score, fails_after=0)) as server:
        message = shell.fails(
            *("explain", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--query", "3", "--target", "150", "--retries", "0", "--quiet"),
        )
    assert f"the model at {server.url}/invocations does not answer: " in message
    assert "(1 attempts). Start the server, or correct the address." in message


def test_answers_before_the_endpoint_failed_are_kept(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 6)
    people()[0].head(9).to_csv(shell.folder / "long.csv", index=False)
    # Enough for the first block, and for f(query) of the second.
    with serving(Scoring(score, fails_after=6 * 4 + 4)) as server:
        ran = shell(
            *("explain-many", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--queries", "long.csv", "--target", "+10%", "--budget", "4", "--retries", "0"),
            *("--quiet", "--out", "kept.csv", "--evaluations", "kept.db"),
        )
        rows = server.rows
    assert ran.code == 2
    assert ran.err.startswith("error: the model failed half-way: the model at ")
    assert "9 of 9 queries have answers" in ran.err
    assert "They are in kept.csv." in ran.err
    table = pd.read_csv(shell.folder / "kept.csv")
    assert table["query"].tolist() == list(range(9))
    with cfx.Evaluations.open(shell.folder / "kept.db") as known:
        assert len(known) == rows


def test_queries_left_without_an_answer_are_listed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescfx.explainer.explainer.BLOCK", 6)
    people()[0].head(9).to_csv(shell.folder / "long.csv", index=False)
    with serving(Scoring(score, fails_after=6 * 4 + 1)) as server:
        ran = shell(
            *("explain-many", "--model", server.url, "--data", "X.csv", "--drop", "progression"),
            *("--queries", "long.csv", "--target", "+10%", "--budget", "4", "--retries", "0"),
            *("--quiet", "--out", "kept.csv"),
        )
    assert ran.code == 2
    assert ran.err.startswith("error: the model failed half-way: the model at ")
    assert "6 of 9 queries have answers" in ran.err
    table = pd.read_csv(shell.folder / "kept.csv")
    assert (table["status"] == "error").sum() == 3
    assert set(table["error"].dropna()) == {"not answered: the model failed before"}


def test_a_model_that_raises_is_named_in_one_line_with_a_traceback_on_demand(shell: Shell) -> None:
    words = (
        *("explain", "--model", f"{FUNCTIONS}:broken", "--data", "X.csv", "--drop", "progression"),
        *("--query", "3", "--target", "150"),
    )
    message = shell.fails(*words)
    assert (
        "the model failed: RuntimeError: no such luck (while evaluating row {'age': 24, " in message
    )
    assert message.endswith("See the traceback with --debug.")
    ran = shell(*words, "--debug")
    assert ran.code == 2
    assert "Traceback (most recent call last):" in ran.err
    assert "RuntimeError: no such" in ran.err


def test_rows_for_which_the_model_fails_can_be_skipped(shell: Shell) -> None:
    words = ("--data", "X.csv", "--drop", "progression", "--query", "3", "--target", "[135, 145]")
    model = ("explain", "--model", f"{FUNCTIONS}:fragile", "--quiet", "--json")
    ran = shell(*model, *words, "--on-fault", "skip")
    assert ran.code == 0


def test_bad_models_are_one_line(shell: Shell) -> None:
    ask = ("--data", "X.csv", "--query", "3", "--target", "150")
    whole = (shell.folder / "m.txt").read_bytes()
    Path("cut.txt").write_bytes(whole[: len(whole) // 2])
    message = shell.fails("explain", "--model", "cut.txt", *ask)
    assert "'cut.txt' can't be read as a LightGBM model: it is truncated or was changed." in message
    Path("empty.onnx").write_bytes(b"")
    message = shell.fails("explain", "--model", "empty.onnx", *ask)
    assert "'empty.onnx' can't be read as an ONNX model: " in message
    Path("rubbish.skops").write_bytes(b"no archive")
    message = shell.fails("explain", "--model", "rubbish.skops", *ask)
    assert "'rubbish.skops' can't be read as a skops file: File is not a zip file." in message
    Path("m.pkl").write_bytes(b"")
    message = shell.fails("explain", "--model", "m.pkl", *ask)
    assert "is a pickle, which can run any code when it is loaded." in message
    assert "--trust-pickle" in message
    message = shell.fails("explain", "--model", "no.onnx", *ask)
    assert "there is no model file 'no.onnx'. Give a file that ends in .onnx" in message


def test_an_order_is_the_encoders_or_the_users_own(shell: Shell) -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"cut": rng.choice(["Fair", "Good", "Best"], 60), "x": rng.normal(size=60)})
    order = {"Fair": 0, "Good": 1, "Best": 2}
    encode = make_column_transformer(
        (OrdinalEncoder(categories=[list(order)]), ["cut"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LinearRegression()).fit(X, X["cut"].map(order) + X["x"])
    joblib.dump(model, shell.folder / "cut.joblib")
    X.to_csv(shell.folder / "cut.csv", index=False)
    asked = ("inspect", "--data", "cut.csv", "--quiet")
    printed = shell(*asked, "--model", "cut.joblib", "--trust-pickle").out
    assert "'Fair' < 'Good' < 'Best'" in printed
    printed = shell(*asked, "--kind", "cut=Good < Fair < Best").out
    assert "'Good' < 'Fair' < 'Best'" in printed
    message = shell.fails(*asked, "--kind", "cut=ordinal")
    assert "column 'cut' must say the order of its levels, which are text" in message
    (shell.folder / "s.toml").write_text(
        '[features]\ncut = { kind = "ordinal", levels = ["Best", "Good", "Fair"] }\n'
    )
    assert "'Best' < 'Good' < 'Fair'" in shell(*asked, "--settings", "s.toml").out


def test_whole_numbers_that_an_encoder_knows_are_levels(shell: Shell) -> None:
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"zip": rng.choice([1010, 2020, 4040], 60), "x": rng.normal(size=60)})
    encode = make_column_transformer((OrdinalEncoder(), ["zip"]), remainder="passthrough")
    model = make_pipeline(encode, LinearRegression()).fit(X, X["zip"] / 1000 + X["x"])
    joblib.dump(model, shell.folder / "zip.joblib")
    X.to_csv(shell.folder / "zip.csv", index=False)
    printed = shell(
        "inspect", "--data", "zip.csv", "--quiet", "--model", "zip.joblib", "--trust-pickle"
    ).out
    assert re.search(r"zip +categorical +1010, 2020, 4040", printed)
