"""Wall-clock limits that reach into fitting and proposing."""

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

    at: float = float("inf")  # on the clock of time.monotonic

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
        return _arrived, (self.at, self.at - time.monotonic(), machine())


def _arrived(at: float, left: float, where: str) -> Deadline:
    """Return a deadline that has travelled: other machines have other clocks."""
    return Deadline(at if where == machine() else time.monotonic() + left)


def machine() -> str:
    """Return what tells this machine from others."""
    return f"{platform.node()} {uuid.getnode()}"


def in_time(ask: Callable[[], T], seconds: float) -> T:
    """Return what a function returns or raises; if it is late, a `TimeoutError` and it goes on."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer.result(seconds if math.isfinite(seconds) else None)


NEVER = Deadline()
#: Until when the model that is asked now may be waited for; for models that can give up.
waiting: ContextVar[Deadline] = ContextVar("waiting", default=NEVER)


@contextmanager
def waiting_until(deadline: Deadline, least: float = 0.0) -> Iterator[None]:
    """Let the model be waited for until then, or for the `least` seconds, and no longer."""
    before = waiting.set(Deadline(max(deadline.at, time.monotonic() + least)))
    try:
        yield
    finally:
        waiting.reset(before)
