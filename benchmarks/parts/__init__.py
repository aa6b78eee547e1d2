"""The parts of the efficiency benchmark; each has ``run(settings)`` and ``show(figures)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """Settings of a run; None means the setting that the aims of the part are defined for."""

    queries: int | None = None
    models: tuple[str, ...] | None = None
    budgets: tuple[int, ...] | None = None
    data: tuple[str, ...] = ("diabetes",)
    batch: int = 64
    method: str | None = None
    seed: int = 0
    peers: Literal["auto", "run", "cached", "none"] = "auto"

    @property
    def quick(self) -> bool:
        """Return whether the settings differ from those of the aims."""
        return self != Settings(peers=self.peers)
