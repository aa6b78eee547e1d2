"""The front door: the Explainer, and functions that ask it in one line."""

from bayescfx.explainer.batches import Batch
from bayescfx.explainer.call_settings import CallSettings
from bayescfx.explainer.explainer import Explainer
from bayescfx.explainer.functions import (
    explain,
    explain_many,
    explain_partition,
    explain_stream,
)

__all__ = [
    "Batch",
    "CallSettings",
    "Explainer",
    "explain",
    "explain_many",
    "explain_partition",
    "explain_stream",
]
