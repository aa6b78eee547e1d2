"""The rows that answer a question: which of its scored rows are returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.search.finish import different, distinct
from bayescfx.search.question import Question


class ChosenRows(NamedTuple):
    """The rows of the answers, best first."""

    X: Array  # (k, d) codes
    y: Array  # (k,) outputs
    found: Array  # (k, d) the codes before they were rounded; see `search.rounding`


def choose_rows(question: Question) -> ChosenRows:
    """Return the best scored rows of a question, or those that a proof has found."""
    best = distinct(question, question.n)
    X = question.X[best]
    y = question.y[best]
    if len(question.proven_rows) > 1:
        X, y = _with_proven(question, X, y)
    return ChosenRows(X, y, X)


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
