"""The numbers of changes: effects, scales, and many answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx import plots
from bayescfx.plots.info.changes import alternatives_info, change_info, movement_info
from bayescfx.plots.info.view import Scale, View
from tests.plots.conftest import SLOPES, with_row


def test_effects_sum_up_to_the_whole_change_and_match_a_linear_model(
    numbers: cfx.Explanation,
) -> None:
    view = View.of(numbers)
    effects = view.effects(0)
    assert effects is not None
    whole = numbers.best.output - numbers.output
    assert effects.sum() == pytest.approx(whole)
    moved = view.moved(0)
    change = view.answers[0, moved] - view.region.query[moved]
    np.testing.assert_allclose(effects, SLOPES[moved] * change, atol=0.05)


@pytest.mark.parametrize("d", [4, 12])
def test_effects_sum_up_exactly_for_all_orders_and_for_samples(d: int) -> None:
    X = np.random.default_rng(0).uniform(size=(50, d))
    slopes = np.arange(1.0, d + 1)
    answer = cfx.explain(
        lambda X: (X @ slopes) ** 2, X[0], cfx.Space.from_data(X), 50.0, budget=30, rng=0
    )
    view = View.of(with_row(answer, X[1]))
    effects = view.effects(0)
    assert effects is not None
    assert len(effects) == d
    whole = view.answer.best.output - view.answer.output
    assert effects.sum() == pytest.approx(whole)


def test_effects_use_scored_rows_where_possible(numbers: cfx.Explanation) -> None:
    row = np.array([0.6, 0.2, 0.5])
    parts = np.array([[0.6, 0.5, 0.5], [0.4, 0.2, 0.5]])
    known = cfx.Evaluations(numbers.evaluations.rows, numbers.evaluations.outputs)
    known.append(parts, [10.0, -20.0])
    best = replace(numbers.best, row=row, output=3.0)
    view = View.of(replace(numbers, counterfactuals=(best,), evaluations=known))
    f = numbers.output
    expected = np.array([((10 - f) + (3 + 20)) / 2, ((-20 - f) + (3 - 10)) / 2])
    effects = view.effects(0)
    assert effects is not None
    np.testing.assert_allclose(effects, expected)


def test_changes_come_by_effect_each_on_its_own_scale(numbers: cfx.Explanation) -> None:
    info = change_info(View.of(with_row(numbers, np.array([0.6, 0.2, 0.4]))))
    assert [change.name for change in info.changes] == ["x0", "x1", "x2"]
    first = info.changes[0]
    low, high = (float(end) for end in first.ends)
    assert first.start == pytest.approx((0.4 - low) / (high - low), abs=2e-3)
    assert first.end == pytest.approx((0.6 - low) / (high - low), abs=2e-3)
    assert first.allowed[0] == pytest.approx((0.3 - low) / (high - low), abs=2e-3)
    assert first.allowed[1] == pytest.approx(first.end, abs=1e-9)
    assert (first.before, first.after) == ("0.4", "0.6")
    assert first.effect_text.startswith("+0.8")
    assert info.changes[2].effect_text.startswith("−0.")


def test_every_kind_of_feature_is_on_the_chart_with_derived_ones_last(
    mixed: cfx.Explanation,
) -> None:
    row = mixed.query.copy()
    new = {"job": "clerk", "school": "high", "weekday": 6, "since": pd.Timestamp("2020-03-01")}
    new |= {"weight": 60.0, "bmi": 60.0 / row["height"] ** 2, "hours <b>&$x$": 55}
    for name, value in new.items():
        row[name] = value
    info = change_info(View.of(with_row(mixed, row)))
    found = {change.name: change for change in info.changes}
    assert set(found) == set(new)
    assert info.changes[-1].name == "bmi"
    assert [change.derived for change in info.changes] == [False] * 6 + [True]
    assert found["bmi"].effect is None
    assert found["weekday"].wraps
    assert not found["since"].wraps
    assert found["since"].after == "2020-03-01"
    assert not found["job"].ordered
    assert found["job"].levels == (0.0, 0.5, 1.0)
    assert found["school"].ordered


def test_a_chart_counts_the_changes_it_leaves_out() -> None:
    d = 15
    X = np.random.default_rng(0).uniform(size=(40, d))
    answer = cfx.explain(
        lambda X: X.sum(axis=1), X[0], cfx.Space.from_data(X), 20.0, budget=20, rng=0
    )
    info = change_info(View.of(with_row(answer, X[1])))
    assert (len(info.changes), info.hidden) == (12, 3)


def test_a_target_out_of_reach_stays_on_the_chart(mixed: cfx.Explanation) -> None:
    prediction = change_info(View.of(mixed)).prediction
    assert not prediction.reached
    ((low, high),) = prediction.accepted
    assert prediction.end < low < high <= 1.0
    assert prediction.start < prediction.end


def test_open_targets_reach_to_the_end_of_the_scale() -> None:
    X = np.random.default_rng(0).uniform(size=(40, 2))
    answer = cfx.explain(
        lambda X: X[:, 0], [0.2, 0.5], cfx.Space.from_data(X), cfx.at_least(0.6), budget=15, rng=0
    )
    ((low, high),) = change_info(View.of(answer)).prediction.accepted
    assert 0.0 < low < high == 1.0


def test_a_chart_works_without_enough_rows_for_a_surrogate(numbers: cfx.Explanation) -> None:
    bare = replace(numbers, evaluations=cfx.Evaluations())
    info = change_info(View.of(bare))
    assert [change.effect for change in info.changes] == [None] * len(numbers.best.changes)


def test_evaluations_of_other_columns_are_ignored(numbers: cfx.Explanation) -> None:
    strange = replace(numbers, evaluations=cfx.Evaluations(np.zeros((5, 7)), np.arange(5.0)))
    assert len(View.of(strange).y) == 0


def test_derived_columns_whose_function_is_lost_still_follow(mixed: cfx.Explanation) -> None:
    again = cfx.Explanation.from_json(mixed.to_json())
    before, after = (change_info(View.of(answer)) for answer in (mixed, again))
    assert {c.name for c in before.changes} == {c.name for c in after.changes}
    assert [c.name for c in after.changes if c.derived] == [
        c.name for c in before.changes if c.derived
    ]


def test_scales_name_their_codes() -> None:
    moments = cfx.Moment("2020-01-01", "2020-01-31")
    assert Scale(moments, 0.0, 30.0).label(2.0) == "2020-01-03"
    assert Scale(cfx.Moment("2020-01-01", "2020-01-31", "h"), 0, 9).label(2) == "2020-01-01 02:00"
    levels = Scale(cfx.Categorical(range(40)), 0.0, 39.0)
    assert len(levels.levels) == 0
    assert [text for _, text in levels.ticks(3)] == ["0", "20", "39"]
    assert Scale(cfx.Real(0, 1), 0, 1).label(float("nan")) == "missing"
    assert Scale(cfx.Real(2, 2), 2, 2).place(2.0) == 0.5


# ── many answers ──


def test_movements_count_every_change_of_the_best_answers(many: cfx.Explanations) -> None:
    info = movement_info(many)
    assert info.answers == 4
    expected = pd.Series([str(n) for a in many for n in a.best.changes]).value_counts()
    assert {m.name: m.times for m in info.movements} == expected.to_dict()
    assert [m.times for m in info.movements] == sorted(expected, reverse=True)


def test_movements_are_signed_in_units_of_change_and_short_on_a_circle(
    mixed: cfx.Explanation,
) -> None:
    row = mixed.query.copy()
    row["weekday"], row["job"], row["weight"] = 6, "clerk", row["weight"] - 5.0
    row["bmi"] = row["weight"] / row["height"] ** 2
    found = {m.name: m for m in movement_info([with_row(mixed, row)] * 2).movements}
    unit = dict(zip(mixed.space.schema.names, mixed.space.scale, strict=True))
    assert np.median(found["weekday"].moves) == pytest.approx(-2 / unit["weekday"])
    assert found["weight"].moves == pytest.approx([-5 / unit["weight"]] * 2)
    assert len(found["job"].moves) == 0
    assert found["job"].transitions == (("cook → clerk", 2),)
    assert found["job"].times == 2


@pytest.mark.slow
def test_long_names_are_written_in_full_and_nothing_leaves_the_picture(
    many: cfx.Explanations, tmp_path: Path
) -> None:
    names = {name: f"{name}_of_the_customer_at_the_end_of_the_month" for name in "abc"}
    rng = np.random.default_rng(0)
    X = pd.DataFrame({names["a"]: rng.uniform(size=40), names["b"]: rng.choice(list("xyz"), 40)})
    f = lambda X: X[names["a"]] + 2.0 * (X[names["b"]] == "x")  # noqa: E731  # a bare callable
    answers = cfx.explain_many(
        f, X.head(9), cfx.Space.from_data(X), cfx.increase(by=1.5), rng=0, budget=60
    )
    ax = plots.movements(answers)
    plots.save(ax, tmp_path / "a.png")
    labels = [label.get_text().replace("\n", "") for label in ax.get_yticklabels()]
    assert all(label.partition("  ")[0] in names.values() for label in labels)
    figure: Any = ax.figure
    box, whole = ax.get_tightbbox(), figure.bbox
    assert box is not None
    assert (box.x0 >= whole.x0 - 1, box.x1 <= whole.x1 + 1) == (True, True)


def test_alternatives_have_a_scale_for_each_changed_feature() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    space = cfx.Space.from_data(X).fix("x2")
    answer = cfx.explain(lambda X: X.sum(axis=1), X[0], space, cfx.increase(by=0.3), n=3, rng=0)
    view = View.of(answer)
    info = alternatives_info(view)
    assert info.names[-1] == "prediction"
    assert {*info.names[:-1]} == {name for c in answer.counterfactuals for name in c.changes}
    assert len(info.answers) == len(answer.counterfactuals) > 1
    for places, found in zip(info.answers, answer.counterfactuals, strict=True):
        for name, at, start in zip(info.names, places, info.query, strict=False):
            assert (at != start) == (name in found.changes or name == "prediction")
    ((low, high),) = info.accepted
    assert all(low <= places[-1] <= high for places in info.answers)


def test_alternatives_show_only_the_levels_taken_and_in_no_order() -> None:
    rng = np.random.default_rng(1)
    jobs = ["clerk", "cook", "doctor", "engineer", "teacher", "nurse"]
    grades = ["lo", "mid", "hi"]
    X = pd.DataFrame(
        {
            "job": rng.choice(jobs, 300),
            "grade": pd.Categorical(rng.choice(grades, 300), grades, ordered=True),
            "pay": rng.normal(50.0, 10.0, 300).round(1),
        }
    )

    def model(rows: pd.DataFrame) -> Any:
        places = rows["job"].map({job: 3.0 * k for k, job in enumerate(jobs)})
        return places.astype(float) + rows["pay"] / 2.0 + 4.0 * rows["grade"].cat.codes

    query = X[(X["job"] == "cook") & (X["grade"] == "lo")].iloc[[0]]
    space = cfx.Space.from_data(X)
    answer = cfx.explain(model, query, space, cfx.increase(by=8.0), n=5, budget=1_000, rng=0)
    info = alternatives_info(View.of(answer))
    by_name = dict(zip(info.names, range(len(info.names)), strict=True))
    job = by_name["job"]
    taken = ["cook", *(c.row["job"] for c in answer.counterfactuals)]
    levels = list(dict.fromkeys(taken))
    assert len(levels) > 2
    assert not info.ordered[job]
    assert list(info.marks[job].values()) == levels  # the query's first
    assert list(info.marks[job]) == np.linspace(0.0, 1.0, len(levels)).tolist()
    assert [info.marks[job][row[job]] for row in (info.query, *info.answers)] == taken
    grade = by_name["grade"]
    assert info.ordered[grade]
    assert set(info.marks[grade].values()) == {
        "lo",
        *(str(c.row["grade"]) for c in answer.counterfactuals),
    }
    assert info.marks[by_name["prediction"]] == {}
    shown = [text.get_text() for text in plots.alternatives(answer).texts]
    for text in (*levels, *info.marks[grade].values()):
        assert shown.count(text) == 1


def test_labels_of_alternatives_do_not_overlap() -> None:
    rng = np.random.default_rng(1)
    cities = [f"a city with number {k}" for k in range(12)]
    X = pd.DataFrame({"city": rng.choice(cities, 300), "pay": rng.normal(50.0, 10.0, 300)})

    def model(rows: pd.DataFrame) -> Any:
        return rows["city"].str.rsplit(" ", n=1).str[1].astype(float) + rows["pay"] / 9.0

    query = X[X["city"] == cities[0]].iloc[[0]]
    space = cfx.Space.from_data(X)
    answer = cfx.explain(model, query, space, cfx.increase(by=3.0), n=7, budget=1_000, rng=0)
    ax = plots.alternatives(answer)
    figure: Any = ax.figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text().startswith("a")]
    assert len(boxes) > 2
    for i, box in enumerate(boxes):
        for other in boxes[:i]:
            is_same_line = abs(box.y0 - other.y0) < 0.5 * box.height
            assert not (is_same_line and box.overlaps(other))
    legend: Any = ax.get_legend()
    assert legend.get_window_extent().y1 <= figure.bbox.y1 + 3  # its padding


def test_values_of_many_digits_are_short_in_pictures_unless_they_are_to_be_typed() -> None:
    space = cfx.Space({"a": cfx.Real(0, 10), "b": cfx.Real(0, 10)}).derive(
        "b", lambda rows: rows["a"] / 3
    )
    query = {"a": 3.4989049866132405, "b": 3.4989049866132405 / 3}
    answer = cfx.explain(lambda rows: rows["a"], query, space, cfx.at_least(4.0), rng=0)
    info = change_info(View.of(answer), 0)
    changes = {change.name: change for change in info.changes}
    a, b = changes["a"], changes["b"]
    assert (a.before, a.after) == ("3.4989049866132405", "4.01")
    assert a.short == ("3.499", "4.01")
    assert b.after == "1.3366666666666667"
    assert b.short == ("1.166", "1.337")
    typed = replace(answer.best, changes={"a": (3.4989049866132405, 4.123456789012)})
    (change, *_) = change_info(View.of(replace(answer, counterfactuals=(typed,))), 0).changes
    assert change.short == ("3.499", "4.123456789012")
