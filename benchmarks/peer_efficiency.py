"""The peers' side of the efficiency benchmark; runs in an environment of their own.

Usage: ``python -m benchmarks.peer_efficiency request.json``. The models are fitted again there,
from the same data with the same seeds. Prints one line of JSON per question once it is answered.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mixed import FRAMES, frame
from benchmarks.problems import Array, Case, fitted, table

SAMPLES, RESTARTS, RAW_SAMPLES = 128, 4, 512
PATIENCE = 120  # seconds for an answer of dice-ml


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

    function: Callable[[Any], Array]
    names: list[str]
    numbers: bool  # whether the function takes arrays
    rows: int = 0

    def predict(self, frame: Any) -> Array:
        """Return the outputs of a frame's rows, or their classes."""
        y = self._outputs(frame)
        return y if self.numbers else (y >= 0.5).astype(int)

    def predict_proba(self, frame: Any) -> Array:
        """Return the probabilities of both classes."""
        y = self._outputs(frame)
        return np.column_stack([1.0 - y, y])

    def _outputs(self, frame: Any) -> Array:
        self.rows += len(frame)
        some = frame[self.names]
        return self.function(some.to_numpy(np.float64) if self.numbers else some)


@dataclass
class Told:
    """What dice-ml is told of a question."""

    frame: Any  # the data, without what is to be predicted
    continuous: list[str]
    outcome: Any
    query: Any  # one row
    wish: dict[str, Any]  # the outputs wanted, and what may move


def told_numbers(asked: Case) -> Told:
    """Return a question about a table of numbers: reach a range, everything may move."""
    import pandas as pd

    rows = table(asked.data)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    query = pd.DataFrame(asked.query[None], columns=names)
    wish = {"desired_range": list(asked.accepted)}
    return Told(pd.DataFrame(rows.X, columns=names), names, rows.y, query, wish)


def told_mixed(asked: Case) -> Told:
    """Return a question about a mixed table: another class, under the table's rules."""
    rows = frame(asked.data)
    rules, dtypes = rows.rules, rows.X.dtypes
    texts = [name for name, mixed in zip(rows.names, rows.has_levels, strict=True) if mixed]
    numbers = [name for name in rows.names if name not in texts]
    plain = rows.X.astype(dict.fromkeys(texts, object))
    query = plain.iloc[[asked.row]]
    ranges: dict[str, list[Any]] = {name: list(ends) for name, ends in rules.within.items()}
    for name in rules.up:
        now = query[name].iloc[0]
        if name in numbers:
            ranges[name] = [now, rows.X[name].max()]
        else:
            levels = list(dtypes[name].categories)
            ranges[name] = levels[levels.index(now) :]
    free = [name for name in rows.names if name not in rules.fixed]
    wish = {"desired_class": 1, "permitted_range": ranges, "features_to_vary": free}
    return Told(plain, numbers, rows.y.astype(int), query, wish)


def dice(asked: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Return the nearness of one answer by a method of dice-ml with its default settings."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    mixed, method = asked.data in FRAMES, request["method"]
    told = told_mixed(asked) if mixed else told_numbers(asked)
    names = list(told.frame)
    model = Counted(fitted(asked.data, asked.model).predict, names, not mixed)
    data = dice_ml.Data(
        dataframe=told.frame.assign(y=told.outcome),
        continuous_features=told.continuous,
        outcome_name="y",
    )
    kind = "classifier" if mixed else "regressor"
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type=kind)
    explainer = dice_ml.Dice(data, wrapped, method=method)
    options = {"random_seed": 0} if method == "random" else {}
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the genetic method draws from the global states
    model.rows, begin = 0, time.process_time()
    try:
        with _patience(PATIENCE):
            found = explainer.generate_counterfactuals(
                told.query, total_CFs=1, verbose=False, **told.wish, **options
            ).cf_examples_list[0]
    except (UserConfigValidationException, TimeoutError):  # the first is its way to say: none
        found = None
    seconds = time.process_time() - begin
    answer = {"case": asked.key, "rows": model.rows, "seconds": seconds, "hit": False}
    best = None if found is None else found.final_cfs_df_sparse  # what it shows
    if best is None or not len(best):
        return answer | {"distance": None, "features": None, "broken": []}
    row = best[names].iloc[0]
    return answer | asked.scored(row if mixed else row.to_numpy(np.float64))


@contextmanager
def _patience(seconds: int) -> Iterator[None]:
    """Raise a `TimeoutError` in what takes longer; dice-ml may draw rows for ever."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


PEERS = {"botorch": botorch_loop, "dice": dice}


def main(path: str) -> None:
    warnings.simplefilter("ignore")  # their warnings are not what is measured
    request = json.loads(Path(path).read_text())
    for given in request["cases"]:
        print("\n" + json.dumps(PEERS[request["peer"]](Case(**given), request)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
