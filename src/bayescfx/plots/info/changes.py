"""What changes: before and after on each feature's own scale, in one answer and in many."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, same_codes
from bayescfx.data import Real
from bayescfx.plots.info.outcomes import output_range
from bayescfx.plots.info.view import Scale, View
from bayescfx.potentials import Intervals
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Move, moves


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
    texts: tuple[str, str]  # before and after; with effects as printed, they add up
    start: float
    end: float
    accepted: Intervals
    reached: bool
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
    other = ~same_codes(view.answers[which], view.region.query)
    followed = np.setdiff1d(np.flatnonzero(other), view.moved(which))
    found = [*view.by_effect(which), *((int(j), None) for j in followed)]
    answer, after = view.answer, view.answer.counterfactuals[which]
    effects = [effect for _, effect in found if effect is not None]
    # as many decimals as show the largest effect with three digits
    largest = max(abs(value) for value in (after.output - answer.output, *effects))
    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0
    ends = [round(Decimal(y).scaleb(decimals)) for y in (answer.output, after.output)]
    whole = ends[1] - ends[0]
    units = rounded_to(whole, [effect * 10.0**decimals for effect in effects])
    texts = [_signed(n, decimals) for n in units] + [""] * (len(found) - len(units))
    pairs = list(zip(found, texts, strict=True))[:most]
    first, second = (f"{Decimal(end).scaleb(-decimals):f}" for end in ends)
    scale = _outputs(answer, after.output)
    prediction = Prediction(
        name=wording.Output.of(answer.about).label,
        texts=(first, second) if decimals <= 6 else wording.both(answer.output, after.output),
        start=scale.place(answer.output),
        end=scale.place(after.output),
        accepted=tuple((scale.place(low), scale.place(high)) for low, high in answer.accepted),
        reached=after.valid,
        change=_signed(whole, decimals),
    )
    changes = tuple(_change(view, which, *one, text) for one, text in pairs)
    rest = _signed(sum(units[most:]), decimals) if units[most:] else ""
    return ChangeInfo(changes, max(0, len(found) - most), rest, prediction)


def rounded_to(whole: int, parts: Sequence[float]) -> list[int]:
    """Return parts as whole numbers that sum up to `whole`: each rounded down, or up where due.

    >>> rounded_to(10, [3.4, 3.4, 3.2])
    [4, 3, 3]
    """
    down = [math.floor(part) for part in parts]
    each, more = divmod(whole - sum(down), max(1, len(down)))
    order = sorted(range(len(down)), key=lambda i: down[i] - parts[i])  # largest remainder first
    return [n + each + (i in order[:more]) for i, n in enumerate(down)]


def _change(view: View, which: int, j: int, effect: float | None, text: str) -> Change:
    region = view.region
    before, after = float(region.query[j]), float(view.answers[which, j])
    scale, period = Scale.of(region, j, after), region.period[j]
    first, second = scale.move(before, after)
    return Change(
        name=str(region.names[j]),
        before=first,
        after=second,
        start=scale.place(before),
        end=scale.place(after),
        allowed=(scale.place(region.low[j]), scale.place(region.high[j])),
        ends=scale.ends,
        ordered=scale.ordered,
        levels=tuple(scale.place(code) for code in scale.levels),
        wraps=bool(period and abs(after - before) > period / 2),
        effect=effect,
        effect_text=text,
        derived=j not in view.moved(which),
    )


def _outputs(answer: Explanation, *outputs: float) -> Scale:
    """Return a scale with room for some outputs, and all others that matter."""
    ends = output_range(answer, 0.06, *outputs)
    return Scale(Real(*ends), *ends)


def _signed(units: int, decimals: int) -> str:
    """Return so many units of the last decimal with their sign; nothing has none."""
    value = Decimal(abs(units)).scaleb(-decimals)
    text = f"{value:f}" if decimals <= 6 else f"{value:.2e}"
    return ("" if units == 0 else "−" if units < 0 else "+") + text


def movement_info(answers: Sequence[Explanation], most: int = 30) -> MovementInfo:
    """Return how often and how far features move in the best answers, at most so many features."""
    by_name: dict[str, list[Move]] = defaultdict(list)
    for move in (move for answer in answers for move in moves(answer)):
        by_name[str(move.feature)].append(move)
    found = []
    for name, each in sorted(by_name.items(), key=lambda line: -len(line[1])):
        steps = np.array([move.scaled for move in each if not math.isnan(move.step)])
        words = Counter(move.words for move in each if math.isnan(move.step))
        found.append(Movement(name, len(each), steps, tuple(words.most_common())))
    changing = sum(bool(answer.best.changes) for answer in answers)
    return MovementInfo(tuple(found[:most]), max(0, len(found) - most), changing)


def alternatives_info(view: View, most: int = 12) -> AlternativesInfo:
    """Return all counterfactuals side by side, on at most so many features that they change."""
    answer, region, found = view.answer, view.region, view.answer.counterfactuals
    moved = dict.fromkeys(j for k in range(len(found)) for j, _ in view.by_effect(k))
    chosen, outputs = list(moved)[:most], [each.output for each in found]
    scales = [Scale.of(region, j, *view.answers[:, j].tolist()) for j in chosen]
    scales.append(last := _outputs(answer, *outputs))
    rows = np.vstack([region.query, view.answers])[:, chosen]
    table = np.column_stack([rows, [answer.output, *outputs]])  # and on the last scale the output
    query, *others = (
        tuple(scale.place(code) for scale, code in zip(scales, row, strict=True))
        for row in table.tolist()
    )
    marks = [
        {} if scale.ordered else {scale.place(code): scale.label(code) for code in column}
        for scale, column in zip(scales, table.T.tolist(), strict=True)
    ]
    label = wording.Output.of(answer.about).label
    return AlternativesInfo(
        names=(*(str(region.names[j]) for j in chosen), label),
        ends=tuple(scale.ends if scale.ordered else ("", "") for scale in scales),
        marks=tuple(marks),
        query=query,
        answers=tuple(others),
        valid=tuple(each.valid for each in found),
        accepted=tuple((last.place(low), last.place(high)) for low, high in answer.accepted),
    )
