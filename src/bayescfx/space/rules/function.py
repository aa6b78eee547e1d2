"""A rule given as a function of the user's own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError
from bayescfx.space.rule import Rule
from bayescfx.space.rules.text import TextRule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True)
class FunctionRule(Rule):
    """A function of raw rows that says which of them are allowed."""

    function: Callable[[Any], Any] = field(repr=False)
    title: str

    rank = 4
    opaque = True
    written = False

    @property
    def label(self) -> str:
        """What messages call the rule."""
        return self.title

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows the function allows."""
        return self.allows(region.rows(X))

    def allows(self, rows: Any) -> Mask:
        """Return which raw rows the function allows; it must return one boolean per row."""
        found = np.asarray(called(self.function, rows, f"rule {self.title!r}"))
        if found.shape == (len(rows),) and found.dtype == object:
            return np.array([value is True or value is np.True_ for value in found])
        if found.shape != (len(rows),) or found.dtype != np.bool_:
            raise SpaceError(
                f"rule {self.title!r} must return one boolean per row; got shape {found.shape} "
                f"and dtype {found.dtype} for {len(rows)} rows. Compare whole columns."
            )
        return found


def called(function: Callable[[Any], Any], rows: Any, what: str) -> Any:
    """Return what a user's function says of rows; what it raises passes with a note."""
    try:
        return function(rows)
    except Exception as error:
        error.add_note(f"in {what}, for {len(rows)} rows")
        raise


def require(space: Space, rule: str | Callable[[Any], Any], label: str | None = None) -> Space:
    """Return the space with a rule every counterfactual must satisfy.

    Parameters
    ----------
    rule : str or callable
        Text such as ``"a + 2*b <= 10"``, or a function of raw rows that returns one boolean
        per row.
    label : str, optional
        What to call the rule in messages.
    """
    if isinstance(rule, str):
        return space.adding(TextRule.parse(rule, space.features, label))
    if not callable(rule):
        raise SpaceError(f"`rule` must be text or a function of rows; got {rule!r}.")
    return space.adding(FunctionRule(rule, label or str(getattr(rule, "__name__", repr(rule)))))
