"""The arguments of one call, checked before the model is asked anything."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bayescfx.deadline import Deadline
from bayescfx.errors import SettingsError, SpaceError, suggest
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.search.methods import METHODS
from bayescfx.search.question import Search
from bayescfx.search.turns import Listener
from bayescfx.space.space import Space

Seed: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """What all questions of one call have in common, as in `explain`."""

    space: Space
    method: str | Search
    budget: int
    n: int
    tolerance: float
    timeout: float | None
    evaluations: Evaluations | None
    rng: Seed
    on_step: Listener | None
    on_fault: OnFault
    progress: bool
    n_jobs: int = 1
    many: bool = True  # errors say which query, and one that has what is wanted is no error
    search: Search = field(init=False)
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        given: Any = self
        if not isinstance(given.space, Space):
            raise SpaceError(
                f"`space` must be a Space; got {type(self.space).__name__}. Use Space.from_data(X)."
            )
        for name in ("budget", "n", "n_jobs"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise SettingsError(
                    f"`{name}` must be a whole number of at least 1; got {value!r}."
                )
            object.__setattr__(self, name, int(value))
        if not isinstance(given.tolerance, numbers.Real) or not 0.0 <= self.tolerance < 1.0:
            raise SettingsError(
                f"`tolerance` must be at least 0 and less than 1; got {self.tolerance!r}. It is "
                "the share of the wanted change that may be missed."
            )
        object.__setattr__(self, "tolerance", float(self.tolerance))
        seconds = 0.0 if given.timeout is None else given.timeout
        if not isinstance(seconds, numbers.Real) or not seconds >= 0.0:  # type: ignore[operator]
            raise SettingsError(f"`timeout` must be None or seconds >= 0; got {self.timeout!r}.")
        if not isinstance(given.evaluations, Evaluations | None):
            raise SettingsError(
                f"`evaluations` must be None or Evaluations; got "
                f"{type(self.evaluations).__name__}. For a file use Evaluations.open(path)."
            )
        if given.on_step is not None and not callable(given.on_step):
            raise SettingsError(
                f"`on_step` must be None or a function of a Step; got {self.on_step!r}."
            )
        if self.on_fault not in ("raise", "skip"):
            raise SettingsError(f"`on_fault` must be 'raise' or 'skip'; got {self.on_fault!r}.")
        object.__setattr__(self, "search", _search(self.method))
        object.__setattr__(self, "deadline", Deadline.after(self.timeout))

    def generators(self, n: int) -> list[np.random.Generator]:
        """Return one child generator per query: answers don't depend on how they are grouped."""
        try:
            parent = np.random.default_rng(self.rng)
        except (TypeError, ValueError) as error:
            raise SettingsError(
                "`rng` must be None, a whole number of at least 0 or a numpy Generator; got "
                f"{self.rng!r}."
            ) from error
        try:
            return list(parent.spawn(n))
        except TypeError:  # a generator that was not made from a seed sequence
            return [np.random.default_rng(seed) for seed in parent.integers(2**63, size=n)]


def _search(method: Any) -> Search:
    """Return the search that `method` names or is."""
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]()
    if isinstance(method, str):
        raise SettingsError(
            f"`method` must be one of {', '.join(map(repr, METHODS))} or a Search; got {method!r}."
            + suggest(method, METHODS)
        )
    if isinstance(method, type) or not callable(getattr(method, "run", None)):
        raise SettingsError(
            f"`method` must be a name or a configured Search such as BayesCFX(); got {method!r}."
        )
    search: Search = method
    return search
