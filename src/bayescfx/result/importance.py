"""Which features move in the best answers to many questions, how often and how far."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.result import wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation


class Move(NamedTuple):
    """One feature in one answer."""

    feature: Hashable
    step: float  # signed, in the feature's own units; nan for levels without order
    scaled: float  # the same in its units of change
    words: str


def moves(answer: Explanation) -> list[Move]:
    """Return what the best answer moves."""
    if not answer.best.changes:
        return []
    region = around(answer.space, answer.layout.table([list(answer.query)]))
    after = region.encode(answer.layout.table([list(answer.best.row)]))[0]
    found = []
    for name, pair in answer.best.changes.items():
        j = region.schema.positions[name]
        step, period = float(after[j] - region.query[j]), float(region.period[j])
        if period:  # the short way round
            step = (step + period / 2) % period - period / 2
        if region.categorical[j]:
            step = math.nan
        found.append(Move(name, step, step / float(region.scale[j]), wording.move(*pair)))
    return found


def importance(answers: Sequence[Explanation]) -> pd.DataFrame:
    """Return how often and how far features move; see :meth:`Explanations.importance`."""
    each = [found for answer in answers if (found := moves(answer))]
    names = dict.fromkeys(name for answer in answers for name in answer.space.features)
    by_name: dict[Hashable, list[Move]] = {name: [] for name in names}
    for move in (move for found in each for move in found):
        by_name[move.feature].append(move)
    table = []
    for name, found in sorted(by_name.items(), key=lambda line: -len(line[1])):
        steps = np.array([move.step for move in found])
        known, scaled = steps[~np.isnan(steps)], np.array([move.scaled for move in found])
        line = {"feature": name, "share": len(found) / max(1, len(each)), "times": len(found)}
        line |= {"up": _mean(known > 0), "down": _mean(known < 0)}
        line |= {"mean": _mean(abs(known)), "median": _median(abs(known))}
        scaled = abs(scaled[~np.isnan(steps)])
        line |= {"mean_scaled": _mean(scaled), "median_scaled": _median(scaled)}
        words = Counter(move.words for move in found if math.isnan(move.step))
        line["transitions"] = ", ".join(f"{text} ({n})" for text, n in words.most_common())
        table.append(line)
    return pd.DataFrame(table)


def _mean(values: np.ndarray[Any, Any]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _median(values: np.ndarray[Any, Any]) -> float:
    return float(np.median(values)) if len(values) else math.nan
