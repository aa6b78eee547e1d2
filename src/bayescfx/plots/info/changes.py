"""The answer as changes: before and after on each feature's own scale, with their effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bayescfx.plots.info.scales import Scale
from bayescfx.plots.info.view import View
from bayescfx.potentials.levels import Intervals

MOST = 12  # changes shown
_PAD = 0.06  # room beside the outermost outputs


class Change(NamedTuple):
    """One feature's move; places are 0 to 1 on its own scale."""

    name: str
    before: str
    after: str
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
    """The model's output before and after; places are 0 to 1 between `low` and `high`."""

    before: float
    after: float
    low: float
    high: float
    start: float
    end: float
    accepted: Intervals
    reached: bool
    change: str


class ChangeInfo(NamedTuple):
    """A change chart in numbers: the most effective change first, derived ones last."""

    changes: tuple[Change, ...]
    hidden: int
    prediction: Prediction


def change_info(view: View, which: int = 0) -> ChangeInfo:
    """Return what a change chart shows.

    Parameters
    ----------
    view : View
        The answer.
    which : int, default 0
        Which of its counterfactuals.

    Returns
    -------
    ChangeInfo
    """
    moved, effects = view.moved(which), view.effects(which)
    effect = {} if effects is None else dict(zip(moved.tolist(), effects.tolist(), strict=True))
    whole = view.answer.counterfactuals[which].output - view.answer.output
    decimals = decimals_for([whole, *effect.values()])
    found = [
        _change(view, which, int(j), effect.get(int(j)), decimals) for j in view.by_effect(which)
    ]
    found += [_change(view, which, int(j)) for j in view.followed(which)]
    return ChangeInfo(
        tuple(found[:MOST]),
        max(0, len(found) - MOST),
        _prediction(view, which, signed(whole, decimals)),
    )


def _change(
    view: View, which: int, j: int, effect: float | None = None, decimals: int = 0
) -> Change:
    region = view.region
    before, after = float(region.query[j]), float(view.answers[which, j])
    scale = Scale.of(region, j, after)
    period = region.axes[j].period
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
        effect_text="" if effect is None else signed(effect, decimals),
        derived=j not in view.moved(which),
    )


def _prediction(view: View, which: int, change: str) -> Prediction:
    answer = view.answer
    before, after = answer.output, answer.counterfactuals[which].output
    ends = [end for interval in answer.accepted for end in interval if math.isfinite(end)]
    shown = [before, after, *answer.reachable, *ends]
    pad = _PAD * ((max(shown) - min(shown)) or 1.0)
    low, high = min(shown) - pad, max(shown) + pad
    places = [
        tuple(min(max((end - low) / (high - low), 0.0), 1.0) for end in interval)
        for interval in answer.accepted
    ]
    return Prediction(
        before=before,
        after=after,
        low=low,
        high=high,
        start=(before - low) / (high - low),
        end=(after - low) / (high - low),
        accepted=tuple((a, b) for a, b in places),
        reached=answer.counterfactuals[which].valid,
        change=change,
    )


def decimals_for(values: Sequence[float]) -> int:
    """Return how many decimals show the largest of some numbers with three digits.

    Examples
    --------
    >>> decimals_for([28.93, -0.002]), decimals_for([0.5]), decimals_for([4000.0])
    (1, 3, 0)
    """
    largest = max((abs(v) for v in values), default=0.0)
    return max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 0


def signed(value: float, decimals: int) -> str:
    """Return a number with its sign; nothing has none.

    Examples
    --------
    >>> signed(2.0, 1), signed(-0.5, 2), signed(-0.001, 1)
    ('+2.0', '−0.50', '0.0')
    """
    text = f"{abs(value):.{decimals}f}" if decimals <= 6 else f"{abs(value):.2e}"
    if float(text) == 0.0:
        return text
    return ("−" if value < 0 else "+") + text
