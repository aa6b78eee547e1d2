"""Scored rows in memory or in a file, and the evaluator that adds to them."""

from bayescfx.evaluations.data import Evaluations

__all__ = ["Evaluations"]
