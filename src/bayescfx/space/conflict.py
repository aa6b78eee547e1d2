"""Constraints that conflict: a smallest set that leaves no row for a query.

The set is found by leaving constraints out, half of them at a time (QuickXplain). Each time a row
is searched for. Small regions are enumerated and linear rules are checked by a mixed-integer
program, which are proofs; else rows are drawn and repaired, and that none was found is not a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.constraint import Constraint, constraints, without
from bayescfx.space.region import Region

#: What is known of a region: it has a row with a change, none was found, or there is none.
Existence: TypeAlias = Literal["found", "not found", "impossible"]

#: Returns some rows ``(n, d)`` of a region that may be allowed.
Draw: TypeAlias = Callable[[Region], Array]

#: Limits of work: seconds for a conflict and for one program, and rows of a region that are listed.
SECONDS = 1.5
PROGRAM_SECONDS = 0.3
MOST_LISTED = 4096
#: Results of HiGHS.
_INFEASIBLE = 2


@dataclass(frozen=True)
class Conflict:
    """A smallest set of constraints that leaves no row.

    Parameters
    ----------
    constraints : tuple of Constraint
        The constraints.
    is_proven : bool
        Whether it is proven that no row satisfies all of them; else none was found.
    """

    constraints: tuple[Constraint, ...]
    is_proven: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The constraints in words."""
        return tuple(each.full_words for each in self.constraints)

    @property
    def has_rules(self) -> bool:
        """Whether any of them is more than a limit of one feature."""
        return any(len(each.features) != 1 for each in self.constraints)


def find_conflict(region: Region, draw_rows: Draw) -> Conflict | None:
    """Return constraints that conflict; None if a row exists, or none is known without them."""
    search = _Search(region, constraints(region), draw_rows)
    if not search.is_empty(search.every) or search.is_empty([]):
        return None
    # Bounds and rules are named rather than limits of single features.
    order = sorted(search.every, key=lambda each: len(each.features) == 1)
    kept = search.smallest([], [], order)
    listed = [each for each in search.every if each in kept]
    is_proven = search.existence(listed) == "impossible"
    return Conflict(tuple(listed), is_proven)


@dataclass(eq=False)
class _Search:
    """The search for a smallest set of constraints without a row."""

    region: Region
    every: list[Constraint]
    draw_rows: Draw
    _known: dict[frozenset[int], Existence] = field(default_factory=dict)
    _end: float = field(default_factory=lambda: monotonic() + SECONDS)

    def smallest(
        self, kept: Sequence[Constraint], added: Sequence[Constraint], open_: Sequence[Constraint]
    ) -> list[Constraint]:
        """Return a smallest part of `open_` that, with those `kept`, leaves no row.

        `added` are those of the kept ones that were added last.
        """
        if added and self.is_empty(kept):
            return []
        if len(open_) == 1:
            return list(open_)
        half = len(open_) // 2
        first = open_[:half]
        second = open_[half:]
        of_second = self.smallest([*kept, *first], first, second)
        of_first = self.smallest([*kept, *of_second], of_second, first)
        return of_first + of_second

    def is_empty(self, kept: Sequence[Constraint]) -> bool:
        """Return whether no row is known with some constraints and no others.

        Without time, constraints are kept: then the set is no smallest one.
        """
        if monotonic() > self._end and len(kept) < len(self.every):
            return False
        return self.existence(kept) != "found"

    def existence(self, kept: Sequence[Constraint]) -> Existence:
        """Return what is known of the rows with some constraints and no others."""
        key = frozenset(id(each) for each in kept)
        if key not in self._known:
            left_out = [each for each in self.every if id(each) not in key]
            self._known[key] = look_for_row(without(self.region, left_out), self.draw_rows)
        return self._known[key]


def look_for_row(region: Region, draw_rows: Draw) -> Existence:
    """Return whether a region has a row other than the query."""
    if not len(region.free):
        return "impossible"
    every = region.enumerate(MOST_LISTED)
    if every is not None:
        return "found" if region.changes(every).any() else "impossible"
    solution = solve_linear_rules(region)
    if solution is None:
        return "impossible"
    rows = np.vstack([region.snap(solution), draw_rows(region)])
    is_found = (region.changes(rows).any(axis=1) & region.contains(rows)).any()
    return "found" if is_found else "not found"


def solve_linear_rules(region: Region) -> Array | None:
    """Return rows ``(0 or 1, d)`` that satisfy limits, l0 bound and linear rules.

    None if that is impossible. Other rules, and steps other than whole numbers, are left out.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    A, b = _usable_rules(region)
    n = len(region.free)
    at = region.free
    if not len(A):
        return np.empty((0, len(region.query)))
    query = region.query[at]
    low = region.low[at]
    high = region.high[at]
    # Columns: the free features, then whether each of them changes. A feature beyond its limits
    # may stay or move into them, so that its interval covers both.
    is_whole = (region.step[at] == 1.0) & (query == np.rint(query))
    rest = b - A @ np.nan_to_num(np.where(_mask(region), 0.0, region.query))
    up = np.hstack([np.eye(n), -np.diag(high - query)])
    down = np.hstack([-np.eye(n), -np.diag(query - low)])
    bound = n if region.max_changes is None else region.max_changes
    blocks = [np.hstack([A[:, at], np.zeros((len(A), n))]), up, down]
    matrix = np.vstack([*blocks, np.repeat([0.0, 1.0], n)])
    highest = np.concatenate([rest + 1e-9 * (1.0 + np.abs(rest)), query, -query, [bound]])
    for presolve in (True, False):  # each alone has called programs infeasible that are not
        result = milp(
            np.repeat([0.0, 1.0], n),
            integrality=np.concatenate([is_whole, np.ones(n)]).astype(np.intp),
            bounds=Bounds(np.append(low, np.zeros(n)), np.append(high, np.ones(n))),
            constraints=LinearConstraint(matrix, -np.inf, highest),
            options={"time_limit": PROGRAM_SECONDS, "presolve": presolve},
        )
        if result.status != _INFEASIBLE:
            break
    else:
        return None
    if result.x is None:
        return np.empty((0, len(region.query)))
    row = region.query[None].copy()
    row[:, at] = result.x[:n]
    return row


def _mask(region: Region) -> Mask:
    """Return which features are free."""
    is_free = np.zeros(len(region.query), dtype=np.bool_)
    is_free[region.free] = True
    return is_free


def _usable_rules(region: Region) -> tuple[Array, Array]:
    """Return the linear rules over features whose codes are known: neither derived nor missing."""
    is_unknown = region.recomputed | np.isnan(region.query)
    is_usable = ~(region.A[:, is_unknown] != 0.0).any(axis=1)
    return region.A[is_usable], region.b[is_usable]


def in_words(conflict: Conflict, n_tried: int) -> str:
    """Return the constraints that conflict in words, and what to do."""
    listed = _and(conflict.words)
    known = "" if conflict.is_proven else f" as far as {n_tried} tried rows show"
    if len(conflict.words) == 1:
        return (
            f"This constraint alone forbids every row within the ranges of the features{known}: "
            f"{listed}. Relax it."
        )
    return f"These constraints conflict{known}: {listed}. Relax one of them."


def _and(words: Sequence[str]) -> str:
    """Return texts as a list: ``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
