"""Classic expected improvement and the probability of intervals, against 60 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from bayescfx.acquisition import (
    expected_improvement,
    log_expected_improvement,
    log_probability_in,
)
from tests.acquisition.cases import points
from tests.oracles import improvement


def test_classic_ei_equals_60_digits() -> None:
    with mp.workdps(60):
        for u in (-1e6, -1e3, -31.0, -29.0, -5.0, -1.0001, -0.9999, 0.0, 3.0, 40.0):
            for s in (1e-9, 1.0, 1e3):
                x = mp.mpf(u * s) / mp.mpf(s)
                phi = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
                upper = mp.erfc(-x / mp.sqrt(2)) / 2
                with mp.workdps(400):
                    x = +x
                    exact = mp.mpf(s) * (
                        x * mp.erfc(-x / mp.sqrt(2)) / 2 + mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
                    )
                value, d_mean, d_std = log_expected_improvement([u * s], [s], 0.0)
                assert float(value[0]) == pytest.approx(float(mp.log(exact)), rel=1e-12, abs=1e-9)
                assert float(d_mean[0]) == pytest.approx(float(upper / exact), rel=1e-8)
                assert float(d_std[0]) == pytest.approx(float(phi / exact), rel=1e-8)


def test_classic_ei_and_its_gradient_are_those_of_the_textbook() -> None:
    mean, std = points()
    u = mean / std
    phi = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    cdf = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in u])
    sure = u > -3.0
    np.testing.assert_allclose(
        expected_improvement(mean, std, 0.0)[sure], (mean * cdf + std * phi)[sure], rtol=1e-9
    )
    value = expected_improvement(mean, std, 0.0)[sure]
    d_mean, d_std = (part[sure] for part in log_expected_improvement(mean, std, 0.0)[1:])
    np.testing.assert_allclose(value * d_mean, cdf[sure], rtol=1e-9)
    np.testing.assert_allclose(value * d_std, phi[sure], rtol=1e-9, atol=1e-300)


def test_classic_ei_without_deviation_is_the_gain() -> None:
    assert expected_improvement([2.0, -1.0], 0.0, 0.5).tolist() == pytest.approx([1.5, 0.0])
    _, d_mean, d_std = log_expected_improvement([2.0, -1.0], 0.0, 0.0)
    assert d_mean.tolist() == [0.5, 0.0]
    assert d_std.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "interval", [(-1.0, 1.0), (0.0, math.inf), (-math.inf, -2.0), (1.0, 1.0 + 1e-9), (-40.0, 40.0)]
)
def test_the_probability_of_an_interval_equals_60_digits(interval: tuple[float, float]) -> None:
    low = interval[0]
    with mp.workdps(60):

        def exact(m: Any, s: Any) -> Any:
            ends = [mp.inf if math.isinf(e) else mp.mpf(e) for e in interval]
            if low == -math.inf:
                ends[0] = -mp.inf
            return mp.log(improvement._mass((ends[0] - m) / s, (ends[1] - m) / s))

        for mean in (-50.0, -1.0, 0.0, 0.3, 2.0, 1000.0):
            for std in (0.05, 1.0, 300.0):
                m, s = mp.mpf(mean), mp.mpf(std)
                h = s * mp.mpf(10) ** -15
                value = float(exact(m, s))
                out = log_probability_in([mean], [std], (interval,))
                assert float(out.value[0]) == pytest.approx(value, rel=1e-12, abs=1e-9)
                d_mean = (exact(m + h, s) - exact(m - h, s)) / (2 * h)
                d_std = (exact(m, s + h) - exact(m, s - h)) / (2 * h)
                assert float(out.d_mean[0]) == pytest.approx(
                    float(d_mean), rel=1e-6, abs=1e-11 / std
                )
                assert float(out.d_std[0]) == pytest.approx(float(d_std), rel=1e-6, abs=1e-11 / std)


def test_the_probability_of_a_union_is_the_sum() -> None:
    mean, std = points()
    parts = [log_probability_in(mean, std, (i,)).value for i in ((-2.0, -1.0), (1.0, 1.5))]
    both = log_probability_in(mean, std, ((-2.0, -1.0), (1.0, 1.5))).value
    np.testing.assert_allclose(both, np.logaddexp(*parts), rtol=1e-12)
    assert log_probability_in([0.0], [1.0], ()).value.tolist() == [-math.inf]
    sure = log_probability_in([0.0, 2.0], [0.0, 0.0], ((-1.0, 1.0),))
    assert sure.value.tolist() == [0.0, -math.inf]
    assert log_probability_in([0.0], [1.0], ((0.5, 0.5),)).value.tolist() == [-math.inf]
