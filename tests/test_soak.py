"""A short soak test; `python -m tests.soak` takes longer."""

from __future__ import annotations

import sys
import warnings

import pytest

import bayescfx as cfx
from tests import soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.slow
def test_ten_seconds_of_random_questions_and_faults() -> None:
    done = soak.run(10, seed=1000)
    assert done.answered > 0


@pytest.mark.parametrize("seed", [883])
def test_seeds_that_failed_in_a_long_run(seed: int) -> None:
    """Potentials of 1e-128, whose derivatives overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cfx.BayesCFXWarning)
        soak.question(soak.Soak(), seed)


@pytest.mark.slow
def test_two_minutes_of_random_questions_and_faults() -> None:
    done = soak.run(120, seed=2000)
    assert done.answered > 20
    assert done.failed
    assert done.killed


def test_a_leak_is_detected() -> None:
    flat = [(1000, 6, 1, 0)] * 6
    soak.Soak(asked=9, use=flat).check_use()
    for left in ((10**6, 6, 1, 0), (1000, 60, 1, 0), (1000, 6, 60, 0), (1000, 6, 1, 1)):
        with pytest.raises(AssertionError, match=r"open files|threads|memory|child"):
            soak.Soak(asked=9, use=[*flat, left]).check_use()
