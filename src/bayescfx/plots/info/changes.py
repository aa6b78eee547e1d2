"""Numbers of the pictures of changes: before and after on each feature's own scale."""

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

ALL_CHANGES = 10**6  # more changes than any answer has
_MOST_DECIMALS = 6  # numbers with more decimals are written with exponents


class Change(NamedTuple):
    """One feature's move; places are 0 to 1 on its own scale."""

    name: str
    before: str
    after: str
    start: float
    end: float
    allowed: tuple[float, float]
    ends: tuple[str, str]  # of the scale, as text
    ordered: bool
    levels: tuple[float, ...]  # places of the levels, if they are few
    wraps: bool  # over the end of a circle
    effect: float | None
    effect_text: str
    derived: bool


class Prediction(NamedTuple):
    """The model's output before and after; places are 0 to 1 on a scale with room for all."""

    name: str
    texts: tuple[str, str]  # before and after; as printed, they add up with the effects
    start: float
    end: float
    accepted: Intervals
    reached: bool
    change: str


class ChangeInfo(NamedTuple):
    """A change chart in numbers: the most effective change first, derived ones last."""

    changes: tuple[Change, ...]
    hidden: int  # number of changes left out
    hidden_text: str  # their effect
    prediction: Prediction


class Movement(NamedTuple):
    """The moves of one feature over many answers."""

    name: str
    times: int
    moves: Array  # signed, in the feature's units of change; none for levels without order
    transitions: tuple[tuple[str, int], ...]  # of levels without order, the most frequent first


class MovementInfo(NamedTuple):
    """The features that move in the best answers, the most frequent first."""

    movements: tuple[Movement, ...]
    hidden: int  # number of features left out
    answers: int  # number of answers with a change


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
    """Return the numbers of a change chart of one counterfactual, with at most `most` changes."""
    changed = [*view.by_effect(which), *((j, None) for j in _derived(view, which))]
    effects = [effect for _, effect in changed if effect is not None]
    rounding = Rounding.of(view.answer.output, view.answer.counterfactuals[which].output, effects)
    texts = [_signed(n, rounding.decimals) for n in rounding.effects]
    texts += [""] * (len(changed) - len(texts))
    changes = []
    for (j, effect), text in list(zip(changed, texts, strict=True))[:most]:
        changes.append(_change(view, which, j, effect, text))
    hidden_effects = rounding.effects[most:]
    return ChangeInfo(
        changes=tuple(changes),
        hidden=max(0, len(changed) - most),
        hidden_text=_signed(sum(hidden_effects), rounding.decimals) if hidden_effects else "",
        prediction=_prediction(view, which, rounding),
    )


def _derived(view: View, which: int) -> list[int]:
    """Return the positions of features that follow the changes of others."""
    differs = ~same_codes(view.answers[which], view.region.query)
    derived: list[int] = np.setdiff1d(np.flatnonzero(differs), view.moved(which)).tolist()
    return derived


class Rounding(NamedTuple):
    """Outputs and effects rounded so that they add up as printed: units of the last decimal."""

    decimals: int
    before: int
    after: int
    effects: list[int]

    @classmethod
    def of(cls, before: float, after: float, effects: Sequence[float]) -> Rounding:
        """Return numbers with as many decimals as show the largest effect with three digits."""
        largest = max(abs(value) for value in (after - before, *effects))
        decimals = 0
        if largest > 0:
            decimals = max(0, 2 - math.floor(math.log10(largest)))
        first = round(Decimal(before).scaleb(decimals))
        second = round(Decimal(after).scaleb(decimals))
        units = rounded_to(second - first, [effect * 10.0**decimals for effect in effects])
        return cls(decimals, first, second, units)

    @property
    def texts(self) -> tuple[str, str]:
        """Both outputs as text."""
        before = Decimal(self.before).scaleb(-self.decimals)
        after = Decimal(self.after).scaleb(-self.decimals)
        return f"{before:f}", f"{after:f}"


def rounded_to(whole: int, parts: Sequence[float]) -> list[int]:
    """Return parts as whole numbers that sum up to `whole`: the largest remainders round up.

    >>> rounded_to(10, [3.4, 3.4, 3.2])
    [4, 3, 3]
    """
    floors = [math.floor(part) for part in parts]
    each, n_more = divmod(whole - sum(floors), max(1, len(floors)))
    order = sorted(range(len(floors)), key=lambda i: floors[i] - parts[i])
    rounded_up = set(order[:n_more])
    return [n + each + (i in rounded_up) for i, n in enumerate(floors)]


def _signed(units: int, decimals: int) -> str:
    """Return so many units of the last decimal as text with a sign; 0 has none."""
    value = Decimal(abs(units)).scaleb(-decimals)
    text = f"{value:f}" if decimals <= _MOST_DECIMALS else f"{value:.2e}"
    if units == 0:
        return text
    return f"−{text}" if units < 0 else f"+{text}"


def _prediction(view: View, which: int, rounding: Rounding) -> Prediction:
    answer = view.answer
    after = answer.counterfactuals[which]
    scale = _output_scale(answer, after.output)
    texts = rounding.texts
    if rounding.decimals > _MOST_DECIMALS:
        texts = wording.both(answer.output, after.output)
    return Prediction(
        name=wording.Output.of(answer.about).label,
        texts=texts,
        start=scale.place(answer.output),
        end=scale.place(after.output),
        accepted=tuple((scale.place(low), scale.place(high)) for low, high in answer.accepted),
        reached=after.valid,
        change=_signed(rounding.after - rounding.before, rounding.decimals),
    )


def _change(view: View, which: int, j: int, effect: float | None, text: str) -> Change:
    region = view.region
    before = float(region.query[j])
    after = float(view.answers[which, j])
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
        ends=scale.ends,
        ordered=scale.ordered,
        levels=tuple(scale.place(code) for code in scale.levels),
        wraps=bool(period and abs(after - before) > period / 2),
        effect=effect,
        effect_text=text,
        derived=j not in view.moved(which),
    )


def _output_scale(answer: Explanation, *outputs: float) -> Scale:
    """Return a scale with room for some outputs and all others of the answer."""
    low, high = output_range(answer, 0.06, *outputs)
    return Scale(Real(low, high), low, high)


def movement_info(answers: Sequence[Explanation], most: int = 30) -> MovementInfo:
    """Return how often and how far features move in the best answers, for `most` features."""
    by_name: dict[str, list[Move]] = defaultdict(list)
    for answer in answers:
        for move in moves(answer):
            by_name[str(move.feature)].append(move)
    movements = []
    for name, found in sorted(by_name.items(), key=lambda item: -len(item[1])):
        steps = np.array([move.scaled for move in found if not math.isnan(move.step)])
        transitions = Counter(move.words for move in found if math.isnan(move.step))
        movements.append(Movement(name, len(found), steps, tuple(transitions.most_common())))
    n_changing = sum(bool(answer.best.changes) for answer in answers)
    return MovementInfo(tuple(movements[:most]), max(0, len(movements) - most), n_changing)


def alternatives_info(view: View, most: int = 12) -> AlternativesInfo:
    """Return all counterfactuals side by side, on at most `most` features that they change."""
    answer = view.answer
    region = view.region
    found = answer.counterfactuals
    moved = dict.fromkeys(j for k in range(len(found)) for j, _ in view.by_effect(k))
    features = list(moved)[:most]
    outputs = [each.output for each in found]
    output_scale = _output_scale(answer, *outputs)
    scales = [Scale.of(region, j, *view.answers[:, j].tolist()) for j in features]
    scales.append(output_scale)
    codes = np.vstack([region.query, view.answers])[:, features]
    table = np.column_stack([codes, [answer.output, *outputs]])  # the output on the last scale
    query, *others = (_places(scales, row) for row in table.tolist())
    accepted = [
        (output_scale.place(low), output_scale.place(high)) for low, high in answer.accepted
    ]
    return AlternativesInfo(
        names=(*(str(region.names[j]) for j in features), wording.Output.of(answer.about).label),
        ends=tuple(scale.ends if scale.ordered else ("", "") for scale in scales),
        marks=tuple(map(_marks, scales, table.T.tolist())),
        query=query,
        answers=tuple(others),
        valid=tuple(each.valid for each in found),
        accepted=tuple(accepted),
    )


def _places(scales: Sequence[Scale], codes: Sequence[float]) -> tuple[float, ...]:
    """Return the place of each code on its scale."""
    return tuple(scale.place(code) for scale, code in zip(scales, codes, strict=True))


def _marks(scale: Scale, codes: Sequence[float]) -> dict[float, str]:
    """Return the labels of levels without order, by place; none for an ordered scale."""
    if scale.ordered:
        return {}
    return {scale.place(code): scale.label(code) for code in codes}
