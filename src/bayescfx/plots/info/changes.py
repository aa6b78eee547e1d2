"""Numbers of the pictures of changes: before and after on each feature's own scale."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, same_codes
from bayescfx.data import Feature, Real
from bayescfx.plots.info.outcomes import output_range
from bayescfx.plots.info.view import Scale, View
from bayescfx.potentials import Intervals
from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Move, moves

ALL_CHANGES = 10**6  # more changes than any answer has
_MOST_DECIMALS = 6  # numbers with more decimals are written with exponents
_MOST_LETTERS = 9  # of a number that need not be typed, in a picture


class Change(NamedTuple):
    """One feature's move; places are 0 to 1 on its own scale.

    Parameters
    ----------
    name : str
        The feature.
    before : str
        The value of the query, as text.
    after : str
        The value of the counterfactual, as text.
    short : (str, str)
        Both as texts for a picture: what need not be typed is rounded if it has many digits.
    start : float
        Place of the value before.
    end : float
        Place of the value after.
    allowed : (float, float)
        Places of the lowest and the highest allowed value.
    ends : (str, str)
        The ends of the scale, as text.
    ordered : bool
        Whether places have an order.
    levels : tuple of float
        Places of the levels, if they are few.
    wraps : bool
        Whether the move goes over the end of a circle.
    effect : float, optional
        Contribution to the change of the output; None without a surrogate.
    effect_text : str
        The effect, rounded so that all effects add up.
    derived : bool
        Whether the feature is computed from others.
    """

    name: str
    before: str
    after: str
    short: tuple[str, str]
    start: float
    end: float
    allowed: tuple[float, float]
    ends: tuple[str, str]
    ordered: bool
    levels: tuple[float, ...]
    wraps: bool
    effect: float | None
    effect_text: str
    derived: bool


class Prediction(NamedTuple):
    """The model's output before and after; places are 0 to 1 on a scale with room for all.

    Parameters
    ----------
    name : str
        Name of the output, with its unit.
    texts : (str, str)
        Outputs before and after; as printed, they add up with the effects.
    start : float
        Place of the output before.
    end : float
        Place of the output after.
    accepted : tuple of (float, float)
        Places of the accepted outputs.
    reached : bool
        Whether the output after is accepted.
    change : str
        The difference, with its sign.
    """

    name: str
    texts: tuple[str, str]
    start: float
    end: float
    accepted: Intervals
    reached: bool
    change: str


class ChangeInfo(NamedTuple):
    """The numbers of a change chart.

    Parameters
    ----------
    changes : tuple of Change
        The most effective change first, derived ones last.
    hidden : int
        Number of changes left out.
    hidden_text : str
        Their effect.
    prediction : Prediction
        The output.
    """

    changes: tuple[Change, ...]
    hidden: int
    hidden_text: str
    prediction: Prediction

    @property
    def has_effects(self) -> bool:
        """Whether the effect of a change is known."""
        return any(change.effect is not None for change in self.changes)


class Movement(NamedTuple):
    """The moves of one feature over many answers.

    Parameters
    ----------
    name : str
        The feature.
    times : int
        Number of answers that move it.
    moves : ndarray of shape (n,)
        Signed moves in units of change; empty for levels without order.
    transitions : tuple of (str, int)
        Changes of levels without order and their numbers, the most frequent first.
    """

    name: str
    times: int
    moves: Array
    transitions: tuple[tuple[str, int], ...]


class MovementInfo(NamedTuple):
    """The numbers of a plot of movements.

    Parameters
    ----------
    movements : tuple of Movement
        The features that move in the best answers, the most frequent first.
    hidden : int
        Number of features left out.
    answers : int
        Number of answers with a change.
    """

    movements: tuple[Movement, ...]
    hidden: int
    answers: int


@dataclass(frozen=True)
class LevelsTaken:
    """Levels without order, side by side: a place for each that the query or an answer takes."""

    feature: Feature
    codes: tuple[float, ...]  # distinct
    ordered = False
    ends = ("", "")

    @classmethod
    def of(cls, feature: Feature, codes: Iterable[float]) -> LevelsTaken:
        """Return the places of the codes of the query and the answers, in this order."""
        return cls(feature, tuple(dict.fromkeys(codes)))

    def place(self, code: float) -> float:
        """Return the place of a code, 0 to 1; the middle if there is only one."""
        n_gaps = len(self.codes) - 1
        return self.codes.index(code) / n_gaps if n_gaps else 0.5

    def label(self, code: float) -> str:
        """Return a level as text."""
        return self.feature.label(code)


class AlternativesInfo(NamedTuple):
    """Several answers side by side: places 0 to 1 on the scales of what they change.

    Parameters
    ----------
    names : tuple of str
        The features, then the output.
    ordered : tuple of bool
        Whether places on the scale have an order. On another scale only the levels taken have a
        place: the query's is the first, the others are those of the answers, in their order.
    ends : tuple of (str, str)
        The ends of the scales; empty for levels without order.
    marks : tuple of dict
        The levels taken, by place; empty for numbers.
    query : tuple of float
        Places of the query.
    answers : tuple of tuple of float
        Places of each counterfactual.
    valid : tuple of bool
        Whether each reaches the target.
    accepted : tuple of (float, float)
        Accepted outputs, on the last scale.
    """

    names: tuple[str, ...]
    ordered: tuple[bool, ...]
    ends: tuple[tuple[str, str], ...]
    marks: tuple[dict[float, str], ...]
    query: tuple[float, ...]
    answers: tuple[tuple[float, ...], ...]
    valid: tuple[bool, ...]
    accepted: Intervals


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
    """Outputs and effects as whole units of the last decimal, so that they add up as printed.

    Parameters
    ----------
    decimals : int
        Number of decimals.
    before : int
        Output of the query.
    after : int
        Output of the counterfactual.
    effects : list of int
        Effects; they sum up to the difference of the outputs.
    """

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
    """Return the output before and after a counterfactual."""
    answer = view.answer
    after = answer.counterfactuals[which]
    scale = _output_scale(answer, after.output)
    texts = rounding.texts
    if rounding.decimals > _MOST_DECIMALS:
        texts = wording.pair_apart(answer.output, after.output)
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
    """Return the move of feature `j`; `text` is its rounded effect."""
    region = view.region
    before = float(region.query[j])
    after = float(view.answers[which, j])
    scale = Scale.of(region, j, after)
    period = region.period[j]
    name = region.names[j]
    first, second = scale.move(before, after)
    if name in view.answer.counterfactuals[which].changes:  # the cells, in the type of the column
        first, second = wording.both(*view.answer.counterfactuals[which].changes[name])
    is_derived = j not in view.moved(which)
    short = first, second
    if region.axes[j].feature.numeric:
        short = (
            _rounded_if_long(first, before, after),
            _rounded_if_long(second, after, before) if is_derived else second,
        )
    return Change(
        name=str(name),
        before=first,
        after=second,
        short=short,
        start=scale.place(before),
        end=scale.place(after),
        allowed=(scale.place(region.low[j]), scale.place(region.high[j])),
        ends=scale.ends,
        ordered=scale.ordered,
        levels=tuple(scale.place(code) for code in scale.levels),
        wraps=bool(period and abs(after - before) > period / 2),
        effect=effect,
        effect_text=text,
        derived=is_derived,
    )


def _rounded_if_long(text: str, value: float, other: float) -> str:
    """Return the text of a value, or fewer digits that still tell it from another value."""
    if len(text) <= _MOST_LETTERS:
        return text
    return wording.number_apart(value, [other])


def _output_scale(answer: Explanation, *outputs: float) -> Scale:
    """Return a scale with room for some outputs and all others of the answer."""
    low, high = output_range(answer, 0.06, *outputs)
    return Scale(Real(low, high), low, high)


def movement_info(answers: Sequence[Explanation], most: int = 30) -> MovementInfo:
    """Return how often and how far features move in the best answers, for `most` features."""
    by_name: dict[str, list[Move]] = defaultdict(list)
    for move in chain.from_iterable(map(moves, answers)):
        by_name[str(move.feature)].append(move)
    ordered = sorted(by_name.items(), key=lambda item: -len(item[1]))
    movements = tuple(_movement(name, found) for name, found in ordered[:most])
    n_changing = sum(bool(answer.best.changes) for answer in answers)
    return MovementInfo(movements, max(0, len(ordered) - most), n_changing)


def _movement(name: str, found: Sequence[Move]) -> Movement:
    """Return the moves of one feature."""
    steps = np.array([move.scaled for move in found if not math.isnan(move.step)])
    transitions = Counter(move.words for move in found if math.isnan(move.step))
    return Movement(name, len(found), steps, tuple(transitions.most_common()))


def alternatives_info(view: View, most: int = 12) -> AlternativesInfo:
    """Return all counterfactuals side by side, on at most `most` features that they change."""
    answer = view.answer
    region = view.region
    found = answer.counterfactuals
    features = _moved_features(view)[:most]
    outputs = [each.output for each in found]
    output_scale = _output_scale(answer, *outputs)
    scales = [*(_parallel_scale(view, j) for j in features), output_scale]
    codes = np.vstack([region.query, view.answers])[:, features]
    table = np.column_stack([codes, [answer.output, *outputs]])  # the output on the last scale
    query, *others = (_places(scales, row) for row in table.tolist())
    names = [str(region.names[j]) for j in features]
    return AlternativesInfo(
        names=(*names, wording.Output.of(answer.about).label),
        ordered=tuple(scale.ordered for scale in scales),
        ends=tuple(scale.ends for scale in scales),
        marks=tuple(map(_marks, scales, table.T.tolist())),
        query=query,
        answers=tuple(others),
        valid=tuple(each.valid for each in found),
        accepted=_accepted_places(answer, output_scale),
    )


def _moved_features(view: View) -> list[int]:
    """Return the features that counterfactuals change, the most effective ones of each first."""
    moved: dict[int, None] = {}
    for k in range(len(view.answer.counterfactuals)):
        moved |= dict.fromkeys(j for j, _ in view.by_effect(k))
    return list(moved)


def _accepted_places(answer: Explanation, scale: Scale) -> tuple[tuple[float, float], ...]:
    """Return the accepted outputs as places on a scale."""
    return tuple((scale.place(low), scale.place(high)) for low, high in answer.accepted)


def _parallel_scale(view: View, j: int) -> Scale | LevelsTaken:
    """Return the scale of feature `j` for all answers."""
    region = view.region
    codes = view.answers[:, j].tolist()
    if not region.categorical[j]:
        return Scale.of(region, j, *codes)
    return LevelsTaken.of(region.axes[j].feature, [float(region.query[j]), *codes])


def _places(scales: Sequence[Scale | LevelsTaken], codes: Sequence[float]) -> tuple[float, ...]:
    """Return the place of each code on its scale."""
    return tuple(scale.place(code) for scale, code in zip(scales, codes, strict=True))


def _marks(scale: Scale | LevelsTaken, codes: Sequence[float]) -> dict[float, str]:
    """Return the labels of levels, by place; none for numbers."""
    if not scale.feature.has_levels:
        return {}
    return {scale.place(code): scale.label(code) for code in codes}
