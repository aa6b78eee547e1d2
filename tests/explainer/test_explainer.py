"""`explain` and `explain_many` from end to end, with real models."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.errors import BayesCFXWarning
from bayescfx.explainer import run as explainer
from bayescfx.search.methods import METHODS

LEVELS = ["clerk", "nurse", "cook"]


# ── data and models ──


@cache
def mixed() -> pd.DataFrame:
    """Return a mixed table: ints, floats, booleans, categories, text, and a column with gaps."""
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "hours": rng.integers(10, 60, n).astype(np.int16),
            "member": rng.random(n) < 0.5,
            "job": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS),
            "city": rng.choice(["Ulm", 'Köln "am Rhein"', "Bern"], n),
            "score": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        }
    )


def outcome(rows: pd.DataFrame) -> Any:
    """Return what the pipelines are trained on."""
    job = np.asarray(rows["job"] == "cook")
    y = 0.1 * rows["age"] + rows["income"] / 1e4 + 0.05 * rows["hours"]
    return y + 2.0 * rows["member"] + 3.0 * job + 1.5 * (rows["city"] == "Ulm")


@cache
def pipeline(kind: str) -> Pipeline:
    model: Any = HistGradientBoostingRegressor(max_iter=40, random_state=0)
    if kind == "lightgbm":
        model = LGBMRegressor(n_estimators=40, random_state=0, verbose=-1, n_jobs=1)
    encode = ColumnTransformer(
        [
            ("levels", OneHotEncoder(sparse_output=False), ["job", "city"]),
            ("numbers", StandardScaler(), ["age", "income", "hours", "score"]),
        ],
        remainder="passthrough",
    )
    X = mixed()
    return Pipeline([("encode", encode), ("model", model)]).fit(X, outcome(X))


@cache
def people() -> cfx.Space:
    return cfx.Space.from_data(mixed()).fix("score", "city").only_up("age")


def plane(rows: Any) -> Any:
    """Return a model that is quick to ask: 2a + b - c."""
    block = np.asarray(rows, dtype=float)
    return 2.0 * block[:, 0] + block[:, 1] - block[:, 2]


@cache
def cube() -> cfx.Space:
    return cfx.Space.from_data(pd.DataFrame(cloud(), columns=list("abc")))


@cache
def cloud() -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(1).uniform(size=(60, 3))


ZERO = {"a": 0.25, "b": 0.25, "c": 0.25}  # plane is 0.5 here


class Counter:
    """A model that counts what it is asked."""

    def __init__(self, model: Callable[[Any], Any]) -> None:
        self.model = model
        self.calls: list[int] = []
        self.rows: list[pd.DataFrame] = []

    def __call__(self, rows: Any) -> Any:
        self.calls.append(len(rows))
        self.rows.append(pd.DataFrame(rows).copy())
        return self.model(rows)

    @property
    def n(self) -> int:
        return sum(self.calls)

    @property
    def asked(self) -> pd.DataFrame:
        return pd.concat(self.rows, ignore_index=True)


def stubborn(method: str) -> Any:
    """Return a method that spends its budget, however hopeless the target."""
    return cfx.BayesCFX(give_up=False) if method == "bayes-cfx" else method


def same(one: Any, other: Any) -> bool:
    """Return whether two cells hold the same value."""
    return bool(one == other) or bool(pd.isna(one) and pd.isna(other))


def codes(answer: cfx.Explanation) -> list[list[Any]]:
    return [list(c.row) for c in answer.counterfactuals]


# ── real models on a mixed table ──


@pytest.mark.parametrize("kind", ["histogram", "lightgbm"])
def test_a_pipeline_on_a_mixed_table_is_explained_exactly(kind: str) -> None:
    model, X = pipeline(kind), mixed()
    query = X[X["score"].isna()].iloc[0]
    answer = cfx.explain(model, query, people(), cfx.increase(by=2), budget=40, rng=0)
    assert answer.reached
    rows = answer.to_frame()[list(X.columns)]
    assert rows.dtypes.equals(X.dtypes)
    # what is handed out is, to the last bit, what the model scores
    assert model.predict(rows).tolist() == [c.output for c in answer.counterfactuals]
    assert model.predict(X.loc[[query.name]])[0] == answer.output
    for c in answer.counterfactuals:
        assert c.valid
        for name in X.columns:
            assert (name in c.changes) != same(c.row[name], query[name])
    assert not {"score", "city"} & set(answer.best.changes)
    assert answer.best.row["age"] >= query["age"]
    assert answer.verify(model)


def test_an_answer_is_sparse_and_no_change_can_be_taken_back() -> None:
    model, X = pipeline("histogram"), mixed()
    answer = cfx.explain(model, X.iloc[3], people(), cfx.increase(by=2), budget=60, rng=0)
    assert answer.reached
    assert answer.best.n_changes <= 3
    (low, high), *_ = answer.accepted
    for name, (before, _) in answer.best.changes.items():
        row = answer.to_frame()[list(X.columns)].iloc[[0]].copy()
        row[name] = pd.Series([before], index=row.index).astype(X[name].dtype)
        assert not low <= model.predict(row)[0] <= high


@pytest.mark.parametrize("method", METHODS)
def test_every_method_returns_rows_as_the_model_scored_them(method: str) -> None:
    model, X = pipeline("histogram"), mixed()
    answer = cfx.explain(
        model, X.iloc[5], people(), cfx.decrease(by=1.5), method=method, budget=25, rng=0, n=3
    )
    rows = answer.to_frame()[list(X.columns)]
    assert model.predict(rows).tolist() == [c.output for c in answer.counterfactuals]
    assert answer.method == method
    assert answer.verify(model)


def test_all_features_may_be_categorical() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("uvw"), 50) for name in "abcd"})
    model = lambda r: (r == "w").sum(axis=1)  # noqa: E731  # a bare callable
    query = {name: "u" for name in "abcd"}
    answer = cfx.explain(model, query, cfx.Space.from_data(X), 3, budget=40, rng=0)
    assert answer.reached
    assert answer.best.n_changes == 3


def test_all_features_may_be_continuous() -> None:
    answer = cfx.explain(plane, ZERO, cube(), cfx.increase(by=1), budget=25, rng=0)
    assert answer.reached
    assert answer.best.n_changes == 1  # 2a is the shortest way
    assert list(answer.best.changes) == ["a"]


@pytest.mark.parametrize("name", ["age", "income", "member", "job"])
def test_one_feature_may_be_free(name: str) -> None:
    query = mixed().iloc[1]
    space = cfx.Space.from_data(mixed()).allow(name)
    answer = cfx.explain(outcome, query, space, cfx.increase(by=50), budget=15, rng=0)
    assert set(answer.best.changes) <= {name}
    assert answer.status in ("best_guess", "unreachable")


def test_one_row_of_background_is_enough() -> None:
    X = pd.DataFrame({"a": [1.0], "b": [True]})
    answer = cfx.explain(
        lambda r: r["a"] + 2.0 * r["b"],
        X.iloc[0],
        cfx.Space.from_data(X).between({"a": (0, 3)}),
        cfx.decrease(by=2),
        budget=20,
        rng=0,
    )
    assert answer.reached
    assert answer.best.changes == {"b": (True, False)}


def test_arrays_in_arrays_out() -> None:
    seen: list[type] = []

    def model(X: Any) -> Any:
        seen.append(type(X))
        return plane(X)

    space = cfx.Space.from_data(cloud())
    answer = cfx.explain(model, [0.25, 0.25, 0.25], space, cfx.increase(by=1), budget=15, rng=0)
    assert set(seen) == {np.ndarray}
    assert isinstance(answer.best.row, np.ndarray)
    assert plane(answer.best.row[None])[0] == answer.best.output


@pytest.mark.parametrize(
    "wrap",
    [
        lambda y: list(y),
        lambda y: pd.Series(y, index=range(5, 5 + len(y))),
        lambda y: y[:, None],
        lambda y: np.round(100 * y).astype(int) / 100.0,
        lambda y: y.astype(np.float32),
        lambda y: y > 1.0,
    ],
    ids=["list", "series", "column", "rounded", "single", "bool"],
)
def test_outputs_may_come_in_any_numeric_form(wrap: Callable[[Any], Any]) -> None:
    space = cfx.Space.from_data(cloud())
    query = [0.25, 0.25, 0.25]
    answer = cfx.explain(lambda X: wrap(plane(X)), query, space, 1.0, budget=25, rng=0)
    assert answer.reached


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scales_of_inputs_and_outputs_do_not_matter(scale: float) -> None:
    X = cloud() * [scale, 1.0, 1.0]
    answer = cfx.explain(
        lambda X: (X[:, 0] / scale + X[:, 1]) * scale,
        X[0],
        cfx.Space.from_data(X),
        cfx.increase(percent=30),
        budget=25,
        rng=0,
    )
    assert answer.reached


def test_times_groups_derived_columns_and_circles_work_together() -> None:
    X = mixed().assign(
        day=pd.date_range("2024-01-01", periods=300, freq="D"),
        weekday=np.arange(300) % 7,
        red=(np.arange(300) % 2).astype(int),
        blue=(np.arange(300) % 2 == 0).astype(int),
        double=2.0 * mixed()["age"],
    )
    space = (
        cfx.Space.from_data(X, kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
        .group("colour", ["red", "blue"])
        .derive("double", lambda r: 2.0 * r["age"])
        .together("age", "hours")
        .near_data(X.drop(columns=[]), quantile=1.0)
        .fix("score")
        .max_changes(4)
    )

    def model(rows: pd.DataFrame) -> Any:
        days = (rows["day"] - pd.Timestamp("2024-01-01")).dt.days
        ring = (rows["weekday"] - 6).abs() % 6
        return days / 100 + rows["double"] / 50 + 0.3 * ring + 2.0 * rows["red"]

    answer = cfx.explain(model, X.iloc[10], space, cfx.increase(by=2), budget=30, rng=0)
    for c in answer.counterfactuals:
        assert c.row["red"] + c.row["blue"] == 1
        assert c.row["double"] == 2.0 * c.row["age"]
        assert np.sign(c.row["age"] - X["age"].iloc[10]) == np.sign(
            float(c.row["hours"]) - X["hours"].iloc[10]
        )
    assert answer.verify(model)


def test_a_rule_that_one_row_in_a_hundred_keeps_is_kept() -> None:
    X = pd.DataFrame(cloud(), columns=list("abc"))
    space = (
        cfx.Space.from_data(X)
        .require("a <= b")
        .require(lambda r: (r["a"] - r["c"]).abs() <= 0.01, "a and c agree")
    )
    answer = cfx.explain(
        lambda r: r["a"] + r["b"], ZERO, space, cfx.increase(by=0.5), budget=40, rng=0
    )
    assert answer.reached
    row = answer.best.row
    assert row["a"] <= row["b"]
    assert abs(row["a"] - row["c"]) <= 0.01
    assert answer.verify(lambda r: r["a"] + r["b"])


def test_a_query_that_breaks_a_rule_is_explained_by_rows_that_keep_it() -> None:
    space = cube().require("a >= 0.5")
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=1), budget=15, rng=0)
    assert answer.reached
    assert all(c.row["a"] >= 0.5 for c in answer.counterfactuals)


@pytest.mark.parametrize("method", METHODS)
def test_a_query_that_breaks_a_rule_is_its_own_best_guess_if_nothing_else_was_scored(
    method: str,
) -> None:
    space = cube().require("a >= 0.5")
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=1), method=method, budget=1, rng=0)
    assert answer.status == "best_guess"
    assert answer.best.changes == {}
    assert not answer.best.valid
    assert np.isnan(answer.reachable).all()
    assert "No allowed row was scored." in repr(answer)
    assert cfx.Explanation.from_json(answer.to_json()).best.changes == {}


# ── random spaces: no limit, level, direction or relation is ever broken ──


def random_question(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = mixed().drop(columns="score").iloc[rng.permutation(300)[: rng.integers(30, 300)]]
    space, names = cfx.Space.from_data(X), list(X.columns)
    query = X.iloc[0]
    fixed = set(rng.choice(names, rng.integers(0, 3), replace=False))
    space = space.fix(*fixed)
    low, high = np.sort(rng.uniform(18, 80, 2))
    space = space.between({"age": (low, high)}).move({"hours": (-5, int(rng.integers(1, 9)))})
    down, few_jobs, ruled = rng.random(3) < 0.5
    if down:
        space = space.only_down("income")
    if few_jobs:
        space = space.between({"job": LEVELS[:2]})
    if ruled:
        space = space.require("age + hours <= 100")
    k = int(rng.integers(1, 5))
    space = space.max_changes(k)
    method = str(rng.choice(["random", "lbfgsb", "bayes-cfx"], p=[0.6, 0.3, 0.1]))
    try:
        answer = cfx.explain(
            outcome, query, space, cfx.increase(by=3), method=method, budget=6, rng=seed, n=3
        )
    except cfx.InfeasibleError:
        return
    for c in answer.counterfactuals:
        row = c.row
        moved = {name for name in names if not same(row[name], query[name])}
        assert moved == set(c.changes)
        assert len(moved) <= k
        assert not moved & fixed
        assert "age" not in moved or low <= row["age"] <= high
        assert -5 <= int(row["hours"]) - int(query["hours"]) <= 9
        assert "income" not in moved or not down or row["income"] < query["income"]
        assert "job" not in moved or not few_jobs or row["job"] in LEVELS[:2]
        assert not moved or not ruled or row["age"] + row["hours"] <= 100
    assert answer.verify(outcome)


def test_random_questions_keep_every_limit() -> None:
    for seed in range(40):
        random_question(seed)


@pytest.mark.slow
def test_a_thousand_random_questions_keep_every_limit() -> None:
    for seed in range(80, 1080):
        random_question(seed)


# ── honest endings ──


def test_an_unreachable_target_is_said_to_be_so() -> None:
    space = cube().between({"a": (0, 0.4)}).fix("c")
    answer = cfx.explain(plane, ZERO, space, 4.0, budget=100, rng=0)
    assert answer.status == "unreachable"
    assert answer.stopped == "unreachable"
    assert not answer.reached
    assert answer.n_evaluations < 100
    low, high = answer.reachable
    assert low < 0.5 < high < 1.6
    assert answer.best.output == high  # the best guess is as near as any row came
    assert answer.probability_reachable is not None
    assert answer.probability_reachable < 0.05
    assert any("'a'" in name for name in answer.binding)
    text = repr(answer)
    assert "Probably out of reach, judged by the surrogate of the model, not proven." in text
    assert "The surrogate gives the target a probability of less than 1 %" in text
    assert "would bring it nearer, as the surrogate sees it: limit on 'a' (at most 0.4)." in text


def test_a_finite_region_without_the_target_is_exhausted() -> None:
    space = cfx.Space({"a": cfx.Integer(0, 3), "b": cfx.Categorical(["x", "y"])})
    answer = cfx.explain(lambda r: r["a"], {"a": 0, "b": "x"}, space, 9, budget=50, rng=0)
    assert (answer.status, answer.stopped) == ("unreachable", "exhausted")
    assert answer.n_evaluations == 8
    assert answer.probability_reachable == 0.0
    assert answer.reachable == (0.0, 3.0)
    assert answer.best.output == 3.0
    assert "Out of reach: every allowed point has been tried. Outputs seen: 0 to 3." in repr(answer)


def test_a_constant_model_has_no_counterfactual() -> None:
    answer = cfx.explain(lambda X: np.ones(len(X)), ZERO, cube(), 2.0, budget=60, rng=0)
    # Outputs that never vary say nothing of what lies beyond a jump: no verdict.
    assert answer.status == "best_guess"
    assert answer.probability_reachable is None
    assert answer.best.changes == {}  # no row is nearer than the query itself
    assert answer.reachable == (1.0, 1.0)


def test_the_best_guess_is_the_nearest_output_not_the_nearest_row() -> None:
    answer = cfx.explain(plane, ZERO, cube(), 1e6, method="random", budget=50, rng=0)
    assert answer.status == "best_guess"
    assert answer.best.output == answer.reachable[1]


def test_few_rows_give_no_probability() -> None:
    answer = cfx.explain(plane, ZERO, cube(), 100.0, budget=3, rng=0)
    assert answer.status == "best_guess"
    assert answer.stopped == "budget"
    assert answer.probability_reachable is None
    assert "surrogate" not in repr(answer)


def test_fifty_answers_where_three_exist_are_three() -> None:
    space = cfx.Space({name: cfx.Categorical([0, 1]) for name in "abc"})
    query = dict.fromkeys("abc", 0)
    answer = cfx.explain(lambda r: r.sum(axis=1), query, space, 1, budget=50, n=50, rng=0)
    assert len(answer.counterfactuals) == 3
    assert {tuple(c.changes) for c in answer.counterfactuals} == {("a",), ("b",), ("c",)}
    assert len(answer.to_frame()) == 3


@pytest.mark.parametrize("weight", [0.1, 0.0])
def test_several_answers_change_different_features_and_no_trifles(weight: float) -> None:
    space = cube().cost(weight=weight)
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=0.5), budget=40, n=3, rng=0)
    answers = answer.counterfactuals
    assert len(answers) == 3
    assert all(c.valid for c in answers)
    assert len({tuple(c.changes) for c in answers}) == 3
    assert [c.cost for c in answers] == sorted(c.cost for c in answers)
    scale = dict(zip("abc", space.scale, strict=True))
    for c in answers if weight else ():
        moves = [abs(after - before) / scale[str(n)] for n, (before, after) in c.changes.items()]
        assert min(moves) > 0.02 * max(moves)


# ── budget, time, interruption ──


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [1, 2, 3, 17])
def test_the_budget_is_exact(method: str, budget: int) -> None:
    model = Counter(plane)
    answer = cfx.explain(model, ZERO, cube(), 40.0, method=stubborn(method), budget=budget, rng=0)
    assert model.n == answer.n_evaluations == len(answer.trace) == len(answer.evaluations) == budget
    assert answer.stopped == "budget"
    assert not model.asked.duplicated().any()


class Clock:
    """A clock that moves on with every model call, and a little with every look at it."""

    def __init__(self, per_call: float, per_look: float) -> None:
        self.now, self.per_call, self.per_look = 0.0, per_call, per_look
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now += self.per_look
        return self.now

    def model(self, rows: Any) -> Any:
        self.now += self.per_call
        return plane(rows)


@pytest.mark.parametrize("method", METHODS)
def test_the_time_is_kept_between_model_calls(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(per_call=1.0, per_look=0.0)
    monkeypatch.setattr(time, "monotonic", clock)
    answer = cfx.explain(
        clock.model, ZERO, cube(), 40.0, method=method, budget=1000, timeout=3.5, rng=0
    )
    assert answer.stopped == "timeout"
    assert clock.now == 4.0  # no model call begins after the deadline
    assert answer.status == "best_guess"
    assert "the time is over" in repr(answer)


def test_the_time_is_kept_while_fitting_and_proposing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(per_call=0.0, per_look=0.01)
    monkeypatch.setattr(time, "monotonic", clock)
    answer = cfx.explain(clock.model, ZERO, cube(), 40.0, budget=1000, timeout=0.3, rng=0)
    assert answer.stopped == "timeout"
    # looks after the deadline: the one that ends the search, and the report's
    assert clock.now < 0.3 + 5 * clock.per_look


@pytest.mark.parametrize("method", METHODS)
def test_no_time_at_all_still_gives_an_answer(method: str) -> None:
    answer = cfx.explain(plane, ZERO, cube(), 2.0, method=method, timeout=0, rng=0)
    assert answer.stopped == "timeout"
    assert answer.n_evaluations == 1
    assert answer.best.changes == {}


@pytest.mark.parametrize("method", METHODS)
def test_steps_are_heard_after_each_model_call(method: str) -> None:
    model, steps = Counter(plane), list[cfx.Step]()
    cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=12, rng=0, on_step=steps.append)
    assert [s.n_evaluations for s in steps] == np.cumsum(model.calls)[1:].tolist()
    assert {(s.question, s.budget, s.reached) for s in steps} == {(0, 12, False)}
    potential = [s.potential for s in steps]
    assert potential == sorted(potential)
    with pytest.raises(AttributeError):
        steps[0].output = 1.0  # type: ignore[misc]  # frozen, which is what is tested


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("interruption", [StopIteration, KeyboardInterrupt])
def test_on_step_ends_the_search_with_the_best_so_far(
    method: str, interruption: type[BaseException]
) -> None:
    steps: list[cfx.Step] = []

    def listen(step: cfx.Step) -> None:
        steps.append(step)
        if step.n_evaluations >= 6:
            raise interruption

    model = Counter(plane)
    answer = cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=50, rng=0, on_step=listen)
    assert answer.stopped == "interrupted"
    assert answer.n_evaluations == model.n == steps[-1].n_evaluations
    assert answer.best.output == steps[-1].output
    assert "it was interrupted" in repr(answer)


@pytest.mark.parametrize("method", ["bayes-cfx", "lbfgsb"])
def test_an_error_in_on_step_ends_the_search_with_a_warning(method: str) -> None:
    def listen(step: cfx.Step) -> None:
        raise ZeroDivisionError("oh")

    with pytest.warns(BayesCFXWarning) as caught:
        answer = cfx.explain(
            plane, ZERO, cube(), 40.0, method=method, budget=50, rng=0, on_step=listen
        )
    assert str(caught[0].message) == (
        "`on_step` raised ZeroDivisionError('oh'), which ended the search. "
        "Raise StopIteration to end it quietly."
    )
    assert caught[0].filename == __file__
    assert answer.stopped == "interrupted"


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_in_the_model_ends_the_search_with_the_best_so_far(method: str) -> None:
    calls = [0]

    def model(rows: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt
        return plane(rows)

    answer = cfx.explain(model, ZERO, cube(), 40.0, method=method, budget=100, rng=0)
    assert answer.stopped == "interrupted"
    assert len(answer.evaluations) < 100


# ── seeds ──


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_answer_and_leaves_the_global_state_alone(method: str) -> None:
    before = str(np.random.get_state())  # noqa: NPY002  # the global state is what is tested

    def ask(rng: Any) -> cfx.Explanation:
        return cfx.explain(
            plane, ZERO, cube(), cfx.increase(by=1), method=method, budget=9, n=2, rng=rng
        )

    first, again = ask(7), ask(7)
    assert codes(first) == codes(again)
    assert first.trace.tolist() == again.trace.tolist()
    assert codes(ask(np.random.default_rng(7))) == codes(first)
    assert first.seed == 7
    assert str(np.random.get_state()) == before  # noqa: NPY002  # see above
    plain = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))
    assert codes(ask(plain)) == codes(first)


def test_batches_are_deterministic() -> None:
    model = Counter(plane)
    for _ in range(2):
        cfx.explain(model, ZERO, cube(), 2.0, method=cfx.BayesCFX(batch=16), budget=60, rng=0)
    half = len(model.calls) // 2
    assert model.calls[:half] == model.calls[half:]
    assert max(model.calls) == 16
    asked = model.asked
    first, second = asked[: len(asked) // 2], asked[len(asked) // 2 :]
    assert first.reset_index(drop=True).equals(second.reset_index(drop=True))


# ── faults ──


def faulty(kind: str, after: int) -> Callable[[Any], Any]:
    """Return a model that fails once it has been called some times."""
    calls = [0]

    def model(rows: Any) -> Any:
        calls[0] += 1
        y = plane(rows)
        if calls[0] <= after:
            return y
        if kind == "shape":
            return np.stack([y, y], axis=1)
        if kind == "error":
            raise RuntimeError("boom")
        y[-1] = {"nan": np.nan, "inf": np.inf}[kind]
        return y

    return model


FAULTS = {
    "shape": (cfx.ModelError, r"`model` returned shape \(\d+, 2\) for \d+ rows?; expected \(\d+,"),
    "nan": (cfx.ModelError, r"`model` returned nan for \{'a': .*\}\. Exclude that region with"),
    "inf": (cfx.ModelError, r"`model` returned inf for \{'a': .*\}\. Exclude that region with"),
    "error": (RuntimeError, "boom"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_the_model_is_an_error_that_carries_what_is_known(
    method: str, kind: str
) -> None:
    error, message = FAULTS[kind]
    with pytest.raises(error, match=message) as caught:
        cfx.explain(faulty(kind, 2), ZERO, cube(), 40.0, method=method, budget=90, rng=0)
    known = caught.value.evaluations  # type: ignore[attr-defined]  # attached to any error
    assert isinstance(known, cfx.Evaluations)
    assert len(known) >= 2
    assert known.outputs.tolist() == plane(known.rows).tolist()
    if kind == "error":
        (note,) = caught.value.__notes__
        assert note.startswith("while evaluating ")
        assert "{'a': " in note
    if method != "random":
        return
    # and it is of use: nothing is asked again
    model = Counter(plane)
    before = known.to_frame()[list("abc")]
    cfx.explain(model, ZERO, cube(), 1.5, budget=len(known) + 6, rng=0, evaluations=known)
    assert not pd.concat([before, model.asked]).duplicated().any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["nan", "inf", "error"])
def test_faults_can_be_skipped(method: str, kind: str) -> None:
    def model(rows: Any) -> Any:
        y, bad = plane(rows), np.asarray(rows)[:, 1] > 0.6
        if kind == "error" and bad.any():
            raise RuntimeError("boom")
        return np.where(bad, float("nan" if kind == "error" else kind), y)

    counter = Counter(model)
    answer = cfx.explain(
        counter,
        ZERO,
        cube(),
        cfx.increase(by=1),
        method=method,
        budget=20,
        rng=0,
        on_fault="skip",
    )
    assert counter.n == answer.n_evaluations <= 20
    assert all(c.row["b"] <= 0.6 for c in answer.counterfactuals)
    assert np.isfinite(answer.reachable).all()
    assert answer.verify(plane)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", [None, "a >= 0.5"], ids=["free", "ruled"])
def test_a_model_that_fails_everywhere_else_ends_at_the_budget(
    method: str, rule: str | None
) -> None:
    def model(rows: Any) -> Any:
        return np.where((np.asarray(rows) == 0.25).all(axis=1), plane(rows), np.nan)

    counter = Counter(model)
    space = cube() if rule is None else cube().require(rule)
    answer = cfx.explain(
        counter, ZERO, space, 2.0, method=method, budget=20, rng=0, on_fault="skip"
    )
    assert counter.n == answer.n_evaluations <= 20
    assert answer.status == "best_guess"
    assert answer.best.changes == {}
    assert answer.probability_reachable is None


@pytest.mark.parametrize("method", ["bayes-cfx", "bayes", "random", "lbfgsb"])
def test_a_finite_region_of_faults_is_exhausted(method: str) -> None:
    space = cfx.Space({"a": cfx.Integer(0, 5), "b": cfx.Integer(0, 5)})
    answer = cfx.explain(
        lambda r: np.where(r["a"] > 2, np.nan, r["a"]),
        {"a": 0, "b": 0},
        space,
        5,
        method=method,
        budget=500,
        rng=0,
        on_fault="skip",
    )
    assert answer.stopped == "exhausted"
    assert answer.n_evaluations == 36
    assert answer.best.output == 2.0


def test_a_query_without_an_output_is_an_error_even_if_faults_are_skipped() -> None:
    message = (
        r"`model` must have an output for the query; it fails for \{'a': 0.25, 'b': 0.25, "
        r"'c': 0.25\}\. Correct the query or the model\."
    )
    with pytest.raises(cfx.ModelError, match=message) as caught:
        cfx.explain(lambda X: np.full(len(X), np.nan), ZERO, cube(), 1, on_fault="skip")
    assert len(caught.value.evaluations) == 1  # type: ignore[attr-defined]  # attached
    assert "returned nan" in caught.value.__notes__[0]
    second = np.array([[0.25, 0.25, 0.25], [0.5, 0.5, 0.5]])
    with pytest.raises(cfx.ModelError, match="an output for the query at position 1; it fails"):
        cfx.explain_many(
            lambda X: np.where(np.asarray(X)[:, 0] == 0.5, np.nan, 0.0),
            second,
            cfx.Space.from_data(cloud()),
            1,
            on_fault="skip",
        )


# ── what is known already ──


def test_a_second_question_is_cheaper() -> None:
    known, X = cfx.Evaluations(), mixed()
    model = Counter(pipeline("histogram").predict)
    target = cfx.increase(by=2)
    first = cfx.explain(model, X.iloc[0], people(), target, budget=60, rng=0, evaluations=known)
    assert first.reached
    assert first.evaluations is known
    assert len(known) == model.n == first.n_evaluations
    second = cfx.explain(model, X.iloc[0], people(), target, budget=60, rng=1, evaluations=known)
    assert second.reached
    assert second.n_evaluations < first.n_evaluations
    assert second.best.cost <= first.best.cost
    assert not model.asked.astype(str).duplicated().any()


def test_evaluations_in_a_file_serve_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "known.db"
    model = Counter(plane)
    with cfx.Evaluations.open(path) as known:
        first = cfx.explain(model, ZERO, cube(), 1.2, budget=30, rng=0, evaluations=known)
    spent = model.n
    with cfx.Evaluations.open(path) as known:
        assert len(known) == spent
        again = cfx.explain(model, ZERO, cube(), 1.2, budget=30, rng=0, evaluations=known)
    assert first.reached
    assert again.reached
    assert again.n_evaluations < first.n_evaluations
    assert not model.asked.duplicated().any()


# ── classifiers ──


@cache
def classifier() -> LogisticRegression:
    X = cloud()
    return LogisticRegression(C=100.0).fit(X, plane(X) > 1.0)


@pytest.mark.parametrize("goal", [0.002, 0.5, 0.998])
def test_probabilities_near_zero_and_one_are_reached(goal: float) -> None:
    model = cfx.probability(classifier(), True)
    space = cfx.Space.from_data(cloud())
    query = cloud()[np.argmin(np.abs(model(cloud()) - 0.2))]
    answer = cfx.explain(model, query, space, goal, budget=40, rng=0)
    assert answer.reached
    assert abs(answer.best.output - goal) <= 0.05 * abs(answer.output - goal) + 1e-12
    found = classifier().predict_proba(np.asarray(answer.best.row)[None])[0, 1]
    assert found == answer.best.output
    assert answer.verify(model)


def test_any_class_of_several_can_be_asked_for() -> None:
    X = cloud()
    labels = np.array(["low", "mid", "high"])[np.digitize(plane(X), [0.6, 1.3])]
    forest = RandomForestClassifier(10, random_state=0).fit(X, labels)
    space = cfx.Space.from_data(X)
    query = X[np.flatnonzero(forest.predict(X) == "low")[0]]
    answer = cfx.explain(
        cfx.probability(forest, "high"), query, space, cfx.at_least(0.7), budget=50, rng=0
    )
    assert answer.reached
    assert forest.predict(np.asarray(answer.best.row)[None])[0] == "high"


# ── targets ──


class Bell:
    """A user's own potential: a bell around 1.5."""

    def value(self, y: Any) -> Any:
        return np.exp(-((np.asarray(y) - 1.5) ** 2))

    def slope(self, y: Any) -> Any:
        y = np.asarray(y)
        return -2.0 * (y - 1.5) * np.exp(-((y - 1.5) ** 2))


@pytest.mark.parametrize("budget", [1, 3, 30])
def test_a_potential_of_the_user_leads_to_its_peak_wherever_it_is(budget: int) -> None:
    model = Counter(plane)
    answer = cfx.explain(model, ZERO, cube(), Bell(), budget=budget, rng=0)
    assert model.n == answer.n_evaluations <= budget
    ((low, high),) = answer.wanted
    assert low == pytest.approx(1.5, abs=1e-3)
    assert high == pytest.approx(1.5, abs=1e-3)
    if budget == 30:
        assert answer.reached
        assert answer.best.output == pytest.approx(1.5, abs=0.1)
        again = cfx.Explanation.from_json(answer.to_json())
        assert again.verify(plane)


def test_a_potential_that_rises_for_ever_wants_somewhat_more_than_was_seen() -> None:
    class Ramp:
        def value(self, y: Any) -> Any:
            return np.asarray(y, dtype=float)

        def slope(self, y: Any) -> Any:
            return np.ones_like(np.asarray(y, dtype=float))

    answer = cfx.explain(plane, ZERO, cube(), Ramp(), budget=25, rng=0)
    assert answer.wanted[0][0] > 2.0
    assert answer.best.output > 2.0


def test_a_potential_of_the_user_survives_faults_at_the_first_look() -> None:
    def model(rows: Any) -> Any:
        if not (np.asarray(rows) == 0.25).all():
            raise RuntimeError("boom")
        return plane(rows)

    counter = Counter(model)
    answer = cfx.explain(counter, ZERO, cube(), Bell(), budget=7, rng=0, on_fault="skip")
    assert counter.n == answer.n_evaluations == 7


def test_our_potentials_are_targets() -> None:
    answer = cfx.explain(plane, ZERO, cube(), cfx.AEP(0.5, 0.7), budget=25, rng=0)
    assert answer.reached
    assert answer.best.output == pytest.approx(1.2, abs=0.04)


def test_a_target_that_is_met_already_is_an_error_for_one_query() -> None:
    with pytest.raises(cfx.TargetError, match=r"at_least\(0.1\) asks for no change: f\(query\) is"):
        cfx.explain(plane, ZERO, cube(), cfx.at_least(0.1))


# ── answers that travel ──


def test_an_answer_verifies_itself_after_a_json_round_trip() -> None:
    model, X = pipeline("lightgbm"), mixed()
    target = cfx.increase(by=2)
    answer = cfx.explain(model, X.iloc[4], people(), target, budget=40, n=3, rng=0)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.verify(model)
    assert repr(again) == repr(answer)
    pd.testing.assert_frame_equal(again.to_frame(), answer.to_frame(), check_exact=True)
    assert not again.verify(lambda rows: model.predict(rows) + 1.0)


# ── many questions ──


def test_many_questions_share_every_round() -> None:
    model = Counter(plane)
    many = cfx.explain_many(model, cloud()[:5], cfx.Space.from_data(cloud()), 1.4, budget=15, rng=0)
    assert [answer.reached for answer in many] == [True] * 5
    assert model.calls[0] == 5  # every f(query) in one call
    assert model.n == sum(answer.n_evaluations for answer in many)
    assert len(model.calls) <= 15
    assert not model.asked.duplicated().any()
    assert all(answer.evaluations is many[0].evaluations for answer in many)


def test_sharing_saves_evaluations() -> None:
    X, space, target = cloud(), cfx.Space.from_data(cloud()), cfx.reach(1.4)
    together = cfx.explain_many(plane, X[:6], space, target, budget=30, rng=0)
    alone = [cfx.explain(plane, x, space, target, budget=30, rng=0) for x in X[:6]]
    assert all(a.reached for a in together)
    assert all(a.reached for a in alone)
    spent = sum(a.n_evaluations for a in together)
    assert spent < 0.8 * sum(a.n_evaluations for a in alone)


def test_there_may_be_one_target_per_query() -> None:
    targets = [1.2, cfx.at_most(0.2), cfx.increase(by=0.5)]
    queries = pd.DataFrame([ZERO] * 3)
    many = cfx.explain_many(plane, queries, cube(), targets, budget=25, rng=0)
    assert [a.reached for a in many] == [True] * 3
    assert many[0].best.output == pytest.approx(1.2, abs=0.05)
    assert many[1].best.output <= 0.2
    assert many[2].best.output == pytest.approx(1.0, abs=0.05)


def test_a_query_that_has_what_is_wanted_is_its_own_answer() -> None:
    queries = pd.DataFrame([ZERO, {"a": 0.9, "b": 0.9, "c": 0.1}])
    many = cfx.explain_many(plane, queries, cube(), cfx.at_least(1.0), budget=20, rng=0)
    met = many[1]
    assert met.reached
    assert met.best.changes == {}
    assert met.n_evaluations == 1
    assert met.best.output == met.output
    assert met.verify(plane)
    assert many[0].reached
    assert many[0].best.n_changes > 0


def test_a_query_that_breaks_a_rule_is_no_answer_although_it_has_what_is_wanted() -> None:
    space = cube().require("a >= 0.5")
    (answer,) = cfx.explain_many(plane, [ZERO], space, cfx.at_least(0.1), rng=0)
    assert not answer.reached
    assert not answer.best.valid


@pytest.fixture
def blocks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explainer, "BLOCK", 3)


@pytest.mark.usefixtures("blocks_of_three")
def test_jobs_do_not_change_the_answers() -> None:
    def ask(n_jobs: int) -> cfx.Explanations:
        return cfx.explain_many(
            plane,
            cloud()[:5],
            cfx.Space.from_data(cloud()),
            1.4,
            budget=7,
            rng=3,
            n_jobs=n_jobs,
            on_step=lambda step: None,
        )

    one = ask(1)
    for other in (ask(1), ask(2)):
        assert [codes(a) for a in other] == [codes(a) for a in one]
        frames = [many[0].evaluations.to_frame() for many in (one, other)]
        first, second = (f.sort_values(list(f.columns), ignore_index=True) for f in frames)
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.usefixtures("blocks_of_three")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interruption_ends_all_blocks(n_jobs: int) -> None:
    heard: list[int] = []

    def listen(step: cfx.Step) -> None:
        heard.append(step.question)
        raise StopIteration

    model = Counter(plane)
    many = cfx.explain_many(
        model,
        cloud()[:8],
        cfx.Space.from_data(cloud()),
        40.0,
        budget=30,
        rng=0,
        on_step=listen,
        n_jobs=n_jobs,
    )
    assert [a.stopped for a in many] == ["interrupted"] * 8
    assert len(heard) <= n_jobs
    assert model.n < 8 + n_jobs * 3 * 3 + 1


@pytest.mark.usefixtures("blocks_of_three")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_fault_in_one_block_keeps_what_all_have_learnt(n_jobs: int) -> None:
    def model(rows: Any) -> Any:
        return np.where(np.asarray(rows)[:, 0] > 0.8, np.nan, plane(rows))

    queries = cloud()[cloud()[:, 0] < 0.5][:7]
    with pytest.raises(cfx.ModelError, match="returned nan") as caught:
        cfx.explain_many(
            model,
            queries,
            cfx.Space.from_data(cloud()),
            2.4,
            method="random",
            budget=20,
            rng=0,
            n_jobs=n_jobs,
        )
    known = caught.value.evaluations  # type: ignore[attr-defined]  # attached to any error
    assert len(known) >= 7
    assert np.isfinite(known.outputs).all()


def test_ctrl_c_ends_the_searches_of_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explainer, "BLOCK", 2)
    waits = [0]

    def interrupted(futures: Any) -> Any:
        waits[0] += 1
        if waits[0] == 1:
            raise KeyboardInterrupt
        return wait(futures)

    monkeypatch.setattr("bayescfx.explainer.run.wait", interrupted)
    many = cfx.explain_many(
        plane,
        cloud()[:6],
        cfx.Space.from_data(cloud()),
        40.0,
        budget=10_000,
        rng=0,
        n_jobs=2,
    )
    assert {a.stopped for a in many} == {"interrupted"}
    assert waits == [2]


def test_answers_do_not_depend_on_the_ranges_of_other_queries() -> None:
    X = pd.DataFrame({"a": np.linspace(0, 1, 40), "job": LEVELS[:2] * 20})
    queries = pd.DataFrame(
        {"a": [0.5, 9.0, -7.0], "job": ["clerk", "cook", "pilot"]}, index=[5, 6, 7]
    )
    space = cfx.Space.from_data(X)
    model = lambda r: 10.0 * r["a"] + (r["job"] == "pilot")  # noqa: E731  # a bare callable
    with pytest.warns(cfx.SpaceWarning, match="for the query at position 1") as caught:
        many = cfx.explain_many(
            model, queries, space, cfx.change(by=3), budget=15, method="random", rng=0
        )
    (warning,) = caught
    assert str(warning.message).startswith(
        "for the query at position 1 (and 1 more): the query lies outside the space, which grew "
        "for it: 'a' by the range 0.0 … 9.0; 'job' by the level 'cook'."
    )
    assert warning.filename == __file__
    for i, answer in enumerate(many):
        assert answer.verify(model)
        with pytest.warns(cfx.SpaceWarning) if i else nullcontext():
            region = space.around(queries.iloc[i])
        for c in answer.counterfactuals:
            low, high = region.low[0], region.high[0]
            assert low <= c.row["a"] <= high
            assert c.row["job"] in {"clerk", "nurse", queries["job"].iloc[i]}


def test_no_queries_have_no_answers() -> None:
    assert len(cfx.explain_many(plane, cloud()[:0], cfx.Space.from_data(cloud()), 1.0)) == 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_many_queries_within_their_budgets(method: str) -> None:
    model = Counter(plane)
    many = cfx.explain_many(
        model,
        cloud()[:3],
        cfx.Space.from_data(cloud()),
        40.0,
        method=stubborn(method),
        budget=9,
        rng=0,
    )
    assert [a.n_evaluations for a in many] == [9, 9, 9]
    assert model.n == 27


# ── what can be wrong ──


def refuse(message: str, *, error: type[Exception] = ValueError, **given: Any) -> None:
    arguments: dict[str, Any] = {
        "model": plane,
        "query": ZERO,
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error) as caught:
        cfx.explain(**arguments)
    assert str(caught.value).startswith(message), str(caught.value)


WRONG: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "space": (
        cfx.SpaceError,
        "`space` must be a Space; got DataFrame. Use Space.from_data(X).",
        {"space": pd.DataFrame(ZERO, index=[0])},
    ),
    "budget 0": (
        ValueError,
        "`budget` must be a whole number of at least 1; got 0.",
        {"budget": 0},
    ),
    "budget 1.5": (
        ValueError,
        "`budget` must be a whole number of at least 1; got 1.5.",
        {"budget": 1.5},
    ),
    "budget True": (
        ValueError,
        "`budget` must be a whole number of at least 1; got True.",
        {"budget": True},
    ),
    "n": (ValueError, "`n` must be a whole number of at least 1; got None.", {"n": None}),
    "tolerance 1": (
        ValueError,
        "`tolerance` must be at least 0 and less than 1; got 1. It is the share of the wanted "
        "change that may be missed.",
        {"tolerance": 1},
    ),
    "tolerance text": (
        ValueError,
        "`tolerance` must be at least 0 and less than 1; got 'x'.",
        {"tolerance": "x"},
    ),
    "timeout -1": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got -1.",
        {"timeout": -1},
    ),
    "timeout nan": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got nan.",
        {"timeout": float("nan")},
    ),
    "timeout text": (
        ValueError,
        "`timeout` must be None or seconds >= 0; got '3'.",
        {"timeout": "3"},
    ),
    "evaluations": (
        ValueError,
        "`evaluations` must be None or Evaluations; got str. For a file use "
        "Evaluations.open(path).",
        {"evaluations": "known.db"},
    ),
    "rng text": (
        ValueError,
        "`rng` must be None, a whole number of at least 0 or a numpy Generator; got 'a'.",
        {"rng": "a"},
    ),
    "rng -1": (
        ValueError,
        "`rng` must be None, a whole number of at least 0 or a numpy Generator; got -1.",
        {"rng": -1},
    ),
    "on_step": (
        ValueError,
        "`on_step` must be None or a function of a Step; got 3.",
        {"on_step": 3},
    ),
    "on_fault": (
        ValueError,
        "`on_fault` must be 'raise' or 'skip'; got 'ignore'.",
        {"on_fault": "ignore"},
    ),
    "method name": (
        ValueError,
        "`method` must be one of 'bayes-cfx', 'bayes', 'random', 'lbfgsb', 'gradient' or a "
        "Search; got 'bayes_cfx'. Did you mean 'bayes-cfx'?",
        {"method": "bayes_cfx"},
    ),
    "method class": (
        ValueError,
        "`method` must be a name or a configured Search such as BayesCFX(); got <class",
        {"method": cfx.BayesCFX},
    ),
    "model": (
        cfx.ModelError,
        "`model` must be callable or have `predict`; got NoneType.",
        {"model": None},
    ),
    "target": (
        cfx.TargetError,
        "`target` must be a number, a target such as cfx.reach(150), or a potential with "
        "`value` and `slope`; got 'up'.",
        {"target": "up"},
    ),
    "missing column": (
        cfx.QueryError,
        "`query` must have every column of the space; missing: 'c'.",
        {"query": {"a": 0.1, "b": 0.2}},
    ),
    "unknown column": (
        cfx.QueryError,
        "`query` must have only the columns of the space; unknown: 'd'.",
        {"query": {**ZERO, "d": 1.0}},
    ),
    "text": (
        cfx.QueryError,
        "`query` must fit the dtypes of the space; got '1.0' in column 'a' of dtype float64. "
        "Correct the cell.",
        {"query": {**ZERO, "a": "1.0"}},
    ),
    "two rows": (
        cfx.QueryError,
        "`query` must be one row; got 2.",
        {"query": pd.DataFrame([ZERO, ZERO])},
    ),
    "no row": (
        cfx.QueryError,
        "`query` must be one row; got 0.",
        {"query": pd.DataFrame([ZERO]).iloc[:0]},
    ),
    "no query": (
        cfx.QueryError,
        "`query` must be a Series, a dict, a DataFrame or an array; got NoneType.",
        {"query": None},
    ),
    "short query": (
        cfx.QueryError,
        "`query` must have 3 columns; got shape (1, 2).",
        {"query": [1.0, 2.0]},
    ),
    "two columns": (
        cfx.ModelError,
        "`model` returned shape (1, 2) for 1 rows; expected (1,). For a classifier pass one "
        "column, e.g. lambda X: clf.predict_proba(X)[:, 1].",
        {"model": lambda X: np.zeros((len(X), 2))},
    ),
    "no free feature": (
        cfx.InfeasibleError,
        "no feature may move for this query: every one is fixed, missing or at its limits.",
        {"space": cfx.Space({n: cfx.Real(0, 1) for n in "abc"}).fix("a", "b", "c")},
    ),
    "contradiction": (
        cfx.InfeasibleError,
        "no point satisfies every rule for this query (0 of 2048 tried). Tightest rule: "
        "'a >= 1.2 + b' (0 of 2048).",
        {
            "space": cfx.Space({n: cfx.Real(0, 1) for n in "abc"})
            .require("b >= 0.5")
            .require("a >= 1.2 + b")
        },
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str) -> None:
    error, message, given = WRONG[case]
    refuse(message, error=error, **given)


@pytest.mark.parametrize(
    "case", [c for c in WRONG if c not in ("no free feature", "contradiction", "two columns")]
)
def test_the_model_is_not_asked_before_the_arguments_are_right(case: str) -> None:
    error, _, given = WRONG[case]
    model = Counter(plane)
    arguments: dict[str, Any] = {
        "model": model,
        "query": ZERO,
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error):
        cfx.explain(**arguments)
    assert model.n <= (1 if case == "target" else 0)


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'buget'"):
        cfx.explain(plane, ZERO, cube(), 1.0, buget=3)  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="positional arguments"):
        cfx.explain(plane, ZERO, cube(), 1.0, "random")  # type: ignore[call-arg]  # what is tested


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"n_jobs": 0},
            ValueError,
            "`n_jobs` must be a whole number of at least 1; got 0.",
        ),
        (
            {"n_jobs": 1.5},
            ValueError,
            "`n_jobs` must be a whole number of at least 1; got 1.5.",
        ),
        (
            {"queries": ZERO},
            cfx.QueryError,
            "`queries` must be a DataFrame, a 2-D array or a sequence of rows; got dict. For one "
            "row use explain.",
        ),
        (
            {"queries": np.zeros(3)},
            cfx.QueryError,
            "`queries` must be a DataFrame, a 2-D array or a sequence of rows; got an array of "
            "shape (3,). For one row use explain.",
        ),
        (
            {"target": [1.0, 2.0, 3.0]},
            cfx.TargetError,
            "`target` must be one target or one per query; got 3 for 2 queries.",
        ),
        ({"on_step": 3, "n_jobs": 2}, ValueError, "`on_step` must be None or a function of a Step"),
    ],
)
def test_what_is_wrong_with_many_queries_is_said(
    given: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "model": plane,
        "queries": pd.DataFrame([ZERO, ZERO]),
        "space": cube(),
        "target": 1.0,
        **given,
    }
    with pytest.raises(error) as caught:
        cfx.explain_many(**arguments)
    assert str(caught.value).startswith(message), str(caught.value)


@pytest.mark.parametrize(
    ("queries", "target", "message"),
    [
        ([ZERO, {"a": 1.0}], 1.0, "`query` must have every column"),
        ([ZERO, ZERO], [1.0, "up"], "`target` must be a number"),
        ([ZERO, {**ZERO, "a": 0.95}], 1.0, "no feature may move for this query"),
    ],
)
def test_an_error_says_which_query_it_is_about(queries: Any, target: Any, message: str) -> None:
    space = cfx.Space({n: cfx.Real(0, 0.95) for n in "abc"}).only_up("a").allow("a")
    with pytest.raises(cfx.BayesCFXError, match=message) as caught:
        cfx.explain_many(plane, queries, space, target, budget=10, rng=0)
    assert "for the query at position 1" in caught.value.__notes__


def test_an_error_in_a_function_of_the_user_says_which() -> None:
    def wrong(rows: pd.DataFrame) -> Any:
        raise ZeroDivisionError

    for space, note in (
        (cube().require(wrong, "never"), "in rule 'never', for "),
        (cube().derive("c", wrong), "in derive('c'), for "),
    ):
        with pytest.raises(ZeroDivisionError) as caught:
            cfx.explain(plane, ZERO, space, 1.0, budget=5, rng=0)
        assert caught.value.__notes__[0].startswith(note)


def test_a_list_of_mixed_cells_is_a_query() -> None:
    query = list(mixed().drop(columns="score").iloc[0])
    space = cfx.Space.from_data(mixed().drop(columns="score"))
    answer = cfx.explain(outcome, query, space, cfx.increase(by=1), budget=5, rng=0)
    assert list(answer.query) == query


def test_a_query_outside_the_data_is_explained_with_a_warning() -> None:
    with pytest.warns(cfx.SpaceWarning, match="outside the space, which grew for it: 'a'") as said:
        answer = cfx.explain(
            plane, {**ZERO, "a": 1.5}, cube(), cfx.decrease(by=1), budget=25, rng=0
        )
    assert said[0].filename == __file__
    assert answer.reached


# ── size ──


@pytest.mark.slow
def test_a_million_rows_of_eighty_features_need_little_memory() -> None:
    import tracemalloc

    X = np.random.default_rng(0).standard_normal((1_000_000, 80), dtype=np.float32)
    tracemalloc.start()
    space = cfx.Space.from_data(X)
    answer = cfx.explain(lambda r: r.sum(axis=1), X[0], space, cfx.increase(by=3), budget=60, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.reached
    assert peak < 3 * X.nbytes
