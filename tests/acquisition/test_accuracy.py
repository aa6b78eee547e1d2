"""Log EI-CFX against 60 digits: value and gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayescfx.potentials import AEP, SEP, LevelPotential, Plateau, Valley
from bayescfx.potentials.ep_family import PEAK
from tests.acquisition.cases import log_ei
from tests.oracles import improvement
from tests.oracles.improvement import Question

EPSILON = float(np.finfo(float).eps)


def proof(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def potential_of(question: Question) -> LevelPotential:
    match question.kind:
        case "plateau":
            return Plateau(*question.shape)
        case "sep":
            return SEP(*question.shape)
        case "valley":
            return Valley(*question.shape)
        case kind:
            origin, width = question.shape
            return AEP(origin, width, side=1 if kind == "aep+" else -1)


def assert_accurate(question: Question, potential: LevelPotential | None = None) -> None:
    """Compare with the oracle to the documented accuracy."""
    out = log_ei(
        [question.mean], [question.std], potential or potential_of(question), question.best
    )
    truth = improvement.log_ei(question)
    error = float(abs(out.value[0] - truth))
    if not error <= 1e-8:
        assert error <= 1e-8 + 10.0 * improvement.ulp_effect(question), (question, error)
    assert_gradient_accurate(question, float(out.d_mean[0]), float(out.d_std[0]))


def assert_gradient_accurate(question: Question, d_mean: float, d_std: float) -> None:
    """Allow 1e-6 of the truth, and ten times what the last place of any input does to it.

    A symmetric potential's gradient is the sum of two terms that cancel between the sides: their
    roundings, two last places, come on top.
    """
    exact = improvement.gradient(question)
    misses = [float(abs(a - b)) for a, b in zip((d_mean, d_std), exact, strict=True)]
    # deep inside a range the truth is smaller than any normal number; in a valley's oracle, than
    # any difference can tell
    least = (1e-30 if question.kind == "valley" else 1e-300) / question.std
    bounds = [1e-6 * float(abs(b)) + least for b in exact]
    if any(not miss <= bound for miss, bound in zip(misses, bounds, strict=True)):
        effects = improvement.gradient_effect(question)
        sizes = improvement.term_sizes(question)
        for miss, bound, effect, size in zip(misses, bounds, effects, sizes, strict=True):
            allowed = bound + 10.0 * effect + 2.0 * EPSILON * size
            assert miss <= allowed, (question, misses, exact, effects, sizes)


def exponents(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False).map(lambda x: 10.0**x)


@st.composite
def levels(draw: st.DrawFn) -> float:
    """Thresholds from 0 to within 1e-12 of the peak, log-uniform at both ends."""
    kind = draw(st.sampled_from(["zero", "low", "high", "high"]))
    if kind == "zero":
        return 0.0
    if kind == "low":
        return draw(exponents(-15.0, -0.5))
    return PEAK * (1.0 - draw(exponents(-12.0, -0.05)))


@st.composite
def placed(draw: st.DrawFn, potential: LevelPotential, best: float, std: float) -> float:
    """A mean up to 1,000 deviations outside the superlevel set, or inside it."""
    low, high = draw(st.sampled_from(potential.superlevel(best)))
    away = draw(st.one_of(st.just(0.0), exponents(-2.0, 3.0)))
    choices = []
    if math.isfinite(low):
        choices.append(low - away * std)
    if math.isfinite(high):
        choices.append(high + away * std)
    ends = max(low, -1e3), min(high, 1e3)
    if ends[0] < ends[1]:
        choices.append(ends[0] + draw(st.floats(0.0, 1.0)) * (ends[1] - ends[0]))
    return float(draw(st.sampled_from(choices or [0.0])))


@st.composite
def ep_questions(draw: st.DrawFn) -> Question:
    kind = draw(st.sampled_from(["aep+", "aep-", "sep"]))
    width = draw(st.sampled_from([1.0, 0.37, 250.0]))
    origin = draw(st.sampled_from([0.0, 1.5, -30.0]))
    std = width * draw(exponents(-9.0, 3.0))
    best = draw(levels())
    shape = (origin, width)
    potential = potential_of(Question(kind, shape, 0.0, std, best))
    return Question(kind, shape, draw(placed(potential, best, std)), std, best)


@st.composite
def plateau_questions(draw: st.DrawFn) -> Question:
    width = draw(st.sampled_from([1.0, 0.37, 250.0]))
    span = draw(st.one_of(st.sampled_from([0.0, math.inf]), exponents(-3.0, 3.0)))
    low, high = 0.0, span * width
    if draw(st.booleans()):
        low, high = -high, 0.0
    std = width * draw(exponents(-9.0, 3.0))
    best = draw(levels())
    shape = (low, high, width)
    potential = potential_of(Question("plateau", shape, 0.0, std, best))
    return Question("plateau", shape, draw(placed(potential, best, std)), std, best)


@st.composite
def valley_questions(draw: st.DrawFn) -> Question:
    width = draw(st.sampled_from([1.0, 0.37, 250.0]))
    shape = (draw(st.sampled_from([0.0, 1.5, -30.0])), width)
    std = width * draw(exponents(-6.0, 3.0))
    best = min(draw(levels()), PEAK * (1.0 - 1e-9))
    potential = potential_of(Question("valley", shape, 0.0, std, best))
    return Question("valley", shape, draw(placed(potential, best, std)), std, best)


NEAR_PEAK = PEAK * (1.0 - 1e-12)
CORNERS = [
    # the table of cases that the closed form gets wrong
    Question("aep+", (0.0, 1.0), 0.8, 0.3, 0.2),
    Question("aep+", (0.0, 1.0), -0.5, 0.1, 0.3),
    Question("aep+", (0.0, 1.0), 0.5, 0.02, 0.3678),
    Question("aep+", (0.0, 1.0), 0.9, 0.001, 0.3678),
    # best = 0: an open interval, mass at the origin, in the far tail, and beyond it
    Question("aep+", (0.0, 1.0), 0.0, 1e-9, 0.0),
    Question("aep+", (0.0, 1.0), 1e-9, 1e-9, 0.0),
    Question("aep+", (0.0, 1.0), -1e6, 1e3, 0.0),
    Question("aep+", (0.0, 1.0), 1e3, 1.0, 0.0),
    Question("aep+", (0.0, 1.0), 30.0, 1e-3, 0.0),
    Question("aep-", (2.0, 3.0), 1.0, 1e3, 0.0),
    # within 1e-12 of the peak: at it, beside it, a thousand deviations away
    Question("aep+", (0.0, 1.0), 1.0, 1e-9, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0, 1e3, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0 + 1e-6, 1e-7, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0 - 1e-3, 1e-6, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), -1e6, 1e3, NEAR_PEAK),
    Question("aep-", (5.0, 2.0), 3.0, 1e-5, PEAK * (1.0 - 1e-9)),
    # the smallest threshold there is
    Question("aep+", (0.0, 1.0), 20.0, 3.0, 5e-324),
    Question("aep+", (0.0, 1.0), 1e-8, 1e-9, 1e-17),
    # between the two sides
    Question("sep", (0.0, 1.0), 0.0, 0.1, 0.3),
    Question("sep", (0.0, 1.0), 1e-3, 1e3, 0.3),
    Question("sep", (-4.0, 0.5), -4.2, 1e-4, NEAR_PEAK),
    # a negative threshold counts the whole line
    Question("aep+", (0.0, 1.0), -3.0, 0.2, -0.1),
    Question("sep", (0.0, 1.0), 0.5, 0.2, -1e-9),
    # plateaus: inside, at the corner, outside, a point, half lines, far away
    Question("plateau", (0.0, 1.0, 1.0), 0.5, 1e-9, 0.3),
    Question("plateau", (0.0, 1.0, 1.0), 1.0, 1e-9, 0.3),
    Question("plateau", (0.0, 1.0, 1.0), 1.0, 1e3, NEAR_PEAK),
    Question("plateau", (0.0, 0.0, 1.0), 0.1, 0.01, 0.36),
    Question("plateau", (0.0, math.inf, 1.0), -5.0, 0.3, 0.2),
    Question("plateau", (-math.inf, 0.0, 0.5), 1e6, 1e3, 0.0),
    Question("plateau", (0.0, 1.0, 1.0), 100.0, 30.0, 0.0),
    Question("plateau", (0.0, 1.0, 1.0), 20.0, 5.0, 1e-6),
    Question("plateau", (0.0, 1.0, 1.0), -2.0, 0.3, -0.05),
    # valleys: at the origin, on a slope, at the edge, inside, with a wide and a negative threshold
    Question("valley", (0.0, 1.0), 0.0, 0.1, 0.3),
    Question("valley", (0.0, 1.0), 0.0, 0.5, 0.0),
    Question("valley", (-4.0, 0.5), -4.2, 0.01, 0.2),
    Question("valley", (0.0, 1.0), 0.7, 1e-3, 0.3),
    Question("valley", (0.0, 1.0), 1.0, 1e-3, 0.3678),
    Question("valley", (2.0, 3.0), -4.0, 1.0, 0.1),
    Question("valley", (0.0, 1.0), 0.3, 1e3, 0.3),
    Question("valley", (0.0, 1.0), 0.5, 0.02, 0.3678),
    Question("valley", (0.0, 1.0), 0.5, 0.2, -0.1),
    # where a part of the gradient is zero, or as good as zero
    Question("aep+", (0.0, 1.0), 0.0, 1.0, 0.0),
    Question("sep", (0.0, 1.0), 1e-7, 0.05, 0.3),
    Question("sep", (0.0, 1.0), 0.0003162277818282284, 1.0, 1e-7),
    Question("plateau", (0.0, 1.0, 1.0), 0.4, 0.03, 0.3),
    Question("plateau", (0.0, math.inf, 1.0), 3.0, 0.1, 0.2),
]


@pytest.mark.parametrize("question", CORNERS, ids=str)
def test_log_ei_and_gradient_are_accurate_at_the_corners(question: Question) -> None:
    assert_accurate(question)


@proof(60)
@given(ep_questions())
def test_log_ei_and_gradient_of_the_ep_family_are_accurate(question: Question) -> None:
    assert_accurate(question)


@proof(6)
@given(plateau_questions())
def test_log_ei_and_gradient_of_plateaus_are_accurate(question: Question) -> None:
    assert_accurate(question)


@proof(30)
@given(valley_questions())
def test_log_ei_and_gradient_of_valleys_are_accurate(question: Question) -> None:
    assert_accurate(question)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@proof(3000)
@given(ep_questions())
def test_log_ei_of_the_ep_family_is_accurate_on_thousands_of_cases(question: Question) -> None:
    assert_accurate(question)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@proof(300)
@given(plateau_questions())
def test_log_ei_of_plateaus_is_accurate_on_hundreds_of_cases(question: Question) -> None:
    assert_accurate(question)


class Known:
    """A potential as a new family would be written: nothing but the protocol."""

    def __init__(self, inner: LevelPotential) -> None:
        self.value, self.slope, self.knots = inner.value, inner.slope, inner.knots
        self.superlevel, self.target_set = inner.superlevel, inner.target_set
        self.peak = inner.peak
        self.width = getattr(inner, "width", 1.0)


def is_resolved_by_values(question: Question) -> bool:
    """Return whether differences of values resolve the improvement in double precision."""
    far_below = question.kind == "aep+" and question.mean > 27.0 and question.std <= 1.0
    return question.best != NEAR_PEAK and not far_below


@pytest.mark.parametrize("question", [q for q in CORNERS if is_resolved_by_values(q)], ids=str)
def test_a_potential_with_the_bare_protocol_is_as_accurate(question: Question) -> None:
    assert_accurate(question, potential=Known(potential_of(question)))


def test_the_oracle_agrees_with_adaptive_quadrature_of_the_definition() -> None:
    def ep(y: Any) -> Any:
        t = ((y - 0.5) / 2) ** 2
        return t * mp.exp(-t)

    def plateau(y: Any) -> Any:
        return mp.mpf(PEAK) / (1 + (max(0, -y, y - 1) / mp.mpf(0.5)) ** 2)

    def valley(y: Any) -> Any:
        t = min(1, abs((y - 0.5) / 2)) ** 2
        return t * mp.exp(-t)

    cases: list[tuple[Question, Callable[[Any], Any]]] = [
        (Question("aep+", (0.5, 2.0), 1.7, 0.6, 0.2), ep),
        (Question("plateau", (0.0, 1.0, 0.5), 1.7, 0.6, 0.2), plateau),
        (Question("valley", (0.5, 2.0), 1.7, 0.6, 0.2), valley),
    ]
    knots: dict[str, list[float]] = {"aep+": [0.75, 1], "plateau": [0, 1], "valley": [-1.5, 2.5]}
    for question, rho in cases:
        value = quadrature(question, rho, knots[question.kind])
        assert abs(float(value - improvement.log_ei(question))) < 1e-12


def quadrature(question: Question, rho: Callable[[Any], Any], knots: list[float]) -> Any:
    """Return log EI-CFX by adaptive quadrature of its definition, 30 deviations wide."""
    mean, std, best = mp.mpf(question.mean), mp.mpf(question.std), mp.mpf(question.best)

    def part(y: Any) -> Any:
        return (rho(y) - best) * mp.exp(-(((y - mean) / std) ** 2) / 2)

    with mp.workdps(30):
        total = mp.mpf(0)
        for low, high in potential_of(question).superlevel(question.best):
            ends = max(low, -20.0), min(high, 20.0)
            inner = [knot for knot in knots if ends[0] < knot < ends[1]]
            total += mp.quad(part, [ends[0], *inner, ends[1]])
        return mp.log(total / std / mp.sqrt(2 * mp.pi))
