"""Models behind HTTP, against a real server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import bayescfx as cfx
from bayescfx.models.endpoint import Endpoint, EndpointError, Patience
from bayescfx.models.protocols import Mlflow, OpenInference, cell, numbers
from tests.people import people
from tests.servers import Scoring, serving, speaking

FRAME = pd.DataFrame({"age": [30, 40, 50], "bmi": [21.5, 30.0, np.nan], "job": ["a", "b", "a"]})
NUMBERS = pd.DataFrame({"age": [30, 40, 50], "bmi": [21.5, 30.0, 25.0]})


def age(rows: Any) -> Any:
    return rows["age"].to_numpy() if isinstance(rows, pd.DataFrame) else rows[:, 0]


def quick(url: str, **settings: Any) -> Endpoint:
    """Return an endpoint that does not wait."""
    return Endpoint(url, sleep=lambda _: None, **settings)


@pytest.fixture
def server() -> Iterator[Scoring]:
    with serving(Scoring(age)) as scoring:
        yield scoring


def test_mlflow_gets_a_split_frame_with_missing_cells_as_null(server: Scoring) -> None:
    endpoint = quick(server.url)
    assert endpoint(FRAME).tolist() == [30.0, 40.0, 50.0]
    assert server.requests == [
        {
            "dataframe_split": {
                "columns": ["age", "bmi", "job"],
                "data": [[30, 21.5, "a"], [40, 30.0, "b"], [50, None, "a"]],
            }
        }
    ]
    endpoint.close()


def test_mlflow_gets_arrays_as_inputs(server: Scoring) -> None:
    assert quick(server.url)(np.array([[1.5, 2.0]])).tolist() == [1.5]
    assert server.requests == [{"inputs": [[1.5, 2.0]]}]


def test_v2_gets_one_tensor_for_numbers(server: Scoring) -> None:
    endpoint = quick(f"{server.url}/v2/models/m")
    assert endpoint(NUMBERS).tolist() == [30.0, 40.0, 50.0]
    assert server.requests[0]["inputs"] == [
        {
            "name": "input-0",
            "shape": [3, 2],
            "datatype": "FP64",
            "data": [30.0, 21.5, 40.0, 30.0, 50.0, 25.0],
        }
    ]


def test_v2_gets_one_tensor_per_column_if_there_is_text(server: Scoring) -> None:
    endpoint = quick(f"{server.url}/v2/models/m")
    assert endpoint(FRAME).tolist() == [30.0, 40.0, 50.0]
    body = server.requests[0]
    assert body["parameters"] == {"content_type": "pd"}
    assert [t["datatype"] for t in body["inputs"]] == ["INT64", "FP64", "BYTES"]
    assert body["inputs"][1]["data"] == [21.5, 30.0, None]


def test_v2_follows_the_servers_description_of_its_inputs() -> None:
    inputs = [
        {"name": "job", "datatype": "BYTES", "shape": [-1]},
        {"name": "age", "datatype": "INT64", "shape": [-1, 1]},
    ]
    with serving(Scoring(age, inputs=inputs)) as server:
        endpoint = quick(f"{server.url}/v2/models/m")
        assert endpoint.columns() == ("job", "age")
        assert endpoint(FRAME.astype({"age": float})).tolist() == [30.0, 40.0, 50.0]
        job, years = server.requests[0]["inputs"]
        assert (job["shape"], years["shape"]) == ([3], [3, 1])
        assert years["data"] == [30, 40, 50]
        with pytest.raises(cfx.ModelError, match=r"must get the columns job, age; missing: job\."):
            endpoint(NUMBERS)


def test_a_v2_tensor_of_the_servers_name_and_type() -> None:
    inputs = [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
    with serving(Scoring(age, inputs=inputs)) as server:
        quick(f"{server.url}/v2/models/m/infer")(NUMBERS)
        assert server.requests[0]["inputs"][0]["name"] == "x"
        assert server.requests[0]["inputs"][0]["datatype"] == "FP32"


@pytest.mark.parametrize(("years", "sent"), [(30.0, [30, 40]), (30.5, [30.5, 40.0])])
def test_a_v2_tensor_of_whole_numbers_never_truncates_a_fraction(
    years: float, sent: list[float]
) -> None:
    v2 = OpenInference("http://h/v2/models/m")
    v2.inputs = [{"name": "x", "datatype": "INT64", "shape": [-1, 1]}]
    (tensor,) = v2.request(pd.DataFrame({"age": [years, 40.0]}))["inputs"]
    assert [(type(v), v) for v in tensor["data"]] == [(type(v), v) for v in sent]


def test_rows_go_in_batches_and_come_back_in_order(server: Scoring) -> None:
    rows = pd.DataFrame({"age": np.arange(25)})
    assert quick(server.url, batch=10)(rows).tolist() == list(range(25))
    assert [len(r["dataframe_split"]["data"]) for r in server.requests] == [10, 10, 5]


def test_a_busy_server_is_called_again_after_growing_pauses() -> None:
    pauses: list[float] = []
    with serving(Scoring(age, statuses=[503, 429, 502])) as server:
        endpoint = Endpoint(server.url, sleep=pauses.append)
        assert endpoint(NUMBERS).tolist() == [30.0, 40.0, 50.0]
        assert server.asked == 4
    assert pauses == [0.25, 0.5, 1.0]


def test_retry_after_is_followed() -> None:
    pauses: list[float] = []
    with serving(Scoring(age, statuses=[429], headers={"Retry-After": "3"})) as server:
        Endpoint(server.url, sleep=pauses.append)(NUMBERS)
    assert pauses == [3.0]


def test_a_server_that_stays_busy_is_an_error() -> None:
    with serving(Scoring(age, statuses=[503] * 9)) as server:
        with pytest.raises(EndpointError, match=r"failed \(503\): status 503\. Look at the server"):
            quick(server.url, patience=Patience(retries=2))(NUMBERS)
        assert server.asked == 3


@pytest.mark.parametrize("status", [400, 404, 422])
def test_refused_rows_are_not_sent_again(status: int) -> None:
    with serving(Scoring(age, statuses=[status])) as server:
        with pytest.raises(EndpointError, match=rf"refused the rows \({status}\): status {status}"):
            quick(server.url)(NUMBERS)
        assert server.asked == 1


def test_an_unreachable_server_is_an_error_with_advice() -> None:
    endpoint = quick("http://127.0.0.1:9", patience=Patience(retries=1))
    with pytest.raises(EndpointError, match=r"does not answer: .*\(2 attempts\)\. Start the serv"):
        endpoint(NUMBERS)


def test_a_slow_server_is_given_up_after_the_time_out() -> None:
    with serving(Scoring(age, delay=0.5)) as server:
        endpoint = quick(server.url, patience=Patience(timeout=0.05, retries=0))
        with pytest.raises(EndpointError, match=r"no answer within 0\.05 s \(1 attempts\)"):
            endpoint(NUMBERS)


def in_bytes(text: bytes) -> list[bytes]:
    return [text[i : i + 1] for i in range(len(text))]


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
BODY = b'{"predictions": [1.0, 2.0, 3.0]}'


@pytest.mark.parametrize(
    ("head", "body"), [([HEAD], in_bytes(BODY)), (in_bytes(HEAD), [BODY])], ids=["body", "head"]
)
def test_a_server_that_drips_is_given_up_after_the_time_out(
    head: list[bytes], body: list[bytes]
) -> None:
    with speaking(head, body, pause=0.02) as url:  # each byte in time, all of them not
        with pytest.raises(EndpointError, match=r"no answer within 0.2 s \(2 attempts\)"):
            quick(url, patience=Patience(timeout=0.2, retries=1))(NUMBERS)
        assert quick(url, patience=Patience(timeout=30))(NUMBERS).tolist() == [1.0, 2.0, 3.0]


def test_an_answer_that_is_too_large_is_refused() -> None:
    blanks = [b" " * 2**20] * 65
    with (
        speaking([HEAD], [*blanks, BODY]) as url,
        pytest.raises(EndpointError, match="must answer with at most 64 MB; got more"),
    ):
        quick(url)(NUMBERS)


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"predictions": ' + b"[" * 50_000, b"\xff\xfe", b"", b'{"predictions": {}}'],
)
def test_hostile_json_is_an_error(body: bytes) -> None:
    with speaking([HEAD], [body]) as url, pytest.raises(EndpointError, match="must answer"):
        quick(url)(NUMBERS)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n", BODY),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 400\r\n\r\n", BODY[:9]),
        (b"nonsense\r\n\r\n", b""),
        (b"", b""),
    ],
    ids=["not gzip", "half an answer", "garbage", "nothing"],
)
def test_an_answer_that_breaks_off_or_is_no_http_is_an_error(head: bytes, body: bytes) -> None:
    message = r"does not answer: .* \(3 attempts\)"
    with speaking([head], [body]) as url, pytest.raises(EndpointError, match=message):
        quick(url, patience=Patience(retries=2))(NUMBERS)


def test_redirects_are_not_followed() -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: /invocations\r\nConnection: close\r\n\r\n"
    with speaking([head], []) as url, pytest.raises(EndpointError, match=r"302.*Correct the addr"):
        quick(url)(NUMBERS)


def test_text_that_utf8_can_not_hold_is_an_error(server: Scoring) -> None:
    with pytest.raises(EndpointError, match="must get text that UTF-8 can hold"):
        quick(server.url)(NUMBERS.assign(job=pd.Series(["\ud800"] * 3, dtype=object)))


def test_a_client_that_another_thread_has_closed_is_replaced(server: Scoring) -> None:
    endpoint = quick(server.url)
    pauses: list[float] = []
    endpoint._client.close()  # as a thread does whose answer came too late

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        endpoint._connect()

    endpoint.sleep = wait
    assert endpoint(NUMBERS).tolist() == [30.0, 40.0, 50.0]
    assert len(pauses) == 1


def test_a_server_that_restarts_does_not_change_a_search() -> None:
    space = cfx.Space.from_data(FRAME.assign(bmi=25.0)).fix("job")
    query, answers = {"age": 30, "bmi": 25.0, "job": "a"}, []
    for away in ([], [200, 200] + [503] * 9):
        with serving(Scoring(age, statuses=away)) as server:
            endpoint = quick(server.url, patience=Patience(retries=9))
            answers.append(cfx.explain(endpoint, query, space, cfx.reach(44), budget=20, rng=0))
            assert server.rows == answers[-1].n_evaluations
    assert answers[0].best.changes == answers[1].best.changes
    assert answers[0].n_evaluations == answers[1].n_evaluations


@pytest.mark.parametrize("inputs", ["x", [1], [{}], [{"name": "a"}, 3], {"a": 1}])
@pytest.mark.parametrize("outputs", [3, [3], [{"name": "a", "shape": "x"}], [{"data": {"a": 1}}]])
def test_hostile_v2_answers_are_errors(inputs: Any, outputs: Any) -> None:
    body = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    with speaking([HEAD], [body]) as url, pytest.raises(EndpointError, match="must answer"):
        quick(f"{url}/v2/models/m")(NUMBERS)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "NaN"])
def test_a_number_beyond_float64_is_a_fault_of_one_row(number: str) -> None:
    with speaking([HEAD], [f'{{"predictions": [1, {number}, 2]}}'.encode()]) as url:
        assert np.isfinite(quick(url)(NUMBERS)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"result": [1, 2, 3]}, r"must answer with 'predictions', as MLflow does; got \{'result'"),
        ({"predictions": [1, 2]}, r"one number for each of 3 rows; got 2 values"),
        ({"predictions": 7}, r"one number for each of 3 rows; got 7"),
        ({"predictions": ["a", "b", "c"]}, r"must answer with numbers; got 'a'"),
        ({"predictions": [[0.1, 0.9]] * 3}, r"several numbers per row: 0, 1; got output None"),
        ("<html>", r"must answer in JSON; got '<html>'\. Check the address"),
    ],
)
def test_a_bad_answer_is_an_error_that_shows_it(body: Any, message: str) -> None:
    with (
        serving(Scoring(age, body=body)) as server,
        pytest.raises(EndpointError, match=message) as caught,
    ):
        quick(server.url)(NUMBERS)
    assert f"the model at {server.url}/invocations" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"predictions": [1]}, r"must answer with 'outputs'"),
        ({"outputs": [{"name": "y", "shape": [2], "data": [1, 2]}]}, r"got shape \[2\] with 2"),
        ({"outputs": [{"name": "y", "shape": [3], "data": [1, 2]}]}, r"got shape \[3\] with 2"),
    ],
)
def test_a_bad_v2_answer_is_an_error(body: Any, message: str) -> None:
    with serving(Scoring(age, body=body)) as server, pytest.raises(EndpointError, match=message):
        quick(f"{server.url}/v2/models/m")(NUMBERS)


def test_one_of_several_outputs_can_be_chosen() -> None:
    def two(rows: Any) -> Any:
        return np.stack([1 - age(rows) / 100, age(rows) / 100], axis=1)

    with serving(Scoring(two)) as server:
        assert quick(server.url, output="1")(NUMBERS).tolist() == [0.3, 0.4, 0.5]
        v2 = f"{server.url}/v2/models/m"
        assert quick(v2, output="predict:1")(NUMBERS).tolist() == [0.3, 0.4, 0.5]
        assert quick(v2, output="1")(NUMBERS).tolist() == [0.3, 0.4, 0.5]
        with pytest.raises(EndpointError, match=r"has the outputs predict; got output 'risk:1'"):
            quick(v2, output="risk:1")(NUMBERS)


def test_named_outputs_of_mlflow_can_be_chosen() -> None:
    body = {"predictions": [{"low": 1.0, "high": 2.0}] * 3}
    with serving(Scoring(age, body=body)) as server:
        assert quick(server.url, output="high")(NUMBERS).tolist() == [2.0, 2.0, 2.0]


def test_headers_are_sent(server: Scoring) -> None:
    quick(server.url, headers={"Authorization": "Bearer secret"})(NUMBERS)
    assert server.seen_headers[0]["Authorization"] == "Bearer secret"


def test_an_output_that_is_chosen_where_there_is_one_is_refused() -> None:
    with pytest.raises(cfx.ModelError, match="answers with one number per row; got output '1'"):
        numbers([1.0, 2.0], 2, "1")


def test_a_missing_output_is_a_fault_of_that_row() -> None:
    assert np.isnan(numbers([1.0, None], 2, None)[1])


@pytest.mark.parametrize("url", ["ftp://host/x", "localhost:5000", "http://"])
def test_invalid_addresses_are_refused(url: str) -> None:
    with pytest.raises(cfx.SettingsError, match=r"`url` must be like http://host:port/invocations"):
        Endpoint(url)


def test_settings_are_checked() -> None:
    with pytest.raises(cfx.SettingsError, match=r"`timeout` must be seconds > 0; got 0"):
        Patience(timeout=0)
    with pytest.raises(
        cfx.SettingsError, match=r"`retries` must be a whole number of at least 0; got -1"
    ):
        Patience(retries=-1)
    with pytest.raises(
        cfx.SettingsError, match=r"`batch` must be a whole number of at least 1; got 0"
    ):
        Endpoint("http://localhost", batch=0)


def test_addresses_are_completed() -> None:
    assert Mlflow("http://h:1/").url == "http://h:1/invocations"
    assert Mlflow("http://h/prefix/invocations").url == "http://h/prefix/invocations"
    v2 = OpenInference("http://h/v2/models/m/versions/3")
    assert (v2.url, v2.description_url) == (
        "http://h/v2/models/m/versions/3/infer",
        "http://h/v2/models/m/versions/3",
    )


def test_an_endpoint_is_explained_like_any_model(server: Scoring) -> None:
    space = cfx.Space.from_data(FRAME.assign(bmi=25.0)).fix("job")
    endpoint = quick(server.url)
    answer = cfx.explain(
        endpoint, {"age": 30, "bmi": 25.0, "job": "a"}, space, cfx.reach(44), budget=20, rng=0
    )
    assert answer.best.changes == {"age": (30, 44)}
    assert answer.verify(endpoint)


# ── real servers ──


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = 120.0) -> None:
    """Wait until a server answers with 200."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the server has ended"
        try:
            if httpx.get(url, timeout=2.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"{url} did not answer within {seconds} s")


def free_port() -> int:
    with serving(Scoring(age)) as server:
        return int(server.url.rpartition(":")[2])


def mixed_model() -> tuple[pd.DataFrame, Any]:
    """Return real data with text columns and a pipeline fitted to it."""
    X, y = people()
    encoder = make_column_transformer(
        (OneHotEncoder(), ["glucose", "sex"]), remainder="passthrough"
    )
    return X, make_pipeline(encoder, Ridge(0.1)).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # MLflow's own, while it saves the model
def test_mlflows_real_server_is_explained(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow.sklearn", reason="needs mlflow-skinny")
    X, model = mixed_model()
    mlflow.save_model(model, str(tmp_path / "model"), input_example=X.head(2))
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "mlflow.pyfunc.scoring_server.app:app"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "__pyfunc_model_path__": str(tmp_path / "model")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/ping", process)
        endpoint = Endpoint(f"http://127.0.0.1:{port}/invocations")
        np.testing.assert_allclose(endpoint(X), model.predict(X))
        answer = cfx.explain(
            endpoint, X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=8), budget=30, rng=0
        )
        assert answer.reached
        assert answer.verify(model)
        with pytest.raises(EndpointError, match=r"refused the rows \(400\).*bmi"):
            endpoint(X.drop(columns="bmi"))
        process.terminate()
        process.wait(30)
        with pytest.raises(EndpointError, match=r"does not answer"):
            quick(endpoint.url, patience=Patience(retries=1))(X)
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_a_real_v2_server_is_explained(tmp_path: Path) -> None:
    pytest.importorskip("mlserver_sklearn", reason="needs mlserver and mlserver-sklearn")
    joblib = pytest.importorskip("joblib", reason="needs joblib")
    X, model = mixed_model()
    joblib.dump(model, tmp_path / "model.joblib")
    ports = [free_port() for _ in range(3)]
    server = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    about = {"name": "mixed", "implementation": "mlserver_sklearn.SKLearnModel"}
    where = {"parameters": {"uri": "./model.joblib", "version": "v1"}}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, **server}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "model-settings.json").write_text(json.dumps({**about, **where}))
    process = subprocess.Popen(
        [sys.executable, "-c", "from mlserver.cli import main; main()", "start", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{ports[0]}"
        wait_for(f"{url}/v2/models/mixed/ready", process)
        endpoint = Endpoint(f"{url}/v2/models/mixed")
        np.testing.assert_allclose(endpoint(X), model.predict(X))
        answer = cfx.explain(
            endpoint, X.iloc[0], cfx.Space.from_data(X), cfx.decrease(by=8), budget=30, rng=0
        )
        assert answer.reached
        assert answer.verify(model)
        with pytest.raises(EndpointError, match=r"the model at .*/infer (refused|failed)"):
            endpoint(X.drop(columns="bmi"))
    finally:
        process.terminate()
        process.wait(30)


def test_a_cell_is_a_json_value() -> None:
    given = [np.int64(3), np.bool_(True), np.float32(0.5), np.longdouble(1.5), np.nan, None, "a"]
    assert [cell(value) for value in given] == [3, True, 0.5, 1.5, None, None, "a"]
    assert cell(pd.Timestamp("2020-01-02")) == "2020-01-02T00:00:00"
    assert cell(np.timedelta64(1, "ns")) == "1 nanoseconds"
