"""CFX-Existence: witnesses of counterfactuals, and the reduction from SAT."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

import bayescfx as cfx
from bayescfx.models.model import Model
from bayescfx.theory.existence import Formula, is_witness

SMALL = Formula(3, np.array([[1, 2], [-1, 3], [-2, -3]]))
NEVER = Formula(2, np.array([[1, 2], [1, -2], [-1, 2], [-1, -2]]))  # one clause always fails
NAMES = ["a", "b", "c"]


def small(a: bool, b: bool, c: bool) -> list[bool]:
    return [a or b, not a or c, not b or not c]


def everything() -> pd.DataFrame:
    return pd.DataFrame(list(product([False, True], repeat=3)), columns=NAMES)


def test_a_formula_counts_its_clauses() -> None:
    rows = everything()
    expected = [small(*row) for row in rows.itertuples(index=False)]
    assert SMALL.satisfied(rows).tolist() == [sum(clauses) for clauses in expected]
    assert SMALL.value(rows).tolist() == [float(all(clauses)) for clauses in expected]


def test_brute_force_tells_what_can_be_satisfied() -> None:
    assert SMALL.most_satisfiable() == 3
    assert NEVER.most_satisfiable() == 3


def test_a_satisfying_assignment_is_a_witness_if_it_is_allowed() -> None:
    space = cfx.Space({name: cfx.Categorical([False, True]) for name in NAMES}).fix("b")
    query = pd.DataFrame([[False, False, False]], columns=NAMES)
    rows = everything()
    found = is_witness(Model(SMALL.value), space.around(query), ((1.0, 1.0),), rows)
    assert rows[found].to_numpy().tolist() == [[True, False, True]]


def test_verify_checks_the_witness_of_an_answer() -> None:
    space = cfx.Space({name: cfx.Categorical([False, True]) for name in NAMES}).cost(weight=0)
    query = pd.DataFrame([[False, False, False]], columns=NAMES)
    answer = cfx.explain(SMALL.satisfied, query, space, cfx.at_least(3), budget=20, rng=0)
    assert answer.reached
    region = space.around(query)
    assert is_witness(Model(SMALL.satisfied), region, answer.accepted, answer.rows).all()
    assert answer.verify(SMALL.satisfied)
