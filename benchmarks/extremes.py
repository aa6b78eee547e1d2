"""The largest output of a tree ensemble: by enumeration with two changes, else by its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

import bayescfx as cfx
from bayescfx.deadline import Deadline
from bayescfx.models.model import as_model
from bayescfx.search.exact.branching import Work, find_extreme
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Prover
from benchmarks.limit import Boxes, leaves_of, representatives, surface
from benchmarks.readable import Subject, subject

SECONDS = 3.0  # of the search for the largest output
CELLS = tuple((data, model) for data in ("diabetes", "friedman-12") for model in ("lgbm", "forest"))


@dataclass(frozen=True, eq=False)
class Limit:
    """A model, and a space with or without a bound on the number of changes."""

    subject: Subject
    space: cfx.Space
    max_changes: int | None
    leaves: Boxes
    prover: Prover

    def largest(self, row: int) -> tuple[float, float]:
        """Return the largest output of a row that was found, and a bound on all outputs."""
        region = self.space.around(self.subject.X.iloc[row])
        if self.max_changes is None:
            return self._by_bounds(region)
        largest = self._by_enumeration(region)
        return largest, largest

    def _by_enumeration(self, region: Any) -> float:
        """Return the largest output over all pairs of features, scored by the model."""
        query = region.query
        leaves = self.leaves
        values = [representatives(leaves, region, j) for j in range(len(query))]
        outside = (query <= leaves.low) | (query > leaves.high)
        best_output = -np.inf
        best_row = query
        for i, j in combinations(range(len(query)), 2):
            is_outside = np.delete(outside, [i, j], axis=1).any(axis=1)
            inside = Boxes(*(part[~is_outside] for part in leaves))
            outputs = surface(inside, (i, values[i]), (j, values[j]))
            a, b = np.unravel_index(np.argmax(outputs), outputs.shape)
            if outputs[a, b] > best_output:
                best_output = outputs[a, b]
                best_row = query.copy()
                best_row[[i, j]] = values[i][a], values[j][b]
        return float(self.subject.estimator.predict(self.space.decode(best_row[None]))[0])

    def _by_bounds(self, region: Any) -> tuple[float, float]:
        """Return the largest output that branch and bound finds, and its bound."""
        X = region.query[None]
        y = np.asarray(self.subject.estimator.predict(self.space.decode(X)), dtype=np.float64)
        form: Any = self.prover.form(region, X, y)
        problem = BoxProblem(self.prover.table(region, form), region, ((-np.inf, np.inf),))
        found = find_extreme(problem, 1, Work(deadline=Deadline.after(SECONDS)))
        output = float(self.subject.estimator.predict(self.space.decode(found.row[None]))[0])
        return output, max(output, float(found.bound))


def make_limit(data: str, model: str, max_changes: int | None) -> Limit | None:
    """Return the limit of a model; None if its library is missing."""
    asked = subject(data, model)
    if asked is None:
        return None
    space = asked.space if max_changes is None else asked.space.max_changes(max_changes)
    leaves = leaves_of(asked.estimator, asked.X.shape[1])
    return Limit(asked, space, max_changes, leaves, Prover(as_model(asked.estimator)))
