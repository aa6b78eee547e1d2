"""Pictures are tested through their numbers; of the drawing only that it works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx import plots
from bayescfx.errors import MissingExtraError, SpaceError
from bayescfx.plots.info.changes import MOST, change_info
from bayescfx.plots.info.movements import movement_info
from bayescfx.plots.info.outcomes import convergence_info, potential_info
from bayescfx.plots.info.responses import TooLittleError, response_info, surface_info
from bayescfx.plots.info.scales import Scale
from bayescfx.plots.info.view import View
from bayescfx.plots.page import page

matplotlib.use("Agg")

PICTURES = [
    plots.change_chart,
    plots.convergence,
    plots.potential,
    plots.response,
    plots.surface,
]
SLOPES = np.array([4.0, -2.0, 1.0])


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def linear(X: Any) -> Any:
    return X @ SLOPES


@pytest.fixture(scope="module")
def numbers() -> cfx.Explanation:
    """An answer over an array, with two moves."""
    X = np.random.default_rng(0).uniform(size=(60, 3))
    space = cfx.Space.from_data(X).between({0: (0.3, 0.6)})
    return cfx.explain(
        linear, np.array([0.4, 0.5, 0.5]), space, cfx.increase(by=1.5), budget=40, rng=0
    )


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            "hours <b>&$x$": rng.integers(10, 60, n),
            "job": pd.Categorical(rng.choice(["clerk", "cook", "a very long name of a job"], n)),
            "school": pd.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
            "weekday": rng.integers(0, 7, n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "weight": rng.uniform(50, 100, n).round(1),
            "height": rng.uniform(1.5, 2.0, n).round(2),
        }
    )
    frame["bmi"] = frame["weight"] / frame["height"] ** 2
    return frame


def pay(rows: pd.DataFrame) -> Any:
    return (
        rows["hours <b>&$x$"]
        + 10.0 * (rows["job"] == "cook")
        + 5.0 * rows["school"].cat.codes
        + 6.0 * np.cos(2 * np.pi * (rows["weekday"] - 6) / 7)
        + (rows["since"] - pd.Timestamp("2020-01-01")).dt.days / 10
        - rows["bmi"]
    )


def people_space() -> cfx.Space:
    return (
        cfx.Space.from_data(people(), kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
        .derive("bmi", lambda rows: rows["weight"] / rows["height"] ** 2)
        .fix("height")
        .cost(weight=0.0)
    )


@pytest.fixture(scope="module")
def mixed() -> cfx.Explanation:
    """Every kind of feature, a derived column, and a target out of reach."""
    query = people().iloc[[0]].assign(weekday=1)  # a cook
    return cfx.explain(pay, query, people_space(), cfx.reach(500), budget=30, rng=0)


@pytest.fixture(scope="module")
def chances() -> cfx.Explanation:
    """A probability."""
    X = np.random.default_rng(2).normal(size=(80, 2))

    def model(X: Any) -> Any:
        return 1 / (1 + np.exp(-3 * X[:, 0] - X[:, 1]))

    return cfx.explain(model, X[0] * 0 - 0.5, cfx.Space.from_data(X), 0.8, budget=25, rng=0)


@pytest.fixture(scope="module")
def many() -> cfx.Explanations:
    rows = people().iloc[:4]
    space = cfx.Space.from_data(people(), kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
    return cfx.explain_many(pay, rows, space, cfx.increase(by=8), budget=15, rng=0)


def with_row(answer: cfx.Explanation, row: Any) -> cfx.Explanation:
    """Return the answer with another row as its counterfactual."""
    best = replace(answer.best, row=row)
    return replace(answer, counterfactuals=(best,))


# ── the change chart ──


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
def test_effects_sum_up_exactly_whether_all_orders_or_some_are_looked_at(d: int) -> None:
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


def test_effects_use_what_the_model_said_where_it_was_asked(numbers: cfx.Explanation) -> None:
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


def test_a_chart_says_how_many_changes_it_leaves_out() -> None:
    d = MOST + 3
    X = np.random.default_rng(0).uniform(size=(40, d))
    answer = cfx.explain(
        lambda X: X.sum(axis=1), X[0], cfx.Space.from_data(X), 20.0, budget=20, rng=0
    )
    info = change_info(View.of(with_row(answer, X[1])))
    assert (len(info.changes), info.hidden) == (MOST, 3)


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


def test_evaluations_of_other_columns_are_left_aside(numbers: cfx.Explanation) -> None:
    strange = replace(numbers, evaluations=cfx.Evaluations(np.zeros((5, 7)), np.arange(5.0)))
    assert len(View.of(strange).y) == 0


def test_derived_columns_whose_function_is_lost_count_as_changes(mixed: cfx.Explanation) -> None:
    again = cfx.Explanation.from_json(mixed.to_json())
    before, after = (change_info(View.of(answer)) for answer in (mixed, again))
    assert {c.name for c in before.changes} == {c.name for c in after.changes}
    assert not any(c.derived for c in after.changes)


def test_scales_name_their_codes() -> None:
    moments = cfx.Moment("2020-01-01", "2020-01-31")
    assert Scale(moments, 0.0, 30.0).label(2.0) == "2020-01-03"
    assert Scale(cfx.Moment("2020-01-01", "2020-01-31", "h"), 0, 9).label(2) == "2020-01-01 02:00"
    levels = Scale(cfx.Categorical(range(40)), 0.0, 39.0)
    assert len(levels.levels) == 0
    assert [text for _, text in levels.ticks(3)] == ["0", "20", "39"]
    assert Scale(cfx.Real(0, 1), 0, 1).label(float("nan")) == "missing"
    assert Scale(cfx.Real(2, 2), 2, 2).place(2.0) == 0.5


# ── the search and the potential ──


def test_convergence_tells_the_first_row_that_was_accepted(numbers: cfx.Explanation) -> None:
    info = convergence_info(numbers)
    (low, high), y = numbers.accepted[0], numbers.evaluations.outputs
    first = int(np.flatnonzero((y >= low) & (y <= high))[0]) + 1
    assert info.reached_at == first
    assert info.scores is not None
    np.testing.assert_allclose(np.maximum.accumulate(info.scores), info.best)


def test_convergence_of_shared_evaluations_shows_the_trace_alone(
    numbers: cfx.Explanation,
) -> None:
    known = cfx.Evaluations(np.zeros((3, 3)), np.zeros(3))
    info = convergence_info(replace(numbers, evaluations=known))
    assert info.scores is None
    assert info.reached_at is not None
    assert info.best[info.reached_at - 1] >= 0.99


def test_nothing_is_reached_out_of_reach(mixed: cfx.Explanation) -> None:
    assert convergence_info(mixed).reached_at is None


def test_the_potential_is_nothing_at_the_query_and_whole_at_the_target(
    numbers: cfx.Explanation,
) -> None:
    info = potential_info(numbers)
    assert info.share is not None
    at = dict(zip(info.outputs.tolist(), info.share.tolist(), strict=True))
    assert at[numbers.output] == 0.0
    assert np.interp(numbers.output + 1.5, info.outputs, info.share) == pytest.approx(1.0, abs=1e-3)
    assert info.outputs[0] < info.reachable[0] <= info.reachable[1] < info.outputs[-1]


class Bump:
    """A potential of the user's own."""

    def value(self, y: Any) -> Any:
        return np.exp(-((np.asarray(y) - 3.0) ** 2))

    def slope(self, y: Any) -> Any:
        return -2 * (np.asarray(y) - 3.0) * self.value(y)


def test_of_a_potential_of_the_users_own_only_the_target_is_left_after_json() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    answer = cfx.explain(linear, X[0] * 0 + 0.4, cfx.Space.from_data(X), Bump(), budget=30, rng=0)
    assert potential_info(answer).share is not None
    again = cfx.Explanation.from_json(answer.to_json())
    info = potential_info(again)
    assert info.share is None
    assert info.accepted == answer.accepted
    plots.potential(again)
    plots.convergence(again)


# ── the surrogate ──


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


def test_unknown_features_are_named(numbers: cfx.Explanation) -> None:
    with pytest.raises(SpaceError, match="`space` has no feature 'x9'"):
        plots.response(numbers, feature="x9")


def test_too_few_rows_for_a_surrogate_are_told(numbers: cfx.Explanation) -> None:
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


def test_maps_leave_out_what_is_not_allowed() -> None:
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


# ── many answers ──


def test_movements_count_every_change_of_the_best_answers(many: cfx.Explanations) -> None:
    info = movement_info(many)
    assert (info.answers, info.reached) == (4, sum(a.reached for a in many))
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
    assert found["weekday"].median == pytest.approx(-2 / unit["weekday"])
    assert found["weight"].moves == pytest.approx([-5 / unit["weight"]] * 2)
    assert found["job"].median is None
    assert found["job"].usual == "cook → clerk"
    assert found["job"].times == 2


# ── drawing ──


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("kind", ["numbers", "mixed", "chances"])
def test_every_picture_is_written_also_of_an_answer_read_back(
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
    for picture, ax in zip(PICTURES, axes.flat, strict=False):
        assert picture(numbers, ax) is ax
    assert plots.movements(many, axes[1, 2]) is axes[1, 2]
    assert len(plt.get_fignums()) == 1
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


def test_letters_that_the_font_lacks_do_no_harm(tmp_path: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(30, 2)), columns=["年齢", "b"])
    answer = cfx.explain(
        lambda X: X["年齢"], X.iloc[0], cfx.Space.from_data(X), 0.9, budget=9, rng=0
    )
    plots.save(plots.response(answer), tmp_path / "a.png")
    assert "年齢" in page(answer)


def test_a_query_that_has_what_is_wanted_is_drawn_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(size=(30, 3))
    answers = cfx.explain_many(
        linear, X[:1], cfx.Space.from_data(X), cfx.at_least(-9), budget=5, rng=0
    )
    info = change_info(View.of(answers[0]))
    assert info.changes == ()
    plots.save(plots.change_chart(answers[0]), tmp_path / "a.png")
    assert potential_info(answers[0]).share is None
    assert "no change" in page(answers[0])
    assert plots.movements(answers).get_xlim()[1] > 0


def test_a_missing_matplotlib_says_what_to_install(
    numbers: cfx.Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayescfx\[plots\]'"):
        plots.change_chart(numbers)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayescfx\[plots\]'"):
        page(numbers)


# ── the report ──


class Checker(HTMLParser):
    """Collect tags and text; complain of what is not closed."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_a_report_is_well_formed_escaped_and_needs_nothing_else(
    mixed: cfx.Explanation, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    plots.report(mixed, path)
    found = checked(path.read_text(encoding="utf-8"))
    tags = {tag for tag, _ in found.seen}
    assert not tags & {"script", "link", "iframe", "b"}
    pictures = [attributes for tag, attributes in found.seen if tag == "img"]
    assert len(pictures) >= 5
    for attributes in pictures:
        assert (attributes["src"] or "").startswith("data:image/svg+xml;base64,")
        assert attributes["alt"]
    text = "".join(found.text)
    assert "hours <b>&$x$" in text
    assert mixed.verdict in text


def test_a_report_shows_every_answer_and_the_whole_query() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 3))
    answer = cfx.explain(
        linear, X[0], cfx.Space.from_data(X), cfx.increase(by=1), budget=40, n=2, rng=0
    )
    html = page(answer)
    text = "|".join(checked(html).text)
    assert "answer 2" in text
    assert all(name in text for name in ("x0", "x1", "x2"))
    assert html == page(answer)


def test_a_report_of_an_answer_read_back_works(mixed: cfx.Explanation) -> None:
    text = "".join(checked(page(cfx.Explanation.from_json(mixed.to_json()))).text)
    assert "not restored: derive('bmi')" in text


def test_a_report_without_a_surrogate_leaves_its_pictures_out(numbers: cfx.Explanation) -> None:
    html = page(replace(numbers, evaluations=cfx.Evaluations()))
    assert "How the prediction responds" not in html
    assert "How the prediction responds" in page(numbers)
    checked(html)


def test_a_report_of_many_answers_has_a_section_for_each(many: cfx.Explanations) -> None:
    text = "".join(checked(page(many)).text)
    assert all(f"Query {i}" in text for i in range(4))
    checked(page(cfx.Explanations([])))
