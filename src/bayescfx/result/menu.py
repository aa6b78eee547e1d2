"""Menus: which sets of features can reach a target, and at which cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pandas as pd

from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.result.wording import aligned, count, moves, number

MenuStatus: TypeAlias = Literal["reaches", "cannot", "unknown"]

#: Heads of the columns of :meth:`Menu.lines`.
MENU_HEAD = ("features", "cost", "changes")
#: Sets of features that a text lists at most.
_MOST_LISTED = 8


@dataclass(frozen=True)
class MenuItem:
    """What a set of features can do, all other features as in the query.

    Parameters
    ----------
    features : tuple of names
        The features that may change.
    status : {"reaches", "cannot", "unknown"}
        Whether changes of these features reach the target. ``"cannot"`` is proven; ``"unknown"``
        means that the work was cut short.
    cost : float
        The lowest cost that was found, of a row that the model has scored; infinite without any.
    is_proven : bool
        Whether no lower cost is possible, or the target is out of reach for these features.
    changes : dict
        ``{name: (before, after)}`` of the cheapest row; empty without any. It may change only
        some of the features.
    output : float, optional
        The model's output for it.
    """

    features: tuple[Any, ...]
    status: MenuStatus
    cost: float = math.inf
    is_proven: bool = False
    changes: Mapping[Any, tuple[Any, Any]] = field(default_factory=dict)
    output: float | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the cheapest row changes all features of the set, so that no part is as good."""
        return len(self.changes) == len(self.features)

    @property
    def name(self) -> str:
        """The features in words: ``bmi alone``, ``bmi and bp``."""
        texts = [str(name) for name in self.features]
        return f"{texts[0]} alone" if len(texts) == 1 else " and ".join(texts)

    def to_dict(self) -> dict[str, Plain]:
        """Return the item in JSON's own types."""
        return {
            "features": to_plain(list(self.features)),
            "status": self.status,
            "cost": to_plain(self.cost),
            "is_proven": self.is_proven,
            "changes": to_plain(list(self.changes.items())),
            "output": self.output,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MenuItem:
        """Return the item that :meth:`to_dict` wrote."""
        values = {name: from_plain(value) for name, value in plain.items()}
        changes = {name: tuple(pair) for name, pair in values["changes"]}
        return cls(**{**values, "features": tuple(values["features"]), "changes": changes})


@dataclass(frozen=True)
class Menu:
    """Which small sets of features can reach a target, each searched exactly.

    Parameters
    ----------
    items : tuple of MenuItem
        All sets: single features first, then pairs.

    Examples
    --------
    >>> items = [MenuItem(("a",), "reaches", 1.5, True, {"a": (1, 3)}, 7.0)]
    >>> print(Menu((*items, MenuItem(("b",), "cannot", is_proven=True))))
    Reaches the target:
      a alone  cost 1.5  a 1 → 3
    Cannot reach it alone (proven): b.
    """

    items: tuple[MenuItem, ...]

    def __iter__(self) -> Iterator[MenuItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def choices(self) -> list[MenuItem]:
        """The sets that reach the target and of which no part is as good, the cheapest first."""
        found = [item for item in self.items if item.is_needed]
        return sorted(found, key=lambda item: item.cost)

    def with_status(self, status: MenuStatus) -> list[MenuItem]:
        """Return the sets with a status."""
        return [item for item in self.items if item.status == status]

    def to_frame(self) -> pd.DataFrame:
        """Return one line per set, the cheapest first: features, status, cost, changes, output."""
        lines = []
        for item in self.items:
            figures = [item.name, item.status, item.cost, item.is_proven]
            lines.append([*figures, moves(item.changes), item.output])
        names = ["features", "status", "cost", "is_proven", "changes", "output"]
        frame = pd.DataFrame(lines, columns=pd.Index(names))
        return frame.sort_values("cost", kind="stable", ignore_index=True)

    def lines(self) -> list[list[str]]:
        """Return the cheapest choices as texts: features, cost, changes."""
        return [_choice_line(item) for item in self.choices[:_MOST_LISTED]]

    def notes(self) -> list[str]:
        """Return what the choices do not show, in sentences."""
        hidden = self.choices[_MOST_LISTED:]
        excluded = self.with_status("cannot")
        alone = [str(item.features[0]) for item in excluded if len(item.features) == 1]
        n_larger = len(excluded) - len(alone)
        unknown = [item.name for item in self.with_status("unknown")]
        notes = {
            f"{count(len(hidden), 'more set')} of features at a higher cost.": hidden,
            f"Cannot reach it alone (proven): {', '.join(alone)}.": alone,
            f"Cannot reach it (proven): {count(n_larger, 'larger set')}.": n_larger,
            f"Not known, the work was cut short: {', '.join(unknown)}.": unknown,
        }
        return [text for text, items in notes.items() if items]

    def __repr__(self) -> str:
        texts = [[name, f"cost {cost}", changes] for name, cost, changes in self.lines()]
        lines = [f"  {line}" for line in aligned(texts, "<<<")]
        head = "Reaches the target:" if lines else "None of these sets reaches the target."
        if not lines and self.with_status("unknown"):
            head = "None of these sets is known to reach the target."
        return "\n".join([head, *lines, *self.notes()])

    def to_dict(self) -> dict[str, Plain]:
        """Return the menu in JSON's own types."""
        return {"items": [item.to_dict() for item in self.items]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Menu:
        """Return the menu that :meth:`to_dict` wrote."""
        return cls(tuple(MenuItem.from_dict(item) for item in plain["items"]))


def _choice_line(item: MenuItem) -> list[str]:
    """Return features, cost and changes of a set that reaches the target."""
    mark = "" if item.is_proven else " (not proven)"
    return [item.name, f"{number(item.cost, 3)}{mark}", moves(item.changes)]
