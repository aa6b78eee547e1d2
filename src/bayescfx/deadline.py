"""Wall-clock limits that reach into fitting and proposing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bayescfx.errors import OutOfTime


@dataclass(frozen=True, slots=True, eq=False)
class Deadline:
    """A moment of the monotonic clock after which work must stop."""

    at: float = float("inf")  # on the clock of time.monotonic

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline `seconds` from now; ``None`` means never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        """Whether the moment has passed."""
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise :class:`~bayescfx.errors.OutOfTime` once the moment has passed."""
        if self.passed:
            raise OutOfTime("the deadline has passed")


NEVER = Deadline()
