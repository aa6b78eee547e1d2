"""BoTorch's side of the surrogate benchmark; runs in BoTorch's own environment.

Usage: ``python peer_surrogate.py data.npz``. Prints one line of JSON: seconds, medians.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median wall-clock seconds of a call, after a warm-up call."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def fitted(
    X: torch.Tensor, y: torch.Tensor, state: dict[str, torch.Tensor] | None = None
) -> SingleTaskGP:
    """Return a fitted Gaussian process, started from the hyperparameters of another."""
    model = SingleTaskGP(X, y[:, None])
    if state is not None:
        model.load_state_dict(state, strict=False)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def hyperparameters(model: SingleTaskGP) -> dict[str, torch.Tensor]:
    """Return the state without the standardisation, which belongs to the data."""
    return {k: v for k, v in model.state_dict().items() if not k.startswith("outcome_transform")}


def posterior_with_gradient(model: SingleTaskGP, T: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return mean, std and gradients, with one batch per row, BoTorch's fastest way."""
    x = T[:, None, :].clone().requires_grad_(True)
    posterior = model.posterior(x)
    mean = posterior.mean.reshape(-1)
    std = posterior.variance.sqrt().reshape(-1)
    (dmean,) = torch.autograd.grad(mean.sum(), x, retain_graph=True)
    (dstd,) = torch.autograd.grad(std.sum(), x)
    return mean, std, dmean, dstd


def main(path: str) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # warnings of the other libraries do not matter here
    stored = np.load(path)
    X, y, T = (torch.as_tensor(stored[name]) for name in ("X", "y", "T"))
    earlier = hyperparameters(fitted(X[:-1], y[:-1]))
    model = fitted(X, y)
    seconds = {
        "fit": median_seconds(lambda: fitted(X, y), 7),
        "warm_fit": median_seconds(lambda: fitted(X, y, earlier), 7),
        "gradient": median_seconds(lambda: posterior_with_gradient(model, T), 7),
    }
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
