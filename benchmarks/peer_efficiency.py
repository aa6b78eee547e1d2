"""The efficiency benchmark with other libraries; runs in a separate environment.

Usage: ``python -m benchmarks.peer_efficiency request.json``. The models are fitted again there,
from the same data with the same seeds. Prints one line of JSON per answered question.
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

SAMPLES = 128
RESTARTS = 4
RAW_SAMPLES = 512
TIMEOUT = 120  # seconds for an answer of dice-ml


def botorch_step(U: Array, y: Array, case: Case) -> tuple[Array, bool]:
    """Return the next point of the composite loop, and whether the fit succeeded.

    The surrogate is fitted to f; qLogEI of the potential of f is maximised.

    Parameters
    ----------
    U : ndarray of shape (n, d)
        Evaluated points in the unit cube.
    y : ndarray of shape (n,)
        The model's outputs for them.
    case : Case
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
        z = ((samples[..., 0] - case.output) / (case.target - case.output)).clamp_min(0.0)
        return z**2 * torch.exp(1.0 - z**2)

    outputs = torch.tensor(y)[:, None]
    process = SingleTaskGP(torch.tensor(U), outputs)  # it standardises the outputs
    fitted_well = True
    try:
        fit_gpytorch_mll(ExactMarginalLogLikelihood(process.likelihood, process))
    except ModelFittingError:
        fitted_well = False
        process.eval()  # continue with the current hyperparameters
    acquisition = qLogExpectedImprovement(
        process,
        best_f=potential(outputs).max(),
        objective=GenericMCObjective(potential),
        sampler=SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=0),
    )
    cube = torch.tensor([[0.0] * U.shape[1], [1.0] * U.shape[1]])
    found, _ = optimize_acqf(acquisition, cube, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
    return np.asarray(found[0].numpy(), dtype=np.float64), fitted_well


def botorch_loop(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs that the composite loop scored, and the CPU seconds of each step.

    It starts from the query and the points of the unit cube in ``request["start"]``.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.double)
    torch.manual_seed(0)
    rows = table(case.data)
    predict = fitted(case.data, case.model).predict
    low = rows.low
    span = rows.high - rows.low
    U = np.vstack([(case.query - low) / span, request["start"]])
    y = np.concatenate([predict(case.query[None]), predict(low + U[1:] * span)])
    steps: list[float] = []
    failed = 0
    while len(y) < request["budget"]:
        begin = time.process_time()
        u, fitted_well = botorch_step(U, y, case)
        steps.append(time.process_time() - begin)
        failed += not fitted_well
        U = np.vstack([U, u])
        y = np.append(y, predict((low + u * span)[None]))
    return {
        "case": case.key,
        "target": case.target,
        "outputs": [float(v) for v in y],
        "step_seconds": steps,
        "failed_fits": failed,
    }


@dataclass
class CountingModel:
    """A model that takes dice-ml's frames and counts their rows."""

    function: Callable[[Any], Array]
    names: list[str]
    takes_arrays: bool  # otherwise it takes frames
    rows: int = 0

    def predict(self, frame: Any) -> Array:
        """Return the outputs of a frame's rows, or their classes."""
        y = self._outputs(frame)
        return y if self.takes_arrays else (y >= 0.5).astype(int)

    def predict_proba(self, frame: Any) -> Array:
        """Return the probabilities of both classes."""
        y = self._outputs(frame)
        return np.column_stack([1.0 - y, y])

    def _outputs(self, frame: Any) -> Array:
        self.rows += len(frame)
        columns = frame[self.names]
        return self.function(columns.to_numpy(np.float64) if self.takes_arrays else columns)


@dataclass
class DiceQuestion:
    """A question in the form that dice-ml takes."""

    frame: Any  # the data, without the outcome
    continuous: list[str]
    outcome: Any
    query: Any  # one row
    options: dict[str, Any]  # the target, and the features that may change


def numeric_question(case: Case) -> DiceQuestion:
    """Return a question about a numeric table: reach a range, all features may change."""
    import pandas as pd

    rows = table(case.data)
    names = [f"x{j}" for j in range(rows.X.shape[1])]
    query = pd.DataFrame(case.query[None], columns=names)
    options = {"desired_range": list(case.accepted)}
    return DiceQuestion(pd.DataFrame(rows.X, columns=names), names, rows.y, query, options)


def mixed_question(case: Case) -> DiceQuestion:
    """Return a question about a mixed table: another class, under the table's rules."""
    rows = frame(case.data)
    rules = rows.rules
    dtypes = rows.X.dtypes
    texts = [name for name, mixed in zip(rows.names, rows.has_levels, strict=True) if mixed]
    numbers = [name for name in rows.names if name not in texts]
    plain = rows.X.astype(dict.fromkeys(texts, object))
    query = plain.iloc[[case.row]]
    ranges: dict[str, list[Any]] = {name: list(ends) for name, ends in rules.within.items()}
    for name in rules.up:
        now = query[name].iloc[0]
        if name in numbers:
            ranges[name] = [now, rows.X[name].max()]
        else:
            levels = list(dtypes[name].categories)
            ranges[name] = levels[levels.index(now) :]
    free = [name for name in rows.names if name not in rules.fixed]
    options = {"desired_class": 1, "permitted_range": ranges, "features_to_vary": free}
    return DiceQuestion(plain, numbers, rows.y.astype(int), query, options)


def dice(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Return the record of one answer by a method of dice-ml with its default settings."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    mixed = case.data in FRAMES
    method = request["method"]
    question = mixed_question(case) if mixed else numeric_question(case)
    names = list(question.frame)
    model = CountingModel(fitted(case.data, case.model).predict, names, not mixed)
    data = dice_ml.Data(
        dataframe=question.frame.assign(y=question.outcome),
        continuous_features=question.continuous,
        outcome_name="y",
    )
    kind = "classifier" if mixed else "regressor"
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type=kind)
    explainer = dice_ml.Dice(data, wrapped, method=method)
    seeds = {"random_seed": 0} if method == "random" else {}
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the genetic method draws from the global states
    model.rows = 0
    begin = time.process_time()
    try:
        with _time_limit(TIMEOUT):
            found = explainer.generate_counterfactuals(
                question.query, total_CFs=1, verbose=False, **question.options, **seeds
            ).cf_examples_list[0]
    except (
        UserConfigValidationException,
        TimeoutError,
    ):  # dice-ml raises the first if it finds nothing
        found = None
    seconds = time.process_time() - begin
    answer = {"case": case.key, "rows": model.rows, "seconds": seconds, "hit": False}
    best = None if found is None else found.final_cfs_df_sparse  # the rows that it shows
    if best is None or not len(best):
        return answer | {"distance": None, "features": None, "broken": []}
    row = best[names].iloc[0]
    return answer | case.scored(row if mixed else row.to_numpy(np.float64))


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Raise a `TimeoutError` after so many seconds: dice-ml may draw rows without end."""

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
    warnings.simplefilter("ignore")  # warnings of the other libraries do not matter here
    request = json.loads(Path(path).read_text())
    for given in request["cases"]:
        print("\n" + json.dumps(PEERS[request["peer"]](Case(**given), request)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
