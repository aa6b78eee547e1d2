"""What a page is about: a model, its data, what may change, and what is known by now."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.data.tables import Rows, pick
from bayescfx.errors import BayesCFXError, ModelError, SettingsError, hearing
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.memory import joined
from bayescfx.models.endpoint import Endpoint
from bayescfx.models.model import Model
from bayescfx.models.protocols import cell
from bayescfx.requests.constraints import apply_constraints
from bayescfx.requests.messages import describe_error
from bayescfx.requests.query_rows import row_cells
from bayescfx.requests.settings import Settings
from bayescfx.requests.subject import Subject
from bayescfx.space.space import Space

MOST = 50_000  # rows that are remembered without a file, the last ones


@dataclass(frozen=True, eq=False)
class Site:
    """A model and its data for everybody who looks at the page, from several threads."""

    subject: Subject
    settings: Settings
    model: Model  # asked by one thread at a time, unless it is a server itself
    shown: pd.DataFrame  # rows of the data, in their order
    labels: tuple[str, ...]  # of these rows
    outputs: Array  # the model's, of these rows
    _known: list[tuple[Rows, Array]] = field(default_factory=list)  # at most one
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, subject: Subject, settings: Settings, model: Model, rows: int) -> Site:
        """Return the site; the model scores so many rows of the data, evenly chosen."""
        data = subject.data
        chosen = np.linspace(0, len(data) - 1, min(rows, len(data))).astype(int)
        shown, names = data.iloc[chosen], chosen if settings.id is None else data.index[chosen]
        asked = _asked(model, alone=not isinstance(subject.loaded.model, Endpoint))
        shown = shown.reset_index(drop=True)
        outputs = asked.scores(shown)  # a row without an output is shown without one
        site = cls(subject, settings, asked, shown, tuple(map(str, names)), outputs)
        if not model.local:
            # What was dear to learn serves every question; a cheap model answers as if asked alone.
            site.learn(Evaluations(shown, outputs))
        return site

    @property
    def space(self) -> Space:
        """What may change if the page says nothing."""
        return self.subject.space

    def allowed(self, wishes: Mapping[str, Any]) -> Space:
        """Return what may change by the rules of whoever started the page, and by these wishes."""
        for name in wishes.get("steps", {}).keys() & self.settings.space.get("steps", {}).keys():
            raise SettingsError(f"the steps of {name!r} are given by whoever started the page.")
        return apply_constraints(self.space, wishes, self.subject.data)

    def row(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row that the page sent, or raise if it can't be one."""
        with hearing(lambda _: None):
            return self.subject.check_query(self.subject.table_format.read_row(cells)[0])

    def cells(self, i: int) -> dict[str, Any]:
        """Return one of the rows shown, in JSON's own types."""
        return {name: cell(value) for name, value in row_cells(self.shown, i).items()}

    def watched(self, hear: Callable[[Rows, Array], None]) -> Model:
        """Return the model; `hear` is told what it says."""

        def predict(rows: Any) -> Array:
            found = self.model.scores(rows)
            hear(rows, found)
            return found

        return replace(self.model, predict=predict, content=self.model.fingerprint())

    @contextlib.contextmanager
    def known(self) -> Iterator[Evaluations]:
        """Yield what is known of the model: from the file, if there is one, or by questions."""
        if self.settings.evaluations is not None:
            with Evaluations.open(self.settings.evaluations) as found:
                yield found
            return
        with self._lock:
            parts = list(self._known)
        yield Evaluations(*parts[0]) if parts else Evaluations()

    def learn(self, heard: Evaluations) -> None:
        """Let later questions know what the model said; a file knows it already."""
        if self.settings.evaluations is not None or heard.rows is None:
            return
        with self._lock:
            rows, outputs = joined([*self._known, (heard.rows, heard.outputs)])
            kept = np.flatnonzero(~pd.DataFrame(rows).duplicated() & np.isfinite(outputs))[-MOST:]
            self._known[:] = [(pick(rows, kept), outputs[kept])]


def _asked(model: Model, *, alone: bool) -> Model:
    """Return the model with errors fit for the page; `alone`, it is asked by one at a time."""
    lock = threading.Lock() if alone else contextlib.nullcontext()

    def predict(rows: Any) -> Array:
        try:
            with lock:
                return model.scores(rows)
        except BayesCFXError:
            raise
        except Exception as error:  # whatever a model raises, and it may know of places
            told = re.sub(r"(?<!\w)(?:[A-Za-z]:)?(?:[/\\][\w. -]+){2,}", "…", describe_error(error))
            raise ModelError(f"the model failed: {told}") from error

    return replace(model, predict=predict, content=model.fingerprint())
