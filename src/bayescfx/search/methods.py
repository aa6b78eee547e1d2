"""Searches by name.

Nothing big is imported here: the help of the command line shows the names.
"""

from __future__ import annotations

#: The class of each search, as ``package.module:Class``.
METHODS: dict[str, str] = {
    "auto": "bayescfx.search.auto:Auto",
    "bayes-cfx": "bayescfx.search.bayes:BayesCFX",
    "sweep": "bayescfx.search.sweep:Sweep",
    "exact": "bayescfx.search.exact.exact_search:Exact",
    "bayes": "bayescfx.search.baselines:NaiveBayes",
    "random": "bayescfx.search.baselines:RandomSearch",
    "lbfgsb": "bayescfx.search.baselines:LBFGSB",
    "gradient": "bayescfx.search.gradient:ProjectedGradient",
}
