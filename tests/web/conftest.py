"""A page about people: levels, missing cells, identifiers and a rule of the operator."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import joblib
import numpy as np
import pandas as pd
import pytest
import uvicorn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from bayescfx.cli.arguments import parse
from bayescfx.requests.console import Console
from bayescfx.web.app import make_app
from bayescfx.web.guard import Guard
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.serving import read_site


def people(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": [f"P{i:03d}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "bmi": np.round(rng.normal(27, 4, n), 1),
            "smoker": rng.choice(["no", "yes"], n),
            "region": rng.choice(["<b>north</b>", "south", 'we"st'], n),
            "visits": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
        }
    )


def linear(rows: pd.DataFrame) -> Any:
    """A model that is code, and therefore expensive."""
    return 100 * rows["age"] + 300 * rows["bmi"]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model and its data."""
    folder, table = tmp_path_factory.mktemp("site"), people()
    X = table.drop(columns="name")
    y = 100 * X["age"] + 300 * X["bmi"] + 9000 * (X["smoker"] == "yes")
    encoded = make_column_transformer(
        (OrdinalEncoder(), ["smoker", "region"]), remainder="passthrough"
    )
    model = make_pipeline(encoded, HistGradientBoostingRegressor(max_iter=40)).fit(X, y)
    table.to_csv(folder / "people.csv", index=False)
    joblib.dump(model, folder / "model.joblib")
    return folder


def make_queue(folder: Path, *words: str, model: str = "", **how: Any) -> QuestionQueue:
    """Return the queue of a page, as the command line would make it."""
    source = model or str(folder / "model.joblib")
    given = ["serve", "--model", source, "--trust-pickle", "--quiet", "--rows", "100"]
    given += ["--data", str(folder / "people.csv"), "--id", "name", *words]
    options: Namespace = parse(given)
    console = Console(io.StringIO(), io.StringIO())
    return QuestionQueue(read_site(options, console), **how)


@pytest.fixture(scope="module")
def queue(files: Path) -> Iterator[QuestionQueue]:
    """Return a queue where age can't fall."""
    found = make_queue(files, "--only-up", "age")
    yield found
    found.close()


@contextlib.contextmanager
def served(queue: QuestionQueue, **how: Any) -> Iterator[httpx.Client]:
    """Yield a client of the page, which a real server shows."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # early connections wait
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        guard = Guard(make_app(queue), frozenset([host]), **how)
        config = uvicorn.Config(guard, log_level="critical", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://{host}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def page(queue: QuestionQueue) -> Iterator[httpx.Client]:
    """Return a client of the page."""
    with served(queue) as client:
        yield client


def row(page: httpx.Client, **where: Any) -> Any:
    """Return the first row that the page shows."""
    return page.get("/api/rows", params={"limit": 1, **where}).json()["rows"][0]


def ended(page: httpx.Client, number: int, seconds: float = 60.0) -> Any:
    """Return a question when it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = page.get(f"/api/questions/{number}").json()
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.02)
    raise AssertionError("the question has not ended")


def ask(page: httpx.Client, **fields: Any) -> Any:
    """Return a question and its answer."""
    given = {"target": "+10%", "budget": 300, "n": 2, **fields}
    given.setdefault("cells", row(page)["cells"])
    asked = page.post("/api/questions", json=given)
    assert asked.status_code == 202, asked.text
    return ended(page, asked.json()["id"])
