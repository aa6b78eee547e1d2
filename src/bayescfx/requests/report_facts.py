"""Facts about a question that its reports show."""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path
from typing import Protocol

from bayescfx.requests.settings import Settings
from bayescfx.result.wording import ID as ID


class Naming(Protocol):
    """Options that name a report and the model's output."""

    @property
    def title(self) -> str | None:
        """The title of the report."""

    @property
    def output_name(self) -> str | None:
        """The name of the output."""

    @property
    def unit(self) -> str | None:
        """The unit of the output."""


def report_facts(settings: Settings, row: str, *, is_identified: bool) -> dict[str, str]:
    """Return the facts about a row that readers of a report need.

    `row` is the number of the row, or its identifier if it `is_identified`; it may be empty. An
    address is shown without the password in it.
    """
    model = re.sub(r"(?<=//)[^/@]*@|[?#].*", "", settings.model)
    facts = {
        "row": row,
        ID: settings.id if is_identified else None,
        "model": Path(model).name if os.path.isfile(model) else model,
        "data": Path(settings.data).name,
        "date": dt.date.today().isoformat(),
    }
    known = {name: text for name, text in facts.items() if text}
    return {**known, **naming_facts(settings), **settings.about}


def naming_facts(settings: Naming) -> dict[str, str]:
    """Return the names of a report and of the model's output, as far as they are given."""
    names = {"title": settings.title, "output": settings.output_name, "unit": settings.unit}
    return {name: text for name, text in names.items() if text is not None}
