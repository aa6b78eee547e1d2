"""The surrogate of the model: an exact Gaussian process."""

from bayescfx.surrogate.evidence import Hyperparameters
from bayescfx.surrogate.process import GaussianProcess

__all__ = ["GaussianProcess", "Hyperparameters"]
