"""The nearest rows of linear models, against enumeration and closed forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from bayescfx.deadline import Deadline
from bayescfx.models.model import as_model
from bayescfx.models.readers import Form, Inputs, LinearModel, read_model
from bayescfx.potentials import Intervals
from bayescfx.search.exact import mixed_integer
from bayescfx.search.exact.branching import Bound, Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.linear_form import extreme_outputs, find_nearest_linear
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region
from bayescfx.space.space import Space

SAME = 2e-6  # a complete search leaves a gap of a millionth at most


def is_accepted(accepted: Intervals, outputs: Array) -> Mask:
    """Return which outputs lie in one of some intervals."""
    inside = np.zeros(len(outputs), dtype=bool)
    for low, high in accepted:
        inside |= (outputs >= low) & (outputs <= high)
    return inside


def search(
    form: Form | None, region: Region, accepted: Intervals, score: Any = None, **options: Any
) -> tuple[float, Any, Bound]:
    """Return the lowest cost of rows that reach the target, the row, and the bound."""
    assert isinstance(form, LinearModel)
    steps = find_nearest_linear(form, region, accepted, **options)
    best = np.inf
    answer = None
    try:
        rows = next(steps)
        while True:
            assert region.contains(rows).all()
            table = region.rows(rows)
            outputs = form.raw(table)[:, 0] if score is None else score(table)
            is_hit = is_accepted(accepted, outputs)
            for row in rows[is_hit]:
                cost = float(region.cost(row[None])[0])
                if cost < best:
                    best = cost
                    answer = row
            rows = steps.send(is_hit)
    except StopIteration as end:
        return best, answer, end.value


def around(space: Space, query: pd.DataFrame) -> Region:
    """Return the region of a query, without warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return space.around(query)


def enumerate_rows(region: Region) -> Array:
    """Return all allowed rows of a region."""
    rows = region.enumerate(10**6)
    assert rows is not None
    return rows


def read_linear_form(model: Any, space: Space, table: pd.DataFrame) -> LinearModel:
    """Return the form of a model."""
    form = read_model(as_model(model, space.schema), table).form
    assert isinstance(form, LinearModel)
    return form


# ── enumeration of small grids ──


def make_table(rng: np.random.Generator, n: int = 60) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": rng.integers(0, 7, n).astype(float),
            "b": rng.integers(-3, 4, n),
            "c": np.round(rng.normal(size=n), 1).clip(-0.6, 0.6),
            "g": rng.choice(list("xyz"), n),
            "h": rng.integers(0, 6, n),
        }
    )


def make_form(rng: np.random.Generator) -> LinearModel:
    """Return a linear model of numbers, a bent number, levels, and a listed number."""
    bend = rng.choice([0.0, 0.3])

    def compute(rows: Any) -> Array:
        levels = [(rows["g"] == level).to_numpy(dtype=float) for level in "xyz"]
        b = rows["b"].to_numpy(dtype=float)
        h = rows["h"].to_numpy(dtype=float)
        numbers = [rows["a"], b + bend * b**2, -rows["c"] * 3.0, *levels, h, h == 3.0]
        return np.column_stack([np.asarray(part, dtype=float) for part in numbers])

    columns = ("a", "b", "c", "g", "g", "g", "h", "h")
    direction = np.array([1, 0, -1, 0, 0, 0, 1, 0])
    weights = np.round(rng.normal(size=len(columns)), 3) * (rng.random(len(columns)) < 0.9)
    return LinearModel(Inputs(compute, columns, direction), weights, float(rng.normal()))


def make_space(rng: np.random.Generator, table: pd.DataFrame) -> Space:
    """Return a space with random features, limits, rules and costs."""
    features: dict[str, Any] = {}
    if rng.random() < 0.4:
        features["h"] = cfx.Integer(0, 5, cyclic=True)
    if rng.random() < 0.3:
        features["c"] = cfx.Real(-0.6, 0.6, step=0.3)
    if rng.random() < 0.3:
        features["g"] = cfx.Ordinal(["x", "y", "z"])
    space = cfx.Space.from_data(table, features or None)
    choices: list[tuple[float, Callable[[Space], Space]]] = [
        (0.4, lambda s: s.max_changes(int(rng.integers(1, 4)))),
        (0.3, lambda s: s.only_up("a")),
        (0.3, lambda s: s.fix("b")),
        (0.2, lambda s: s.between({"b": (-1, 2)})),
        (0.4, lambda s: s.cost(norm=float(rng.choice([0, 1, 2])))),
        (0.3, lambda s: s.cost(per_feature={"a": float(rng.choice([0, 0.5, 2]))})),
        (0.3, lambda s: s.require("a + b <= 6")),
        (0.2, lambda s: s.require("a - 2*c <= 4.6")),
        (0.2, lambda s: s.together("a", "c")),
        (0.1, lambda s: s.require(lambda rows: rows["a"] * rows["b"] < 8)),
        (1.0, lambda s: s.cost(per_change=float(rng.choice([0, 0.2, 5])))),
    ]
    for share, change in choices:
        if rng.random() < share:
            space = change(space)
    return space


def make_target(rng: np.random.Generator, start: float, spread: float) -> Intervals:
    """Return intervals of the sum: above, below, a band, or either side."""
    size = float(rng.choice([0.1, 0.3, 0.6, 1.0, 1.5, 3.0])) * spread
    kind = rng.integers(4)
    if kind == 0:
        return ((start + size, np.inf),)
    if kind == 1:
        return ((-np.inf, start - size),)
    if kind == 2:
        middle = start + size * rng.choice([-1.0, 1.0])
        return ((middle - 0.05 * spread, middle + 0.05 * spread),)
    return ((-np.inf, start - size), (start + 0.8 * size, np.inf))


@pytest.mark.parametrize(
    "part", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3, 4))]
)
def test_enumeration(part: int) -> None:
    n_complete = 0
    for seed in range(20 * part, 20 * (part + 1)):
        rng = np.random.default_rng(seed)
        table = make_table(rng)
        form = make_form(rng)
        space = make_space(rng, table)
        region = around(space, table.iloc[[int(rng.integers(len(table)))]])
        outputs = form.raw(table)[:, 0]
        start = float(form.raw(region.rows(region.query[None]))[0, 0])
        accepted = make_target(rng, start, float(outputs.std()) + 0.1)
        rows = enumerate_rows(region)
        sums = form.raw(region.rows(rows))[:, 0]
        costs = region.cost(rows)[is_accepted(accepted, sums)]
        nearest = costs.min(initial=np.inf)

        best, _, bound = search(form, region, accepted, slack=1e-9)

        assert bound.cost <= nearest * (1.0 + 1e-12), seed
        assert bound.is_complete != bound.is_stuck, seed
        if bound.is_stuck:
            assert region.curved, seed
            continue
        n_complete += 1
        assert best == pytest.approx(nearest, rel=SAME), seed
        assert bound.cost == pytest.approx(nearest, rel=SAME), seed
        # Nothing is found below the nearest row.
        again, _, limited = search(form, region, accepted, slack=1e-9, limit=nearest * 0.999)
        assert again == np.inf, seed
        assert limited.cost <= nearest, seed
        assert limited.cost >= nearest * 0.999 * (1.0 - SAME) or nearest == np.inf, seed
        if not len(rows):
            continue
        lowest, highest, is_exact = extreme_outputs(form, region)
        ends = form.raw(region.rows(np.stack([lowest, highest])))[:, 0]
        assert ends[0] <= sums.min() + 1e-9, seed
        assert ends[1] >= sums.max() - 1e-9, seed
        assert is_exact or region.curved, seed
        if is_exact:
            assert ends == pytest.approx([sums.min(), sums.max()], abs=1e-9), seed
    assert n_complete >= 16


# ── one interval among grids ──


def nearest_with_interval(
    form: LinearModel, region: Region, accepted: Intervals, limit: float
) -> float:
    """Return the lowest cost, by enumeration of all features but ``u``, which is an interval.

    `limit` is the rule ``u + a <= limit``, or infinite.
    """
    others = region.without(*region.rules).with_axis(3, around_fixed(region.axes[3]))
    rows = enumerate_rows(others)
    sums = form.raw(region.rows(rows))[:, 0]
    slope = form.weights[3]
    query = region.query[3]
    best = np.inf
    axis = region.axes[3]
    for (low, high), (first, last) in product(accepted, [(axis.low, axis.high), (query, query)]):
        ends = np.sort(np.stack([(low - sums) / slope, (high - sums) / slope]), axis=0) + query
        start = np.maximum(ends[0], first)
        end = np.minimum(np.minimum(ends[1], last), limit - rows[:, 0])
        near = np.clip(query, start, np.maximum(start, end))
        for shift in (-1.0, -0.5, 0.0, 0.5, 1.0):  # to the neighbours on a grid
            moved = rows.copy()
            moved[:, 3] = near if not region.step[3] else axis.snap(near + shift * region.step[3])
            is_there = (start <= moved[:, 3]) & (moved[:, 3] <= end)
            if region.max_changes is not None:
                is_there &= region.changes(moved).sum(axis=1) <= region.max_changes
            best = min(best, region.cost(moved[is_there]).min(initial=np.inf))
    return best


def around_fixed(axis: Axis) -> Axis:
    """Return an axis that can't move."""
    return replace(axis, low=axis.query, high=axis.query, choices=np.array([axis.query]))


@pytest.mark.parametrize("part", range(3))
def test_interval_among_grids(part: int) -> None:
    for seed in range(15 * part, 15 * (part + 1)):
        rng = np.random.default_rng(1000 + seed)
        n = 50
        table = pd.DataFrame(
            {
                "a": rng.integers(0, 6, n),
                "g": rng.choice(list("xyz"), n),
                "h": rng.integers(0, 5, n),
                "u": rng.normal(size=n),
            }
        )

        def compute(rows: Any) -> Array:
            numbers = [rows["a"], rows["g"] == "x", rows["h"] == 2, rows["u"]]
            return np.column_stack([np.asarray(part, dtype=float) for part in numbers])

        weights = rng.normal(size=4)
        direction = np.array([1, 0, 0, 1])
        form = LinearModel(Inputs(compute, ("a", "g", "h", "u"), direction), weights, 0.0)
        step = float(rng.choice([0.0, 0.0, 0.0005, 0.25]))  # with 12,001 codes, or 25
        space = cfx.Space.from_data(table, {"u": cfx.Real(-3.0, 3.0, step=step or None)})
        limit = np.inf
        if rng.random() < 0.4:
            limit = 5.0
            space = space.require("u + a <= 5")
        if rng.random() < 0.4:
            space = space.max_changes(int(rng.integers(1, 4)))
        if rng.random() < 0.3:
            space = space.cost(norm=0)
        if rng.random() < 0.3:
            space = space.between({"u": (0.5, 2.5)})
        region = around(space, table.iloc[[0]])
        start = float(form.raw(table.iloc[[0]])[0, 0])
        accepted = make_target(rng, start, 1.5)
        if not region.contains(region.query[None])[0]:
            continue
        nearest = nearest_with_interval(form, region, accepted, limit)
        best, _, bound = search(form, region, accepted, slack=1e-12)
        assert bound.is_complete, seed
        assert bound.cost <= nearest * (1.0 + 1e-9), seed
        assert best == pytest.approx(nearest, rel=SAME, abs=1e-8), seed


# ── boxes without a price per change: the fractional knapsack ──


def fill_knapsack(rates: Array, room: Array, wanted: float) -> float:
    """Return the least distance that gains `wanted`, with gains per unit of distance."""
    distance = 0.0
    for j in np.argsort(-rates).tolist():
        used = float(min(room[j], wanted / rates[j]))
        distance += used
        wanted -= used * rates[j]
        if wanted <= 1e-12:
            return distance
    return np.inf


@pytest.mark.parametrize("seed", range(10))
def test_fractional_knapsack(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(12)]
    table = pd.DataFrame(rng.normal(size=(50, 12)) * rng.uniform(0.1, 100, 12), columns=names)
    model = LinearRegression().fit(table, table.to_numpy() @ rng.normal(size=12) + 3.0)
    features = {name: cfx.Real(table[name].min(), table[name].max()) for name in names}
    space = cfx.Space.from_data(table, features).cost(per_change=0)
    region = around(space, table.iloc[[0]])
    form = read_linear_form(model, space, table)
    start = float(form.raw(table.iloc[[0]])[0, 0])
    rates = np.abs(form.weights) * region.scale
    far = np.where(form.weights > 0, region.high - region.query, region.query - region.low)
    room = far / region.scale
    share = rng.uniform(0.01, 1.1)
    wanted = share * float(rates @ room)
    nearest = fill_knapsack(rates, room, wanted)
    best, _, bound = search(form, region, ((start + wanted, np.inf),))
    assert bound.is_complete
    assert (nearest < np.inf) == (share <= 1.0)
    assert best == pytest.approx(nearest, rel=SAME)
    assert bound.cost == pytest.approx(nearest, rel=SAME)
    assert bound.cost <= nearest


# ── models of scikit-learn ──


def test_breast_cancer_is_proven() -> None:
    table, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(table, labels)
    features = {name: cfx.Real(table[name].min(), table[name].max()) for name in table}
    for own in (features, None):
        space = cfx.Space.from_data(table, own)
        form = read_linear_form(cfx.probability(model, 1), space, table.iloc[:50])
        for i in range(4):
            region = around(space, table.iloc[[i]])
            best, row, bound = search(form, region, ((0.0, np.inf),), slack=1e-9)
            assert bound.is_complete
            assert best * (1.0 - SAME) <= bound.cost <= best
            assert model.predict_proba(region.rows(row[None]))[0, 1] >= 0.5 - 1e-9


@pytest.mark.parametrize("kind", range(4))
def test_pipelines(kind: int) -> None:
    rng = np.random.default_rng(kind)
    table = make_table(rng)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    steps = [
        [(OneHotEncoder(handle_unknown="ignore"), ["g"]), (StandardScaler(), ["a", "c"])],
        [(OrdinalEncoder(), ["g"]), (OneHotEncoder(handle_unknown="ignore"), ["h"])],
        [(OneHotEncoder(), ["g"]), (KBinsDiscretizer(3, encode="ordinal"), ["a"])],
        [(OrdinalEncoder(), ["g"]), (numbers, ["a"])],
    ]
    columns = make_column_transformer(*steps[kind], remainder="passthrough")
    y = table["a"] - table["b"] + 2.0 * (table["g"] == "x") + rng.normal(size=len(table))
    model = make_pipeline(columns, Ridge()).fit(table, y)
    query = table.iloc[[0]].copy()
    if kind == 3:
        query["a"] = np.nan
    space = cfx.Space.from_data(table).max_changes(3)
    region = around(space, query)
    wrapped = as_model(model, space.schema)
    reading = read_model(wrapped, table)
    rows = enumerate_rows(region)
    outputs = wrapped.scores(region.rows(rows))
    accepted = ((float(wrapped.scores(query)[0]) + 1.2 * float(y.std()), np.inf),)
    nearest = region.cost(rows[is_accepted(accepted, outputs)]).min(initial=np.inf)
    slack = 10.0 * reading.rounding
    best, row, bound = search(reading.form, region, accepted, wrapped.scores, slack=slack)
    assert bound.is_complete
    assert best == pytest.approx(nearest, rel=SAME)
    if kind == 3:
        assert np.isnan(row[0])


def test_bent_interval_is_refused() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(1.0, 9.0, 50), "z": rng.normal(size=50)})
    columns = make_column_transformer((FunctionTransformer(np.log), ["x"]), remainder="passthrough")
    model = make_pipeline(columns, LinearRegression()).fit(table, table["z"] + np.log(table["x"]))
    space = cfx.Space.from_data(table, {"x": cfx.Real(1.0, 9.0)})
    form = read_linear_form(model, space, table)
    region = around(space, table.iloc[[0]])
    with pytest.raises(NoProof, match="'x' in a way that is not linear"):
        search(form, region, ((3.0, np.inf),))
    best, _, bound = search(form, around(space.fix("x"), table.iloc[[0]]), ((2.0, np.inf),))
    assert bound.is_complete
    assert best < np.inf


# ── targets out of reach, limits of time, rules ──


def make_plain(n_features: int = 6, seed: int = 0) -> tuple[pd.DataFrame, LinearModel, Space]:
    """Return a table, a form that reads its columns, and its space of intervals."""
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(n_features)]
    table = pd.DataFrame(rng.normal(size=(40, n_features)), columns=names)
    direction = np.ones(n_features, dtype=int)
    weights = rng.normal(size=n_features)
    inputs = Inputs(lambda rows: np.asarray(rows, dtype=float), tuple(names), direction)
    space = cfx.Space.from_data(table, {name: cfx.Real(-3.0, 3.0) for name in names})
    return table, LinearModel(inputs, weights, 0.5), space


@pytest.mark.parametrize("share", [0.99, 0.999999, 1.000001, 1.01])
@pytest.mark.parametrize("restriction", ["none", "changes", "rule", "together"])
def test_out_of_reach(share: float, restriction: str) -> None:
    table, form, space = make_plain()
    if restriction == "changes":
        space = space.max_changes(2)
    if restriction == "rule":
        space = space.require("x0 + x1 + x2 <= 1")
    if restriction == "together":
        space = space.together("x0", "x1", "x3")
    region = around(space, table.iloc[[3]])
    _, highest, is_exact = extreme_outputs(form, region)
    assert is_exact
    start = float(form.raw(region.rows(region.query[None]))[0, 0])
    most = float(form.raw(region.rows(highest[None]))[0, 0])
    accepted = ((start + share * (most - start), np.inf),)
    best, _, bound = search(form, region, accepted)
    assert bound.is_complete
    assert (best < np.inf) == (share < 1.0)
    assert (bound.cost < np.inf) == (share < 1.0)


def test_query_that_reaches_the_target() -> None:
    table, form, space = make_plain()
    region = around(space, table.iloc[[0]])
    start = float(form.raw(table.iloc[[0]])[0, 0])
    best, row, bound = search(form, region, ((start - 1.0, start + 1.0),))
    assert best == 0.0
    assert np.array_equal(row, region.query)
    assert bound.cost == 0.0
    assert bound.is_complete


def test_equality_between_intervals() -> None:
    table, form, space = make_plain()
    table = table.assign(x1=-table["x0"])
    region = around(space.require("x0 + x1 == 0"), table.iloc[[0]])
    start = float(form.raw(table.iloc[[0]])[0, 0])
    best, row, bound = search(form, region, ((start + 2.0, np.inf),))
    assert bound.is_complete
    assert best < np.inf
    assert abs(row[0] + row[1]) < 1e-8


def test_no_time() -> None:
    table, form, space = make_plain()
    region = around(space, table.iloc[[0]])
    steps = find_nearest_linear(
        form, region, ((9.0, np.inf),), work=Work(deadline=Deadline.after(0.0))
    )
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value.cost == 0.0
    assert not end.value.value.is_complete


@pytest.mark.parametrize("fault", range(3))
def test_one_wrong_result_of_the_solver_proves_nothing_false(
    fault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, form, space = make_plain()
    region = around(space.max_changes(3).require("x0 + x1 <= 2"), table.iloc[[0]])
    start = float(form.raw(table.iloc[[0]])[0, 0])
    accepted = ((start + 2.5, np.inf),)
    nearest, _, _ = search(form, region, accepted)
    solve = mixed_integer.run_solver
    calls: list[int] = []

    def solve_wrongly(*arguments: Any) -> Any:
        result = solve(*arguments)
        calls.append(1)
        if len(calls) == fault + 1:  # what a program without a solution gives
            result["status"] = mixed_integer.INFEASIBLE
            result["x"] = None
        return result

    monkeypatch.setattr(mixed_integer, "run_solver", solve_wrongly)
    best, _, bound = search(form, region, accepted)
    assert len(calls) > fault
    if bound.is_complete:
        assert best == pytest.approx(nearest, rel=SAME)
    assert bound.cost <= nearest * (1.0 + SAME) or not bound.is_complete


def test_link_does_not_matter() -> None:
    table, form, space = make_plain()
    region = around(space, table.iloc[[0]])
    logistic = LinearModel(form.inputs, form.weights, form.base, "expit")
    best, row, bound = search(logistic, region, ((2.0, np.inf),))
    assert logistic.predict(region.rows(row[None]))[0] >= expit(2.0) - 1e-12
    assert bound.cost <= best


@pytest.mark.parametrize("norm", [1.5, 2.0, 4.0])
def test_other_norms_have_valid_bounds(norm: float) -> None:
    table, form, space = make_plain(4)
    rng = np.random.default_rng(0)
    region = around(space.cost(norm=norm), table.iloc[[0]])
    start = float(form.raw(table.iloc[[0]])[0, 0])
    accepted = ((start + 1.0, np.inf),)
    best, _, bound = search(form, region, accepted, work=Work(15e6))
    moved = rng.random((200_000, 4)) < 0.6
    X = np.where(moved, region.query + rng.normal(size=moved.shape) * 0.5, region.query)
    X = np.clip(X, -3.0, 3.0)
    reached = X[is_accepted(accepted, form.raw(region.rows(X))[:, 0])]
    assert bound.cost <= best
    assert bound.cost <= region.cost(reached).min()
    assert bound.cost > 0.3 * best
