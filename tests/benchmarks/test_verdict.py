"""Verdicts on random models."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.made import made
from benchmarks.verdict import Outcome, Setting, figures, is_beyond

import bayescfx as cfx


def outcomes(seeds: range, budget: int) -> list[Outcome]:
    found = []
    for seed in seeds:
        for name, model, space in made(seed):
            setting = Setting(model, model.query, space)
            for kind, target in setting.targets():
                answer = cfx.explain(
                    model.predict,
                    model.query,
                    space,
                    target,
                    budget=budget,
                    method="bayes-cfx",
                    rng=seed,
                )
                found.append(
                    Outcome(
                        name,
                        "made up",
                        kind,
                        budget,
                        answer.status,
                        answer.n_evaluations,
                        answer.probability_reachable,
                        tuple(each.words for each in answer.binding),
                    )
                )
    return found


def test_reachable_targets_lie_within_the_outputs_of_brute_force() -> None:
    _, model, space = next(made(0))
    setting = Setting(model, model.query, space)
    kinds = dict(setting.targets())
    low = setting.extreme(-1)
    high = setting.extreme(1)
    assert low <= setting.y.min() <= setting.y.max() <= high
    assert kinds["below"] < low < high < kinds["above"]
    assert all(low <= target <= high for kind, target in kinds.items() if "%" in kind)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_verdicts_on_random_models_are_sound() -> None:
    found = outcomes(range(100, 108), 40)
    shares = figures(found)
    assert shares["reachable"] > 100
    assert shares["false"] <= 1
    assert shares["false, below 1 %"] == 0
    assert shares["beyond"] > 30
    assert shares["ever"] > 0.6
    probabilities = [o.probability for o in found if o.probability is not None and not is_beyond(o)]
    assert np.min(probabilities) >= 0.01
