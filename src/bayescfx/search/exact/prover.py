"""Proofs about answers: the model is read once, its table is shared by all queries.

A proof needs a model that can be read. The incumbent is the best answer that is known; the proof
either finds a nearer one or shows that there is none.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Rows
from bayescfx.deadline import limited_to
from bayescfx.errors import OutOfTime
from bayescfx.models.model import Model
from bayescfx.models.readers import Form, Reading, ReluNetwork, TreeEnsemble, read_model
from bayescfx.models.readers.forms import invert_link
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import TUNING as BRANCHING
from bayescfx.search.exact.branching import Bound, Branching, Work, find_nearest
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.leaves import LeafTable, make_leaf_table
from bayescfx.search.exact.linear_form import find_nearest_linear
from bayescfx.search.exact.network_search import find_nearest_network
from bayescfx.search.exact.problem import ROUNDING, BoxProblem
from bayescfx.space.region import Region

Conclusion: TypeAlias = Literal["optimal", "bounded", "out of reach"]

#: Rows on which a form is compared with its model.
ROWS_TO_COMPARE = 128
#: Rounding errors of outputs count this many times.
_SAFETY = 4.0
#: Outputs are the same if they differ by less than this share (numerical).
_SAME_OUTPUT = 1e-7
#: Scored rows for which the sums are computed from cells as well.
_ROWS_IN_CELLS = 8
#: Work that the search of a linear model may do at least: about a second. Most take hundredths.
_LINEAR_WORK = 15e6


@dataclass(frozen=True)
class Proof:
    """What is proven about an answer.

    Parameters
    ----------
    conclusion : {"optimal", "bounded", "out of reach"} or None
        ``"optimal"``: no allowed row with a lower cost reaches the target. ``"bounded"``: none with
        a cost below `bound` does. ``"out of reach"``: no allowed row reaches it. None: nothing is
        known.
    bound : float or None
        There is no answer that costs less.
    reason : str
        Why there is no proof, or no complete one.
    """

    conclusion: Conclusion | None = None
    bound: float | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class ScoredCodes:
    """A row that reaches the target.

    Parameters
    ----------
    row : array of shape (d,)
        Its codes.
    output : float
        The model's output.
    cost : float
        Its cost.
    """

    row: Array
    output: float
    cost: float


class Provable(Protocol):
    """What a proof needs of a question."""

    @property
    def region(self) -> Region:
        """The rows that are allowed."""
        ...

    @property
    def acceptance(self) -> Intervals:
        """Outputs that count as reached."""
        ...

    def accepted(self, y: Array) -> Mask:
        """Return which outputs ``(n,)`` reach the target."""
        ...


@dataclass(eq=False)
class Prover:
    """The model of an `Explainer`, read once while it gives the same outputs, and its tables.

    Parameters
    ----------
    model : Model
        The model.
    """

    model: Model
    _reading: Reading | None = field(init=False, default=None)
    _tables: list[tuple[Schema, LeafTable]] = field(init=False, default_factory=list)

    def reading(self, region: Region) -> Reading:
        """Return what was read from the model; rows for the comparison are taken from a region."""
        if self._reading is None:
            self._reading = read_model(self.model, _rows_to_compare(region))
        return self._reading

    def form(self, region: Region, X: Array, y: Array) -> Form:
        """Return the model in a flat form; raise `NoProof` with the reason if there is none.

        It is compared with outputs ``(n,)`` of codes ``(n, d)``. If they differ, the model was
        fitted again since it was read, and is read once more.
        """
        if not self.model.local:
            raise NoProof("the model is not an estimator in this process")
        form = self._read_form(region)
        if self._is_same(form, region, X, y):
            return form
        self._reading = None
        self._tables.clear()
        form = self._read_form(region)
        if not self._is_same(form, region, X, y):
            raise NoProof("the model gives other outputs than what was read from it")
        return form

    def _read_form(self, region: Region) -> Form:
        """Return the model in a flat form, read at the first call."""
        reading = self.reading(region)
        if reading.form is None:
            raise NoProof(reading.reason)
        return reading.form

    def _is_same(self, form: Form, region: Region, X: Array, y: Array) -> bool:
        """Return whether a form gives the outputs ``(n,)`` that the model gave, to rounding."""
        is_known = np.isfinite(y)
        if not is_known.any():
            return True
        outputs = form.predict(region.rows(X[is_known]))
        slack = _SAFETY * self.reading(region).rounding + _SAME_OUTPUT * np.abs(y[is_known])
        return bool((np.abs(outputs - y[is_known]) <= slack).all())

    def table(self, region: Region, form: TreeEnsemble) -> LeafTable:
        """Return the table of a tree ensemble for the features of a region."""
        for schema, table in self._tables:
            if schema is region.schema and all(cells.covers(region) for cells in table.cells):
                return table
        table = make_leaf_table(form, region)
        self._tables.append((region.schema, table))
        return table


def _rows_to_compare(region: Region) -> Rows:
    """Return rows of the data, or random ones, as the model gets them.

    They are the same for all queries of a space, or else proofs would depend on their order.
    """
    X = region.data[:ROWS_TO_COMPARE]
    if not len(X):
        ranges = [feature.code_range for feature in region.schema.features.values()]
        low, high = np.nan_to_num(np.array(ranges, dtype=np.float64)).T
        draws = np.random.default_rng(0).random((ROWS_TO_COMPARE, len(low)))
        X = np.rint(low + draws * (high - low))  # whole codes, which any feature has
    return region.rows(X)


def raw_intervals(form: Form, accepted: Intervals, rounding: float) -> Intervals:
    """Return accepted outputs on the scale of a form's sums, widened by rounding errors.

    The score of a ``"softmax"`` is the log-odds of its output.
    """
    link = "expit" if form.link == "softmax" else form.link
    found = []
    for low, high in accepted:
        ends = np.array([low, high])
        slack = _SAFETY * rounding + np.finfo(np.float64).eps * np.abs(ends)
        slack = np.where(np.isfinite(ends), slack, 0.0)
        start = invert_link(link, float(ends[0] - slack[0]))
        end = invert_link(link, float(ends[1] + slack[1]))
        found.append((start, end))
    return tuple(found)


def sure_intervals(form: Form, accepted: Intervals, rounding: float) -> Intervals:
    """Return the scores of a model whose outputs are accepted whatever the rounding."""
    margin = 0.0
    if isinstance(form, TreeEnsemble):
        margin = ROUNDING * float(np.abs(np.nan_to_num(form.value)).sum())
    narrow = []
    for low, high in accepted:
        ends = np.abs(np.nan_to_num(np.array([low, high]), posinf=0.0, neginf=0.0))
        slack = _SAFETY * (rounding + np.finfo(np.float64).eps * ends)
        narrow.append((low + float(slack[0]), high - float(slack[1])))
    found = raw_intervals(form, tuple(narrow), 0.0)
    return tuple((low + margin, high - margin) for low, high in found)


def prove(
    question: Provable, prover: Prover, scored: tuple[Array, Array], cost: float, work: Work
) -> Generator[Array, Array, Proof]:
    """Prove that an answer is the nearest, or find nearer ones.

    Yields codes ``(k, d)`` to be evaluated and receives their outputs ``(k,)``.

    Parameters
    ----------
    question : Question
        The question.
    prover : Prover
        The model.
    scored : tuple of arrays of shape (n, d) and (n,)
        Some codes and their outputs, with which the form is compared.
    cost : float
        The cost of the best known answer; infinite without one.
    work : Work
        What limits the proof.
    """
    try:
        with limited_to(work.deadline):
            search = _start_search(question, prover, scored, cost, work)
        bound = yield from _ask_outputs(question, search)
    except NoProof as error:
        return Proof(reason=str(error))
    except OutOfTime:
        return Proof(reason="the time was over before the proof began")
    return _conclude(bound)


def _start_search(
    question: Provable, prover: Prover, scored: tuple[Array, Array], cost: float, work: Work
) -> Generator[Array, Mask, Bound]:
    """Return the search for rows that cost less than the best known answer."""
    region = question.region
    form = prover.form(region, *scored)
    accepted = raw_intervals(form, question.acceptance, prover.reading(region).rounding)
    limit = cost * (1.0 - BRANCHING.same_cost)
    if isinstance(form, TreeEnsemble):
        table = prover.table(region, form)
        _check_table(table, region, scored[0])
        problem = BoxProblem(table, region, accepted, limit=limit)
        return find_nearest(Branching(problem, limit, work))
    if isinstance(form, ReluNetwork):
        return find_nearest_network(form, region, accepted, limit, work)
    return find_nearest_linear(form, region, accepted, limit=limit, work=linear_work(work))


def linear_work(work: Work) -> Work:
    """Return what limits the proof of a linear model, which takes a few programs at least."""
    return replace(work, most=max(work.most, _LINEAR_WORK))


def _check_table(table: LeafTable, region: Region, X: Array) -> None:
    """Raise `NoProof` if cells give other sums than the form for some of the codes ``(n, d)``."""
    X = np.concatenate([region.query[None], X[:: max(len(X) // _ROWS_IN_CELLS, 1)]])
    expected = table.form.raw(region.rows(X))
    slack = ROUNDING * float(np.abs(table.leaf_value).sum())
    if not (np.abs(table.raw(X) - expected) <= slack + ROUNDING * np.abs(expected)).all():
        raise NoProof("the model transforms a feature in a way that neither rises nor falls")


def _ask_outputs(
    question: Provable, search: Generator[Array, Mask, Bound]
) -> Generator[Array, Array, Bound]:
    """Run a search that wants to know which rows reach the target."""
    try:
        rows = next(search)
        while True:
            outputs = yield rows
            rows = search.send(question.accepted(outputs))
    except StopIteration as end:
        bound: Bound = end.value
        return bound


def _conclude(bound: Bound) -> Proof:
    """Return what a search has proven."""
    if bound.is_complete:
        if not np.isfinite(bound.cost):
            return Proof("out of reach")
        return Proof("optimal", bound.cost)
    reason = bound.reason or "the proof was cut short"
    if bound.is_stuck:
        reason = "a rule leaves rows that can't be excluded"
    return Proof("bounded", bound.cost, reason)
