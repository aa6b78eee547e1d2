"""A binding constraint of an answer: what it is, and how it is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from bayescfx.checks import check
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import ArchiveError
from bayescfx.result.wording import moves, number

Evidence: TypeAlias = Literal["computed", "checked", "guess"]

_EVIDENCE = ("computed", "checked", "guess")
_FIELDS = ("words", "evidence", "cost", "output", "is_lowest")


@dataclass(frozen=True)
class BindingConstraint:
    """A constraint that keeps the target away, or makes it harder to reach.

    Parameters
    ----------
    words : str
        The constraint, as ``"'year' being fixed"``, ``"limit on 'bmi'"``,
        ``"at most 2 changes"`` or ``"rule 's3 <= s1'"``.
    evidence : {"computed", "checked", "guess"}
        ``"computed"`` exactly from a model that can be read, or ``"checked"``: the model scored a
        row that only this constraint forbids. A ``"guess"`` is an estimate by the surrogate.
    features : tuple of names
        The features that it limits; empty for other rules and for guesses.
    changes : dict of name to (before, after)
        The changes of the row that shows it; empty for a guess.
    output : float, optional
        The model's output for this row.
    cost : float, optional
        The cost of this row if it reaches the target; else None.
    is_lowest : bool
        Whether no row without the constraint costs less. If the computation was cut short, or a
        row was only checked, some may.

    Examples
    --------
    >>> print(BindingConstraint("at most 1 change", "guess"))
    at most 1 change (a guess)
    >>> print(BindingConstraint("'year' being fixed", "checked", changes={"year": (1999, 2004)},
    ...     output=215.3, cost=1.5))
    'year' being fixed (checked: year 1999 → 2004 gives 215.3)
    """

    words: str
    evidence: Evidence
    features: tuple[Hashable, ...] = ()
    changes: Mapping[Hashable, tuple[Any, Any]] = field(default_factory=dict)
    output: float | None = None
    cost: float | None = None
    is_lowest: bool = False

    @property
    def makes_reachable(self) -> bool:
        """Whether the target is known to be reached without this constraint."""
        return self.cost is not None

    def shown_by(self, write: Callable[[float], str] = number) -> str:
        """Return what shows it: ``year 1999 → 2004 gives 215.3``, or the cost if it was computed.

        `write` writes the output.
        """
        if self.evidence == "computed" and self.cost is not None:
            how_much = {True: "cost", False: "cost at most"}[self.is_lowest]
            removed = {True: "them", False: "it"}[self.words.startswith("both ")]
            return f"{how_much} {number(self.cost, 3)} without {removed}"
        if self.output is None:
            return ""
        return f"{moves(self.changes)} gives {write(self.output)}"

    def __str__(self) -> str:
        if self.evidence == "guess":
            return f"{self.words} (a guess)"
        how = "checked: " if self.evidence == "checked" else ""
        return f"{self.words} ({how}{self.shown_by()})"

    def to_dict(self) -> dict[str, Plain]:
        """Return it in JSON's own types."""
        changes = [[name, *pair] for name, pair in self.changes.items()]
        return {
            **{name: to_plain(getattr(self, name)) for name in _FIELDS},
            "features": to_plain(list(self.features)),
            "changes": to_plain(changes),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> BindingConstraint:
        """Return the constraint that :meth:`to_dict` wrote."""
        evidence = plain["evidence"]
        is_known = evidence in _EVIDENCE
        check(is_known, "evidence", f"one of {', '.join(_EVIDENCE)}", evidence, ArchiveError)
        words = plain["words"]
        check(isinstance(words, str), "words", "a text", words, ArchiveError)
        changes = {name: (before, after) for name, before, after in from_plain(plain["changes"])}
        return cls(
            words,
            evidence,
            tuple(from_plain(plain["features"])),
            changes,
            from_plain(plain["output"]),
            from_plain(plain["cost"]),
            bool(from_plain(plain["is_lowest"])),
        )
