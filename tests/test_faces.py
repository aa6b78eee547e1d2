"""The same seed gives the same answers in Python, on the command line and on the page."""

from __future__ import annotations

import contextlib
import importlib
import io
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import bayescfx as cfx
from bayescfx.cli import main
from bayescfx.cli.arguments import parse
from bayescfx.potentials.target_text import parse_target
from bayescfx.requests.console import Console
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.serving import read_site
from tests.web.conftest import ask, served

lightgbm: Any = importlib.import_module("lightgbm")

N_QUERIES = 10  # more than one block
TARGET = "+20%"


@pytest.fixture(scope="module", autouse=True)
def blocks_of_four() -> Iterator[None]:
    """Let blocks be small: what is the same for them is the same for blocks of 64."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayescfx.explainer.explainer.BLOCK", 4)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, its data and some queries."""
    path = tmp_path_factory.mktemp("faces")
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X.to_csv(path / "X.csv", index=False)
    X.head(N_QUERIES).to_csv(path / "queries.csv", index=False)
    model = lightgbm.LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1, random_state=0)
    model.fit(X, y).booster_.save_model(str(path / "model.txt"))
    return path


@pytest.fixture(scope="module")
def explainer(folder: Path) -> cfx.Explainer:
    model = lightgbm.Booster(model_file=str(folder / "model.txt"))
    return cfx.Explainer(model, cfx.Space.from_data(pd.read_csv(folder / "X.csv")))


@pytest.fixture(scope="module")
def in_python(folder: Path, explainer: cfx.Explainer) -> pd.DataFrame:
    """Return the answers of Python: new rows and outputs."""
    queries = pd.read_csv(folder / "queries.csv")
    many = explainer.explain_many(queries, parse_target(TARGET), rng=0)
    rows = pd.DataFrame([answer.best.row for answer in many])
    return rows.assign(output=[answer.best.output for answer in many]).reset_index(drop=True)


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    columns = list(expected.columns)
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found[columns].to_numpy(float), expected[columns].to_numpy(float))


@pytest.mark.parametrize("jobs", ["", "1", "2"])
def test_the_command_line_gives_the_answers_of_python(
    jobs: str, folder: Path, in_python: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    out = f"answers{jobs}.csv"
    command = ["explain-many", "--model", "model.txt", "--data", "X.csv"]
    command += ["--queries", "queries.csv", "--target", TARGET, "--seed", "0", "--out", out]
    code = main([*command, *(["--jobs", jobs] if jobs else []), "--quiet"])
    assert code in (0, 3, 4)  # 3, 4: some targets were not reached, or are out of reach
    same(pd.read_csv(folder / out), in_python)


def test_a_stream_gives_the_answers_of_python(
    folder: Path, explainer: cfx.Explainer, in_python: pd.DataFrame
) -> None:
    queries = pd.read_csv(folder / "queries.csv")
    frames = [queries[:5], queries[5:6], queries[6:]]
    tables = explainer.explain_stream(frames, parse_target(TARGET), rng=0)
    same(pd.concat(tables), in_python)


def test_the_page_gives_the_answers_of_python(folder: Path, explainer: cfx.Explainer) -> None:
    queries = pd.read_csv(folder / "queries.csv")
    command = ["serve", "--model", str(folder / "model.txt"), "--data", str(folder / "X.csv")]
    options: Namespace = parse([*command, "--quiet", "--rows", "20"])
    queue = QuestionQueue(read_site(options, Console(io.StringIO(), io.StringIO())))
    with contextlib.closing(queue), served(queue) as page:
        for position in (3, 4, 3):  # the third time after another question
            cells = queries.iloc[position].to_dict()
            seed = 7 + position
            found = ask(page, cells=cells, target=TARGET, budget=None, n=1, seed=seed)
            target = parse_target(TARGET)
            expected = explainer.explain(queries.iloc[position], target, rng=seed)
            best = found["answer"]["counterfactuals"][0]
            assert best["output"] == expected.best.output
            assert found["answer"]["n_evaluations"] == expected.n_evaluations
            assert found["answer"]["proof"] == expected.proof
