"""Every public callable with valid arguments, and junk to replace them."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from bayescfx.potentials import Target

TABLE = pd.DataFrame(
    {
        "a": np.linspace(0.0, 1.0, 12),
        "b": np.arange(12),
        "c": ["x", "y", "z"] * 4,
        "t": pd.date_range("2020-01-01", periods=12),
        "p": [0, 1] * 6,
        "q": [1, 0] * 6,
    }
)
QUERY = {"a": 0.5, "b": 3, "c": "x", "t": pd.Timestamp("2020-01-05"), "p": 0, "q": 1}


def model(rows: pd.DataFrame) -> Any:
    """Return a model of the table."""
    return rows["a"].to_numpy() * 3 + rows["b"].to_numpy()


def tree() -> Any:
    """Return a model that can be read."""
    columns = make_column_transformer(("passthrough", ["a", "b"]))
    return make_pipeline(columns, DecisionTreeRegressor(random_state=0)).fit(TABLE, TABLE["a"])


class Classifier:
    """A classifier of the table."""

    classes_ = ("no", "yes")

    def predict_proba(self, rows: Any) -> Any:
        """Return two columns."""
        return np.full((len(rows), 2), 0.5)


@dataclass(frozen=True)
class Call:
    """A callable with valid arguments."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    args: tuple[Any, ...] = ()  # for *names


@cache
def space() -> cfx.Space:
    """Return the space of the table."""
    return cfx.Space.from_data(TABLE)


@cache
def answer() -> cfx.Explanation:
    """Return an answer about the table."""
    return cfx.explain(model, QUERY, space(), cfx.increase(by=1), budget=12, rng=0)


def evaluations() -> cfx.Evaluations:
    """Return evaluations of the model."""
    return cfx.Evaluations(TABLE.head(3), model(TABLE.head(3)))


def calls() -> Iterator[Call]:
    """Yield all public callables except plots."""
    ask = {"query": QUERY, "space": space(), "target": cfx.increase(by=1)}
    how = {"method": "auto", "budget": 3, "n": 1, "tolerance": 0.05, "timeout": None}
    more = {"evaluations": None, "rng": 0, "on_step": None, "on_fault": "raise", "progress": False}
    yield Call("explain", cfx.explain, {"model": model, **ask, **how, **more, "run": None})
    yield Call(
        "Explainer",
        lambda **given: cfx.Explainer(**given).close(),
        {"model": model, "space": space(), **how, **more},
    )
    many = {"queries": TABLE.head(2), **{k: v for k, v in ask.items() if k != "query"}}
    yield Call(
        "explain_many", cfx.explain_many, {"model": model, **many, **how, **more, "n_jobs": 1}
    )
    flow = {"model": model, "space": space(), "target": cfx.increase(by=1)}
    flow |= how | {"evaluations": None, "rng": 0, "on_fault": "raise", "run": None, "n_jobs": 1}
    yield Call("explain_partition", cfx.explain_partition, {"frame": TABLE.head(2), **flow})
    yield Call(
        "explain_stream",
        lambda frames, **given: list(cfx.explain_stream(frames=frames, **given)),
        {"frames": [TABLE.head(2)], **flow},
    )
    for name in ("ei_cfx", "log_ei_cfx", "ei_cfx_gradient", "log_ei_cfx_gradient"):
        given = {"mean": [0.0, 1.0], "std": [1.0, 1.0], "potential": cfx.AEP(0, 1), "best": 0.1}
        yield Call(name, getattr(cfx, name), given)
    yield Call("probability", cfx.probability, {"clf": Classifier(), "label": "yes"})
    yield Call("isolated", cfx.isolated, {"model": model, "timeout": 60.0, "memory": None})
    yield from targets()
    yield from features()
    yield from settings()
    yield from verbs()
    yield from answers()
    yield from stores()


def targets() -> Iterator[Call]:
    """Yield targets, potentials and their methods."""
    for name in ("increase", "decrease", "change"):
        yield Call(name, getattr(cfx, name), {"by": 1.0, "percent": None})
        yield Call(name, getattr(cfx, name), {"by": None, "percent": 10.0})
    for name in ("at_least", "at_most"):
        yield Call(name, getattr(cfx, name), {"value": 1.0})
    yield Call("between", cfx.between, {"low": 1.0, "high": 2.0})
    yield Call("becomes", cfx.becomes, {"label": "good", "probability": 0.7})
    yield Call("flips", cfx.flips, {})
    yield Call("reach", cfx.reach, {"value": 1.0})
    yield Call("reach", cfx.reach, {"by": -1.0, "percent": None})
    yield Call("reach", cfx.reach, {"by": None, "percent": 10.0})
    yield Call("AEP", cfx.AEP, {"origin": 0.0, "width": 1.0, "side": 1})
    yield Call("SEP", cfx.SEP, {"origin": 0.0, "width": 1.0})
    yield Call("Plateau", cfx.Plateau, {"low": 0.0, "high": 1.0, "width": 1.0})
    yield Call("Valley", cfx.Valley, {"origin": 0.0, "width": 1.0})
    for made in (cfx.AEP(0, 1), cfx.SEP(0, 1), cfx.Plateau(0, 1, 1), cfx.Valley(0, 1)):
        kind = type(made).__name__
        yield Call(f"{kind}.value", made.value, {"y": [0.5]})
        yield Call(f"{kind}.slope", made.slope, {"y": [0.5]})
        yield Call(f"{kind}.superlevel", made.superlevel, {"level": 0.1})
        yield Call(f"{kind}.target_set", made.target_set, {"epsilon": 0.1})
    examples: list[Target] = [cfx.reach(3), cfx.between(1, 2), cfx.increase(by=1), cfx.at_least(5)]
    for target in examples:
        kind = type(target).__name__
        yield Call(f"{kind}.potential", target.potential, {"output": 0.5})
        yield Call(f"{kind}.wanted", target.wanted, {"output": 0.5})
        yield Call(f"{kind}.acceptance", target.acceptance, {"output": 0.5, "tolerance": 0.1})
        for plain in ("to_dict", "describe"):
            yield Call(f"{kind}.{plain}", getattr(target, plain), {})


def features() -> Iterator[Call]:
    """Yield kinds of features and the space."""
    yield Call("Real", cfx.Real, {"low": 0.0, "high": 1.0, "step": 0.5})
    yield Call("Integer", cfx.Integer, {"low": 0, "high": 9, "step": 1, "cyclic": False})
    yield Call("Ordinal", cfx.Ordinal, {"levels": [1, 2]})
    yield Call("Categorical", cfx.Categorical, {"levels": ["x", "y"]})
    yield Call("Moment", cfx.Moment, {"low": "2020", "high": "2021", "unit": "D", "origin": None})
    yield Call("Space", cfx.Space, {"features": {"a": cfx.Real(0, 1)}})
    yield Call("Space.from_data", cfx.Space.from_data, {"X": TABLE, "kinds": {"a": "real"}})
    yield Call("Space.from_dict", cfx.Space.from_dict, {"plain": space().to_dict()})


def settings() -> Iterator[Call]:
    """Yield searches and their settings with their defaults."""
    for kind in (
        *(cfx.BayesCFX, cfx.NaiveBayes, cfx.RandomSearch, cfx.LBFGSB, cfx.ProjectedGradient),
        *(cfx.Sweep, cfx.SurrogateSettings, cfx.GaussianProcess, cfx.Patience, cfx.Trust),
    ):
        made: Any = kind()
        names = list(inspect.signature(kind).parameters)
        yield Call(kind.__name__, kind, {name: getattr(made, name) for name in names})
    process = cfx.GaussianProcess().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
    X = [[0.0], [1.0], [2.0]]
    y = [0.0, 1.0, 0.5]
    yield Call("GaussianProcess.fit", cfx.GaussianProcess().fit, {"X": X, "y": y})
    yield Call("GaussianProcess.with_points", process.with_points, {"X": [[0.5]], "y": [0.2]})
    yield Call("GaussianProcess.predict", process.predict, {"X": X, "noise": False})
    yield Call("GaussianProcess.predict_gradient", process.predict_gradient, {"X": X})
    rng = np.random.default_rng(0)
    yield Call("GaussianProcess.sample", process.sample, {"X": X, "n": 2, "rng": rng})
    yield Call("progress_bar", cfx.progress_bar, {"n_queries": 1})
    url: dict[str, Any] = {"url": "http://localhost:1", "output": None, "batch": 10, "headers": {}}
    yield Call("Endpoint", cfx.Endpoint, {**url, "patience": cfx.Patience()})
    loading = {"trust": None, "output": None, "headers": None, "patience": None, "batch": 10}
    yield Call("load_model", cfx.load_model, {"source": "math:hypot", **loading})
    yield Call("load_model", cfx.load_model, {"source": "http://localhost:1", **loading})


def verbs() -> Iterator[Call]:
    """Yield the verbs of a space."""
    made = space()
    for verb in ("fix", "allow", "only_up", "only_down"):
        yield Call(f"Space.{verb}", getattr(made, verb), {}, ("a",))
    yield Call("Space.together", made.together, {}, ("a", "b"))
    yield Call("Space.between", made.between, {"limits": {"a": (0, 1)}})
    yield Call("Space.between", lambda limits: made.between({"a": limits}), {"limits": (0, 1)})
    yield Call("Space.between", lambda limits: made.between({"c": limits}), {"limits": ["x"]})
    yield Call(
        "Space.between", lambda limits: made.between({"t": limits}), {"limits": (None, None)}
    )
    yield Call("Space.move", made.move, {"limits": {"a": (0, 1)}})
    yield Call("Space.move", lambda limits: made.move({"t": limits}), {"limits": ("-1D", "1D")})
    yield Call("Space.require", made.require, {"rule": "a <= b", "label": "order"})
    yield Call("Space.max_changes", made.max_changes, {"k": 2})
    yield Call("Space.derive", made.derive, {"name": "a", "function": lambda rows: rows["b"]})
    yield Call(
        "Space.cost",
        made.cost,
        {"per_change": 0.5, "per_feature": {"a": 2.0}, "norm": 1.0, "weight": 1.0},
    )
    yield Call("Space.group", made.group, {"name": "pq", "columns": ["p", "q"]})
    yield Call("Space.steps", made.steps, {"steps": {"a": 0.5}})
    yield Call("Space.near_data", made.near_data, {"X": TABLE, "quantile": 0.9})
    yield Call("Space.around", made.around, {"query": QUERY})
    yield Call("Space.encode", made.encode, {"rows": TABLE})
    yield Call("Space.decode", made.decode, {"codes": made.encode(TABLE)})
    yield Call("Space.including", made.including, {"rows": TABLE})
    yield Call("Space.name", made.name, {"given": "a"})


def answers() -> Iterator[Call]:
    """Yield the methods of answers."""
    one = answer()
    many = cfx.Explanations([answer()])
    yield Call("Explanation.to_frame", one.to_frame, {"changes_only": True})
    yield Call("Explanation.from_json", cfx.Explanation.from_json, {"text": one.to_json()})
    yield Call("Explanation.verify", one.verify, {"model": model, "space": None})
    yield Call("Explanation.violations", one.violations, {"model": model, "space": None})
    row = {"model": model, "query": QUERY, "space": space(), "target": 3.0, "tolerance": 0.05}
    yield Call("what_if", cfx.what_if, {**row, "changes": {"a": 0.2}})
    yield Call("what_if", lambda value: cfx.what_if(model, QUERY, {"t": value}), {"value": "2020"})
    yield Call("assess", cfx.assess, {**row, "rows": TABLE})
    yield Call("reachable", cfx.reachable, {"model": tree(), "query": QUERY, "space": space()})
    menu = {"model": tree(), "query": QUERY, "space": space(), "target": 3.0}
    yield Call("menu", cfx.menu, {**menu, "size": 1, "tolerance": 0.05})
    proven = cfx.explain(tree(), QUERY, space(), cfx.at_least(0.9), rng=0)
    plain = cfx.certificate(tree(), proven)
    yield Call("certificate", cfx.certificate, {"model": tree(), "answer": proven})
    yield Call("check_certificate", cfx.check_certificate, {"certificate": plain, "model": tree()})
    yield Call("Exact", cfx.Exact, {})
    yield Call("Explanation.to_markdown", one.to_markdown, {})
    yield Call("Explanations", cfx.Explanations, {"answers": [one]})
    yield Call("Explanations.importance", many.importance, {})
    yield Call("Explanations.to_markdown", many.to_markdown, {})
    yield Call("Explanations.to_frame", many.to_frame, {"changes_only": True})
    yield Call("Explanations.from_json", cfx.Explanations.from_json, {"text": many.to_json()})


def stores() -> Iterator[Call]:
    """Yield the methods of evaluations; the tests make the files."""
    known = {"rows": TABLE.head(2), "outputs": [1.0, 2.0]}
    yield Call("Evaluations", cfx.Evaluations, {**known, "model": "m"})
    yield Call("Evaluations.append", lambda **given: evaluations().append(**given), known)


#: What is put in the place of each argument.
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 1.5, float("nan"), float("inf"), 10**400, -(10**400), 1 + 2j),
    *("", "a", "zzz", "a\x00\ud800", "1e999", b"x", "[", "a <= a <= a", "2020-13-45"),
    *([], [1], ["a"], [None], [[1.0, 2.0]], (0,), (0, "x"), (1, 0), ("x", None), range(3)),
    *({}, {"a": 1}, {"zzz": 1}, {"a": None}, {"a": "x"}, {"a": (1, 0)}, {1: 2}, {("a",): 1}, {"a"}),
    *(object(), int, print, Ellipsis, dt.date(2020, 1, 1), Path("no/such/file"), iter(())),
    *(np.array([]), np.array([[np.nan]]), np.array(["a"]), np.float32(2.5), np.array(3)),
    *(np.zeros((2, 2, 2)), np.ma.masked, np.datetime64("NaT"), np.array([1 + 1j])),
    *(pd.NA, pd.NaT, pd.Timestamp.min, pd.Series(dtype=float), pd.DataFrame()),
    *(TABLE, TABLE.head(0), TABLE.iloc[0], TABLE[["a", "a"]], TABLE.drop(columns="a")),
    lambda: None,
    lambda *given: "x",
)  # fmt: skip
