"""The front door: `explain` and `explain_many`."""

from bayescfx.explainer.front import explain, explain_many

__all__ = ["explain", "explain_many"]
