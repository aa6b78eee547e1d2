"""A page about a classifier: its output is the probability of one label, which targets name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import joblib
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from tests.web.conftest import ask, make_queue, served


@pytest.fixture(scope="module")
def classifier(files: Path) -> Any:
    """Return a classifier, saved beside the data."""
    table = pd.read_csv(files / "people.csv")
    X = table[["age", "bmi"]]
    model = GaussianNB().fit(X, (X["age"] + X["bmi"] > 75).map({True: "good", False: "bad"}))
    joblib.dump(model, files / "classes.joblib")
    return model


@pytest.fixture(scope="module")
def labels_page(files: Path, classifier: Any) -> Iterator[httpx.Client]:
    queue = make_queue(files, "--drop", "smoker,region,visits", model=str(files / "classes.joblib"))
    with served(queue) as client:
        yield client
    queue.close()


def test_the_page_names_the_probability(labels_page: httpx.Client) -> None:
    site = labels_page.get("/api/site").json()
    assert site["output"]["name"] == "probability of good"


@pytest.mark.parametrize("target", ["becomes bad", "becomes good", "flips", "becomes bad 0.8"])
def test_labels_are_targets_on_the_page(
    target: str, labels_page: httpx.Client, classifier: Any
) -> None:
    rows = labels_page.get("/api/rows", params={"limit": 2, "sort": "(output)"}).json()["rows"]
    for cells in (each["cells"] for each in rows):
        (before,) = classifier.predict(pd.DataFrame([cells])[["age", "bmi"]].astype(float))
        found = ask(labels_page, cells=cells, target=target, n=1)
        assert found["state"] == "done", found["error"]
        assert found["status"] == "reached"
        best = pd.DataFrame([found["answer"]["counterfactuals"][0]["cells"]])
        (after,) = classifier.predict(best[["age", "bmi"]].astype(float))
        if target == "flips":
            assert after != before
        else:
            assert after == target.split()[1]


def test_a_label_becomes_a_side_of_the_ruler(labels_page: httpx.Client) -> None:
    asked = {"target": "becomes bad", "output": 0.9}
    found = labels_page.post("/api/target", json=asked).json()
    assert found["wanted"] == [[None, pytest.approx(0.5)]]
    assert not found["met"]
    wrong = labels_page.post("/api/target", json={"target": "becomes bda", "output": 0.9})
    assert wrong.status_code == 422
    assert "Did you mean 'bad'?" in wrong.text
