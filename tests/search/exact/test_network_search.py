"""The nearest rows of ReLU networks, against brute force."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.deadline import Deadline
from bayescfx.models.readers import Inputs, ReluNetwork
from bayescfx.potentials import Intervals, contains
from bayescfx.search.exact.branching import Bound, Work
from bayescfx.search.exact.network_program import NetworkSolution, agreed
from bayescfx.search.exact.network_search import find_nearest_network, find_network_extreme
from bayescfx.space.region import Region
from bayescfx.space.space import Space

SAME = 2e-6  # a complete search leaves a gap of a millionth at most


def search(
    form: ReluNetwork, region: Region, accepted: Intervals, **options: Any
) -> tuple[float, Bound]:
    """Return the lowest cost of rows that reach the target, and the bound."""
    steps = find_nearest_network(form, region, accepted, **options)
    best = np.inf
    try:
        rows = next(steps)
        while True:
            assert region.contains(rows).all()
            is_hit = contains(accepted, form.raw(region.rows(rows))[:, 0])
            best = min([best, *region.cost(rows[is_hit])])
            rows = steps.send(is_hit)
    except StopIteration as end:
        return best, end.value


def around(space: Space, query: pd.DataFrame) -> Region:
    """Return the region of a query, without warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return space.around(query)


def make_table(rng: np.random.Generator, n: int = 60) -> pd.DataFrame:
    """Return numbers, decimals, whole numbers and levels."""
    return pd.DataFrame(
        {
            "a": rng.integers(0, 7, n).astype(float),
            "b": rng.integers(-3, 4, n),
            "c": np.round(rng.normal(size=n), 1).clip(-0.6, 0.6),
            "g": rng.choice(list("xyz"), n),
            "h": rng.integers(0, 6, n),
        }
    )


def make_network(rng: np.random.Generator) -> ReluNetwork:
    """Return a random network of numbers, a bent number, levels, and a listed number."""
    bend = rng.choice([0.0, 0.3])

    def compute(rows: Any) -> Array:
        levels = [(rows["g"] == level).to_numpy(dtype=float) for level in "xyz"]
        b = rows["b"].to_numpy(dtype=float)
        h = rows["h"].to_numpy(dtype=float)
        numbers = [rows["a"] / 3.0, b + bend * b**2, -rows["c"] * 2.0, *levels, h / 3, h == 3.0]
        return np.column_stack([np.asarray(part, dtype=float) for part in numbers])

    columns = ("a", "b", "c", "g", "g", "g", "h", "h")
    inputs = Inputs(compute, columns, np.array([1, 0, -1, 0, 0, 0, 1, 0]))
    widths = [8, *rng.integers(2, 6, size=int(rng.integers(1, 4))).tolist(), 1]
    weights = []
    for before, after in pairwise(widths):
        weights.append(np.round(rng.normal(size=(after, before)) / np.sqrt(before) * 1.5, 3))
    biases = [np.round(0.5 * rng.normal(size=width), 3) for width in widths[1:]]
    return ReluNetwork(inputs, tuple(weights), tuple(biases))


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
        (0.3, lambda s: s.cost(norm=float(rng.choice([0, 1, 2])))),
        (0.3, lambda s: s.cost(per_feature={"a": float(rng.choice([0, 0.5, 2]))})),
        (0.3, lambda s: s.require("a + b <= 6")),
        (0.2, lambda s: s.require("a - 2*c <= 4.6")),
        (0.2, lambda s: s.together("a", "c")),
        (0.1, lambda s: s.require(lambda rows: rows["a"] * rows["b"] < 8)),
        (0.2, lambda s: s.cost(weight=0.0)),
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


def check_question(seed: int) -> str:
    """Compare one random question with all allowed rows; return what was proven."""
    rng = np.random.default_rng(seed)
    table = make_table(rng)
    form = make_network(rng)
    space = make_space(rng, table).cost(per_change=(0.0, 0.2, 5.0)[seed % 3])
    region = around(space, table.iloc[[int(rng.integers(len(table)))]])
    start = float(form.raw(region.rows(region.query[None]))[0, 0])
    accepted = make_target(rng, start, float(form.raw(table).std()) + 0.1)
    rows = region.enumerate(10**6)
    assert rows is not None
    sums = form.raw(region.rows(rows))[:, 0] if len(rows) else np.zeros(0)
    nearest = float(region.cost(rows[contains(accepted, sums)]).min(initial=np.inf))

    best, bound = search(form, region, accepted)

    assert bound.cost <= nearest * (1.0 + 1e-12), seed
    check_extremes(form, region, sums, seed)
    if not bound.is_complete:
        return "stuck" if bound.is_stuck and region.curved else "cut short"
    assert best == pytest.approx(nearest, rel=SAME), seed
    assert bound.cost == pytest.approx(nearest, rel=SAME), seed
    # With the answer known nothing nearer is found, and a little above it is found again.
    again, known = search(form, region, accepted, limit=nearest * (1.0 - 1e-9))
    assert again == np.inf, seed
    assert known.is_complete, seed
    again, known = search(form, region, accepted, limit=nearest * 1.2)
    assert again == pytest.approx(nearest, rel=SAME) or nearest in (0.0, np.inf), seed
    assert known.cost <= nearest * (1.0 + 1e-12), seed
    return "out of reach" if nearest == np.inf else "optimal"


def check_extremes(form: ReluNetwork, region: Region, sums: Array, seed: int) -> None:
    """Compare extreme sums with those of all allowed rows."""
    if not len(sums):
        return
    for sign in (-1, 1):
        found = find_network_extreme(form, region, sign, Work())
        best = float(sign * (sign * sums).max())
        own = float(form.raw(region.rows(found.row[None]))[0, 0])
        assert own == pytest.approx(found.score, abs=1e-12), seed
        assert region.contains(found.row[None])[0], seed
        assert sign * (found.bound - best) >= 0.0, seed
        if not region.curved:
            assert own == pytest.approx(best, abs=1e-9), seed
            assert found.bound == pytest.approx(best, abs=1e-5), seed


@pytest.mark.parametrize("seed", range(8))
def test_small_networks_agree_with_brute_force(seed: int) -> None:
    assert check_question(seed) != "cut short"


def test_a_program_that_presolving_spoils() -> None:
    # With presolving, HiGHS 1.12 returns -0.295 as the lowest sum of this network; it is -0.317.
    assert check_question(487) == "optimal"


def test_runs_that_disagree_prove_nothing() -> None:
    low = NetworkSolution(np.ones(2), 1.0, True)
    high = NetworkSolution(np.zeros(2), 2.0, True)
    none = NetworkSolution(None, np.inf, True)
    for one, other in ((low, high), (high, low), (none, low)):
        both = agreed(one, other)
        assert (both.bound, both.is_complete) == (1.0, False)
    assert agreed(low, replace(low, bound=1.0 + 1e-9)).is_complete
    assert agreed(none, none).is_impossible
    assert not agreed(none, replace(none, is_complete=False)).is_complete


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_hundreds_of_networks_agree_with_brute_force() -> None:
    conclusions = [check_question(seed) for seed in range(100, 300)]
    assert conclusions.count("optimal") > 80
    assert conclusions.count("out of reach") > 20
    assert conclusions.count("cut short") <= 2


# ── continuous features, links, limits ──


@pytest.fixture(scope="module")
def continuous() -> tuple[Any, pd.DataFrame]:
    """Return a network of columns without a grid, and its data."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    y = table.a * table.b + np.abs(table.c)
    model = MLPRegressor(hidden_layer_sizes=(6, 4), solver="lbfgs", max_iter=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it needs no more rounds
        return make_pipeline(StandardScaler(), model).fit(table, y), table


@pytest.mark.parametrize("norm", [1, 2])
def test_nothing_nearer_is_found_among_random_rows(
    continuous: tuple[Any, pd.DataFrame], norm: int
) -> None:
    model, table = continuous
    space = cfx.Space.from_data(table, dict.fromkeys("abcd", "real")).cost(norm=norm)
    rng = np.random.default_rng(1)
    region = around(space, table.iloc[[5]])
    output = float(model.predict(table.iloc[[5]])[0])
    options: Any = {"method": "exact", "budget": 100, "rng": 0, "short_decimals": False}
    answer = cfx.explain(model, table.iloc[5], space, cfx.at_least(output + 1.0), **options)
    assert answer.proof == "optimal"
    assert answer.bound is not None
    assert answer.bound == pytest.approx(answer.best.cost, rel=SAME)
    X = region.query + rng.normal(size=(40_000, 4)) * rng.exponential(0.7, size=(40_000, 1))
    X = region.snap(np.where(rng.random(X.shape) < 0.6, X, region.query))
    hits = X[model.predict(region.rows(X)) >= output + 1.0]
    assert len(hits) > 100
    assert region.cost(hits).min() >= answer.bound


def test_a_probability_is_proven_through_its_link() -> None:
    rng = np.random.default_rng(3)
    table = make_table(rng)
    label = (table.a * table.b + (table.g == "x") > 1).astype(int)
    encoder = make_column_transformer((OneHotEncoder(), ["g"]), remainder=StandardScaler())
    network = MLPClassifier((6,), max_iter=400, random_state=0, solver="lbfgs")
    model = make_pipeline(encoder, network).fit(table, label)
    space = cfx.Space.from_data(table).max_changes(2)
    low = table[model.predict_proba(table)[:, 1] < 0.2].iloc[0]
    answer = cfx.explain(cfx.probability(model, 1), low, space, cfx.at_least(0.7), rng=0)
    region = around(space, low)
    rows = region.enumerate(10**6)
    assert rows is not None
    outputs = model.predict_proba(region.rows(rows))[:, 1]
    assert answer.proof == "optimal"
    nearest = float(region.cost(rows[outputs >= 0.7]).min())
    assert answer.best.cost == pytest.approx(nearest, rel=SAME)
    found = cfx.reachable(cfx.probability(model, 1), low, space)
    assert found.is_exact
    assert (found.lowest, found.highest) == pytest.approx((outputs.min(), outputs.max()))
    assert found.bounds[0] <= outputs.min()
    assert found.bounds[1] >= outputs.max()


def test_out_of_reach_is_proven_and_the_binding_constraint_named() -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.integers(0, 30, size=(80, 3)), columns=list("abc"))
    model = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(5,), random_state=0))
    model.set_params(mlpregressor__solver="lbfgs").fit(table, table.sum(axis=1) / 10)
    query = pd.Series({"a": 1, "b": 2, "c": 3})
    space = cfx.Space.from_data(table).fix("a")
    answer = cfx.explain(model, query, space, cfx.at_least(8.0), rng=0)
    assert answer.stopped == "unreachable"
    assert answer.proof == "out of reach"
    assert answer.status == "unreachable"
    assert "'a' being fixed" in [each.words for each in answer.binding]


def test_little_work_or_time_gives_a_lower_bound() -> None:
    rng = np.random.default_rng(0)
    n = 12
    names = [f"x{j}" for j in range(n)]
    table = pd.DataFrame(rng.normal(size=(50, n)), columns=names)
    sizes = [n, 24, 24, 1]
    weights = [rng.normal(size=(b, a)) / np.sqrt(a) for a, b in pairwise(sizes)]
    biases = [0.3 * rng.normal(size=b) for b in sizes[1:]]
    inputs = Inputs(lambda rows: np.asarray(rows, float), tuple(names), np.ones(n, dtype=int))
    form = ReluNetwork(inputs, tuple(weights), tuple(biases))
    region = around(cfx.Space.from_data(table), table.iloc[[0]])
    start = float(form.raw(table.iloc[[0]])[0, 0])
    accepted = ((start + 1.5 * float(form.raw(table).std()), np.inf),)
    outputs = form.raw(region.rows(region.query + rng.normal(size=(20_000, n))))[:, 0]
    assert (outputs >= accepted[0][0]).any()
    for work in (Work(1e4), Work(deadline=Deadline.after(0.0))):
        _, bound = search(form, region, accepted, limit=20.0, work=work)
        assert not bound.is_complete
        assert 0.0 < bound.cost < 20.0


def test_bent_intervals_and_derived_columns_are_refused() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(1.0, 9.0, 60), "z": rng.normal(size=60)})
    bent = make_column_transformer((FunctionTransformer(np.log), ["x"]), remainder="passthrough")
    network = MLPRegressor(hidden_layer_sizes=(4,), solver="lbfgs", random_state=0)
    model = make_pipeline(bent, network).fit(table, table.z + np.log(table.x))
    space = cfx.Space.from_data(table, {"x": cfx.Real(1.0, 9.0)})
    answer = cfx.explain(model, table.iloc[0], space, cfx.increase(by=0.5), rng=0)
    assert answer.proof is None
    assert answer.proof_reason == "the model transforms 'x' in a way that is not linear"


@pytest.mark.slow
def test_a_torch_network_has_a_bound_up_to_its_rounding() -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.round(rng.normal(size=(60, 3)), 1), columns=list("abc"))
    answer = cfx.explain(module, table.iloc[0], cfx.Space.from_data(table), "+0.3", rng=0)
    assert answer.proof == "optimal"
    space = cfx.Space.from_data(table, dict.fromkeys("abc", "real"))
    answer = cfx.explain(module, table.iloc[0], space, "+0.3", rng=0)
    assert answer.bound is not None
    assert answer.best.cost * 0.99 <= answer.bound <= answer.best.cost


def test_a_program_is_infeasible_only_if_two_runs_of_the_solver_say_so() -> None:
    rng = np.random.default_rng(68)
    d = int(rng.integers(3, 6))
    m = int(rng.integers(3, 7))
    data = pd.DataFrame(rng.integers(0, m, size=(200, d)), columns=list("abcde")[:d])
    X = data.to_numpy()
    y = (X * rng.normal(size=d)).sum(axis=1) + np.sin(X @ rng.normal(size=d)) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=60, random_state=0).fit(data, y)
        space = cfx.Space.from_data(data).cost(per_change=1)
        space = space.together("d", "a").require("d + b <= 5")
        target = cfx.increase(by=0.818)
        answer = cfx.explain(model, data.iloc[[0]], space, target, method="exact", rng=0)
    assert answer.status == "reached"  # HiGHS alone says that there is no such row
