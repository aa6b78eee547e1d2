"""The arguments of one call, checked before the model is asked anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bayescfx.checks import check, check_whole, is_number, shown
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import SettingsError, SpaceError, optional, suggest
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.models.model import Model
from bayescfx.search.methods import METHODS, Auto
from bayescfx.search.question import Search
from bayescfx.search.sweep import Sweep
from bayescfx.search.turns import Listener
from bayescfx.space.space import Space

Seed: TypeAlias = int | np.random.Generator | None
#: By position of the query: a target and a random state.
Wishes: TypeAlias = dict[int, tuple[object, np.random.Generator]]


@dataclass(frozen=True, eq=False)
class CallSettings:
    """What all questions of one call have in common, as in `explain`."""

    space: Space
    method: str | Search = "auto"
    budget: int | None = None
    n: int = 1
    tolerance: float = 0.05
    timeout: float | None = None
    evaluations: Evaluations | None = None
    rng: Seed = None
    on_step: Listener | None = None
    on_fault: OnFault = "raise"
    progress: bool = False
    run: str | None = None
    n_jobs: int | None = None
    many: bool = True  # errors say which query, and one that has what is wanted is no error
    parent: np.random.Generator = field(init=False)  # of a generator for each query
    search: Search = field(init=False)
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        given: Any = self
        if not isinstance(given.space, Space):
            raise SpaceError(
                f"`space` must be a Space; got {type(self.space).__name__}.",
                parameter="space",
                advice="Use Space.from_data(X).",
            )
        if given.budget is not None:
            check_whole("budget", given.budget, 1)
        check_whole("n", given.n, 1)
        jobs = given.n_jobs
        good = jobs is None or (is_number(jobs) and jobs == int(jobs) != 0)
        check(good, "n_jobs", "None or a whole number other than 0", jobs)
        share, seconds = given.tolerance, given.timeout
        advice = "It is the share of the wanted change that may be missed."
        good = is_number(share, 0) and share < 1
        check(good, "tolerance", "at least 0 and less than 1", share, advice=advice)
        endless = isinstance(seconds, float) and seconds == math.inf
        good = seconds is None or endless or is_number(seconds, 0)
        check(good, "timeout", "None or seconds >= 0", seconds)
        store, hear, fault = given.evaluations, given.on_step, given.on_fault
        good = isinstance(store, Evaluations | None)
        advice = "For a file use Evaluations.open(path)."
        check(good, "evaluations", "None or Evaluations", store, advice=advice)
        check(hear is None or callable(hear), "on_step", "None or a function of a Step", hear)
        good = isinstance(fault, str) and fault in ("raise", "skip")
        check(good, "on_fault", "'raise' or 'skip'", fault)
        check(isinstance(given.progress, bool), "progress", "True or False", given.progress)
        check(isinstance(given.run, str | None), "run", "None or a name", given.run)
        try:
            vars(self)["parent"] = np.random.default_rng(given.rng)
        except (TypeError, ValueError) as error:
            must = "None, a whole number of at least 0 or a numpy Generator"
            raise SettingsError(
                f"`rng` must be {must}; got {shown(given.rng)}.", parameter="rng"
            ) from error
        if self.progress:
            optional("tqdm", "`progress` needs", "progress")
        for library in ("joblib", "cloudpickle") if jobs not in (None, 1) else ():
            optional(library, "`n_jobs` needs", "parallel")
        deadline = NEVER if self.timeout is None else Deadline.after(self.timeout)
        vars(self).update(search=_search(self.method), deadline=deadline)
        if getattr(self.search, "continuous", False):  # moves as finely as it likes
            vars(self)["space"] = self.space.steps(dict.fromkeys(self.space.graded))
        for name in ("budget", "n", "n_jobs"):
            vars(self)[name] = None if getattr(self, name) is None else int(getattr(self, name))
        vars(self)["tolerance"] = float(self.tolerance)

    def rows(self, model: Model) -> int:
        """Return how many rows each question may send to the model."""
        if self.budget is not None:
            return self.budget
        return 2000 if model.local and isinstance(self.search, Auto | Sweep) else 100

    def wishes(self, first: int, targets: Sequence[object]) -> Wishes:
        """Return targets of queries from position `first` on, each with a generator of its own.

        It is a child of the one given: answers don't depend on how queries are grouped.
        """
        parent = self.parent
        if isinstance(self.rng, int | np.integer):  # some may have been answered before
            seed = np.random.SeedSequence(int(self.rng), n_children_spawned=first)
            parent = np.random.default_rng(seed)
        try:
            children = parent.spawn(len(targets))
        except TypeError:  # a generator that was not made from a seed sequence
            children = [*map(np.random.default_rng, parent.integers(2**63, size=len(targets)))]
        return dict(enumerate(zip(targets, children, strict=True), first))


def _search(method: Any) -> Search:
    """Return the search that `method` names or is."""
    words, hint = "a name or a configured Search such as BayesCFX()", ""
    way = getattr(method, "rounds", None) or getattr(method, "run", None)
    if isinstance(method, str):
        if method in METHODS:
            return METHODS[method]()
        words = f"one of {', '.join(map(repr, METHODS))}"
        hint = suggest(method, METHODS)
    elif callable(way) and not isinstance(method, type):
        search: Search = method
        return search
    raise SettingsError(f"`method` must be {words}; got {shown(method)}.{hint}", parameter="method")
