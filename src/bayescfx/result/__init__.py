"""The answer: counterfactuals, verdict, words, JSON."""

from bayescfx.result.counterfactual import Counterfactual as Counterfactual
from bayescfx.result.explanation import Explanation as Explanation
from bayescfx.result.explanations import Explanations as Explanations
