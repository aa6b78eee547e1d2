"""What all questions of one call have in common, checked and converted once."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bayescfx.deadline import Deadline
from bayescfx.errors import SpaceError, suggest
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.evaluator import OnFault
from bayescfx.model.model import Model, as_model
from bayescfx.search.methods import METHODS
from bayescfx.search.question import Search
from bayescfx.search.turns import Halt, Listener
from bayescfx.space.space import Space

Seed: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True)
class Task:
    """The arguments of one call; made by :meth:`of`.

    Parameters
    ----------
    model : Model
        Rows to numbers.
    space : Space
        What may change.
    search : Search
        The method, and `name`, what the user calls it.
    budget, n, tolerance, on_fault
        As in :func:`~bayescfx.explainer.front.explain`.
    store : Evaluations
        What is known of the model.
    deadline : Deadline
        When all searches end.
    listener : callable, optional
        Hears the steps.
    seed : int, optional
        The seed, if one was given.
    many : bool
        Several queries are asked about: one that has what is wanted already is no error.
    halt : Halt
        Ends all searches of this call.
    """

    model: Model
    space: Space
    search: Search
    name: str
    budget: int
    n: int
    tolerance: float
    store: Evaluations
    deadline: Deadline
    listener: Listener | None
    on_fault: OnFault
    seed: int | None
    many: bool
    halt: Halt = field(default_factory=Halt)

    @classmethod
    def of(
        cls,
        model: object,
        space: Space,
        method: str | Search,
        *,
        budget: int,
        n: int,
        tolerance: float,
        timeout: float | None,
        evaluations: Evaluations | None,
        rng: Seed,
        on_step: Listener | None,
        on_fault: OnFault,
        many: bool,
    ) -> Task:
        """Check what was given, before the model is asked anything."""
        given: Any = space
        if not isinstance(given, Space):
            raise SpaceError(
                f"`space` must be a Space; got {type(space).__name__}. Use Space.from_data(X)."
            )
        check_count("budget", budget)
        check_count("n", n)
        _check_tolerance(tolerance)
        _check_timeout(timeout)
        _check_store(evaluations)
        if on_step is not None and not callable(on_step):
            raise ValueError(f"`on_step` must be None or a function of a Step; got {on_step!r}.")
        if on_fault not in ("raise", "skip"):
            raise ValueError(f"`on_fault` must be 'raise' or 'skip'; got {on_fault!r}.")
        search = _search(method)
        return cls(
            model=as_model(model, space.schema),
            space=space,
            search=search,
            name=method if isinstance(method, str) else type(search).__name__,
            budget=int(budget),
            n=int(n),
            tolerance=float(tolerance),
            store=Evaluations() if evaluations is None else evaluations,
            deadline=Deadline.after(timeout),
            listener=on_step,
            on_fault=on_fault,
            seed=int(rng) if isinstance(rng, int | np.integer) else None,
            many=many,
        )


def check_count(name: str, value: object) -> None:
    """Raise unless an argument is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")


def spawn(rng: Seed, n: int) -> list[np.random.Generator]:
    """Return one child generator per query: answers don't depend on how queries are grouped."""
    try:
        parent = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`rng` must be None, a whole number of at least 0 or a numpy Generator; got {rng!r}."
        ) from error
    try:
        return list(parent.spawn(n))
    except TypeError:  # a generator that was not made from a seed sequence
        return [np.random.default_rng(seed) for seed in parent.integers(2**63, size=n)]


def _check_tolerance(value: object) -> None:
    if not isinstance(value, numbers.Real) or not 0.0 <= float(value) < 1.0:
        raise ValueError(
            f"`tolerance` must be at least 0 and less than 1; got {value!r}. It is the share of "
            "the wanted change that may be missed."
        )


def _check_timeout(value: object) -> None:
    seconds = float(value) if isinstance(value, numbers.Real) else -1.0
    if value is not None and not seconds >= 0.0:
        raise ValueError(f"`timeout` must be None or seconds >= 0; got {value!r}.")


def _check_store(value: object) -> None:
    if value is not None and not isinstance(value, Evaluations):
        raise ValueError(
            f"`evaluations` must be None or Evaluations; got {type(value).__name__}. For a file "
            "use Evaluations.open(path)."
        )


def _search(method: str | Search) -> Search:
    """Return the search that `method` names or is."""
    if isinstance(method, str):
        if method in METHODS:
            return METHODS[method]()
        names = ", ".join(map(repr, METHODS))
        raise ValueError(
            f"`method` must be one of {names} or a Search; got {method!r}."
            + suggest(method, METHODS)
        )
    ways = [getattr(method, name, None) for name in ("rounds", "run")]
    if isinstance(method, type) or not any(map(callable, ways)):
        raise ValueError(
            f"`method` must be a name or a configured Search such as BayesCFX(); got {method!r}."
        )
    return method
