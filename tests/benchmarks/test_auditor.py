"""The auditor finds cheaper hits, respects the constraints, and finds none if there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from benchmarks.auditor import Auditor

import bayescfx as cfx
from bayescfx.arrays import Array, Mask

FEATURES = {name: cfx.Real(0.0, 10.0) for name in "abc"}


def plane(X: Array) -> Array:
    return np.asarray(X @ [3.0, 2.0, 1.0])


def at_least_six(y: Array) -> Mask:
    return np.asarray(y >= 6.0)


def audit(space: cfx.Space, answer: list[float] | None) -> Auditor:
    region = space.around(dict.fromkeys("abc", 0.0))
    auditor = Auditor(region, plane, at_least_six)
    auditor.audit(None if answer is None else np.array(answer))
    return auditor


@pytest.mark.parametrize(
    "answer", [None, [9.0, 0, 0], [0.5, 2.25, 0], [1.0, 1.0, 1.0], [0, 0, 8.0]]
)
def test_the_nearest_hit_is_found_from_any_answer(answer: list[float] | None) -> None:
    # `a` has the steepest slope: it changes by 2, and its scale is 10 / 4
    auditor = audit(cfx.Space(FEATURES), answer)
    assert auditor.price["distance"] == pytest.approx(2.0 / 2.5, rel=1e-4)
    assert auditor.best["distance"] == pytest.approx([2.0, 0.0, 0.0], abs=1e-3)


def test_an_optimal_answer_is_not_improved() -> None:
    auditor = audit(cfx.Space(FEATURES), [2.0, 0.0, 0.0])
    assert auditor.price == pytest.approx({"distance": 0.8, "cost": 0.8 + 0.2}, rel=1e-12)


def test_constraints_are_respected() -> None:
    space = cfx.Space(FEATURES).require("a <= b").between({"b": (0, 1.5)}).fix("c")
    auditor = audit(space, None)
    assert auditor.best["cost"] == pytest.approx([1.2, 1.2, 0.0], abs=0.02)
    assert auditor.best["cost"] is not None
    assert auditor.region.contains(auditor.best["cost"][None]).all()


def test_a_target_that_no_pair_reaches_is_not_found() -> None:
    assert audit(cfx.Space(FEATURES).between({"a": (0, 0.5), "b": (0, 1)}).fix("c"), None).best == {
        "cost": None,
        "distance": None,
    }


def test_all_levels_and_integers_are_tried() -> None:
    data = pd.DataFrame({"n": [0, 5, 9, 3], "level": ["x", "y", "z", "x"]})
    region = cfx.Space.from_data(data).around(data.iloc[0])

    def model(X: Array) -> Array:
        rows = region.rows(X)
        return np.asarray((rows["level"] == "z") & (rows["n"] >= 4), dtype=np.float64)

    auditor = Auditor(region, model, lambda y: np.asarray(y == 1.0))
    auditor.audit(region.encode(data.iloc[[2]])[0])
    assert auditor.best["cost"] is not None
    assert pd.DataFrame(region.rows(auditor.best["cost"][None])).iloc[0].tolist() == [4, "z"]
