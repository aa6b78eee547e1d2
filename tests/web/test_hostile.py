"""Hostile requests, and a server that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.space.verbs import Verb
from bayescfx.web.request_forms import page_verbs
from tests.web.browser import serving
from tests.web.conftest import ask, row

HARMFUL: list[Any] = [
    "<script>alert(1)</script>",
    "'; DROP TABLE rows; --",
    "\x00\x1b[31m\u202e",
    "x" * 100_000,
    "NaN",
    True,
    10**400,
    -0.0,
    1e308,
    None,
]


@pytest.mark.parametrize("value", HARMFUL, ids=range(len(HARMFUL)))
@pytest.mark.parametrize("name", ["age", "bmi", "smoker"])
def test_harmful_cells_are_refused_or_scored(page: httpx.Client, name: str, value: Any) -> None:
    cells = {**row(page)["cells"], name: value}
    reply = page.post("/api/predict", json={"cells": cells})
    assert reply.status_code in (200, 422)
    assert reply.headers["content-type"] == "application/json"
    asked = page.post("/api/questions", json={"cells": cells, "target": "+5%", "budget": 5})
    assert asked.status_code in (202, 422)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '{"a": 1}', "[1]", "1e999"])
def test_values_outside_json_are_refused(page: httpx.Client, text: str) -> None:
    cells = json.dumps(row(page)["cells"])
    body = re.sub(r'"age": \d+', f'"age": {text}', f'{{"cells": {cells}, "target": "+5%"}}')
    assert text in body
    for path in ("predict", "questions"):
        reply = page.post(
            f"/api/{path}", content=body, headers={"content-type": "application/json"}
        )
        assert reply.status_code == 422, reply.text


@pytest.mark.parametrize("verb", page_verbs(), ids=lambda verb: verb.name)
def test_empty_texts_of_constraints_are_no_server_error(page: httpx.Client, verb: Verb) -> None:
    fields = {"cells": row(page)["cells"], "target": "+5%", "space": {verb.name: ""}}
    reply = page.post("/api/predict", json=fields)
    assert reply.status_code in (200, 422), reply.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{" * 10_000])
def test_malformed_bodies_are_refused(page: httpx.Client, body: bytes) -> None:
    reply = page.post("/api/predict", content=body, headers={"content-type": "application/json"})
    assert 400 <= reply.status_code < 500
    assert set(reply.json()) == {"error"}


def test_ten_megabytes_are_refused_and_the_server_stays_up(page: httpx.Client) -> None:
    cells = {**row(page)["cells"], "region": "x" * 10_000_000}
    try:
        reply = page.post("/api/predict", json={"cells": cells})
        assert reply.status_code == 413
    except httpx.TransportError:
        pass  # the server may hang up before all is sent
    assert page.get("/api/site").status_code == 200


def test_texts_of_the_data_are_never_markup(page: httpx.Client) -> None:
    cells = {**row(page)["cells"], "region": "<b>north</b>"}
    found = ask(page, cells=cells, target="+5%", label="<img src=x onerror=alert(1)>")
    report = page.get(f"/api/questions/{found['id']}/export/html").text
    assert "<b>north</b>" not in report
    assert "<img src=x" not in report


def test_rows_without_an_output_are_shown_without_one(tmp_path: Path) -> None:
    (tmp_path / "gaps.py").write_text(
        "def score(rows):\n    return rows['a'].where(rows['a'] > 1)\n"
    )
    pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": [1, 2, 3]}).to_csv(tmp_path / "X.csv", index=False)
    with serving(tmp_path, "--model", "gaps:score", "--data", "X.csv") as address:
        reply = httpx.get(f"{address}api/rows", params={"sort": "(output)"}).json()
        assert [line["output"] for line in reply["rows"]] == [1.5, 2.5, None]
        assert sum(httpx.get(f"{address}api/site").json()["predictions"]["counts"]) == 2


SLOW = """\
import time

def score(rows):
    time.sleep(0.02)
    y = rows["a"] * 2.0 + rows["b"] ** 2
    with open("scored.txt", "a") as file:
        file.write("".join(f"{a!r} {b!r}\\n" for a, b in zip(rows["a"], rows["b"])))
    return y
"""


def test_killed_server_has_kept_the_scored_rows(tmp_path: Path) -> None:
    (tmp_path / "slow_model.py").write_text(SLOW)
    values = [[k / 7, (k * 13 % 50) / 9] for k in range(60)]
    pd.DataFrame(values, columns=["a", "b"]).to_csv(tmp_path / "X.csv", index=False)
    command = [sys.executable, "-m", "bayescfx", "serve", "--model", "slow_model:score"]
    command += ["--data", "X.csv", "--evaluations", "known.db", "--port", "0", "--rows", "5"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        (tmp_path / "scored.txt").unlink()  # the rows that are shown at first
        with httpx.Client(base_url=address, timeout=30) as page:
            fields = {"target": "= 1e6", "method": "bayes-cfx", "budget": 5000, "timeout": 100}
            fields["cells"] = row(page)["cells"]
            number = page.post("/api/questions", json=fields).json()["id"]
            until = time.monotonic() + 60
            while page.get(f"/api/questions/{number}").json()["spent"] < 30:
                assert time.monotonic() < until
            os.kill(server.pid, signal.SIGKILL)
    scored = {
        tuple(map(float, s.split())) for s in (tmp_path / "scored.txt").read_text().splitlines()
    }
    with cfx.Evaluations.open(tmp_path / "known.db") as known:
        kept = {tuple(cells) for cells, _ in known}
    assert len(scored) >= 30
    assert len(scored - kept) <= 1  # the batch that was just being scored
