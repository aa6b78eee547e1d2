"""Section 2: potentials, their target sets, and the threshold sets they replace."""

from __future__ import annotations

import numpy as np
import pytest

from bayescfx.errors import TargetError
from bayescfx.potentials import AEP, contains
from bayescfx.theory.definitions import ThresholdSet, in_target_set, is_potential
from tests.potentials.test_potentials import FAMILY


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_a_threshold_is_positive(epsilon: float) -> None:
    with pytest.raises(TargetError, match=f"`epsilon` positive; got 0.0 and {epsilon}"):
        ThresholdSet(0.0, epsilon)


def test_a_potential_must_not_be_maximal_at_the_query() -> None:
    assert is_potential(AEP(0.0, 1.0), 0.0, [-1.0, 0.5])
    assert not is_potential(AEP(0.0, 1.0), 0.0, [-1.0, -0.5])
    assert not is_potential(AEP(0.0, 1.0), 1.0, [0.9, 1.1])
    assert not is_potential(AEP(0.0, 1.0), 0.0, [])


def test_membership_in_the_target_set_is_that_of_its_intervals() -> None:
    y = np.linspace(-4.0, 4.0, 4001)
    for potential in FAMILY:
        for epsilon in (0.0, 0.01, 0.3, 0.9):
            mask = in_target_set(potential, y, epsilon, potential.peak)
            value = potential.value(y)
            clear = np.abs(value - (1.0 - epsilon) * potential.peak) > 1e-12
            inside = contains(potential.target_set(epsilon), y)
            np.testing.assert_array_equal(mask[clear], inside[clear])
