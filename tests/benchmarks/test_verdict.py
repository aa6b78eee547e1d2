"""How good verdicts are, on models made up at random."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.made import made
from benchmarks.verdict import Outcome, Setting, beyond, figures

import bayescfx as cfx


def outcomes(seeds: range, budget: int) -> list[Outcome]:
    found = []
    for seed in seeds:
        for name, model, space in made(seed):
            setting = Setting(model, model.query, space)
            for kind, target in setting.targets():
                answer = cfx.explain(
                    model.predict, model.query, space, target, budget=budget, method="bayes-cfx",
                    rng=seed,
                )  # fmt: skip
                said = answer.status, answer.n_evaluations, answer.probability_reachable
                found.append(Outcome(name, "made up", kind, budget, *said, answer.binding))
    return found


def test_a_target_that_brute_force_reaches_lies_within_what_it_finds() -> None:
    _, model, space = next(made(0))
    setting = Setting(model, model.query, space)
    kinds = dict(setting.targets())
    low, high = setting.extreme(-1), setting.extreme(1)
    assert low <= setting.y.min() <= setting.y.max() <= high
    assert kinds["below"] < low < high < kinds["above"]
    assert all(low <= target <= high for kind, target in kinds.items() if "%" in kind)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_verdicts_on_models_made_up_at_random_are_sound() -> None:
    found = outcomes(range(100, 108), 40)
    told = figures(found)
    assert told["reachable"] > 100
    assert told["false"] <= 1
    assert told["false, below 1 %"] == 0
    assert told["beyond"] > 30
    assert told["ever"] > 0.6
    probabilities = [o.probability for o in found if o.probability is not None and not beyond(o)]
    assert np.min(probabilities) >= 0.01
