"""Draw the figures of README and documentation: ``python examples/figures.py``.

The question is the README's; the same seed gives the same pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import bayescfx as cfx
from bayescfx import plots

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
PATIENT = 114
WARD = 10  # queries of the picture of many answers


def diabetes() -> tuple[pd.DataFrame, Any, cfx.Space]:
    """Return data in raw units, a model of the disease's progress, and what may change."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    free = ("bmi", "bp", "s5", "s6")
    space = cfx.Space.from_data(X).allow(*free).only_down(*free).max_changes(2)
    return X, model, space


def main() -> None:
    """Write every figure as a PNG."""
    matplotlib.use("Agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    X, model, space = diabetes()
    target = cfx.decrease(percent=25)
    answer = cfx.explain(model, X.iloc[PATIENT], space, target, rng=0)
    pictures = {
        "changes": plots.change_chart(answer),
        "convergence": plots.convergence(answer),
        "potential": plots.potential(answer),
        "response": plots.response(answer),
        "surface": plots.surface(answer),
    }
    many = cfx.explain_many(
        model, X.iloc[PATIENT : PATIENT + WARD], space, target, budget=20, rng=0
    )
    pictures["movements"] = plots.movements(many)
    for name, picture in pictures.items():
        plots.save(picture, FOLDER / f"{name}.png")
    plt.close("all")


if __name__ == "__main__":
    main()
