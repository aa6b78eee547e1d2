"""The check of certificates: simple code that uses no part of the search.

A certificate splits the allowed rows into boxes, and states for each why it holds no answer. The
check reads the model again, follows every path of its trees, and recomputes each reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data.values import from_plain
from bayescfx.models.model import Model
from bayescfx.models.readers.forms import LinearModel, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.reading import read_model
from bayescfx.search.exact.certificate_reasons import (
    SUM_ROUNDING,
    BoxReasons,
    features_of_columns,
)
from bayescfx.search.exact.certificate_space import (
    CertificateError,
    CertifiedQuestion,
    CodeBox,
    read_question,
)
from bayescfx.search.exact.certificate_sums import LinearBounds

FORMAT = 1
#: Share of the sum of all summands to which a base is compared (numerical).
BASE_ROUNDING = 1e-9
#: Rows on which the form is compared with the model. Set by judgement, 2026-11-18.
N_COMPARED = 64
#: Halvings that separate any two neighbouring numbers of 64 bits.
HALVINGS = 66
LEAST_NUMBER = np.int64(-(2**63))


@dataclass(frozen=True)
class CertificateCheck:
    """What a valid certificate proves.

    Parameters
    ----------
    n_boxes : int
        The number of boxes that cover the allowed rows.
    limit : float
        No allowed row with a lower cost reaches the target; infinite if none does at all.
    cost : float or None
        The cost of the answer, which reaches the target; None without one. It is the limit, to
        rounding errors, or if its numbers were rounded to short decimals a little more.
    rounding : float
        The largest difference seen between the outputs of the model and of its form.
    statement : str
        The same in words.
    """

    n_boxes: int
    limit: float
    cost: float | None
    rounding: float
    statement: str


def check_certificate(certificate: Mapping[str, Any], model: Model) -> CertificateCheck:
    """Check a certificate against a model.

    Parameters
    ----------
    certificate : dict
        As made by `make_certificate`, also after it was written to JSON and read back.
    model : Model
        The model of the question.

    Raises
    ------
    CertificateError
        If the certificate or the model was altered, or if a box is not closed for its reason. The
        message names the first such box.
    """
    if certificate.get("format") != FORMAT:
        raise CertificateError(
            f"`format` of a certificate must be {FORMAT}; got {certificate.get('format')!r}."
        )
    if certificate.get("checksum") != checksum(certificate):
        raise CertificateError("the certificate was altered: its checksum is wrong.")
    try:
        question = read_question(certificate)
        return _check_question(certificate, question, model)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        text = f"{type(error).__name__}: {error}"
        raise CertificateError(f"the certificate can't be read: {text}.") from error


def checksum(certificate: Mapping[str, Any]) -> str:
    """Return a digest of everything else in a certificate."""
    content = {key: value for key, value in certificate.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_question(
    certificate: Mapping[str, Any], question: CertifiedQuestion, model: Model
) -> CertificateCheck:
    """Check the model, the answer and all boxes."""
    reading = read_model(model, question.rows(_random_codes(question)))
    form = reading.form
    if form is None or isinstance(form, ReluNetwork):
        raise CertificateError(
            f"the model is no tree ensemble or linear model: {reading.reason or 'a network'}."
        )
    if certificate["model"] != digest_of_model(form, question):
        raise CertificateError("the certificate belongs to another model, or it was fitted again.")
    if not question.slack >= 0.0:
        raise CertificateError(f"`slack` must not be negative; got {question.slack!r}.")
    boxes = make_bounds(form, question)
    answer = certificate["answer"]
    cost = None
    if answer is not None:
        cost = boxes.check_answer(np.array(from_plain(answer), dtype=np.float64))
    n_boxes = _check_boxes(certificate["boxes"], boxes)
    return CertificateCheck(
        n_boxes=n_boxes,
        limit=question.limit,
        cost=cost,
        rounding=reading.rounding,
        statement=_state(question.limit, n_boxes, cost),
    )


def make_bounds(form: TreeEnsemble | LinearModel, question: CertifiedQuestion) -> BoxReasons[Any]:
    """Return the reasons to close boxes for a model."""
    if isinstance(form, LinearModel):
        return LinearBounds(form, question)
    return BoxBounds(form, question)


def _state(limit: float, n_boxes: int, cost: float | None) -> str:
    """Return in words what is proven."""
    if not np.isfinite(limit):
        return f"No allowed row reaches the target ({n_boxes} boxes checked)."
    text = f"No allowed row with a cost below {limit:.6g} reaches the target"
    if cost is not None:
        text = f"The answer reaches the target at a cost of {cost:.6g}. {text}"
    return f"{text} ({n_boxes} boxes checked)."


def _check_boxes(plain: list[Any], boxes: BoxReasons[Any]) -> int:
    """Check the boxes, given by splits and reasons in depth-first order; return their number."""
    waiting = [boxes.start()]
    n_boxes = 0
    for each in plain:
        if not waiting:
            raise CertificateError("the certificate has more boxes than its splits make.")
        box = waiting.pop()
        if isinstance(each, list):
            key, value = each
            first, second = boxes.split(box, key, from_plain(value))
            waiting += [second, first]
            continue
        n_boxes += 1
        fault = boxes.fault(box, each)
        if fault is not None:
            raise CertificateError(
                f"box {n_boxes} is not closed by {fault}. It holds the rows with: "
                f"{boxes.describe(box)}."
            )
    if waiting:
        raise CertificateError(
            f"{len(waiting)} boxes are missing, the first after box {n_boxes}. It holds the rows "
            f"with: {boxes.describe(waiting[-1])}."
        )
    return n_boxes


# ── the model over codes ──


def digest_of_model(form: TreeEnsemble | LinearModel, question: CertifiedQuestion) -> str:
    """Return a digest of a model: its numbers for some rows, and trees and tests or weights."""
    if isinstance(form, LinearModel):
        return _digest_of_weights(form, question)
    tests = form.tests
    numbers = form.inputs.compute(question.rows(_probes(question)))
    levels = sorted((test, sorted(levels)) for test, levels in tests.levels.items())
    # Some readers compute the base from outputs, with rounding errors.
    unit = BASE_ROUNDING * max(float(np.abs(form.value).sum()), 1.0)
    parts: list[Any] = [
        tests.input.astype(np.int64),
        tests.threshold.astype(np.float64),
        tests.is_strict,
        tests.if_missing,
        form.roots.astype(np.int64),
        form.node_test.astype(np.int64),
        form.left.astype(np.int64),
        form.right.astype(np.int64),
        form.value.astype(np.float64),
        np.rint(form.base / unit),
        form.group.astype(np.int64),
        numbers.astype(np.float32),  # the last bits may depend on the processor
    ]
    texts = [form.link, str(form.chosen), repr([str(c) for c in form.inputs.columns]), repr(levels)]
    digest = hashlib.sha256("\n".join(texts).encode())
    for part in parts:
        # A zero has no sign, and a missing number one form.
        digest.update(np.where(np.isnan(part), np.nan, part + 0).tobytes())
    return digest.hexdigest()


def _digest_of_weights(form: LinearModel, question: CertifiedQuestion) -> str:
    """Return a digest of a linear model."""
    numbers = form.inputs.compute(question.rows(_probes(question)))
    columns = [str(column) for column in form.inputs.columns]
    texts = [form.link, repr(columns)]
    digest = hashlib.sha256("\n".join(texts).encode())
    for part in (form.weights, np.array([form.base]), numbers):
        single = np.asarray(part, dtype=np.float32)  # the last bits may depend on the processor
        digest.update(np.where(np.isnan(single), np.nan, single + 0).tobytes())
    return digest.hexdigest()


def _probes(question: CertifiedQuestion) -> Array:
    """Return codes ``(n, d)`` at which the numbers of a model are compared."""
    query = question.prices.query
    start = question.start()
    ends = [np.where(np.isfinite(end), end, query) for end in (start.low, start.high)]
    return np.stack([query, *ends])


def _random_codes(question: CertifiedQuestion) -> Array:
    """Return the query and random allowed codes ``(n, d)``."""
    rng = np.random.default_rng(0)
    X = np.repeat(question.prices.query[None], N_COMPARED, axis=0)
    for j, allowed in enumerate(question.allowed):
        if allowed.codes is not None:
            X[1:, j] = rng.choice(allowed.codes, size=N_COMPARED - 1)
        elif np.isfinite(allowed.ends).all():
            drawn = rng.uniform(*allowed.ends, size=N_COMPARED - 1)
            X[1:, j] = [allowed.last_up_to(code) for code in drawn.tolist()]
    return X


class BoxBounds(BoxReasons["CodeBox"]):
    """The leaves of a model over codes, and the reasons to close boxes.

    Parameters
    ----------
    form : TreeEnsemble
        The model.
    question : CertifiedQuestion
        The question.
    """

    def __init__(self, form: TreeEnsemble, question: CertifiedQuestion) -> None:
        rounding = SUM_ROUNDING * float(np.abs(form.value[form.node_test < 0]).sum())
        super().__init__(question, question.slack + rounding)
        self.form = form
        self._feature = features_of_columns(form, question)[form.tests.input]
        self._follow_paths()

    def _follow_paths(self) -> None:
        """Find the codes that lead to each leaf: ``low < code <= high``, or a set of codes."""
        form = self.form
        question = self.question
        place = {int(j): k for k, j in enumerate(question.lines)}
        boundary, is_true_below = _boundaries(form, question, self._feature)
        outcomes = {j: _listed_outcomes(form, question, j) for j in question.listed}
        low = np.full((len(form.node_test), len(place)), -np.inf)
        high = np.full((len(form.node_test), len(place)), np.inf)
        sets = {j: np.ones((len(form.node_test), len(outcomes[j])), bool) for j in outcomes}
        leaves: list[int] = []
        trees: list[int] = []
        for tree, root in enumerate(form.roots.tolist()):
            waiting = [root]
            while waiting:
                node = waiting.pop()
                test = int(form.node_test[node])
                if test < 0:
                    leaves.append(node)
                    trees.append(tree)
                    continue
                j = int(self._feature[test])
                for child, outcome in ((form.left[node], True), (form.right[node], False)):
                    low[child] = low[node]
                    high[child] = high[node]
                    for codes in sets.values():
                        codes[child] = codes[node]
                    if j in sets:
                        sets[j][child] &= outcomes[j][:, test] == outcome
                    elif is_true_below[test] == outcome:
                        high[child, place[j]] = min(high[child, place[j]], boundary[test])
                    else:
                        low[child, place[j]] = max(low[child, place[j]], boundary[test])
                    waiting.append(int(child))
        self._set_leaves(np.array(leaves), np.array(trees), low, high, sets)

    def _set_leaves(
        self, leaves: Indices, trees: Indices, low: Array, high: Array, sets: dict[int, Mask]
    ) -> None:
        """Keep the leaves that some allowed row reaches, and the features that matter to them."""
        is_reached = np.ones(len(leaves), dtype=np.bool_)
        for codes in sets.values():
            is_reached &= codes[leaves].any(axis=1)
        leaves = leaves[is_reached]
        self._tree = trees[is_reached]
        self._start = np.flatnonzero(np.diff(self._tree, prepend=-1))
        self._low = low[leaves]
        self._high = high[leaves]
        self._sets = {j: part[leaves] for j, part in sets.items() if not part[leaves].all()}
        self._value = self.form.value[leaves]
        if len(self._start) != len(self.form.roots):
            raise CertificateError("a tree of the model has no leaf for the allowed rows.")

    # ── boxes ──

    def start(self) -> CodeBox:
        """Return the box of all allowed rows."""
        return self.question.start()

    def split(self, box: CodeBox, key: Any, value: Any) -> tuple[CodeBox, CodeBox]:
        """Return the two parts of a box: codes of a feature up to a value, and the others."""
        return self.question.split(box, key, value)

    def describe(self, box: CodeBox) -> str:
        """Return in words what makes a box smaller than the space."""
        return self.question.describe(box)

    def fault(self, box: CodeBox, reason: Any) -> str | None:
        """Return what is wrong with the reason for which a box is closed; None if nothing is."""
        return self.fault_of_word(box, reason)

    def misses_target(self, box: CodeBox) -> bool:
        """Return whether no score of a box can be accepted."""
        kept = self._leaves_in(box)
        while True:
            lowest = np.minimum.reduceat(np.where(kept, self._value, np.inf), self._start)
            highest = np.maximum.reduceat(np.where(kept, self._value, -np.inf), self._start)
            if not np.isfinite(lowest).all():
                return True
            if not self._may_be_accepted(lowest, highest):
                return True
            useful = kept & self._is_useful(lowest, highest)
            if np.array_equal(useful, kept):
                return False
            kept = useful

    def _leaves_in(self, box: CodeBox) -> Mask:
        """Return the leaves that rows of a box may reach."""
        at = self.question.lines
        kept = ((self._low < box.high[at]) & (self._high >= box.low[at])).all(axis=1)
        for j, codes in self._sets.items():
            kept &= codes[:, box.sets[j]].any(axis=1)
        return np.asarray(kept)

    def _may_be_accepted(self, lowest: Array, highest: Array) -> bool:
        """Return whether a score between the sums of bounds ``(t,)`` can be accepted."""
        low, high = self._score_bounds(lowest, highest)
        return any(low <= end and high >= start for start, end in self.accepted)

    def _score_bounds(self, lowest: Array, highest: Array) -> tuple[float, float]:
        """Return bounds on the score; of several sums it is the log-odds of the chosen one."""
        form = self.form
        groups = range(len(form.base))
        low = np.array([lowest[form.group == g].sum() for g in groups]) + form.base
        high = np.array([highest[form.group == g].sum() for g in groups]) + form.base
        if len(form.base) == 1:
            return float(low[0]), float(high[0])
        others = np.arange(len(form.base)) != form.chosen
        lower = low[form.chosen] - np.logaddexp.reduce(high[others])
        upper = high[form.chosen] - np.logaddexp.reduce(low[others])
        return float(lower), float(upper)

    def _is_useful(self, lowest: Array, highest: Array) -> Mask:
        """Return which leaves leave the target possible, whatever the other trees do."""
        if len(self.form.base) > 1 or not self.accepted:
            return np.ones(len(self._value), dtype=np.bool_)
        start = min(pair[0] for pair in self.accepted)
        end = max(pair[1] for pair in self.accepted)
        low, high = self._score_bounds(lowest, highest)
        least = self._value + (low - lowest[self._tree])
        most = self._value + (high - highest[self._tree])
        return np.asarray((least <= end) & (most >= start))

    def score(self, codes: Array) -> float:
        """Return the score of codes ``(d,)``."""
        raw = self.form.raw(self.question.rows(codes[None]))[0]
        if len(raw) == 1:
            return float(raw[0])
        others = np.arange(len(raw)) != self.form.chosen
        return float(raw[self.form.chosen] - np.logaddexp.reduce(raw[others]))


def _listed_outcomes(form: TreeEnsemble, question: CertifiedQuestion, j: int) -> Mask:
    """Return the outcomes ``(c, s)`` of all tests for the listed codes of a feature."""
    codes = question.codes(j)
    X = np.repeat(question.prices.query[None], len(codes), axis=0)
    X[:, j] = codes
    return form.tests.outcomes(form.inputs.compute(question.rows(X)))


def _boundaries(
    form: TreeEnsemble, question: CertifiedQuestion, feature: Indices
) -> tuple[Array, Mask]:
    """Return for each test of a feature on a line the last code on its lower side, by halving.

    Returns
    -------
    boundary : array of shape (s,)
        A code: the outcome is the same for all allowed codes up to it, and for all above it.
    is_true_below : mask of shape (s,)
        The outcome up to the boundary.
    """
    tests = form.tests
    own = np.flatnonzero(np.isin(feature, question.lines))
    boundary = np.full(len(tests), np.nan)
    is_true_below = np.zeros(len(tests), dtype=np.bool_)
    if (form.inputs.direction[tests.input[own]] == 0).any() or set(own) & set(tests.levels):
        raise CertificateError("a feature is a range, but its tests are not in order.")
    at = feature[own]
    rank = np.zeros(len(own), dtype=np.intp)
    for j in np.unique(at):
        rank[at == j] = np.arange(np.count_nonzero(at == j))

    def outcomes(codes: Array) -> Mask:
        """Return the outcome of each test in `own` at its code; row i has the i-th of each."""
        X = np.repeat(question.prices.query[None], int(rank.max(initial=0)) + 1, axis=0)
        X[rank, at] = codes
        number = form.inputs.compute(question.rows(X))[rank, tests.input[own]]
        threshold = tests.threshold[own]
        passed = np.where(tests.is_strict[own], number < threshold, number <= threshold)
        return np.where(np.isnan(number), tests.if_missing[own], passed)

    ends = np.array([allowed.ends for allowed in question.allowed])[at]
    below = _numbers(question, ends[:, 0], at)
    above = _numbers(question, ends[:, 1], at)
    at_low = outcomes(ends[:, 0])
    is_same = outcomes(ends[:, 1]) == at_low
    for _ in range(HALVINGS):
        # The floor of the mean; a sum or a difference may exceed 64 bits.
        middle = (below & above) + ((below ^ above) >> 1)
        if (middle == below).all():
            break
        is_lower = outcomes(_codes(question, middle, at)) == at_low
        below = np.where(is_lower, middle, below)
        above = np.where(is_lower, above, middle)
    boundary[own] = np.where(is_same, np.inf, _codes(question, below, at))
    is_true_below[own] = at_low
    return boundary, is_true_below


def _numbers(question: CertifiedQuestion, codes: Array, at: Indices) -> Indices:
    """Return whole numbers in the order of codes ``(n,)`` of features `at`, neighbours one apart.

    They are places in the grid of a feature, or else made from the bits of the codes.
    """
    bits = np.ascontiguousarray(codes, dtype=np.float64).view(np.int64)
    numbers = np.where(bits < 0, LEAST_NUMBER - bits, bits)
    for j in np.unique(at):
        grid = question.allowed[j].codes
        if grid is not None:
            numbers[at == j] = np.searchsorted(grid, codes[at == j])
    return numbers


def _codes(question: CertifiedQuestion, numbers: Indices, at: Indices) -> Array:
    """Return the codes of :func:`_numbers`."""
    bits = np.where(numbers < 0, LEAST_NUMBER - numbers, numbers)
    codes = np.ascontiguousarray(bits, dtype=np.int64).view(np.float64).copy()
    for j in np.unique(at):
        grid = question.allowed[j].codes
        if grid is not None:
            codes[at == j] = grid[numbers[at == j]]
    return codes
