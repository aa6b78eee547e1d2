"""Where to look next: EI-CFX and its logarithm as pure functions of arrays (Section 3)."""

from bayescfx.acquisition.ei import LogEI, ei_cfx, ei_cfx_gradient, log_ei_cfx, log_ei_cfx_gradient
from bayescfx.acquisition.normal import (
    expected_improvement,
    log_expected_improvement,
    log_expected_improvement_gradient,
    log_probability_in,
    log_probability_in_with_gradient,
)

__all__ = [
    "LogEI",
    "ei_cfx",
    "ei_cfx_gradient",
    "expected_improvement",
    "log_ei_cfx",
    "log_ei_cfx_gradient",
    "log_expected_improvement",
    "log_expected_improvement_gradient",
    "log_probability_in",
    "log_probability_in_with_gradient",
]
