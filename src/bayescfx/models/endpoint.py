"""Models behind HTTP: MLflow's scoring protocol and the Open Inference Protocol v2."""

from __future__ import annotations

import itertools
import json
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.checks import check, check_whole, is_a, is_number
from bayescfx.deadline import in_time, waiting
from bayescfx.errors import ModelError, OutOfTime, one_line, optional
from bayescfx.models.protocols import Mlflow, OpenInference


class EndpointError(ModelError):
    """A model behind HTTP does not answer, or not as agreed."""


class _Late(EndpointError, OutOfTime):
    """There was no answer before the time of the search was over."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, and how often to ask again.

    The `timeout` of `explain` ends all waiting, too.

    Parameters
    ----------
    timeout : float, default 30
        Seconds to wait for one answer, the whole of it. It may have 64 MB.
    retries : int, default 4
        How often to ask again if the server is busy (408, 425, 429, 502, 503, 504) or does not
        answer.
    pause : float, default 0.25
        Seconds before the second attempt; doubled each time, 8 at most. A server that says with
        ``Retry-After`` when to come back is believed, up to a minute.
    """

    timeout: float = 30.0
    retries: int = 4
    pause: float = 0.25

    def __post_init__(self) -> None:
        good = is_number(self.timeout, 0, threading.TIMEOUT_MAX) and self.timeout > 0
        check(good, "timeout", "seconds > 0", self.timeout)
        check_whole("retries", self.retries, 0)
        check(is_number(self.pause, 0), "pause", "seconds >= 0", self.pause)


@dataclass(eq=False)
class Endpoint:
    """A model behind HTTP as a function of rows.

    It sends rows in batches, waits and asks again when the server is busy or out of reach for a
    moment, and says what is wrong when the answer is not one number per row.

    Parameters
    ----------
    url : str
        ``http://host:5000/invocations`` for MLflow (the path may be left out), or
        ``http://host:8080/v2/models/NAME`` for the Open Inference Protocol.
    output : str, optional
        Which output to take, if the model has several: ``"NAME"``, or ``"NAME:COLUMN"`` for a
        column of it, such as the probability of one class.
    batch : int, default 1000
        The most rows sent at once.
    headers : dict, optional
        Sent with each request, such as ``{"Authorization": "Bearer …"}``.
    patience : Patience, optional
        Time-outs and retries.
    sleep : callable, optional
        Waits for some seconds.

    Examples
    --------
    >>> Endpoint("http://localhost:5000").protocol.url
    'http://localhost:5000/invocations'
    """

    url: str
    output: str | None = None
    batch: int = 1000
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = Patience()
    sleep: Callable[[float], object] = time.sleep

    protocol: Mlflow | OpenInference = field(init=False)
    _client: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url if is_a(self.url, str) else "")
            good = parts.scheme in ("http", "https") and bool(parts.netloc)
        except ValueError:
            good = False
        check(good, "url", "like http://host:port/invocations", self.url)
        check(isinstance(self.output, str | None), "output", "the name of an output", self.output)
        check_whole("batch", self.batch, 1)
        good = is_a(self.headers, Mapping) and all(
            is_a(text, str) and text.isascii() for pair in self.headers.items() for text in pair
        )
        check(good, "headers", "a dict of ASCII texts", self.headers)
        check(isinstance(self.patience, Patience), "patience", "a Patience", self.patience)
        self._connect()
        speaks = OpenInference if "/v2/models/" in parts.path else Mlflow
        self.protocol = speaks(self.url, self.output)

    def __call__(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.float64]:
        """Return one number per row, shape (n,), or an `EndpointError`."""
        protocol = self._introduced()
        parts = [rows[i : i + self.batch] for i in range(0, len(rows), self.batch)]
        return np.concatenate([self._ask(protocol, part) for part in parts])

    def columns(self) -> tuple[str, ...] | None:
        """Return the columns that the model takes, if the server tells."""
        inputs = self._introduced().inputs
        return tuple(str(told["name"]) for told in inputs) if len(inputs) > 1 else None

    def __reduce__(self) -> tuple[Any, ...]:  # in another process it has its own connection
        headers = dict(self.headers)
        given = (self.url, self.output, self.batch, headers, self.patience, self.sleep)
        return type(self), given

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _connect(self) -> None:
        httpx = optional("httpx", "a model behind HTTP needs", "models")
        self._client = httpx.Client(timeout=self.patience.timeout, headers=dict(self.headers))
        weakref.finalize(self, self._client.close)

    def _introduced(self) -> Mlflow | OpenInference:
        """Return the protocol after what the server says about the model, asked once."""
        protocol = self.protocol
        if protocol.about is not None:
            code, content = self._send("GET", protocol.about, None)
            told = content.get("inputs") if code == 200 and isinstance(content, dict) else None
            if isinstance(told, list) and all(
                isinstance(one, dict) and {"name", "datatype"} <= one.keys() for one in told
            ):
                protocol.inputs = told
            protocol.about = None
        return protocol

    def _ask(self, protocol: Mlflow | OpenInference, rows: Any) -> NDArray[np.float64]:
        code, content = self._send("POST", protocol.url, protocol.request(rows))
        if code != 200:
            what = "refused the rows" if code < 500 else "failed"
            advice = "Send the columns that it takes" if code < 500 else "Look at the server's log"
            if code < 400 or code in (401, 403, 404, 405, 407):
                advice = "Correct the address or the headers"
            raise EndpointError(
                f"the model at {protocol.url} {what} ({code}): {_short(content)}. {advice}."
            )
        try:
            return protocol.outputs(content, len(rows))
        except ModelError as error:
            raise EndpointError(f"the model at {protocol.url} {error}") from error
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise EndpointError(
                f"the model at {protocol.url} must answer with outputs as its protocol says; got "
                f"{_short(content)}. Check the address."
            ) from error

    def _send(self, verb: str, url: str, body: Any) -> tuple[int, Any]:
        """Return status and content, JSON or text; ask again while the server is busy or away."""
        import httpx  # which is there, since the client is

        until = waiting.get()
        for attempt in itertools.count(1):
            code, content, wished, fault = 0, b"", 0.0, ""
            seconds = min(self.patience.timeout, until.left)
            try:
                code, content, wished = self._read(verb, url, body, seconds)
            except (httpx.TimeoutException, TimeoutError):
                fault = f"no answer within {seconds:.3g} s"
            except (httpx.RequestError, RuntimeError) as error:  # another thread closed the client
                fault = str(error) or type(error).__name__
            except UnicodeError as error:
                raise EndpointError(
                    f"the model at {url} must get text that UTF-8 can hold; got {error}. Correct "
                    "the rows."
                ) from error
            busy = fault or code in (408, 425, 429, 502, 503, 504)
            if busy and until.passed:
                raise _Late(
                    f"the model at {url} does not answer in time: {fault or f'it is busy ({code})'}"
                    f", {attempt} attempts. Start the server, or pass a longer `timeout`."
                )
            if not busy or attempt > self.patience.retries:
                break
            pause = min(8.0, self.patience.pause * 2.0 ** (attempt - 1))
            self.sleep(min(max(pause, wished), 60.0, until.left))
        if fault:
            raise EndpointError(
                f"the model at {url} does not answer: {fault} ({attempt} attempts). Start the "
                "server, or correct the address."
            )
        try:
            return code, json.loads(content)
        except (ValueError, RecursionError):
            return code, content.decode(errors="replace")

    def _read(self, verb: str, url: str, body: Any, seconds: float) -> tuple[int, bytes, float]:
        """Return status and content of one answer, all of it in time, and when to come back.

        In a thread: whoever waits for single bytes does not know how long the whole takes.
        """
        client = self._client

        def read() -> tuple[int, bytes, float]:
            with client.stream(verb, url, json=body) as answer:
                content = bytearray()
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > 64_000_000:
                        raise EndpointError(
                            f"the model at {url} must answer with at most 64 MB; got more. "
                            "Send fewer rows at once with `batch`, or correct the address.",
                            parameter="batch",
                        )
                return answer.status_code, bytes(content), _wished(answer.headers)

        try:
            return in_time(read, seconds)
        except TimeoutError:
            client.close()  # which ends the reader, too
            self._connect()
            raise


def _wished(headers: Mapping[str, str]) -> float:
    """Return in how many seconds a server wants to be asked again; a date is by its own clock.

    >>> day = "Wed, 21 Oct 2015"
    >>> _wished({"Retry-After": f"{day} 07:28:09 GMT", "Date": f"{day} 07:28:00 GMT"})
    9.0
    """
    wish = headers.get("Retry-After", "")
    if wish.isdecimal():
        return float(wish)
    try:
        then, now = (parsedate_to_datetime(text) for text in (wish, headers.get("Date", "")))
        return (then - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _short(content: Any) -> str:
    """Return what a server says in one line: both ends, since the reason may come last."""
    said = content if isinstance(content, dict) else {}
    told = [said[k] for k in ("message", "error", "detail") if isinstance(said.get(k), str)]
    line = one_line(str(told[0] if told else content)).rstrip(".")
    return line if len(line) <= 300 else f"{line[:150]} … {line[-150:]}"
