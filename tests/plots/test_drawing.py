"""Drawing works; the numbers are tested in other modules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx import plots
from bayescfx.errors import MissingExtraError
from bayescfx.plots.info.changes import change_info
from bayescfx.plots.info.outcomes import potential_info
from bayescfx.plots.info.view import View
from bayescfx.plots.report_file import as_html as page
from bayescfx.plots.style import clip
from tests.plots.conftest import linear

PICTURES = [
    plots.alternatives,
    plots.change_chart,
    plots.convergence,
    plots.potential,
    plots.response,
    plots.surface,
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("kind", ["numbers", "mixed", "chances"])
def test_every_picture_is_written_also_of_an_archived_answer(
    picture: Callable[..., Any], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    answer = request.getfixturevalue(kind)
    again = cfx.Explanation.from_json(answer.to_json())
    for k, one in enumerate((answer, again)):
        path = tmp_path / f"{k}.png"
        plots.save(picture(one), path, dpi=60)
        pixels = matplotlib.image.imread(path)
        assert pixels[..., :3].std() > 0.02  # something is on it


def test_pictures_go_into_the_axes_given_and_leave_the_style_alone(
    numbers: cfx.Explanation, many: cfx.Explanations
) -> None:
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    figure, axes = plt.subplots(2, 3)
    opened = plt.get_fignums()
    for picture, ax in zip(PICTURES, axes.flat, strict=False):
        assert picture(numbers, ax) is ax
    assert plots.movements(many, axes[1, 2]) is axes[1, 2]
    assert plt.get_fignums() == opened
    assert dict(matplotlib.rcParams) == before
    assert figure.axes


def test_pictures_fit_one_column_of_a_paper(numbers: cfx.Explanation) -> None:
    for picture in PICTURES:
        figure = picture(numbers).figure.figure
        assert figure is not None
        assert figure.get_size_inches()[0] == pytest.approx(3.3)


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_vector_files_carry_no_date(numbers: cfx.Explanation, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"chart.{ending}"
    plots.save(plots.change_chart(numbers), path)
    content = path.read_bytes()
    plots.save(plots.change_chart(numbers), path)
    assert path.read_bytes() == content
    assert b"Date>" not in content
    assert b"CreationDate" not in content


def test_letters_missing_from_the_font_raise_no_warning(tmp_path: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(30, 2)), columns=["年齢", "b"])
    answer = cfx.explain(
        lambda X: X["年齢"], X.iloc[0], cfx.Space.from_data(X), 0.9, budget=9, rng=0
    )
    plots.save(plots.response(answer), tmp_path / "a.png")
    assert "年齢" in page(answer)


def test_a_query_that_meets_the_target_is_drawn_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(30, 3))
    answers = cfx.explain_many(
        linear, X[:1], cfx.Space.from_data(X), cfx.at_least(-9), budget=5, rng=0
    )
    info = change_info(View.of(answers[0]))
    assert info.changes == ()
    plots.save(plots.change_chart(answers[0]), tmp_path / "a.png")
    assert potential_info(answers[0]).share is None
    assert "already reached" in page(answers[0])
    assert plots.movements(answers).get_xlim()[1] > 0


def test_without_matplotlib_the_error_names_the_extra(
    numbers: cfx.Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayescfx\[plots\]'"):
        plots.change_chart(numbers)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayescfx\[plots\]'"):
        page(numbers)


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("log_triglycerides", "log_\ntriglycerides"),
        ("serum_cholesterol_at_admission", "serum_\ncholesterol_at_\nadmission"),
        ("NumberOfOpenCreditLinesAndLoans", "NumberOfOpenCred\nitLinesAndLoans"),
        ("a" * 40 + "b" * 40, f"{'a' * 16}\n{'a' * 8}…{'b' * 7}\n{'b' * 16}"),
    ],
)
def test_names_take_up_to_three_lines(name: str, shown: str) -> None:
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=[name, "other"])
    space = cfx.Space.from_data(X).fix("other")
    answer = cfx.explain(lambda X: X[name], X.iloc[0], space, cfx.at_least(0.9), budget=30, rng=0)
    ax = plots.change_chart(answer)
    assert shown in texts(ax)
    figure: Any = ax.figure
    figure.draw_without_rendering()
    inside = ax.transData.inverted()
    boxes = {t.get_text(): inside.transform(t.get_window_extent()) for t in ax.texts}
    (_, bottom), (right, top) = boxes[shown]
    assert right < 0.05  # where the scale begins
    assert top > ax.get_ylim()[1]  # upside down
    below = next(box for text, box in boxes.items() if "→" in text)
    assert below[1][1] >= bottom - 0.12  # what becomes of it stands under it
    assert shown in texts(plots.alternatives(answer))


def test_pictures_of_long_names_are_higher() -> None:
    def height(name: str) -> float:
        X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 1)), columns=[name])
        space = cfx.Space.from_data(X)
        answer = cfx.explain(lambda X: X[name], X.iloc[0], space, 0.9, budget=20, rng=0)
        return float(plots.change_chart(answer).figure.get_figheight())  # type: ignore[union-attr]  # a whole one

    assert height("serum_cholesterol_at_admission") > height("bmi") + 0.05


@pytest.mark.parametrize("most", [5, 6, 20])
def test_long_texts_keep_both_ends(most: int) -> None:
    found = clip("abcdefghijklmnopqrstuvwxyz", most)
    assert len(found) == most
    assert (found[0], found[-1], "…" in found) == ("a", "z", True)
    assert clip("short", most) == "short"
