"""Ask a model about some rows, and keep what was learnt if the model fails half-way."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.cli.console import Console
from bayescfx.cli.progress import Progress
from bayescfx.cli.settings import Settings, SettingsError
from bayescfx.cli.spaces import make_space
from bayescfx.cli.tables import check_levels, check_numbers, fit_query, read_table
from bayescfx.deadline import Deadline
from bayescfx.errors import BayesCFXError, ModelError, SpaceWarning
from bayescfx.evaluations.data import Evaluations
from bayescfx.explainer.front import explain_many
from bayescfx.io.endpoint import Patience
from bayescfx.io.loaded import Loaded
from bayescfx.io.loaders import Trust, load_model
from bayescfx.model.model import Model, as_model
from bayescfx.potentials.wishes import Target
from bayescfx.result.explanation import Explanation
from bayescfx.result.explanations import Explanations
from bayescfx.search.turns import Listener
from bayescfx.space.space import Space

BLOCK = 64  # as many queries share one model call, as in `explain_many`


@dataclass(frozen=True)
class Subject:
    """A model, the data it is asked about and what may change.

    Parameters
    ----------
    model : Model
        What is explained.
    data : DataFrame
        All columns of the data file.
    columns : list of str
        Those that the model takes, in its order.
    space : Space
        What may change.
    """

    model: Model
    data: pd.DataFrame
    columns: list[str]
    space: Space

    def fit(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a query as the model takes it; raise if it can't be one."""
        cells = fit_query(row, self.columns, list(self.data.columns))
        levels = {
            str(name): feature.levels
            for name, feature in self.space.features.items()
            if feature.levelled and name in cells
        }
        check_levels(cells, levels)
        self.space.around(cells)
        return cells


def load(settings: Settings) -> Loaded:
    """Return the model that the settings name."""
    settings.need("model")
    assert settings.model is not None
    headers = {}
    for line in settings.header:
        name, colon, value = line.partition(":")
        if not colon:
            raise SettingsError(f"--header must be like 'Name: value'; got {line!r}.")
        headers[name.strip()] = value.strip()
    return load_model(
        settings.model,
        trust=Trust(bool(settings.trust_pickle), tuple(settings.trust)),
        output=settings.output,
        headers=headers,
        patience=Patience(settings.http_timeout, settings.retries),
        batch=settings.batch,
    )


def read_data(settings: Settings) -> pd.DataFrame:
    """Return the data without the columns to ignore."""
    settings.need("data")
    assert settings.data is not None
    data = read_table(settings.data)
    unknown = [name for name in settings.drop if name not in data.columns]
    if unknown:
        raise SettingsError(
            f"--drop must name columns of the data; got {unknown[0]!r}. Columns: "
            f"{', '.join(data.columns[:20])}."
        )
    data = data.drop(columns=list(settings.drop))
    check_numbers(data, settings.features, settings.data)
    times = [n for n, wish in settings.features.items() if _kind(wish) == "moment"]
    for name in times:
        if name in data.columns:
            data[name] = pd.to_datetime(data[name])
    return data


def _kind(wish: Any) -> Any:
    return wish.get("kind") if isinstance(wish, dict) else wish


def make_subject(settings: Settings, console: Console) -> Subject:
    """Return what a question is about; says which columns are left out."""
    data = read_data(settings)
    loaded = load(settings)
    columns = [str(name) for name in loaded.select(list(data.columns))]
    left_out = [name for name in data.columns if name not in columns]
    if left_out:
        console.note(f"columns that the model does not take: {', '.join(left_out)}.")
    model = as_model(loaded.scoring(settings.label))
    if loaded.labels and settings.label is None:
        console.note(
            f"the model is a classifier; predictions are its score of {loaded.labels[-1]!r}. "
            "Choose another label with --label."
        )
    space = space_of(settings, data[columns], loaded)
    return Subject(model, data, columns, space)


def space_of(settings: Settings, table: pd.DataFrame, loaded: Loaded | None) -> Space:
    """Return the space of the columns that the model takes."""
    known = () if loaded is None else loaded.categorical
    told = {name: "categorical" for name in known if name in table.columns}
    return make_space(table, {**told, **settings.features}, settings.space)


@dataclass(frozen=True)
class Failure:
    """A query that was not answered, and why."""

    query: int
    reason: str


@dataclass(frozen=True)
class Asked:
    """What came of asking: answers by the position of the query, and failures."""

    answers: dict[int, Explanation]
    failures: tuple[Failure, ...] = ()
    fault: BaseException | None = None

    @property
    def explanations(self) -> Explanations:
        """The answers in the order of the queries."""
        return Explanations([self.answers[i] for i in sorted(self.answers)])


def ask(
    subject: Subject,
    queries: Sequence[dict[str, Any] | None],
    target: Target,
    settings: Settings,
    console: Console,
    *,
    on_block: Callable[[Asked], object] | None = None,
) -> Asked:
    """Answer the question for each query, block by block.

    Each block starts from what the ones before it have learnt. The answers to one block are those
    of ``explain_many(..., rng=seed)``. If the model fails half-way, the block it failed in is
    answered from what is known, and the rest is not answered.

    Parameters
    ----------
    subject : Subject
        What is asked about.
    queries : sequence of dict
        One row each; None for those that can't be asked.
    target : Target
        The wish.
    settings : Settings
        Budget, seed and so on.
    console : Console
        For progress.
    on_block : callable, optional
        Hears what there is after each block.
    """
    if settings.timeout is not None and not settings.timeout >= 0:
        raise SettingsError(f"--timeout must be seconds >= 0; got {settings.timeout!r}.")
    if settings.seed < 0:
        raise SettingsError(f"--seed must be a whole number >= 0; got {settings.seed!r}.")
    places = [i for i, row in enumerate(queries) if row is not None]
    progress = Progress(console, settings.budget * len(places), len(places))
    asker = _Asker(
        subject,
        target,
        settings,
        progress,
        Deadline.after(settings.timeout),
        np.random.default_rng(settings.seed),
    )
    named = settings.evaluations
    store = Evaluations() if named is None else Evaluations.open(named)
    asked = Asked({})
    try:
        for start in range(0, len(places), BLOCK):
            block = places[start : start + BLOCK]
            answers, fault = asker.answer([queries[i] for i in block], store, start)
            found = dict(zip(block, answers, strict=False))
            asked = Asked({**asked.answers, **found}, fault=fault)
            if on_block is not None:
                on_block(asked)
            if fault is not None:
                break
    finally:
        progress.close()
        store.close()
    return asked


@dataclass(frozen=True)
class _Asker:
    """What all blocks have in common."""

    subject: Subject
    target: object
    settings: Settings
    progress: Progress
    deadline: Deadline
    rng: np.random.Generator

    def answer(
        self, rows: Sequence[Any], store: Evaluations, first: int
    ) -> tuple[list[Explanation], BaseException | None]:
        """Return the answers to one block and, if the model failed, its error."""
        seed = self.settings.seed
        try:
            answers = self._run(self.subject.model, rows, store, self.progress.within(first))
        except Exception as error:
            if not hasattr(error, "evaluations"):  # not the model's
                raise
            return self._rescue(rows, store, first, error), error
        return [replace(answer, seed=seed) for answer in answers], None

    def _rescue(
        self, rows: Sequence[Any], store: Evaluations, first: int, error: Exception
    ) -> list[Explanation]:
        """Return the best answers among the rows that the model had scored before it failed."""
        try:
            # Without time the search only looks at what is known.
            late = replace(self, deadline=Deadline.after(0.0))
            answers = late._run(_dead(self.subject.model, error), rows, store, None)
        except BayesCFXError:  # not even f(query) is known
            return []
        spent = [self.progress.spent.get(first + i, 0) for i in range(len(rows))]
        return [
            replace(answer, stopped="interrupted", n_evaluations=n, seed=self.settings.seed)
            for answer, n in zip(answers, spent, strict=True)
        ]

    def _run(
        self, model: Model, rows: Sequence[Any], store: Evaluations, on_step: Listener | None
    ) -> Explanations:
        left = self.deadline.at - time.monotonic()
        with warnings.catch_warnings():
            # What there is to say about a query was said when it was read.
            warnings.simplefilter("ignore", SpaceWarning)
            return explain_many(
                model,
                rows,
                self.subject.space,
                self.target,
                method=self.settings.method,
                budget=self.settings.budget,
                n=self.settings.n,
                tolerance=self.settings.tolerance,
                timeout=None if math.isinf(left) else max(left, 0.0),
                evaluations=store,
                rng=self.rng,
                on_step=on_step,
                on_fault="skip" if self.settings.on_fault == "skip" else "raise",
            )


def _dead(model: Model, error: BaseException) -> Model:
    """Return the model as one that only fails."""

    def predict(_: Any) -> object:
        raise ModelError("the model failed before") from error

    return replace(model, predict=predict)
