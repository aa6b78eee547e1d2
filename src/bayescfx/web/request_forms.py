"""Forms of the page's requests: every request is checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    WrapValidator,
    create_model,
)

from bayescfx.requests.constraints import VERBS, Verb

#: The largest settings of one question.
MAXIMUM = {"budget": 20_000, "timeout": 600.0, "n": 10}

MAX_ITEMS = 5_000  # entries of a list or a table; a request is at most 1 MB anyway
MAX_RULES = 100  # entries that are each tested on every row, such as rules as text

Name = Annotated[str, StringConstraints(max_length=1_000)]
Text = Annotated[str, StringConstraints(max_length=2_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Cell = Annotated[bool | int | float | str | None, Field(union_mode="smart")]
Cells = Annotated[dict[str, Cell], Field(max_length=MAX_ITEMS)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Form(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class ConstraintsForm(Form):
    """The visitor's constraints by verb of `Space`, as in a settings file."""

    def given(self) -> dict[str, Any]:
        """Return the constraints that are given, without empty ones."""
        values = self.model_dump(exclude_unset=True)
        empty: tuple[Any, ...] = (None, [], {})
        return {
            name: value
            for name, value in values.items()
            if value not in empty and value is not False
        }


def type_of(schema: Mapping[str, Any], name: str, *, max_items: int = MAX_ITEMS) -> Any:
    """Return the Python type that pydantic checks for a JSON schema.

    Parameters
    ----------
    schema : dict
        With ``anyOf`` or ``type``, as `Parameter.schema` returns it.
    name : str
        The name of a form for an object with known properties.
    """
    if "anyOf" in schema:
        return _any_of([type_of(one, name) for one in schema["anyOf"]])
    kind = schema["type"]
    if isinstance(kind, list):
        return _any_of([type_of({"type": one}, name) for one in kind])
    if kind == "array":
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max_items)
        items: Any = type_of(schema["items"], name)
        return Annotated[list[items], Field(min_length=least, max_length=most)]
    if kind == "object":
        return _object_type(schema, name)
    return SCALARS[kind](schema)


def _any_of(types: list[Any]) -> Any:
    """Return the union of some types; of those that fit, the best is taken."""
    return Annotated[Union[tuple(types)], Field(union_mode="smart")]  # noqa: UP007 -- of a list


def _object_type(schema: Mapping[str, Any], name: str) -> Any:
    """Return the type of a table, or a form for known properties."""
    if "properties" not in schema:
        items: Any = type_of(schema["additionalProperties"], name)
        return Annotated[dict[Name, items], Field(max_length=MAX_ITEMS)]
    fields: dict[str, Any] = {}
    for key, each in schema["properties"].items():
        value: Any = type_of(each, f"{name} {key}".title())
        fields[key] = (value, Field(default=None, validate_default=False))
    return create_model(name, __base__=Form, **fields)


def _integer(schema: Mapping[str, Any]) -> Any:
    return Annotated[int, Field(ge=schema.get("minimum"), le=10_000)]


#: The types of single values.
SCALARS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "string": lambda _: Text,
    "number": lambda _: int | Number,
    "integer": _integer,
    "boolean": lambda _: StrictBool,
    "null": lambda _: None,
}


def verb_type(verb: Verb) -> Any:
    """Return the type of a verb's value, which may be a text as on the command line.

    Parameters
    ----------
    verb : Verb
        Its parameter has a JSON schema and, unless it is a switch, reads texts.

    Returns
    -------
    type
        For a field of a form.
    """
    parameter = verb.parameter
    max_items = MAX_RULES if parameter.kind in ("texts", "name lists") else MAX_ITEMS
    value: Any = type_of(parameter.schema(), verb.name.title(), max_items=max_items)
    if not parameter.takes_text:
        return value

    def read(given: Any, validate: Callable[[Any], Any]) -> Any:
        if not isinstance(given, str):
            return validate(given)
        found = parameter.from_texts(verb.name, given.splitlines())
        return validate(found) if parameter.kind == "options" else found

    return Annotated[value | Text, WrapValidator(read)]


def page_verbs() -> list[Verb]:
    """Return the verbs that a visitor may use: neither code nor other columns."""
    return [verb for verb in VERBS.values() if not (verb.runs_code or verb.changes_columns)]


def make_constraints_form() -> type[ConstraintsForm]:
    """Return the form of the visitor's constraints, with a field for each verb.

    A new verb of `Space` has its field here without an edit.
    """
    fields: dict[str, Any] = {}
    for verb in page_verbs():
        default = Field(default=None, description=verb.help, validate_default=False)
        fields[verb.name] = (verb_type(verb), default)
    return create_model("Constraints", __base__=ConstraintsForm, **fields)


if TYPE_CHECKING:

    class Constraints(ConstraintsForm):
        """The form of the visitor's constraints."""

else:
    Constraints = make_constraints_form()


class PredictForm(Form):
    """A row to score; with a query and constraints, those that it breaks are returned."""

    cells: Cells
    query: Cells | None = None
    space: Constraints | None = None
    target: Text | None = None
    tolerance: Share = 0.05


class TargetForm(Form):
    """A target as text, and the output that it is relative to."""

    target: Text
    output: Number
    tolerance: Share = 0.05


class CurveForm(Form):
    """A row, and the feature along which it is moved."""

    cells: Cells
    feature: Name
    question: int | None = None
    score: bool = True


class QuestionForm(Form):
    """A question."""

    cells: Cells
    label: Text | None = None
    target: Text
    space: Constraints = Field(default_factory=Constraints)
    n: Annotated[int, Field(ge=1, le=MAXIMUM["n"])] = 3
    diverse: bool = False
    budget: Annotated[int, Field(ge=1, le=MAXIMUM["budget"])] | None = None
    timeout: Annotated[float, Field(ge=0, le=MAXIMUM["timeout"])] = 60.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    tolerance: Share = 0.05
    method: Name = "auto"


class BookmarksForm(Form):
    """The positions of the answers that a visitor keeps."""

    answers: Annotated[list[Annotated[int, Field(ge=0, lt=100)]], Field(max_length=100)]
