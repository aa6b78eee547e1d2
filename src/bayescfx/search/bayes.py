"""Bayes-CFX: Bayesian optimisation of a potential, with the surrogate on f (Section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayescfx.arrays import Array
from bayescfx.propose import Acquisition, propose
from bayescfx.search.belief import Belief, Surrogate, learn, relevant
from bayescfx.search.objectives import Cliffs, Few, Gain, Nearer, Record, Within
from bayescfx.search.question import Ending, Question, Rounds, drive


@dataclass(frozen=True)
class BayesCFX:
    starts: int | None = None
    batch: int = 1
    cycle: tuple = ('global', 'box', 'few')
    few: int = 2
    half: float = 0.25
    surrogate: Surrogate = field(default_factory=Surrogate)

    def run(self, question: Question) -> Ending:
        return drive(self, question)

    def rounds(self, question: Question) -> Rounds:
        region, problem, rng = question.region, question.problem, question.rng
        first = self._first(question)
        if len(first):
            yield first
        belief: Belief | None = None
        steps, length, last = 0, self.half, None
        while True:
            if question.weight == 0.0 and question.n == 1 and question.reached:
                return "converged"
            X, y = question.account.evaluator.X, question.account.evaluator.y
            inside = question.X
            belief = self._learn(question, X, y, belief)
            objective: Acquisition
            if question.weight > 0.0 and question.reached:
                record = Record(region, inside[question.hits], question.n)
                objective = Nearer(belief, region, problem.surrogate_acceptance, record)
                starts = self._near_starts(question)
            else:
                score = problem.score(question.y)
                v = score - question.weight * region.distance(inside)
                objective = Gain(
                    belief,
                    region,
                    problem.surrogate_potential,
                    float(v.max()),
                    question.weight,
                    self._cliffs(question, belief),
                )
                starts = self._far_starts(question, v)
                steps += 1
                kind = self.cycle[steps % len(self.cycle)]
                if kind != "global":
                    centre = inside[np.argmax(v)]
                    m = 256
                    if kind == "box":
                        if last is not None:
                            length = (
                                min(length * 1.5, 0.5) if v.max() > last + 1e-3 else length * 0.75
                            )
                            if length < 0.03:
                                length = self.half
                        last = float(v.max())
                        low, high = belief.coordinates.box(centre, length)
                        objective = Within(objective, low, high)
                        lo, hi = np.maximum(low, region.low), np.minimum(high, region.high)
                        u = lo + rng.random((m, len(lo))) * (hi - lo)
                        mask = rng.random((m, len(lo))) < rng.random((m, 1))
                        starts = region.project(np.where(mask, u, centre))
                    else:
                        objective = Few(objective, centre, self.few)
                        u = np.vstack([region.background_rows(m, rng), region.sample(m // 2, rng), inside])
                        u = u[rng.integers(len(u), size=2 * m)]
                        size = rng.integers(1, self.few + 1, size=(len(u), 1))
                        rank = np.argsort(rng.random((len(u), len(region.free))), axis=1)
                        mask = np.zeros(u.shape, bool)
                        mask[:, region.free] = rank < size
                        starts = region.project(np.where(mask, u, centre))
            found = propose(
                objective,
                region,
                rng,
                starts,
                k=self.batch,
                avoid=inside,
                deadline=question.deadline,
            )
            if found.exhausted:
                return "exhausted"
            yield found.points

    def _cliffs(self, question, belief):
        y = question.y
        lo = min(a for a, _ in question.problem.acceptance)
        hi = max(b for _, b in question.problem.acceptance)
        return Cliffs.between(belief.coordinates, question.X, y < lo, y > hi)

    def _learn(self, question, X, y, before):
        order = np.argsort(-question.problem.score(question.y), kind="stable")[:4]
        chosen = relevant(question.region, X, y, self.surrogate.points, question.X[order])
        return learn(
            self.surrogate,
            question.region,
            X[chosen],
            question.problem.to_surrogate(y[chosen]),
            before,
            question.deadline,
        )

    def _first(self, question: Question) -> Array:
        region, rng = question.region, question.rng
        m = 2 if self.starts is None else self.starts
        if question.weight > 0:
            rows = region.background_rows(m, rng, changes=max(1, len(region.free) // 2))
        else:
            rows = region.background_rows(m, rng)
        if len(rows) < m:
            rows = np.vstack([rows, region.sample(m - len(rows), rng)])
        return rows[:m]

    def _far_starts(self, question: Question, v: Array) -> Array:
        region, rng = question.region, question.rng
        X = question.X
        top = X[np.argsort(-v)[:8]]
        i, j = rng.integers(len(X), size=(2, 64))
        seg = X[i] + rng.random((64, 1)) * (X[j] - X[i])
        mix = np.where(rng.random((64, X.shape[1])) < rng.random((64, 1)), X[i], X[j])
        rows = [top, region.background_rows(64, rng), seg, mix]
        if question.weight > 0:
            for c in (1, 2, 3):
                rows.append(region.background_rows(48, rng, changes=c))
        return region.project(np.vstack(rows))

    def _near_starts(self, question: Question) -> Array:
        region, rng = question.region, question.rng
        hits = question.X[question.hits]
        hits = hits[np.argsort(region.distance(hits), kind="stable")[:6]]
        q = region.query
        pick = hits[rng.integers(len(hits), size=256)]
        keep = rng.random(pick.shape) < rng.random((256, 1))
        shrink = np.where(rng.random(pick.shape) < 0.5, 1.0, rng.random((256, 1)))
        restored = np.where(keep, q + (pick - q) * shrink, q)
        rows = [hits, restored]
        for c in (1, 2, 3):
            rows.append(region.background_rows(64, rng, changes=c))
        rows = np.vstack(rows)
        # shrunk towards the query
        s = rng.random((len(rows), 1))
        return region.project(np.vstack([rows, q + s * (rows - q)]))
