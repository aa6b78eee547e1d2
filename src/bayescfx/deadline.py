"""Wall-clock limits that also interrupt fitting, proposing and waiting for a model."""

from __future__ import annotations

import math
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from bayescfx.errors import OutOfTime

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Deadline:
    """A moment of the monotonic clock after which work must stop."""

    at: float = math.inf  # on the clock of time.monotonic

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline `seconds` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until the moment; 0 once it has passed."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the moment has passed."""
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise :class:`~bayescfx.errors.OutOfTime` once the moment has passed."""
        if self.passed:
            raise OutOfTime("the deadline has passed")

    def __reduce__(self) -> tuple[Callable[..., Deadline], tuple[float, float, str]]:
        return _unpickle_deadline, (self.at, self.at - time.monotonic(), machine())


def _unpickle_deadline(at: float, seconds_left: float, sender: str) -> Deadline:
    """Return an unpickled deadline; another machine has another clock, so seconds left count."""
    if sender == machine():
        return Deadline(at)
    return Deadline.after(seconds_left)


def machine() -> str:
    """Return a name that is unique to this machine."""
    return f"{platform.node()} {uuid.getnode()}"


def in_time(function: Callable[[], T], seconds: float) -> T:
    """Return what a function returns, or raise a `TimeoutError` after some seconds.

    The function runs in a thread, which continues after the time-out.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result.result(seconds if math.isfinite(seconds) else None)


NEVER = Deadline()
#: When the work that is being done must stop: searches, model calls, users' rules, waiting for
#: locks. This is the only place where it is kept.
time_limit: ContextVar[Deadline] = ContextVar("time_limit", default=NEVER)


@contextmanager
def limited_to(deadline: Deadline, least: float = 0.0) -> Iterator[None]:
    """Limit work in this block to the deadline, or to `least` seconds if that is later."""
    token = time_limit.set(Deadline(max(deadline.at, time.monotonic() + least)))
    try:
        yield
    finally:
        time_limit.reset(token)
