"""The form of the constraints, made from the verbs of a space."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

import bayescfx as cfx
from bayescfx.requests.constraints import VERBS, Verb
from bayescfx.space.parameters import Count, NameLists
from bayescfx.web.request_forms import Constraints, make_constraints_form, page_verbs


def read(given: dict[str, Any]) -> dict[str, Any]:
    return Constraints.model_validate(given).given()


def test_every_verb_of_the_page_has_a_field() -> None:
    fields = Constraints.model_fields
    assert list(fields) == [verb.name for verb in page_verbs()]
    assert {"derive", "groups"}.isdisjoint(fields)
    assert fields["fix"].description == VERBS["fix"].help


GIVEN: list[dict[str, Any]] = [
    {"fix": ["age"], "max_changes": 2},
    {"between": {"bmi": [20, None], "smoker": ["no", True]}, "move": {"age": [-2, 2.5]}},
    {"together": [["age", "bmi"]], "require": ["age <= bmi"], "steps": {"bmi": 0.5}},
    {"near_data": True, "cost": {"per_change": 0.5, "per_feature": {"bmi": 3}}},
    {"near_data": {"quantile": 0.8}},
]


@pytest.mark.parametrize("given", GIVEN)
def test_constraints_are_read_as_they_are_given(given: dict[str, Any]) -> None:
    assert read(given) == given


def test_empty_constraints_are_left_out() -> None:
    assert read({"fix": [], "between": {}, "near_data": False, "cost": {}}) == {}


def test_a_text_is_read_as_on_the_command_line() -> None:
    texts = {"fix": "age, bmi", "together": "age,bmi\nbmi,visits", "max_changes": "2"}
    together = [["age", "bmi"], ["bmi", "visits"]]
    assert read(texts) == {"fix": ["age", "bmi"], "together": together, "max_changes": 2}
    cost = {"per_change": 0.5, "per_feature": {"bmi": 3}}
    assert read({"cost": "per_change=0.5\nper_feature=bmi=3"}) == {"cost": cost}


REFUSED: list[dict[str, Any]] = [
    {"fix": [1]},
    {"fix": [["age"]]},
    {"between": {"bmi": 3}},
    {"between": {"bmi": [{"low": 1}]}},
    {"move": {"bmi": [1]}},
    {"steps": {"bmi": float("nan")}},
    {"max_changes": 0},
    {"max_changes": "two"},
    {"near_data": {"share": 0.5}},
    {"cost": "per_change"},
    {"cost": {"premium": 1}},
    {"require": ["age <= bmi"] * 101},
    {"derive": {"bmi": "os:system"}},
]


@pytest.mark.parametrize("given", REFUSED)
def test_other_values_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        read(given)


def test_a_new_verb_has_a_field_without_an_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(space: cfx.Space, value: Any, data: Any) -> cfx.Space:
        return space

    monkeypatch.setitem(VERBS, "one_group", Verb("one_group", NameLists(), apply, help="one"))
    monkeypatch.setitem(VERBS, "at_least", Verb("at_least", Count(), apply, help="changes"))
    form = make_constraints_form()
    given = {"one_group": [["age"], ["bmi"]], "at_least": 3}
    assert form.model_validate(given).given() == given
    with pytest.raises(pydantic.ValidationError):
        form.model_validate({"one_group": ["age"]})
