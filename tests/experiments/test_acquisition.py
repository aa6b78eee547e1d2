"""Figure 3: the scenes are the same in every environment; one rule judges all acquisitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from experiments import fig3_acquisition, scenes
from experiments.adult import MAIN, Adult, load

from tests.experiments.conftest import FOLDER, needs_data

# Probabilities of the fixed rows by a model fitted to 1e-10, to all printed digits.
STARTS = {scenes.CANCER: 0.949262, scenes.CORNER: 0.900853, scenes.BAND: 0.900774}


@pytest.fixture(scope="module")
def problem() -> Adult:
    return load(MAIN, FOLDER)


@needs_data
def test_the_scenes_are_the_same_in_every_environment(problem: Adult) -> None:
    found = scenes.scenes(15, problem)
    starts = {name: round(scene.potential.origin, 6) for name, scene in found.items()}
    assert starts == STARTS
    # The reasons stated for the rows.
    assert all(
        problem.rows.loc[scenes.CHOSEN[n][0], "capital-change"] == 0 for n in list(STARTS)[1:]
    )
    corner = found[scenes.CORNER]
    band = found[scenes.BAND]
    (low, _), (_, high) = (here.potential.target_set(scenes.EPSILON)[0] for here in (corner, band))
    assert low - 0.02 < corner.p.min() < 0.5
    assert band.p.min() < low < high < 0.75 < band.p.max()


@needs_data
def test_adults_model_has_converged(problem: Adult) -> None:
    from experiments.adult import READINGS, STATE, preprocess
    from experiments.data import load_adult
    from sklearn.model_selection import train_test_split

    rows, label = preprocess(load_adult(FOLDER), READINGS[MAIN])
    train, _, y, _ = train_test_split(rows, label, test_size=0.2, random_state=STATE)
    X = np.asarray(problem.model.pipeline[:-1].transform(train).todense())
    coefficients = problem.model.pipeline[-1].coef_[0]
    # The gradient of the penalised likelihood; an unconverged fit had more than 1 here.
    slope = X.T @ (problem.model(train) - y.to_numpy()) + coefficients
    assert np.abs(slope).max() < 1e-5


def test_the_acquisition_concentrates_on_the_target_set() -> None:
    scene = scenes._cancer(25, scenes.CHOSEN[scenes.CANCER][0])
    found = fig3_acquisition.shares((scene, fig3_acquisition.RANDOM, 3))
    assert found[fig3_acquisition.LOG_ODDS][-1] > 3 * scene.inside.mean()
    assert found[fig3_acquisition.LOG_ODDS][-1] > found[fig3_acquisition.NAIVE][-1]


def result(ours: float, naive: float) -> dict[str, Any]:
    """Return a result in which the acquisitions end with these shares, with some spread."""
    spread = np.linspace(-0.05, 0.05, 10)
    ends = dict(zip(fig3_acquisition.ROWS, (ours, naive, 0.95), strict=True))
    share = {row: [[0.1] * 7 + [end + d] for d in spread] for row, end in ends.items()}
    scene = {
        "features": ["a", "b"],
        "row": 1,
        "f_query": 0.9,
        "lowest": 0.1,
        "log_odds_span": 5.0,
        "area": 0.1,
        "share": dict.fromkeys(fig3_acquisition.DESIGNS, share),
    }
    return {"scenes": dict.fromkeys(STARTS, scene), "epsilon": 0.1, "seeds": 10}


def test_one_rule_decides_whether_an_acquisition_has_converged() -> None:
    for ours, naive, wanted in (
        (0.7, 0.2, ("reproduced", "reproduced")),
        (0.2, 0.7, ("contradicted", "contradicted")),
        (0.5, 0.5, ("undecided", "undecided")),
    ):
        judged = {claim.key: claim for claim in fig3_acquisition.claims(result(ours, naive))}
        assert len(judged) == 2 * len(STARTS)
        for scene in fig3_acquisition.KEYS.values():
            keys = (f"acquisition.converges-{scene}", f"acquisition.naive-{scene}")
            assert tuple(judged[key].verdict for key in keys) == wanted
            assert all("at least 0.5 is converged" in judged[key].ours for key in keys)


def test_every_scene_is_on_the_page() -> None:
    text, more = (
        tell(result(0.2, 0.7)) for tell in (fig3_acquisition.tell, fig3_acquisition.details)
    )
    for name in STARTS:
        assert f"| {name} | chosen by EI-CFX | 0.20 [" in text
        assert f"**contradicted** on {name}" in text
        assert f"**{name}**: a and b, row 1 of the raw data: {scenes.CHOSEN[name][1]}" in more
    assert "a share of at least 0.5" in text
