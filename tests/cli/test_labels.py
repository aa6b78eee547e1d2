"""Labels as targets on the command line: a classifier is no regression on its labels."""

from __future__ import annotations

from pathlib import Path

import joblib
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from tests.cli.shell import Shell

ASK = ("explain", "--model", "iris.joblib", "--trust-pickle", "--data", "iris.csv", "--query", "60")


@pytest.fixture(autouse=True)
def models(shell: Shell) -> Path:
    """Write two models, one of them a classifier that was trained on an array, and their data."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.to_csv(shell.folder / "iris.csv", index=False)
    names = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
    joblib.dump(GaussianNB().fit(X.to_numpy(), names), shell.folder / "iris.joblib")
    joblib.dump(DecisionTreeRegressor(max_depth=3).fit(X, y), shell.folder / "tree.joblib")
    return shell.folder


def test_a_label_is_asked_for_without_an_option(shell: Shell) -> None:
    ran = shell(*ASK, "--target", "becomes virginica", "--budget", "150", "--json", "--quiet")
    assert ran.code == 0, ran.err
    assert ran.content["label"] == "versicolor"
    assert ran.content["counterfactuals"][0]["label"] == "virginica"
    assert "probability of virginica against the next label" in ran.content["text"]


def test_any_other_label_and_a_probability_are_asked_for(shell: Shell) -> None:
    ran = shell(*ASK, "--target", "flips", "--budget", "150", "--json", "--quiet")
    assert ran.content["counterfactuals"][0]["label"] != "versicolor"
    ran = shell(*ASK, "--target", "becomes setosa 0.7", "--budget", "150", "--json", "--quiet")
    assert ran.content["counterfactuals"][0]["output"] >= 0.7
    assert "Target: probability of setosa at least 0.7" in ran.content["text"]


def test_a_row_by_hand_shows_its_label(shell: Shell) -> None:
    words = ("--set", "petal length (cm)=6", "--set", "petal width (cm)=2.1")
    ran = shell("predict", *ASK[1:], *words, "--target", "becomes virginica", "--quiet")
    assert ran.code == 0, ran.err
    assert "predicted label versicolor → virginica" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "becomes virginca"), "got 'virginca'. Did you mean 'virginica'?"),
        (("--label", "setosa", "--target", ">= 1.2"), "must be a probability, between 0 and 1"),
        (("--target", ">= 0.7"), "Name one with --label"),
        (("--model", "tree.joblib", "--target", "flips"), "Ask for a number, such as '>= 150'."),
    ],
)
def test_what_does_not_fit_the_model_is_an_error(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    ran = shell(*ASK, *words, "--quiet")
    assert ran.code == 2
    assert message in ran.err
