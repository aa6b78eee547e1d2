"""Good multipliers for the boxes of a linear certificate, by linear programs.

Each feature of a box is a mixture of a few of its codes. The dual values of this program are the
multipliers; its mixtures say where to split the box. The check trusts neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.search.exact.certificate_sums import CodeTerms, LinearBounds, Multipliers, SumBox

#: Multipliers below this size are 0 (numerical).
_NOTHING = 1e-11
#: Constraints before the linear rules: two ends of the target, and the bound on changes.
_N_ENDS = 3
#: Codes of a line that matter most: its ends, the query, and the query as a change.
_N_CORNERS = 4
#: Share of its range by which the gain of a feature on a line may differ from a line.
_STRAIGHT = 1e-7


@dataclass(frozen=True, eq=False)
class Mixture:
    """The solution of a program.

    Parameters
    ----------
    multipliers : Multipliers
        Its dual values.
    weights : array of shape (n,)
        The share of each code.
    terms : CodeTerms
        What the codes add; of all features together.
    feature : array of int of shape (n,)
        The feature of each code.
    """

    multipliers: Multipliers
    weights: Array
    terms: CodeTerms
    feature: Indices


@dataclass(eq=False)
class _Rows:
    """Rows ``a @ x <= b`` or ``a @ x == b`` of a program, each with its scale."""

    n: int
    rows: list[Array] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)

    def add(self, row: Array, end: float) -> int:
        """Add a row divided by its largest coefficient; return its place."""
        scale = float(np.abs(row).max(initial=0.0)) or 1.0
        self.rows.append(np.pad(row, (0, self.n - len(row))) / scale)
        self.ends.append(end / scale)
        self.scales.append(scale)
        return len(self.rows) - 1

    def matrix(self) -> Array:
        """Return the coefficients of all rows."""
        return np.array(self.rows).reshape(-1, self.n)


@dataclass(eq=False)
class BoxPrograms:
    """Programs over the boxes of one question.

    Parameters
    ----------
    bounds : LinearBounds
        The gains of the model.
    n_programs : int
        The number of programs solved.
    """

    bounds: LinearBounds
    n_programs: int = 0

    def solve(self, box: SumBox) -> Mixture | None:
        """Return multipliers for a shrunken box with one target; None if the solver fails."""
        found = None
        if np.isfinite(self.bounds.question.limit):
            found = self._solve(box, has_cost=True)
        return self._solve(box, has_cost=False) if found is None else found

    def _codes(self, box: SumBox) -> tuple[CodeTerms, Indices]:
        """Return the codes that are mixed, of all features."""
        found = []
        for j in self.bounds.features:
            terms = self.bounds.terms(box.codes, j)
            found.append(_corners(terms) if self.bounds.question.allowed[j].is_line else terms)
        sizes = [len(each.code) for each in found]
        none = np.empty(0)
        joined = CodeTerms(
            np.concatenate([none, *(each.code for each in found)]),
            np.concatenate([none, *(each.cost for each in found)]),
            np.concatenate([none, *(each.changed for each in found)]),
            np.concatenate([none, *(each.gain for each in found)]),
        )
        return joined, np.repeat(self.bounds.features, sizes).astype(np.intp)

    def _solve(self, box: SumBox, *, has_cost: bool) -> Mixture | None:
        """Solve one program; without cost it minimises how far the constraints are broken."""
        from scipy.optimize import linprog

        terms, feature = self._codes(box)
        n = len(feature)
        upper = _Rows(n)
        self._add_constraints(upper, box, terms, feature)
        n_elastic = 0 if has_cost else len(upper.rows)
        equal = _Rows(n)
        for j in self.bounds.features:
            equal.add((feature == j).astype(np.float64), 1.0)
        cost = np.append(terms.cost * has_cost, np.ones(n_elastic))
        elastic = -np.eye(len(upper.rows), n_elastic)
        self.n_programs += 1
        result = linprog(
            cost,
            A_ub=np.hstack([upper.matrix(), elastic]),
            b_ub=upper.ends,
            A_eq=np.hstack([equal.matrix(), np.zeros((len(equal.rows), n_elastic))]),
            b_eq=equal.ends,
            method="highs",
        )
        if result.status != 0:
            return None
        dual = -np.asarray(result.ineqlin.marginals) / upper.scales
        multipliers = self._read(np.where(dual > _NOTHING, dual, 0.0), has_cost=has_cost)
        return Mixture(multipliers, np.asarray(result.x)[:n], terms, feature)

    def _add_constraints(
        self, upper: _Rows, box: SumBox, terms: CodeTerms, feature: Indices
    ) -> None:
        """Add the two ends of the target, the bound on changes, and the linear rules."""
        question = self.bounds.question
        low, high = (end - self.bounds.total for end in self.bounds.accepted[box.targets[0]])
        size = _largest_sum(terms.gain)
        upper.add(-terms.gain, -float(np.clip(low, -size, size)))
        upper.add(terms.gain, float(np.clip(high, -size, size)))
        most = len(terms.code) if question.max_changes is None else question.max_changes
        upper.add(terms.changed, float(most))
        fixed = np.setdiff1d(np.arange(len(question.allowed)), self.bounds.features)
        for coefficients, end in question.rules:
            own = fixed[coefficients[fixed] != 0.0]
            rest = float(coefficients[own] @ question.prices.query[own])
            room = end - rest
            row = coefficients[feature] * terms.code
            upper.add(row, room if np.isfinite(room) else _largest_sum(row))

    def _read(self, dual: Array, *, has_cost: bool) -> Multipliers:
        """Return dual values as multipliers."""
        question = self.bounds.question
        n_rules = len(question.rules)
        return Multipliers(
            cost=float(has_cost),
            target=float(dual[0] - dual[1]),
            changes=0.0 if question.max_changes is None else float(dual[2]),
            rules=tuple(float(each) for each in dual[_N_ENDS : _N_ENDS + n_rules]),
        )


def _largest_sum(terms: Array) -> float:
    """Return a number that no mixture exceeds."""
    return float(np.abs(terms).sum()) + 1.0


def _corners(terms: CodeTerms) -> CodeTerms:
    """Return the codes of a line at its ends and around the query, if its gain is straight."""
    code = terms.code
    if len(code) <= _N_CORNERS:
        return terms
    gain = terms.gain
    slope = (gain[-1] - gain[0]) / (code[-1] - code[0])
    error = np.abs(gain - gain[0] - slope * (code - code[0])).max()
    if error > _STRAIGHT * np.ptp(gain):
        return terms
    chosen = np.zeros(len(code), dtype=np.bool_)
    chosen[[0, -1]] = True
    home = np.flatnonzero(terms.changed == 0.0)
    for i in home.tolist():
        chosen[max(i - 1, 0) : i + 2] = True
    return terms.take(chosen)
