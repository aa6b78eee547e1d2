"""What is known: rows and outputs, in memory or in a file, and who may ask for more."""

from bayescfx.evaluations.data import Evaluations

__all__ = ["Evaluations"]
