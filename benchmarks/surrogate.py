"""Time of the surrogate against BoTorch: one refit, and prediction with gradients.

The data are outputs of a support vector machine trained on the diabetes data, 50 rows of 10
features. Both sides run on one thread, one after the other. BoTorch runs in a separate environment
whose Python is named by BAYESCFX_BOTORCH_PYTHON (default ``.venv-botorch/bin/python``).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from bayescfx.surrogate.process import GaussianProcess

ROOT = Path(__file__).resolve().parent.parent
ROWS = 50
POINTS = 2048


def data() -> dict[str, np.ndarray]:
    """Return rows X (50, 10), their outputs y, and points T (2048, 10) to predict."""
    X, target = load_diabetes(return_X_y=True, scaled=False)
    cube = MinMaxScaler().fit_transform(X)
    model = make_pipeline(StandardScaler(), SVR(C=50.0)).fit(cube, target)
    rng = np.random.default_rng(0)
    rows = rng.random((ROWS, cube.shape[1]))
    return {"X": rows, "y": model.predict(rows), "T": rng.random((POINTS, cube.shape[1]))}


def median_seconds(work: Callable[[], object], repeats: int = 30) -> float:
    """Return the median wall-clock seconds of a call, after a warm-up call."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def ours(stored: dict[str, np.ndarray]) -> dict[str, float]:
    """Return our median seconds, on one thread."""
    X = stored["X"]
    y = stored["y"]
    T = stored["T"]
    with threadpool_limits(1):
        start = GaussianProcess().fit(X[:-1], y[:-1]).hyperparameters
        gp = GaussianProcess().fit(X, y, start=start)
        return {
            "fit": median_seconds(lambda: GaussianProcess().fit(X, y), 7),
            "warm_fit": median_seconds(lambda: GaussianProcess().fit(X, y, start=start)),
            "gradient": median_seconds(lambda: gp.predict_gradient(T)),
            "predict": median_seconds(lambda: gp.predict(T)),
            "gradient_32": median_seconds(lambda: gp.predict_gradient(T[:32])),
            "add_point": median_seconds(lambda: gp.with_points(T[:1], y[:1])),
        }


def peer_python() -> Path:
    """Return the Python of BoTorch's environment."""
    default = ROOT / ".venv-botorch" / "bin" / "python"
    return Path(os.environ.get("BAYESCFX_BOTORCH_PYTHON", default))


def theirs(stored: dict[str, np.ndarray]) -> dict[str, float] | None:
    """Return BoTorch's median seconds, on one thread; None where it is not installed."""
    if not peer_python().exists():
        return None
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=stored["X"], y=stored["y"], T=stored["T"])
        script = Path(__file__).with_name("peer_surrogate.py")
        done = subprocess.run(
            [peer_python(), script, path],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def run() -> dict[str, object]:
    """Return the seconds of both sides, their ratios (peer over ours) and the aims."""
    stored = data()
    mine = ours(stored)
    peer = theirs(stored)
    report: dict[str, object] = {"ours_seconds": mine, "botorch_seconds": peer}
    if peer is not None:
        report["ratios"] = {
            "refit": peer["fit"] / mine["warm_fit"],
            "refit, both warm": peer["warm_fit"] / mine["warm_fit"],
            "fit, both cold": peer["fit"] / mine["fit"],
            "mean, std and gradients": peer["gradient"] / mine["gradient"],
        }
        report["asked"] = {"refit": 20.0, "mean, std and gradients": 2.0}
    return report


def main() -> None:
    report = run()
    print(f"surrogate: {ROWS} rows of 10 features, {POINTS} points, one thread")
    for side in ("ours_seconds", "botorch_seconds"):
        seconds = report[side]
        if isinstance(seconds, dict):
            cells = "  ".join(f"{name} {1e3 * value:.3g} ms" for name, value in seconds.items())
            print(f"  {side.removesuffix('_seconds'):8s}{cells}")
    ratios = report.get("ratios")
    aims = report.get("asked")
    if not isinstance(ratios, dict) or not isinstance(aims, dict):
        print(f"  BoTorch skipped: {peer_python()} does not exist (set BAYESCFX_BOTORCH_PYTHON)")
        return
    for name, ratio in ratios.items():
        aim = f" (aim: {aims[name]:g})" if name in aims else ""
        print(f"  {name}: {ratio:.1f} times faster than BoTorch{aim}")


if __name__ == "__main__":
    main()
