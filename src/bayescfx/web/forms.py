"""What the page may ask for: every request, checked before anything is done."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

#: What one question may take at most.
MOST = {"budget": 20_000, "timeout": 600.0, "n": 10}

Name = Annotated[str, StringConstraints(max_length=1_000)]
Text = Annotated[str, StringConstraints(max_length=2_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Cell = Annotated[bool | int | float | str | None, Field(union_mode="smart")]
Cells = Annotated[dict[str, Cell], Field(max_length=5_000)]
Names = Annotated[list[Name], Field(max_length=5_000)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Form(BaseModel):
    """A request; what it does not know is refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Prices(Form):
    """What moving costs, by feature: 1 is normal."""

    per_feature: dict[Name, Annotated[float, Field(gt=0, le=1e6)]] = {}


class Wishes(Form):
    """What may change; each part is a verb of `Space`, as in a settings file."""

    fix: Names = []
    allow: Names = []
    only_up: Names = []
    only_down: Names = []
    between: dict[Name, Annotated[list[Cell], Field(max_length=5_000)]] = {}
    move: dict[Name, Annotated[list[Number | None], Field(min_length=2, max_length=2)]] = {}
    require: Annotated[list[Text], Field(max_length=100)] = []
    together: Annotated[list[Names], Field(max_length=100)] = []
    steps: dict[Name, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    max_changes: Annotated[int, Field(ge=1, le=10_000)] | None = None
    near_data: bool = False
    cost: Prices = Prices()

    def said(self) -> dict[str, Any]:
        """Return what is wished for, without what is not."""
        return self.model_dump(exclude_defaults=True)


class Guess(Form):
    """A row to be scored; with a query and wishes it is told what it breaks."""

    cells: Cells
    query: Cells | None = None
    space: Wishes | None = None
    target: Text | None = None
    tolerance: Share = 0.05


class Goal(Form):
    """A target as text, seen from an output."""

    target: Text
    output: Number
    tolerance: Share = 0.05


class Line(Form):
    """A feature along which a row is moved."""

    cells: Cells
    feature: Name
    question: int | None = None
    score: bool = True


class AskForm(Form):
    """A question."""

    cells: Cells
    label: Text | None = None
    target: Text
    space: Wishes = Wishes()
    n: Annotated[int, Field(ge=1, le=MOST["n"])] = 3
    budget: Annotated[int, Field(ge=1, le=MOST["budget"])] | None = None
    timeout: Annotated[float, Field(ge=0, le=MOST["timeout"])] = 60.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    tolerance: Share = 0.05
    method: Name = "auto"


class Bookmarks(Form):
    """Which answers to a question are kept in mind."""

    answers: Annotated[list[Annotated[int, Field(ge=0, lt=100)]], Field(max_length=100)]
