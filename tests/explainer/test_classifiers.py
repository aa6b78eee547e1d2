"""Classifiers passed directly: every returned row has the label that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

import bayescfx as cfx
from bayescfx.errors import EvaluationsError, ModelError, SettingsError, TargetError

COLUMNS = ["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]


def scaled(clf: Any) -> Any:
    return make_pipeline(StandardScaler(), clf)


@pytest.fixture(scope="module")
def cancer() -> tuple[pd.DataFrame, pd.Series[Any]]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X[COLUMNS], y.map({0: "malignant", 1: "benign"})


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, Any]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def logistic() -> Any:
    return scaled(LogisticRegression())


def tied_forest() -> Any:  # an even number of grown trees: many probabilities are exactly 0.5
    return RandomForestClassifier(4, random_state=0)


def own_threshold() -> Any:
    return FixedThresholdClassifier(scaled(LogisticRegression()), threshold=0.8)


class Contrary:
    """A classifier of the user's own, whose `predict` follows a threshold of its own."""

    classes_ = ("no", "yes")

    def __init__(self) -> None:
        self.inner = scaled(LogisticRegression())

    def fit(self, X: Any, y: Any) -> Contrary:
        self.inner.fit(X, y)
        self.classes_ = tuple(self.inner.classes_)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.inner.predict_proba(X)

    def predict(self, X: Any) -> Any:
        return np.array(self.classes_)[(self.predict_proba(X)[:, 1] > 0.9).astype(int)]


def support_vectors() -> Any:
    return scaled(SVC())


def linear_scores() -> Any:
    return scaled(LinearSVC())


CLASSIFIERS = [
    logistic,
    tied_forest,
    own_threshold,
    Contrary,
    support_vectors,
    linear_scores,
]


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_every_reached_row_has_another_label(make: Callable[[], Any], cancer: Any) -> None:
    X, y = cancer
    clf = make().fit(X, y)
    queries = X.iloc[::140]
    answers = cfx.explain_many(clf, queries, cfx.Space.from_data(X), cfx.flips(), budget=100, rng=0)
    before = clf.predict(queries)
    for label, answer in zip(before, answers, strict=True):
        assert answer.reached
        assert clf.predict(answer.rows)[0] != label
    assert answers.verify(clf)


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("label", ["benign", "malignant"])
def test_every_reached_row_has_the_wanted_label(
    make: Callable[[], Any], label: str, cancer: Any
) -> None:
    X, y = cancer
    clf = make().fit(X, y)
    queries = X.iloc[::140]
    answers = cfx.explain_many(
        clf, queries, cfx.Space.from_data(X), cfx.becomes(label), budget=100, rng=0
    )
    for query, answer in zip(clf.predict(queries), answers, strict=True):
        assert answer.reached
        assert (answer.stopped == "already met") == (query == label)
        assert clf.predict(answer.rows)[0] == label
    assert cfx.Explanations.from_json(answers.to_json()).verify(clf)


@pytest.mark.parametrize(
    "clf", [LogisticRegression(max_iter=1000), tied_forest(), GaussianNB(), support_vectors()]
)
def test_one_of_several_labels(clf: Any, iris: Any) -> None:
    X, y = iris
    clf.fit(X, y)
    space = cfx.Space.from_data(X)
    queries = X.iloc[[3, 60, 70, 77, 110, 133]]
    flipped = cfx.explain_many(clf, queries, space, cfx.flips(), budget=200, rng=0)
    wanted = cfx.explain_many(clf, queries, space, cfx.becomes("virginica"), budget=200, rng=0)
    for label, other, answer in zip(clf.predict(queries), flipped, wanted, strict=True):
        assert other.reached
        assert clf.predict(other.rows)[0] != label
        assert other.labels == (label, clf.predict(other.rows)[0])
        assert answer.reached
        assert clf.predict(answer.rows)[0] == "virginica"
    assert flipped.verify(clf)
    assert wanted.verify(clf)


def test_the_output_against_the_next_label_is_named(iris: Any) -> None:
    X, y = iris
    clf = LogisticRegression(max_iter=1000).fit(X, y)
    answer = cfx.explain(
        clf, X.iloc[60], cfx.Space.from_data(X), cfx.becomes("virginica"), budget=200, rng=0
    )
    p = np.sort(clf.predict_proba(answer.rows)[0])
    assert answer.best.output == pytest.approx(p[2] / (p[2] + p[1]))
    text = str(answer)
    assert "Target: predicted label virginica, probability of virginica against the next" in text
    assert "predicted label" in text.splitlines()[4]
    assert "prediction" not in text
    assert list(answer.to_frame()[["query_label", "label"]].iloc[0]) == ["versicolor", "virginica"]


def test_answers_are_the_same_in_workers(iris: Any) -> None:
    X, y = iris
    clf = GaussianNB().fit(X, y)
    queries = pd.concat([X.iloc[::25]] * 11)  # more than a block
    settings: dict[str, Any] = {"budget": 12, "rng": 0, "method": "random"}
    here = cfx.explain_many(clf, queries, cfx.Space.from_data(X), cfx.flips(), **settings)
    there = cfx.explain_many(
        clf, queries, cfx.Space.from_data(X), cfx.flips(), n_jobs=2, **settings
    )
    assert repr(here) == repr(there)


def test_the_file_keeps_the_outputs_of_labels_apart(iris: Any, tmp_path: Any) -> None:
    X, y = iris
    clf = GaussianNB().fit(X, y)
    space = cfx.Space.from_data(X)
    with cfx.Explainer(clf, space, tmp_path / "runs.db", budget=60, rng=0) as explainer:
        explainer.explain_many(X.iloc[::40], cfx.flips())
        assert explainer.evaluations is not None
        assert explainer.evaluations.file is not None
        names = [name.partition("#")[0] for name in explainer.evaluations.file.sections()]
    assert sorted(names) == [
        f"probability of {label} against the next label by GaussianNB" for label in sorted(set(y))
    ]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"evaluations": cfx.Evaluations()}, EvaluationsError),
        ({"run": "mine"}, SettingsError),
    ],
)
def test_several_outputs_need_a_file_for_their_rows(settings: Any, error: Any, iris: Any) -> None:
    X, y = iris
    clf = GaussianNB().fit(X, y)
    with pytest.raises(error, match="probabilities of several labels"):
        cfx.explain_many(clf, X[:3], cfx.Space.from_data(X), cfx.flips(), **settings)


def test_a_probability_is_reached_proven_and_named(cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    space = cfx.Space.from_data(X)
    asked = cfx.explain(clf, X.iloc[0], space, cfx.becomes("benign", probability=0.7), rng=0)
    number = cfx.explain(cfx.probability(clf, "benign"), X.iloc[0], space, ">= 0.7", rng=0)
    assert asked.best.changes == number.best.changes
    assert asked.proof == number.proof
    assert str(asked.proof).startswith("optimal")
    assert clf.predict_proba(asked.rows)[0, 0] == asked.best.output >= 0.7
    for text in (str(asked), asked.to_markdown(), asked._repr_html_(), repr(asked.best)):
        assert "probability of benign" in text
        assert "prediction" not in text
    assert "Target: probability of benign at least 0.7" in str(asked)


@pytest.mark.parametrize("make", [logistic, tied_forest, linear_scores, own_threshold])
def test_labels_of_two_are_proven(make: Callable[[], Any], cancer: Any) -> None:
    X, y = cancer
    clf = make().fit(X, y)
    space = cfx.Space.from_data(X)
    answer = cfx.explain(clf, X.iloc[0], space, cfx.becomes("benign"), rng=0, prove=20.0)
    assert str(answer.proof).startswith("optimal")
    assert cfx.explain(clf, X.iloc[0], space, cfx.flips(), rng=0, prove=20.0).best.cost == (
        pytest.approx(answer.best.cost)
    )


def test_a_probability_model_takes_labels_of_its_classifier(cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    model = cfx.probability(clf, "malignant")
    space = cfx.Space.from_data(X)
    for target in (cfx.becomes("benign"), cfx.flips(), "becomes benign 0.7"):
        answer = cfx.explain(model, X.iloc[0], space, target, rng=0)
        assert clf.predict(answer.rows)[0] == "benign"
        assert "probability of malignant at most" in str(answer)
        assert answer.verify(clf)
        assert answer.verify(model)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (2, 5)])
def test_labels_of_other_types(labels: tuple[Any, Any], cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y.map({"malignant": labels[0], "benign": labels[1]}))
    space = cfx.Space.from_data(X)
    for target in (cfx.becomes(labels[1]), f"becomes {labels[1]}", np.array(labels)[1:]):
        if isinstance(target, np.ndarray):
            target = cfx.becomes(target[0])  # a scalar of NumPy
        answer = cfx.explain(clf, X.iloc[0], space, target, rng=0)
        assert clf.predict(answer.rows)[0] == labels[1]
        assert f"probability of {labels[1]}" in str(answer)
        assert cfx.Explanation.from_json(answer.to_json()).verify(clf)


def test_a_pipeline_with_levels() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(["cook", "clerk"], 300), "age": rng.integers(20, 60, 300)})
    y = np.where((X["age"] > 40) ^ (X["job"] == "cook"), "good", "bad")
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    clf = make_pipeline(columns, RandomForestClassifier(9, random_state=0)).fit(X, y)
    answers = cfx.explain_many(clf, X[:12], cfx.Space.from_data(X), cfx.flips(), rng=0)
    assert all(clf.predict(a.rows)[0] != clf.predict(a.query_rows)[0] for a in answers)
    frames = cfx.explain_stream(clf, [X[:5]], cfx.Space.from_data(X), "becomes good", rng=0)
    rows = pd.concat(list(frames))
    assert (clf.predict(rows[["job", "age"]]) == "good").all()


def test_labels_without_scores_are_reached() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    members = [("a", GaussianNB()), ("b", tied_forest())]
    clf = VotingClassifier(members).fit(X, y)  # labels only
    answer = cfx.explain(clf, X.iloc[0], cfx.Space.from_data(X), cfx.becomes(2), rng=0)
    assert clf.predict(answer.rows)[0] == 2
    assert "prediction of 2 (1 or 0)" in str(answer)


def test_scores_that_are_moved_are_explained(cancer: Any) -> None:
    X, y = cancer
    clf = Contrary().fit(X, y)
    answer = cfx.explain(
        clf, X.iloc[20], cfx.Space.from_data(X), cfx.becomes("malignant"), budget=200, rng=0
    )
    assert "score of malignant" in str(answer)
    assert "does not predict from its scores alone" in str(answer)


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (
            cfx.at_least(0.6),
            r"got 'at least 0.6'. Write cfx.becomes\('malignant'\), or cfx.becomes",
        ),
        (0.7, r"got 0.7. .* probability=0.7\), or pass cfx.probability\(model, 'malignant'\)"),
        ("+20%", r"a classifier of 'benign', 'malignant'; got '\+20%'"),
        (cfx.AEP(0.2, 0.3), r"`target` must be a label"),
    ],
)
def test_a_number_from_a_classifier_is_an_error_that_says_how_to_write_it(
    target: Any, written: str, cancer: Any
) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    space = cfx.Space.from_data(X)
    asks: list[Callable[[], object]] = [
        lambda: cfx.explain(clf, X.iloc[0], space, target, rng=0),
        lambda: cfx.explain_many(clf, X[:2], space, target, rng=0),
        lambda: cfx.what_if(clf, X.iloc[0], {"mean radius": 12.0}, space, target),
        lambda: cfx.assess(clf, X.iloc[0], X[:2], space, target),
        lambda: cfx.menu(clf, X.iloc[0], space, target),
    ]
    for ask in asks:
        with pytest.raises(TargetError, match=written):
            ask()


def test_labels_and_probabilities_that_do_not_fit_are_errors(cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    space = cfx.Space.from_data(X)
    regressor = RandomForestRegressor(3).fit(X, y == "benign")
    wrong: list[tuple[Any, Any, str]] = [
        (clf, cfx.becomes("bening"), r"one of 'benign', 'malignant'; got 'bening'. Did you mean"),
        (regressor, cfx.becomes("benign"), "'becomes benign' is a target of classifiers"),
        (regressor, cfx.flips(), "'flips' is a target of classifiers; the model returns numbers"),
        (cfx.probability(clf), cfx.at_least(1.2), "must be a probability, between 0 and 1"),
        (cfx.probability(clf), cfx.increase(by=0.5), r"0.00\d+ more is possible"),
        (linear_scores().fit(X, y), cfx.becomes("benign", 0.7), "gives none. Ask for the label"),
    ]
    for model, target, message in wrong:
        with pytest.raises(TargetError, match=message):
            cfx.explain(model, X.iloc[0], space, target, rng=0)
    with pytest.raises(ModelError, match=r"Pass bayescfx.probability"):
        cfx.reachable(clf, X.iloc[0], space)


def test_rows_by_hand_show_the_label(cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    space = cfx.Space.from_data(X)
    found = cfx.what_if(clf, X.iloc[0], {"mean radius": 11.0}, space, "becomes benign")
    assert found.reached
    assert found.labels == ("malignant", "benign")
    assert "predicted label malignant → benign" in str(found)
    plain = cfx.what_if(clf, X.iloc[0], {"mean radius": 11.0}, space)
    assert "probability of malignant 0.9982 → " in str(plain)
    rows = X[y == "benign"][:3]
    assert cfx.assess(clf, X.iloc[0], rows, space, cfx.flips())["hit"].tolist() == [
        label == "benign" for label in clf.predict(rows)
    ]
    assert cfx.menu(clf, X.iloc[0], space, cfx.becomes("benign")).items


def test_a_false_label_is_a_violation(cancer: Any) -> None:
    X, y = cancer
    clf = logistic().fit(X, y)
    answer = cfx.explain(clf, X.iloc[0], cfx.Space.from_data(X), cfx.becomes("benign"), rng=0)

    class Liar(Contrary):
        def predict(self, X: Any) -> Any:
            return np.full(len(X), "malignant")

    liar = Liar()
    liar.inner = clf
    liar.classes_ = tuple(clf.classes_)
    assert not answer.verify(liar)


def test_a_classifier_that_is_not_fitted_is_named_as_such() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    with pytest.raises(cfx.ModelError, match="must be fitted for 'becomes good'"):
        cfx.explain(LogisticRegression(), X.iloc[0], cfx.Space.from_data(X), "becomes good")


class FailsForLongPetals:
    """A classifier of the user's own that predicts nothing for one of the queries."""

    classes_ = ("setosa", "versicolor", "virginica")

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted

    def predict_proba(self, X: pd.DataFrame) -> Any:
        self._check(X)
        return self.fitted.predict_proba(X)

    def predict(self, X: pd.DataFrame) -> Any:
        self._check(X)
        return self.fitted.predict(X)

    def _check(self, X: pd.DataFrame) -> None:
        if (X["petal length (cm)"] > 6.5).any():
            raise ValueError("too long")


def test_a_query_without_a_label_does_not_end_the_answers_to_others(iris: Any) -> None:
    X, y = iris
    model = FailsForLongPetals(GaussianNB().fit(X, y))
    space = cfx.Space.from_data(X)
    queries = X.iloc[[3, 118, 60]]  # petals of 6.9 cm
    explainer = cfx.Explainer(model, space, budget=60, rng=0)
    tables = list(explainer.explain_stream(iter([queries]), cfx.flips(), on_fault="skip"))
    assert tables[0]["status"].tolist() == ["reached", "error", "reached"]
    with pytest.raises(ModelError, match=r"must predict a label for the query.*6\.9"):
        explainer.explain_many(queries, cfx.flips(), on_fault="skip")
    with pytest.raises(ValueError, match="too long") as raised:
        explainer.explain_many(queries, cfx.flips())
    assert hasattr(raised.value, "evaluations")
