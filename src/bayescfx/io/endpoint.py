"""Models behind HTTP: MLflow's scoring protocol and the Open Inference Protocol v2.

An :class:`Endpoint` is a function of rows like any other model. It sends rows in batches, waits
and asks again when the server is busy or out of reach for a moment, and says what is wrong when
the answer is not one number per row.
"""

from __future__ import annotations

import importlib
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import MissingExtraError, ModelError
from bayescfx.io.protocols import Mlflow, OpenInference, Protocol

_BUSY = frozenset({408, 425, 429, 502, 503, 504})
_LONGEST_PAUSE = 8.0
_SHOWN = 300


class EndpointError(ModelError):
    """A model behind HTTP does not answer, or not as agreed."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, and how often to ask again.

    Parameters
    ----------
    timeout : float, default 30
        Seconds to wait for one answer.
    retries : int, default 4
        How often to ask again if the server is busy (408, 425, 429, 502, 503, 504) or does not
        answer.
    pause : float, default 0.25
        Seconds before the second attempt; doubled each time, 8 at most. A server that says when
        to come back is believed.
    """

    timeout: float = 30.0
    retries: int = 4
    pause: float = 0.25

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError(f"`timeout` must be seconds > 0; got {self.timeout!r}.")
        if self.retries < 0:
            raise ValueError(f"`retries` must be at least 0; got {self.retries!r}.")

    def before(self, attempt: int, wished: float | None = None) -> float:
        """Return the seconds to wait before an attempt, counted from 1 for the first repeat.

        Examples
        --------
        >>> [Patience().before(k) for k in (1, 2, 3)]
        [0.25, 0.5, 1.0]
        """
        waited = self.pause * 2.0 ** (attempt - 1)
        return min(_LONGEST_PAUSE, max(waited, wished or 0.0))


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A model behind HTTP as a function of rows.

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

    protocol: Protocol = field(init=False)
    _client: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise EndpointError(
                f"`url` must be like http://host:port/invocations; got {self.url!r}."
            )
        if self.batch < 1:
            raise ValueError(f"`batch` must be at least 1; got {self.batch!r}.")
        httpx = _httpx()
        client = httpx.Client(timeout=self.patience.timeout, headers=dict(self.headers))
        protocol = OpenInference if "/v2/models/" in parts.path else Mlflow
        weakref.finalize(self, client.close)
        object.__setattr__(self, "_client", client)
        object.__setattr__(self, "protocol", protocol.of(self.url, self.output))

    def __call__(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.float64]:
        """Return one number per row.

        Raises
        ------
        EndpointError
            If the server does not answer, refuses the rows, or answers something else.
        """
        protocol = self._introduced()
        parts = [rows[i : i + self.batch] for i in range(0, len(rows), self.batch)]
        return np.concatenate([self._ask(protocol, part) for part in parts])

    def columns(self) -> tuple[str, ...] | None:
        """Return the columns that the model takes, if the server tells."""
        return self._introduced().columns

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _introduced(self) -> Protocol:
        """Return the protocol after what the server says about the model, asked once."""
        protocol = self.protocol
        if protocol.about is not None:
            answer = self._send("GET", protocol.about, None)
            told = self._json(answer) if answer.status_code == 200 else {}
            protocol = protocol.told(told)
            object.__setattr__(self, "protocol", protocol)
        return protocol

    def _ask(self, protocol: Protocol, rows: Any) -> NDArray[np.float64]:
        answer = self._send("POST", protocol.url, protocol.request(rows))
        if answer.status_code != 200:
            raise EndpointError(
                f"the model at {protocol.url} refused the rows ({answer.status_code}): "
                f"{_reason(answer)}. Send the columns that it takes."
                if answer.status_code < 500
                else f"the model at {protocol.url} failed ({answer.status_code}): "
                f"{_reason(answer)}. Look at the server's log."
            )
        content = self._json(answer)
        try:
            return protocol.outputs(content, len(rows))
        except ModelError as error:
            raise EndpointError(f"the model at {protocol.url} {error}") from error

    def _json(self, answer: Any) -> Any:
        try:
            return answer.json()
        except ValueError as error:
            raise EndpointError(
                f"the model at {answer.url} must answer in JSON; got {_shorten(answer.text)!r}. "
                "Check the address."
            ) from error

    def _send(self, verb: str, url: str, body: Any) -> Any:
        """Return the server's answer, asking again while it is busy or out of reach."""
        attempt, wait = 0, 0.0
        while True:
            answer, fault = self._try(verb, url, body)
            if answer is not None and answer.status_code not in _BUSY:
                return answer
            attempt += 1
            if attempt > self.patience.retries:
                if answer is not None:
                    return answer
                raise EndpointError(
                    f"the model at {url} does not answer: {fault} "
                    f"({attempt} attempts). Start the server, or correct the address."
                )
            wait = self.patience.before(attempt, _wished(answer))
            self.sleep(wait)

    def _try(self, verb: str, url: str, body: Any) -> tuple[Any, str]:
        """Return the answer, or None and what went wrong."""
        httpx = _httpx()
        try:
            return self._client.request(verb, url, json=body), ""
        except httpx.TimeoutException:
            return None, f"no answer within {self.patience.timeout:g} s"
        except httpx.TransportError as error:
            return None, str(error) or type(error).__name__


def _httpx() -> Any:
    try:
        return importlib.import_module("httpx")
    except ImportError as error:
        raise MissingExtraError(
            "a model behind HTTP needs httpx: pip install 'bayescfx[models]'."
        ) from error


def _wished(answer: Any) -> float | None:
    """Return the seconds after which a busy server wants to be asked again."""
    try:
        return float(answer.headers["Retry-After"])
    except (AttributeError, KeyError, ValueError):
        return None


def _reason(answer: Any) -> str:
    """Return what a server says is wrong."""
    try:
        content = answer.json()
    except ValueError:
        return _shorten(answer.text)
    if isinstance(content, dict):
        for key in ("message", "error", "detail"):
            if isinstance(content.get(key), str):
                return _shorten(content[key])
    return _shorten(answer.text)


def _shorten(text: str) -> str:
    """Return both ends of a text: servers put the rows first and the reason last."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN // 2]} … {line[-_SHOWN // 2 :]}"
