"""The peers' side of the efficiency benchmark; runs in an environment of their own.

Usage: ``python -m benchmarks.peer_efficiency request.json``. The models are fitted again there,
from the same data with the same seeds. Prints one line of JSON per question once it is answered.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import TOLERANCE, Array, Case, fitted, table

SAMPLES, RESTARTS, RAW_SAMPLES = 128, 4, 512


def botorch_step(U: Array, y: Array, asked: Case) -> tuple[Array, bool]:
    """Return the next point of the composite loop, and whether the fit succeeded.

    The surrogate is fitted to f; qLogEI of the potential of f is maximised.

    Parameters
    ----------
    U : ndarray of shape (n, d)
        Evaluated points in the unit cube.
    y : ndarray of shape (n,)
        The model's outputs for them.
    asked : Case
        The question, which defines the potential.
    """
    import torch
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.exceptions import ModelFittingError
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

    def potential(samples: torch.Tensor, X: torch.Tensor | None = None) -> torch.Tensor:
        z = ((samples[..., 0] - asked.output) / (asked.target - asked.output)).clamp_min(0.0)
        return z**2 * torch.exp(1.0 - z**2)

    outputs = torch.tensor(y)[:, None]
    process = SingleTaskGP(torch.tensor(U), outputs)  # standardises the outputs itself
    fitted_well = True
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    except ModelFittingError:
        fitted_well = False
        process.eval()  # goes on with the hyperparameters that it has
    acquisition = qLogExpectedImprovement(
        process,
        best_f=potential(outputs).max(),
        objective=GenericMCObjective(potential),
        sampler=SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=0),
    )
    cube = torch.tensor([[0.0] * U.shape[1], [1.0] * U.shape[1]])
    found, _ = optimize_acqf(acquisition, cube, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
    return np.asarray(found[0].numpy(), dtype=np.float64), fitted_well


def botorch_loop(asked: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Return what the composite loop saw within its budget, and the CPU seconds of each step.

    It starts from the query and the points of the unit cube in ``request["start"]``.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.double)
    torch.manual_seed(0)
    rows, predict = table(asked.data), fitted(asked.data, asked.model).predict
    low, span = rows.low, rows.high - rows.low
    U = np.vstack([(asked.query - low) / span, request["start"]])
    y = np.concatenate([predict(asked.query[None]), predict(low + U[1:] * span)])
    steps: list[float] = []
    failed = 0
    while len(y) < request["budget"]:
        begin = time.process_time()
        u, fitted_well = botorch_step(U, y, asked)
        steps.append(time.process_time() - begin)
        failed += not fitted_well
        U = np.vstack([U, u])
        y = np.append(y, predict((low + u * span)[None]))
    return {
        "case": asked.key,
        "target": asked.target,
        "outputs": [float(v) for v in y],
        "step_seconds": steps,
        "failed_fits": failed,
    }


@dataclass
class Counted:
    """A model that takes dice-ml's frames and counts their rows."""

    function: Callable[[Array], Array]
    names: list[str]
    rows: int = 0

    def predict(self, frame: Any) -> Array:
        """Return the outputs of a frame's rows."""
        self.rows += len(frame)
        return self.function(frame[self.names].to_numpy(np.float64))


def dice_random(asked: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Return the nearness of dice-ml's random method with its default settings, one answer."""
    import dice_ml
    import pandas as pd
    from raiutils.exceptions import UserConfigValidationException

    rows = table(asked.data)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    frame = pd.DataFrame(rows.X, columns=names).assign(y=rows.y)
    model = Counted(fitted(asked.data, asked.model).predict, names)
    data = dice_ml.Data(dataframe=frame, continuous_features=names, outcome_name="y")
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="regressor")
    explainer = dice_ml.Dice(data, wrapped, method="random")
    miss = TOLERANCE * abs(asked.target - asked.output)
    query = pd.DataFrame(asked.query[None], columns=names)
    model.rows, begin = 0, time.process_time()
    try:
        found = (
            explainer.generate_counterfactuals(
                query,
                total_CFs=1,
                desired_range=[asked.target - miss, asked.target + miss],
                random_seed=0,
                verbose=False,
            )
            .cf_examples_list[0]
            .final_cfs_df
        )
    except UserConfigValidationException:  # its way to say that it found none
        found = None
    seconds = time.process_time() - begin
    answer = {"case": asked.key, "rows": model.rows, "seconds": seconds, "hit": False}
    if found is None or not len(found):
        return answer | {"distance": None, "features": None}
    row = found[names].to_numpy(np.float64)[0]
    output = float(fitted(asked.data, asked.model).predict(row[None])[0])
    return answer | {
        "hit": asked.hit(output),  # what it hands out, scored again by the model
        "distance": rows.distance(asked.query, row),
        "features": int((row != asked.query).sum()),
    }


PEERS = {"botorch": botorch_loop, "dice": dice_random}


def main(path: str) -> None:
    warnings.simplefilter("ignore")  # their warnings are not what is measured
    request = json.loads(Path(path).read_text())
    for given in request["cases"]:
        print("\n" + json.dumps(PEERS[request["peer"]](Case(**given), request)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
