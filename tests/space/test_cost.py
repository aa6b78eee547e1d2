"""What moving costs."""

from __future__ import annotations

from typing import Any

import pytest

from bayescfx.errors import SpaceError
from bayescfx.space.cost import Cost


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": -1}, "`weight` must be a number >= 0; got -1"),
        ({"norm": 0.5}, "`norm` must be 0 or a number >= 1; got 0.5"),
        ({"norm": "1"}, "`norm` must be 0 or a number >= 1; got '1'"),
        ({"per_feature": {"a": float("nan")}}, r"`per_feature\['a'\]` must be a number >= 0"),
    ],
)
def test_an_impossible_cost_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Cost(**settings)
