"""BoTorch's side of the proposal benchmark; runs in BoTorch's own environment.

Usage: ``python peer_propose.py question.npz repeats``. Prints one line of JSON: the median seconds
of ``optimize_acqf_mixed_alternating`` with its default settings, its points and their values.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
import warnings

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.kernels.categorical import CategoricalKernel
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean


class LogEICFX(AnalyticAcquisitionFunction):
    """Log EI-CFX as a log-sum-exp over fixed nodes of the superlevel interval."""

    def __init__(self, model: SingleTaskGP, nodes: torch.Tensor, log_weights: torch.Tensor) -> None:
        super().__init__(model=model)
        self.register_buffer("nodes", nodes)
        self.register_buffer("log_weights", log_weights)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return values of shape (n,) for X of shape (n, 1, d)."""
        mean, std = (part.reshape(X.shape[:-2]) for part in self._mean_and_sigma(X))
        z = (self.nodes - mean[..., None]) / std[..., None]
        inner = torch.logsumexp(self.log_weights - 0.5 * z**2, dim=-1)
        return inner - torch.log(std) - 0.5 * math.log(2 * math.pi)


def kernel(stored: dict[str, np.ndarray]) -> Kernel:
    """Return our RBF kernel: unordered levels as an exponentiated Hamming distance."""
    scales = torch.tensor(stored["lengthscales"])
    unordered = stored["categorical"].tolist()
    ordered = [j for j in range(len(scales)) if j not in unordered]
    rbf = RBFKernel(ard_num_dims=len(ordered), active_dims=ordered)
    rbf.lengthscale = scales[ordered]
    product: Kernel = rbf
    if unordered:
        hamming = CategoricalKernel(ard_num_dims=len(unordered), active_dims=unordered)
        hamming.lengthscale = 2.0 * scales[unordered] ** 2 / len(unordered)
        product = rbf * hamming
    scaled = ScaleKernel(product)
    scaled.outputscale = torch.tensor(float(stored["output_scale"]))
    return scaled


def acquisition(stored: dict[str, np.ndarray]) -> LogEICFX:
    """Return the acquisition on a surrogate with the given hyperparameters, without a fit."""
    X = torch.tensor(stored["X"])
    y = torch.tensor(stored["y"])
    offset = y.mean()
    scale = y.std(unbiased=False)
    model = SingleTaskGP(
        X,
        ((y - offset) / scale)[:, None],
        train_Yvar=torch.full((len(y), 1), float(stored["noise"]), dtype=torch.double),
        covar_module=kernel(stored),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    model.eval()
    nodes = (torch.tensor(stored["nodes"]) - offset) / scale
    # densities in standardised units are `scale` times those in the units of y
    return LogEICFX(model, nodes, torch.tensor(stored["log_weights"]) - torch.log(scale))


def main(path: str, repeats: int) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.double)
    warnings.simplefilter("ignore")  # warnings of the other libraries do not matter here
    stored = dict(np.load(path))
    function = acquisition(stored)
    bounds = torch.tensor(np.stack([stored["low"], stored["high"]]))
    unordered = stored["categorical"].tolist()
    finite = {
        int(name.removeprefix("choices_")): values.tolist()
        for name, values in stored.items()
        if name.startswith("choices_")
    }
    times = []
    points = []
    values = []
    for repeat in range(repeats + 1):
        torch.manual_seed(repeat)
        begin = time.process_time()
        point, value = optimize_acqf_mixed_alternating(
            function,
            bounds,
            discrete_dims={j: v for j, v in finite.items() if j not in unordered},
            cat_dims={j: v for j, v in finite.items() if j in unordered},
            q=1,
        )
        times.append(time.process_time() - begin)
        points.append(point[0].tolist())
        values.append(float(value))
    answer = {"seconds": statistics.median(times[1:]), "points": points[1:], "values": values[1:]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
