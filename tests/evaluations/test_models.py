"""One file, several models: identified by name or content, and never mixed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayescfx as cfx
from bayescfx.models.model import as_model
from tests.conftest import Recorder

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
SPACE = cfx.Space.from_data(X)


def ask(model: Any, known: cfx.Evaluations, **more: Any) -> cfx.Explanation:
    target = cfx.increase(by=1.0)
    settings = {"budget": 12, "rng": 0} | more
    return cfx.explain(model, X.iloc[0], SPACE, target, evaluations=known, **settings)


def test_a_retrained_model_has_separate_rows(tmp_path: Path) -> None:
    old, new = (LinearRegression().fit(X, k * X["a"] + X["b"]) for k in (1.0, 3.0))
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        first = ask(old, known)
        second = ask(new, known)
        assert first.evaluations is known
        assert second.verify(new)
        assert first.verify(old)
        assert second.evaluations.model != known.model
        assert len(first.evaluations) == first.n_evaluations  # still those of the old one
    with cfx.Evaluations.open(tmp_path / "a.db") as again:
        assert repr(again).startswith("Evaluations(2 models in ")
        names = [str(first.evaluations.model), str(second.evaluations.model)]
        with pytest.raises(cfx.EvaluationsError) as caught:
            len(again)
        assert str(caught.value).startswith(f"{str(tmp_path / 'a.db')!r} holds rows of several")
        assert all(name in str(caught.value) for name in names)
        answer = ask(old, again, rng=1)  # knows its own again
        assert answer.evaluations.model == names[0]
        again.forget(names[1])
        with pytest.raises(cfx.EvaluationsError, match="`model` must be one of"):
            again.forget(names[1])


def test_names_keep_models_apart(tmp_path: Path) -> None:
    for name, k in (("v1", 1.0), ("v2", 2.0), ("v1", 1.0)):
        with cfx.Evaluations.open(tmp_path / "a.db", model=name) as known:
            answer = ask(lambda rows, k=k: k * rows["a"] + rows["b"], known)
            assert answer.output == pytest.approx(k * X["a"].iloc[0] + X["b"].iloc[0])


def test_rows_added_by_hand_are_adopted_by_a_model_that_agrees(tmp_path: Path) -> None:
    model = LinearRegression().fit(X, X["a"])
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        known.append(X, model.predict(X))
        assert known.model is None
        assert ask(model, known).evaluations is known
        assert str(known.model).startswith("LinearRegression#")
        assert len(known) > len(X)
    with cfx.Evaluations.open(tmp_path / "b.db") as known:
        known.append(X, model.predict(X) + 5)
        with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
            ask(model, known)
        known.forget()
        assert ask(model, known).verify(model)


class Counting:
    """A model that changes with use."""

    def __init__(self, k: float) -> None:
        self.k, self.n = k, 0

    def predict(self, rows: Any) -> Any:
        self.n += len(rows)
        return self.k * rows["a"] + rows["b"]


def test_a_model_that_counts_its_rows_keeps_them(tmp_path: Path) -> None:
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        one, two = Counting(1.0), Counting(2.0)
        for model in (one, two, one, two):
            assert ask(model, known).verify(model)
        assert known.file is not None
        assert len(known.file.sections()) == 2
        asked = one.n
        ask(one, known, run="again")
        spent, asked = one.n - asked, one.n
        ask(one, known, run="again")  # is replayed
        assert one.n - asked < spent
        one.k = 3.0  # is another model
        with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model"):
            ask(one, known)


def models() -> dict[str, Any]:
    y = X["a"] - X["b"] ** 2
    label = np.where(y > 0, "yes", "no")
    words = LinearRegression().fit(X, y)
    words.stop_words_ = {frozenset("abcdefgh"), *"stuvwxyz"}
    return {
        "words": words,
        "linear": LinearRegression().fit(X, y),
        "forest": RandomForestRegressor(3, random_state=0).fit(X, y),
        "boosting": GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), KNeighborsRegressor()).fit(X, y),
        "lightgbm": LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1).fit(X, y),
        "yes": cfx.probability(LogisticRegression().fit(X, label), "yes"),
        "no": cfx.probability(LogisticRegression().fit(X, label), "no"),
    }


def test_fingerprints_are_the_same_after_saving_in_other_processes_and_after_use(
    tmp_path: Path,
) -> None:
    known = models()
    prints = {name: as_model(model).fingerprint() for name, model in known.items()}
    assert len({*prints.values()} - {None}) == len(known)
    for model in known.values():
        as_model(model).scores(X)
    joblib.dump(known, tmp_path / "models.joblib")
    for others in (known, models(), joblib.load(tmp_path / "models.joblib")):
        assert {name: as_model(m).fingerprint() for name, m in others.items()} == prints
    script = (
        "import joblib, sys\n"
        "from bayescfx.models.model import as_model\n"
        "print({k: as_model(m).fingerprint() for k, m in joblib.load(sys.argv[1]).items()})\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "models.joblib")]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(prints)


def test_functions_have_no_fingerprint_and_addresses_do() -> None:
    assert as_model(lambda rows: rows["a"]).fingerprint() is None
    there = [as_model(cfx.Endpoint(f"http://localhost:{port}")) for port in (1, 1, 2)]
    prints = [model.fingerprint() for model in there]
    assert prints[0] == prints[1] != prints[2]


def test_a_run_is_continued_only_if_it_is_the_same(tmp_path: Path) -> None:
    model = Recorder(lambda rows: rows["a"] - rows["b"])
    with cfx.Evaluations.open(tmp_path / "a.db", model="v1") as known:
        first = ask(model, known, run="one", rng=None)
        n = model.n
        again = ask(model, known, run="one", rng=None)  # finished, and replayed with its seed
        assert model.n == n
        assert again.best.output == first.best.output
        assert again.n_evaluations == first.n_evaluations
        assert again.trace.tolist() == first.trace.tolist()
        with pytest.raises(cfx.EvaluationsError, match="`run` 'one' was begun with other"):
            ask(model, known, run="one", rng=None, budget=13)
    with pytest.raises(cfx.SettingsError, match="`run` must be None without a file"):
        ask(model, cfx.Evaluations(), run="one")


def test_an_unfinished_run_is_continued_and_a_finished_one_is_not(tmp_path: Path) -> None:
    def dies(rows: pd.DataFrame) -> Any:
        if sound.n >= 6:
            raise OSError("gone")
        return sound(rows)

    truth = Recorder(lambda rows: rows["a"] - rows["b"])
    whole = ask(truth, cfx.Evaluations(), method="bayes-cfx")
    sound = Recorder(lambda rows: rows["a"] - rows["b"])
    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        with pytest.raises(OSError, match="gone"):
            ask(dies, known, method="bayes-cfx")
        answer = ask(sound, known, method="bayes-cfx")
        assert answer.trace.tolist() == whole.trace.tolist()
        assert answer.n_evaluations == whole.n_evaluations
        assert sound.n <= truth.n + 1  # one row of a model without a name is scored again
        with pytest.raises(OSError, match="gone"):
            ask(dies, known, method="bayes-cfx", rng=5)
        ask(sound, known, method="bayes-cfx", rng=5)
        n = len(known)
        ask(sound, known, method="bayes-cfx", rng=5)  # continues from all known rows
        assert len(known) > n


def test_an_unfinished_run_of_another_model_is_refused(tmp_path: Path) -> None:
    seen = Recorder(lambda rows: rows["a"] - rows["b"])

    def dies(rows: pd.DataFrame) -> Any:
        if seen.n >= 6:
            raise OSError("gone")
        return seen(rows)

    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        with pytest.raises(OSError, match="gone"):
            ask(dies, known)
        with pytest.raises(cfx.EvaluationsError, match="must hold outputs of this model; it gives"):
            ask(lambda rows: 2 * rows["a"] - rows["b"], known)


def test_an_unnamed_model_gets_no_rows_of_a_concurrent_model(tmp_path: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    given = X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=1.0)
    how: dict[str, Any] = {"method": "random", "budget": 12, "rng": 0}
    asked: list[int] = []

    def other(rows: pd.DataFrame) -> Any:
        return 5.0 * rows["a"]

    def mine(rows: pd.DataFrame) -> Any:
        asked.append(len(rows))
        if len(asked) == 1:  # meanwhile another process asks another model about the same rows
            with cfx.Evaluations.open(tmp_path / "a.db") as beside:
                cfx.explain(other, *given, evaluations=beside, **how)
        return rows["a"] + rows["b"]

    with cfx.Evaluations.open(tmp_path / "a.db") as known:
        answer = cfx.explain(mine, *given, evaluations=known, **how)
    assert sum(asked) == 12
    assert answer.verify(lambda rows: rows["a"] + rows["b"])
