"""Return values of users' models, rules and columns, and texts of rules: used or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayescfx as cfx
from bayescfx.errors import BayesCFXError, SpaceError
from tests.fuzz.calls import JUNK, QUERY, model, space

RETURNED: tuple[Any, ...] = (
    *JUNK,
    pd.Series([1.0, 2.0], index=["x", "y"]),
    np.ma.masked_array([1.0], mask=[True]),
    [[1.0, 2.0]],
    {"a": [1.0]},
    [10**400],
    [1 + 2j],
    ["1.0"],
    [np.datetime64("2020")],
    [pd.Timestamp("2020")],
    [b"1"],
)


def survives(ask: Callable[[], cfx.Explanation]) -> None:
    """Explain; only the library's own errors may be raised, and outputs are finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = ask()
        except BayesCFXError as error:
            message = str(error)
        else:
            assert np.isfinite([answer.output, answer.best.output]).all()
            return
    assert len(message) > 20


SOME = [pytest.param(k, marks=[pytest.mark.slow] * (k % 5 > 0)) for k in range(len(RETURNED))]


@pytest.mark.parametrize("k", SOME)
@pytest.mark.parametrize("on_fault", ["raise", "skip"])
def test_outputs_of_a_model_are_one_number_per_row_or_an_error(k: int, on_fault: Any) -> None:
    ask = {"query": QUERY, "space": space(), "target": 1.0, "budget": 3, "on_fault": on_fault}
    survives(lambda: cfx.explain(lambda rows: RETURNED[k], **ask))
    many = [RETURNED[k]] if not isinstance(RETURNED[k], list) else RETURNED[k]
    survives(lambda: cfx.explain(lambda rows: many * len(rows), **ask))


@pytest.mark.parametrize("k", SOME)
def test_outputs_of_a_function_of_rows_are_used_or_an_error(k: int) -> None:
    for made in (
        space().require(lambda rows: RETURNED[k], label="odd"),
        space().derive("a", lambda rows: RETURNED[k]),
        space().derive("c", lambda rows: [RETURNED[k]] * len(rows)),
        space().derive("t", lambda rows: [RETURNED[k]] * len(rows)),
    ):
        survives(lambda: cfx.explain(model, QUERY, made, 5.0, budget=3, rng=0))  # noqa: B023  asked at once


TOKENS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "`b c`",
            "c",
            "µ",
            "μ",
            "_0_",
            "quoted_1_",
            "x1",
            "and",
            "or",
            "not",
            "if",
            "1",
        ),
        *(
            "2.5",
            "1e400",
            "0",
            "-",
            "+",
            "*",
            "/",
            "**",
            "(",
            ")",
            "<=",
            ">=",
            "==",
            "<",
            ">",
            "!=",
        ),
        *(
            "`",
            ".",
            ",",
            "[",
            "]",
            "'",
            '"',
            "\\",
            "\n",
            "\x00",
            " ",
            "lambda",
            ":=",
            "0x",
            "٣",
            "10**9",
        ),
    ]
)


@given(st.lists(TOKENS, max_size=12).map(" ".join) | st.text(max_size=30))
@settings(max_examples=150, deadline=None)
def test_a_text_is_a_rule_or_is_refused(text: str) -> None:
    features = {name: cfx.Real(0, 9) for name in ("a", "b", "b c", "µ", "μ", "quoted_1_", "_0_")}
    made = cfx.Space(features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            region = made.require(text).around(dict.fromkeys(features, 4.5))
        except SpaceError:
            return
    X = np.random.default_rng(0).uniform(0, 9, size=(20, len(features)))
    assert region.contains(X).shape == (20,)
