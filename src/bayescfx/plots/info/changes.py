"""What changes: before and after on each feature's own scale, in one answer and in many."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots.info.outcomes import output_range
from bayescfx.plots.info.view import Scale, View
from bayescfx.potentials import Intervals
from bayescfx.result.explanation import Explanation


class Change(NamedTuple):
    """One feature's move; places are 0 to 1 on its own scale."""

    name: str
    before: str
    after: str
    start: float
    end: float
    allowed: tuple[float, float]
    ends: tuple[str, str]  # of the scale, in words
    ordered: bool
    levels: tuple[float, ...]  # places of the levels, if they are few
    wraps: bool  # over the end of a circle
    effect: float | None
    effect_text: str
    derived: bool


class Prediction(NamedTuple):
    """The model's output before and after; places are 0 to 1 on a scale with room for all."""

    before: float
    after: float
    start: float
    end: float
    accepted: Intervals
    reached: bool
    change: str


class ChangeInfo(NamedTuple):
    """A change chart in numbers: the most effective change first, derived ones last."""

    changes: tuple[Change, ...]
    hidden: int  # how many more
    prediction: Prediction


class Movement(NamedTuple):
    """One feature over many answers."""

    name: str
    times: int
    moves: Array  # signed, in the feature's units of change; none for levels without order
    median: float | None
    usual: str  # the most frequent change of levels without order, in words


class MovementInfo(NamedTuple):
    """Which features move in the best answers: the most frequent first."""

    movements: tuple[Movement, ...]
    hidden: int
    answers: int
    reached: int


def change_info(view: View, which: int = 0, most: int = 12) -> ChangeInfo:
    """Return what a change chart shows of one of the counterfactuals, at most so many changes."""
    found = [*view.by_effect(which), *((int(j), None) for j in view.followed(which))]
    whole = view.answer.counterfactuals[which].output - view.answer.output
    # as many decimals as show the largest effect with three digits
    largest = max(abs(value) for value in (whole, *(e for _, e in found if e is not None)))
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0
    changes = tuple(_change(view, which, *one, decimals) for one in found[:most])
    prediction = _prediction(view, which, _signed(whole, decimals))
    return ChangeInfo(changes, max(0, len(found) - most), prediction)


def _change(view: View, which: int, j: int, effect: float | None, decimals: int) -> Change:
    region = view.region
    before, after = float(region.query[j]), float(view.answers[which, j])
    scale = Scale.of(region, j, after)
    period = region.period[j]
    first, second = scale.move(before, after)
    return Change(
        name=str(region.names[j]),
        before=first,
        after=second,
        start=scale.place(before),
        end=scale.place(after),
        allowed=(scale.place(region.low[j]), scale.place(region.high[j])),
        ends=(scale.label(scale.low), scale.label(scale.high)),
        ordered=scale.ordered,
        levels=tuple(scale.place(code) for code in scale.levels),
        wraps=bool(period and abs(after - before) > period / 2),
        effect=effect,
        effect_text="" if effect is None else _signed(effect, decimals),
        derived=j not in view.moved(which),
    )


def _prediction(view: View, which: int, change: str) -> Prediction:
    answer, counterfactual = view.answer, view.answer.counterfactuals[which]
    before, after = answer.output, counterfactual.output
    low, high = output_range(answer, 0.06, after)

    def place(y: float) -> float:
        return min(max((y - low) / (high - low), 0.0), 1.0)

    accepted = tuple((place(first), place(last)) for first, last in answer.accepted)
    reached = counterfactual.valid
    return Prediction(before, after, place(before), place(after), accepted, reached, change)


def _signed(value: float, decimals: int) -> str:
    """Return a number with its sign; nothing has none."""
    text = f"{abs(value):.{decimals}f}" if decimals <= 6 else f"{abs(value):.2e}"
    sign = "" if float(text) == 0.0 else "−" if value < 0 else "+"
    return sign + text


def movement_info(answers: Sequence[Explanation], most: int = 15) -> MovementInfo:
    """Return how often and how far features move in the best answers, at most so many features."""
    moves: dict[str, list[float]] = defaultdict(list)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for answer in answers:
        view = View.of(answer)
        region, after = view.region, view.answers[0]
        for j in view.moved(0).tolist():
            name, scale = str(region.names[j]), Scale.of(region, j, float(after[j]))
            counts[name] += 1
            if scale.ordered:
                step, period = float(after[j] - region.query[j]), region.period[j]
                if period:  # the short way round
                    step = (step + period / 2) % period - period / 2
                moves[name].append(step / float(region.scale[j]))
            else:
                words[name][" → ".join(scale.move(float(region.query[j]), float(after[j])))] += 1
    names = sorted(counts, key=lambda name: -counts[name])
    found = tuple(
        Movement(
            name=name,
            times=counts[name],
            moves=np.array(moves[name]),
            median=float(np.median(moves[name])) if moves[name] else None,
            usual=words[name].most_common(1)[0][0] if words[name] else "",
        )
        for name in names[:most]
    )
    reached = sum(answer.reached for answer in answers)
    return MovementInfo(found, max(0, len(names) - most), len(answers), reached)
