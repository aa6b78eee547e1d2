"""Settings of the surrogate are checked when they are created."""

from __future__ import annotations

import pytest

import bayescfx as cfx


@pytest.mark.parametrize("points", [-1, 1, 2.5, "many", True])
def test_points_must_be_a_whole_number(points: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`points` must be a whole number of at least 2"):
        cfx.SurrogateSettings(points=points)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("wrong", ["matern", "", None, ["rbf"]])
def test_unknown_kernel_is_an_error(wrong: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`kernel` must be one of 'matern52', 'rbf', 't"):
        cfx.SurrogateSettings(kernel=wrong)  # type: ignore[arg-type]  # the point


def test_unknown_mean_is_an_error() -> None:
    with pytest.raises(cfx.SettingsError, match="`mean` must be 'standard' or 'zero'; got 'one'"):
        cfx.SurrogateSettings(mean="one")
