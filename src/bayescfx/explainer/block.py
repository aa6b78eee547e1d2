"""A block of queries, the unit of work, and the one place of a call where queries are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import BayesCFXError, ModelError
from bayescfx.evaluations.data import Evaluations
from bayescfx.evaluations.known import Snapshot
from bayescfx.explainer.call_settings import CallSettings
from bayescfx.models.model import Model
from bayescfx.search.exact.prover import Prover
from bayescfx.space.queries import EncodedQueries, Regions
from bayescfx.space.region import Region
from bayescfx.space.space import Space

#: Raises an error if a row, a one-row table, must not be asked about.
CheckRow: TypeAlias = Callable[[Any], object]
OnError: TypeAlias = Literal["raise", "record"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A block of queries and all that is needed to answer them.

    A call begins as a block without queries. Its blocks are copies of that one with some of the
    queries.

    Parameters
    ----------
    settings : CallSettings
        How the questions are answered.
    space : Space
        The features and what may change.
    model : Model
        The model.
    prover : Prover
        The model as it was read, for proofs.
    evaluations : Evaluations
        Where scored rows are recorded.
    snapshot : Snapshot
        The evaluations known when the call began. Each block starts from it, so that answers do
        not depend on the order in which blocks finish.
    deadline : Deadline
        When the call ends.
    names_queries : bool
        Whether messages name the query.
    on_error : {"raise", "record"}
        What happens to a query that can't be asked: raise its error, or record it and go on.
    check_row : callable or None
        A further check of each row.
    keeps_rows : bool
        Whether scored rows outlive their block.
    parent : int or None
        The process that sent the block to a worker.
    first : int
        The position of the block's first query among all queries of the call.
    rows : DataFrame or list
        The queries.
    targets : list
        One target per query.
    generators : list of numpy.random.Generator
        One per query.
    encoded : EncodedQueries, optional
        The queries as codes, if they were encoded before.
    regions : dict of int to Region, optional
        The regions by position, if they were made before.
    n_spent : int
        Rows that were scored at the expense of the first query before.
    by_label : bool
        Whether the targets are about different outputs of a classifier, so that the queries of a
        block are answered in groups.
    provers : dict of str to Prover
        The models of these outputs as they were read, by name.
    """

    settings: CallSettings
    space: Space
    model: Model
    prover: Prover
    evaluations: Evaluations
    snapshot: Snapshot
    deadline: Deadline = NEVER
    names_queries: bool = True
    on_error: OnError = "raise"
    check_row: CheckRow | None = None
    keeps_rows: bool = True
    parent: int | None = None
    first: int = 0
    rows: Any = ()
    targets: Sequence[Any] = ()
    generators: Sequence[np.random.Generator] = ()
    encoded: EncodedQueries | None = None
    regions: Mapping[int, Region] | None = None
    n_spent: int = 0
    by_label: bool = False
    provers: dict[str, Prover] = field(default_factory=dict)

    @property
    def index(self) -> pd.Index[Any]:
        """The labels of the queries."""
        if isinstance(self.rows, pd.DataFrame):
            return self.rows.index
        return pd.RangeIndex(self.first, self.first + len(self.rows))

    def encode(self) -> EncodedQueries:
        """Return the queries as codes, with notes and errors, by position in the call.

        Rows that `check_row` refuses are not encoded.
        """
        if self.encoded is not None:
            return self.encoded
        rows = self.rows
        positions: Sequence[int] = range(self.first, self.first + len(rows))
        refused: dict[int, BayesCFXError] = {}
        if self.check_row is not None:
            rows, positions, refused = self._check_rows(self.check_row)
        encoded = self.space.encode_queries(rows)
        errors = refused | {positions[k]: error for k, error in encoded.errors.items()}
        return replace(
            encoded,
            positions=[positions[k] for k in encoded.positions],
            extended={positions[k]: schema for k, schema in encoded.extended.items()},
            notes={positions[k]: texts for k, texts in encoded.notes.items()},
            errors=dict(sorted(errors.items())),
        )

    def _check_rows(
        self, check_row: CheckRow
    ) -> tuple[Any, Sequence[int], dict[int, BayesCFXError]]:
        """Return the rows that may be asked about, their positions, and errors of the others."""
        singles = self.rows
        if isinstance(self.rows, pd.DataFrame):
            singles = [self.rows.iloc[k : k + 1] for k in range(len(self.rows))]
        kept: list[int] = []
        refused: dict[int, BayesCFXError] = {}
        for k, row in enumerate(singles):
            try:
                check_row(row)
                kept.append(k)
            except BayesCFXError as error:
                refused[self.first + k] = error
        return self._take(kept), [self.first + k for k in kept], refused

    def _take(self, row_numbers: list[int]) -> Any:
        """Return some of the rows."""
        if isinstance(self.rows, pd.DataFrame):
            return self.rows.iloc[row_numbers]
        return [self.rows[k] for k in row_numbers]

    def make_regions(self) -> Regions:
        """Return the region around each query, by position, with notes and errors."""
        if self.regions is not None:
            return Regions(dict(self.regions), {}, {})
        found = self.space.regions(self.encode())
        if found.errors:
            self.raise_first(found.errors)
        return found

    def name(self, position: int) -> str:
        """Return how messages refer to a query: by its label, or by its position."""
        label = repr(self._label(position))
        return f"at position {position}" if label in (repr(position), "None") else label

    def _label(self, position: int) -> object:
        """Return the label of a query in its table, or of a Series; None without a label."""
        if isinstance(self.rows, pd.DataFrame):
            return self.rows.index.tolist()[position - self.first]
        row = self.rows[position - self.first]
        return row.name if isinstance(row, pd.Series) else None

    def raise_first(self, errors: Mapping[int, BayesCFXError]) -> None:
        """Raise the first of some errors, given by position, unless errors are recorded."""
        if self.on_error == "raise":
            for position, error in errors.items():
                raise self.name_query(position, error)

    def name_query(self, position: int, error: BayesCFXError) -> BayesCFXError:
        """Return the error of a query, with a note that names the query if there are several."""
        if self.names_queries and not isinstance(error, ModelError):  # which has the row itself
            error.add_note(f"for the query {self.name(position)}")
        return error

    def for_workers(self) -> Block:
        """Return what all blocks have in common, for other processes.

        Listeners, rows in memory and the user's model object are left out. A store in a file is
        sent along: workers that can reach it write to it themselves.
        """
        settings = replace(
            self.settings,
            on_step=None,
            progress=False,
            timeout=None,
            rng=self.settings.seed,
        )
        store = Evaluations() if self.evaluations.file is None else self.evaluations
        model = replace(self.model, origin=None)
        return replace(
            self,
            settings=settings,
            model=model,
            prover=Prover(model),
            provers={},
            evaluations=store,
            parent=os.getpid(),
        )

    def queries(self) -> dict[str, Any]:
        """Return what is the block's own, to be sent to a worker that has the rest."""
        names = ("first", "rows", "targets", "generators", "n_spent")
        return {name: getattr(self, name) for name in names}
