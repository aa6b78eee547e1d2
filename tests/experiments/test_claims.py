"""Verdicts follow from numbers by stated rules."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.claims import Claim, Estimate, bootstrap, exactly, fact


def judged(margin: Estimate | None) -> str:
    return Claim("a.b", "Section 1", "says", "finds", margin, "because").verdict


def test_the_position_of_the_interval_decides_the_verdict() -> None:
    assert judged(Estimate(0.2, 0.1, 0.3)) == "reproduced"
    assert judged(Estimate(-0.2, -0.3, -0.1)) == "contradicted"
    assert judged(Estimate(0.2, -0.1, 0.3)) == "undecided"
    assert judged(Estimate(0.2, 0.0, 0.3)) == "undecided"
    assert judged(None) == "proved"
    assert judged(fact(True)) == "reproduced"
    assert judged(fact(False)) == "contradicted"


def test_an_interval_is_shifted_and_negated_with_its_figure() -> None:
    estimate = Estimate(0.5, 0.4, 0.7)
    assert estimate.less(0.5).low == pytest.approx(-0.1)
    assert (-estimate).low == -0.7
    assert estimate.meets(Estimate(0.8, 0.7, 0.9))
    assert not estimate.meets(exactly(0.39))
    assert estimate.text(".1f") == "0.5 [0.4, 0.7]"
    assert exactly(2).text(".0f") == "2"


def test_the_bootstrap_interval_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(0.0, 1.0, size=(300, 36))
    found = [bootstrap(values, resamples=400, seed=k) for k, values in enumerate(samples)]
    covered = np.mean([e.low <= 0.0 <= e.high for e in found])
    assert 0.89 < covered < 0.98  # percentile intervals of 36 values are slightly short
    assert found[0].value == pytest.approx(samples[0].mean())


def test_the_bootstrap_is_the_same_for_the_same_seed() -> None:
    values = np.arange(20.0)
    assert bootstrap(values, np.median) == bootstrap(values, np.median)
    assert bootstrap(values, seed=1) != bootstrap(values)
