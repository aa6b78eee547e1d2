"""The answers of a question: which of its scored rows are returned.

They are the best rows (`search.finish.distinct`), or those that a proof has found, each replaced by
its rounded row if it was rounded (`search.rounding`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, firsts
from bayescfx.search.exact.prover import ScoredCodes
from bayescfx.search.finish import different, distinct
from bayescfx.search.question import Question


class Answers(NamedTuple):
    """The rows of the answers, best first."""

    X: Array  # (k, d) codes
    y: Array  # (k,) outputs
    found: Array  # (k, d) the codes before they were rounded


def choose_answers(question: Question) -> Answers:
    """Return the answers of a question with at least one scored row."""
    best = distinct(question, question.n)
    X = question.X[best]
    y = question.y[best]
    if len(question.proven_rows) > 1:
        X, y = _with_proven(question, X, y)
    final = [_rounded(question, row, output) for row, output in zip(X, y.tolist(), strict=True)]
    rows = np.array([each.row for each in final]).reshape(-1, X.shape[1])
    kept = np.sort(firsts(rows))  # two rows may be the same when rounded
    if question.reached:
        kept = kept[np.argsort(question.region.cost(rows[kept]), kind="stable")]
    return Answers(rows[kept], np.array([final[k].output for k in kept]), X[kept])


def _rounded(question: Question, row: Array, output: float) -> ScoredCodes:
    """Return the row that a row ``(d,)`` was rounded to, or the row itself."""
    found = ScoredCodes(row, output, float(question.region.cost(row[None])[0]))
    while (key := found.row.tobytes()) in question.rounded:
        if question.rounded[key].row.tobytes() == key:
            break
        found = question.rounded[key]
    return found


def _with_proven(question: Question, X: Array, y: Array) -> tuple[Array, Array]:
    """Return the proven answers and those of codes ``(k, d)`` that differ from them, by cost."""
    region = question.region
    rows = np.array([answer.row for answer in question.proven_rows])
    is_new = different(region, X, rows).all(axis=1)
    X = np.vstack([rows, X[is_new]])[: question.n]
    outputs = [answer.output for answer in question.proven_rows]
    y = np.concatenate([outputs, y[is_new]])[: question.n]
    order = np.argsort(region.cost(X), kind="stable")
    return X[order], y[order]
