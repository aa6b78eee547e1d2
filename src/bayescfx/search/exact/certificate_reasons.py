"""Reasons to close the boxes of a certificate that hold for every kind of model.

A box is closed by a word: its rows change too many features (``"changes"``), cost too much
(``"cost"``), break a rule (``"rule"``), or miss the target (``"score"``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import LinearModel, TreeEnsemble
from bayescfx.search.exact.certificate_space import CertificateError, CertifiedQuestion, CodeBox

#: Share of the sum of all summands by which sums may be rounded differently (numerical).
SUM_ROUNDING = 5e-13
Box = TypeVar("Box")


class BoxReasons(ABC, Generic[Box]):
    """The boxes of a model, and the reasons to close them.

    Parameters
    ----------
    question : CertifiedQuestion
        The question.
    margin : float
        By how much scores may be rounded differently.

    Attributes
    ----------
    same_cost : float
        Share by which the cost of the answer may exceed the limit.
    """

    same_cost: float = 1e-6

    def __init__(self, question: CertifiedQuestion, margin: float) -> None:
        self.question = question
        self.accepted = [(low - margin, high + margin) for low, high in question.accepted]

    @abstractmethod
    def start(self) -> Box:
        """Return the box of all allowed rows."""

    @abstractmethod
    def split(self, box: Box, key: Any, value: Any) -> tuple[Box, Box]:
        """Return the two parts of a box."""

    @abstractmethod
    def describe(self, box: Box) -> str:
        """Return in words what makes a box smaller than the space."""

    @abstractmethod
    def fault(self, box: Box, reason: Any) -> str | None:
        """Return what is wrong with the reason for which a box is closed; None if nothing is."""

    @abstractmethod
    def misses_target(self, box: CodeBox) -> bool:
        """Return whether no score of a box can be accepted."""

    @abstractmethod
    def score(self, codes: Array) -> float:
        """Return the score of codes ``(d,)``."""

    def fault_of_word(self, box: CodeBox, reason: Any) -> str | None:
        """Return what is wrong with a word as the reason; None if nothing is."""
        true_reason = self.reason_to_close(box)
        if reason == true_reason and isinstance(reason, str):
            return None
        is_open = true_reason is None
        found = "it may hold an answer" if is_open else f"the reason is {true_reason!r}"
        return f"{reason!r}: {found}"

    def reason_to_close(self, box: CodeBox) -> str | None:
        """Return why a box holds no row that is wanted; None if it may hold one."""
        question = self.question
        n_moved = int(question.is_moved(box).sum())
        most = question.max_changes
        if most is not None and n_moved > most:
            return "changes"
        power, price = question.corner_costs(box)
        if question.prices.total(power.sum(), price.sum()) >= question.limit:
            return "cost"
        if n_moved == most:
            box = question.pin(box)
        box = question.narrow(box, power, price)
        if question.breaks_rule(box):
            return "rule"
        return "score" if self.misses_target(box) else None

    def check_answer(self, codes: Array) -> float:
        """Return the cost of codes ``(d,)``; raise unless they are allowed and reach the target."""
        question = self.question
        is_own = (codes == question.prices.query) | np.isnan(question.prices.query)
        for j, (code, allowed) in enumerate(zip(codes.tolist(), question.allowed, strict=True)):
            if question.counts[j] and not is_own[j] and allowed.last_up_to(code) != code:
                name = question.schema.names[j]
                raise CertificateError(f"the answer has a value of {name!r} that is not allowed.")
        n_changes = int((~is_own & question.counts).sum())
        if question.max_changes is not None and n_changes > question.max_changes:
            raise CertificateError(f"the answer changes {n_changes} features.")
        moved = np.flatnonzero(question.counts)
        power = question.prices.powers(codes[moved], moved).sum()
        cost = question.prices.total(power, question.prices.changes(codes[moved], moved).sum())
        score = self.score(codes)
        if not any(low <= score <= high for low, high in self.accepted):
            raise CertificateError(f"the answer does not reach the target: its score is {score!r}.")
        return float(cost)


def features_of_columns(form: TreeEnsemble | LinearModel, question: CertifiedQuestion) -> Indices:
    """Return the feature ``(m,)`` from which each number of a model is computed."""
    schema = question.schema
    features = []
    for column in form.inputs.columns:
        place = schema.places.get(column)
        if place is None and isinstance(column, int | np.integer):
            place = int(column)
        if place is None:
            raise CertificateError(f"the model reads a column {column!r} that is not in the table.")
        features.append(schema.feature_at[place])
    return np.array(features, dtype=np.intp)
