"""Time of one proposal against BoTorch's ``optimize_acqf_mixed_alternating``, and its growth.

Ten mixed features, a Gaussian process of 50 points (RBF, so that both sides have the same kernel on
unordered levels too), log EI-CFX of an AEP target. BoTorch gets the same hyperparameters and the
same acquisition, written in torch as a sum over 64 Gauss-Legendre nodes; it runs with its default
settings, in a separate environment whose Python is named by BAYESCFX_BOTORCH_PYTHON (default
``.venv-botorch/bin/python``). Both sides run on one thread and are measured in CPU time. Values are
compared with our acquisition.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bayescfx.acquisition import LogEI
from bayescfx.data import Categorical, Feature, Integer, Ordinal, Real
from bayescfx.potentials import AEP
from bayescfx.propose.proposal import propose
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.process import GaussianProcess

ROOT = Path(__file__).resolve().parent.parent
ROWS = 50
PROBLEMS = 10
REPEATS = 15


@dataclass(frozen=True)
class Gain:
    """Log EI-CFX over the codes of a region."""

    region: Region
    process: GaussianProcess
    potential: AEP
    log_ei: LogEI
    low: np.ndarray
    span: np.ndarray

    def unit(self, X: np.ndarray) -> np.ndarray:
        """Return codes as the surrogate takes them: ordered features between 0 and 1."""
        return np.asarray((X - self.low) / self.span)

    def value(self, X: np.ndarray) -> np.ndarray:
        """Return log EI-CFX of each row."""
        return self.log_ei.value_and_gradient(*self.process.predict(self.unit(X))).value

    def gradient(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log EI-CFX and its derivatives by each code."""
        mean, std, dmean, dstd = self.process.predict_gradient(self.unit(X))
        value, by_mean, by_std = self.log_ei.value_and_gradient(mean, std)
        return value, (by_mean[:, None] * dmean + by_std[:, None] * dstd) / self.span


@dataclass(frozen=True)
class Question:
    """A region, the acquisition to maximise over it, and the evaluated rows."""

    region: Region
    gain: Gain
    X: np.ndarray
    y: np.ndarray


def features(n: int) -> dict[str, Feature]:
    """Return `n` features; of every ten: five reals, two integers, two unordered, one ordered."""
    kinds: list[Feature] = [
        Real(0, 1),
        Real(-5, 5),
        Real(0, 100),
        Real(10, 20),
        Real(0, 3),
        Integer(0, 9),
        Integer(17, 90),
        Categorical(list("abcde")),
        Categorical(list("xyz")),
        Ordinal(list("1234")),
    ]
    return {f"x{j}": kinds[j % 10] for j in range(n)}


def make_question(seed: int, n: int = 10, rules: int = 0) -> Question:
    """Return a random smooth model with 50 outputs, and a target of +1.5 standard deviations."""
    rng = np.random.default_rng(seed)
    space = Space(features(n))
    query = {name: random_value(feature, rng) for name, feature in features(n).items()}
    for name, other in rule_pairs(rules, rng):
        reach = float(query[name]) + float(query[other]) + float(rng.uniform(0, 2))
        space = space.require(f"{name} + {other} <= {reach}")
    region = space.around(query)
    low = np.where(region.categorical, 0.0, region.low)
    span = np.where(region.categorical, 1.0, region.high - region.low)
    X = np.concatenate([region.query[None], sample(region, ROWS - 1, rng)])
    y = smooth_outputs((X - low) / span, region.categorical, rng)
    unordered = np.flatnonzero(region.categorical).tolist()
    process = GaussianProcess(kernel="rbf", categorical=unordered).fit((X - low) / span, y)
    potential = AEP(float(y[0]), 1.5 * float(y.std()))
    best = float(potential.value(y).max())
    gain = Gain(region, process, potential, LogEI(potential, best), low, span)
    return Question(region, gain, X, y)


def random_value(feature: Any, rng: np.random.Generator) -> Any:
    """Return a uniform value of a feature."""
    if isinstance(feature, Real):
        return float(rng.uniform(feature.low, feature.high))
    if isinstance(feature, Integer):
        return int(rng.integers(feature.low, feature.high + 1))
    return feature.levels[int(rng.integers(len(feature.levels)))]


def rule_pairs(rules: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return random pairs of numeric features."""
    numbers = ["x0", "x1", "x2", "x3", "x4", "x5", "x6"]
    return [tuple(rng.choice(numbers, size=2, replace=False).tolist()) for _ in range(rules)]


def smooth_outputs(U: np.ndarray, unordered: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a sum of waves along random directions; levels have random heights."""
    V = U.copy()
    for j in np.flatnonzero(unordered):
        V[:, j] = rng.random(10)[U[:, j].astype(int)]
    W = rng.normal(size=(U.shape[1], 6)) * (3.0 / np.sqrt(U.shape[1]))
    return np.asarray(np.sin(V @ W + rng.uniform(0, 6, size=6)).sum(axis=1))


def seconds(question: Question, repeats: int = REPEATS) -> tuple[float, float]:
    """Return the median time of a proposal and the median value it attains."""
    order = np.argsort(-question.gain.potential.value(question.y))
    starts = question.X[order[:5]]
    times = []
    values = []
    for repeat in range(repeats + 1):
        begin = time.process_time()
        found = propose(
            question.gain, question.region, np.random.default_rng(repeat), starts, avoid=question.X
        )
        times.append(time.process_time() - begin)
        values.append(float(found.values[0]))
    return statistics.median(times[1:]), statistics.median(values[1:])


def peer_python() -> Path:
    """Return the Python of BoTorch's environment."""
    default = ROOT / ".venv-botorch" / "bin" / "python"
    return Path(os.environ.get("BAYESCFX_BOTORCH_PYTHON", default))


def export(question: Question) -> dict[str, np.ndarray]:
    """Return data, hyperparameters, axes and acquisition nodes as arrays for BoTorch."""
    region = question.region
    gain = question.gain
    hyperparameters = gain.process.hyperparameters
    best = float(np.asarray(gain.log_ei.best))
    ((low, high),) = gain.potential.superlevel(best)
    node, weight = np.polynomial.legendre.leggauss(64)
    y = 0.5 * (low + high) + 0.5 * (high - low) * node
    height = 0.5 * (high - low) * weight * (gain.potential.value(y) - best)
    arrays = {
        "X": gain.unit(question.X),
        "y": question.y,
        "lengthscales": hyperparameters.lengthscales,
        "noise": np.array(hyperparameters.noise),
        "output_scale": np.array(hyperparameters.output_scale),
        "categorical": np.flatnonzero(region.categorical),
        "nodes": y,
        "log_weights": np.log(height),
        "low": gain.unit(region.low[None])[0],
        "high": gain.unit(region.high[None])[0],
    }
    for j, values in enumerate(region.choices):
        if values is not None:
            arrays[f"choices_{j}"] = (values - gain.low[j]) / gain.span[j]
    return arrays


def theirs(question: Question, repeats: int) -> dict[str, Any] | None:
    """Return BoTorch's median seconds and its points; None where it is not installed."""
    if not peer_python().exists():
        return None
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.npz"
        np.savez(path, **export(question))  # type: ignore[arg-type]  # arrays by name
        script = Path(__file__).with_name("peer_propose.py")
        command = [str(peer_python()), str(script), str(path), str(repeats)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    points = np.array(answer["points"]) * question.gain.span + question.gain.low
    values = question.gain.value(question.region.snap(points))
    return {
        "seconds": answer["seconds"],
        "value": float(np.median(values)),
        "agreement": float(np.abs(np.array(answer["values"]) - question.gain.value(points)).max()),
    }


def against_botorch(problems: int = PROBLEMS, repeats: int = 2) -> list[dict[str, float]]:
    """Return, per problem, seconds and values of both sides."""
    rows = []
    for seed in range(problems):
        question = make_question(seed)
        mine, value = seconds(question)
        row = {"problem": seed, "seconds": mine, "value": value}
        other = theirs(question, repeats)
        if other is not None:
            row |= {f"botorch_{name}": number for name, number in other.items()}
            row["ratio"] = other["seconds"] / mine
        rows.append(row)
    return rows


def run() -> dict[str, Any]:
    """Return every figure of this benchmark; one thread."""
    with threadpool_limits(1):
        return {
            "against_botorch": against_botorch(),
            "features": [
                {"features": n, "seconds": seconds(make_question(1, n), 5)[0]}
                for n in (10, 20, 50, 100, 200)
            ],
            "rules": [
                {"rules": n, "seconds": seconds(make_question(1, rules=n), 5)[0]}
                for n in (0, 1, 2, 4, 8, 16, 32)
            ],
        }


def main() -> None:
    figures = run()
    rows = figures["against_botorch"]
    for row in rows:
        print("  ".join(f"{name} {number:.4g}" for name, number in row.items()))
    print(f"median proposal: {1e3 * statistics.median(r['seconds'] for r in rows):.1f} ms")
    if "ratio" in rows[0]:
        print(f"BoTorch takes {statistics.median(r['ratio'] for r in rows):.0f} times as long")
        lead = [r["value"] - r["botorch_value"] for r in rows]
        print(
            f"log EI-CFX above BoTorch's: median {statistics.median(lead):.2g}, "
            f"lowest {min(lead):.2g}, highest {max(lead):.2g}"
        )
    else:
        print(f"BoTorch is not compared: no {peer_python()}")
    for curve in ("features", "rules"):
        print(curve, "  ".join(f"{r[curve]}: {1e3 * r['seconds']:.0f} ms" for r in figures[curve]))


if __name__ == "__main__":
    main()
