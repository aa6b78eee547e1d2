"""How long a server is waited for: by its Retry-After, and until the deadline of the search."""

from __future__ import annotations

import time

import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.explainer import batches
from bayescfx.models.endpoint import Endpoint, EndpointError, Patience
from tests.models.test_endpoint import NUMBERS, age, quick
from tests.servers import Scoring, serving

SPACE = cfx.Space.from_data(pd.DataFrame({"age": [30.0, 40.5, 50.0], "bmi": [20.0, 25.0, 30.0]}))
QUERY = {"age": 30.0, "bmi": 25.0}


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [
        ("3600", 60.0),
        ("9" * 400, 60.0),
        ("Wed, 21 Oct 2015 07:28:09 GMT", 9.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.25),
        ("Wed, 21 Oct 9999 07:28:09 GMT", 60.0),
        ("soon", 0.25),
    ],
)
def test_retry_after_is_seconds_or_a_date_up_to_a_minute(retry_after: str, pause: float) -> None:
    now = "Wed, 21 Oct 2015 07:28:00 GMT"
    pauses: list[float] = []
    with serving(
        Scoring(age, statuses=[503], headers={"Retry-After": retry_after}, date=now)
    ) as server:
        assert Endpoint(server.url, sleep=pauses.append)(NUMBERS).tolist() == [30.0, 40.0, 50.0]
    assert pauses == [pause]


@pytest.mark.parametrize("away", ["hangs", "busy", "later"])
def test_the_time_of_a_search_ends_the_waiting_for_a_server(away: str) -> None:
    pauses: list[float] = []
    headers = {"Retry-After": "3600"} if away == "later" else {}

    def fall_silent(step: cfx.Step) -> None:
        if away == "hangs":
            server.delay = 30.0
        else:
            server.statuses = [503] * 10_000

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    with serving(Scoring(age, headers=headers)) as server:
        endpoint = Endpoint(server.url, patience=Patience(timeout=60, retries=10_000), sleep=pause)
        answer = cfx.explain(
            endpoint,
            QUERY,
            SPACE,
            cfx.reach(44),
            method="bayes-cfx",
            budget=500,
            timeout=1.0,
            rng=0,
            on_step=fall_silent,
        )
    assert answer.stopped == "timeout"
    assert len(answer.evaluations) < answer.n_evaluations < 500
    assert all(seconds <= 1.0 for seconds in pauses)
    assert bool(pauses) == (away != "hangs")


def test_the_querys_output_is_waited_for_in_spite_of_a_short_timeout() -> None:
    with serving(Scoring(age, delay=0.1, statuses=[503])) as server:
        answer = cfx.explain(quick(server.url), QUERY, SPACE, cfx.reach(44), timeout=0.0, rng=0)
    assert (answer.output, answer.n_evaluations, answer.stopped) == (30.0, 1, "timeout")


def test_a_missing_output_of_the_query_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "LEAST_WAIT", 0.2)
    fails = pytest.raises(EndpointError, match=r"in time: no answer within 0\.\d+ s, 1 attempts")
    with serving(Scoring(age, delay=5.0)) as server, fails:
        cfx.explain(quick(server.url), QUERY, SPACE, cfx.reach(44), timeout=0.1, rng=0)
