"""The site: the model, its data and the constraints that a page is about."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import bayescfx as cfx
from bayescfx.errors import BayesCFXError, ModelError, SettingsError, redirect_warnings
from bayescfx.requests.constraints import apply_constraints
from bayescfx.requests.messages import PAGE, describe_error
from bayescfx.requests.plain_values import json_value
from bayescfx.requests.query_rows import row_cells
from bayescfx.requests.settings import Settings
from bayescfx.requests.subject import CheckedQuery, Model, Subject

Outputs = npt.NDArray[np.float64]

MAX_SHARED = 50_000  # rows of an expensive model that are kept in memory, the latest


@dataclass(frozen=True, eq=False)
class Site:
    """A model and its data for all visitors, used by several threads.

    Parameters
    ----------
    subject : Subject
        The model, the data and the operator's space.
    settings : Settings
        The operator's settings.
    model : Model
        The model that is explained; one thread at a time calls it, unless it is an endpoint.
    listed : DataFrame
        The rows of the data that the page lists.
    labels : tuple of str
        Their labels.
    outputs : ndarray of shape (n,)
        The model's outputs for them.
    """

    subject: Subject
    settings: Settings
    model: Model
    listed: pd.DataFrame
    labels: tuple[str, ...]
    outputs: Outputs
    _shared: list[cfx.Evaluations] = field(default_factory=list)  # the latest, at most one
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, subject: Subject, settings: Settings, model: Model, n_rows: int) -> Site:
        """Return the site; the model scores `n_rows` rows of the data, evenly chosen."""
        data = subject.data
        chosen = np.linspace(0, len(data) - 1, min(n_rows, len(data))).astype(int)
        names = chosen if settings.id is None else data.index[chosen]
        listed = data.iloc[chosen].reset_index(drop=True)
        is_endpoint = isinstance(subject.loaded.model, cfx.Endpoint)
        guarded = _guard_model(model, contextlib.nullcontext() if is_endpoint else threading.Lock())
        labels = tuple(str(name) for name in names)
        site = cls(subject, settings, guarded, listed, labels, guarded.scores(listed))
        site.share(cfx.Evaluations(listed, site.outputs))
        return site

    @property
    def space(self) -> cfx.Space:
        """The operator's space."""
        return self.subject.space

    @property
    def shares_evaluations(self) -> bool:
        """Whether questions share scored rows: of an expensive model, or in the operator's file.

        A cheap model is scored anew for each question, so that a question has the answer that it
        has in Python and on the command line.
        """
        return self.settings.evaluations is not None or not self.model.local

    def constrain(self, constraints: Mapping[str, Any]) -> cfx.Space:
        """Return the operator's space with the visitor's constraints."""
        operator_steps = self.settings.space.get("steps", {})
        for name in constraints.get("steps", {}):
            if name in operator_steps:
                raise SettingsError(f"the steps of {name!r} are set by the operator of this page.")
        return apply_constraints(self.space, constraints, self.subject.data)

    def read_row(self, cells: Mapping[str, Any], space: cfx.Space | None = None) -> CheckedQuery:
        """Return a visitor's row and the region around it; raise if it does not fit the space.

        Parameters
        ----------
        cells : dict of column to cell
            As the page sends it.
        space : Space, optional
            By default the operator's.
        """
        subject = self.subject if space is None else replace(self.subject, space=space)
        with redirect_warnings(lambda _: None):
            row, _ = subject.table_format.read_row(cells)
            return subject.check_query(row)

    def listed_cells(self, i: int) -> dict[str, Any]:
        """Return the cells of a listed row, in JSON's own types."""
        return {name: json_value(value) for name, value in row_cells(self.listed, i).items()}

    @contextlib.contextmanager
    def evaluations(self) -> Iterator[cfx.Evaluations | None]:
        """Yield the evaluations that a question starts from; None if it starts from nothing."""
        if self.settings.evaluations is not None:
            with cfx.Evaluations.open(self.settings.evaluations) as opened:
                yield opened
            return
        with self._lock:
            shared = list(self._shared)
        # A copy: questions run at the same time.
        yield cfx.Evaluations(shared[0].rows, shared[0].outputs) if shared else None

    def share(self, scored: cfx.Evaluations) -> None:
        """Keep the rows that a question has scored, if questions share rows without a file.

        Only finite outputs are kept, each row once; the oldest rows go first.

        Parameters
        ----------
        scored : Evaluations
            The rows of one question.
        """
        is_kept = self.shares_evaluations and self.settings.evaluations is None
        if not is_kept or scored.rows is None:
            return
        with self._lock:
            tables = [pd.DataFrame(each.rows) for each in (*self._shared, scored)]
            rows = pd.concat(tables, ignore_index=True)
            outputs = np.concatenate([each.outputs for each in (*self._shared, scored)])
            is_new = ~rows.duplicated().to_numpy() & np.isfinite(outputs)
            kept = np.flatnonzero(is_new)[-MAX_SHARED:]
            self._shared[:] = [cfx.Evaluations(rows.iloc[kept], outputs[kept])]


def _guard_model(model: Model, lock: contextlib.AbstractContextManager[Any]) -> Model:
    """Return the model with a lock around it, and without paths in its errors.

    Errors of this library are left as they are; all others become a `ModelError` for the visitor.
    """

    def predict(rows: Any) -> Outputs:
        try:
            with lock:
                return model.scores(rows)
        except BayesCFXError:
            raise
        except Exception as error:  # a model may raise anything
            path = r"(?<!\w)(?:[A-Za-z]:)?(?:[/\\][\w. -]+){2,}"
            text = re.sub(path, "…", describe_error(error, PAGE))
            raise ModelError(f"the model failed: {text}") from error

    content = model.fingerprint()
    labels = model.labels
    if labels is not None:  # the page is about one output
        labels = replace(labels, is_fixed=True)
    return replace(model, predict=predict, content=content, inner=model.predict, labels=labels)
