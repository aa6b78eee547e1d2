"""What `bayescfx.plots` offers for completion."""

from __future__ import annotations

from bayescfx import plots


def test_completion_offers_the_public_names_only() -> None:
    assert dir(plots) == sorted(plots.__all__)
    assert all(callable(getattr(plots, name)) for name in dir(plots))
