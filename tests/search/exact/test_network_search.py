"""The nearest rows of ReLU networks, against brute force."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.models.readers import Inputs, ReluNetwork
from bayescfx.potentials import Intervals, contains
from bayescfx.search.exact.branching import Bound, Work
from bayescfx.search.exact.network_search import find_nearest_network, find_network_extreme
from bayescfx.space.effort import effort
from bayescfx.space.region import Region
from bayescfx.space.space import Space

SAME = 2e-6  # a complete search leaves a gap of a millionth at most


def search(
    form: ReluNetwork, region: Region, accepted: Intervals, **options: Any
) -> tuple[float, Bound]:
    """Return the lowest effort of rows that reach the target, and the bound."""
    steps = find_nearest_network(form, region, accepted, **options)
    best = np.inf
    try:
        rows = next(steps)
        while True:
            assert region.contains(rows).all()
            is_hit = contains(accepted, form.raw(region.rows(rows))[:, 0])
            best = min([best, *effort(region, rows[is_hit])])
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
    for before, after in zip(widths[:-1], widths[1:], strict=True):
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
    region = around(make_space(rng, table), table.iloc[[int(rng.integers(len(table)))]])
    start = float(form.raw(region.rows(region.query[None]))[0, 0])
    accepted = make_target(rng, start, float(form.raw(table).std()) + 0.1)
    rows = region.enumerate(10**6)
    assert rows is not None
    sums = form.raw(region.rows(rows))[:, 0] if len(rows) else np.zeros(0)
    nearest = float(effort(region, rows[contains(accepted, sums)]).min(initial=np.inf))

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
        assert sign * (found.bound - best) >= 0.0, seed
        assert found.is_exact or region.curved, seed
        if found.is_exact:
            assert own == pytest.approx(best, rel=1e-5, abs=1e-5), seed


@pytest.mark.parametrize("part", range(3))
def test_small_networks_agree_with_brute_force(part: int) -> None:
    conclusions = [check_question(seed) for seed in range(8 * part, 8 * (part + 1))]
    assert conclusions.count("cut short") == 0
    assert conclusions.count("optimal") >= 2
