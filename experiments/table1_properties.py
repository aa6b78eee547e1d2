"""Table 1 and Section 1: properties of the method, tested on models of every kind.

Each property is asked of several models with the same features; an answer counts if it is verified
by the model and keeps what was asked, which is tested here again on the row itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from experiments.claims import Claim, bootstrap, fact
from experiments.functions import steps
from experiments.runs import Settings, each

NAME = "table1_properties"
QUERY = {"age": 30.0, "debt": 20.0, "income": 25.0}
BUDGET = 150


def _unit(rows: Any) -> Array:
    """Return the features of a frame in the unit cube."""
    return np.asarray(rows[list(QUERY)].to_numpy(dtype=float) / [100.0, 50.0, 100.0])


def linear(rows: Any) -> Array:
    """Return a weighted sum."""
    return np.asarray(_unit(rows) @ [1.0, -2.0, 3.0])


def logistic(rows: Any) -> Array:
    """Return a probability."""
    return np.asarray(1.0 / (1.0 + np.exp(-4.0 * (linear(rows) - 0.8))))


def stairs(rows: Any) -> Array:
    """Return a sum of step functions, like those of trees."""
    return np.asarray(steps(_unit(rows) * [1.0, -1.0, 1.0] + [0.0, 1.0, 0.0]) / 10.0)


def rules(rows: Any) -> Array:
    """Return the value of nested conditions, with a curve in one branch."""
    age, debt, income = _unit(rows).T
    return np.asarray(np.where(income > 0.5, 1.0 + age * income - debt, 0.5 * age + income))


MODELS: dict[str, Callable[[Any], Array]] = {
    "linear": linear,
    "logistic": logistic,
    "stairs": stairs,
    "rules": rules,
}


@dataclass(frozen=True)
class Property:
    """A property: the constraint of the space, and a check of rows ``(n,)``."""

    space: Callable[[cfx.Space], cfx.Space]
    keeps: Callable[[Any], Mask]
    answers: int = 1


def _moved(rows: Any) -> Array:
    """Return the changes ``(n, 3)`` from the query."""
    return np.asarray(rows[list(QUERY)].to_numpy(dtype=float) - list(QUERY.values()))


def _apart(rows: Any) -> Mask:
    return np.full(len(rows), len(rows.drop_duplicates()) == len(rows) == 2)


def _few(most: int) -> Callable[[Any], Mask]:
    return lambda rows: np.asarray((_moved(rows) != 0.0).sum(axis=1) <= most)


def _same_direction(rows: Any) -> Mask:
    return np.asarray(_moved(rows)[:, 0] * _moved(rows)[:, 2] >= 0.0)


def _disc(rows: Any) -> Mask:
    return np.asarray((_moved(rows)[:, 1:] ** 2).sum(axis=1) <= 40.0**2)


PROPERTIES = {
    "any": Property(lambda s: s, _few(3)),
    "no cost": Property(lambda s: s.cost(weight=0), _few(3)),
    "multiple": Property(lambda s: s, _apart, answers=2),
    "ℓ0": Property(lambda s: s.max_changes(2), _few(2)),
    "older": Property(lambda s: s.only_up("age"), lambda rows: _moved(rows)[:, 0] >= 0.0),
    "same direction": Property(lambda s: s.require(_same_direction), _same_direction),
    "nonlinear": Property(lambda s: s.require(_disc), _disc),
}


def run(settings: Settings) -> dict[str, Any]:
    """Explain every model with every property."""
    models = list(MODELS)[: settings.pick(len(MODELS), 2)]
    tasks = [(model, name) for model in models for name in PROPERTIES]
    found = each(ask, tasks, NAME, settings.jobs)
    rows = [
        {"model": model, "property": name, **one}
        for (model, name), one in zip(tasks, found, strict=True)
    ]
    return {"budget": BUDGET, "rows": rows}


def space() -> cfx.Space:
    """Return the features, all free; the cost is the ℓ1 distance, as in the paper."""
    features = {"age": cfx.Real(18, 100), "debt": cfx.Real(0, 50), "income": cfx.Real(0, 100)}
    return cfx.Space(features).cost(per_change=0)


def ask(task: tuple[str, str]) -> dict[str, Any]:
    """Explain a black box, which is only a function of rows, with a property.

    Wanted is 30 % of what the model can gain at most, by random rows.
    """
    name, wanted = task
    model = MODELS[name]
    asked = PROPERTIES[wanted]
    own = float(model(pd.DataFrame([QUERY]))[0])
    low = [18.0, 0.0, 0.0]
    high = [100.0, 50.0, 100.0]
    rows = np.random.default_rng(0).uniform(low, high, size=(2_000, 3))
    by = 0.3 * float(model(pd.DataFrame(rows, columns=list(QUERY))).max() - own)
    answer = cfx.explain(
        lambda rows: model(rows),
        QUERY,
        asked.space(space()),
        cfx.reach(by=by),
        method="bayes-cfx",
        n=asked.answers,
        budget=BUDGET,
        rng=0,
        short_decimals=False,
    )
    return {
        "reached": bool(answer.reached),
        "verified": bool(answer.verify(model)),
        "kept": bool(asked.keeps(answer.rows).all()),
        "moved": int((_moved(answer.rows)[0] != 0.0).sum()),
        "calls": answer.n_evaluations,
    }


_SAID = {
    "any": ("black-box", "black box access, model-agnostic; regression and classification"),
    "multiple": ("multiple", "multiple counterfactuals for a given query"),
    "ℓ0": ("sparsity", "considers sparsity (an ℓ0 bound of two)"),
    "older": ("preference", "feature preference: age can only increase"),
    "same direction": ("same-direction", "two features must change in the same direction"),
    "nonlinear": ("nonlinear", "supports arbitrary nonlinear constraints"),
}


def claims(result: dict[str, Any]) -> list[Claim]:
    """Return the claims of Table 1 and Section 1."""
    found = []
    for name, (key, paper) in _SAID.items():
        rows = [row for row in result["rows"] if row["property"] == name]
        good = sum(row["reached"] and row["verified"] and row["kept"] for row in rows)
        found.append(
            Claim(
                f"properties.{key}",
                "Section 1" if name in ("same direction", "nonlinear") else "Table 1",
                paper,
                f"{good} of {len(rows)} models: reached, verified, kept",
                fact(good == len(rows)),
                f"{', '.join(row['model'] for row in rows)}, each a function of rows only",
            )
        )
    moved = {
        name: np.array([row["moved"] for row in result["rows"] if row["property"] == name])
        for name in ("any", "no cost")
    }
    fewer = bootstrap(moved["no cost"] - moved["any"])
    return [
        *found,
        Claim(
            "properties.regulariser",
            "Section 1",
            "sparsity can be induced by any ℓp-regulariser",
            f"with an ℓ1 cost of moving {fewer.text('+.2f')} features fewer move, of three",
            fewer,
            "measured with p = 1, the default; `Space.cost` takes p ≥ 1, `max_changes` is ℓ0",
        ),
    ]


def tell(result: dict[str, Any]) -> str:
    """Return the section of the report."""
    models = list(dict.fromkeys(row["model"] for row in result["rows"]))
    calls = {(row["model"], row["property"]): row["calls"] for row in result["rows"]}
    lines = "\n".join(
        f"| {paper} | {' | '.join(str(calls[model, name]) for model in models)} |"
        for name, (_, paper) in _SAID.items()
    )
    return f"""\
## Table 1: what the method can do

{len(models)} models with three features, each asked for 30 % of the rise that it has to
offer, with at most {result["budget"]} rows; the answer is checked by the model, and the rule on the
row itself. Rows of the model used:

| property | {" | ".join(models)} |
|---|{"---|" * len(models)}
{lines}

Where Table 1 has a cross the library has a choice: work is shared between queries, rows can be kept
near the data, relations between features can be stated (see the [paper map](paper-map.md)).
"""
