"""How the surrogate is made is checked when it is said."""

from __future__ import annotations

import pytest

import bayescfx as cfx


@pytest.mark.parametrize("points", [-1, 1, 2.5, "many", True])
def test_the_most_rows_of_a_surrogate_are_a_whole_number(points: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`points` must be a whole number of at least 2"):
        cfx.SurrogateSettings(points=points)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("wrong", ["matern", "", None, ["rbf"]])
def test_a_kernel_that_nobody_knows_is_an_error_when_it_is_said(wrong: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`kernel` must be one of 'matern52', 'rbf', 't"):
        cfx.SurrogateSettings(kernel=wrong)  # type: ignore[arg-type]  # the point


def test_a_mean_that_nobody_knows_is_an_error_when_it_is_said() -> None:
    with pytest.raises(cfx.SettingsError, match="`mean` must be 'standard' or 'zero'; got 'one'"):
        cfx.SurrogateSettings(mean="one")
