"""Many answers: which features move, how often and how far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots.info.scales import Scale
from bayescfx.plots.info.view import View
from bayescfx.result.explanation import Explanation

MOST = 15  # features shown


class Movement(NamedTuple):
    """One feature over many answers.

    `moves` are signed, in the feature's units of change; empty for levels without order, whose
    most frequent change is in words.
    """

    name: str
    times: int
    moves: Array
    median: float | None
    usual: str


class MovementInfo(NamedTuple):
    """Which features move in the best answers: the most frequent first."""

    movements: tuple[Movement, ...]
    hidden: int
    answers: int
    reached: int


def movement_info(answers: Sequence[Explanation]) -> MovementInfo:
    """Return how often and how far features move in the best answers to many questions.

    Parameters
    ----------
    answers : sequence of Explanation
        For instance what `explain_many` returned.
    """
    moves: dict[str, list[float]] = {}
    words: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        view = View.of(answer)
        region, after = view.region, view.answers[0]
        for j in view.moved(0).tolist():
            name, scale = str(region.names[j]), Scale.of(region, j, float(after[j]))
            counts[name] += 1
            if scale.ordered:
                step = _step(float(after[j] - region.query[j]), region.axes[j].period)
                moves.setdefault(name, []).append(step / float(region.scale[j]))
            else:
                first, second = scale.move(float(region.query[j]), float(after[j]))
                words.setdefault(name, Counter())[f"{first} → {second}"] += 1
    names = sorted(counts, key=lambda name: -counts[name])
    found = tuple(
        Movement(
            name=name,
            times=counts[name],
            moves=np.array(moves.get(name, [])),
            median=float(np.median(moves[name])) if name in moves else None,
            usual=words[name].most_common(1)[0][0] if name in words else "",
        )
        for name in names[:MOST]
    )
    reached = sum(answer.reached for answer in answers)
    return MovementInfo(found, max(0, len(names) - MOST), len(answers), reached)


def _step(change: float, period: float) -> float:
    """Return a change, on a circle the short way round."""
    if not period:
        return change
    return (change + period / 2) % period - period / 2
