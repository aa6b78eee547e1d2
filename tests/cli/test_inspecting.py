"""`inspect` shows what is inferred, and writes it."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from tests.cli.shell import FUNCTIONS, Shell
from tests.people import people

joblib: Any = importlib.import_module("joblib")


def test_inspect_shows_the_inferred_features_and_how_to_correct_them(shell: Shell) -> None:
    ran = shell("inspect", "--data", "X.csv", "--model", "m.txt")
    assert ran.code == 0
    assert "glucose  categorical  'high', 'low', 'middle'" in ran.out
    assert "not taken by the model: progression" in ran.out
    assert "outputs on 100 rows:" in ran.out
    assert '--kind "NAME=real|integer|categorical"' in ran.out


def test_inspect_points_at_whole_numbers_and_missing_cells(shell: Shell) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [0.5, 1.5, 2.0]})
    table.to_csv(shell.folder / "gaps.csv", index=False)
    ran = shell("inspect", "--data", "gaps.csv")
    assert "missing cells: a (1)" in ran.out
    assert "whole numbers only, so perhaps integer: a" in ran.out


def test_inspect_writes_a_settings_file_that_can_be_used(shell: Shell) -> None:
    words = ("--data", "X.csv", "--model", "m.txt")
    shell("inspect", *words, "--fix", "sex", "--out", "space.toml")
    direct = shell.explain("--query", "3", "--target", "+25%", "--fix", "sex", "--json")
    ran = shell(
        "explain",
        "--settings",
        "space.toml",
        "--query",
        "3",
        "--target",
        "+25%",
        "--json",
        "-n1",
        *("--budget", "10"),
    )
    assert ran.content["counterfactuals"][0]["row"]["sex"] == "female"
    assert direct.content["output"] == ran.content["output"]


def test_a_settings_file_that_inspect_writes_names_no_code(shell: Shell) -> None:
    words = ("--model", f"{FUNCTIONS}:score", "--derive", f"age={FUNCTIONS}:double")
    ran = shell("inspect", "--data", "X.csv", *words, "--fix", "sex", "--out", "space.toml")
    assert ran.code == 0, ran.err
    more = ("--settings", "space.toml", "--query", "3", "--target", "+5%", "--quiet")
    assert "--model must be given" in shell.fails("explain", *more)
    assert shell("explain", *more, *words, "--budget", "10").code in (0, 3, 4)


def test_rows_without_an_output_are_counted_and_advice_names_existing_options(
    shell: Shell,
) -> None:
    base = ("--model", f"{FUNCTIONS}:partly", "--data", "X.csv", "--drop", "progression")
    ran = shell("inspect", *base)
    assert ran.code == 0, ran
    assert re.search(r"outputs on \d+ rows: .* median", ran.out)
    assert re.search(r"no number on \d+ rows, but nan: `explain --on-fault skip` passes", ran.out)
    found = shell("inspect", *base, "--json").content
    assert found["faults"] > 0
    assert found["outputs"][0] < found["outputs"][2] < 150
    message = shell.fails("predict", *base, "--query", "3", "--set", "age=50")
    assert "the model returned nan for" in message
    assert "--" not in message  # `predict` has neither --on-fault nor a search
    message = shell.fails("explain", *base, "--query", "0", "--target", "+500", "--quiet")
    assert "or pass --on-fault skip." in message


def test_inspect_gives_json(shell: Shell) -> None:
    content = shell("inspect", "--data", "X.csv", "--model", "m.txt", "--json").content
    assert content["features"]["age"]["kind"] == "integer"
    assert content["features"]["sex"]["kind"] == "categorical"
    assert content["ignored"] == ["progression"]
    assert len(content["outputs"]) == 3


def test_inspect_names_the_labels_of_a_classifier(shell: Shell) -> None:
    X, y = people()
    labels = pd.qcut(y, 3, labels=["a", "b", "c"]).astype(str)
    joblib.dump(LogisticRegression(max_iter=2000).fit(X[["age", "bmi"]], labels), "three.joblib")
    words = ("--model", "three.joblib", "--trust-pickle", "--data", "X.csv")
    ran = shell("inspect", *words)
    assert ran.code == 0
    assert "a classifier of a, b, c: choose one with --label" in ran.out
    assert "outputs" not in ran.out
    assert "outputs for b on 100 rows: " in shell("inspect", *words, "--label", "b").out
    assert shell("inspect", *words, "--json").content["labels"] == ["a", "b", "c"]
    message = shell.fails("explain", *words, "--query", "3", "--target", "0.9", "--quiet")
    assert message == "error: the label must be one of a, b, c; got none. Name one with --label."


def test_inspect_for_scripts_is_plain_json(shell: Shell) -> None:
    days = pd.date_range("2016-01-01", periods=30).strftime("%Y-%m-%d")
    table = pd.DataFrame({"who": [f"w{i}" for i in range(30)], "day": days, "x": range(30)})
    table.assign(flag=True, job=["cook", "clerk"] * 15).to_csv("plain.csv", index=False)
    ran = shell("inspect", "--data", "plain.csv", "--json")
    assert '"$"' not in ran.out
    features = ran.content["features"]
    assert features["x"] == {"kind": "integer", "low": 0, "high": 29, "step": 1}
    assert features["job"] == {"kind": "categorical", "levels": ["clerk", "cook"]}
    assert features["flag"]["levels"] == [False, True]
    day = {"low": "2016-01-01T00:00:00", "high": "2016-01-30T00:00:00", "unit": "D"}
    assert features["day"] == {"kind": "moment", **day}
    printed = shell("inspect", "--data", "plain.csv").out
    assert "another text in every row, so perhaps --id or --drop: who" in printed


def test_a_settings_file_keeps_the_options_for_reading_tables(shell: Shell) -> None:
    table = pd.DataFrame({"who": [f"w{i}" for i in range(30)], "x": ["?", *range(29)]})
    table.to_csv("marked.csv", index=False)
    words = ("--data", "marked.csv", "--id", "who", "--na", "?")
    assert shell("inspect", *words, "--out", "marked.toml").code == 0
    content = shell("inspect", "--settings", "marked.toml", "--json").content
    assert list(content["features"]) == ["x"]
    assert content["features"]["x"]["kind"] == "real"
