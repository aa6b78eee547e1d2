"""How the surrogate is made is checked when it is said."""

from __future__ import annotations

import pytest

import bayescfx as cfx


@pytest.mark.parametrize("points", [-1, 1, 2.5, "many", True])
def test_the_most_rows_of_a_surrogate_are_a_whole_number(points: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`points` must be a whole number of at least 2"):
        cfx.SurrogateSettings(points=points)  # type: ignore[arg-type]  # the point of the test
