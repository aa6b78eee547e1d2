"""What changes: before and after on each feature's own scale, in one answer and in many."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array
from bayescfx.plots.info.outcomes import output_range
from bayescfx.plots.info.view import Scale, View
from bayescfx.potentials import Intervals
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import moves


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

    name: str
    before: float
    after: float
    start: float
    end: float
    accepted: Intervals
    reached: bool
    texts: tuple[str, str]  # before and after; with effects as printed, they add up
    change: str


class ChangeInfo(NamedTuple):
    """A change chart in numbers: the most effective change first, derived ones last."""

    changes: tuple[Change, ...]
    hidden: int  # how many more
    hidden_text: str  # their effect
    prediction: Prediction


class Movement(NamedTuple):
    """One feature over many answers."""

    name: str
    times: int
    moves: Array  # signed, in the feature's units of change; none for levels without order
    transitions: tuple[tuple[str, int], ...]  # of levels without order, the most frequent first


class MovementInfo(NamedTuple):
    """Which features move in the best answers: the most frequent first."""

    movements: tuple[Movement, ...]
    hidden: int
    answers: int  # that change anything
    reached: int


class AlternativesInfo(NamedTuple):
    """Several answers side by side: places 0 to 1 on the scales of what they change."""

    names: tuple[str, ...]  # of the features, then the prediction
    ends: tuple[tuple[str, str], ...]  # of the scales; empty for levels without order
    marks: tuple[dict[float, str], ...]  # levels without order: those taken, by place
    query: tuple[float, ...]
    answers: tuple[tuple[float, ...], ...]
    valid: tuple[bool, ...]
    accepted: Intervals  # on the last scale


def change_info(view: View, which: int = 0, most: int = 12) -> ChangeInfo:
    """Return what a change chart shows of one of the counterfactuals, at most so many changes."""
    found = [*view.by_effect(which), *((int(j), None) for j in view.followed(which))]
    before, after = view.answer.output, view.answer.counterfactuals[which].output
    effects = [effect for _, effect in found if effect is not None]
    # as many decimals as show the largest effect with three digits
    largest = max(abs(value) for value in (after - before, *effects))
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0
    ends = [round(Decimal(y).scaleb(decimals)) for y in (before, after)]
    units = rounded_to(ends[1] - ends[0], [effect * 10.0**decimals for effect in effects])
    texts = [_signed(n, decimals) for n in units] + [""] * (len(found) - len(units))
    pairs = list(zip(found, texts, strict=True))[:most]
    changes = tuple(_change(view, which, *one, text) for one, text in pairs)
    fixed = (f"{Decimal(ends[0]).scaleb(-decimals):f}", f"{Decimal(ends[1]).scaleb(-decimals):f}")
    fixed = fixed if decimals <= 6 else wording.both(before, after)
    prediction = _prediction(view, which, fixed, _signed(ends[1] - ends[0], decimals))
    rest = _signed(sum(units[most:]), decimals) if units[most:] else ""
    return ChangeInfo(changes, max(0, len(found) - most), rest, prediction)


def rounded_to(whole: int, parts: Sequence[float]) -> list[int]:
    """Return parts as whole numbers that sum up to `whole`: each rounded down, or up where due.

    >>> rounded_to(10, [3.4, 3.4, 3.2])
    [4, 3, 3]
    """
    down = [math.floor(part) for part in parts]
    missing = whole - sum(down) if down else 0
    order = sorted(range(len(down)), key=lambda i: down[i] - parts[i])  # largest remainder first
    for k in range(abs(missing)):
        i = order[k % len(order)] if missing > 0 else order[-1 - k % len(order)]
        down[i] += 1 if missing > 0 else -1
    return down


def _change(view: View, which: int, j: int, effect: float | None, text: str) -> Change:
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
        effect_text=text,
        derived=j not in view.moved(which),
    )


def _place(low: float, high: float, output: float) -> float:
    """Return where an output stands between two others, 0 to 1."""
    return min(max((output - low) / (high - low), 0.0), 1.0)


def _prediction(view: View, which: int, texts: tuple[str, str], change: str) -> Prediction:
    answer, counterfactual = view.answer, view.answer.counterfactuals[which]
    before, after = answer.output, counterfactual.output
    place = partial(_place, *output_range(answer, 0.06, after))
    accepted = tuple((place(first), place(last)) for first, last in answer.accepted)
    reached = counterfactual.valid
    places = place(before), place(after)
    name = wording.Output.of(answer.about).label
    return Prediction(name, before, after, *places, accepted, reached, texts, change)


def _signed(units: int, decimals: int) -> str:
    """Return so many units of the last decimal with their sign; nothing has none."""
    value = Decimal(abs(units)).scaleb(-decimals)
    text = f"{value:f}" if decimals <= 6 else f"{value:.2e}"
    return ("" if units == 0 else "−" if units < 0 else "+") + text


def movement_info(answers: Sequence[Explanation], most: int = 30) -> MovementInfo:
    """Return how often and how far features move in the best answers, at most so many features."""
    steps: dict[str, list[float]] = defaultdict(list)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    changing = 0
    for answer in answers:
        changing += bool(answer.best.changes)
        for move in moves(answer):
            name = str(move.feature)
            counts[name] += 1
            if math.isnan(move.step):
                words[name][move.words] += 1
            else:
                steps[name].append(move.scaled)
    found = tuple(
        Movement(name, n, np.array(steps[name]), tuple(words[name].most_common()))
        for name, n in counts.most_common(most)
    )
    reached = sum(answer.reached for answer in answers)
    return MovementInfo(found, max(0, len(counts) - most), changing, reached)


def alternatives_info(view: View, most: int = 12) -> AlternativesInfo:
    """Return all counterfactuals side by side, on at most so many features that they change."""
    region, n = view.region, len(view.answers)
    moved = dict.fromkeys(j for k in range(n) for j, _ in view.by_effect(k))
    chosen = list(moved)[:most]
    scales = [Scale.of(region, j, *view.answers[:, j].tolist()) for j in chosen]
    low, high = output_range(view.answer, 0.06, *(c.output for c in view.answer.counterfactuals))

    def places(row: Array, output: float) -> tuple[float, ...]:
        at = [scale.place(float(row[j])) for j, scale in zip(chosen, scales, strict=True)]
        return *at, _place(low, high, output)

    ends, marks = [], []
    for j, scale in zip(chosen, scales, strict=True):
        codes = [float(region.query[j]), *view.answers[:, j].tolist()]
        both = (scale.label(scale.low), scale.label(scale.high))
        ends.append(both if scale.ordered else ("", ""))
        marks.append({} if scale.ordered else {scale.place(c): scale.label(c) for c in codes})
    outputs = [c.output for c in view.answer.counterfactuals]
    label = wording.Output.of(view.answer.about).label
    accepted = tuple((_place(low, high, a), _place(low, high, b)) for a, b in view.answer.accepted)
    return AlternativesInfo(
        names=(*(str(region.names[j]) for j in chosen), label),
        ends=(*ends, (wording.number(low), wording.number(high))),
        marks=(*marks, {}),
        query=places(region.query, view.answer.output),
        answers=tuple(places(row, y) for row, y in zip(view.answers, outputs, strict=True)),
        valid=tuple(c.valid for c in view.answer.counterfactuals),
        accepted=accepted,
    )
