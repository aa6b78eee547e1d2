"""The answer: counterfactuals, verdict, words, JSON."""

from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations

__all__ = ["Counterfactual", "Explanation", "Explanations"]
