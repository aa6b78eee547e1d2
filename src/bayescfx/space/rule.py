"""Rules: their shared behaviour, most of it with defaults."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.data import Feature
from bayescfx.data.tables import Rows
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.space.axis import Axis

if TYPE_CHECKING:
    from bayescfx.space.region import Region


class Words(NamedTuple):
    """A rule in words."""

    label: str  # its name in messages
    line: str  # in ``print(space)``; empty if the lines of single features show it
    limit: str  # as a binding constraint; empty if it can't be left out


class Rule:
    """A constraint on every counterfactual. A new rule is a frozen dataclass derived from this.

    It has a label, or words of its own; everything else has a default. Its verb is a function of a
    space that returns ``space.with_rules(rule)``.

    Attributes
    ----------
    kinds : dict of str to class
        Every rule by the name of its class.
    rank : int
        Rules of low rank are tested first; they are cheap.
    opaque : bool
        It is a function of the user that can't be analysed.
    written : bool
        JSON can hold it.
    label : str
        Its name in messages.
    most_changes : int or None
        The l0 bound, if it is one.
    block : tuple of names
        Features that it moves together.
    derives : name or None
        The column that it recomputes.
    """

    kinds: ClassVar[dict[str, type[Rule]]] = {}
    rank: ClassVar[int] = 3
    opaque: ClassVar[bool] = False
    written: ClassVar[bool] = True

    label: str
    most_changes: int | None = None
    block: tuple[Hashable, ...] = ()
    derives: Hashable | None = None

    def __init_subclass__(cls) -> None:
        """Register the rule by the name of its class, for files."""
        Rule.kinds[cls.__name__] = cls

    @property
    def words(self) -> Words:
        """The rule in words."""
        return Words(self.label, f"rule: {self.label}", f"rule '{self.label}'")

    def describe_feature(self, name: Hashable, feature: Feature) -> str:
        """Return how it restricts one feature alone, for the feature's line in print(space)."""
        return ""

    def narrow(self, axes: list[Axis], places: Mapping[Hashable, int], most: int | None) -> None:
        """Remove codes that can't be allowed from the axes, in place; `most` is the l0 bound."""
        return

    def for_query(self, region: Region) -> Rule | None:
        """Return the rule for one query; None if axes and l0 bound already imply it."""
        return self

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows of codes ``(n, d)`` keep the rule, shape (n,)."""
        return np.ones(len(X), dtype=np.bool_)

    def halfspaces(self, region: Region) -> list[tuple[Array, float]]:
        """Return its linear parts over codes, as pairs (a, b) with ``a @ x <= b``."""
        return []

    def curved(self, region: Region) -> bool:
        """Return whether it restricts more than its half-spaces."""
        return True

    def recompute(self, region: Region, X: Array, rows: Rows) -> None:
        """Recompute the column it `derives`, in codes ``(n, d)`` and in the user's rows."""
        raise NotImplementedError  # a rule with `derives` implements it

    def mismatch(self, region: Region) -> str:
        """Return how the column it `derives` differs for the query, in words; or nothing."""
        return ""

    def to_plain(self) -> dict[str, Plain]:
        """Return the rule in JSON's own types."""
        names = [f.name for f in fields(self)]  # type: ignore[arg-type]  # a dataclass
        values = {name: to_plain(getattr(self, name)) for name in names}
        return {"rule": type(self).__name__, **values}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], features: Mapping[Hashable, Feature]) -> Rule:
        """Return the rule that :meth:`to_plain` wrote about these features."""
        return cls(**{key: from_plain(value) for key, value in plain.items() if key != "rule"})
