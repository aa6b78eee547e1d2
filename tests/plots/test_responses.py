"""The numbers of response curves and maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx import plots
from bayescfx.errors import SpaceError
from bayescfx.plots.info.changes import change_info
from bayescfx.plots.info.outcomes import TooLittleError, response_info, surface_info
from bayescfx.plots.info.view import View
from tests.plots.conftest import linear, with_row


def test_responses_follow_the_model_within_their_band(numbers: cfx.Explanation) -> None:
    view = View.of(numbers)
    info = response_info(view, "x0")
    X = np.tile(view.region.query, (len(info.codes), 1))
    X[:, 0] = info.codes
    truth = linear(X)
    assert ((info.query.low - 0.05 <= truth) & (truth <= info.query.high + 0.05)).all()
    assert (info.codes[0], info.codes[-1]) == (0.3, 0.6)
    assert info.query.output == numbers.output
    on_line = info.query.seen
    np.testing.assert_allclose(
        on_line[1],
        linear(np.insert(np.tile([[0.5, 0.5]], (len(on_line[0]), 1)), 0, on_line[0], axis=1)),
    )


def test_the_default_response_is_that_of_the_most_effective_change(
    numbers: cfx.Explanation,
) -> None:
    view = View.of(numbers)
    assert response_info(view).name == change_info(view).changes[0].name


def test_one_change_has_one_curve(numbers: cfx.Explanation) -> None:
    view = View.of(with_row(numbers, np.array([0.6, 0.5, 0.5])))
    assert response_info(view, "x0").answer is None
    assert response_info(view, "x1").answer is not None


def test_responses_of_probabilities_stay_probabilities(chances: cfx.Explanation) -> None:
    info = response_info(View.of(chances))
    assert info.query.low.min() >= 0.0
    assert info.query.high.max() <= 1.0
    assert np.ptp(info.query.mean) > 0.2


def test_derived_columns_follow_along_a_response(mixed: cfx.Explanation) -> None:
    info = response_info(View.of(mixed), "weight")
    assert info.query.mean[0] > info.query.mean[-1]  # heavier, larger bmi, less pay


def test_a_response_passes_through_scored_rows_among_a_thousand() -> None:
    """Far more rows than a surrogate is fitted to, steps all along the feature."""
    X = np.random.default_rng(0).uniform(0.0, 10.0, (300, 8))
    answer = cfx.explain(
        lambda X: np.floor(X[:, 0]) + 0.1 * X[:, 1:].sum(axis=1),
        np.full(8, 5.0),
        cfx.Space.from_data(X),
        cfx.increase(by=2.5),
        budget=1200,
        method="sweep",
        short_decimals=False,
        rng=0,
    )
    assert answer.n_evaluations > 400
    info = response_info(View.of(answer), 0)
    curve = info.query
    codes, outputs = curve.seen
    at = np.interp(codes, info.codes, curve.mean)
    assert len(codes) > 16
    assert np.median(np.abs(at - outputs)) < 0.1


def test_unknown_features_are_named(numbers: cfx.Explanation) -> None:
    with pytest.raises(SpaceError, match="there is no feature 'x9'"):
        plots.response(numbers, feature="x9")


def test_too_few_rows_for_a_surrogate_are_an_error(numbers: cfx.Explanation) -> None:
    bare = replace(numbers, evaluations=cfx.Evaluations())
    with pytest.raises(TooLittleError, match="at least 3 rows with different outputs; got 0 rows"):
        plots.response(bare)
    with pytest.raises(TooLittleError, match="`features` must be two different ones"):
        plots.surface(numbers, features=("x0", "x0"))


def test_maps_mark_the_target_and_where_to_look_next(numbers: cfx.Explanation) -> None:
    view = View.of(numbers)
    info = surface_info(view, ("x0", "x1"))
    (low, high) = numbers.accepted[0]
    np.testing.assert_array_equal(info.target, (info.mean >= low) & (info.mean <= high))
    assert info.target.any()
    assert not info.target.all()
    assert info.acquisition is not None
    assert info.acquisition.max() == 1.0
    assert info.acquisition.min() >= 0.0
    # mean[row, column]: the model falls along y and rises along x
    assert info.mean[0, -1] > info.mean[-1, 0]
    assert info.answer == (view.answers[0, 0], view.answers[0, 1])


def test_maps_leave_out_points_that_are_not_allowed() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    space = cfx.Space.from_data(X).require("x0 + x1 <= 1.2")
    answer = cfx.explain(linear, [0.4, 0.5, 0.5], space, cfx.increase(by=1), budget=25, rng=0)
    info = surface_info(View.of(answer), ("x0", "x1"))
    x, y = np.meshgrid(info.x_codes, info.y_codes)
    np.testing.assert_array_equal(info.allowed, x + y <= 1.2)


def test_maps_before_the_target_is_met_show_ei_cfx(mixed: cfx.Explanation) -> None:
    info = surface_info(View.of(mixed), ("hours <b>&$x$", "job"))
    assert info.acquisition is not None
    assert info.mean.shape == (3, len(info.x_codes))
