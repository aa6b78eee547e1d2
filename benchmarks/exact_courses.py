"""A picture of proofs: the cost of the best answer and the proven bound over time.

``python -m benchmarks.exact_courses`` draws it again from the stored figures of the part `far`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayescfx import plots
from bayescfx.plots import style
from benchmarks.reporting import RESULTS

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "benchmarks" / "far.png"
_TOP = 1.6  # costs above are cut off
TITLES = {
    "cancer-forest/forest": "Breast cancer, forest, 30 features",
    "friedman-20/lgbm": "Friedman, LightGBM, 20 features",
}


def draw(cells: Mapping[str, Any], path: Path = PICTURE) -> Path | None:
    """Draw the course of each question after the longest limit; None without any.

    Costs and bounds are shares of the cost of the returned answer, so that the questions to a model
    share an axis: the proof is complete where the bound reaches 1.

    Parameters
    ----------
    cells : mapping
        The figures of the cells, by name.
    path : Path
        Where to write the picture.
    """
    courses = {name: _courses(cell) for name, cell in cells.items()}
    shown = {name: found for name, found in courses.items() if found}
    if not shown:
        return None
    with style.styled():
        figure, axes = style.matplotlib("matplotlib.pyplot").subplots(
            1, len(shown), figsize=(style.COLUMN * len(shown), 2.4), squeeze=False, sharey=True
        )
        for ax, (name, found) in zip(axes[0], shown.items(), strict=True):
            ax.set_title(TITLES.get(name, name))
            for course in found:
                _draw_course(ax, course)
            ax.set_xlabel("CPU seconds")
            ax.set_xlim(left=0)
            ax.set_ylim(0, _TOP)
        axes[0][0].set_ylabel("share of the answer's cost")
        figure.legend(handles=axes[0][0].lines[:2], loc="lower center", ncols=2)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        plots.save(figure, path, dpi=150)
        style.matplotlib("matplotlib.pyplot").close(figure)
    return path


def _courses(cell: Mapping[str, Any]) -> list[Any]:
    """Return the courses of a cell's questions that have an answer, as shares of its cost."""
    limits = [name for name, answers in cell["records"].items() if "course" in answers[0]]
    if not limits:
        return []
    courses = []
    for record in cell["records"][limits[-1]]:
        final = record["cost"]
        if final is None:
            continue
        points = []
        for seconds, cost, bound in record["course"]:
            points.append((seconds, float("nan") if cost is None else cost / final, bound / final))
        courses.append(points)
    return courses


def _draw_course(ax: Any, course: Any) -> None:
    """Draw one question: its cost as steps down, its bound as steps up."""
    seconds, costs, bounds = zip(*course, strict=True)
    how = {"where": "post", "alpha": 0.8, "linewidth": 1.1}
    ax.step(seconds, costs, color=style.ORANGE, label="cost of the best answer", **how)
    ax.step(seconds, bounds, color=style.BLUE, label="proven bound", **how)
    ax.plot(seconds[-1], bounds[-1], marker="o", ms=3.5, color=style.BLUE)


if __name__ == "__main__":
    print(draw(json.loads((RESULTS / "exact-far.json").read_text())["figures"]))
