"""The OpenAPI description, and requests that follow it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bayescfx.web.questions import QuestionQueue
from tests.web.conftest import ask, make_queue, row, served


def test_description_has_the_columns_of_the_data(page: httpx.Client) -> None:
    content = page.get("/api/openapi.json").json()
    forms = content["components"]["schemas"]
    cells = forms["QuestionForm"]["properties"]["cells"]
    assert cells["properties"]["smoker"] == {"enum": ["no", "yes", None]}
    assert cells["properties"]["age"] == {"type": ["integer", "null"]}
    assert cells["examples"] == [row(page)["cells"]]
    assert set(content["paths"]["/api/questions/{number}"]) == {"get", "delete"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_requests_that_follow_the_description_cause_no_server_error(files: Path) -> None:
    pytest.importorskip("schemathesis")
    queue: QuestionQueue = make_queue(files)
    with served(queue) as page:
        ask(page, budget=20)
        command = [sys.executable, "-m", "schemathesis.cli", "run"]
        command += [f"{page.base_url}/api/openapi.json", "--max-examples", "150"]
        command += ["--checks", "not_a_server_error", "--exclude-path-regex", "events"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:]
        assert page.get("/api/site").status_code == 200
    queue.close()
