"""The acquisition: EI-CFX and its logarithm as pure functions of arrays (Section 3)."""

from bayescfx.acquisition.ei import LogEI as LogEI
from bayescfx.acquisition.ei import ei_cfx as ei_cfx
from bayescfx.acquisition.ei import ei_cfx_gradient as ei_cfx_gradient
from bayescfx.acquisition.ei import log_ei_cfx as log_ei_cfx
from bayescfx.acquisition.ei import log_ei_cfx_gradient as log_ei_cfx_gradient
from bayescfx.acquisition.normal import expected_improvement as expected_improvement
from bayescfx.acquisition.normal import log_expected_improvement as log_expected_improvement
from bayescfx.acquisition.normal import log_probability_in as log_probability_in
