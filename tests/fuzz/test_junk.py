"""Junk in place of any public argument is used, or refused with the library's own error."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.errors import BayesCFXError
from bayescfx.potentials import Target
from tests.fuzz.calls import JUNK, Call, calls

CALLS = list(calls())
# Objects that the library makes, and modules.
MADE = {
    "Batch",
    "BindingConstraint",
    "CertificateCheck",
    "Counterfactual",
    "ReachableRange",
    "Explanation",
    "Menu",
    "MenuItem",
    "Step",
    "ValidRange",
    "WhatIf",
    "plots",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder: a text in place of `evaluations` is the path of a new file."""
    monkeypatch.chdir(tmp_path)


def test_all_public_callables_are_fuzzed() -> None:
    known = {call.name for call in CALLS} | MADE
    exported = {name for name in cfx.__all__ if not name.endswith(("Error", "Warning"))}
    assert exported <= known
    inner = {
        *("by_name", "with_data", "with_fields", "with_rules"),  # for verbs
        *("encode_queries", "regions"),  # for the explainer; `around` is fuzzed
        "to_dict",  # without arguments
    }
    verbs = {name for name, _ in inspect.getmembers(cfx.Space, callable) if name[0] != "_"}
    assert {f"Space.{verb}" for verb in verbs - inner} <= known
    methods = {name for name, _ in inspect.getmembers(Target, callable) if name[0] != "_"}
    for kind in ("Reach", "Range", "Shift"):
        assert {f"{kind}.{method}" for method in methods} <= known


def spoiled(call: Call, junk: tuple[Any, ...]) -> Iterator[tuple[list[Any], dict[str, Any], Any]]:
    """Yield the arguments of a call with one of them replaced."""
    for i in range(len(call.args)):
        for value in junk:
            yield [*call.args[:i], value, *call.args[i + 1 :]], call.arguments, value
    for name in call.arguments:
        for value in junk:
            yield list(call.args), {**call.arguments, name: value}, value


def raised(call: Call, args: list[Any], arguments: dict[str, Any]) -> Exception | None:
    """Return the error of a call, if any."""
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
            call.function(*args, **arguments)
    except Exception as error:
        return error
    return None


def check(call: Call, junk: tuple[Any, ...]) -> None:
    """Call with junk; an error must be the library's own, on one line, or the user function's."""
    for args, arguments, value in spoiled(call, junk):
        error = raised(call, args, arguments)
        context = (call.name, args, arguments, value, repr(error))
        if isinstance(error, BayesCFXError):
            assert len(str(error)) > 20, context
            assert "\n" not in str(error), context
        elif error is not None:
            assert any("while evaluating" in note for note in getattr(error, "__notes__", ())), (
                context
            )


@pytest.mark.parametrize("call", CALLS, ids=[f"{call.name}{k}" for k, call in enumerate(CALLS)])
def test_some_junk_is_used_or_refused_with_an_own_error(call: Call) -> None:
    call.function(*call.args, **call.arguments)
    rng = np.random.default_rng(sum(map(ord, call.name)))
    some = tuple(JUNK[i] for i in rng.permutation(len(JUNK))[:6])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(call, some)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=[f"{call.name}{k}" for k, call in enumerate(CALLS)])
def test_all_junk_is_used_or_refused_with_an_own_error(call: Call) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(call, JUNK)
