"""Targets of classifiers: the label that a user wants, or any other than the predicted one.

A class target is turned into accepted outputs once it is known which number of a classifier is the
model's output; see `bayescfx.models.class_scores`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from bayescfx.checks import shown
from bayescfx.data.values import as_python, from_plain, to_plain
from bayescfx.errors import TargetError
from bayescfx.potentials.plateau import Plateau
from bayescfx.potentials.potential import Intervals, LevelPotential, checked_number
from bayescfx.potentials.targets import QUERY_DISTANCE, ROUNDING, Range, Reach, Shift, Target

#: By so much an output must lie beyond the edge between two labels: at the edge itself rounding
#: decides. Far above the rounding errors of probabilities, far below what a reader sees.
EDGE_MARGIN = 1e-9


class ClassTarget(Target):
    """A target of a classifier: its wanted outputs are one interval."""

    __slots__ = ()
    has_tolerance = False

    @abstractmethod
    def interval(self, output: float) -> tuple[float, float]:
        """Return the wanted outputs, given f(query)."""

    def wanted(self, output: float) -> Intervals:
        return (self.interval(output),)

    def potential(self, output: float) -> LevelPotential:
        """Return the plateau over the wanted outputs."""
        low, high = self.interval(checked_number("output", "target", output))
        gap = abs(max(low - output, output - high))
        return Plateau(low, high, (gap or 0.1) / QUERY_DISTANCE)


@dataclass(frozen=True, slots=True)
class Becomes(ClassTarget):
    """Get a label; made by :func:`becomes`. The outputs follow once the model is known."""

    label: object
    probability: float | None = None  # at least
    low: float = math.inf  # the wanted outputs; none as long as the model is not known
    high: float = -math.inf
    tie: float = math.inf  # the output at which the classifier hesitates, and takes this label

    def interval(self, output: float) -> tuple[float, float]:
        if self.low > self.high:
            raise _unresolved(self)
        if abs(output - self.tie) < EDGE_MARGIN:
            return min(self.low, output), max(self.high, output)  # the query has the label
        return self.low, self.high

    def to_dict(self) -> dict[str, Any]:
        ends = {"low": self.low, "high": self.high, "tie": self.tie}
        return {
            "kind": "becomes",
            "label": to_plain(self.label),
            "probability": self.probability,
            "ends": {name: to_plain(end) for name, end in ends.items()},
        }

    def describe(self) -> str:
        if self.probability is None:
            return f"becomes {self.label}"
        return f"becomes {self.label} with a probability of at least {self.probability:.6g}"


@dataclass(frozen=True, slots=True)
class Flips(ClassTarget):
    """Get any other label; made by :func:`flips`. The outputs follow once the model is known."""

    label: object = None  # the output rises with the chance of this one
    other: object = None  # the only other label, if there are two
    won: float = math.inf  # the least output with which `label` is predicted for certain
    lost: float = -math.inf  # the highest output with which it is certainly not predicted
    wins_ties: bool = False  # whether it is predicted between the two

    def interval(self, output: float) -> tuple[float, float]:
        if self.won == math.inf:
            raise _unresolved(self)
        return (-math.inf, self.lost) if self._is_label(output) else (self.won, math.inf)

    def predicted(self, output: float) -> object:
        """Return the label that is predicted for the query; None if it is not known."""
        return self.label if self._is_label(output) else self.other

    def _is_label(self, output: float) -> bool:
        """Return whether `label` is predicted for the query; False if that is not known."""
        return output > self.lost if self.wins_ties else output >= self.won

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "flips",
            "label": to_plain(self.label),
            "other": to_plain(self.other),
            "won": to_plain(self.won),
            "lost": to_plain(self.lost),
            "wins_ties": self.wins_ties,
        }

    def describe(self) -> str:
        return "flips"


def becomes(label: object, probability: float | None = None) -> Becomes:
    """Ask a classifier for a label.

    Parameters
    ----------
    label : object
        The wanted label, one of ``clf.classes_``.
    probability : float, optional
        The least probability of the label, between 0 and 1. Without it, the label must be the
        predicted one.

    Examples
    --------
    >>> str(becomes("good")), str(becomes("good", probability=0.7))
    ('becomes good', 'becomes good with a probability of at least 0.7')
    """
    if label is None or isinstance(label, Target):
        raise TargetError(f"becomes: `label` must be one of clf.classes_; got {shown(label)}.")
    if probability is not None:
        probability = checked_number("probability", "becomes", probability)
        if not 0.0 < probability <= 1.0:
            raise TargetError(
                f"becomes: `probability` must be above 0 and at most 1; got {probability:g}."
                f"{_as_share(probability)}"
            )
    return Becomes(as_python(label), probability)


def flips() -> Flips:
    """Ask a classifier for any other label than the one that it predicts for the query.

    Examples
    --------
    >>> str(flips())
    'flips'
    """
    return Flips()


def becomes_from_dict(label: Any, probability: float | None, ends: dict[str, Any]) -> Becomes:
    """Return the target that :meth:`Becomes.to_dict` wrote."""
    named = {name: from_plain(end) for name, end in ends.items()}
    return Becomes(from_plain(label), probability, **named)


def flips_from_dict(label: Any, other: Any, **edge: Any) -> Flips:
    """Return the target that :meth:`Flips.to_dict` wrote."""
    named = {name: from_plain(value) for name, value in edge.items()}
    return Flips(from_plain(label), from_plain(other), **named)


def _unresolved(target: ClassTarget) -> TargetError:
    """Return the error for a class target whose outputs are not known."""
    return TargetError(
        f"'{target}' is a target of classifiers; the model must be one. Pass a classifier, or ask "
        "for a number, such as cfx.at_least(0.5)."
    )


def check_probability_target(target: Target, output: float) -> None:
    """Raise if a target asks for a probability that is none; `output` is f(query)."""
    for end in _absolute_ends(target):
        if not 0.0 <= end <= 1.0:
            raise TargetError(
                f"the target must be a probability, between 0 and 1; got '{target}'."
                f"{_as_share(end)}"
            )
    if not isinstance(target, Shift):
        return
    wanted = target.wanted(output)
    if all(low > 1.0 + ROUNDING or high < -ROUNDING for low, high in wanted):
        raise TargetError(
            f"the target must be a probability, between 0 and 1; '{target}' from {output:.4g} is "
            f"none: at most {output:.4g} less or {1.0 - output:.4g} more is possible."
        )


def _absolute_ends(target: Target) -> list[float]:
    """Return the outputs that a target names."""
    if isinstance(target, Reach):
        return [target.value]
    ends = [target.low, target.high] if isinstance(target, Range) else []
    return [end for end in ends if math.isfinite(end)]


def _as_share(percent: float) -> str:
    """Return how to write a number of percent as a probability, if it may be one."""
    return f" For {percent:g} % write {percent / 100:g}." if 2.0 <= percent <= 100.0 else ""
