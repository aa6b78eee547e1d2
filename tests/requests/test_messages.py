"""Messages in the words of a client."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import bayescfx as cfx
from bayescfx.requests.constraints import VERBS
from bayescfx.requests.messages import (
    COMMAND_LINE,
    COMMAND_LINE_ADVICE,
    PAGE,
    PAGE_ADVICE,
    describe_error,
)
from bayescfx.requests.settings import OPTIONS

ON_FAULT = cfx.ModelError(
    "`model` returned nan.", parameter="on_fault", advice="Pass on_fault='skip'."
)


def test_each_client_has_its_own_advice() -> None:
    assert describe_error(ON_FAULT) == (
        "the model returned nan. Exclude that region with --require, or pass --on-fault skip."
    )
    assert describe_error(ON_FAULT, PAGE) == (
        "the model returned nan. Exclude that region with a rule."
    )


def test_advice_with_an_option_of_another_command_is_left_out() -> None:
    without = replace(COMMAND_LINE, flags={"--on-fault"})
    assert describe_error(ON_FAULT, without) == "the model returned nan."


@pytest.mark.parametrize("name", sorted({*OPTIONS, *VERBS}))
def test_the_page_names_no_option(name: str) -> None:
    error = cfx.SpaceError(f"`{name}` must be more; got less.", parameter=name)
    assert "--" not in describe_error(error, PAGE)
    assert "`" not in describe_error(error, PAGE)


def test_the_page_has_advice_for_each_parameter() -> None:
    assert PAGE_ADVICE.keys() == COMMAND_LINE_ADVICE.keys()
    assert not any(re.search("--[a-z]", advice) for advice in PAGE_ADVICE.values())


def test_the_page_names_its_fields() -> None:
    error = cfx.SettingsError("`budget` must be >= 1; got 0.", parameter="budget")
    assert describe_error(error, PAGE) == "the number of model rows must be >= 1; got 0."
    assert describe_error(error) == "--budget must be >= 1; got 0."
