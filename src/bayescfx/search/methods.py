"""Searches by name."""

from bayescfx.search.auto import Auto
from bayescfx.search.baselines import LBFGSB, RandomSearch
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.naive import NaiveBayes
from bayescfx.search.question import Search
from bayescfx.search.sweep import Sweep

METHODS: dict[str, type[Search]] = {
    "auto": Auto,
    "bayes-cfx": BayesCFX,
    "sweep": Sweep,
    "bayes": NaiveBayes,
    "random": RandomSearch,
    "lbfgsb": LBFGSB,
    "gradient": ProjectedGradient,
}
