"""The front door: `explain`, `explain_many`, and tables of queries without end."""

from bayescfx.explainer.front import explain, explain_many
from bayescfx.explainer.stream import explain_partition, explain_stream

__all__ = ["explain", "explain_many", "explain_partition", "explain_stream"]
